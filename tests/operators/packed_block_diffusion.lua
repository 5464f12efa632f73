-- Attention of block_diffusion_attention.lua for texts that lie one after the other: text b has the rows from Begin[b] to before
-- Begin[b + 1], of which the first half are noisy, and the other half clean. In blocks of `size`, a noisy query sees the noisy keys of its
-- own block and the clean keys of the blocks before; a clean one the clean keys of its own block and of the blocks before.
--
-- Diffusion models of language are trained so on packed documents. A tile is 128 rows of one half of a text.
local mr = require "millrace"
local max, min, exp2, where, rowsum = mr.max, mr.min, mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

-- What the programs have in common: axes, and for a phase of tiles of rows i of a half of a text the values that say where these are.
local function setting(p)
  local b, h, m, d = p:axes("b", "h", "m", "d")                               -- m rows of half a text at most
  local s = {b = b, h = h, m = m, d = d, n = p:axis("n", m.size), rows = p:axis("rows", p.rows), half = p:axis("half", 2)}
  s.size, s.i, s.j = p:option("size", "integer", 32), p:axis("i", 128), p:axis("j", 128)
  s.block, s.bounds = p:axis("block", -(-m.size // 128)), p:axis("bounds", b.size + 1)
  s.Begin = p:input("Begin", {s.bounds}, "i32")
  return s
end

local function tile(p, s, name)
  p:batch(s.b, s.h, s.half, s.block)
  local first = p:load("load_first_" .. name, s.Begin, {s.b})
  local each = (p:load("load_end_" .. name, s.Begin, {s.b + 1}) - first) // 2  -- rows of a half
  local before, half = s.block:index() * 128, s.half:index()
  local left = each - before
  local at = first + half * each + before
  return {first = first, each = each, before = before, half = half, left = left, at = at, clean = first + each, noisy = first + before}
end

-- Where rows of the tile are stored, those behind the text nowhere.
local function store_at(p, s, t, name)
  return p:task("rows_" .. name, function() return where(s.i:index():lt(t.left), t.at + s.i:index(), -1) end)
end

-- Calls body(name, axis, index, seen, options) for the clean and the noisy keys of the queries of a tile.
local function keys(p, s, t, body)
  local i, n, j, size = s.i, s.n, s.j, s.size
  local clean = min(t.each, t.before + (128 - size) + t.half * size)
  body("clean", n, t.clean + n, function()
    return (n:index() // size):lt((t.before + i:index()) // size + t.half)
  end, {length = where(t.left:gt(0), clean, 0), typical = p.typical})
  body("noisy", j, t.noisy + j, function()
    return (j:index() // size):eq(i:index() // size)
  end, {length = where(t.half:eq(0), t.left, 0), typical = p.typical and 32})
end

local forward = mr.program("packed_block_diffusion", function(p)
  local s = setting(p)
  local i, h, d, rows = s.i, s.h, s.d, s.rows
  local Q, K, V = p:input("Q", {rows, h, d}), p:input("K", {rows, h, d}), p:input("V", {rows, h, d})
  local O, L = p:output("O", {rows, h, d}), p:output("L", {h, rows}, "f32")
  local t = tile(p, s, "q")
  local q = p:load("load_q", Q, {t.at + i, h, d})
  local mx, l, o = p:carry("mx", {i}, -1e30), p:carry("l", {i}, 0), p:carry("o", {i, d}, 0)
  keys(p, s, t, function(name, n, key, seen, options)
    p:loop(n, options, function()
      local x = p:mma("mma_qk_" .. name, q, p:load("load_k_" .. name, K, {key, h, d}))
      local pr, alpha = p:task("softmax_" .. name, function()
        local x = where(seen(), x * (LOG2E / math.sqrt(d.size)), -1e30)
        local new = max(mx, x:rowmax(n))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(n))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale_" .. name, function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv_" .. name, pr, p:load("load_v_" .. name, V, {key, h, d})))
    end)
  end)
  local out, lse = p:task("finish", function()
    return (o / max(l, 1e-30)):to "bf16", (mx + mr.log2(max(l, 1e-30))) * (1 / LOG2E)
  end)
  local row = store_at(p, s, t, "q")
  O:store("store_o", out, {row, h, d})
  L:store("store_l", lse, {h, row})
end)

local backward = mr.program("packed_block_diffusion_backward", function(p)
  local s = setting(p)
  local i, h, m, d, rows, size, scale = s.i, s.h, s.m, s.d, s.rows, s.size, 1 / math.sqrt(s.d.size)
  local Q, K, V = p:input("Q", {rows, h, d}), p:input("K", {rows, h, d}), p:input("V", {rows, h, d})
  local O, dO, L = p:input("O", {rows, h, d}), p:input("dO", {rows, h, d}), p:input("L", {h, rows}, "f32")
  local dQ, dK, dV = p:output("dQ", {rows, h, d}), p:output("dK", {rows, h, d}), p:output("dV", {rows, h, d})
  local Delta = p:temp("Delta", {h, rows}, "f32")

  p:phase("delta", function()
    p:batch(h)
    local o, go = p:load("load_o", O), p:load("load_go", dO)
    Delta:store("store_delta", p:task("delta", function() return rowsum(o * go, d) end))
  end)

  p:phase("queries", function()
    local t = tile(p, s, "q")
    local q, go = p:load("load_q", Q, {t.at + i, h, d}), p:load("load_go_q", dO, {t.at + i, h, d})
    local l, delta = p:load("load_l", L, {h, t.at + i}), p:load("load_delta", Delta, {h, t.at + i})
    local dq = p:carry("dq", {i, d}, 0)
    keys(p, s, t, function(name, n, key, seen, options)
      p:loop(n, options, function()
        local k, v = p:load("load_k_" .. name, K, {key, h, d}), p:load("load_v_" .. name, V, {key, h, d})
        local x, dp = p:mma("mma_qk_" .. name, q, k), p:mma("mma_dp_" .. name, go, v)
        local ds = p:task("softmax_" .. name, function()
          local w = where(seen(), exp2((x * scale - l) * LOG2E), 0)
          return (w * (dp - delta) * scale):to "bf16"
        end)
        dq:add(p:mma("mma_dq_" .. name, ds, k))
      end)
    end)
    dQ:store("store_dq", p:task("round_dq", function() return dq:to "bf16" end), {store_at(p, s, t, "q"), h, d})
  end)

  p:phase("keys", function()
    local t = tile(p, s, "k")
    local k, v = p:load("load_k", K, {t.at + i, h, d}), p:load("load_v", V, {t.at + i, h, d})
    local dk, dv = p:carry("dk", {i, d}, 0), p:carry("dv", {i, d}, 0)
    local function queries(name, row, seen, options)
      p:loop(m, options, function()
        local q, go = p:load("load_q_of_" .. name, Q, {row, h, d}), p:load("load_go_of_" .. name, dO, {row, h, d})
        local l, delta = p:load("load_l_of_" .. name, L, {h, row}), p:load("load_delta_of_" .. name, Delta, {h, row})
        local x, dp = p:mma("mma_s_of_" .. name, k, q), p:mma("mma_dp_of_" .. name, v, go)
        local weights, ds = p:task("softmax_of_" .. name, function()
          local w = where(seen(m:index() // size, i:index() // size), exp2((x * scale - l) * LOG2E), 0)
          return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
        end)
        dv:add(p:mma("mma_dv_of_" .. name, weights, go))
        dk:add(p:mma("mma_dk_of_" .. name, ds, q))
      end)
    end
    -- Queries are counted from the first row of the tile; of the noisy ones, clean keys are seen from the next block on alone.
    queries("noisy", t.noisy + m, function(a, c) return where(t.half:eq(0), a:eq(c), a:gt(c)) end,
      {length = where(t.half:eq(0), min(t.left, 128), t.left), typical = p.typical})
    queries("clean", t.clean + t.before + m, function(a, c) return a:ge(c) end,
      {length = where(t.half:eq(0), 0, t.left), typical = p.typical and p.typical // 2})
    local of_k, of_v = p:task("round", function() return dk:to "bf16", dv:to "bf16" end)
    local row = store_at(p, s, t, "k")
    dK:store("store_dk", of_k, {row, h, d})
    dV:store("store_dv", of_v, {row, h, d})
  end)
end)

-- Where text b begins: texts of different lengths, in two halves.
local function begin(sizes, b)
  return b == sizes.b and sizes.rows or sizes.rows * b * (b + 2) // (sizes.b * (sizes.b + 2)) // 2 * 2
end

local function text(sizes, row)
  local b = 0
  while begin(sizes, b + 1) <= row do b = b + 1 end
  return b, (begin(sizes, b + 1) - begin(sizes, b)) // 2
end

local function sees(sizes, r, c)                        -- rows of a query and of a key
  local b, m = text(sizes, r)
  if text(sizes, c) ~= b then return false end
  local i, j = r - begin(sizes, b), c - begin(sizes, b)
  local clean_i, clean_j, bi, bj = i >= m, j >= m, i % m // sizes.size, j % m // sizes.size
  if clean_i then return clean_j and bi >= bj end
  return clean_j and bi > bj or not clean_j and bi == bj
end

local function score(t, sizes, h, r, c)
  local sum = 0
  for x = 0, sizes.d - 1 do sum = sum + t.Q(r, h, x) * t.K(c, h, x) end
  return sum / math.sqrt(sizes.d)
end

local function forward_formula(t, sizes)
  local function row(h, r, x)
    local over, under = 0, 0
    for c = 0, sizes.rows - 1 do
      if sees(sizes, r, c) then
        local w = math.exp(score(t, sizes, h, r, c))
        over, under = over + w * (x and t.V(c, h, x) or 0), under + w
      end
    end
    return over / under, math.log(under)
  end
  return {O = function(r, h, x) return (row(h, r, x)) end, L = function(h, r) return (select(2, row(h, r))) end}
end

-- O and L are those that are given, which need not be of the same Q, K and V.
local function backward_formula(t, sizes)
  local function weight(h, r, c) return sees(sizes, r, c) and math.exp(score(t, sizes, h, r, c) - t.L(h, r)) or 0 end
  local function ds(h, r, c)
    local w, sum = weight(h, r, c), 0
    for x = 0, w > 0 and sizes.d - 1 or -1 do sum = sum + t.dO(r, h, x) * (t.V(c, h, x) - t.O(r, h, x)) end
    return w * sum / math.sqrt(sizes.d)
  end
  local function all(f)
    local sum = 0
    for row = 0, sizes.rows - 1 do sum = sum + f(row) end
    return sum
  end
  return {
    dQ = function(r, h, x) return all(function(c) return ds(h, r, c) * t.K(c, h, x) end) end,
    dK = function(c, h, x) return all(function(r) return ds(h, r, c) * t.Q(r, h, x) end) end,
    dV = function(c, h, x) return all(function(r) return weight(h, r, c) * t.dO(r, h, x) end) end,
  }
end

local small = {{b = 2, h = 1, m = 60, d = 32, rows = 140, size = 8}, {b = 1, h = 1, m = 130, d = 32, rows = 260, size = 32}}

return {
  {
    name = "packed_block_diffusion",
    program = forward, small = small, fill = {Begin = begin},
    usual = {{b = 8, h = 32, m = 2048, d = 128, rows = 16384, size = 32, typical = 512}},
    formula = forward_formula,
  },
  {
    name = "packed_block_diffusion_backward",
    program = backward, small = small,
    usual = {{b = 8, h = 32, m = 2048, d = 128, rows = 16384, size = 32}},
    fill = {Begin = begin, L = function(_, h, r) return 2 + (h + r) % 3 / 4 end},
    formula = backward_formula,
  },
}
