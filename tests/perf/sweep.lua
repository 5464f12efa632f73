-- sweep.lua - what the model predicts for many plans, compared with what a device measures.
--
--   millrace tests/perf/sweep.lua make FOLDER [I N]     plans to FOLDER, their kernels to the cache
--   millrace tests/perf/sweep.lua measure FOLDER FILE   runs them, and writes FILE
--   millrace tests/perf/sweep.lua judge FILE            predicts them again, and compares
--   millrace tests/perf/sweep.lua compile FILE          compiles them again, and says how
--
-- I and N: the I-th of N parts of the plans, from 0, for several processes. FILE has a line of JSON for
-- each plan, as measured.lua reads it: family, name, ms (the median of a pass); from a traced run the cycles
-- of the EU that ends last, less what stamps add, and its clock; the script that makes the plan.
-- A family is one program at one size. `judge` prints of each how far the predicted times are
-- off (median and worst), of the pairs that were measured more than 3 % apart how many are in the right
-- order, and what the plan that the model likes best takes over the best one measured; the median
-- errors of cycles and of clocks alone; and the mean of the times' errors with their signs, below 0 where
-- plans are predicted faster than they are. `compile` needs CUDA's compiler and no device: of each plan it
-- prints the seconds to compile it afresh, registers, bytes of spills, and codes of what the compiler did
-- badly, and its status is 1 if there are spills or such codes, or one takes more than 5 seconds.
-- Searched plans take a minute each to make.
local mr = require "millrace"
local core = require "millrace.core"
local json = require "millrace.json"
local dir = arg[0]:match "^(.*/)" or "./"
local measured, program_of = dofile(dir .. "measured.lua"), dofile(dir .. "program_of.lua")

local device = mr.device "h200"

-- plans ---------------------------------------------------------------------------

-- `ways` lanes of `warps` warps that share the rows, or one; loads on a lane of their own.
local function begin(bound, o)
  local plan = mr.plan(bound:graph{tile={m=o.m, n=o.n, k=o.k}}, device)
  if o.split_off then plan:split_off(table.unpack(o.split_off)) end
  if o.ways then plan:split("m", o.ways) end
  plan:lane("p0", {warps=1})
  local parts = {}
  for i = 0, (o.ways or 1) - 1 do
    plan:lane("c" .. i, {warps=o.warps or 4, registers=o.registers, replicas=o.replicas})
    parts[#parts + 1] = {lane="c" .. i, suffix=o.ways and "." .. i or ""}
  end
  plan:grid{group=o.group, cluster=o.cluster, longest_first=o.longest_first}
  return plan, parts
end

local function gemm(bound, o)
  local plan, parts = begin(bound, {m=o[1], n=o[2], k=64, ways=o.ways, replicas=o.replicas, group=o.group or 8, cluster=o.cluster})
  plan:buffers{a=o.stages, b=o.stages}
  for _, task in ipairs{"load_a", "load_b"} do plan:append(task, {lane="p0"}) end
  for _, part in ipairs(parts) do
    for _, task in ipairs{"mma", "epilogue", "store_c"} do plan:append(task .. part.suffix, {lane=part.lane}) end
  end
  plan:fill_waits()
  return plan
end

local orders = {
  serial = {{"mma_qk"}, {"softmax"}, {"rescale"}, {"mma_pv"}},
  overlap = {{"mma_qk", 1}, {"mma_pv"}, {"softmax", 1}, {"rescale", 1}},
  alias = {{"mma_qk", 1}, {"mma_pv"}, {"softmax", 1}, {"convert", 1}, {"rescale", 1}},
}

local function attention(bound, o)
  local plan, parts = begin(bound, {m=o[1], n=o[2], ways=o.ways, warps=o.warps, registers=o.registers, longest_first=o.causal,
    split_off=o.order == "alias" and {"softmax_2", "convert"}})
  if o.order == "alias" then plan:alias{softmax_3="mma_qk"} end
  plan:buffers{k=o.stages, v=o.stages}
  for _, task in ipairs{"load_q", "load_k", "load_v"} do plan:append(task, {lane="p0"}) end
  for _, part in ipairs(parts) do
    if o.order == "overlap" then plan:buffers{["softmax_2" .. part.suffix]=2} end
    for _, x in ipairs(orders[o.order]) do plan:append(x[1] .. part.suffix, {lane=part.lane, at=x[2] or 0}) end
    for _, task in ipairs{"normalise", "store_o"} do plan:append(task .. part.suffix, {lane=part.lane}) end
  end
  if o.pingpong then
    plan:wait("mma_qk.0", {{"mma_pv.1", distance=2, when="issued"}})
    plan:wait("mma_qk.1", {{"mma_pv.0", distance=1, when="issued"}})
  end
  plan:fill_waits()
  return plan
end

local function searched(bound) return mr.search(bound, device, {seconds=25}).plan end

-- Of all plans, {family=, name=, make=}; in the same order whenever asked.
local function list_jobs()
  local jobs = {}
  local function job(family, name, bound, make, options)
    jobs[#jobs + 1] = {family=family, name=name, make=function() return make(bound, options) end}
  end

  for _, s in ipairs{{2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 8192, 512}, {1024, 1024, 16384},
      {8192, 28672, 8192}, {16, 8192, 8192}, {128, 8192, 28672}} do
    local family, bound = ("gemm %dx%dx%d"):format(table.unpack(s)), mr.examples.gemm{m=s[1], n=s[2], k=s[3]}
    job(family, "searched", bound, searched)
    if s[1] >= 1024 then
      for name, o in pairs{
          ["128x256"] = {128, 256, ways=2, stages=4}, ["256x128"] = {256, 128, ways=2, stages=4},
          ["128x128"] = {128, 128, ways=2, stages=6}, ["192x128"] = {192, 128, ways=3, stages=4},
          ["128x192"] = {128, 192, ways=2, stages=5}, ["64x256 replicas"] = {64, 256, replicas=2, stages=4},
          ["128x128 replicas"] = {128, 128, replicas=2, stages=6}, ["64x128"] = {64, 128, stages=8},
          ["128x256 in pairs"] = {128, 256, ways=2, stages=4, cluster=2},
          ["128x256, 3 stages, no groups"] = {128, 256, ways=2, stages=3, group=1}} do
        job(family, name, bound, gemm, o)
      end
    end
  end

  local tiles = {
    [64] = {["128x128 pp"] = {128, 128, ways=2, stages=3, order="overlap", pingpong=true, registers=240},
      ["128x128 ov"] = {128, 128, ways=2, stages=3, order="overlap", registers=240},
      ["128x128 ser"] = {128, 128, ways=2, stages=3, order="serial", registers=240},
      ["192x128 ser"] = {192, 128, ways=3, stages=2, order="serial", registers=160},
      ["192x112 placed"] = {192, 112, ways=3, stages=2, order="alias", registers=160},
      ["128x64 ov"] = {128, 64, ways=2, stages=4, order="overlap", registers=240},
      ["64x128 ov"] = {64, 128, stages=2, order="overlap"}},
    [128] = {["128x128 pp"] = {128, 128, ways=2, stages=2, order="overlap", pingpong=true, registers=240},
      ["128x128 ov"] = {128, 128, ways=2, stages=2, order="overlap", registers=240},
      ["128x128 ser"] = {128, 128, ways=2, stages=2, order="serial", registers=240},
      ["128x128 of 8 warps"] = {128, 128, warps=8, stages=2, order="serial", registers=240},
      ["128x176 placed"] = {128, 176, ways=2, stages=2, order="alias", registers=240},
      ["128x64 ov"] = {128, 64, ways=2, stages=4, order="overlap", registers=240},
      ["192x64 ov"] = {192, 64, ways=3, stages=3, order="overlap", registers=160},
      ["64x128 ov"] = {64, 128, stages=2, order="overlap"}},
    [256] = {["128x80 placed"] = {128, 80, ways=2, stages=2, order="alias", registers=240},
      ["128x64 ov"] = {128, 64, ways=2, stages=2, order="overlap", registers=240},
      ["128x64 ser"] = {128, 64, ways=2, stages=2, order="serial", registers=240},
      ["64x64 ov"] = {64, 64, stages=2, order="overlap"}},
  }
  for d, plans in pairs(tiles) do
    for _, m in ipairs{512, 2048, 8192} do
      for _, causal in ipairs{false, true} do
        local bound = mr.examples.flash_attention{b=16384 // m, h=2048 // d, m=m, d=d, causal=causal}
        local family = ("attention %d, %d keys%s"):format(d, m, causal and ", causal" or "")
        job(family, "searched", bound, searched)
        for name, o in pairs(plans) do
          job(family, name, bound, attention, setmetatable({causal=causal}, {__index=o}))
        end
      end
    end
  end

  for name, sizes in pairs{chunk_state={b=8, s=8192, h=80, p=64, n=128}, chunk_scan={b=8, s=8192, h=80, p=64, n=128},
      dequant_gemm={m=4096, n=8192, k=8192}, conv2d={n=128, c=128, h=56, w=56, k=128, r=3, s=3, pad=1},
      flash_decoding={b=64, h=32, hkv=8, n=8192, d=128}, matmul_sum={m=8192, n=8192, k=4096}} do
    job(name, "searched", mr.examples[name](sizes), searched)
  end
  table.sort(jobs, function(a, b) return a.family .. a.name < b.family .. b.name end)
  return jobs
end

-- measuring -----------------------------------------------------------------------

local function path(folder, i) return ("%s/%d.lua"):format(folder, i) end

local function write(name, text)
  local file = assert(io.open(name, "w"))
  assert(file:write(text))
  assert(file:close())
end

local function read(name)
  local file = io.open(name)
  local text = file and file:read "a"
  return text, file and file:close()
end

local commands = {}

function commands.make(folder, part, parts)
  local jobs = list_jobs()
  for i = 1 + (part or 0), #jobs, parts or 1 do
    local ok, plan = pcall(jobs[i].make)
    local legal, problems
    if ok then legal, problems = plan:check() end
    if legal then
      write(path(folder, i), plan:script())
      ok, problems = pcall(plan.compile, plan, {target="cuda"})
      legal = ok and #problems.problems == 0
      problems = ok and problems.problems or problems
    end
    if not legal then
      os.remove(path(folder, i))
      print(("%s, %s: %s"):format(jobs[i].family, jobs[i].name, (tostring(problems or plan):gsub("\n.*", ""))))
    end
  end
end

function commands.measure(folder, name)
  local rows = {}
  for i, x in ipairs(list_jobs()) do
    local script = read(path(folder, i))
    if script then
      local k = mr.load_plan(path(folder, i)):compile{target="cuda"}
      local ms, ok, tl = k:bench{seconds=0.2}.ms, pcall(k.trace, k, {seconds=0.05})
      local row = {family=x.family, name=x.name, ms=tonumber(("%.5f"):format(ms)), script=script}
      if ok then
        row.cycles = math.tointeger(tl.cycles // (1 + math.max(tl.overhead, 0)))
        row.clock_hz = tonumber(("%.4g"):format(tl.clock_hz))
      end
      rows[#rows + 1] = json.encode(row)
    end
  end
  write(name, table.concat(rows, "\n") .. "\n")
  print(#rows .. " plans")
end

-- judging -------------------------------------------------------------------------

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2] or 0
end

local function off(predicted, measured) return math.abs(predicted / measured - 1) end

-- Errors of times, pairs in the right order, and the cost of the model's choice.
local function judge(rows)
  local errors, right, pairs, best, chosen = {}, 0, 0, nil, nil
  for i, x in ipairs(rows) do
    errors[i] = off(x.predicted, x.ms)
    for j = 1, i - 1 do
      local y = rows[j]
      if math.max(x.ms / y.ms, y.ms / x.ms) > 1.03 then
        pairs = pairs + 1
        if (x.ms < y.ms) == (x.predicted < y.predicted) then right = right + 1 end
      end
    end
    if not best or x.ms < best.ms then best = x end
    if not chosen or x.predicted < chosen.predicted then chosen = x end
  end
  local middle = median(errors)
  return {n=#rows, median=middle, worst=errors[#errors], right=right, pairs=pairs, cost=chosen.ms / best.ms - 1}
end

local function line(family, r)
  print(("%-36s %4d %6.1f %% %6.1f %% %10s %7.1f %%"):format(family, r.n, 100 * r.median, 100 * r.worst,
    r.pairs > 0 and ("%d/%d"):format(r.right, r.pairs) or "", 100 * r.cost))
end

-- The plan of a line of FILE. Scripts of plans of the user's programs take them.
local function plan_of(x)
  local bound = x.program and program_of(x.program)(x.sizes) or nil
  return assert(load(x.script))(bound)
end

function commands.judge(name)
  local families, order, cycles, clocks, all, right, pairs, sum = {}, {}, {}, {}, {}, 0, 0, 0
  for i, x in ipairs(measured.plans(name)) do
    local tl = plan_of(x):simulate{events=0}
    x.predicted = tl.seconds * 1e3
    all[i] = off(x.predicted, x.ms)
    sum = sum + x.predicted / x.ms - 1
    if x.cycles then
      cycles[#cycles + 1] = off(tl.cycles, x.cycles)
      clocks[#clocks + 1] = off(tl.clock_hz, x.clock_hz)
    end
    if not families[x.family] then
      families[x.family] = {}
      order[#order + 1] = x.family
    end
    table.insert(families[x.family], x)
  end
  print(("%-36s %4s %8s %8s %10s %9s"):format("family", "n", "median", "worst", "in order", "choice"))
  for _, family in ipairs(order) do
    local r = judge(families[family])
    line(family, r)
    right, pairs = right + r.right, pairs + r.pairs
  end
  local middle = median(all)
  print(("all: median %.1f %%, worst %.1f %%, %d of %d pairs in order; cycles alone %.1f %%, clocks alone %.1f %%; mean %+.1f %%"):format(
    100 * middle, 100 * all[#all], right, pairs, 100 * median(cycles), 100 * median(clocks), 100 * sum / math.max(#all, 1)))
end

-- compiling -----------------------------------------------------------------------

local SLOW <const> = 5                                  -- seconds to compile

function commands.compile(name)
  local n, bad, slowest = 0, 0, 0
  print(("%-44s %7s %5s %6s %s"):format("plan", "seconds", "regs", "spills", "badly"))
  for _, x in ipairs(measured.plans(name)) do
    local plan, codes, began = plan_of(x), {}, core.clock()
    core.build(plan, true, function(text) return ("%s\n// %.6f\n"):format(text, began) end)   -- a text that no cache has
    local took, k = core.clock() - began, plan:compile{target="cuda"}
    for i, p in ipairs(k.problems) do codes[i] = p.code end
    print(("%-44s %7.1f %5d %6d %s"):format(x.family .. (x.name == "searched" and "" or ", " .. x.name), took, k.registers, k.spills,
      #codes > 0 and table.concat(codes, ",") or "-"))
    n, slowest = n + 1, math.max(slowest, took)
    if k.spills > 0 or #codes > 0 or took > SLOW then bad = bad + 1 end
  end
  print(("%d plans: the slowest takes %.1f s, %d spill, are compiled badly or take more than %d s"):format(n, slowest, bad, SLOW))
  os.exit(bad == 0)
end

local command = commands[arg[1]] or error("make, measure, judge or compile: see the first lines of " .. arg[0], 0)
command(arg[2], tonumber(arg[3]) or arg[3], tonumber(arg[4]))
