-- script.lua - a plan as a Lua file: its head, and plan:save.
--
-- The head is a comment that says which program and device the plan is for; a saved plan also says how fast it is. These lines
-- are ours and are written again each time. Comments before them are the user's and stay.

local core = require "millrace.core"
local literal = require("millrace.draft").literal
local options = require "millrace.options"
local raise, show, entry, expect = core.raise, core.show, core.entry, core.expect

local HEAD <const>, SPEED <const> = "^%-%- Millrace %d+%.%d+%.%d+: ", "^%-%- %a[%a ]* [%d.e+-]+ ms"

local script = {}

-- "gemm m=8192 n=8192 k=8192 bias=true": a bound program with its sizes and options.
function script.program_text(bound)
  local _, _, sizes, given = core.identity(bound)
  return ("%s %s%s"):format(bound.name, sizes, given ~= "" and " " .. given or "")
end

-- "-- Millrace 0.1.0: gemm m=8192 n=8192 k=8192 on h200"
function script.head(version, plan)
  return (("-- Millrace %s: %s on %s"):format(version, script.program_text(plan.graph.program), plan.device.name):gsub("%c", " "))
end

-- A script from its first statement on, and the comments and blank lines before it.
function script.body(text)
  local comments, at = {}, 1
  while at <= #text do
    local line, after = text:match("^(%s*%-%-%[(=*)%[.-%]%2%][^\n]*)\n?()", at), nil
    if line then after = at + #line + 1 else line, after = text:match("^([^\n]*)\n?()", at) end
    local is_comment = line:find "^%s*%-%-" or line:find "^%s*$" or at == 1 and line:find "^#"
    if not is_comment then break end
    comments[#comments + 1], at = line, after
  end
  return text:sub(at), comments
end

-- Of core.diff: the lines that differ, with one before and after them.
function script.diff_text(rows)
  local out, last = {}, 0
  for i, row in ipairs(rows) do
    local before, after = rows[i - 1], rows[i + 1]
    if row[1] ~= " " or before and before[1] ~= " " or after and after[1] ~= " " then
      if last > 0 and last < i - 1 then out[#out + 1] = "  ..." end
      out[#out + 1], last = row[1] .. " " .. row[2], i
    end
  end
  return #out > 0 and table.concat(out, "\n") or "no difference"
end

---- saving -------------------------------------------------------------------------------------

local function ms(x) return ("%.4g ms"):format(x) end

-- What the store has measured of exactly this plan: the newest row; nil.
local function measured(mr, plan, text)
  local good, rows = core.try(function()
    return mr.store.path and mr.store:list{program = plan.graph.program, device = plan.device, status = "ok"} or {}
  end)
  for _, row in ipairs(good and rows or {}) do
    if row.ms and row.script and script.body(row.script) == text then return row.ms end
  end
end

-- "-- predicted 1.571 ms, measured 1.602 ms"; nil if neither is known.
local function speed(mr, plan)
  local parts, time = {}, measured(mr, plan, (script.body(plan:script())))
  local good, tl = core.try(function() return plan:check() and plan:simulate{events = 0} end)
  if good and tl then parts[1] = "predicted " .. ms(tl.seconds * 1e3) end
  if time then parts[#parts + 1] = "measured " .. ms(time) end
  return parts[1] and "-- " .. table.concat(parts, ", ")
end

local function text_of(path)
  local file = io.open(path)
  local text = file and file:read "a" or ""
  if file then file:close() end
  return text
end

-- The plan is from then on that of the file. text: what is in it, if that is known.
function script.keep_path(plan, path, text) core.set_path(plan, path, core.hash(text or text_of(path))) end

-- The user's comments at the head of a file.
local function kept_comments(path)
  local _, comments = script.body(text_of(path))
  local kept, ours = {}, false
  for _, line in ipairs(comments) do
    local head = line:find(HEAD) ~= nil
    if not head and not (ours and line:find(SPEED)) then kept[#kept + 1] = line end
    ours = head
  end
  return kept
end

-- Why a file is not simply replaced by the plan: "exists, and is not the file of this plan"; nil if it may be, or there is none.
-- Also whether there is one. Raises if it is no file.
function script.obstacle(plan, path)
  local kind, id = core.file_kind(path)
  if kind == nil then return nil, false end
  if kind ~= "file" then raise(("save: %s is a %s, not a file"):format(path, kind == "folder" and kind or "device or a pipe")) end
  if id ~= (plan.path and select(2, core.file_kind(plan.path))) then return "exists, and is not the file of this plan", true end
  if core.hash(text_of(path)) ~= core.hash_of_file(plan) then return "has changed since the plan was loaded from it", true end
  return nil, true
end

-- May the plan be written there? Raises if not; returns whether there is a file.
local function check_target(plan, path, overwrite)
  local why, exists = script.obstacle(plan, path)
  if why and not overwrite then
    raise(("save: %s %s; plan:save(%q, {overwrite=true}) replaces it"):format(path, why, path))
  end
  return exists
end

-- How a script gets at the device: made[d] is {name, changes} of one that its own name does not give.
function script.device_call(made, d)
  local name, changes = table.unpack(made[d] or {d.name})
  return (changes and "mr.device(%q, %s)" or "mr.device %q"):format(name, changes and literal(changes))
end

-- -> function plan:save(path, {overwrite=})
function script.saver(mr)
  return entry(function(plan, ...)
    core.at_most(3, plan, ...)
    local path, given = ...
    expect(core.is(plan, "millrace.plan"), "save", "plan", plan)
    if path == nil and select("#", ...) > 0 then
      raise(("save: path expected, got nil; plan:save() writes %s"):format(plan.path and show(plan.path) or "the file of a plan that has one"))
    end
    if path == nil then
      path = plan.path or raise 'save: this plan has no file yet; say where, as in plan:save "plan.lua"'
    end
    expect(type(path) == "string" and path ~= "" and not path:find "\0", "save", "path", path)
    local overwrite = options.check(given, "save", {"overwrite"}).overwrite
    if overwrite ~= nil and type(overwrite) ~= "boolean" then
      raise("save: overwrite must be true or false, got " .. show(overwrite))
    end
    local lines = check_target(plan, path, overwrite) and kept_comments(path) or {}
    local body = script.body(plan:script())
    lines[#lines + 1] = script.head(mr.version, plan)
    lines[#lines + 1] = speed(mr, plan)
    local text = table.concat(lines, "\n") .. "\n" .. body
    local good, why = core.replace_file(path, text)
    if not good then raise(("save: cannot write %s: %s"):format(path, why)) end
    script.keep_path(plan, path, text)
    core.set_made_for(plan, nil)
    return path
  end)
end

return script
