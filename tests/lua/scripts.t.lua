-- Plans as files: what plan:save writes, keeps and refuses.
local mr = require "millrace"
local core = require "millrace.core"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local dir = os.tmpname()
os.remove(dir)
assert(os.execute(("mkdir '%s'"):format(dir)))
local function at(name) return dir .. "/" .. name end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  return path
end

local function message_of(f, ...)
  local good, message = pcall(f, ...)
  return good and "no error" or (tostring(message):gsub("^[^:]*:%d+: ", ""))
end

local bound = mr.examples.gemm{m = 512, n = 512, k = 512}
local function new_plan() return mr.load_plan("gemm_cooperative", bound) end

---- the head ----------------------------------------------------------------------------------

local plan = new_plan()
local head = ("-- Millrace %s: gemm m=512 n=512 k=512 on h200\n"):format(mr.version)
is(plan:script():sub(1, #head), head, "a script begins with version, program, sizes and device")
plan:buffers{a = 3}
is(plan:script():sub(1, #head), head, "  the same when a statement changes")

---- saving ------------------------------------------------------------------------------------

is(plan.path, nil, "a plan has no file at first")
like(message_of(plan.save, plan), "^save: this plan has no file yet; say where", "  and is not saved without a path")
is(plan:save(at "one.lua"), at "one.lua", "plan:save returns the path")
is(plan.path, at "one.lua", "  which is the plan's file from then on")
local text = read(at "one.lua")
like(text, "^" .. head:gsub("%p", "%%%0") .. "%-%- predicted [%d.]+ ms\nlocal mr = ", "  it says how fast the plan is")
is(mr.load_plan(at "one.lua"):script(), plan:script(), "  and is the plan")
is(#core.list(dir, ""), #core.list(dir, ".lua") + 2, "  nothing else is left in the folder")

local other = new_plan()
like(message_of(other.save, other, at "one.lua"), "^save: .*one%.lua exists, and is not the file of this plan; " ..
  "plan:save%(\".*one%.lua\", {overwrite=true}%) replaces it$", "the file of another plan is not replaced")
is(read(at "one.lua"), text, "  and is as it was")
is(other.path, nil, "  nor is it the plan's file")
other:save(at "one.lua", {overwrite = true})
is(mr.load_plan(at "one.lua"):script(), other:script(), "  unless that is asked for")

-- A file with comments of the user's, by another name of the same file.
local comments = "#!/usr/bin/env millrace\n-- Why this plan is as it is:\n\n--[[ a longer\ntext ]]\n-- predicted 3 weeks of work\n"
write(at "two.lua", comments .. plan:script() .. "-- the end\n")
os.execute(("ln -s two.lua '%s'; chmod 600 '%s'"):format(at "link.lua", at "two.lua"))
local loaded = mr.load_plan(at "link.lua")
is(loaded.path, at "link.lua", "a plan that was loaded knows its file")
loaded:buffers{a = 4}
local copy = loaded:copy()
is(copy.path, loaded.path, "  so does a copy")
loaded:undo()
is(loaded.path, at "link.lua", "  also after edits")
copy:save(at "two.lua")
is(read(at "two.lua"):sub(1, #comments + #head), comments .. head, "comments at the head of the file stay")
copy:save()
copy:save()
local lines = select(2, read(at "two.lua"):gsub("%-%- predicted [%d.]+ ms", ""))
is(lines, 1, "  ours are written again")
is(io.popen(("cd '%s'; stat -c '%%a %%F' two.lua link.lua"):format(dir)):read "a", "600 regular file\n777 symbolic link\n",
  "permissions and links stay, too")

-- Somebody else writes the file.
local theirs = write(at "theirs.lua", "\xEF\xBB\xBF" .. plan:script())
loaded = mr.load_plan(theirs)
write(theirs, "-- a night's work\n" .. plan:script())
like(message_of(loaded.save, loaded), "^save: .*theirs%.lua has changed since the plan was loaded from it; plan:save%(",
  "a file that has changed since is not replaced")
like(read(theirs), "night's work", "  and is as it was")
loaded:save(theirs, {overwrite = true})
loaded:save()
like(read(theirs), "^%-%- a night's work\n", "  unless that is asked for")

plan = mr.plan(bound:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
plan:append "mma"
plan:save(at "broken.lua")
ok(not read(at "broken.lua"):find "predicted", "of a plan that is not legal it says no time")
is(mr.load_plan "gemm_cooperative".path, nil, "plans that come with Millrace have no file to be written to")

like(message_of(plan.save, plan, "x.lua", {overwrit = true}), "^save: unknown option 'overwrit'; did you mean 'overwrite'%?$",
  "an option that does not exist")
like(message_of(plan.save, plan, dir), "^save: .* is a folder, not a file$", "a folder is no file")
like(message_of(plan.save, plan, at "none/x.lua"), "^save: cannot write .*/none/x%.lua: No such file or directory$",
  "a folder that is not there")
like(message_of(plan.save, plan, "/dev/null", {overwrite = true}), "^save: /dev/null is a device or a pipe, not a file$", "a device")
like(message_of(plan.save, plan, 5), "^save: path expected, got 5$", "what is no path")

---- programs of one's own, and other sizes ---------------------------------------------------------

local own = mr.program("own", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}))
  p:output("Y", {m}):store("store_y", p:task("sum", function() return x:rowsum(n) end))
end)
plan = mr.plan(own{m = 256, n = 64}:graph{tile = {m = 64}}, mr.device "h200")
for _, task in ipairs(plan.tasks) do plan:append(task.name) end
plan:fill_waits()
local mine = plan:save(at "own.lua")
like(plan:script(), 'local bound = mr%.bound%(%.%.%., "own", {m=256, n=64}%)\n', "a script of one's own program has its sizes")
is(mr.load_plan(mine, own):script(), plan:script(), "  so load_plan takes the program alone")
is(loadfile(mine)(own{m = 256, n = 64}):script(), plan:script(), "  it also runs as plain Lua, with the program with sizes")
is(loadfile(mine)(own):script(), plan:script(), "  or with the program")
is(mr.load_plan(at "two.lua", mr.examples.gemm):script(), mr.load_plan(at "two.lua"):script(), "  a shipped program can be given, too")
like(message_of(mr.load_plan, mine), "this plan is for program 'own': mr%.load_plan%(path, program%)$", "  without it, this is an error")

local numbered = mr.plan(mr.program("numbered", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_0", p:input("X", {m, n}))
  p:output("Y", {m, n}):store("store_y", p:task("double", function() return x * 2 end))
end){m = 256, n = 64}:graph{tile = {m = 64}}, mr.device "h200")
numbered:buffers{["0"] = 2}
like(numbered:script(), 'plan:buffers{%["0"%]=2}', "a ring that is called like a number")
is(mr.load_plan(numbered:save(at "numbered.lua"), numbered.graph.program):script(), numbered:script(), "  so load_plan makes it again")

local larger = mr.load_plan(mine, own{m = 512, n = 64})
is(larger.made_for, "own m=256 n=64", "a plan may be loaded for other sizes")
like(tostring(larger), "\nits file is for other sizes or options: own m=256 n=64\n?$", "  and says so")
is(larger:copy().made_for, "own m=256 n=64", "  so does a copy")
is(mr.load_plan(mine, own).made_for, nil, "  not for its own sizes")
larger:save(at "larger.lua")
is(larger.made_for, nil, "  nor once it is saved for these")
like(message_of(mr.load_plan, at "two.lua", mr.examples.gemm{m = 1, n = 512, k = 512}),
  "%(the plan is for gemm k=512 m=512 n=512, and was loaded for gemm k=512 m=1 n=512%)$", "where that fails, the message says both sizes")
like(message_of(mr.load_plan, at "two.lua", own{m = 256, n = 64}),
  "^load_plan: .*two%.lua is for program 'gemm', but was given 'own' %(", "  and of another program, whose it is")
like(message_of(mr.load_plan, mine, mr.examples.gemm), "^load_plan: .*own%.lua is for program 'own', but was given 'gemm' %(", "  also without sizes")
like(message_of(mr.load_plan, "own"), "^load_plan: no plan 'own' comes with Millrace; there are attention_overlap, [%w_, ]*gemm_pingpong; to load a file of that name, say %./own$",
  "a name without a file")
like(message_of(mr.load_plan, "attention_causal"), "no plan 'attention_causal' comes with Millrace; did you mean 'attention_d128_causal'%? To load",
  "  a near one is that which has its words")
do
  local text = require("millrace.topics").topics["shipped plans"].text
  for _, name in ipairs(require("millrace.loader").plan_names()) do like(text, "[ ,]" .. name .. "[,.]", "help \"shipped plans\" has " .. name) end
  for name in text:match ": (.-)%.":gmatch "[%w_]+" do ok(mr.load_plan(name), "  which there is: " .. name) end
end

-- Options of a program stand where its sizes do, unless they are as usual.

local optional = mr.program("optional", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}, p.dtype or "f32"))
  local factor = p:option("factor", "number", 2)
  local negative = p:option("negative", "boolean")
  p:output("Y", {m, n}):store("store_y", p:task("scale", function() return x * (negative and -factor or factor) end))
end)
local function optional_plan(options)
  options.m, options.n = 128, 64
  local p = mr.plan(optional(options):graph{tile = {m = 64}}, mr.device "h200")
  for _, task in ipairs(p.tasks) do p:append(task.name) end
  p:fill_waits()
  return p
end
plan = optional_plan{negative = true, factor = 0.5, dtype = "bf16"}
like(plan:script(), "^%-%- Millrace [%d.]+: optional m=128 n=64 dtype=bf16 factor=0%.5 negative=true on h200\n", "the head of a script has the options")
local called = "optional{m=128, n=64, dtype=bf16, factor=0.5, negative=true}"
is(plan:simulate().program, called, "  so has a timeline")
like(tostring(plan.program), "^program optional\noption dtype=bf16\noption factor=0%.5\noption negative=true\naxis m 128\n", "  and the program")
like(plan:json(), '"options": ?"dtype=bf16 factor=0%.5 negative=true"', "  and JSON")
local tl = plan:simulate()
local function title_of(draw)
  local path = at "title.svg"
  draw(path)
  local text = read(path):gsub("<[^>]*>", " "):gsub("%s+", " ")
  return text
end
for name, draw in pairs{
  plan = function(path) plan:svg(path) end, graph = function(path) plan.graph:svg(path) end,
  timeline = function(path) tl:svg(path) end, comparison = function(path) mr.compare(tl, tl):svg(path) end,
  slide = function(path) tl:svg(path, {preset = "slide"}) end,
} do
  like(title_of(draw), "negative=true", "  and the picture of a " .. name)
end
like(optional_plan{negative = false, factor = 2}:script(), ": optional m=128 n=64 on h200\n", "what is as usual is not said")
like(optional_plan{factor = false}:script(), ": optional m=128 n=64 on h200\n", "  nor is none of a number that has a default")
mine = plan:save(at "optional.lua")
is(mr.load_plan(mine, optional):script(), plan:script(), "load_plan takes the options from the script")
is(mr.load_plan(mine, optional).made_for, nil, "  so it is for them")
local usual = mr.load_plan(mine, optional{m = 128, n = 64, dtype = "bf16"})
is(usual.made_for, "optional m=128 n=64 dtype=bf16 factor=0.5 negative=true", "  and with others it says for which it was made")
like(message_of(usual.diff, usual, plan), "with different sizes or options; no factor, no negative and factor=0%.5, negative=true$", "a diff says in which")
like(message_of(usual.diff, usual, optional_plan{factor = 3}), "; dtype=bf16, no factor and no dtype, factor=3$", "  of both")
is(mr.compare(tl, usual:simulate()).names[1] ~= nil, true, "their times can be compared")
like(title_of(function(path) mr.compare(tl, usual:simulate()):svg(path) end), "negative=true", "  and the picture says which has which")

-- What the explorer's `s` says.
local explore, saved = core.explore, {}
core.explore = function(o)
  saved[#saved + 1] = o.save(at(("saved%d.lua"):format(#saved)))
  return false
end
plan:show()
mr.load_plan "gemm_by_threads":show()
core.explore = explore
like(saved[1], '^mr%.load_plan%(".*saved0%.lua", program%)$', "a plan of one's own program is loaded with the program")
like(saved[2], '^mr%.load_plan ".*saved1%.lua"$', "  one of a shipped program without")

-- What the explorer's problems show.
do
  local two, shown = mr.load_plan "attention_pingpong", nil
  two:unwait("mma_qk.0", "load_k")
  two:unwait("load_v", "mma_pv.1")
  core.explore = function(o)
    shown = o.problems()
    return false
  end
  two:show()
  core.explore = explore
  like(shown, "^1\t2 dependences are not kept[^\n]*\tplan:fill_waits%(%)\n$", "the explorer shows problems as check() does")
end

---- a plan is data ------------------------------------------------------------------------------------

local victim = write(at "victim.txt", "precious")
local head = 'local mr = require "millrace"\nlocal bound = ... or mr.examples.gemm{m=512, n=512, k=512}\n' ..
  'local plan = mr.plan(bound:graph{tile={m=128, n=128, k=64}}, mr.device "h200")\n'

-- What a file could have changed.
local function world()
  local names = {}
  for _, t in ipairs{mr, string, debug.getmetatable "", debug.getmetatable(plan), debug.getmetatable(plan).methods, _G, package.loaded} do
    local list = {}
    for key, value in next, t do list[#list + 1] = tostring(key) .. "=" .. tostring(value) end
    table.sort(list)
    names[#names + 1] = table.concat(list, " ")
  end
  local cap = core.cap_memory(0)
  core.cap_memory(cap)
  names[#names + 1] = cap .. read(victim) .. table.concat(core.list(dir, ".txt"), " ") .. tostring(debug.gethook())
  return table.concat(names, "\n")
end

local function attack(code, said)
  local path = write(at "attack.lua", head .. code:gsub("FILE", victim) .. "\nreturn plan\n")
  local before, good, message = world(), pcall(mr.load_plan, path)
  ok(not good, "refused: " .. code, tostring(message))
  like(message, "attack%.lua:%d*:? .*" .. said, "  and says where and why")
  is(world(), before, "  and nothing else has changed")
end

local data = "a plan's file is data and cannot use "
mr.load_plan "gemm_by_threads"                          -- so that examples are known before
for _, code in ipairs{"svg'FILE'", "png'FILE'", "pdf'FILE'", "save'FILE'", "compile{target='host'}", "simulate()", "improve{}", "kernel{}",
    "show()", "try(function() end)", "json()", "script()"} do
  attack("plan:" .. code, data .. "'" .. code:match "^%a+" .. "' of a plan: it makes a plan and does nothing else")
end
for _, name in ipairs{"search", "store", "race", "calibrate", "attached", "array", "strict", "roofline", "program", "home"} do
  attack(("local x = mr.%s"):format(name), ("%smr%%.%s: it has mr%%.plan, mr%%.device, "):format(data, name))
end
for _, name in ipairs{"getmetatable(plan)", "setmetatable({}, {__gc = print})", "rawset(mr, 1, 1)", "debug.getregistry()", "pcall(plan)",
    "coroutine.wrap(plan)", "load 'x'", "io.open('FILE', 'w')", "os.remove 'FILE'", "collectgarbage 'stop'", "string.rep('x', 9)", "error{}",
    "dofile 'FILE'", "print(1)"} do
  attack("local x = " .. name, "attempt to %a+ a nil value %(global '" .. name:match "^%a+")
end
attack("mr.search = 1", "'search' cannot be set")
attack("mr.examples.gemm = 1", "'gemm' cannot be set")
attack("plan.append = 1", "'append' of a plan cannot be set")
attack("bound.graph = 1", "'graph' of a program with sizes cannot be set")
attack("local s = ''; s.rep = 1", "attempt to index a string value")
attack("require 'os'", "a plan may only require \"millrace\", not 'os'")
attack("require 'millrace.core'", "a plan may only require \"millrace\"")
attack("bound:reference{}", data .. "'reference' of a program with sizes")
attack("bound:graph{}:png 'FILE'", data .. "'png' of a graph")
attack("mr.load_plan 'FILE'", "can only load plans that come with Millrace, by name, not ")
attack("mr.device '/dev/zero'", "device: '/dev/zero' is not a file")
attack("mr.examples.gemm{m=512, n=512, k=512, activation=function() end}", "a plan's file gives data: function is none")
attack("plan:wait('mma', {print or mr.plan})", "a plan's file gives data: function is none")
attack("local t = {}; t[1] = t; plan:wait('mma', t)", "too large, or contains itself")
attack("local t = {}; for i = 1, 20000 do t[i] = 'mma' end plan:wait('mma', t)", "too large")
attack("plan.append(bound, 'mma')", "append: plan expected, got millrace.program")
attack("plan.append({}, 'mma')", "append: plan expected, got table")
attack("while true do end", "it takes more than 5 million steps")
attack("local function f() f() f() end f()", "stack overflow")
attack("local s = 'x' while true do s = s .. s end", "it takes more than %d+ MiB")
attack("local t = ('x'):rep(1e9)", "cannot use 'rep' of a text")
attack("local n = ('a'):find '.-.-.-b'", "cannot use 'find' of a text")
attack("plan:append 'mmma'", "there is no sTask 'mmma'")

local function fails(code, said)
  local good, message = pcall(mr.load_plan, write(at "attack.lua", code))
  ok(not good and type(message) == "string", "refused: " .. code, tostring(message))
  like(message, said, "  and says why")
end
fails("assert(false, {function() end})", "attack%.lua ended with an error that is table$")
fails("assert(nil, assert)", "attack%.lua ended with an error that is function$")
fails("return require 'millrace'.plan", "returns function, not a plan$")
fails("return (require 'millrace'.examples.gemm{m=64, n=64, k=64})", "returns millrace%.program, not a plan$")
os.execute(("mkfifo '%s'"):format(at "pipe.lua"))
like(message_of(mr.load_plan, at "pipe.lua"), "^load_plan: .*pipe%.lua is a device or a pipe, not a file$", "a pipe is not waited for")
like(message_of(mr.load_plan, dir), "^load_plan: .* is a folder, not a file$", "nor is a folder read")

-- What a file may do.
local free = mr.load_plan(write(at "free.lua", head .. [[
plan:split("m", 2)
for i, task in ipairs(plan.tasks) do
  task.name = task.name .. (i > 99 and "x" or "")
  plan:append(task.name, {lane=task.kind == "load" and "p0" or ("c%s"):format(task.name:sub(-1) == "1" and 1 or 0)})
end
local n = plan:fill_waits()
assert(n > 0 and plan:check())
local other = plan:copy()
other:undo()
assert(bound.tensors[1].shape[1] == 512 and plan.rings.a == 1 and plan.graph.program.axes.k == 512 and plan.device.eus > 0)
mr.load_plan("gemm_by_threads", bound)
mr.device("h200", {eus = 66})
]] .. "return plan"))
ok(free:check(), "loops, strings, fields and copies work", select(2, free:check()))

os.execute(("rm -r '%s'"):format(dir))
tap.done_testing()
