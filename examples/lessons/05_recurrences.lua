-- Lesson 5: recurrences. A value that an iteration takes from the one before makes a circle that no
-- version opens; what is in the circle without need can be taken out of it.
local mr = require "millrace"

return mr.lesson{
  title = "Why do more stages not help?",
  idea = "A circle through a ring is opened by versions. One through a carried value is not: take out what need not be in it.",
  {text = [[
You have deepened every ring, and nothing happens. Some circles do not go through a ring. This program has a state s, to which
each step adds a product; before, it lets s fade. Linear attention and state-space models have such loops. g says how fast it
fades, and low is the lowest g so far, as a softmax has its greatest score.]]},
  {code = [[
function program(apart)
  return mr.program("fading", function(p)
    local m, n, t = p:axes("m", "n", "t")
    local A, B = p:input("A", {t, m}), p:input("B", {t, n})
    local G, S = p:input("G", {t}, "f32"), p:output("S", {m, n})
    local s, low = p:carry("s", {m, n}, 0), p:carry("low", {}, 0)
    p:loop(t, function()
      local g, a = p:load("load_g", G), p:load("load_a", A)
      local function step()
        local now = mr.min(low, g:rowmin(t))
        local factor = mr.exp2(now - low)
        low:set(now)
        return now, factor
      end
      local now, factor
      if apart then
        now, factor = p:task("step", step)
        p:task("fade", function() s:set(s * factor) end)
      else
        now = p:task("fade", function()
          local now, factor = step()
          s:set(s * factor)
          return now
        end)
      end
      local w = p:task("weigh", function()
        return (a * mr.exp2(now - g)):to "bf16"
      end)
      s:add(p:mma("mma", w, p:load("load_b", B)))
    end)
    local out = p:task("round", function() return s:to "bf16" end)
    S:store("store_s", out)
  end)
end
function fading(apart)
  local bound = program(apart){m=4096, n=4096, t=4096}
  local graph = bound:graph{tile={m=64, n=256, t=64}}
  local plan = mr.plan(graph, mr.device "h200")
  plan:buffers{a=3, b=3, g=3}
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  return plan
end
plan = fading(false)
tl = plan:simulate()]]},
  {show = "plan.graph", typed = "print(plan.graph:drawing())"},
  {show = "tl", options = {to = 7000}, name = "recurrences_together"},
  {ask = "RecMII is $(tl.rec_mii), and II $(tl.ii). What is II with four versions of a, b and g?", unit = "cycles",
    answer = "four_versions().ii",
    because = [[
The circle is fade, weigh, mma, and fade again: fade needs the s that the product before has left, and weigh needs what fade
computes. s is a carry, and each iteration needs the last one's value. Versions give a new value another slot; this one is
wanted.]]},
  {claim = "rings do not help", that = "four_versions().ii == tl.ii"},
  {claim = "a recurrence binds", that = "tl.rec_mii > 1.3 * tl.res_mii and tl.ii < 1.15 * tl.rec_mii"},
  {text = [[
But what weigh needs of fade is only low, which does not depend on the product. It is in the circle because it was put into the
same sTask. Here it gets one of its own, called step. Nothing else changes.]]},
  {ask = "What is RecMII then?", unit = "cycles", answer = "fading(true):simulate().rec_mii"},
  {code = "plan = fading(true)\napart = plan:simulate()\nprint(apart:summary{width=78})"},
  {claim = "a shorter circle", that = "apart.rec_mii < 0.8 * tl.rec_mii and apart.ii < 0.93 * tl.ii"},
  {text = [[
RecMII is $(apart.rec_mii), by another circle: weigh writes registers that the product reads, and the next weigh has to wait.
That one goes through a buffer, so a second version opens it. Then weigh can run under the product: it comes behind it, an
iteration ahead.]]},
  {code = [[
plan:buffers{weigh=2}
plan:move("step", {after="mma", at=1})
plan:move("weigh", {after="step", at=1})
opened = plan:simulate()]]},
  {show = "opened", options = {to = 7000}, name = "recurrences_opened"},
  {claim = "the order may now hide weigh", that = "opened.ii < 0.97 * apart.ii and opened.rec_mii < apart.rec_mii"},
  {text = [[
II went from $(tl.ii) to $(opened.ii). What remains of circles is fade and mma: that is the recurrence of the program itself.
When it binds, give the unit a second circle, which is another tile on another warpgroup: both go round at the same time.]]},
  {try = {
    {'plan:lane("c0", {warps=8})\nplan:propagate{m=128}', "Two warpgroups, two circles. How busy are the tensor cores?",
      that = "r.after.utilization.tensor > r.before.utilization.tensor + 0.05"},
    {"plan:propagate{t=32}", "Half as many steps an iteration. Which part of the circle does not become shorter?"},
  }},
  setup = [[
function four_versions()
  local copy = plan:copy()
  copy:buffers{a=4, b=4, g=4}
  copy:fill_waits()
  return copy:simulate()
end]],
}
