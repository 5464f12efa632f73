-- Lesson: seven mistakes in a plan, what check() says of each, and the repair.
--
-- A plan is legal if every dependence of the graph is kept in every execution, whatever
-- the speed of the units, if no lanes wait for each other for ever, and if it fits.
-- For each mistake, cover the answer and say first what could go wrong when it runs.
local mr = require "millrace"
local device = mr.device "h200"
local bound = mr.examples.gemm{m=4096, n=4096, k=4096}
local graph = bound:graph{tile={m=128, n=128, k=64}}
local order = {"load_a", "load_b", "mma", "epilogue", "store_c"}

-- A legal plan; `change` spoils it, `repair` mends it again.
local function exercise(title, change, repair)
  local plan = mr.plan(graph, device)
  plan:buffers{a=3, b=3}
  for _, task in ipairs(order) do plan:append(task) end
  plan:wait("mma", {"load_a", "load_b"})
  plan:wait("load_a", {"mma"})
  plan:wait("epilogue", {"mma", "store_c"})
  assert(plan:check())
  change(plan)
  local ok, problems = plan:check()
  assert(not ok)
  print("\n" .. title)
  print(problems)
  repair(plan)
  assert(plan:check())
end

exercise("1. The product does not wait for B.",
  function(plan) plan:unwait("mma", "load_b") end,
  function(plan) plan:wait("mma", {"load_b"}) end)

exercise("2. Nothing tells the loads when a slot is free.",
  function(plan) plan:unwait("load_a", "mma") end,
  function(plan) plan:wait("load_a", {"mma"}) end)

exercise("3. The wait is for the product five steps back; the ring has three slots.",
  function(plan)
    plan:unwait("load_a", "mma")
    plan:wait("load_a", {{"mma", distance=5}})
  end,
  function(plan)
    plan:unwait("load_a", "mma")
    plan:wait("load_a", {"mma"})
  end)

exercise("4. The load waits for the product of its own step, which waits for the load.",
  function(plan) plan:wait("load_b", {{"mma", distance=0}}) end,
  function(plan) plan:undo() end)

exercise("5. The loads are appended in the other order. Why does that matter?",
  function(plan)
    plan:remove "load_a"
    plan:append "load_a"
  end,
  function(plan) plan:wait("load_b", {"mma"}) end)

exercise("6. A ring of seven.",
  function(plan) plan:buffers{a=7, b=7} end,
  function(plan) plan:buffers{a=6, b=6} end)

exercise("7. Two warps for the consumers.",
  function(plan) plan:lane("c0", {warps=2}) end,
  function(plan) plan:lane("c0", {warps=4}) end)

print [[

Answer to 5: one lane issues in order. With load_a first, its wait for the
product also holds back load_b. With load_b first, nothing does.]]
