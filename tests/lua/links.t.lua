-- Every relative link of README.md and docs/ leads to a file that there is, and to a heading in it; and every document is reached
-- from README.md.

local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local function read(path)
  local file <close> = io.open(path)
  return file and file:read "a"
end

-- Text without blocks of code, in which nothing is a link or a heading.
local function prose(text) return (("\n" .. text):gsub("\n[ \t]*```.-\n[ \t]*```", "\n")) end

-- The anchors of a document, as GitHub makes them: of a heading, in small letters, what is a letter, digit, space, - or _, with - for
-- spaces; a heading that comes again gets a number.
local function anchors_of(text)
  local anchors, count = {}, {}
  for heading in text:gmatch "\n#+ +([^\n]+)" do
    local words = heading:gsub("%[([^%[%]]*)%]%([^()]*%)", "%1"):lower()
    local anchor = words:gsub("[^%w%s_-]", ""):gsub("%s", "-")
    anchors[count[anchor] and anchor .. "-" .. count[anchor] or anchor] = true
    count[anchor] = (count[anchor] or 0) + 1
  end
  for id in text:gmatch '<a id="([^"]+)">' do anchors[id] = true end
  return anchors
end

local home = mr.home .. "/"
local documents, paths = {}, {}
for path in assert(io.popen("cd '" .. mr.home .. "' && ls README.md docs/*.md docs/*/*.md")):lines() do
  documents[path] = prose(read(home .. path))
  paths[#paths + 1] = path
end

-- "docs/internals/", "../manual.md" -> "docs/manual.md"
local function join(folder, path)
  local parts = {}
  for part in (folder .. path):gmatch "[^/]+" do
    if part == ".." then parts[#parts] = nil else parts[#parts + 1] = part end
  end
  return table.concat(parts, "/")
end

local count, leads = 0, {}
for _, from in ipairs(paths) do
  local wrong = {}
  leads[from] = {}
  for target in documents[from]:gsub("`[^`\n]*`", ""):gmatch "%]%(([^()%s]+)%)" do
    local path, anchor = target:match "^([^#]*)#?(.*)$"
    if not target:find "^%a+:" then
      local to = path == "" and from or join(from:match "^.*/" or "", path)
      local there = documents[to] or io.open(home .. to)
      if not there or anchor ~= "" and not (documents[to] and anchors_of(documents[to])[anchor]) then
        wrong[#wrong + 1] = target
      end
      leads[from][to] = true
      if io.type(there) == "file" then there:close() end
      count = count + 1
    end
  end
  tap.ok(#wrong == 0, "links of " .. from, table.concat(wrong, ", "))
end

local reached = {}
local function follow(path)
  if reached[path] then return end
  reached[path] = true
  for to in pairs(leads[path] or {}) do follow(to) end
end
follow "README.md"
local lost = {}
for _, path in ipairs(paths) do
  if not reached[path] then lost[#lost + 1] = path end
end
tap.ok(#lost == 0, "every document is reached from README.md", table.concat(lost, ", "))
tap.ok(count > 100, "there are many links", count)
tap.done_testing()
