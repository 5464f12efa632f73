-- What documents say in prose, outside of the sessions that docs.t plays: numbers that can be computed are.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

local function document(name)
  local file = assert(io.open(mr.home .. "/" .. name))
  local text = file:read "a"
  file:close()
  return text, (text:gsub("%s+", " "))
end

-- The document has this sentence, however its lines are broken.
local function says(name, sentence)
  local _, text = document(name)
  tap.ok(text:find(sentence, 1, true), ("%s: %s"):format(name, sentence))
end

local words <const> = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
  "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "twenty-one", "twenty-two", "twenty-three",
  "twenty-four", "twenty-five", "twenty-six", "twenty-seven", "twenty-eight", "twenty-nine", "thirty", "thirty-one", "thirty-two"}

---- how many there are ---------------------------------------------------------------------------

local programs = #dofile((arg[0]:match "^(.*/)" or "./") .. "lib/example_names.lua")
says("README.md", "tile programs | " .. words[programs] .. " in `examples/`")
says("README.md", "for all " .. words[programs] .. " programs")
for _, name in ipairs{"README.md", "docs/README.md"} do
  says(name, "software pipelining in " .. words[#mr.lessons()] .. " questions")
end

---- what plans do --------------------------------------------------------------------------------

local h200 = mr.device "h200"

-- The plan of README.md's first session, with rings of so many versions.
local function product(versions)
  local graph = mr.examples.gemm{m = 8192, n = 8192, k = 8192}:graph{tile = {m = 128, n = 256, k = 64}}
  local plan = mr.plan(graph, h200)
  plan:lane("c0", {warps = 8})
  plan:buffers{a = versions, b = versions}
  for _, task in ipairs(graph.tasks) do plan:append(task.name) end
  plan:fill_waits()
  return plan:simulate()
end
local four, two = product(4), product(2)
says("README.md", ("reduces the clock to %.1f GHz"):format(four.clock_hz / 1e9))
says("README.md", ("With two, the same plan takes %.1f times as many cycles"):format(two.cycles / four.cycles))
says("docs/manual.md", ("Each wait costs time (%.0f cycles on the H200 model)"):format(h200:number "sync.wait_cost"))
says("docs/manual.md", ("`attention_d64` with %d keys a tile, `attention_d128` with %d, `attention_d128_causal` with %d, "
  .. "`attention_d256` with %d"):format(mr.load_plan "attention_d64".tile.n, mr.load_plan "attention_d128".tile.n, mr.load_plan "attention_d128_causal".tile.n,
    mr.load_plan "attention_d256".tile.n))

-- How tiles go to EUs, in section 8 of the manual: tiles of an EU, and the share of the longest one in its iterations.
local function longest(b, m)
  local plan = mr.load_plan("attention_pingpong", mr.examples.flash_attention{b = b, h = 16, m = m, d = 128, causal = true})
  local rows = m // plan.tile.m
  return b * 16 * rows / h200.eus, rows / (b * 16 * rows * (rows + 1) / 2 / h200.eus)
end
local tiles, share = longest(1, 4096)
tap.ok(math.ceil(tiles) == 4 and math.abs(share - 1 / 2) < 0.02, "manual: four tiles at most, the longest is half", tiles, share)
tiles, share = longest(8, 2048)
tap.ok(math.floor(tiles) == 15 and math.abs(share - 1 / 8) < 0.01, "manual: fifteen tiles, the longest is an eighth", tiles, share)

---- what was measured ----------------------------------------------------------------------------

-- README.md repeats rows of docs/performance.md: their rate, and the ratio of their times to PyTorch's.
local measured = {}
for name, ms, rate, other in document "docs/performance.md":gmatch "\n| ([^|]-) | [^|]- | ([%d.]+) | (%d+) | ([%d.]+) |" do
  measured[rate] = {name = name, ratio = ("%.2f"):format(other / ms)}
end
local rows = 0
for name, rate, ratio in document "README.md":gmatch "\n| ([^|]-) | (%d+) | [^|]- | ([%d.]+) |" do
  local row = measured[rate]
  if row then
    rows = rows + 1
    tap.is(ratio, row.ratio, ("README.md: %s is the row %s of performance.md"):format(name, row.name))
  end
end
tap.ok(rows >= 2, "there are rows that both have", rows)

---- copies of a lane with few tiles each ------------------------------------------------------

-- The first tiles share units that the last ones have for themselves: their difference is no interval of a steady state.
for _, replicas in ipairs{2, 3} do
  local plan = mr.plan(mr.examples.topk_routing{m = 16384, n = 256, k = 2}:graph{tile = {m = 32}}, mr.device "h200")
  plan:lane("p0", {})
  plan:lane("c0", {warps = 4, replicas = replicas})
  plan:buffers{x = 6}
  for _, task in ipairs(plan.tasks) do
    plan:append(task.name, task.kind == "load" and {seu = "tma", lane = "p0"} or {seu = "cuda", lane = "c0"})
  end
  plan:fill_waits()
  local tl = plan:simulate()
  tap.ok(tl.ii >= tl.res_mii and tl.ii >= tl.rec_mii, ("no interval below its bounds with %d copies"):format(replicas), tl:summary())
end

---- flops --------------------------------------------------------------------------------

-- What several tiles multiply again, as each needs all of an axis that is divided among them, is counted once.
do
  local bound = mr.examples.flash_attention{b = 2, h = 2, m = 512, n = 512, d = 128}
  local function flops(d) return bound:graph{tile = {m = 128, n = 64, d = d}}.flops end
  tap.is(flops(128), 4.0 * 2 * 2 * 512 * 512 * 128, "flops of attention")
  tap.is(flops(64), flops(128), "  are as many with tiles of half of the head dim")
  tap.is(flops(32), flops(128), "  and of a quarter")
  tap.like(tostring(bound:graph{tile = {m = 128, n = 64, d = 64}}), "'mma_qk' is%s+multiplied%s+2 times", "  and what is repeated is said")
end

tap.done_testing()
