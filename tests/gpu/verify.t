# Outputs compared in the device's memory: the same is found as on the host, and elements that are wrong where no sample is.
. tests/gpu/lib.sh

cat >"$T/script.lua" <<'L'
local mr = require "millrace"
local core = require "millrace.core"
local function schedule(bound, tile)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end

for _, x in ipairs{{"gemm", {m = 1000, n = 520, k = 264}, {m = 128, n = 64, k = 64}},
    {"gemm", {m = 300, n = 200, k = 64, dtype = "f16", bias = true, activation = "gelu"}, {m = 64, n = 64, k = 64}},
    {"flash_attention", {b = 2, h = 4, m = 520, n = 520, d = 64, causal = true}, {m = 64, n = 64}},
    {"cross_entropy", {m = 48, n = 320}, {m = 16, n = 64}}} do
  local name, bound = x[1], mr.examples[x[1]](x[2])
  local k = schedule(bound, x[3]):compile()
  local want, allowed = core.reference_allowing(bound, nil, {on = "device", seed = 4})
  local got = core.run(k, nil, {seed = 4})
  local found, complete = core.verify(k, k, {seed = 4})
  local same = complete
  for output in pairs(got) do
    local c, f = core.compare(got[output], want[output], allowed[output]), found[output]
    for _, key in ipairs{"wrong", "compared", "unlimited", "telling", "max_abs", "share"} do same = same and c[key] == f[key] end
    same = same and math.abs(c.relative - f.relative) <= 1e-9 * c.relative and math.abs(c.allowed - f.allowed) <= 1e-9 * c.allowed
      and f.apart == 0 and f.unwritten == 0 and f.chunk > 0
  end
  print(name, same and "same" or "different")
  local some, all = core.verify(k, nil, {seed = 4, tiles = 8})
  for output, f in pairs(some) do
    print(name, not all and f.wrong == 0 and f.compared > 0 and f.compared < found[output].compared and "sampled" or "complete")
  end
end

-- A tile is computed twice, another one not at all.
local bound = mr.examples.gemm{m = 2048, n = 2048, k = 256}
local plan, right = schedule(bound, {m = 128, n = 128, k = 64}), schedule(bound, {m = 64, n = 128, k = 64}):compile()
plan:grid{group = 2}                                    -- the kernel computes which tile is at a position
local function without(tile)
  return core.build(plan, true, function(text)
    local changed, n = text:gsub("const int tile = (tile_at_%w+%(at%));", ("const int tile = %%1 == %d ? %d : %%1;"):format(tile, tile == 0 and 1 or 0))
    return assert(n > 0 and changed, "the kernel does not say which tile it computes")
  end)
end
for _, tile in ipairs{0, 255} do
  print("corner " .. tile, core.verify(without(tile), nil, {seed = 1, tiles = 8}).C.wrong > 0 and "found" or "missed")
end
local found = core.verify(without(100), right, {seed = 1, tiles = 8, reference = false}).C
print("inside", found.apart == math.huge and "found" or "missed")
print("nothing wrong", core.verify(plan:compile(), right, {seed = 1, tiles = 8, reference = false}).C.apart < 0.01 and "found" or "missed")
L

t_cmd 'outputs are compared' 0 "$MILLRACE" "$T/script.lua"
t_out '  as on the host' <<E
gemm	same
gemm	sampled
gemm	same
gemm	sampled
flash_attention	same
flash_attention	sampled
cross_entropy	same
cross_entropy	complete
cross_entropy	complete
corner 0	found
corner 255	found
inside	found
nothing wrong	found
E
t_done
