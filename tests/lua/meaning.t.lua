-- A program whose result depends on the tile that a loop takes is refused where it is bound; one
-- that means something is not, whatever it looks like.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local max, min, exp2, where = mr.max, mr.min, mr.exp2, mr.where
local rowsum, rowmax, rowmin, cumsum, cummax = mr.rowsum, mr.rowmax, mr.rowmin, mr.cumsum, mr.cummax

local function bind(sizes, body)
  local program = mr.program("p", body)
  return pcall(program.bind, program, sizes)
end

local function means(what, sizes, body)
  local good, message = bind(sizes, body)
  tap.ok(good, what .. " has a meaning", message)
end

-- The line of a function that ends with "-- here".
local lines = {}
for line in io.lines(arg[0]) do lines[#lines + 1] = line end
local function marked(f)
  local info = debug.getinfo(f, "S")
  for i = info.linedefined, info.lastlinedefined do
    if lines[i]:find "%-%- here$" then return i end
  end
end

local function depends(what, sizes, axis, body, words)
  local good, message = bind(sizes, body)
  local location = ("meaning.t.lua:%d: the result depends on the tile of '%s'"):format(marked(body), axis)
  if not tap.ok(not good, what .. " has none") then return end
  tap.ok(message:find(location, 1, true), "  at its line", message)
  tap.ok(not words or message:find(words, 1, true), "  and what to do", message)
end

-- A loop over the columns of X that updates `s`, one a row.
local function rows(init, step)
  return function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}), p:output("Y", {m}, "f32")
    local s = p:carry("s", {m}, init)
    p:loop(n, function()
      local x = p:load("load_x", X)
      p:task("step", function() step(s, x, n, p, m) end)
    end)
    Y:store(s)
  end
end

local function rows_mean(what, init, step) means(what, {m = 64, n = 1000}, rows(init, step)) end

-- As rows(), with the line of `step` in the message.
local function rows_depend(what, init, step)
  local good, message = bind({m = 64, n = 1000}, rows(init, step))
  if not tap.ok(not good, what .. " has none") then return end
  tap.ok(message:find(("meaning.t.lua:%d: the result depends on the tile of 'n': carry 's' is updated"):format(
    marked(step)), 1, true), "  at its line", message)
end

-- One carry -------------------------------------------------------------------------------------

rows_mean("a sum", 0, function(s, x, n) s:add(rowsum(x, n)) end)
rows_mean("a sum from 3", 3, function(s, x, n) s:set(s + rowsum(x * x, n)) end)
rows_mean("a maximum", -math.huge, function(s, x, n) s:set(max(rowmax(x, n), s)) end)
rows_mean("a least magnitude", 1e30, function(s, x, n) s:set(min(s, rowmin(x:abs(), n))) end)
rows_mean("a product, by logarithms", 1, function(s, x, n) s:set(s * exp2(rowsum(mr.log2(x:abs() + 0.5), n))) end)
rows_mean("a sum weighted by position", 0, function(s, x, n) s:add(rowsum(x * (n:index() * 0.25 + 1), n)) end)
rows_mean("a sum of alternating signs", 0, function(s, x, n)
  s:add(rowsum(where((n:index() & 1):eq(0), x, -x), n))
end)
rows_mean("how many are positive", 0, function(s, x, n) s:add(rowsum(where(x:gt(0), 1, 0), n)) end)
rows_mean("the last index of a positive one", -1, function(s, x, n)
  s:set(max(s, rowmax(where(x:gt(0), n:index(), -1), n)))
end)
rows_mean("a decay by position", 0, function(s, x, n)
  local last = rowmax(n:index(), n)
  local count = last - rowmin(n:index(), n) + 1
  s:set(s * exp2(-count) + rowsum(x * exp2(n:index() - last), n))
end)
rows_mean("the last value, found by its position", 0, function(s, x, n)
  s:set(rowsum(where(n:index():eq(rowmax(n:index(), n)), x, 0), n))
end)
rows_mean("a mean so far", 0, function(s, x, n)
  local first, count = rowmin(n:index(), n), rowsum(where(n:index():ge(0), 1, 0), n)
  s:set((s * first + rowsum(x, n)) / (first + count))
end)
rows_mean("a log-sum-exp", -1e30, function(s, x, n)
  local top = max(s, rowmax(x, n))
  s:set(top + mr.log2(exp2(s - top) + rowsum(exp2(x - top), n)))
end)
rows_mean("integers", 0, function(s, x, n) s:add(rowsum((x * 100):to "i32", n)) end)

rows_depend("a decay once a tile", 0, function(s, x, n) s:set(s * 0.5 + rowsum(x, n)) end) -- here
rows_depend("a slow decay", 0, function(s, x, n) s:set(s * 0.995 + rowsum(x, n)) end) -- here
rows_depend("the last tile's sum", 0, function(s, x, n)
  s:set(rowsum(x, n)) -- here
end)
rows_depend("the last tile's maximum", 0, function(s, x, n) s:set(rowmax(x, n)) end) -- here
rows_depend("a product of sums", 1, function(s, x, n) s:set(s * rowsum(x, n)) end) -- here
rows_depend("a sum of maxima", 0, function(s, x, n) s:add(rowmax(x, n)) end) -- here
rows_depend("a maximum of sums", -math.huge, function(s, x, n) s:set(max(s, rowsum(x, n))) end) -- here
rows_depend("how many tiles there are", 0, function(s, x, n) s:set(s + 1 + 0 * rowsum(x, n)) end) -- here
rows_depend("a sum that is rounded down after each tile", 0, function(s, x, n)
  s:set(mr.floor(s + rowsum(x, n))) -- here
end)
rows_depend("a sum that is kept above 0", 0, function(s, x, n) s:set(max(s + rowsum(x, n), 0)) end) -- here
rows_depend("a sum of the first of each tile", 0, function(s, x, n)
  s:add(rowsum(where(n:index():eq(rowmin(n:index(), n)), x, 0), n)) -- here
end)

-- One iteration, whatever the tile; and tiles of one, as the axis is batch elsewhere.
means("a decay over an axis of size 1", {m = 64, n = 1}, rows(0, function(s, x, n) s:set(s * 0.5 + rowsum(x, n)) end))
means("a recurrence over parts of one each", {m = 8, s = 5, k = 100}, function(p)
  local m, s, k = p:axes("m", "s", "k")
  local X, Part, Y = p:input("X", {m, s, k}), p:temp("Part", {m, s}, "f32"), p:output("Y", {m}, "f32")
  p:phase("part", function()
    p:batch(s)
    local c = p:carry("c", {m}, 0)
    p:loop(k, function() c:add(rowsum(p:load(X), k)) end)
    Part:store(c)
  end)
  p:phase("join", function()
    local c = p:carry("join", {m}, 0)
    p:loop(s, function() c:set(c * 0.5 + rowsum(p:load(Part), s)) end)
    Y:store(c)
  end)
end)

-- Several carries -------------------------------------------------------------------------------

means("the index of the greatest", {m = 64, n = 512}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m}, "i32")
  local best, at = p:carry("best", {m}, -math.huge), p:carry("at", {m}, -1)
  p:loop(n, function()
    local x = p:load(X)
    p:task("best", function()
      local top = rowmax(x, n)
      at:set(where(top:gt(best), rowmin(where(x:eq(top), n:index(), 1 << 30), n), at))
      best:set(max(best, top))
    end)
  end)
  Y:store(at:to "i32")
end)
depends("the index of the last tile's greatest", {m = 64, n = 512}, "n", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, at = p:input("X", {m, n}), p:output("Y", {m}, "i32"), p:carry("at", {m}, -1)
  p:loop(n, function()
    local x = p:load(X)
    at:set(rowmin(where(x:eq(rowmax(x, n)), n:index(), 1 << 30), n)) -- here
  end)
  Y:store(at)
end)

-- Attention with an online softmax; `wrong` plants a mistake.
local function attention(p, wrong)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d})
  local q = p:load("load_q", Q)
  local mx, l, o = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
  local upto = p:option("causal", "boolean") and m
  return m, n, q, K, V, O, mx, l, o, {upto = upto}
end
means("an online softmax", {m = 300, n = 1000, d = 64}, function(p)
  local m, n, q, K, V, O, mx, l, o = attention(p)
  p:loop(n, function()
    local s = p:mma(q, p:load(K))
    local pr, alpha = p:task("softmax", function()
      local new = max(mx, rowmax(s, n))
      local pr, alpha = exp2(s - new), exp2(mx - new)
      l:set(l * alpha + rowsum(pr, n))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma(pr, p:load(V)))
  end)
  O:store(o / l)
end)
depends("an online softmax that does not rescale its sum", {m = 300, n = 1000, d = 64}, "n", function(p)
  local m, n, q, K, V, O, mx, l, o = attention(p)
  p:loop(n, function()
    local s = p:mma(q, p:load(K))
    local pr, alpha = p:task("softmax", function()
      local new = max(mx, rowmax(s, n))
      local pr, alpha = exp2(s - new), exp2(mx - new)
      l:set(l + rowsum(pr, n)) -- here
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma(pr, p:load(V)))
  end)
  O:store(o / l)
end, "carry 'l'")
depends("one that does not rescale its output", {m = 300, n = 1000, d = 64, causal = true}, "n", function(p)
  local m, n, q, K, V, O, mx, l, o, bounds = attention(p)
  p:loop(n, bounds, function()
    local s = p:mma(q, p:load(K))
    local pr = p:task("softmax", function()
      local s = where(n:index():le(m:index()), s, -math.huge)
      local new = max(mx, rowmax(s, n))
      local pr = exp2(s - new)
      l:set(l * exp2(mx - new) + rowsum(pr, n))
      mx:set(new)
      return pr:to "bf16"
    end)
    o:add(p:mma(pr, p:load(V))) -- here
  end)
  O:store(o / l)
end, "carry 'o'")
depends("one that takes the maximum of its tile alone", {m = 300, n = 1000, d = 64}, "n", function(p)
  local m, n, q, K, V, O, mx, l, o = attention(p)
  p:loop(n, function()
    local s = p:mma(q, p:load(K))
    local pr, alpha = p:task("softmax", function()
      local new = rowmax(s, n)
      local pr, alpha = exp2(s - new), exp2(mx - max(mx, new))
      l:set(l * alpha + rowsum(pr, n))
      mx:set(new) -- here
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma(pr, p:load(V)))
  end)
  O:store(o / l)
end, "carry 'mx'")

-- The softmax of a row of which complete tiles may be masked, which computes -inf - -inf.
depends("a softmax in which complete tiles may be masked", {m = 64, n = 512}, "n", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m}, "f32")
  local mx, l = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0)
  p:loop(n, function()
    local x = p:load(X)
    p:task("softmax", function()
      local s = where(n:index():ge(m:index()), x, -math.huge)
      local new = max(mx, rowmax(s, n))
      l:set(l * exp2(mx - new) + rowsum(exp2(s - new), n)) -- here
      mx:set(new)
    end)
  end)
  Y:store(l)
end, "leaves a NaN in it for some tiles")

-- Bounds ----------------------------------------------------------------------------------------

local function bounded(least, most, mask)
  return function(p)
    local m, n = p:axes("m", "n")
    local X, Y, c = p:input("X", {m, n}), p:output("Y", {m}, "f32"), p:carry("c", {m}, 0)
    local i, j = m:index(), n:index()
    p:loop(n, {from = least and m - least, upto = most and m + most}, function()
      local inside = j:ge(mask and least and i - least or 0)
      if mask and most then inside = inside & j:le(i + most) end
      c:add(rowsum(where(inside, p:load(X), 0), n))
    end)
    Y:store(c)
  end
end
for _, b in ipairs{{nil, 0}, {0, nil}, {2, 2}, {nil, 500}, {700, nil}, {700, -300}} do
  local what = ("of bounds %s and %s"):format(b[1] or "none", b[2] or "none")
  means("a sum " .. what .. ", masked,", {m = 2000, n = 2000}, bounded(b[1], b[2], true))
  local good, message = bind({m = 2000, n = 2000}, bounded(b[1], b[2]))
  tap.ok(not good and message:find("depends on the tile of 'n': this loop visits complete tiles", 1, true),
    "a sum " .. what .. " has none", message)
end
depends("a triangle without its mask", {m = 512, n = 64, k = 512}, "k", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, {upto = m - 64}, function() -- here
    c:add(p:mma(p:load(A), p:load(B)))
  end)
  C:store(c)
end, "where(), by k:index()")
-- Bounds that jump over all that a sample has of the loop's axis.
local function jumping(bound, mask)
  return function(p)
    local t, m, n = p:axis("t", 15), p:axes("m", "n")
    local X, Y = p:input("X", {t, m, n}), p:output("Y", {t, m}, "f32")
    p:batch(t)
    local c, upto = p:carry("c", {m}, 0), bound(t)
    p:loop(n, {upto = upto}, function()
      local x = p:load(X)
      c:add(rowsum(mask and where(n:index():le(mask(t:index())), x, 0) or x, n))
    end)
    Y:store(c)
  end
end
for what, bound in pairs{
    ["a part of five"] = function(t) return t % 5 * 16 - 1 end,
    ["two parts of one axis"] = function(t) return t % 5 * 16 + t // 5 * 16 - 1 end} do
  local good, message = bind({m = 16, n = 96}, jumping(bound))
  tap.ok(not good and message:find("depends on the tile of 'n': this loop visits complete tiles", 1, true),
    "a sum of a bound that jumps, by " .. what .. ", has none", message)
end
means("a sum of a bound that jumps, masked,", {m = 16, n = 96}, jumping(function(t) return t * 16 - 1 end,
  function(t) return t * 16 - 1 end))
-- What is beyond the end of a tensor is zero, and needs no mask.
means("parts of which the last is shorter", {m = 16, n = 1000}, function(p)
  local m, n = p:axes("m", "n")
  local s, k = p:axis("s", 3), p:axis("k", 384)
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, s}, "f32")
  p:batch(s)
  local c = p:carry("c", {m}, 0)
  p:loop(k, {upto = n.size - 1 - s * 384}, function() c:add(rowsum(p:load(X, {m, s * 384 + k}), k)) end)
  Y:store(c)
end)

-- Sliding windows -------------------------------------------------------------------------------

-- Attention of each row to the `window` columns up to its own. `masked`: the score of other columns; `from`: how far
-- before the row the loop begins; zero: the weights are masked, too.
local function sliding(window, o)
  return function(p)
    local m, n, d = p:axes("m", "n", "d")
    local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d})
    local q = p:load("load_q", Q)
    local mx, l, out = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
    p:loop(n, {from = m - (o.from or window - 1), upto = m}, function()
      local s = p:mma(q, p:load(K))
      local pr, alpha = p:task("softmax", function()
        local inside = n:index():le(m:index()) & n:index():gt(m:index() - window)
        local s = o.masked and where(inside, s, o.masked) or s
        local new = max(mx, rowmax(s, n))
        local pr, alpha = exp2(s - new), exp2(mx - new)
        if o.zero then pr = where(inside, pr, 0) end
        l:set(l * alpha + rowsum(pr, n))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() out:set(out * alpha) end)
      out:add(p:mma(pr, p:load(V)))
    end)
    O:store(out / l)
  end
end
local square, flat = {m = 1024, n = 1024, d = 64}, {m = 4096, n = 64, d = 64}
for _, window in ipairs{1, 4, 100, 1000} do
  local what = ("a sliding window of %d "):format(window)
  means(what .. "with a finite mask", square, sliding(window, {masked = -1e30}))
  means(what .. "that begins a tile early", square, sliding(window, {masked = -1e30, from = window + 28}))
  means(what .. "with more columns than rows", {m = 64, n = 4096, d = 64}, sliding(window, {masked = -1e30}))
  means(what .. "that ends before the last rows, with weights of 0,", flat, sliding(window, {masked = -1e30, zero = true}))
  local good, message = bind(square, sliding(window, {}))
  tap.ok(not good and message:find("this loop visits complete tiles", 1, true), what .. "without a mask has none", message)
  good, message = bind(square, sliding(window, {masked = -math.huge}))
  tap.ok(not good and message:find("mask with a large finite number such as -1e30", 1, true),
    what .. "with an infinite mask has none", message)
  if window + flat.n <= flat.m then
    good, message = bind(flat, sliding(window, {masked = -1e30}))
    tap.ok(not good and message:find(("at m = %d 'from' is 64, and the last element is 63"):format(63 + window), 1, true),
      what .. "that ends before the last rows has none: there, masked columns count", message)
  end
end
means("a sliding window that ends with the last row", {m = 163, n = 64, d = 64}, sliding(100, {masked = -1e30}))
local good, message = bind({m = 164, n = 64, d = 64}, sliding(100, {masked = -1e30}))
tap.ok(not good and message:find("at m = 163 'from' is 64", 1, true), "one row more, and it has none", message)
-- Rows that come before all columns: the columns end with the last row.
local function aligned(p)
  local m, n = p:axes("m", "n")
  local X, Y, behind = p:input("X", {m, n}), p:output("Y", {m}, "f32"), m.size - n.size
  local mx, l = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0)
  p:loop(n, {upto = m - behind}, function() -- here
    local x = p:load(X)
    p:task("softmax", function()
      local s = where(n:index():le(m:index() - behind), x, -1e30)
      local new = max(mx, rowmax(s, n))
      l:set(l * exp2(mx - new) + rowsum(exp2(s - new), n))
      mx:set(new)
    end)
  end)
  Y:store(l)
end
means("a triangle that ends in the corner", {m = 512, n = 600}, aligned)
depends("a triangle that begins below the first rows", {m = 600, n = 512}, "n", aligned, "'upto' is -")

-- Several axes, and loops in loops --------------------------------------------------------------

local function boxes(step)
  return function(p)
    local m, r, s = p:axes("m", "r", "s")
    local X, Y, c = p:input("X", {m, r, s}), p:output("Y", {m}, "f32"), p:carry("c", {m}, 0)
    p:loop({r, s}, function() step(c, p:load(X), r, s) end)
    Y:store(c)
  end
end
means("a sum over two axes", {m = 8, r = 9, s = 10}, boxes(function(c, x, r, s) c:add(rowsum(rowsum(x, s), r)) end))
depends("greatest parts of row sums, alone where only one axis is in tiles,", {m = 8, r = 2, s = 2}, "s",
function(p)
  local m, r, s = p:axes("m", "r", "s")
  local X, Y, most = p:input("X", {m, r, s}), p:output("Y", {m}, "f32"), p:carry("most", {m}, -math.huge)
  p:loop(r, function()
    local c = p:carry("c", {m}, 0)
    p:loop(s, function()
      c:add(rowmax(rowsum(p:load(X), s), r)) -- here
    end)
    most:set(max(most, c))
  end)
  Y:store(most)
end)
means("greatest row sums, a loop in a loop,", {m = 8, r = 100, s = 100}, function(p)
  local m, r, s = p:axes("m", "r", "s")
  local X, Y, most = p:input("X", {m, r, s}), p:output("Y", {m}, "f32"), p:carry("most", {m}, -math.huge)
  p:loop(r, function()
    local c = p:carry("c", {m, r}, 0)
    p:loop(s, function() c:add(rowsum(p:load(X), s)) end)
    most:set(max(most, rowmax(c, r)))
  end)
  Y:store(most)
end)
depends("a carry that begins again in each tile of rows", {m = 8, r = 100, s = 100}, "r", function(p)
  local m, r, s = p:axes("m", "r", "s")
  local X, Y, most = p:input("X", {m, r, s}), p:output("Y", {m}, "f32"), p:carry("most", {m}, -math.huge)
  p:loop(r, function()
    local c = p:carry("c", {m}, 0)
    p:loop(s, function() c:add(rowsum(rowsum(p:load(X), s), r)) end)
    most:set(max(most, c)) -- here
  end)
  Y:store(most)
end)
depends("the second of two loops", {m = 8, n = 100, k = 100}, "k", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, Z, Y = p:input("X", {m, n}), p:input("Z", {m, k}), p:output("Y", {m}, "f32")
  local mean, c = p:carry("mean", {m}, 0), p:carry("c", {m}, 0)
  p:loop(n, function() mean:add(rowsum(p:load(X), n) / n.size) end)
  p:loop(k, function()
    c:set(rowsum(p:load(Z) - mean, k) - c) -- here
  end)
  Y:store(c)
end)
depends("a state that halves before a product adds to it", {m = 64, n = 64, k = 512}, "k", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    p:task("decay", function() c:set(c * 0.5) end) -- here
    c:add(p:mma(p:load(A), p:load(B)))
  end)
  C:store(c)
end)
means("packed weights", {m = 16, n = 16, k = 1024}, function(p)
  local m, n, k = p:axes("m", "n", "k")
  local word, group = p:axis("word", k.size // 8), p:axis("group", k.size // 32)
  local A, W, S = p:input("A", {m, k}), p:input("W", {n, word}, "i32"), p:input("S", {n, group})
  local C, c = p:output("C", {m, n}), p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local w = mr.unpack(p:load(W), word, k, "i4") * p:load(S, {n, k // 32})
    c:add(p:mma(p:load(A), w:to "bf16"))
  end)
  C:store(c)
end)

-- Scans and stores ------------------------------------------------------------------------------

local function scanned(value, carry)
  return function(p)
    local m, n = p:axes("m", "n")
    local X, Y, c = p:input("X", {m, n}), p:output("Y", {m, n}, "f32"), p:carry("c", {m}, 0)
    p:loop(n, function()
      local x = p:load(X)
      Y:store(value(x, n, c))
      c:set(carry(x, n, c))
    end)
  end
end
means("a running sum", {m = 8, n = 500}, scanned(function(x, n, c) return cumsum(x, n) + c end,
  function(x, n, c) return c + rowsum(x, n) end))
means("a running maximum above 0", {m = 8, n = 500}, scanned(function(x, n, c) return max(cummax(x, n), c) end,
  function(x, n, c) return max(c, rowmax(x, n)) end))
depends("a running sum of each tile", {m = 8, n = 500}, "n", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}, "f32")
  p:loop(n, function()
    Y:store(cumsum(p:load(X), n)) -- here
  end)
end, "this cumsum goes along one tile")
depends("what is taken from each tile's mean", {m = 8, n = 500}, "n", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}, "f32")
  p:loop(n, function()
    local x = p:load(X)
    Y:store(x - rowsum(x, n)) -- here
  end)
end, "this sum goes along one tile")
means("a running sum along an axis of the grid", {m = 8, n = 500}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}, "f32")
  Y:store(cumsum(p:load(X), n))
end)

---- what no store writes ------------------------------------------------------------

-- A temporary is stored at some indices and read at others: the program is refused if and only if one that is read is
-- stored by none. Indices are functions that work on axes as well as on numbers.
local function partial(n, size, stores, load)
  return bind({i = n, u = n, v = 3, h = size}, function(p)
    local i, u, v, h = p:axes("i", "u", "v", "h")
    local X, T, Y = p:input("X", {i}), p:temp("T", {h}, "f32"), p:output("Y", {u, v}, "f32")
    p:phase("write", function()
      for k, at in ipairs(stores) do T:store("put" .. k, p:load("x" .. k, X), {at(i)}) end
    end)
    p:phase("read", function()
      local t = p:load("t", T, {load(u, v)})
      Y:store("out", p:task("all", function() return t + u:index() * 0 + v:index() * 0 end))
    end)
  end)
end

local function unwritten(n, size, stores, load)
  local written = {}
  for _, at in ipairs(stores) do
    for i = 0, n - 1 do written[at(i)] = true end
  end
  for u = 0, n - 1 do
    for v = 0, 2 do
      local h = load(u, v)
      if h >= 0 and h < size and not written[h] then return true end
    end
  end
  return false
end

math.randomseed(5)
local refused, wrong = 0, nil
for _ = 1, 300 do
  local n, size, step, stores = math.random(1, 20), math.random(1, 60), math.random(1, 3), {}
  for k = 1, math.random(step) do
    local shift = k - math.random(1, 3)
    stores[k] = function(i) return i * step + shift end
  end
  local a, b, c, d, e = math.random(-1, 3), math.random(0, 3), math.random(-3, 6), math.random(1, 3), math.random(2, 5)
  local load = math.random(2) == 1 and function(u, v) return u * a + v * b + c end or
    function(u, v) return (u // d) * a + (u % e) * b + v * step + c end
  local good, message = partial(n, size, stores, load)
  if good == unwritten(n, size, stores, load) then
    wrong = wrong or ("n=%d size=%d: %s"):format(n, size, message)
  elseif not good then
    refused = refused + 1
    if not message:find "'t' reads element %d+ along 'h' of temporary 'T', which no store writes" then wrong = wrong or message end
  end
end
tap.ok(not wrong, "temporaries of which something is read that no store writes are refused, and no others", wrong)
tap.ok(refused > 60 and refused < 240, refused .. " of 300 are refused")
means("a temporary of which a part is stored, and that part read", {i = 24, j = 16}, function(p)
  local i, j = p:axes("i", "j")
  local h = p:axis("h", i.size * 2)
  local X, T, Y = p:input("X", {i, j}), p:temp("T", {h, j}), p:output("Y", {i, j}, "f32")
  p:phase("a", function() T:store("put", p:load("x", X), {i * 2, j}) end)
  p:phase("b", function() Y:store("out", p:load("t", T, {i * 2, j}) * 2) end)
end)

-- A bound that divides an axis is tried where it lies inside the loop, also if that is far from the beginning.
local function divided(by, masked)
  return function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}), p:output("Y", {m}, "f32")
    local s = p:carry("s", {m}, 0)
    p:loop(n, {upto = m // by - 8000 // by}, function()
      local x = p:load("load_x", X):to "f32"
      p:task("step", function() s:set(s + rowsum(masked and where((n:index() * by):le(m:index() - 8000), x, 0) or x, n)) end)
    end)
    Y:store(s)
  end
end
for _, by in ipairs{1, 8} do
  local good, message = bind({m = 65536, n = 4096}, divided(by))
  tap.ok(not good and message:find("the result depends on the tile of 'n'", 1, true), ("a bound of m // %d far away, unmasked, has none"):format(by),
    message)
  means("masked, it", {m = 65536, n = 4096}, divided(by, true))
end

-- What has nothing of an axis that the phase divides is added once by each tile, also where samples see zeros alone.
do
  local good, message = pcall(function()
    return mr.program("twice", function(p)
      local i, h, n, e = p:axes("i", "h", "n", "e")
      local A, B, Key = p:input("A", {i, h}), p:input("B", {i, h, e}), p:input("Key", {i}, "i32")
      local S, T, rows, columns = p:output("S", {n, e}, "f32"), p:output("T", {n}, "f32"), p:axis("rows", n.size), p:axis("columns", e.size)
      p:phase("begin", function()
        S:store("s", p:task("z", function() return (rows:index() + columns:index()):to "f32" * 0 end), {rows, columns})
        T:store("t", p:task("y", function() return rows:index():to "f32" * 0 end), {rows})
      end)
      p:phase("main", function()
        p:batch(i)
        local a, b, key = p:load("a", A), p:load("b", B), p:load("key", Key)
        S:add("add_s", p:task("sums", function() return (b * a):rowsum(h) end), {key, e})
        T:add("add_t", p:task("sum", function() return mr.where(key:gt(1000000), a, 0):rowsum(h) end), {key})
      end)
    end){i = 4, h = 8, n = 64, e = 128}
  end)
  tap.ok(not good and message:find("the result depends on the tile of 'e': each of its tiles adds to 'T'", 1, true),
    "an addition without an axis of the grid is refused", message)
end

-- What a phase stores index by index, another one's loop takes in tiles; where that matters, its tiles are of one.
do
  local bound = mr.program("stored", function(p)
    local h, d = p:axes("h", "d")
    local X, T, Y = p:input("X", {h, d}, "f32"), p:temp("T", {h, d}, "f32"), p:output("Y", {d}, "f32")
    p:phase("one", function()
      p:batch(h)
      local x = p:load(X)
      T:store(p:task("magnitude", function() return x:abs() end))
    end)
    p:phase("two", function()
      local c = p:carry("c", {d}, 0)
      p:loop(h, function()
        local t = p:load(T)
        p:task("most", function() c:set(mr.max(c, t:rowsum(h))) end)
      end)
      Y:store(c)
    end)
  end){h = 64, d = 16}
  tap.ok(not pcall(bound.graph, bound, {tile = {h = 4}}), "a loop that depends on its tiles has tiles of one, as in the phase before")
end

tap.done_testing()
