-- check_schema.lua - whether a value that parse_json.lua read is as a JSON Schema says, by code that shares nothing with
-- what Millrace checks by.
--
-- check_schema(root, parse)(schema, value, order) -> nil, or where and why it is not. root: the document of the schema; order: what parse
-- gave with the value.

local null

local function kind_of(x, order)
  if x == null then return "null" end
  if type(x) == "table" then return order[x] and "object" or "array" end
  return type(x)
end

return function(root, parse)
  null = parse.null
  local check

  local function resolve(schema)
    while schema["$ref"] do
      local name = assert(schema["$ref"]:match "^#/%$defs/(.*)$", "a reference that is none")
      schema = assert(root["$defs"][name], "no definition of " .. name)
    end
    return schema
  end

  local function is_type(x, kind, order)
    local own = kind_of(x, order)
    return own == kind or kind == "integer" and own == "number" and x == math.floor(x)
  end

  function check(schema, x, order, path)
    schema, path = resolve(schema), path or ""
    local function wrong(why) return ("%s: %s"):format(path, why) end
    local types = schema.type
    if types then
      local fits = false
      for _, kind in ipairs(type(types) == "table" and types or {types}) do fits = fits or is_type(x, kind, order) end
      if not fits then return wrong("not of type " .. tostring(type(types) == "table" and table.concat(types, "|") or types)) end
    end
    if schema.const ~= nil and schema.const ~= x then return wrong "another constant" end
    if schema.enum then
      local fits = false
      for _, one in ipairs(schema.enum) do fits = fits or one == x end
      if not fits then return wrong "not among those listed" end
    end
    if type(x) == "number" and (x < (schema.minimum or x) or x > (schema.maximum or x)) then return wrong "out of range" end
    local choices, some, one = schema.anyOf or schema.oneOf, 0, nil
    for _, s in ipairs(choices or {}) do
      local why = check(s, x, order, path)
      one = one or why
      if not why then some = some + 1 end
    end
    if choices and (some == 0 or schema.oneOf and some > 1) then return one or wrong "more than one of oneOf" end
    local kind = kind_of(x, order)
    if kind == "array" and schema.items then
      for i, element in ipairs(x) do
        local why = check(schema.items, element, order, ("%s[%d]"):format(path, i))
        if why then return why end
      end
    elseif kind == "object" then
      for _, name in ipairs(schema.required or {}) do
        if x[name] == nil then return wrong(name .. " is missing") end
      end
      for _, name in ipairs(order[x]) do
        local of = schema.properties and schema.properties[name]
        if of == nil and schema.additionalProperties ~= nil then of = schema.additionalProperties end
        if of == false then return wrong("unexpected " .. name) end
        local why = of and check(of, x[name], order, path .. "." .. name)
        if why then return why end
      end
    end
  end
  return check
end
