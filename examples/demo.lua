-- The main job from end to end: a program, its graph, three hand-made pipelines and what
-- they should reach on an H200, a mistake and what check() says of it, and a search.
-- Run it with `make demo`, or `build/millrace -i examples/demo.lua` to stay in the shell.
local mr = require "millrace"
local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
local device = mr.device "h200"

local function title(text, ...)
  print(("\n== %s %s\n"):format(text:format(...), ("="):rep(76 - #text:format(...))))
end

-- 1. The program. The text is printed, then run; it leaves the program in `attention`.
local text = [[
attention = mr.program("attention", function(p)
  -- batch, head, query, key, head dim
  local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")
  local Q, K = p:input("Q", {b, h, m, d}), p:input("K", {b, h, n, d})
  local V, O = p:input("V", {b, h, n, d}), p:output("O", {b, h, m, d})
  local scale = 1.4426950408889634 / math.sqrt(d.size)  -- log2(e) / sqrt(d)
  p:batch(b, h)
  local q = p:load("load_q", Q)
  local mx, l = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0)
  local o = p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local s = p:mma("mma_qk", q, p:load("load_k", K))
    local pr, alpha = p:task("softmax", function()
      local new = mr.max(mx, s:rowmax(n))
      local top = new * scale
      local pr, alpha = mr.exp2(s * scale - top), mr.exp2(mx * scale - top)
      l:set(l * alpha + pr:rowsum(n))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, p:load("load_v", V)))
  end)
  O:store("store_o", p:task("normalise", function()
    return (o * (1 / l)):to "bf16"
  end))
end)]]
title "A tile program"
print(text)
assert(load(text, "=attention"))()

-- What does it compute? The reference answer at a small size against the textbook formula.
local small = attention{b=1, h=2, m=24, n=40, d=16}
local inputs = small:inputs{seed=1}
local answer = small:reference(inputs).O
local worst = 0
for h = 1, 2 do
  for i = 1, 24 do
    local score, sum = {}, 0
    for j = 1, 40 do
      local s = 0
      for x = 1, 16 do s = s + inputs.Q:get(1, h, i, x) * inputs.K:get(1, h, j, x) end
      score[j] = math.exp(s / 4)
      sum = sum + score[j]
    end
    for x = 1, 16 do
      local o = 0
      for j = 1, 40 do o = o + score[j] / sum * inputs.V:get(1, h, j, x) end
      worst = math.max(worst, math.abs(o - answer:get(1, h, i, x)))
    end
  end
end
print(("\nreference against the textbook formula: largest difference %.1e"):format(worst))
assert(worst < 1e-12)

-- 2. The graph.
local bound = attention{b=2, h=16, m=8192, n=8192, d=128}
local graph = bound:graph{tile={m=128, n=128}}
title("Its graph for tiles of 128 queries and 128 keys")
io.write(graph:drawing())

-- 3. Three pipelines. The plans are files next to this one; each works for any program with
-- these sTasks.
local pipelines = {
  {"serial", "one lane does one thing after the other"},
  {"overlap", "softmax under the products of the neighbouring blocks"},
  {"pingpong", "two lanes, which use the tensor cores alternately"},
}
local rows = {}
for _, p in ipairs(pipelines) do
  local plan = mr.load_plan(here .. "attention_" .. p[1] .. ".lua", bound)
  assert(plan:check())
  local tl = plan:simulate()
  rows[#rows + 1] = ("%-9s %.2f ms %4.0f TFLOP/s  %s"):format(p[1], tl.seconds * 1e3,
    tl.tflops, p[2])
  title("%s: %s", p[1], p[2])
  tl:print()
end

-- 4. A mistake: without its second version, the probabilities are overwritten too early.
title "A mistake"
local plan = mr.plan(graph, device)
plan:lane("c0", {warps=8, registers=240})
plan:buffers{k=2, v=2}
for _, load in ipairs{"load_q", "load_k", "load_v"} do plan:append(load) end
plan:append("mma_qk", {at=1})
plan:append("softmax", {at=1})
for _, task in ipairs{"rescale", "mma_pv", "normalise", "store_o"} do plan:append(task) end
plan:fill_waits()
print(select(2, plan:check()))
print "\nplan:buffers{softmax=2, softmax_2=2}"
plan:buffers{softmax=2, softmax_2=2}
print(plan:check())

-- 5. A search.
title "A search on the model of the H200"
local found = assert(mr.search(bound, device, {seconds=8}))
print(found)
print(found.why())
print()
print(found.plan)
found.timeline:print()

title "Two sequences of 8192, 16 heads of 128, on an H200"
rows[#rows + 1] = ("%-9s %.2f ms %4.0f TFLOP/s  the best of %d plans"):format("search",
  found.seconds * 1e3, found.timeline.tflops, found.trials)
print(table.concat(rows, "\n"))
print [[

These are predictions of the model; no kernel was run. For comparison:
FlashAttention-3, measured on an H200, takes 1.56 ms, 703 TFLOP/s.]]


-- 6. Pictures, if a folder is named for them, and how to go on.
local folder = arg and arg[1]
if folder then
  title "Pictures"
  os.execute(("mkdir -p '%s'"):format(folder))
  local plans = {}
  for i, name in ipairs{"serial", "overlap"} do
    plans[i] = mr.load_plan(("%sattention_%s.lua"):format(here, name), bound):simulate()
  end
  for _, p in ipairs{{"timeline.svg", found.timeline}, {"plan.svg", found.plan}, {"graph.svg", found.plan.graph},
      {"compare.svg", mr.compare(plans[1], plans[2])}} do
    p[2]:svg(("%s/%s"):format(folder, p[1]))
    print(("%s/%s"):format(folder, p[1]))
  end
  found.timeline:png(folder .. "/timeline.png")
  print(folder .. "/timeline.png")
end
print [[

Go on in the shell, build/millrace:
  plan = mr.load_plan "attention_serial"
  plan:show()             the explorer: look, step, edit; ? has its keys, q leaves
  mr.lesson "idle"        the first of the lessons; mr.lessons() has all
  help "start" ]]
