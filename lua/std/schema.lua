-- schema.lua - what values of JSON must be: JSON Schema as tables of Lua, what is wrong with a value, and the schema as a document.
--
-- A schema is a table with the keywords of JSON Schema. Properties are a list, {name, schema, optional}, so that documents
-- keep their order; an object has no others. A schema with a `name` stands once in a document, under "$defs".

local core = require "millrace.core"
local json = require "millrace.json"

local schema = {}

---- schemas --------------------------------------------------------------------------------------

local function typed(kind, description, more)
  local s = more or {}
  s.type, s.description = kind, description
  return s
end

function schema.text(description, more) return typed("string", description, more) end
function schema.flag(description) return typed("boolean", description) end
function schema.integer(description, least, most) return typed("integer", description, {minimum = least, maximum = most}) end
function schema.number(description, least, most) return typed("number", description, {minimum = least, maximum = most}) end
function schema.list(items, description) return typed("array", description, {items = items}) end
function schema.object(properties, description) return typed("object", description, {properties = properties}) end

-- An object whose names are free.
function schema.map(values, description) return typed("object", description, {additionalProperties = values}) end

-- One of several types of values: {"string", "number"}.
function schema.any(kinds, description, more) return typed(kinds, description, more) end

-- The same, or null.
function schema.nullable(s)
  if s.name then return {anyOf = {s, {type = "null"}}} end
  local copy = {}
  for key, value in pairs(s) do copy[key] = value end
  copy.type = {s.type, "null"}
  return copy
end

function schema.named(name, s)
  s.name = name
  return s
end

---- what is wrong with a value ---------------------------------------------------------------------

local function kind_of(x)
  if x == json.null then return "null" end
  if type(x) == "table" then return json.is_list(x) and "array" or "object" end
  return math.type(x) == "float" and "number" or math.type(x) or type(x)
end

-- Is it of the type? 4096.0 is an integer.
local function is_of(x, kind)
  local own = kind_of(x)
  return own == kind or kind == "number" and own == "integer" or kind == "integer" and own == "number" and core.integer(x) ~= nil
end

local function kinds_of(s) return type(s.type) == "table" and s.type or {s.type} end

local function shown(x)
  local kind = kind_of(x)
  if kind == "array" or kind == "object" or kind == "null" then return kind end
  return core.show(x)
end

local function range(s)
  if s.maximum then return (" from %s to %s"):format(s.minimum, s.maximum) end
  return s.minimum and (" of at least %s"):format(s.minimum) or ""
end

-- In words: "integer from 1 to 16", "one of \"cuda\", \"host\"".
local function expected(s)
  if s.enum then
    local texts = {}
    for i, x in ipairs(s.enum) do texts[i] = ("%q"):format(x) end
    return (#texts > 1 and "one of " or "") .. table.concat(texts, ", ")
  end
  return table.concat(kinds_of(s), " or ") .. range(s)
end

local function names_of(s)
  local names = {}
  for i, property in ipairs(s.properties) do names[i] = property[1] end
  return names
end

local problem

-- Of the fields of an object: a name that it has not, one that is missing, or the first value that is wrong.
local function problem_of_object(s, x, path)
  local inner, names, of = path ~= "" and path .. "." or "", {}, {}
  for name in pairs(x) do names[#names + 1] = name end
  table.sort(names)
  for _, property in ipairs(s.properties or {}) do of[property[1]] = property end
  for _, name in ipairs(names) do
    if s.properties and not of[name] then
      local near = core.hint(name, names_of(s))
      return {path = inner .. name, message = ("unknown parameter '%s'%s"):format(inner .. name, near), nearest = near:match "'(.*)'"}
    end
  end
  for _, property in ipairs(s.properties or {}) do
    local name, wanted, optional = table.unpack(property, 1, 3)
    if x[name] == nil and not optional then
      return {path = inner .. name, expected = expected(wanted),
        message = ("'%s' is missing: %s expected"):format(inner .. name, expected(wanted))}
    end
  end
  for _, name in ipairs(names) do
    local wanted = of[name] and of[name][2] or s.additionalProperties
    local found = wanted and problem(wanted, x[name], inner .. name)
    if found then return found end
  end
end

-- What is wrong with the value of a parameter: {path=, message=, expected=, nearest=}; nil: nothing.
function problem(s, x, path)
  local fits = false
  for _, kind in ipairs(kinds_of(s)) do fits = fits or is_of(x, kind) end
  for i = 1, s.enum and #s.enum or 0 do
    fits = s.enum[i] == x
    if fits then break end
  end
  if fits and type(x) == "number" then fits = x >= (s.minimum or x) and x <= (s.maximum or x) end
  if not fits then
    return {path = path, message = ("'%s': %s expected, got %s%s"):format(path, expected(s), shown(x),
      s.enum and core.hint(x, s.enum) or ""), expected = expected(s)}
  end
  if type(x) ~= "table" then return nil end
  if not json.is_list(x) then return problem_of_object(s, x, path) end
  for i, element in ipairs(s.items and x or {}) do
    local found = problem(s.items, element, ("%s[%d]"):format(path, i))
    if found then return found end
  end
end

-- Of an object of parameters.
function schema.problem(s, x) return problem_of_object(s, x, "") end

---- values of a schema --------------------------------------------------------------------------------

-- The value with the fields that the schema has, in its order; what is not there is null.
function schema.shaped(s, x)
  if x == nil or x == json.null then return json.null end
  if s.anyOf then return schema.shaped(s.anyOf[1], x) end
  local out = {}
  if s.properties then
    local order = {}
    for i, property in ipairs(s.properties) do
      order[i], out[property[1]] = property[1], schema.shaped(property[2], x[property[1]])
    end
    return json.object(table.concat(order, " "), out)
  elseif s.items then
    for i, element in ipairs(x) do out[i] = schema.shaped(s.items, element) end
    return json.list(out)
  elseif s.additionalProperties then
    for name, value in pairs(x) do out[name] = schema.shaped(s.additionalProperties, value) end
    return out
  end
  return x
end

---- as a document -----------------------------------------------------------------------------------

local KEYWORDS <const> = {"$ref", "description", "type", "enum", "minimum", "maximum", "properties", "required", "additionalProperties",
  "items", "anyOf", "$defs"}

local function ordered(keywords)
  local order = {}
  for _, keyword in ipairs(KEYWORDS) do
    if keywords[keyword] ~= nil then order[#order + 1] = keyword end
  end
  return json.object(table.concat(order, " "), keywords)
end

local keywords_of

-- The schema as JSON has it. Where it has a name, a reference; the schema itself is then in the table `defs`, by name.
function schema.written(s, defs)
  if not s.name then return ordered(keywords_of(s, defs)) end
  defs[s.name] = defs[s.name] or ordered(keywords_of(s, defs))
  return ordered{["$ref"] = "#/$defs/" .. s.name}
end

function keywords_of(s, defs)
  local of = {}
  for _, keyword in ipairs(KEYWORDS) do of[keyword] = s[keyword] end
  if s.properties then
    local order, properties, required = {}, {}, {}
    for i, property in ipairs(s.properties) do
      local name, inner, optional = table.unpack(property, 1, 3)
      order[i], properties[name] = name, schema.written(inner, defs)
      if not optional then required[#required + 1] = name end
    end
    of.properties = json.object(table.concat(order, " "), properties)
    of.required, of.additionalProperties = required[1] and required, false
  elseif s.additionalProperties then
    of.additionalProperties = schema.written(s.additionalProperties, defs)
  end
  of.items = s.items and schema.written(s.items, defs)
  of.anyOf = s.anyOf and {schema.written(s.anyOf[1], defs), ordered{type = "null"}}
  return of
end

-- A schema that stands alone, with all that it refers to.
function schema.alone(s)
  local defs = {}
  local of = keywords_of(s, defs)
  of["$defs"] = next(defs) and defs
  return ordered(of)
end

return schema
