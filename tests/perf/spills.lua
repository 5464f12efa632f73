-- spills.lua - the account of registers, compared with what ptxas makes of kernels.
--
--   millrace tests/perf/spills.lua [DEVICE [PATTERN]]          searched plans of the shipped programs whose line has PATTERN (Lua)
--   millrace tests/perf/spills.lua DEVICE random FIRST COUNT   ... of programs drawn at random, by seed
--   millrace tests/perf/spills.lua plans FILE ...              plans of scripts
--
-- Needs CUDA's compiler, and no device. A line of each program: its name, predicted milliseconds, plans tried, and the bytes that
-- a thread stores and loads for spills. Of a kernel that spills follows a line of each lane that has values: the registers that a
-- thread is given; those of the account, the most of all phases; how many of them values take in this phase, and the sTask at
-- which they are most. ALL=1 in the environment has these lines of each kernel. With RUN=1 the kernel runs on the attached device, too, and
-- the line goes on with measured milliseconds, and "right" or "WRONG", its error relative to the reference; PART=2/4 is every fourth program,
-- from the second on. Exits with 1 if something spills or is wrong.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"

local shapes <const> = {
  {"gemm", m=4096, n=4096, k=4096}, {"gemm", m=8192, n=8192, k=512, bias=true, activation="gelu"}, {"gemm", m=64, n=8192, k=8192},
  {"gemm", m=1024, n=1024, k=16384, dtype="f16"}, {"gemm", m=4096, n=4096, k=4096, dtype="e4m3", out="bf16"},
  {"matmul_sum", m=8192, n=8192, k=4096},
  {"flash_attention", b=8, h=16, m=2048, d=128}, {"flash_attention", b=2, h=16, m=8192, d=128, causal=true},
  {"flash_attention", b=2, h=32, m=8192, d=64}, {"flash_attention", b=8, h=32, m=2048, d=64, causal=true},
  {"flash_attention", b=2, h=8, m=8192, d=256}, {"flash_attention", b=2, h=8, m=8192, d=256, causal=true},
  {"flash_attention", b=2, h=16, m=8192, d=128, softcap=30, causal=true, window=1024},
  {"flash_decoding", b=64, h=32, hkv=8, n=8192, d=128}, {"flash_decoding", b=16, h=32, hkv=4, n=8192, d=64},
  {"paged_decoding", b=16, h=32, hkv=8, n=8192, d=128}, {"mla_decoding", b=32, h=128, n=8192},
  {"attention_backward", b=2, h=16, m=4096, d=128}, {"attention_backward", b=2, h=16, m=4096, d=128, causal=true},
  {"attention_backward", b=2, h=32, m=4096, d=64, causal=true}, {"attention_backward", b=2, h=32, hkv=8, m=4096, d=128, causal=true},
  {"block_sparse_attention", b=1, h=16, m=8192, d=128},
  {"chunk_state", b=8, s=8192, h=80, p=64, n=128}, {"chunk_scan", b=8, s=8192, h=80, p=64, n=128},
  {"mamba2", b=8, s=4096, h=80, p=64, n=128}, {"gated_delta_rule", b=1, s=8192, h=32, k=128, v=128},
  {"kimi_delta_attention", b=1, s=8192, h=32, k=128, v=128},
  {"dequant_gemm", m=4096, n=8192, k=8192}, {"dequant_gemm", m=16, n=8192, k=8192}, {"fp4_gemm", m=4096, n=8192, k=8192},
  {"fp4_gemm", m=16, n=8192, k=8192, format="mxfp4"}, {"fp8_block_scales", m=4096, n=4096, k=7168},
  {"grouped_gemm", m=8192, n=4096, k=2048, e=16}, {"grouped_gemm", m=8192, n=2048, k=4096, e=16, gated=true},
  {"rmsnorm_gemm", m=8192, n=4096, k=4096}, {"cross_entropy", m=8192, n=128256}, {"topk_routing", m=32768, n=128, k=8},
  {"conv2d", n=32, c=256, h=56, w=56, k=256, r=3, s=3, pad=1}, {"conv2d", n=128, c=128, h=56, w=56, k=128, r=3, s=3, pad=1},
}

-- What the role program says of each phase: {phase=, lanes = {{name=, given=, values=, task=}, ...}}.
local function account(plan)
  local phases, lanes = {}, nil
  for line in tostring(plan:kernel()):gmatch "[^\n]+" do
    local kernel, lane = line:match "^kernel ([^:]*)", line:match "^lane ([^:]*):"
    if kernel then
      lanes = {}
      phases[#phases + 1] = {phase = kernel:match "phase ([^,]*)" or "", lanes = lanes}
    elseif lane then
      lanes[#lanes + 1] = {name = lane, values = tonumber(line:match "values in (%d+)"), task = line:match "in '([^']*)'$"}
    elseif line:match "^  registers %d" then
      lanes[#lanes].given = lanes[#lanes].given or tonumber(line:match "%d+")
    end
  end
  return phases
end

local spilling, failed, serialized, wrong = 0, 0, 0, 0

-- Logarithms of what a state is multiplied by from one position to the next: with positive ones it would grow without bounds.
local decays <const> = {mamba2 = "A", gated_delta_rule = "g", kimi_delta_attention = "g"}

-- Random inputs with decays below zero, or nil for those that the device makes.
local function inputs_of(plan)
  local bound = plan.graph.program
  local name = decays[bound.name]
  local inputs = name and bound:inputs{seed = 1}
  for i = 1, name and #inputs[name] or 0 do inputs[name][i] = -math.abs(inputs[name][i]) end
  return inputs
end

-- Milliseconds measured and how the result compares with the reference, as text; empty unless kernels are to run.
local function run(k, plan)
  if not os.getenv "RUN" then return "" end
  local ok, text = pcall(function()
    local inputs = inputs_of(plan)
    local checked = k:check{inputs = inputs}
    wrong = wrong + (checked.ok and 0 or 1)
    return ("%9.4f %s %.1e"):format(k:bench{seconds = 0.2, inputs = inputs}.ms, checked.ok and "right" or "WRONG", checked.relative)
  end)
  failed = failed + (ok and 0 or 1)
  return ok and text or "does not run: " .. tostring(text)
end

local function report(name, plan, found)
  local ok, k = pcall(plan.compile, plan, {target = "cuda"})
  if not ok then
    failed = failed + 1
    return print(name, "is not compiled: " .. tostring(k))
  end
  print(("%-76s %9s %5s %5d %s"):format(name, found and ("%.4f"):format(found.seconds * 1e3) or "", found and found.trials or "", k.spills,
    run(k, plan)))
  spilling = spilling + (k.spills > 0 and 1 or 0)
  for _, p in ipairs(k.problems) do
    print("    " .. p.message)
    serialized = serialized + (p.code == "serialized" and 1 or 0)
  end
  if k.spills == 0 and not os.getenv "ALL" then return end
  for _, phase in ipairs(account(plan)) do
    for _, l in ipairs(phase.lanes) do
      if l.values and l.values > 0 then
        print(("    %-16s %-5s given %4s, needed %4s, values %4d in '%s'"):format(phase.phase, l.name, l.given or k.registers,
          plan.usage.lanes[l.name:match "^[^,]*"], l.values, l.task or ""))
      end
    end
  end
end

local function search(name, bound, device, seconds)
  local ok, found, why = pcall(mr.search, bound, device, {measure = false, seconds = seconds})
  if ok and found then return report(name, found.plan, found) end
  failed = failed + 1
  print(name, "has no plan: " .. tostring(ok and why or found))
end

local function describe(shape)
  local names, words = {}, {shape[1]}
  for size in pairs(shape) do if size ~= 1 then names[#names + 1] = size end end
  table.sort(names)
  for _, size in ipairs(names) do words[#words + 1] = ("%s=%s"):format(size, shape[size]) end
  return table.concat(words, " ")
end

if arg[1] == "plans" then
  for i = 2, #arg do report(arg[i], mr.load_plan(arg[i])) end
elseif arg[2] == "random" then
  local random = dofile(dir .. "../lua/lib/random_programs.lua")
  local first, count = math.tointeger(arg[3]) or 1, math.tointeger(arg[4]) or 100
  for seed = first, first + count - 1 do
    local ok, bound = pcall(function() return random.bind(random.draw(seed)) end)
    if ok then search("random program " .. seed, bound, mr.device(arg[1]), 5) end
  end
else
  local part, parts = (os.getenv "PART" or "1/1"):match "^(%d+)/(%d+)$"
  for i, shape in ipairs(shapes) do
    local name, sizes = describe(shape), {}
    for size, value in pairs(shape) do if size ~= 1 then sizes[size] = value end end
    if name:find(arg[2] or "") and i % parts == part % parts then search(name, mr.examples[shape[1]](sizes), mr.device(arg[1] or "h200")) end
  end
end
print(("%d spill; products of %d are serialized; %d without kernel; %d wrong"):format(spilling, serialized, failed, wrong))
os.exit(spilling == 0 and wrong == 0)
