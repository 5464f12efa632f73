-- JSON, read back by another parser, says what Lua's fields say.
local mr = require "millrace"
local json = require "millrace.json"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local parse = dofile(here .. "lib/parse_json.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses
local null = parse.null

---- the encoder ------------------------------------------------------------------------------

local function again(value) return (parse(json.encode(value))) end

local numbers, wrong = {0, 1, -1, 0.1, -2.5, 1 / 3, 1e300, 5e-324, 2^53, 2^63, 123456789.125, math.maxinteger, math.mininteger}, 0
for i = 1, 2000 do numbers[#numbers + 1] = string.unpack("d", string.pack("i8", i * 0x1234567890abcdef)) end
for _, x in ipairs(numbers) do
  local got = again(x)
  if x ~= x or x == math.huge or x == -math.huge then
    wrong = wrong + (got == null and 0 or 1)
  elseif got ~= x then
    wrong = wrong + 1
  end
end
is(wrong, 0, "numbers are read back as they were")
is(json.encode{0 / 0, math.huge, -math.huge}, "[null, null, null]", "what is no number is null")
is(json.encode(3), "3", "an integer has no point")
is(json.encode(3.0), "3.0", "a float that is an integer has one")

is(again "a\"b\\c/d\n\t\0\1\31\127ü€😀", "a\"b\\c/d\n\t\0\1\31\127ü€😀", "texts are read back as they were")
is(again "a\xffb\xc3", "a\u{FFFD}b\u{FFFD}", "bytes that are no UTF-8 are replaced")
is(again "\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80", ("\u{FFFD}"):rep(9), "so are halves of pairs, too large and overlong ones")
local bad = 0
for i = 1, 500 do
  local bytes = {}
  for k = 1, 8 do bytes[k] = string.char((i * 73 + k * k * i * 151) % 256) end
  if not pcall(parse, json.encode(table.concat(bytes))) then bad = bad + 1 end
end
is(bad, 0, "any bytes give what parses")

is(json.encode{b = 1, a = {2, 3}, c = {}}, '{\n "a": [2, 3],\n "b": 1,\n "c": {}\n}', "keys are sorted")
is(json.encode(json.object("z y a", {a = 1, z = 2})), '{"z": 2, "y": null, "a": 1}', "or in the order asked for")
is(json.encode(json.list{}), "[]", "an empty list is one")
ok(not pcall(json.encode, print), "a function has no JSON")

---- the reader ---------------------------------------------------------------------------------

local function line_again(text)
  local value, why = json.decode(text)
  return why or json.line(value)
end

local differ = 0
for _, x in ipairs(numbers) do
  local text = json.number(x)
  local got = json.decode(text)
  if text ~= "null" and (got ~= x or math.type(got) ~= math.type(x)) then differ = differ + 1 end
end
is(differ, 0, "the reader gives numbers back, and of the same type")
local every = '{"a": [1, 2.5, -0.0, null, [], {}], "b": {}, "c": "x\\u0000\\"ü😀", "d": [true, false], "e": ""}'
is(line_again(every), every, "a line that is read and written is the same line, also with empty lists and objects")
is(line_again ' [1 , {"b":2,"a":"\\u00fc\\ud83d\\ude00"}]\r', '[1, {"a": "ü😀", "b": 2}]', "spaces and escapes mean the same")
ok(json.decode "null" == json.null and json.is_list(json.decode "[]") and not json.is_list(json.decode "{}"), "null and lists are known as such")
local refused = {}
for i, text in ipairs{'{"a": 1, "a": 2}', '"\xff"', "", "[1,", "1 2", "123456789012345678901234567890", "1e999", '"\\ud800"', "nan", "{a: 1}",
    ("["):rep(65) .. ("]"):rep(65), ("["):rep(100000)} do
  local value, why = json.decode(text)
  if value ~= nil or type(why) ~= "string" then refused[#refused + 1] = i end
end
is(table.concat(refused, " "), "", "what is no JSON, says a name twice, or is nested too deep is refused")
is(select(2, json.decode '{"a": 1, "a": 2}'), [[byte 12: duplicate object key near '"a"']], "  and says where")
ok(json.decode(("["):rep(64) .. ("]"):rep(64)), "  64 lists within each other are read")

---- what has a json method ----------------------------------------------------------------------

-- Fields of the object are those of Lua's, nil being null; but for those in `but`.
local function same(object, value, but, what)
  local differ = {}
  for key, got in pairs(object) do
    local want = value[key]
    if type(got) ~= "table" or got == null then
      if want == nil or want ~= want then want = null end
      if not (but or ""):find("%f[%w_]" .. key .. "%f[^%w_]") and got ~= want then differ[#differ + 1] = key end
    end
  end
  return ok(#differ == 0, what, table.unpack(differ))
end

local function same_list(got, want, but, what)
  is(#got, #want, what .. ": as many")
  for i, x in ipairs(got) do
    local g, w = {}, want[i]
    for key, v in pairs(x) do g[key] = v end
    local good = true
    for key, v in pairs(g) do
      if (type(v) ~= "table" or v == null) and not (but or ""):find(key, 1, true) then
        local want_v = w[key]
        if want_v == nil then want_v = null end
        good = good and v == want_v
      end
    end
    if not good then return ok(false, what .. (": number %d is the same"):format(i)) end
  end
  return ok(true, what .. ": the same")
end

local function keys(order, object, want, what) is(table.concat(order[object], " "), want, what) end

local plan = mr.load_plan "attention_pingpong"
local tl = plan:simulate{events = 200}
local got, order = parse(tl:json())
keys(order, got, "format program device measured unit cycles seconds clock_hz full_clock_hz power energy uncertainty "
  .. "uncertainty_least uncertainty_reason noise " ..
  "doubt tie " ..                                       -- deprecated
  "cache overhead tflops gbps bandwidth_share ii res_mii rec_mii bound utilization under_way played unpriced phases lanes events", "a timeline's fields")
is(got.format, "millrace timeline 1", "  its format")
same(got, tl, "format device", "  and what they say")
is(got.device, "h200", "  its device")
same(got.utilization, tl.utilization, nil, "  its units")
same(got.under_way, tl.under_way, nil, "  and the transfers under way")
same(got.energy, tl.energy, nil, "  its energy")
same_list(got.events, tl.events, nil, "events")
same_list(got.phases, tl.phases, nil, "phases")
keys(order, got.events[1], "task lane replica copy seu phase iteration tile ready issue start end cause on late warpgroups", "an event's fields")
is(got.program.name, "flash_attention", "its program")
same(got.program.sizes, plan.graph.program.axes, nil, "  with the sizes")
keys(order, got.program.sizes, "b h m d n hkv", "  in their order")
is(#got.lanes, 3, "its lanes")
ok(got.lanes[2].name == "c0" and got.lanes[2].warps == 4 and got.lanes[2].registers == 240
  and got.lanes[1].registers == null, "  with warps and registers")
is(tl:json(), plan:simulate{events = 200}:json(), "the same timeline gives the same text")

local short = parse(tl:json{events = false})
is(short.events, null, "events can be left out")
refuses('require "millrace".load_plan "gemm_cooperative":simulate():json{event = true}',
  "user.lua:1: json: unknown option 'event'; did you mean 'events'?", "a misspelt option is reported")
refuses('require "millrace".load_plan "gemm_cooperative":simulate():json{events = 3}',
  "user.lua:1: json: events must be true or false, got 3")

local small = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 128, n = 256, k = 64})
local traced = small:compile{target = "host"}:trace()
got = parse(traced:json())
same(got, traced, "format device", "a trace says what it is")
is(got.seconds, null, "  without a clock there are no seconds")
same_list(got.events, traced.events, nil, "its events")

local g = plan.graph
got, order = parse(g:json())
keys(order, got, "format program tile tiles flops bytes tasks buffers edges", "a graph's fields")
same(got, g, "format", "  and what they say")
same_list(got.tasks, g.tasks, nil, "sTasks")
same_list(got.buffers, g.buffers, nil, "buffers")
same_list(got.edges, g.edges, nil, "dependences")
is(table.concat(got.tasks[3].reads, " "), table.concat(g.tasks[3].reads, " "), "what an sTask reads")
ok(#got.tasks[1].reads == 0 and g:json():find('"reads": %[%]'), "nothing is an empty list")

got, order = parse(plan:json())
keys(order, got, "format program device tile lanes rings entries waits grid script", "a plan's fields")
is(got.script, plan:script(), "its script")
same(got.rings, plan.rings, nil, "its rings")
same(got.tile, plan.tile, nil, "its tile")
local copy, lines = mr.plan(g, plan.device), {}
for _, e in ipairs(got.entries) do
  lines[#lines + 1] = ('plan:append("%s", {seu="%s", lane="%s"%s})'):format(e.task, e.seu, e.lane,
    e.at ~= 0 and ", at=" .. e.at or "")
end
local found = {}
for line in plan:script():gmatch "plan:append[^\n]*" do found[#found + 1] = line end
is(table.concat(lines, "\n"), table.concat(found, "\n"), "its order")
local issue_order
for _, w in ipairs(got.waits) do
  issue_order = w.task == "mma_qk.0" and w.on == "mma_pv.1" and w or issue_order
end
ok(issue_order and issue_order.distance == 2 and issue_order.when == "issued", "its waits")
local clustered = plan:copy()
clustered:grid{raster = "columns", group = 4}
got = parse(clustered:json())
ok(got.grid.raster == "columns" and got.grid.group == 4, "its grid")

local _, problems = copy:check()
got, order = parse(problems:json())
same_list(got, problems, "file line", "problems")
keys(order, got[1], "code message hint task other edge location place file line",   -- place: deprecated
  "a problem's fields")
local broken = plan:copy()
broken:unwait("softmax.0", "mma_qk.0")
_, problems = broken:check()
got = parse(problems:json())
same(got[1].edge, problems[1].edge, nil, "its dependence")
is(("%s:%d"):format(got[1].file, got[1].line), problems[1].location, "its location")
_, problems = plan:check()
is(problems:json(), "[]\n", "no problems are an empty list")
is(#problems, 0, "a list of problems is a plain list")
ok(next(problems) == nil, "  with nothing in it")

local r = mr.search(mr.examples.gemm{m = 512, n = 512, k = 512}, mr.device "h200", {trials = 10})
got, order = parse(r:json())
keys(order, got, "format program device tile seconds tflops gbps bandwidth_share uncertainty uncertainty_least uncertainty_reason ii bound gap bound_seconds proven trials shapes pruned ended why plan",
  "a search's fields")
same(got, r, "format device tflops gbps bandwidth_share uncertainty uncertainty_least uncertainty_reason why plan", "  and what they say")
is(got.plan, r.plan:script(), "  its plan")
is(got.why, r.why(), "  its explanation")
same(got.tile, r.plan.tile, nil, "  its tile")
local names = {}
for name in pairs(r) do names[name] = true end
ok(not names.json, "the method is no field")

local err = small:compile{target = "host"}:check{}
got = parse(err:json())
same(got, err, "format", "what check gives")
like(got.format, "^millrace check 1$", "  its format")

-- What bench gives needs a device; its fields do not.
local timed = {ms = 0.5, min = 0.4, max = 0.75, runs = 20, tflops = 660.5, gbps = 100, cache = "cold L2"}
got, order = parse(require("millrace.report").benchmark(timed))
same(got, timed, "format", "what bench gives")
keys(order, got, "format ms min max runs tflops gbps bandwidth_share watts cache", "  its fields")

-- Values of the user's own. A list with holes is refused, however Lua keeps it.
for _, code in ipairs{"{1, nil, 3}", "{nil, 2}", "{1, nil, 3, 4}", "{a = {nil, 2}}"} do
  local good, message = pcall(mr.json, assert(load("return " .. code))())
  ok(not good and tostring(message):find "json: value[%w.]*%[%d%] is nil, and value[%w.]*%[%d%] is not: a list has no holes", "json of " .. code, tostring(message))
end
is(mr.json{{name = "a\"", ms = 0.5, none = 0/0, tile = {m = 1}}, {1, 2}, {}, true},
  '[\n {\n  "ms": 0.5,\n  "name": "a\\"",\n  "none": null,\n  "tile": {"m": 1}\n },\n [1, 2],\n {},\n true\n]\n', "a table of the user's own")
is(mr.json(nil) .. mr.json "x" .. mr.json(2), 'null\n"x"\n2\n', "single values")
is(parse(mr.json{found = r}).found.plan, r.plan:script(), "objects with a method json are as that gives them")
local self = {}
self.self = self
for text, x in pairs{["value%.rows%[1%]%.f is a function, which has no JSON"] = {rows = {{f = print}}},
    ["value has elements and also the key 'x'; JSON has lists,"] = {1, x = 2}, ["value has the key true; JSON has lists,"] = {[true] = 1},
    ["value%.a is millrace%.array, which has no JSON"] = {a = mr.array("f32", {1})}, ["nested deeper than 64, or contain themselves"] = self} do
  local good, message = pcall(mr.json, x)
  like(not good and message, "^%S*json%.t%.lua:%d+: json: .*" .. text, "json: " .. text)
end

-- What a key of the JSON says, the field by the same name says, too, where names are strict and others are errors; only `format` is
-- about the text, `script` and `grid` are calls of plans, and what has parts is compared part by part.
mr.strict()
local better = mr.load_plan("gemm_cooperative"):improve{trials = 20}
mr.strict(false)
local calls <const> = {format = true, script = true, grid = true}
local function has_fields(value, x, where)
  local wrong = {}
  local function look(v, y, at)
    for key, said in pairs(v) do
      local good, field = pcall(function() return y[key] end)
      local name = ("%s.%s"):format(at, key)
      if type(key) == "string" and calls[key] then goto next end
      if not good then wrong[#wrong + 1] = name
      elseif said == null then if field ~= nil and field == field and field ~= math.huge then wrong[#wrong + 1] = name .. " is null" end
      elseif field == nil then wrong[#wrong + 1] = name .. " is nil"
      elseif type(said) == "table" and type(field) == "table" then look(said, field, name)
      elseif type(said) ~= "table" and type(field) == type(said) and field ~= said then wrong[#wrong + 1] = name .. " differs" end
      ::next::
    end
  end
  mr.strict()
  look(value, x, where)
  mr.strict(false)
  is(table.concat(wrong, "\n", 1, math.min(#wrong, 20)), "", where .. ": the fields of its JSON")
end
local objects = {plan = plan, timeline = tl, graph = plan.graph, problems = select(2, copy:check()), found = r, improved = better,
  traced = traced, checked = err}
for name, x in pairs(objects) do has_fields(parse(x:json()), x, name) end
is(r.program, r.plan.graph.program, "a search knows its program")
is(better.device, r.device, "  and so does what improves a plan, and its device")
tap.refuses('local mr = require "millrace" mr.strict() local plan = mr.load_plan "gemm_cooperative" return plan.entris',
  "user.lua:1: plan has no 'entris'; did you mean 'entries'?")
tap.done_testing()
