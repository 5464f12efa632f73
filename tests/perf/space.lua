-- space.lua - measures every plan of a space of products, for search-curve.lua.
--
--   millrace tests/perf/space.lua FILE [M N K [EVERY]]
--
-- Some hundreds of plans for M x N x K (4096 each unless given), or one of EVERY of them: tiles, splits over
-- lanes, turns, rings, groups, clusters. FILE gets a JSON object a line as they come, best predicted first: name, predicted (seconds),
-- status, ms, score (ms, by ratios to the best so far), ratio. Ctrl-C keeps what there is.
local mr = require "millrace"
local measure = require "millrace.measure"

local path, m, n, k, every = arg[1], tonumber(arg[2] or 4096), tonumber(arg[3] or 4096), tonumber(arg[4] or 4096),
  tonumber(arg[5] or 1)
if not path then
  io.stderr:write "usage: millrace tests/perf/space.lua FILE [M N K [EVERY]]\n"
  os.exit(2)
end
local bound, device = mr.examples.gemm{m=m, n=n, k=k}, mr.device()

local function make(o)
  local plan = mr.plan(bound:graph{tile={m=o.m, n=o.n, k=o.k}}, device)
  if o.ways > 1 then plan:split("m", o.ways) end
  plan:lane("p0", {warps=1})
  for i = 0, o.ways - 1 do plan:lane("c" .. i, {warps=4, turns=o.turns > 1 and o.turns or nil}) end
  plan:grid{group=o.group, cluster=o.cluster > 1 and o.cluster or nil}
  plan:buffers{a=o.stages, b=o.stages}
  plan:append("load_a", {lane="p0"})
  plan:append("load_b", {lane="p0"})
  for i = 0, o.ways - 1 do
    for _, task in ipairs{"mma", "epilogue", "store_c"} do
      plan:append(task .. (o.ways > 1 and "." .. i or ""), {lane="c" .. i})
    end
  end
  plan:fill_waits()
  return plan
end

-- All choices, one after the other; what is not legal is no plan.
local function each(choices, visit, o, at)
  o, at = o or {}, at or 1
  local choice = choices[at]
  if not choice then return visit(o) end
  for _, value in ipairs(choice[2]) do
    o[choice[1]] = value
    each(choices, visit, o, at + 1)
  end
end

local candidates, seen = {}, 0
each({{"m", {64, 128, 192, 256}}, {"n", {64, 128, 192, 256}}, {"k", {64, 128}}, {"ways", {1, 2, 3}}, {"turns", {1, 2}},
    {"stages", {2, 3, 4, 5, 6, 8}}, {"group", {1, 8}}, {"cluster", {1, 2}}}, function(o)
  if o.m % (64 * o.ways) ~= 0 or o.m / o.ways > 128 then return end
  local good, plan = pcall(make, o)
  if not good or not plan:check() then return end
  seen = seen + 1
  if seen % every ~= 0 then return end
  local name = ("%dx%dx%d ways %d turns %d stages %d group %d cluster %d"):format(o.m, o.n, o.k, o.ways, o.turns, o.stages,
    o.group, o.cluster)
  candidates[#candidates + 1] = {plan=plan, predicted=plan:simulate().seconds, name=name}
end)
table.sort(candidates, function(a, b)
  if a.predicted ~= b.predicted then return a.predicted < b.predicted end
  return a.name < b.name
end)
local names = {}
for _, c in ipairs(candidates) do names[c.plan:script()] = c.name end

local file = assert(io.open(path, "w"))
local found = measure(bound, device, candidates, {risk=-1, final=false, put=function(row)
  local function number(key, format) return row[key] and (', "%s": ' .. format):format(key, row[key]) or "" end
  file:write(('{"family": "gemm %dx%dx%d", "name": "%s", "status": "%s"%s%s%s%s}\n'):format(m, n, k, names[row.script], row.status,
    number("predicted", "%.9g"), row.score and (', "ms": %.7g'):format(row.score) or "", number("ratio", "%.6g"),
    row.ms and (', "alone": %.7g'):format(row.ms) or ""))
  file:flush()
end, progress=function(p)
  io.stderr:write(("\r%d of %d, the best %.4g ms, %.0f s of the device "):format(p.trials, #candidates,
    p.best and p.best.score or 0, p.device_seconds))
end})
io.stderr:write "\n"
file:close()
print(("%d plans of %d legal ones: %d measured, ended: %s"):format(#candidates, seen, found.trials, found.why))
