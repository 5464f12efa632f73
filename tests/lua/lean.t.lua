-- Passes that make loops lean change nothing but the order of sums: kernels with and without them
-- are right on the CPU, and without sums that stay with their threads the same to the bit.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

-- A bound program, tiles, versions and offsets -> a legal plan on a loading and a computing lane.
local function schedule(bound, tile, versions, at)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", at = t.loop and at[t.name] or 0})
  end
  plan:buffers(versions)
  plan:fill_waits()
  return plan
end

-- Loops of a text: those that ask nothing, those that begin before them, and those that ask only
-- what the program asks; and sTasks of a prologue that ask nothing where nothing is masked.
local function loops(source)
  local function count(pattern) return select(2, source:gsub(pattern, "")) end
  return ("%d %d %d %d"):format(count "LOOP [^\n]*/%* unmasked %*/", count "&& !%a*%(", count "/%* interior %*/",
    count "if [^\n]*/%* unmasked %*/")
end

local function compare(what, bound, plan, unmasked, late, interior, ahead)
  tap.is(loops(plan:compile{target = "host"}.source), ("%d %d %d %d"):format(unmasked, late or 0, interior or 0, ahead or 0),
    what .. ": loops of their own")
  local r = plan:compile{target = "host"}:check{seed = 5}
  tap.ok(r.ok, "  right", tostring(r.relative))
  local inputs = bound:inputs{seed = 7}
  local all = plan:compile{target = "host", without = {"unmask", "partial_sums", "hoist"}}:run(inputs)
  local lean = plan:compile{target = "host", without = {"partial_sums"}}:run(inputs)
  for name, x in pairs(all) do
    tap.is(lean[name]:max_error(x), 0.0, ("  '%s' is the same without"):format(name))
  end
end

---- numbers made of the axis of a loop ------------------------------------------

-- nvcc would unroll a loop completely if it knew the most iterations that there are and they compute with the index; and, with a product
-- under way from one to the next, others.
do
  local decay = mr.program("decay", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local distance = p:option("distance", "boolean")
    local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d})
    local q, o = p:load("load_q", Q), p:carry("o", {m, d}, 0)
    p:loop(n, {upto = m}, function()
      local s = p:mma("mma_qk", q, p:load("load_k", K))
      local w = p:task("weigh", function()
        local x = distance and s * (m:index() - n:index()):to "f32" or s
        return mr.where(n:index():le(m:index()), x, 0):to "bf16"
      end)
      o:add(p:mma("mma_wv", w, p:load("load_v", V)))
    end)
    O:store("store", p:task("round", function() return o:to "bf16" end))
  end)
  for _, distance in ipairs{false, true} do
    local bound = decay{m = 320, n = 320, d = 32, distance = distance}
    local plan = schedule(bound, {m = 64, n = 64}, {k = 2, v = 2}, {})
    local what = distance and "an iteration that computes with the index" or "one that only compares it"
    local _, hidden = plan:compile{target = "cuda", text = true}.source:gsub("&& opaque%(%(", "")
    tap.is(hidden, 1, what .. ": compilers do not know when its loop ends")
    compare(what, bound, plan, 1)
  end
end

-- At its end nvcc forgets that a loop is not to be unrolled, where the last thing in it is unrolled: it made 25 iterations of this one,
-- compiled two minutes, and spilled.
do
  local bound = mr.examples.flash_attention{b = 1, h = 2, m = 2048, d = 256}
  local path = (arg[0]:match "^(.*/)" or "./") .. "../../examples/plans/attention_d256.lua"
  local plan = assert(loadfile(path))(bound)
  local source = plan:compile{target = "cuda", text = true}.source
  local _, loops = source:gsub("LOOP %([^\n]-&&[^\n]*unmasked", "")
  local _, kept = source:gsub("\n(\t+)LOOP %([^\n]-&&[^\n]*unmasked %*/\n.-\n%1\topaque%(0%);[^\n]*\n%1}", "")
  tap.is(("%d of %d"):format(kept, loops), "1 of 1", "a loop whose iterations compilers can count ends with a statement that is not unrolled")
  local compiles, kernel = pcall(plan.compile, plan, {target = "cuda"})
  tap.ok(not compiles or kernel.spills == 0, "  it stays a loop" .. (compiles and "" or " # SKIP there is no nvcc"), compiles and kernel.spills)
end

---- addresses of elements in shared memory --------------------------------------

-- A lane that has no registers to keep the addresses of all elements computes them again in each tile.
do
  local filter = mr.program("filter", function(p)
    local t, c, w = p:axes("t", "c", "w")
    local X, F, Y = p:input("X", {t, c}), p:input("F", {c, w}), p:output("Y", {t, c}, "f32")
    local x, f = p:load("load_x", X, {t + w - 3, c}), p:load("load_f", F)
    Y:store("store", p:task("sum", function() return mr.rowsum(x * f, w) end))
  end)
  local bound = filter{t = 64, c = 256, w = 4}
  for _, registers in ipairs{104, 232} do
    local plan = mr.plan(bound:graph{tile = {t = 16, c = 128}}, mr.device "h200")
    plan:lane("p0", {warps = 4})
    plan:lane("c0", {warps = 8, registers = registers})
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
    plan:grid{eus = 2}
    plan:fill_waits()
    local source = plan:compile{target = "cuda", text = true}.source
    local _, again = source:match "/%* lane c0 %*/.*":gsub("opaque%(THREAD%)", "")
    tap.is(again > 0, registers == 104, ("addresses with %d registers"):format(registers))
    -- the lane that loads has 40, and each of its threads eight rows at a time
    local load = source:match "/%* load_x, once a tile.-copies_arrive"
    tap.like(load, "opaque%(THREAD%)", "  those of rows that it loads")
    local r = plan:compile{target = "host"}:check{seed = 3}
    tap.ok(r.ok, "  right", tostring(r.relative))
  end
end

-- The same of addresses in global memory, to which the threads store in each iteration.
do
  local copies = mr.program("copies", function(p)
    local i, t, c = p:axes("i", "t", "c")
    local X, Y = p:input("X", {i, t, c}), p:output("Y", {i, t, c}, "f32")
    p:batch(t)
    p:loop(i, function()
      local x = p:load("load_x", X)
      Y:store("store", p:task("scale", function() return x * 2.5 end))
    end)
  end)
  local bound = copies{i = 64, t = 4, c = 256}
  for _, registers in ipairs{104, 240} do
    local plan = mr.plan(bound:graph{tile = {i = 32, c = 256}}, mr.device "h200")
    plan:lane("p0", {warps = 4})
    plan:lane("c0", {warps = 4, registers = registers})
    for _, t in ipairs(plan.tasks) do
      plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", seu = t.kind == "store" and "cuda" or nil})
    end
    plan:grid{eus = 2}
    plan:fill_waits()
    local source = plan:compile{target = "cuda", text = true}.source
    local _, again = source:gsub("opaque%(THREAD%)", "")
    tap.is(again > 0, registers == 104, ("addresses in global memory with %d registers"):format(registers))
    local r = plan:compile{target = "host"}:check{seed = 3}
    tap.ok(r.ok, "  right", tostring(r.relative))
  end
end

-- And of loads by threads from rows that a table lists, on a lane that has few registers because it only loads.
do
  local listed = mr.program("listed", function(p)
    local n, k, d = p:axes("n", "k", "d")
    local r = p:axis("r", 50)
    local T, X, Y = p:input("T", {n}, "i32"), p:input("X", {r, k}), p:output("Y", {n, d}, "f32")
    local W = p:input("W", {d, k})
    local t, y = p:load("load_t", T), p:carry("y", {n, d}, 0)
    p:loop(k, function() y:add(p:mma("mma", p:load("load_x", X, {t, k}), p:load("load_w", W))) end)
    Y:store("store", y)
  end)
  local bound = listed{n = 128, k = 256, d = 64}
  for _, accesses in ipairs{4, 8} do
    local plan = mr.plan(bound:graph{tile = {n = 128, k = 8 * accesses, d = 64}}, mr.device "h200")
    plan:lane("p0", {warps = 4})
    plan:lane("c0", {warps = 4})
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
    plan:buffers{x = 2, w = 2}
    plan:fill_waits()
    local source = plan:compile{target = "cuda", text = true}.source
    local load = source:match "/%* load_x, iteration.-copies_arrive"
    tap.is(load:match "opaque%(THREAD%)" ~= nil, accesses == 8, ("%d rows of a thread from a table"):format(accesses))
    local r = plan:compile{target = "host"}:check{seed = 3}
    tap.ok(r.ok, "  right", tostring(r.relative))
  end
end

-- And of operands that threads fetch, by the sTask that fills the registers of its lane.
for _, n in ipairs{64, 96} do
  local bound = mr.examples.flash_attention{b = 1, h = 1, m = 256, d = 128, causal = true}
  local plan = mr.plan(bound:graph{tile = {m = 128, d = 128, n = n}}, mr.device "a100")
  plan:split("m", 2)
  plan:lane("p0", {warps = 4})
  for i = 0, 1 do plan:lane("c" .. i, {warps = 4}) end
  plan:buffers{q = 2, k = 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%d$"})
  end
  plan:fill_waits()
  plan:grid{longest_first = true}                       -- a table has the tiles of an EU
  local again, source = 0, plan:compile{target = "cuda", text = true}.source
  for task in source:gmatch "/%* mma_%w+%.0|.-WARP_SYNC" do
    again = again + (task:match "opaque%(THREAD%)" and 1 or 0)
  end
  tap.is(again > 0, n == 96, ("operands of %d rows in 168 registers"):format(n))
  tap.is(source:match "/%* lanes c0, c1 %*/.*":match "at < start%[BLOCK %+ 1%]" == nil, n == 96,
    "  the numbers of its tiles")
  -- without a mask, behind which compilers keep more
  local softmax = source:match "/%* softmax%.0|.-AT.-float"
  tap.is(softmax:match "opaque%(THREAD%) %% 128" ~= nil, n == 96, "  coordinates that are compared")
  -- compilers would keep the slots' addresses while they wait
  tap.ok(not source:match "/%* lanes c0, c1 %*/.*":match "const u32 slot_k = [^\n]*\n[^\n]*flag_wait", "  slots behind waits")
  local r = plan:compile{target = "host"}:check{seed = 3}
  tap.ok(r.ok, "  right", tostring(r.relative))
end

-- What a product reads in registers has zeros beyond the end of the keys. They are packed, with the condition of the sum of the same
-- elements: compilers would keep those of all columns for setting halves of pairs behind it.
do
  local bound = mr.examples.flash_attention{b = 1, h = 1, m = 64, n = 200, d = 64}
  local plan = schedule(bound, {m = 64, d = 64, n = 128}, {k = 2, v = 2}, {})
  local source = plan:compile{target = "cuda", text = true}.source
  local _, packed = source:gsub("y%[e%] = %(lo_n [^;]- < [^;]- %? [^;]- : 0%.f%);", "")
  tap.is(packed, 1, "zeros beyond the end of an axis are packed")
  tap.ok(not source:find("&= e", 1, true), "  and not set in pairs")
  local r = plan:compile{target = "host"}:check{seed = 3}
  tap.ok(r.ok, "  right", tostring(r.relative))
end

-- Where the paths around a loop that may make no iteration meet, nothing is under way, nor what the loop before has issued.
do
  local twice = mr.program("twice", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d})
    local q, o = p:load("load_q", Q), p:carry("o", {m, d}, 0)
    for i, ends in ipairs{{upto = m}, {from = m + 64}} do
      p:loop(n, ends, function()
        local s = p:mma("mma_qk_" .. i, q, p:load("load_k_" .. i, K))
        local w = p:task("weigh_" .. i, function()
          return mr.where(i == 1 and n:index():le(m:index()) or i == 2 and n:index():ge(m:index() + 64), s, 0):to "bf16"
        end)
        o:add(p:mma("mma_wv_" .. i, w, p:load("load_v_" .. i, V)))
      end)
    end
    O:store("store", p:task("round", function() return o:to "bf16" end))
  end)
  for _, ahead in ipairs{0, 1} do
    local plan = schedule(twice{m = 192, n = 192, d = 64}, {m = 64, n = 64}, {weigh_1 = 1 + ahead, weigh_2 = 1 + ahead},
      {mma_qk_1 = ahead, weigh_1 = ahead, mma_qk_2 = ahead, weigh_2 = ahead})
    local source = plan:compile{target = "cuda", text = true}.source
    tap.is(source:find "else {%s+GROUPS_WAIT%(0%);" ~= nil, ahead == 1, ("a loop that may make no iteration, %d ahead"):format(ahead))
    local r = plan:compile{target = "host"}:check{seed = 3}
    tap.ok(r.ok, "  right", tostring(r.relative))
  end
end

-- Threads that store a transposed tile from a ring go down its columns, whose elements are neighbours in global memory.
do
  local transpose = mr.program("transpose", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}), p:output(p.kept and "Z" or "Y", p.kept and {m, n} or {n, m})
    Y:store("store", p:load("load_x", X))
  end)
  for _, kept in ipairs{false, true} do
    local plan = mr.plan(transpose{m = 300, n = 204, kept = kept}:graph{tile = {m = 48, n = 64}}, mr.device "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {seu = t.kind == "store" and "cuda" or nil}) end
    plan:fill_waits()
    local source = plan:compile{target = "cuda", text = true}.source
    tap.is(source:find("row0 = at % 48, col0 = at / 48", 1, true) ~= nil, not kept, kept and "a tile that is not transposed" or
      "a transposed tile")
    local r = plan:compile{target = "host"}:check{seed = 3}
    tap.ok(r.ok, "  right", tostring(r.relative))
  end
end

---- masks of attention ----------------------------------------------------------

-- Loops that are unrolled, for two versions of a value in registers, are left as they are. The fifth element: the first softmax
-- is in a prologue.
local orders = {
  {"serial", true, {k = 2, v = 2}, {}},
  {"loads ahead", true, {k = 3, v = 4}, {load_k = 1, load_v = 2}},
  {"a product behind", true, {k = 2, v = 2}, {mma_qk = 1, softmax = 1, rescale = 1, mma_pv = 1}, true},
  {"unrolled", false, {k = 2, v = 2, softmax = 2, softmax_2 = 2}, {mma_qk = 1, softmax = 1}},
}
for _, x in ipairs{
  {"nothing", {m = 128, n = 384}, 0},
  {"causal", {m = 320, n = 320, causal = true}, 1},
  {"causal, keys to spare", {m = 128, n = 448, causal = true}, 1},
  {"causal, fewer keys than queries", {m = 320, n = 192, causal = true}, 1},
  {"ragged keys", {m = 64, n = 300}, 1},
  {"ragged, causal", {m = 200, n = 330, causal = true}, 1, 0, 1},
  {"a window", {m = 320, n = 320, causal = true, window = 150}, 1, 1},
  {"a window, ragged", {m = 300, n = 300, window = 200}, 1, 1, 1},
  {"a window that masks nothing", {m = 128, n = 320, window = 1000}, 1, 1},
} do
  local what, sizes, unmasked, late, interior = table.unpack(x)
  sizes.b, sizes.h, sizes.d = 1, 1, 32
  for _, o in ipairs(orders) do
    local bound = mr.examples.flash_attention(sizes)
    compare(("%s, %s"):format(what, o[1]), bound, schedule(bound, {m = 64, n = 64}, o[3], o[4]),
      o[2] and unmasked or 0, o[2] and late or 0, o[2] and interior or 0, o[5] and not what:find "ragged" and unmasked or 0)
  end
end

---- other programs --------------------------------------------------------------

-- Conditions of several kinds, and sums of what they leave.
local masked = mr.program("masked", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m}, "f32")
  local s = p:carry("s", {m}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    p:task("step", function()
      local i, j = m:index(), n:index()
      local c = p.kind == "both" and j:le(i + 40) & j:lt(200) or p.kind == "either" and (j:le(i) | j:lt(130)) or
        p.kind == "behind" and (j - i):ge(-70) or p.kind == "equal" and j:ne(i) or p.kind == "never" and j:lt(0) or j:ge(0)
      s:set(s + mr.rowsum(mr.where(c, x, 1), n))
    end)
  end)
  Y:store("store_y", s)
end)
for _, x in ipairs{{"both", 1}, {"either", 1}, {"behind", 1}, {"equal", 0}, {"never", 1}, {"always", 1}} do
  for _, n in ipairs{320, 312} do
    local bound = masked{m = 100, n = n, kind = x[1]}
    local tests = x[2] == 1 or n == 312
    compare(("condition '%s' over %d"):format(x[1], n), bound, schedule(bound, {m = 64, n = 64}, {x = 2}, {}), tests and 1 or 0,
      0, x[2] == 1 and n == 312 and 1 or 0)
  end
end

-- Loads by threads ask for each element whether it is there.
do
  local bound = mr.examples.gemm{m = 100, n = 72, k = 333}
  local plan = schedule(bound, {m = 64, n = 72, k = 64}, {a = 2, b = 2}, {})
  compare("rows that no copy engine brings", bound, plan, 1)
end

---- sums that stay with their threads -------------------------------------------

local function parts(body)
  local bound = mr.program("sums", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m}, "f32")
    local s, top = p:carry("s", {m}, 0), p:carry("top", {m}, 0)
    p:loop(n, function()
      local x = p:load("load_x", X)
      p:task("step", function() body(s, x, n, top) end)
    end)
    Y:store("store_y", p:task("finish", function() return s + top end))
  end){m = 80, n = 256}
  local plan = schedule(bound, {m = 64, n = 64}, {x = 2}, {})
  local r = plan:compile{target = "host"}:check{seed = 3}
  tap.ok(r.ok, "  right", tostring(r.relative))
  return select(2, tostring(plan:kernel{target = "host"}):gsub("each thread its own", ""))
end
local rowsum, rowmax, max = mr.rowsum, mr.rowmax, mr.max
for _, x in ipairs{
  {"added to", 1, function(s, x, n) s:set(s + rowsum(x, n)) end},
  {"added to the other way", 1, function(s, x, n) s:set(rowsum(x, n) + s) end},
  {"scaled by a value of the row", 1, function(s, x, n, top)
    local new = max(top, rowmax(x, n))
    s:set(s * mr.exp2(top - new) + rowsum(mr.exp2(x - new), n))
    top:set(new)
  end},
  {"two sums added", 2, function(s, x, n) s:set(s + rowsum(x, n) + rowsum(x * x, n)) end},
  {"a sum that is scaled", 0, function(s, x, n) s:set(s + rowsum(x, n) * 2) end},
  {"a maximum", 0, function(s, x, n) s:set(max(s, rowmax(x, n))) end},
} do
  tap.is(parts(x[3]), x[2], ("%s: so many sums are not joined"):format(x[1]))
end

---- registers of what is read no more --------------------------------------------

-- Gradients of attention on two lanes: keys are split, and the gradient of queries, which adds up over keys, along d. The compiler
-- must not keep what scores were until there are new ones: all values of the loop together need more registers than there are.
for _, d in ipairs{128, 32} do
  local plan = mr.plan(mr.examples.attention_backward{b = 1, h = 1, m = 192, n = 128, d = d}:graph{tile = {m = 64, n = 128, g = 1}},
    mr.device "h200")
  plan:split("n", 2)
  plan:split("d", 2, {"mma_dq", "add_dq"})
  plan:lane("p0", {})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or t.name:find "%.1$" and "c1" or "c0"})
  end
  plan:fill_waits()
  local text = plan:compile{target = "cuda", text = true}.source
  local _, fresh = text:gsub("\n\t+EACH[^\n]*FRESH_F%(r_mma_%a+_[01]", "")
  tap.is(fresh, d == 128 and 6 or 0, ("head dim %d: scores and other products of an iteration begin without a value"):format(d))
  local checked = plan:compile{target = "host"}:check{seed = 1}
  tap.ok(checked.ok, "  right", tostring(checked))
end

---- registers of products under way -----------------------------------------------

-- ptxas makes each product wait for itself if it cannot tell what other instructions do to registers of products under way.
-- Tasks of a chunk of positions of attention with a state, in the order given -> the plan, and the text of its kernel.
local function chunks(order, init)
  local bound = mr.program("chunks", function(p)
    local c, i, j, s, k, v = p:axis("c", 4), p:axis("i", 64), p:axis("j", 64), p:axes("s", "k", "v")
    local Q, K, V = p:input("Q", {s, k}), p:input("K", {s, k}), p:input("V", {s, v})
    local O = p:output("O", {s, v}, "f32")
    local state = p:carry("state", {k, v}, 0)
    if init then
      local first = p:load("load_begin", p:input("Begin", {k, v}))
      p:task("begin", function() state:set(first:to "f32") end)
    end
    p:loop(c, {batch = true}, function()
      local q, kj, vj = p:load("load_q", Q, {c * 64 + i, k}), p:load("load_k", K, {c * 64 + j, k}), p:load("load_v", V, {c * 64 + j, v})
      local qk = p:mma("mma_qk", q, kj)
      local o = p:carry("o", {i, v}, 0)
      o:add(p:mma("mma_before", q, p:task("before", function() return state:to "bf16" end)))
      o:add(p:mma("mma_inside", p:task("mask", function() return mr.where(j:index():le(i:index()), qk, 0):to "bf16" end), vj))
      state:add(p:mma("mma_state", kj, vj))
      O:store("store_o", p:task("scale", function() return o * 0.125 end), {c * 64 + i, v})
    end)
  end):bind{s = 256, k = 64, v = 64}
  local plan = mr.plan(bound:graph{tile = {i = 64, j = 64, k = 64, v = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do if t.kind == "load" then plan:append(t.name, {lane = "p0"}) end end
  if init then plan:append("begin", {lane = "c0"}) end
  for _, x in ipairs(order) do plan:append(x[1], {lane = "c0", at = x[2]}) end
  plan:buffers{q = 3, k = 3, v = 3}
  plan:fill_waits()
  return plan, tostring(plan:kernel())
end

-- What stands in the text between the first lines with `from` and, behind it, `to`.
local function between(text, from, to)
  local _, at = text:find(from, 1, true)
  return at and text:sub(at, (text:find(to, at, true))) or ""
end

local function under_way(plan, what)
  local checked = plan:compile{target = "host"}:check{seed = 1}
  tap.ok(checked.ok, "  right", tostring(checked))
  local compiles, kernel = pcall(plan.compile, plan, {target = "cuda"})
  if not compiles then return end                       -- there is no compiler
  tap.is(("%d bytes, %d problems"):format(kernel.spills, #kernel.problems), "0 bytes, 0 problems", "  " .. what)
end

do
  local plan, text = chunks{{"mma_inside", 0}, {"mma_qk", 1}, {"scale", 0}, {"store_o", 0}, {"mask", 1}, {"before", 1}, {"mma_before", 1},
    {"mma_state", 1}}
  tap.like(between(text, "task 'scale', iteration j_0", "map"), "groups_wait until 0", "a sum that began an iteration earlier ends with no product under way")
  tap.like(between(text, "init r_state[0]", "block"), "pin r_state%[0%]", "  what it begins with is set before products are issued")
  under_way(plan, "no product waits for itself")

  plan, text = chunks({{"mma_qk", 0}, {"mask", 0}, {"before", 0}, {"mma_before", 0}, {"mma_inside", 0}, {"scale", 0}, {"mma_state", 0}, {"store_o", 0}}, true)
  tap.like(between(text, "task 'begin'", "block"), "pin r_state%[0%]", "so is what enters a loop of products")
  tap.ok(not between(text, "task 'scale'", "task 'mma_state'"):find "pin r_scale", "  a result is where it is stored, behind another product")
  under_way(plan, "no product waits for itself")

  plan, text = chunks{{"mma_inside", 0}, {"scale", 0}, {"mma_qk", 1}, {"mask", 1}, {"before", 1}, {"mma_before", 1}, {"mma_state", 1}, {"store_o", 0}}
  tap.like(between(text, "task 'scale', iteration j_0", "task 'mma_qk'"), "pin r_scale%[0%]", "but not behind a product into what it is made of")
  under_way(plan, "no product waits for itself")
end

-- Two softmaxes in a loop: a product goes on in the next iteration, where scores are read while products are under way.
do
  local bound = mr.program("pair", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d})
    local q = p:load("load_q", Q)
    local mx, o = {p:carry("mx1", {m}, -1e30), p:carry("mx2", {m}, -1e30)}, {p:carry("o1", {m, d}, 0), p:carry("o2", {m, d}, 0)}
    p:loop(n, function()
      local k, v = p:load("load_k", K), p:load("load_v", V)
      local s = {p:mma("mma_s1", q, k), p:mma("mma_s2", q, k)}
      for i = 1, 2 do
        local pr, alpha = p:task("softmax" .. i, function()
          local new = mr.max(mx[i], s[i]:rowmax(n))
          local pr, alpha = mr.exp2((s[i] - new) * i), mr.exp2((mx[i] - new) * i)
          mx[i]:set(new)
          return pr:to "bf16", alpha
        end)
        p:task("rescale" .. i, function() o[i]:set(o[i] * alpha) end)
        o[i]:add(p:mma("mma_o" .. i, pr, v))
      end
    end)
    O:store("store_o", p:task("finish", function() return o[1] - o[2] end))
  end){m = 128, n = 512, d = 64}
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 128, d = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 8})                            -- in two columns, so that weights lie in shared memory
  plan:buffers{k = 3, v = 3}
  for _, name in ipairs{"load_q", "load_k", "load_v"} do plan:append(name, {lane = "p0"}) end
  for _, x in ipairs{{"mma_s1"}, {"mma_o2"}, {"mma_s2", 1}, {"softmax1"}, {"rescale1"}, {"mma_o1"}, {"softmax2", 1}, {"rescale2", 1}, {"finish"}, {"store_o"}} do
    plan:append(x[1], {lane = "c0", at = x[2]})
  end
  plan:fill_waits()
  local text = plan:kernel().text
  tap.like(between(text, "task 'mma_s1', iteration j_0", "product"), "groups_wait until 0", "no product is under way where such an iteration begins")
  tap.like(between(text, "task 'softmax1', iteration j_0", "map"), "groups_wait until 2", "  and behind it those that the sTask does not need")
  under_way(plan, "no product waits for itself")
end

-- A wait for a product that an earlier wait saw complete.
do
  local bound = mr.program("two", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:input("C", {n, k})
    local X, Y = p:output("X", {m, n}), p:output("Y", {m, n})
    local a = p:load("load_a", A)
    local x, y = p:mma("mma_x", a, p:load("load_b", B)), p:mma("mma_y", a, p:load("load_c", C))
    Y:store("store_y", p:task("round_y", function() return (y * 2):to "bf16" end))
    X:store("store_x", p:task("round_x", function() return (x * 2):to "bf16" end))
  end){m = 64, n = 64, k = 64}
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 64}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  plan:wait("round_x", {"mma_x"})
  local text = plan:kernel().text
  tap.like(between(text, "task 'round_x'", "block"), "groups_wait until 0", "a wait leaves no more products under way than there are")
  under_way(plan, "no product waits for itself")
end

tap.done_testing()
