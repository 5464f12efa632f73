-- A GEMM for the MI300X by four waves, one on each SIMD, in which copies go between products.
--
-- A wave has 128 x 128 of the sums, half of its registers, and no other wave hides what it waits for. So the products of a tile are
-- divided along k, and so are fetches of their operands to registers: while one half is multiplied, the other one is fetched. The
-- next tile is written to the LDS and the next but one loaded between the halves. As both halves are fetched by then, one slot
-- of each operand is enough, of 64 along k: 64 KiB, all of the LDS.
local mr = require "millrace"
local bound = ... or mr.examples.gemm{m=8192, n=8192, k=8192}
local plan = mr.plan(bound:graph{tile={m=256, n=256, k=64}}, mr.device "mi300x")

plan:split_off("a", "put_a")
plan:split_off("b", "put_b")
plan:fetch("mma", {"a", "b"})
plan:split("k", 2, {"mma", "fetch_a", "fetch_b"})

plan:lane("c0", {warps=4, columns=2})
local function append(tasks, at)
  for _, task in ipairs(tasks) do plan:append(task, {lane="c0", at=at}) end
end
append{"fetch_a.1", "fetch_b.1", "mma.0"}
append({"put_a"}, 1)
append({"load_a"}, 2)
append({"put_b"}, 1)
append({"fetch_a.0", "fetch_b.0"}, 1)
append({"load_b"}, 2)
append{"mma.1", "epilogue", "store_c"}
plan:buffers{a=1, b=1}
plan:grid{raster="rows", group=8, chiplets=8}
plan:fill_waits()
return plan
