# Random inputs that the device makes are those that the host makes of the same seed.
. tests/gpu/lib.sh

cat >"$T/script.lua" <<'L'
local mr = require "millrace"
local function schedule(bound, tile, text)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan:compile()
end
-- What is loaded is stored: every element of every input is seen.
local copy = mr.program("copy", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}, p.dtype)
  Y:store("store_y", p:load("load_x", X))
end)
local function same(what, kernel, bound)
  for _, seed in ipairs{1, -7, 123456789012345} do
    local here, there = kernel:run(bound:inputs{seed = seed}), kernel:run(nil, {seed = seed})
    local equal = true
    for name, x in pairs(here) do equal = equal and x:max_error(there[name]) == 0 end
    print(what, seed, equal and "same" or "different")
  end
end
for _, dtype in ipairs{"bf16", "f16", "f32"} do
  local bound = copy{m = 192, n = 1000, dtype = dtype}
  same("copy of " .. dtype, schedule(bound, {m = 64, n = 64}), bound)
end
local bound = mr.examples.dequant_gemm{m = 64, n = 128, k = 256, group = 64}
same("weights of 4 bits", schedule(bound, {m = 64, n = 64, k = 64}), bound)
local bound = mr.examples.fp4_gemm{m = 64, n = 128, k = 256}
same("inputs of 4 bits", schedule(bound, {m = 64, n = 64, k = 64}), bound)
local bound = mr.examples.flash_attention{b = 2, h = 2, m = 256, n = 512, d = 64}
local k = mr.load_plan("attention_serial", bound):compile()
same("attention", k, bound)
print("check", k:check{seed = 3, reference = "device"}.ok and "same" or "different")
print("bench", k:bench{seconds = 0.05}.runs > 2 and "same" or "different")
print("trace", k:trace{seed = 3}.measured and "same" or "different")
L

t_cmd 'kernels run on inputs of both' 0 "$MILLRACE" "$T/script.lua"
while IFS=$'\t' read -r what seed same; do
	t_is "$what $seed" "${same:-$seed}" "same"
done <"$T/out"
t_is 'all of them' "$(wc -l <"$T/out")" 21
t_done
