-- rpc.lua - JSON-RPC 2.0: a text that is a request, or a batch of them, and the text that answers it.
--
-- What a method does is not known here: call(method, params) returns a result or raises an error, one of rpc.fail or any other. The
-- message of those that are Millrace's own begins with the location in the caller's text, which is taken off here.

local core = require "millrace.core"
local json = require "millrace.json"

local rpc = {PARSE = -32700, REQUEST = -32600, METHOD = -32601, PARAMS = -32602, MILLRACE = -32000}

local failure = {__tostring = function(e) return e.message end}

-- Raise an error with a code. data: a table with more for programs, or nil.
function rpc.fail(code, message, data) error(setmetatable({code = code, message = message, data = data}, failure), 0) end

-- "plan 3:12: append: ..." -> the message without its location, and that as {file=, line=}, or null. It may also stand behind the name
-- of the call: "load_plan: plan 3:12: ...".
function rpc.located(text)
  local file, line, message = text:match "^([^:\n]+):(%d+): (.*)$"
  local call = ""
  if not file then call, file, line, message = text:match "^([%a_]+: )([^:\n]+):(%d+): (.*)$" end
  if not file then return text, json.null end
  return call .. message, {file = file, line = math.tointeger(line)}
end

-- In a thread of its own, so that errors know no location but those in texts of the caller.
local function alone(call, method, params)
  local thread = coroutine.create(call)
  local good, result = coroutine.resume(thread, method, params)
  coroutine.close(thread)                               -- after an error: ends what is to be closed
  if not good then error(result, 0) end
  return result
end

-- What call(method, params) returns: true and the result, or false and an error as a table. Ctrl-C ends the call alone.
function rpc.try(call, method, params)
  local good, finished, result = pcall(core.heed, alone, call, method, params)
  if good and finished then return true, result end
  if good then return false, {code = rpc.MILLRACE, message = "interrupted", data = {location = json.null}} end
  if getmetatable(finished) == failure then return false, finished end
  local text = type(finished) == "string" and finished or ("(error object is a %s value)"):format(type(finished))
  local message, location = rpc.located(text)
  return false, {code = rpc.MILLRACE, message = message, data = {location = location}}
end

local function error_of(id, e)
  local names = e.data and "code message data" or "code message"
  return json.object("jsonrpc id error", {jsonrpc = "2.0", id = id, error = json.object(names, e)})
end

local function is_id(x) return x == json.null or type(x) == "string" or math.type(x) ~= nil end

-- Why it is no request; nil if it is one.
local function wrong(x)
  if type(x) ~= "table" or json.is_list(x) then return "a request is an object" end
  if x.jsonrpc ~= "2.0" then return "jsonrpc must be \"2.0\"" end
  if type(x.method) ~= "string" then return "method must be a string" end
  if x.params ~= nil and type(x.params) ~= "table" or x.params == json.null then return "params must be an object" end
  if x.id ~= nil and not is_id(x.id) then return "id must be a string or a number" end
end

-- The answer to one request as a value; nil: it is a notification, which has none.
local function answer_of(x, call)
  local why = wrong(x)
  if why then
    local id = type(x) == "table" and is_id(x.id) and x.id or json.null
    return error_of(id, {code = rpc.REQUEST, message = "no request of JSON-RPC 2.0: " .. why})
  end
  if x.id == nil then return nil end
  local params = x.params or {}
  if json.is_list(params) and #params > 0 then
    return error_of(x.id, {code = rpc.PARAMS, message = "parameters are given by name, in an object"})
  end
  local good, result = rpc.try(call, x.method, params)
  if not good then return error_of(x.id, result) end
  return json.object("jsonrpc id result", {jsonrpc = "2.0", id = x.id, result = result})
end

-- The line that answers a line; nil: there is no answer. A batch is answered in its order.
function rpc.answer(line, call)
  local x, why = json.decode(line)
  if x == nil then return json.line(error_of(json.null, {code = rpc.PARSE, message = "no JSON: " .. why})) end
  if not json.is_list(x) then
    local one = answer_of(x, call)
    return one and json.line(one)
  end
  if #x == 0 then return json.line(error_of(json.null, {code = rpc.REQUEST, message = "an empty batch"})) end
  local answers = {}
  for _, request in ipairs(x) do answers[#answers + 1] = answer_of(request, call) end
  return answers[1] and json.line(answers)
end

-- The answer to a line that is longer than so many bytes.
function rpc.overlong(most)
  return json.line(error_of(json.null, {code = rpc.REQUEST, message = ("a line has more than %d bytes"):format(most)}))
end

return rpc
