-- probes.lua - kernels that each take as long, or draw as much power, as one number of a device says.
--
-- What is measured hangs on the number in question and on those before it in the list, not on those
-- behind it, but for power, where it nearly does: so a device is calibrated by going through the list
-- several times (calibrate.lua). An entry is
--
--   number   the field of the device, as in hw/
--   of       what is measured: "seconds" of a run, "cycles" of it, "clock_hz" or "watts" meanwhile
--   run      {program=, sizes=, small=, plan=}: what is run. Entries share runs. `sizes` gives those for a
--            device, `small` some that a CPU can play; `plan` makes the plan of the bound program
--   why      what it isolates, in a clause

-- programs --------------------------------------------------------------------------

-- S[m] = sum over k of f(X[m, k]).
local function chain(mr, f)
  return mr.program("chain", function(p)
    local m, k = p:axes("m", "k")
    local X, S = p:input("X", {m, k}), p:output("S", {m}, "f32")
    local s = p:carry("s", {m}, 0)
    p:loop(k, function()
      local x = p:load("load_x", X)
      p:task("work", function() s:add(mr.rowsum(f(x), k)) end)
    end)
    S:store("store_s", p:task("round", function() return s * 0.5 end))
  end)
end

-- C[b, m, n] = sum over k of X[m, k] W[n, k]: with a small n as good as nothing to compute. Every b
-- reads all of X again.
local function thin(mr)
  return mr.program("thin", function(p)
    local b, m, n, k = p:axes("b", "m", "n", "k")
    local X, W, C = p:input("X", {m, k}), p:input("W", {n, k}), p:output("C", {b, m, n})
    p:batch(b)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W))) end)
    C:store("store_c", p:task("round", function() return c:to "bf16" end))
  end)
end

-- S[m] = sum over n of half of Q[m, :] . K[n, :].
local function scores(mr)
  return mr.program("scores", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local Q, K, S = p:input("Q", {m, d}), p:input("K", {n, d}), p:output("S", {m}, "f32")
    local q, s = p:load("load_q", Q), p:carry("s", {m}, 0)
    p:loop(n, function()
      local qk = p:mma("mma_qk", q, p:load("load_k", K))
      p:task("work", function() s:add(mr.rowsum(qk * 0.5, n)) end)
    end)
    S:store("store_s", p:task("round", function() return s * 0.5 end))
  end)
end

-- O[m, :] = sum over n of w(Q[m, :] . K[n, :]) V[n, :], of many operations a weight.
local function weights(mr)
  return mr.program("weights", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d})
    local q, o = p:load("load_q", Q), p:carry("o", {m, d}, 0)
    p:loop(n, function()
      local qk = p:mma("mma_qk", q, p:load("load_k", K))
      local w = p:task("work", function()
        local x = qk
        for _ = 1, 12 do x = mr.max(x * 0.5 - 0.25, qk * 0.125 + x) end
        return mr.exp2(x * 0.125):to "bf16"
      end)
      o:add(p:mma("mma_pv", w, p:load("load_v", V)))
    end)
    O:store("store_o", p:task("round", function() return o:to "bf16" end))
  end)
end

-- plans -----------------------------------------------------------------------------

-- Loads by `producers` warps, 1 unless given; the others, in order, by `ways` lanes of four warps that share the
-- rows. `ahead`: iterations that an sTask is, by name; `twice`: a buffer of each lane with two versions.
local function plan_of(mr, o)
  return function(bound, device)
    local plan = mr.plan(bound:graph{tile=o.tile}, device)
    if o.ways then plan:split("m", o.ways) end
    plan:lane("p0", {warps=o.producers or 1})
    if o.grid then plan:grid(o.grid) end
    plan:buffers(o.rings)
    for _, task in ipairs(o.loads) do plan:append(task, {lane="p0"}) end
    for i = 0, (o.ways or 1) - 1 do
      local lane, suffix = "c" .. i, o.ways and "." .. i or ""
      plan:lane(lane, {warps=4, registers=o.registers})
      if o.twice then plan:buffers{[o.twice .. suffix]=2} end
      for _, task in ipairs(o.tasks) do
        plan:append(task .. suffix, {lane=lane, at=o.ahead and o.ahead[task]})
      end
    end
    plan:fill_waits()
    return plan
  end
end

-- mr, and the device whose numbers they are.
return function(mr, device)
  local max, min, exp2 = mr.max, mr.min, mr.exp2
  local unit = {}                                       -- by kind, the name of the unit that is used by default
  for _, seu in ipairs(device.seus) do unit[seu.kind] = unit[seu.kind] or "seu." .. seu.name end

  -- Rows of f(x) by lanes of 64.
  local function vector(lanes, k, f)
    return {program=chain(mr, f), small={m=64 * lanes, k=192}, sizes=function(d) return {m=64 * lanes * d.eus, k=k} end,
      plan=plan_of(mr, {tile={m=64 * lanes, k=64}, ways=lanes > 1 and lanes or nil, rings={x=4}, loads={"load_x"},
        tasks={"work", "round", "store_s"}})}
  end
  local multiply = vector(1, 8192, function(x)
    local y = x
    for _ = 1, 16 do y = y * x + 0.25 end
    return y
  end)
  local choose = vector(2, 4096, function(x)
    local y, z, w = x, x * 2, x * 0.5 + 0.125
    for _ = 1, 32 do y, z, w = max(y, z), min(z, w), y end
    return y + z + w
  end)
  local exponentials = vector(2, 2048, function(x)
    for _ = 1, 32 do x = exp2(-x) end
    return x
  end)

  -- Tiles of m x k; `sizes` of a device.
  local function reader(m, k, stages, sizes)
    return {program=thin(mr), small={b=2, m=128, n=8, k=192}, sizes=sizes,
      plan=plan_of(mr, {tile={m=m, n=8, k=k}, ways=m > 64 and m // 64 or nil, rings={x=stages, w=stages},
        loads={"load_x", "load_w"}, tasks={"mma", "round", "store_c"}})}
  end
  local rows = reader(128, 64, 8, function(d) return {b=1, m=128 * d.eus, n=8, k=16384} end)
  local one_by_one = reader(64, 64, 1, function(d) return {b=1, m=64 * (d.eus // 8), n=8, k=32768} end)
  local cached = reader(128, 64, 10, function(d) return {b=d.eus, m=128, n=8, k=65536} end)
  local waiting = reader(64, 64, 1, function(d) return {b=1, m=64 * d.eus, n=8, k=32768} end)

  local function gemm(producers, stages, sizes)
    return {program=mr.examples.gemm, small={m=128, n=256, k=132}, sizes=function() return sizes end,
      plan=plan_of(mr, {tile={m=128, n=256, k=64}, ways=2, registers=232, producers=producers,
        rings={a=stages, b=stages}, grid={group=8}, loads={"load_a", "load_b"}, tasks={"mma", "epilogue", "store_c"}})}
  end
  local products = gemm(1, 4, {m=8192, n=8192, k=8192})
  local by_threads = gemm(4, 3, {m=4096, n=4096, k=4100})
  local one_after_another = {program=scores(mr), small={m=64, n=64, d=64},
    sizes=function(d) return {m=64 * d.eus, n=16384, d=64} end,
    plan=plan_of(mr, {tile={m=64, n=16}, rings={k=8}, loads={"load_q", "load_k"}, tasks={"mma_qk", "work", "round", "store_s"}})}
  local much_work = {program=weights(mr), small={m=128, n=256, d=128},
    sizes=function(d) return {m=128 * d.eus, n=16384, d=128} end,
    plan=plan_of(mr, {tile={m=128, n=128}, ways=2, registers=240, rings={k=2, v=2}, twice="work",
      loads={"load_q", "load_k", "load_v"}, ahead={mma_qk=1, work=1}, tasks={"mma_qk", "mma_pv", "work", "round", "store_o"}})}
  local narrow = {program=scores(mr), small={m=128, n=128, d=128},
    sizes=function(d) return {m=128 * d.eus, n=32768, d=128} end,
    plan=plan_of(mr, {tile={m=128, n=64}, ways=2, rings={k=8}, loads={"load_q", "load_k"}, tasks={"mma_qk", "work", "round", "store_s"}})}
  local nothing = vector(2, 64, function(x) return x end)
  nothing.sizes = function() return {m=128, k=64} end

  return {
    {number="clock_ghz", of="clock_hz", run=exponentials, why="no products, and little power"},
    {number=unit.matrix .. ".clock_ghz", of="clock_hz", run=one_after_another, why="products, and little power"},
    {number=unit.vector .. ".lane_share", of="seconds", run=multiply, why="16 multiply-adds an element, by one lane"},
    {number=unit.vector .. ".ops.alu", of="seconds", run=choose, why="64 maxima and minima an element"},
    {number=unit.vector .. ".ops.sfu", of="seconds", run=exponentials, why="32 exponentials an element"},
    {number="memory.global.rate", of="seconds", run=rows, why="reads once"},
    {number="memory.global.latency", of="seconds", run=one_by_one, why="loads a chunk when it has the one before"},
    {number="memory.l2.rate", of="seconds", run=cached, why="reads again what L2 has"},
    {number="memory.shared.rate", of="cycles", run=narrow, why="products of 64 columns, both operands from there"},
    {number=unit.matrix .. ".latency", of="seconds", run=one_after_another, why="products that wait for work on the one before"},
    {number="memory.l2.thread_rate", of="cycles", run=by_threads, why="copies by threads"},
    {number="sync.launch_seconds", of="seconds", run=nothing, why="one small tile"},
    {number="power.limit", of="watts", run=products, why="products without a pause"},
    {number="power.idle", of="watts", run=one_by_one, why="waits, on an eighth of the EUs"},
    {number="power.eu", of="watts", run=waiting, why="waits, on all EUs"},
    {number="power.global", of="watts", run=rows, why="reads once"},
    {number="power.product", of="clock_hz", run=products, why="products without a pause"},
    {number="power.l2", of="watts", run=cached, why="reads again what L2 has"},
    {number="power.vector", of="watts", run=much_work, why="much work on a product"},
  }
end
