-- complete.lua - completion of Lua code, for the shell.
--
-- The result depends only on the text before the cursor and on the tables that it names. No metamethod and no function of
-- the user is called, so that completion cannot fail or change anything: all of Lua's functions that are used here are those
-- that were there in the beginning. Inside calls of ours, words.lua gives words for each argument.

local core = require "millrace.core"
local words_of_call = require "millrace.words"
local find, match, rep, sub = string.find, string.match, string.rep, string.sub
local getmetatable, next, pcall, rawget, type = debug.getmetatable, next, pcall, rawget, type
local concat, max, min, sort, tonumber, globals = table.concat, math.max, math.min, table.sort, tonumber, _G

local CHAIN_MAX = 10                                     -- __index tables followed from one value
local WORDS_SHOWN = 200
local commands = {"help", "save", "time"}                -- of the shell
local keywords = {}
for word in string.gmatch("and break do else elseif end false for function goto if in local nil not or repeat return then true "
  .. "until while", "%a+") do keywords[word] = true end

---- the text before the cursor ---------------------------------------------------------------------

-- The kind of the comment or string that begins at i, and the position after it, nil if it is not closed; nil if none begins.
local function quiet_end(text, i)
  local comment = sub(text, i, i + 1) == "--"
  local level = match(text, "^%[(=*)%[", comment and i + 2 or i)
  if level then
    local _, last = find(text, "]" .. level .. "]", i + #level + 2, true)
    return comment and "comment" or "long string", last and last + 1
  end
  if comment then return "comment", find(text, "\n", i, true) end
  local quote = match(text, "^[\"']", i)
  if not quote then return nil end
  local last = find(text, "[\\\n" .. quote .. "]", i + 1)
  while last and sub(text, last, last) == "\\" do last = find(text, "[\\\n" .. quote .. "]", last + 2) end
  return "string", last and last + 1
end

-- Add the names that `local`, `for` or a parameter list at i declares; returns where the list ends.
local function declare(text, i, closers, locals)
  while i <= #text and not find(closers, sub(text, i, i), 1, true) do
    local word = match(text, "^[%a_][%w_]*", i)
    if word == "function" then return i end              -- local function f(...)
    i = i + #(word or " ")
    if word == "in" then return i end
    if sub(text, i - 1, i - 1) == "<" then               -- local x <const>
      i = find(text, ">", i, true) or #text + 1
    elseif word then
      if i <= #text then locals[word] = true end         -- not the word under the cursor
      i = match(text, "^[ \t]*()", i)
      if find(text, "^[^,<]", i) then return i end
    end
  end
  return i
end

-- The kind of text at the end: nil for code, or as in quiet_end, with the position where it begins. Collects the locals.
local function scan(text, locals)
  local i = 1
  while i <= #text do
    local kind, past = quiet_end(text, i)
    local word = match(text, "^[%a_][%w_]*", i)
    if kind and not past then return kind, i end
    i = past or i + #(word or match(text, "^%d[%xxX]*", i) or " ")
    if i > #text then return nil end
    if word == "local" or word == "for" then i = declare(text, i, "=\n;(", locals) end
    local list = word == "function" and match(text, "^[%w_ .:]*%(()", i)
    if list then i = declare(text, list, ")", locals) end
  end
end

-- How many of the first n characters are left without the white space at their end.
local function trimmed(text, n)
  while find(text, "^%s", n) and n > 0 do n = n - 1 end
  return n
end

---- values, without calling anything ---------------------------------------------------------------

local function index_of(x)
  local meta = getmetatable(x)
  local index = meta and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

local function field(x, name)
  for _ = 1, CHAIN_MAX do
    if type(x) == "table" and rawget(x, name) ~= nil then return rawget(x, name) end
    x = index_of(x)
  end
end

local function add(words, word)
  local n = #words.prefix
  if sub(word, 1, n) ~= words.prefix or (n == 0 and sub(word, 1, 1) == "_") then return end    -- _x is private
  words.set[word] = true
end

local function add_keys(words, t, functions_only)
  for key, value in next, t do
    if type(key) == "string" and (not functions_only or type(value) == "function") and find(key, "^[%a_][%w_]*$") then
      add(words, key)
    end
  end
end

-- Names of the fields of a value. Our objects have theirs in the tables `methods` and `fields` of the metatable.
local function add_fields(words, x, methods_only)
  local meta = getmetatable(x)
  for _, set in next, {meta and rawget(meta, "methods"), meta and not methods_only and rawget(meta, "fields")} do
    if type(set) == "table" then add_keys(words, set) end
  end
  for _ = 1, CHAIN_MAX do
    if type(x) == "table" then add_keys(words, x, methods_only) end
    x = index_of(x)
  end
end

-- The value of the path that ends the text, such as `a.b[1].c`; nil if there is none, or if the value cannot be known: that
-- of a local, or one that needs a call.
local function value_of(text, locals)
  local before, index = match(text, "^(.*)%[(%d+)%]$")
  if before then
    local t = #index < 10 and value_of(before, locals)
    return type(t) == "table" and rawget(t, tonumber(index)) or nil
  end
  local name = match(text, "[%w_]+$")
  if not name or find(name, "^%d") then return nil end
  before = sub(text, 1, -#name - 1)
  if find(before, "%.[.:]$") then return nil end         -- a .. b
  if find(before, "[.:]$") then return field(value_of(sub(before, 1, -2), locals), name) end
  return not locals[name] and field(globals, name) or nil
end

---- calls ------------------------------------------------------------------------------------------

-- The brackets that are open at the end of the text.
local function open_brackets(text)
  local open, i = {}, 1
  while i <= #text do
    local kind, past = quiet_end(text, i)
    local c, inner = sub(text, i, i), open[#open]
    i = kind and (past or #text + 1) or i + 1
    if kind then -- no brackets
    elseif find("({[", c, 1, true) then open[#open + 1] = {sign = c, item = i, before = i - 2, commas = 0}
    elseif find(")}]", c, 1, true) then open[#open] = nil
    elseif find(",;", c, 1, true) and inner then inner.commas, inner.item = inner.commas + 1, i end
  end
  return open
end

-- The path, such as `a.b[1]:c`, that ends the first n characters, but for white space; nil. Of `f():name` it is ":name".
local function path_before(text, n)
  local all = match(sub(text, 1, trimmed(text, n)), "[%w_.:%[%]]*$")
  local path = match(all, "[%a_].*$")
  if not path or keywords[path] then return nil end
  return find(path, "^[%w_]+$") and match(all, ":[%w_]+$") or path
end

-- The call around the end of the text: the path of the function, which argument it is, and the keys of the tables around the
-- end, innermost first, "" for elements without a key. nil if it is in no call.
local function find_call(text, quoted)
  local open, n, keys = open_brackets(text), #text, {}
  local callee = quoted and path_before(text, n)
  if callee then return callee, 1, keys end              -- f "..."
  local i = #open
  while i > 0 and open[i].sign == "{" do
    local b = open[i]
    if quoted or #keys > 0 or trimmed(text, n) ~= b.item - 1 then
      keys[#keys + 1] = match(sub(text, b.item, n), "^%s*([%w_]*)%s*=") or ""
    end
    callee = path_before(text, b.before)
    if callee then return callee, 1, keys end            -- f{...}
    n, quoted, i = b.before, true, i - 1
  end
  if i == 0 or open[i].sign == "[" then return nil end
  return path_before(text, open[i].before), open[i].commas + 1, keys
end

-- Add the words that are known for this argument of a call. Returns whether names of files are possible too; nil if nothing
-- is known of the call.
local function add_call_words(words, text, quoted)
  local path, arg, keys = find_call(text, quoted)
  if not path then return nil end
  local locals, object = {}, nil
  local before, name = match(path, "^(.-)([%w_]*)$")
  scan(text, locals)
  if #before > 1 then object = value_of(sub(before, 1, -2), locals) end
  local good, list, files = pcall(words_of_call, object, name, path, arg, keys, quoted)
  if not good or type(list) ~= "table" then return nil end
  for i = 1, #list do add(words, list[i]) end
  return files
end

-- In a string that begins at `quote`: words for the call around it, names of fields in t["..."], or else names of files.
local function add_quoted(words, text, quote, start, locals)
  local before = trimmed(text, quote - 1)
  if sub(text, before, before) == "[" and path_before(text, before - 1) then
    add_fields(words, value_of(sub(text, 1, before - 1), locals))
  elseif start > quote + 1 or add_call_words(words, sub(text, 1, quote - 1), true) ~= false then
    local list = core.list(start > quote + 1 and sub(text, quote + 1, start - 1) or ".")
    for i = 1, #list do
      if words.prefix ~= "" or sub(list[i], 1, 1) ~= "." then add(words, list[i]) end
    end
  end
end

---- completion -------------------------------------------------------------------------------------

-- The words as lines of columns.
local function lines_of(list, width)
  local shown, widest, lines = min(#list, WORDS_SHOWN), 0, {}
  for i = 1, shown do widest = max(widest, #list[i]) end
  local down = (shown - 1) // max(width // (widest + 2), 1) + 1
  for y = 1, down do
    lines[y] = ""
    for i = y, shown, down do lines[y] = lines[y] .. list[i] .. rep(" ", i + down <= shown and widest + 2 - #list[i] or 0) end
  end
  if shown < #list then lines[#lines + 1] = "... " .. #list - shown .. " more" end
  return concat(lines, "\n")
end

-- How many characters the first and the last of sorted words, and so all of them, have in common.
local function common(list)
  local first, last, n = list[1] or "", list[#list] or "", 0
  while n < #first and sub(first, n + 1, n + 1) == sub(last, n + 1, n + 1) do n = n + 1 end
  return n
end

-- The sorted words that could replace the end of the text, which is the unfinished chunk up to the cursor, and how many
-- characters they replace. Words are keywords, locals and globals; fields after '.', methods after ':'; "option=" alone in the
-- table of a call of ours; inside quotes what the call expects there, such as sTasks, or names of files. With a width in columns, returns the
-- text to insert, or else the words to choose from as lines; nil if there is none.
return function(text, width)
  local locals = {}
  local kind, begin = scan(text, locals)
  local start = kind == "string" and (match(text, "^.*/()", begin + 1) or begin + 1) or #text - #match(text, "[%w_]*$") + 1
  local before = sub(text, 1, start - 1)
  local words = {prefix = sub(text, start), set = {}}
  if find(before, "^%s*:$") then
    for i = 1, #commands do add(words, commands[i]) end
  elseif kind == "string" then
    add_quoted(words, text, begin, start, locals)
  elseif not kind and find(before, "[.:]$") and not find(before, "%.[.:]$") then
    add_fields(words, value_of(sub(before, 1, -2), locals), sub(before, -1) == ":")
  elseif not kind and not find(words.prefix, "^%d") then
    local open = open_brackets(before)
    local in_table = #open > 0 and open[#open].sign == "{" and find(before, "[{,;]%s*$")
    if in_table then add_call_words(words, before, false) end
    if next(words.set) == nil then                       -- in the table of a call of ours, its options alone
      add_keys(words, keywords)
      add_keys(words, locals)
      add_fields(words, globals)
    end
  end
  local list = {}
  for word in next, words.set do list[#list + 1] = word end
  sort(list)
  local n = #words.prefix
  if not width then return list, n end
  return common(list) > n and sub(list[1], n + 1, common(list)) or nil, #list > 1 and lines_of(list, width) or nil
end
