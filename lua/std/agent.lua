-- agent.lua - `millrace serve`: answers other programs, a line of JSON-RPC each, until its input ends.

local core = require "millrace.core"
local json = require "millrace.json"
local rpc = require "millrace.rpc"

local LINE_MOST <const> = 2^20                          -- bytes

local usage <const> = [[
usage: millrace serve [--mcp] [--schema] [-h]
  --mcp      be a server of the Model Context Protocol, with the same methods as tools
  --schema   print the JSON Schema of requests and results, and end
  -h         print this text
Reads a request of JSON-RPC 2.0 from each line of standard input, and writes the
answer as a line on standard output. docs/serve.schema.json has the methods.
]]

-- What else would be printed goes to standard error: standard output has answers only.
local function keep_output()
  print = function(...)
    local texts = table.pack(...)
    for i = 1, texts.n do texts[i] = tostring(texts[i]) end
    io.stderr:write(table.concat(texts, "\t"), "\n")
  end
  io.output(io.stderr)
end

local function serve(call)
  keep_output()
  for line in core.read_line, LINE_MOST do
    local answer
    if not line then
      answer = rpc.overlong(LINE_MOST)
    elseif line:find "%S" then
      answer = rpc.answer(line, call)
    end
    if answer then
      io.stdout:write(answer, "\n")
      io.stdout:flush()
    end
  end
end

-- The arguments of the command line behind `serve`. Returns the exit status.
return function(...)
  local given = {mcp = false}
  for _, option in ipairs{...} do
    if option == "--mcp" then
      given.mcp = true
    elseif option == "--schema" then
      io.write(json.encode(require "millrace.methods".schema()), "\n")
      return 0
    elseif option == "-h" or option == "--help" then
      io.write(usage)
      return 0
    else
      local near = core.hint(option, {"--mcp", "--schema", "--help"})
      io.stderr:write(("millrace serve: unknown option '%s'%s\n%s"):format(option, near, usage))
      return 2
    end
  end
  local of = require(given.mcp and "millrace.mcp" or "millrace.methods")
  local call, session = given.mcp and of or of.call, require("millrace.session").new()
  serve(function(name, params) return call(session, name, params) end)
  return 0
end
