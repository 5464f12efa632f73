-- Lesson 10: when the model is wrong. A prediction has an uncertainty, cycles are not time where power limits,
-- and two predictions may be too near to call.
local mr = require "millrace"

return mr.lesson{
  title = "When is the model wrong?",
  idea = "A prediction is a time with an uncertainty. It decides between plans only if the difference is larger than that; else measure.",
  {text = [[
All numbers so far came from a model. It has a few dozen numbers of the device, and rules for queues, latencies and power. Where
is it wrong, and by how much?

Here are four plans, and what an H200 SXM of 700 W took for them in November 2026. The times are from tests/perf/sweep-h200.jsonl,
which has 177 plans with theirs: medians of steady runs on random data. The first three are attention by two lanes: in the
order of the program; products first; and the same with an issue order. The fourth is a matrix product.]]},
  {code = [[
measured = {                    -- ms, cycles, clock in Hz
  {"serial", 1.68838, 2657556, 1.526e9},
  {"overlap", 1.68746, 2550702, 1.507e9},
  {"pingpong", 1.7192, 2601947, 1.556e9},
  {"gemm", 1.59462, 2109067, 1.341e9},
}
bound = mr.examples.flash_attention{b=2, h=16, m=8192, d=128}
tls = {}
plan = mr.load_plan("attention_pingpong", bound)
tls.pingpong = plan:simulate()
plan:unwait("mma_qk.0", "mma_pv.1")
plan:unwait("mma_qk.1", "mma_pv.0")
tls.overlap = plan:simulate()
for _, task in ipairs{"softmax", "rescale"} do
  plan:move(task, {at=0, before="mma_pv"})
end
plan:move("mma_qk", {at=0})
for _, task in ipairs{"softmax_2", "mma_qk"} do
  plan:buffers{[task .. ".0"]=1, [task .. ".1"]=1}
end
tls.serial = plan:simulate()
gemm = mr.load_plan "gemm_cooperative"
for _, p in ipairs{"mma.0", "mma.1"} do gemm:unwait("load_b", p) end
tls.gemm = gemm:simulate()]]},
  {text = [[
In the model, products first (overlap) take $(percent(1 - tls.overlap.seconds / tls.serial.seconds)) less time than the order of
the program (serial).]]},
  {ask = "How much less did the H200 take, in per cent?", unit = "%", answer = "100 * (1 - measured[2][2] / measured[1][2])",
    because = "Nothing that one could measure."},
  {code = [[
function off(a, b) return ("%+4.0f %%"):format(100 * (a / b - 1)) end
print "          predicted          measured   off     cycles  clock"
for _, m in ipairs(measured) do
  local name, ms, cycles, clock = table.unpack(m)
  local tl = tls[name]
  print(("%-8s  %.2f ms +- %4.1f %%  %.2f ms  %s  %s  %s"):format(
    name, tl.seconds * 1e3, 100 * tl.uncertainty, ms,
    off(tl.seconds * 1e3, ms), off(tl.cycles, cycles),
    off(tl.clock_hz, clock)))
end]]},
  {claim = "three are within their uncertainty, one is not",
    that = "error_of(1) > tls.serial.uncertainty and error_of(2) < tls.overlap.uncertainty and error_of(3) < tls.pingpong.uncertainty and error_of(4) < tls.gemm.uncertainty"},
  {text = [[
The number after +- is tl.uncertainty: nine of ten measured times are nearer than that to the predicted one. Here three of four
are. The first is off by $(percent(error_of(1))). Its two lanes, in the order of the program, hide more of each other's work on the
device than in the model, which does not know which lane comes first, nor how far apart they end up. Look also at the last columns:
the cycles are off by more than the time. A kernel that needs fewer cycles draws more power, and gets a lower clock. That brings errors
together, and gains too.]]},
  {show = "tls.serial", options = {to = 9000}, brief = true, name = "model_serial"},
  {text = "Now power. With products at work, the clock of an H200 is at most $(number(tls.gemm.full_clock_hz / 1e9)) GHz."},
  {ask = "The matrix product keeps the tensor cores busy $(percent(tls.gemm.utilization.tensor)) of the time. What is the clock then, in GHz?",
    unit = "GHz",
    answer = "tls.gemm.clock_hz / 1e9",
      because = "It was measured as $(number(measured[4][4] / 1e9)) GHz. 700 W are not enough for more."},
  {code = [[
e = tls.gemm.energy
for _, part in ipairs{"product", "l2", "global", "eu", "idle"} do
  print(("%-8s %3.0f W"):format(part, e[part] / tls.gemm.seconds))
end]]},
  {claim = "power holds the clock", that = "tls.gemm.clock_hz < 0.8 * tls.gemm.full_clock_hz and tls.gemm.power > 0.99 * 700"},
  {text = [[
Energy binds, not cycles: this plan is at the bound of its II, and still a device with more power would be faster, and a plan
that moves fewer bytes. So fewer cycles need not be less time. Of two plans for 4096 x 4096 x 4096 the H200 took 271,551 cycles
for one and 275,577 for the other, but 0.215 ms and 0.204.]]},
  {ask = "If the limit were 1000 W, how much less time would it take, in per cent?", unit = "%",
    answer = "100 * (1 - with_power(1000).seconds / tls.gemm.seconds)"},
  {claim = "more power helps a plan that is at its bound",
    that = "with_power(1000).seconds < 0.9 * tls.gemm.seconds and tls.gemm.ii < 1.02 * tls.gemm.bound"},
  {text = [[
Last, two plans that are nearly the same for the model: overlap takes $(ms(tls.overlap.seconds)), pingpong
$(ms(tls.pingpong.seconds)).]]},
  {code = [[
comparison = mr.compare(tls.overlap, tls.pingpong)
print(comparison.title)
print("too near to call", comparison.within_noise)]]},
  {claim = "too near to call", that = "comparison.within_noise == true and tls.overlap.noise == 0.08"},
  {text = [[
tl.noise is the difference from which on 19 of 20 pairs are in the right order: $(percent(tls.overlap.noise)). Of nearer ones
mr.compare and plan:try say that they are too near to call. And 19 are not 20: overlap and serial are further apart than that in
the model, and took the same time.

So use the model to find out what binds, and what could help. To choose, measure: where a GPU is attached,
mr.compare(plan:simulate(), k:trace()) shows sTask by sTask where the two differ, and k:bench() says which one is faster.]]},
  {try = {
    {'plan:grid{eus=66}', "Half of the EUs: what becomes of the clock, and is it twice the time?",
      that = "r.after.clock_hz > r.before.clock_hz"},
    {'plan:lane("c0", {warps=4})\nplan:lane("c1", {warps=4})',
      "No registers asked for. Does the model see a difference? Would a device?"},
  }},
  setup = [=[
function error_of(i) return math.abs(tls[measured[i][1]].seconds * 1e3 / measured[i][2] - 1) end
function with_power(watts)
  local device = ('mr.device("h200", {["power.limit"]=%d})'):format(watts)
  return load((gemm:script():gsub('mr%.device "h200"', device)))():simulate()
end]=],
}
