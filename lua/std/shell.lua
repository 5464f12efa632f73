-- shell.lua - what the shell does with chunks, their results, and commands; ui/repl.c reads and runs them.
--
-- Chunks that did not fail are kept, for a script that does the same (:save). An expression that is no statement only shows a
-- value; it is left out of the script, unless a later chunk reads it as `_`. Users may change the functions of Lua, so those
-- that are used here are those that were there in the beginning.

local core = require "millrace.core"
local help = require "millrace.help"
local inspect = require "millrace.inspect"
local find, gmatch, match, sub, format = string.find, string.gmatch, string.match, string.sub, string.format
local load, open, io_type, out, concat = load, io.open, io.type, io.stdout, table.concat
local rawget, rawset, select, type, unpack, globals = rawget, rawset, select, type, table.unpack, _G
local write, close = out.write, out.close
local chunks, hinted = {}, false

local function begins(text, word) return match(text, "^%s*([%w_]*)") == word end

-- Does the chunk read the last value, `_`? Not if it declares `_` as a variable.
local function reads_last(text)
  for at in gmatch(text, "()%f[%w_]_%f[^%w_]") do
    local before = sub(text, 1, at - 1)
    if not find(before, "for%s*$") and not find(before, "local%s*$") then return true end
  end
  return false
end

-- Is the value of chunk i read by a later chunk, before there is another value?
local function is_read(i)
  if not chunks[i].has_value then return false end
  for k = i + 1, #chunks do
    if reads_last(chunks[k].text) then return true end
    if chunks[k].has_value then return false end
  end
  return false
end

-- The name of a local that the chunk declares and does not use; nil.
local function lost_local(text)
  local name, after = match(text, "^%s*local%s+function%s+([%w_]+)()")
  if name then after = match(text, "^.*%f[%w_]end%f[^%w_]()", after) or after
  else name, after = match(text, "^%s*local%s+([%w_]+)()") end
  return name and not find(text, "%f[%w_]" .. name .. "%f[^%w_]", after) and name
end

local shell = {}

-- Load a chunk as an expression, or else as statements. Returns a function; or nil, a message, and whether it is not complete.
function shell.load(text, name)
  core.last_shown, core.last_refusal = nil, nil
  local chunk, why = load("return " .. text, name, "t")
  if chunk then return chunk end
  local more = find(why, "<eof>$")
  local topic = match(text, "^%s*help%s+([%w_][%w_.:%- ]*)$")
  if topic then return load(format("return help %q", topic), name, "t") end
  chunk, why = load(text, name, "t")
  return chunk, why, not chunk and (more or find(why, "<eof>$")) and true
end

-- The texts of the values, or one text if each of them has one line; nothing if all are nil. Of a chunk without values
-- why a search in it found nothing. Sets `_`.
function shell.show(width, ...)
  local first, texts, any, lines = ..., {}, false, false
  if select("#", ...) == 1 and type(first) == "function" and first == rawget(globals, "help") then return first() end
  if first ~= nil then rawset(globals, "_", first) end
  if select("#", ...) == 1 and first == nil and core.last_refusal then return core.last_refusal end    -- what an assignment dropped
  local last = core.last_shown
  if select("#", ...) == 1 and last and rawequal(first, last.plan) then return last.line end
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    texts[i] = inspect(value, width)
    any = any or value ~= nil
    lines = lines or find(texts[i], "\n", 1, true)
  end
  if lines then return unpack(texts) end
  if any then return concat(texts, "\t") end
end

-- Keep a chunk; its first value is `_` from then on. Says once that locals end with their chunk.
function shell.keep(text, value)
  if begins(text, "help") or begins(text, "quit") or begins(text, "exit") then return end    -- scripts do not have these
  chunks[#chunks + 1] = {text = text, is_statement = load(text, "=save", "t") ~= nil, has_value = value ~= nil}
  local lost = not hinted and lost_local(text)
  if not lost then return end
  write(out, "local ", lost, " ends with its line here; leave out local to keep it\n")
  hinted = true
end

-- Write the script. Returns what was done, or nil and why it was not; a file is only overwritten with `over`.
local function save(path, over)
  if path == "" then return nil, ":save FILE.lua writes what was typed as a script" end
  local file = not over and open(path)
  if file then
    close(file)
    return nil, format("%s exists; :save! %s overwrites it", path, path)
  end
  local why, count = nil, 0
  file, why = open(path, "w")
  local good = file and write(file, 'local mr = require "millrace"\n\n')
  for i = 1, #chunks do
    local c, read = chunks[i], is_read(i)
    if good and not begins(c.text, "return") and (c.is_statement or read) then
      count = count + 1
      local before = read and "_ = " or begins(c.text, "local") and "do\n" or find(c.text, "^%s*%(") and ";" or ""
      good, why = write(file, before, c.text, before == "do\n" and "\nend\n" or "\n")    -- a local is local to its chunk
    end
  end
  if good then good, why = close(file) end
  if good then return format("%s: %d chunk%s", path, count, count == 1 and "" or "s") end
  if io_type(file) == "file" then close(file) end
  return nil, format("cannot write %s: %s", path, match(why, "[^: ][^:]*$"))
end

-- What leaves other shells and editors.
local LEAVES <const> = {q = true, ["q!"] = true, wq = true, x = true, quit = true, exit = true}

-- Run a line that is a command. Returns the chunk of :time; or nil, what to print, or nil and what is wrong.
function shell.command(line)
  local word, argument = match(line, "^%s*:(%S*)%s*(.-)%s*$")
  if word == "time" and argument ~= "" then return argument end
  if word == "time" then return nil, nil, ":time CHUNK runs the chunk and prints how long it takes" end
  if word == "save" or word == "save!" then return nil, save(argument, word == "save!") end
  if word == "help" then return nil, help(argument ~= "" and argument or "commands") end
  local hint = core.hint(":" .. word, {":help", ":save", ":save!", ":time"})
  return nil, nil, format("no command ':%s'%s", word, hint ~= "" and hint or LEAVES[word] and "; quit() or Ctrl-D leaves" or "; :help lists them")
end

return shell
