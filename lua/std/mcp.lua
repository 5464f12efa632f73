-- mcp.lua - the methods as tools of a server of the Model Context Protocol, on standard input and output:
-- https://modelcontextprotocol.io/specification/2025-06-18
--
-- A tool answers with the method's result, as a value and as text. An error of a method is a result, too, marked as an error, so that a
-- model reads what was wrong and can try again.

local core = require "millrace.core"
local json = require "millrace.json"
local methods = require "millrace.methods"
local rpc = require "millrace.rpc"
local schema = require "millrace.schema"
local mr = require "millrace"

local VERSIONS <const> = {"2025-06-18", "2025-03-26", "2024-11-05"}

local INSTRUCTIONS <const> = "Plans GPU kernels: which warps issue which task of a tile program, in what order, how far ahead, after which "
  .. "waits. Begin with `examples`; `plan` begins a plan or reads one; `edit` with the statements that `check`, `why` and `suggest` give "
  .. "repairs and improves it; `predict` has its time in the model. `search` finds a plan. \"evidence\" says where a number comes from."

local answers = {}

function answers.initialize(_, params)
  local version = VERSIONS[1]
  for _, known in ipairs(VERSIONS) do
    if params.protocolVersion == known then version = known end
  end
  return json.object("protocolVersion capabilities serverInfo instructions", {protocolVersion = version,
    capabilities = {tools = {listChanged = false}}, serverInfo = json.object("name title version", {name = "millrace", title = "Millrace",
      version = mr.version}), instructions = INSTRUCTIONS})
end

function answers.ping() return {} end

answers["tools/list"] = function()
  local tools = {}
  for i, m in ipairs(methods) do
    tools[i] = json.object("name description inputSchema outputSchema annotations", {name = m.name, description = m.about,
      inputSchema = schema.alone(m.params), outputSchema = schema.alone(m.result),
      annotations = {readOnlyHint = m.name ~= "measure" and m.name ~= "search", destructiveHint = false, openWorldHint = false}})
  end
  return {tools = tools}
end

local function content(text, result)
  return json.object("content structuredContent isError", {content = {json.object("type text", {type = "text", text = text})},
    structuredContent = result, isError = false})
end

answers["tools/call"] = function(s, params)
  local arguments = params.arguments
  if arguments == nil or arguments == json.null then arguments = {} end
  if type(params.name) ~= "string" then rpc.fail(rpc.PARAMS, "tools/call: 'name' is missing: the name of a tool") end
  if type(arguments) ~= "table" or json.is_list(arguments) then rpc.fail(rpc.PARAMS, "tools/call: 'arguments' must be an object") end
  local good, result = rpc.try(function(name, given) return methods.call(s, name, given) end, params.name, arguments)
  if good then return content(json.line(result), result) end
  if result.code == rpc.METHOD then rpc.fail(rpc.PARAMS, (result.message:gsub("method", "tool", 1)), result.data) end
  local value = json.object("code message data", {code = result.code, message = result.message, data = result.data})
  return json.object("content isError", {content = {json.object("type text", {type = "text", text = json.line(value)})}, isError = true})
end

-- Call a method of the protocol.
return function(s, name, params)
  if not answers[name] then
    rpc.fail(rpc.METHOD, ("there is no method '%s'%s"):format(name, core.hint(name, {"initialize", "ping", "tools/list", "tools/call"})))
  end
  return answers[name](s, params)
end
