-- Lesson 13: three machines. The same product planned for an H200, an A100 and an MI300X: who fills a slot,
-- where operands lie, and whether a lane may go on during its product.
local mr = require "millrace"

return mr.lesson{
  title = "Why do three machines want three plans?",
  idea = "Who fills a slot, where operands lie, and whether a lane goes on during its product: these make the plan, not the program.",
  {text = [[
You know one GPU well, and have its GEMM in your fingers: stages, warps, the tile. Now it is to run on another one. What of it is
the program's, and what is the machine's?

The program is C = A B of bf16, 4096 in each direction. The machines are an H200 (sm_90a), an A100 (sm_80) and an MI300X (gfx942).
An EU is an SM of the first two and a compute unit of the third: the MI300X has 304, on eight chiplets.

Only the H200's numbers were measured by us. Those of the A100 and of the MI300X are from data sheets and published
measurements: all that is predicted for these two is not measured by us.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=4096, k=4096}
machines = {"h200", "a100", "mi300x"}
print "        EUs  warp  shared  registers  flop/cycle  a product"
for _, name in ipairs(machines) do
  local d = mr.device(name)
  for _, unit in ipairs(d.seus) do
    if unit.kind == "matrix" then
      print(("%-6s  %3d  %4d  %3d KB  %9d  %10d  %s"):format(name, d.eus,
        d:number "limits.warp", d:number "memory.shared.bytes" // 1024,
        d:number "limits.registers",
        d:number("seu." .. unit.name .. ".flops.bf16"),
        unit.async and "is asynchronous" or "holds its lane"))
      break  -- products go to the first one
    end
  end
end]]},
  {text = [[
First the H200. A TMA descriptor says where a tile is. One thread of a producer warp issues a copy, the engine fills the slot, and an
mbarrier counts the bytes. wgmma reads both operands out of shared memory and is asynchronous: the lane issues it and goes on. So the
producer needs one warp and few registers (setmaxnreg gives what it does not need to the others), and the consumers are two warpgroups of four warps.]]},
  {code = [[
function plan_for(device, tile, parts, versions, producer)
  local plan = mr.plan(bound:graph{tile=tile}, mr.device(device))
  plan:split("m", parts)
  plan:lane("p0", {warps=producer})
  for i = 0, parts - 1 do plan:lane("c" .. i, {warps=4}) end
  plan:buffers{a=versions, b=versions}
  plan:append("load_a", {lane="p0"})
  plan:append("load_b", {lane="p0"})
  for i = 0, parts - 1 do
    for _, task in ipairs{"mma", "epilogue", "store_c"} do
      plan:append(task .. "." .. i, {lane="c" .. i})
    end
  end
  plan:grid{raster="rows", group=8}
  for i = 0, parts - 1 do
    plan:wait("mma." .. i, {"load_a", "load_b"})    -- the slot is full
    for _, load in ipairs{"load_a", "load_b"} do
      plan:wait(load, {"mma." .. i})                -- ... and free again
    end
  end
  plan:fill_waits()               -- the epilogue's: products, the store
  return plan
end
hopper = plan_for("h200", {m=128, n=256, k=64}, 2, 4, 1)
h = hopper:simulate()
registers = hopper.usage.lanes
print(("registers: p0 %d, c0 %d"):format(registers.p0, registers.c0))]]},
  {show = "h", options = {to = 6000}, name = "machines_h200"},
  {text = [[
A stage, one slot of each operand, is $(kb(slot(hopper))) KB, and the ring has four: 192 of 227 KB. The tensor cores bind, with
$(h.res_mii) cycles for an iteration.]]},
  {ask = 'How many cycles does it take with two stages, after hopper:buffers{a=2, b=2}?', unit = "cycles", answer = "shallow().ii",
    because = "A slot is filled again only when its product is complete, so half of the loads' latency is in the open."},
  {claim = "the H200's plan is legal and bound by its tensor cores",
    that = "hopper:check() and h.bound == h.res_mii and h.utilization.tensor > 0.9"},
  {text = [[
Now the A100, with the same lanes and the same tile. Its copies are cp.async: the threads compute each address, so we give the
producer four warps. mma.sync takes its operands from registers, where ldmatrix brings them, and a product holds its warps to its end.]]},
  {code = [[
moved = plan_for("a100", {m=128, n=256, k=64}, 2, 4, 4)
legal, problems = moved:check()
print(legal)
print((tostring(problems):gsub("^.-: ", "")))]]},
  {claim = "it does not fit", that = "not legal"},
  {text = [[
Nor is that all that differs. setmaxnreg is Hopper's: on the A100 each thread of the block has as many registers as any other. A
producer of four warps takes as many as four warps that multiply. So CUTLASS has no producer there. In its multistage mainloop the
same warps copy and multiply: they issue the copies of a tile some stages ahead, and then the products of this one. We write that:
one lane, with loads two iterations ahead.]]},
  {code = [[
function multistage(device, tile, versions)
  local plan = mr.plan(bound:graph{tile=tile}, mr.device(device))
  plan:lane("c0", {warps=8})
  plan:buffers{a=versions, b=versions}
  for _, task in ipairs(plan.tasks) do
    plan:append(task.name,
      {lane="c0", at=task.kind == "load" and versions - 1 or 0})
  end
  plan:grid{raster="rows", group=8}
  plan:fill_waits()
  return plan
end
ampere = multistage("a100", {m=128, n=256, k=32}, 3)
a = ampere:simulate()]]},
  {show = "a", options = {to = 12000}, name = "machines_a100"},
  {text = [[
It is legal, and slow. Look at c0: it copies, then it multiplies. No data is late. But the lane does one thing after the other,
and both take its time; in mma are also the fetches of operands, as each of eight warps has
16 rows, and needs all of B. CUTLASS puts the copies of a stage between the mma.sync of another, in the same warp, or has several blocks
on an SM. A plan has neither: its sTasks are not mixed, and an EU has one block. What fills a lane's gaps is another lane.

So let two lanes copy and multiply: each has one operand's copies and half of the products.]]},
  {code = [[
function two_lanes(device, tile, versions)
  local plan = mr.plan(bound:graph{tile=tile}, mr.device(device))
  plan:split("m", 2)
  for i = 0, 1 do plan:lane("c" .. i, {warps=4}) end
  plan:buffers{a=versions, b=versions}
  for _, task in ipairs(plan.tasks) do
    local part = task.name:match "%d$" or task.name == "load_b" and 1 or 0
    plan:append(task.name,
      {lane="c" .. part, at=task.kind == "load" and versions - 1 or 0})
  end
  plan:grid{raster="rows", group=8}
  plan:fill_waits()
  return plan
end
halves = two_lanes("a100", {m=256, n=128, k=32}, 3)
two = halves:simulate()]]},
  {show = "two", options = {to = 12000}, brief = true},
  {text = [[
The gaps are shorter: $(two.ii) cycles an iteration instead of $(a.ii). But a copy still takes time of a lane that
multiplies.]]},
  {ask = "II is $(two.ii) for two lanes that copy and multiply. How many cycles is it with four warps for the copies alone?",
    unit = "cycles", answer = "with_producer().ii",
    because = [[
In the model a producer is worth its registers, even on the A100: copies are then under the products of two other lanes. That is a
prediction, not measured by us.]]},
  {code = [[
apart = plan_for("a100", {m=256, n=128, k=32}, 2, 3, 4)
three = apart:simulate()
head = "         tile           warps stages shared regs   II "
  .. "by     TFLOP/s"
row = "%-8s %3d x %3d x %2d %5d %6d %3d KB %4d %4.0f %-6s %7.0f"
function usage(name, plan)
  local tl, u, t, most = plan:simulate(), plan.usage, plan.tile, 0
  for _, n in pairs(u.lanes) do most = math.max(most, n) end
  local warps = u.threads // plan.device:number "limits.warp"
  local by = tl:summary():match "ResMII [%d,]+ %((%w+)%)"
  return row:format(name, t.m, t.n, t.k, warps, plan.rings.a,
    u.shared_bytes // 1024, most, tl.ii, by, tl.tflops)
end
print(head)
print(usage("one lane", ampere))
print(usage("halves", halves))
print(usage("producer", apart))]]},
  {claim = "the lanes help, and the producer more", that = "two.ii < a.ii and three.ii < two.ii and halves:check() and apart:check()"},
  {text = [[
Regs are those of a thread, where the most are; by is what ResMII is of, a lane or a unit.

Last the MI300X. Its waves have 64 threads. They copy, too, by way of their registers, and MFMA takes operands out of registers.
There are no mbarriers: lanes that execute the same loop meet at the block's barrier, equally often in each iteration. A compute unit
has twice the registers of an SM, but an LDS of 64 KB.]]},
  {code = [[
plan = plan_for("mi300x", {m=256, n=128, k=32}, 2, 2, 4)
x = plan:simulate()]]},
  {show = "x", options = {to = 9000}, name = "machines_mi300x"},
  {ask = "A stage is $(kb(slot(plan))) KB. How many are there at most, after plan:buffers{a=n, b=n}, for which check() accepts it?",
    answer = "2", because = "Three take 72 KB. So the LDS decides, and with two the copies cannot be far ahead of the products."},
  {claim = "it waits for loads, with two stages", that = "plan:check() and x.ii > 1.05 * x.bound and not third_fits()"},
  {text = [[
Three stages of a smaller tile fit: 192 rows in three lanes, 64 each, take 60 KB. Then the lane that copies hardly waits: its
copies and a meeting with the others are an iteration. But a smaller tile loads more for each product.]]},
  {code = [[
cdna = plan_for("mi300x", {m=192, n=128, k=32}, 3, 3, 4)
y = cdna:simulate()
print(("%.0f and %.0f TFLOP/s"):format(x.tflops, y.tflops))]]},
  {claim = "with three stages it is nearer to its bound, and no faster",
    that = "cdna:check() and y.tflops < x.tflops and y.ii / y.bound < 0.95 * x.ii / x.bound"},
  {text = [[
The order of the chiplets is not in this: the model has one cache that all share, and not the L2 of each chiplet.

Now let the machine's numbers speak. The same search, for each of them:]]},
  {code = [[
found = {}
print(head)
for _, name in ipairs(machines) do
  found[name] = mr.search(bound, mr.device(name), {trials=300})
  print(usage(name, found[name].plan))
end]]},
  {claim = "a search does as well as these plans",
    that = "found.h200.timeline.tflops >= h.tflops and found.a100.timeline.tflops >= three.tflops and found.mi300x.timeline.tflops >= y.tflops"},
  {text = [[
The depth of the ring follows from the size of shared memory. The warps follow from who copies: on the H200 one warp issues
to the engine, and is padded to a group of four; on the A100 and the MI300X four warps copy. And what binds follows from
how fast products are in comparison to memory: the tensor cores, or on the MI300X the memory, as its tiles are small. These reasons
move from machine to machine. The plan does not.]]},
  {try = {
    {'plan:propagate{m=128}\nplan:buffers{a=3, b=3}',
      "A smaller tile on the MI300X, and three stages: does II per product fall, and what do more bytes cost?"},
    {'plan:lane("p0", {warps=1})',
      "One wave copies for all. Does the MI300X need four? And what do the registers of a thread become?"},
  }},
  setup = [[
function slot(plan)                                     -- bytes of one stage, both operands
  local t = plan.tile
  return 2 * t.k * (t.m + t.n)
end
function shallow()
  local copy = hopper:copy()
  copy:buffers{a=2, b=2}
  return copy:simulate()
end
function with_producer() return plan_for("a100", {m=256, n=128, k=32}, 2, 3, 4):simulate() end
function kb(bytes) return ("%.0f"):format(bytes / 1024) end
function tiles(m, n) return math.ceil(4096 / m) * math.ceil(4096 / n) end
function third_fits() return plan_for("mi300x", {m=256, n=128, k=32}, 2, 3, 4):check() end]],
}
