-- Lanes of more warps than products have rows for: parts of the lane divide the columns of all values.
local mr = require "millrace"
local become, changes, draft = require "millrace.become", require "millrace.changes", require "millrace.draft"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local max, exp2, rowmax, rowsum = mr.max, mr.exp2, mr.rowmax, mr.rowsum

local function schedule(bound, tile, warps, buffers, device)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device(device or "h200"))
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = warps})
  if buffers then plan:buffers(buffers) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  return plan
end

-- The plan is legal, and its kernel right, also with an eye on races. `patterns`: in the kernel.
local function right(what, bound, tile, warps, buffers, patterns, device)
  local plan = schedule(bound, tile, warps, buffers, device)
  local legal, problems = plan:check()
  if not tap.ok(legal, what .. ": legal", tostring(problems)) then return end
  local kernel = plan:compile{target = "host"}
  for _, pattern in ipairs(patterns or {}) do tap.like(kernel.source, pattern, what .. ": " .. pattern) end
  for seed = 1, 2 do
    local verdict = kernel:check{seed = seed, race = seed == 1}
    tap.ok(verdict.ok, ("%s, seed %d"):format(what, seed), tostring(verdict), plan:script())
  end
  return kernel.source
end

-- Rows of a product --------------------------------------------------------------------------------

-- A softmax over complete rows; b: with n or k contiguous.
local function softmax(b, out)
  return mr.program("softmax", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", b == "kn" and {k, n} or {n, k}), p:output("C", {m, n}, out)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("softmax", function()
      local x = exp2((c - rowmax(c, n)) * 0.5)
      return (x / rowsum(x, n)):to(out)
    end))
  end)
end

right("two parts", softmax("nk", "bf16"){m = 128, n = 512, k = 128}, {m = 64, n = 512, k = 64}, 8, {a = 2, b = 2}, {
  "const int row0 = thread %% 128 / 32 %* 16 %+ ",                      -- both have all rows
  "group %* 256 %* 128",                                              -- of the second operand each its own
  "mma_bf16_ss_256_0_0",
  "EACH%(w, 2%)",                                                       -- the parts join what they have of a row
})
right("n contiguous", softmax("kn", "bf16"){m = 64, n = 256, k = 64}, {m = 64, n = 256, k = 64}, 8, nil,
  {"group %* 128 / 64 %* 8192", "mma_bf16_ss_128_0_1"})
right("panels of a part", softmax("kn", "bf16"){m = 64, n = 96, k = 64}, {m = 64, n = 96, k = 64}, 8, nil, {"mma_bf16_ss_48_0_1"})
right("f32", softmax("nk", "f32"){m = 64, n = 128, k = 64}, {m = 64, n = 128, k = 64}, 8)
right("three parts", softmax("nk", "bf16"){m = 64, n = 192, k = 64}, {m = 64, n = 192, k = 64}, 12, nil, {"EACH%(w, 3%)"})
right("two parts of two groups", softmax("nk", "bf16"){m = 128, n = 128, k = 64}, {m = 128, n = 128, k = 64}, 16, nil,
  {"thread %% 256 / 32 %* 16", "group %% 2", "group / 2 %* 64"})
right("ragged columns", softmax("nk", "bf16"){m = 64, n = 120, k = 64}, {m = 64, n = 128, k = 64}, 8)
right("ragged rows", softmax("nk", "bf16"){m = 100, n = 128, k = 64}, {m = 64, n = 128, k = 64}, 8)
right("fewer rows", softmax("nk", "bf16"){m = 32, n = 128, k = 64}, {m = 32, n = 128, k = 64}, 8, nil, {"thread %% 128"})

-- The warps divide rows where these suffice, and where columns do not make up complete instructions.
local rows = right("rows", softmax("nk", "bf16"){m = 128, n = 128, k = 64}, {m = 128, n = 128, k = 64}, 8)
tap.ok(rows and not rows:find "thread %% 128", "128 rows are divided")
rows = right("few columns", softmax("nk", "bf16"){m = 64, n = 40, k = 64}, {m = 64, n = 40, k = 64}, 8)
tap.ok(rows and not rows:find "thread %% 128", "40 columns are not divided")

-- A lane with products of more rows, too, is not divided where these fill its warps.
local function two_products(h)
  return mr.program("two_products", function(p)
    local m, h, n, k = p:axis("m", 64), p:axis("h", h), p:axes("n", "k")
    local A, H, B = p:input("A", {m, k}), p:input("H", {h, k}), p:input("B", {n, k})
    local C, D = p:output("C", {m, n}, "f32"), p:output("D", {h, n}, "f32")
    local b = p:load("load_b", B)
    local c, d = p:mma("mma_c", p:load("load_a", A), b), p:mma("mma_d", p:load("load_h", H), b)
    C:store("store_c", p:task("double", function() return c * 2 end))
    D:store("store_d", p:task("triple", function() return d * 3 end))
  end)
end
right("two products of 64 rows", two_products(64){n = 64, k = 64}, {n = 64}, 8, nil, {"thread %% 128"})
rows = right("one of 128 rows", two_products(128){n = 64, k = 64}, {n = 64}, 8)
tap.ok(rows and not rows:find "thread %% 128", "the lane divides rows")

-- Sparse first operands.
for _, operator in ipairs(dofile(dir .. "../operators/sparse24_gemm.lua")) do
  if operator.name == "sparse24_gemm_native" then
    right("a sparse operand", operator.program{m = 64, n = 128, k = 64}, {m = 64, n = 128}, 8, nil, {"thread %% 128"})
  end
end

-- Values of all kinds ------------------------------------------------------------------------------

local kinds = mr.program("kinds", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, Bias = p:input("A", {m, k}), p:input("B", {n, k}), p:input("Bias", {n}, "f32")
  local C, T, S = p:output("C", {m, n}), p:output("T", {n, m}, "f32"), p:output("S", {n}, "f32")
  local R, X, L = p:output("R", {m}, "f32"), p:output("X", {m, n}, "f32"), p:output("L", {m, n}, "f32")
  local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
  local bias = p:load("load_bias", Bias)
  local y, s, r, x, l = p:task("work", function()
    local y = c + bias
    y = mr.where(n:index():le(m:index() + 70), y, 0)                     -- columns against rows
    return y, y:rowsum(m), rowmax(y, n), y:at(n, n ~ 40), y:cumsum(n)
  end)
  C:store("store_c", p:task("round", function() return y:to "bf16" end))
  T:store("store_t", y)                                                  -- by columns
  S:store("store_s", s)
  R:store("store_r", r)
  X:store("store_x", x)
  L:store("store_l", l)
end)
right("values of all kinds", kinds{m = 64, n = 128, k = 64}, {m = 64, n = 128}, 8, nil, {"thread / 128 %* 4 %+ w"})
right("values of all kinds, three parts", kinds{m = 64, n = 192, k = 64}, {m = 64, n = 192}, 12)
right("values of all kinds, parts of two groups", kinds{m = 128, n = 64, k = 64}, {m = 128, n = 64}, 16)

-- Results as operands ------------------------------------------------------------------------------

-- Each part has some columns of the weights alone, so the second product reads them out of shared memory. The values
-- are the keys, as in latent attention.
local latent = mr.program("latent", function(p)
  local h, n, d = p:axes("h", "n", "d")
  local Q, K, O, Lse = p:input("Q", {h, d}), p:input("K", {n, d}), p:output("O", {h, d}), p:output("Lse", {h}, "f32")
  local q = p:load("load_q", Q)
  local mx, l, o = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
  p:loop(n, function()
    local k = p:load("load_k", K)
    local s = p:mma("mma_qk", q, k)
    local pr, alpha = p:task("softmax", function()
      local s = s * 0.1
      local new = max(mx, rowmax(s, n))
      local pr, alpha = exp2(s - new), exp2(mx - new)
      l:set(l * alpha + rowsum(pr, n))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, k))
  end)
  local out, lse = p:task("finish", function() return (o / l):to "bf16", mr.log2(l) + mx end)
  O:store("store_o", out)
  Lse:store("store_lse", lse)
end)
right("weights", latent{h = 64, n = 192, d = 256}, {h = 64, n = 64, d = 256}, 8, {k = 2},
  {"const u64 da = descriptor%(0x%x+ull, slot_softmax", "mma_bf16_ss_32_0_0", "mma_bf16_ss_128_0_1"})
right("weights, ragged", latent{h = 64, n = 150, d = 128}, {h = 64, n = 64, d = 128}, 8)

-- Synchronous products of single warps ---------------------------------------------------------------

-- A warp fetches all that is contracted of its part's rows of the first operand, and its part's columns of the second one.
for device, group in pairs{a100 = 32, mi300x = 64} do
  local function on(what, ...)
    local bound, tile, warps, patterns = ...
    return right(("%s: %s"):format(device, what), bound, tile, warps, nil, patterns, device)
  end
  on("four parts", softmax("nk", "bf16"){m = 32, n = 128, k = 64}, {m = 16, n = 128, k = 32}, 4,
    {("thread %%%% %d / %d %%* 16"):format(group, group), "EACH%(w, 4%)", "EACH%(cb, " .. (device == "a100" and 4 or 2) .. "%)"})
  on("two parts of two warps", softmax("nk", "bf16"){m = 32, n = 64, k = 64}, {m = 32, n = 64, k = 32}, 4,
    {("thread / %d %%* 32"):format(2 * group), "EACH%(w, 2%)"})
  on("n contiguous", softmax("kn", "bf16"){m = 32, n = 128, k = 64}, {m = 32, n = 128, k = 64}, 8)
  on("n contiguous, 48 columns of a part", softmax("kn", "bf16"){m = 32, n = 96, k = 48}, {m = 32, n = 96, k = 16}, 4)
  on("ragged", softmax("nk", "bf16"){m = 25, n = 120, k = 72}, {m = 32, n = 128, k = 32}, 4)
  on("few rows", softmax("nk", "f32"){m = 5, n = 64, k = 64}, {m = 5, n = 64, k = 64}, 4)
  on("values of all kinds", kinds{m = 32, n = 128, k = 64}, {m = 32, n = 128}, 4, {"thread / %d+ %* 2 %+ w"})
  on("weights", latent{h = 32, n = 96, d = 64}, {h = 16, n = 32, d = 64}, 2)
  local bytes = mr.examples.gemm{m = 16, n = 64, k = 128, dtype = "i8", out = "i32"}
  on("bytes", bytes, {m = 16, n = 64, k = 64}, 2)
  local few = on("columns of three warps", softmax("nk", "bf16"){m = 16, n = 40, k = 64}, {m = 16, n = 40, k = 64}, 3)
  tap.ok(few and not few:find "EACH%(w, 3%)", device .. ": 40 columns are not divided")
end

-- Columns of warps that a plan asks for -------------------------------------------------------------

local function in_columns(device, bound, tile, warps, columns)
  local plan = schedule(bound, tile, warps, nil, device)
  plan:lane("c0", {columns = columns})
  return plan
end
for device, threads in pairs{h200 = 32, a100 = 32, mi300x = 64} do
  for _, g in ipairs{{64, 128, 8, 2}, {128, 64, 8, 2}, {128, 128, 8, 4}, {48, 96, 6, 2}, {40, 64, 4, 2}, {64, 64, 4, 1}} do
    local m, n, warps, columns = table.unpack(g)
    if device ~= "h200" or warps % (4 * columns) == 0 then
      local plan = in_columns(device, softmax("nk", "bf16"){m = m, n = n, k = 96}, {m = m, n = n, k = 32}, warps, columns)
      local what = ("%s: %d x %d on %d warps in %d columns"):format(device, m, n, warps, columns)
      local legal, problems = plan:check()
      if tap.ok(legal, what, tostring(problems)) then
        local kernel = plan:compile{target = "host"}
        local divided = kernel.source:find(("thread %%%% %d / %d"):format(warps // columns * threads, threads))
        tap.is(divided ~= nil, columns > 1, "  has parts where it says so")
        for seed = 1, 2 do
          local verdict = kernel:check{seed = seed, race = seed == 1}
          tap.ok(verdict.ok, "  right", tostring(verdict), plan:script())
        end
      end
    end
  end
end
-- The scripts of such plans make them again, and one becomes another by edits.
do
  local bound = softmax("nk", "bf16"){m = 64, n = 128, k = 64}
  local plan, other = in_columns("a100", bound, {m = 64, n = 128, k = 32}, 4, 2), in_columns("a100", bound, {m = 64, n = 128, k = 32}, 4, nil)
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write(plan:script())
  f:close()
  tap.is(mr.load_plan(path, bound):script(), plan:script(), "a script has the columns")
  os.remove(path)
  tap.like(tostring(plan:diff(other)), "columns=2", "so has a comparison")
  local wanted = other:script()
  for _, s in ipairs(become.statements(other, plan)) do draft.apply(other, s) end
  tap.is(other:script(), plan:script(), "a plan gets the columns of another one")
  plan:lane("c0", {columns = false})
  tap.is(plan:script(), wanted, "  and gives them back")
end
-- Lanes whose warps stand alike share a text.
do
  local plan = mr.plan(mr.examples.gemm{m = 128, n = 64, k = 128}:graph{tile = {m = 128, n = 64, k = 64}}, mr.device "a100")
  plan:split("m", 2)
  for i = 0, 1 do
    plan:lane("c" .. i, {warps = 4, columns = 2})
    for _, task in ipairs{"mma.", "epilogue.", "store_c."} do plan:append(task .. i, {lane = "c" .. i}) end
  end
  plan:append("load_a", {lane = "p0"})
  plan:append("load_b", {lane = "p0"})
  plan:fill_waits()
  local _, fetches = plan:compile{target = "host"}.source:gsub("shared_matrices%(x", "")
  tap.is(fetches, 2, "two lanes have one text")
  -- What is tried has more columns, and fewer; and with other warps, columns that these can be in.
  local function tried(of)
    local texts = {}
    for _, c in ipairs(changes.of(of)) do texts[#texts + 1] = c.text end
    return table.concat(texts, "\n")
  end
  tap.like(tried(plan), '"c0", {columns=4}%)', "changes have more columns")
  tap.like(tried(plan), '"c1", {columns=false}%)', "  and fewer")
  tap.ok(not tried(mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 1024, n = 1024, k = 512})):find "columns=%w", "  not where groups of warps multiply")
end
-- What cannot be is refused.
for _, x in ipairs{
  {"a100", 4, 3, 128, "the 4 warps of lane 'c0' cannot be in 3 columns", "columns=2"},
  {"h200", 8, 4, 128, "lane 'c0' has 4 columns of 2 warps, and 4 warps make the products of 'mma' together", "columns=2"},
  {"mi300x", 4, 4, 96, "'mma' has 96 columns, which lane 'c0' divides among 4 columns of warps, and each takes a multiple of 16", "columns=2"},
  {"a100", 4, 2, 40, "'mma' has 40 columns, which lane 'c0' divides among 2 columns of warps, and each takes a multiple of 8", "columns=false"},
} do
  local device, warps, columns, n, message, hint = table.unpack(x)
  local plan = in_columns(device, softmax("nk", "bf16"){m = 64, n = n, k = 64}, {m = 64, n = n, k = 64}, warps, columns)
  local legal, problems = plan:check()
  tap.ok(not legal and problems[1].code == "product" and problems[1].message == message, message, tostring(problems))
  tap.like(problems[1].hint, hint, "  and what can be is said")
end
do
  local plan = in_columns("a100", softmax("nk", "bf16"){m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 64}, 4)
  plan:lane("p0", {warps = 4, columns = 2})
  local legal, problems = plan:check()
  tap.ok(not legal and problems[1].message:find("lane 'p0' has no product of a matrix unit", 1, true), "a lane without products", tostring(problems))
end

-- The search finds such lanes where a tile has complete rows.
local found = mr.search(latent{h = 64 * 264, n = 4096, d = 512}, mr.device "h200", {trials = 300, seconds = 60, measure = false})
local script = found.plan:script()
tap.like(script, "warps=8", "the search gives a lane eight warps")
tap.like(script, "h=64", "for 64 rows")
found = mr.search(softmax("nk", "bf16"){m = 8192, n = 512, k = 512}, mr.device "h200", {trials = 300, seconds = 60, measure = false})
tap.ok(found.plan, "a softmax over rows of 512 sums has a plan")

-- Where each warp multiplies by itself, the search tries columns of warps: those that fetch less, and those that give all warps work.
for _, x in ipairs{
  {"mi300x", {m = 4096, n = 4096, k = 4096}, {m = 128, n = 256, k = 32}, "large tiles", "columns=%d"},
  {"a100", {m = 16, n = 4096, k = 4096}, nil, "few rows", "columns=4"},
} do
  local device, sizes, tile, what, columns = table.unpack(x)
  found = mr.search(mr.examples.gemm(sizes), mr.device(device), {trials = 200, seconds = 60, measure = false, tile = tile})
  tap.like(found.plan:script(), columns, ("%s: the search has warps in columns for %s"):format(device, what))
end
-- Columns of a product that they do not divide are refused as such.
found = mr.search(mr.examples.gemm{m = 1024, n = 88, k = 1024}, mr.device "a100", {trials = 200, seconds = 60, measure = false,
  tile = {m = 128, n = 88, k = 64}})
tap.ok(found.plan and not found.plan:script():find "columns=%d", "a search of 88 columns, whose halves are no complete instructions")
tap.done_testing()
