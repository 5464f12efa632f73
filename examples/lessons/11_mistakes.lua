-- Lesson 11: mistakes in a plan. It is legal if nothing can go wrong whatever the speed of the units;
-- that it went well once says little.
local mr = require "millrace"

return mr.lesson{
  title = "It ran. Is it right?",
  idea = "A plan is legal if every dependence is kept in every execution. What only works because a load is slow is a mistake.",
  {text = [[
A missing wait is the worst sort of mistake: the kernel is right on your machine, at your size, and wrong on another. A plan is
checked for that before anything runs. check() asks three things: is every dependence kept, whatever the speed of the units? Can
lanes wait for each other for ever? Does it fit?

Here is a legal plan: rings of three versions, and three statements that say which sTask waits for which.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=4096, k=4096}
graph = bound:graph{tile={m=128, n=128, k=64}}
function legal()
  local plan = mr.plan(graph, mr.device "h200")
  plan:buffers{a=3, b=3}
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:wait("mma", {"load_a", "load_b"})
  plan:wait("load_a", {"mma"})
  plan:wait("epilogue", {"mma", "store_c"})
  return plan
end
plan = legal()
print(plan:check())]]},
  {show = "legal_timeline()", options = {to = 6000}, brief = true,
    typed = "plan:simulate():print{to=6000}", name = "mistakes_legal"},
  {text = "Each of the following is one change. Say first what may happen when it runs."},
  {ask = "mma waits for load_a alone, no longer for load_b.", choices = {"it is still right", "a wrong answer", "it hangs"},
    answer = 'kind(function(p) p:unwait("mma", "load_b") end)', because = [[
load_b is issued right after load_a, and mostly there at the same time. Mostly.]]},
  {code = 'plan:unwait("mma", "load_b")\nprint(select(2, plan:check()))\nplan = legal()'},
  {ask = "load_a waits for the product five iterations back. The ring has three slots.", choices = {"it is still right",
    "a wrong answer", "it hangs"},
    answer = 'kind(function(p) p:unwait("load_a", "mma") p:wait("load_a", {{"mma", distance=5}}) end)', because = [[
The load of iteration 3 goes to the slot of iteration 0. Without a distance, the wait is for the product that used that slot last,
whatever the number of versions.]]},
  {code = [[
plan:unwait("load_a", "mma")
plan:wait("load_a", {{"mma", distance=5}})
ok, problems = plan:check()
print(ok, #problems, problems[1].code)
print(problems[1].hint)
plan = legal()]]},
  {ask = "load_b also waits for the product of its own iteration.", choices = {"it is still right", "a wrong answer", "it hangs"},
    answer = 'kind(function(p) p:wait("load_b", {{"mma", distance=0}}) end)',
      because = "The product waits for the load, and the load for the product."},
  {code = 'plan:wait("load_b", {{"mma", distance=0}})\nprint(select(2, plan:check()))\nplan = legal()'},
  {ask = "load_a and load_b are appended in the other order. Only load_a waits for the product.",
    choices = {"it is still right", "a wrong answer", "it hangs"},
    answer = 'kind(function(p) p:move("load_a", {after="load_b", repair_waits=false}) end)', because = [[
One lane issues in order. While load_a came first, its wait held back load_b, too. Now nothing does. An order is a promise as
much as a wait is.]]},
  {code = 'plan:move("load_a", {after="load_b", repair_waits=false})\nprint(plan:check())'},
  {claim = "a missing wait is a wrong answer", that = [[kind(function(p) p:unwait("mma", "load_b") end) == 2]]},
  {claim = "a circle hangs", that = [[kind(function(p) p:wait("load_b", {{"mma", distance=0}}) end) == 3]]},
  {claim = "the order of issue protects", that = [[not plan:check() and legal():check()]]},
  {text = [[
Each problem has a repair with it, and plan:fill_waits() adds what is missing: here one wait, of load_b. That of load_a is
needless now, and stays: fill_waits drops only those that it has added. Waits have a price
($(mr.device("h200"):number "sync.wait_cost") cycles on the H200), so fewer are better.]]},
  {code = "print(plan:fill_waits(), plan:check())\nprint(legal():diff(plan))"},
  {claim = "fill_waits repairs it", that = "plan:check()"},
  {text = [[
A move repairs waits by itself: plan:move brings those that it needs. Only repair_waits=false, as above, leaves that to you.]]},
  {try = {
    {"plan:buffers{a=7, b=7}", "A ring of seven. What is wrong with it?", that = "not r.ok"},
    {'plan:unwait("epilogue", "mma")', "In the explorer, view 8 shows what is wrong, and f tries the repairs.",
      that = "not r.ok"},
  }},
  setup = [[
function legal_timeline() return legal():simulate() end
function kind(change)
  local p = legal()
  change(p)
  local ok, problems = p:check()
  return ok and 1 or problems[1].code == "deadlock" and 3 or 2
end]],
}
