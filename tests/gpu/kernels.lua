-- kernels.lua - generated kernels against the reference on the CPU; TAP. For kernels.t.
--
-- Three seeds each: an error that moves more than rounding does is a race.
local mr = require "millrace"
local tap = dofile "tests/lua/tap.lua"

local function try(name, plan)
  local ok, found = pcall(function()
    local k, seen = plan:compile{target="cuda"}, {}
    for seed = 1, 3 do
      local error = k:check{seed=seed}
      seen[seed] = ("%s %.2e"):format(error.ok and "right" or "wrong", error.relative)
    end
    return table.concat(seen, ", ")
  end)
  tap.ok(ok and not found:find "wrong", name, found)
end

local function file(name, bound) return mr.load_plan(name, table.unpack{bound}) end

-- products: interior tiles, ragged ones, both orders of both operands
for _, s in ipairs{{512, 512, 512}, {1024, 768, 256}, {200, 264, 136}, {128, 256, 64},
    {136, 304, 72}, {2048, 512, 1000}} do
  try("gemm " .. table.concat(s, " x "),
    file("gemm_cooperative", mr.examples.gemm{m=s[1], n=s[2], k=s[3]}))
end
for _, order in ipairs{{"km", "nk"}, {"mk", "kn"}, {"km", "kn"}} do
  try(("gemm of %s and %s"):format(order[1], order[2]),
    file("gemm_cooperative", mr.examples.gemm{m=512, n=512, k=320, a=order[1], b=order[2]}))
end

-- products whose blocks load together: along either axis, pairs and fours, panels and rows
for _, order in ipairs{{"mk", "nk"}, {"km", "kn"}} do
  for _, grid in ipairs{{raster="rows", group=8, cluster=2}, {raster="columns", group=8, cluster=2},
      {raster="rows", group=16, cluster=4}} do
    for _, s in ipairs{{2048, 2048, 512}, {1000, 1304, 328}} do
      local plan = file("gemm_cooperative", mr.examples.gemm{m=s[1], n=s[2], k=s[3], a=order[1], b=order[2]})
      plan:grid(grid)
      try(("gemm %s of %s and %s, clusters of %d by %s"):format(table.concat(s, " x "), order[1], order[2],
        grid.cluster, grid.raster), plan)
    end
  end
end
for _, name in ipairs{"overlap", "pingpong"} do
  local plan = file("attention_" .. name, mr.examples.flash_attention{b=1, h=4, m=1000, d=128})
  plan:grid{cluster=2}
  try(("attention_%s, clusters of 2"):format(name), plan)
end
for _, causal in ipairs{false, true} do
  for _, c in ipairs{2, 4} do
    local plan = file("attention_serial", mr.examples.flash_attention{b=1, h=8, hkv=2, m=1000, d=128, causal=causal})
    plan:grid{cluster=c, along="h", longest_first=causal}
    try(("attention_serial%s, clusters of %d heads"):format(causal and ", causal" or "", c), plan)
  end
end

-- attention: every shipped plan, masks of all kinds
for _, options in ipairs{{}, {causal=true}, {window=100, causal=true}, {softcap=20}, {hkv=1},
    {d=64}, {d=64, causal=true}} do
  for _, name in ipairs{"serial", "overlap", "pingpong"} do
    for _, m in ipairs(name == "pingpong" and {512, 300} or {300}) do
      local sizes, title = {b=1, h=2, m=m, d=128}, {}
      for key, value in pairs(options) do
        sizes[key] = value
        title[#title + 1] = key .. "=" .. tostring(value)
      end
      table.sort(title)
      try(("attention_%s of %d %s"):format(name, m, table.concat(title, " ")),
        file("attention_" .. name, mr.examples.flash_attention(sizes)))
    end
  end
end

-- two phases: interior tiles, a part that ends early, parts without keys
for _, s in ipairs{{b=2, h=16, hkv=2, n=4096, d=128}, {b=1, h=8, n=1000, d=64, splits=3}, {b=1, h=4, n=200, d=128, splits=7}} do
  local plan = file("decoding_split", mr.examples.flash_decoding(s))
  plan:fill_waits()                     -- a part without keys has no iteration
  try(("decoding_split of %d keys"):format(s.n), plan)
end

-- integers between bounds, and asked whether they are at one: a compiler got it wrong
local clamped = mr.program("clamped", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "i32"), p:output("Y", {m, n}, "i32")
  local y = mr.max(mr.min(p:load(X), 5), 0)
  Y:store(mr.where(y:gt(1), mr.where(y:eq(5), 70, y * 3), 900 - y))
end){m=64, n=64}
local plan = mr.plan(clamped:graph{tile={m=64, n=64}}, mr.device "h200")
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
try("integers between bounds", plan)

-- elements of 4 bits, loaded and stored; parts at addresses of their own
local function in_order(bound, tile)
  local plan = mr.plan(bound:graph{tile=tile}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end
local copy = mr.program("copy", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, p.from), p:output("Y", {m, n}, p.to)
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("convert", function() return (x * 4):to(p.to) end))
end)
for _, x in ipairs{{"e2m1", "bf16"}, {"i4", "f32"}, {"f32", "e2m1"}, {"bf16", "i4"}, {"i4", "e2m1"},
    {"f32", "e8m0"}, {"e8m0", "f32"}, {"f32", "u8"}, {"u8", "e8m0"}} do
  try(("%s to %s"):format(x[1], x[2]), in_order(copy{m=100, n=192, from=x[1], to=x[2]}, {m=64, n=64}))
end
local products = dofile "tests/lua/lib/programs.lua".products_of_parts
for _, z in ipairs{{g=5, m=128, n=192, k=256}, {g=3, m=70, n=40, k=88}, {g=3, m=64, n=64, k=256, wtype="e2m1"}} do
  try(("products of parts at addresses, k=%d %s"):format(z.k, z.wtype or "bf16"), in_order(products(z), {m=64, n=64, k=64}))
end

-- what a search finds
for _, case in ipairs{
    {"gemm", {m=512, n=512, k=512}},
    {"gemm", {m=200, n=264, k=136}},
    {"gemm", {m=512, n=512, k=512, a="km", b="kn", bias=true, activation="gelu"}},
    {"fp4_gemm", {m=16, n=512, k=512}},
    {"fp4_gemm", {m=200, n=264, k=512}},
    {"flash_attention", {b=1, h=2, m=512, d=128}},
    {"flash_attention", {b=1, h=2, m=512, d=64, causal=true}},
    {"flash_attention", {b=1, h=4, hkv=2, m=300, d=128, causal=true, window=128}},
    {"flash_decoding", {b=2, h=8, hkv=2, n=500, d=64, splits=8}},
    {"flash_decoding", {b=1, h=4, n=1000, d=128, splits=3}},
    {"flash_decoding", {b=4, h=32, hkv=4, n=4096, d=128}}} do
  local found = mr.search(mr.examples[case[1]](case[2]), mr.device "h200", {trials=60})
  if found then try("a searched plan for " .. case[1], found.plan) end
end

tap.done_testing()
