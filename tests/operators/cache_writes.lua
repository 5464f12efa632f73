-- What is done to queries, keys and values before attention: rope_cached rotates the first elements of heads by angles that a table has
-- for each position; reshape_and_cache_fp8 scales keys and values to e4m3 and stores them in pages; qkv_norm_rope divides a row in
-- heads, norms and rotates queries and keys, and stores keys and values where Slot says.
local mr = require "millrace"
local where = mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "rope_cached",
    program = mr.program("rope_cached", function(p)
      local t, h, d = p:axes("t", "h", "d")
      local half, both, r = p:axis("half", p.rot // 2), p:axis("both", p.rot), p:axis("positions", p.positions or 4096)
      local X, Pos, Cache = p:input("X", {t, h, d}), p:input("Pos", {t}, "i32"), p:input("Cache", {r, both}, "f32")
      local Y = p:output("Y", {t, h, d})
      local pos = p:load("load_pos", Pos)
      local c, s = p:load("load_cos", Cache, {pos, half}), p:load("load_sin", Cache, {pos, half + half.size})
      local a, b = p:load("load_a", X, {t, h, half}), p:load("load_b", X, {t, h, half + half.size})
      local ya, yb = p:task("rotate", function() return a * c - b * s, b * c + a * s end)
      Y:store("store_a", ya, {t, h, half})
      Y:store("store_b", yb, {t, h, half + half.size})
      if p.rot < d.size then
        local unrotated = p:axis("unrotated", d.size - p.rot)
        Y:store("store_unrotated", p:load("load_unrotated", X, {t, h, unrotated + p.rot}), {t, h, unrotated + p.rot})
      end
    end),
    small = {{t = 16, h = 2, d = 64, rot = 32, positions = 64}, {t = 7, h = 3, d = 32, rot = 32, positions = 50}},
    usual = {{t = 8192, h = 32, d = 128, rot = 128}, {t = 8192, h = 32, d = 128, rot = 64}},
    formula = function(t, sizes)
      return {
        Y = function(i, h, d)
          local half = sizes.rot // 2
          if d >= sizes.rot then return t.X(i, h, d) end
          local q = d % half
          local c, s = t.Cache(t.Pos(i), q), t.Cache(t.Pos(i), q + half)
          return d < half and t.X(i, h, d) * c - t.X(i, h, d + half) * s or t.X(i, h, d) * c + t.X(i, h, d - half) * s
        end,
      }
    end,
  },
  {
    name = "reshape_and_cache_fp8",
    program = mr.program("reshape_and_cache_fp8", function(p)
      local t, h, d = p:axes("t", "h", "d")
      local block, slot = p:axis("blocks", p.blocks), p:axis("slot", 16)
      local K, V, Slot = p:input("K", {t, h, d}), p:input("V", {t, h, d}), p:input("Slot", {t}, "i32")
      local KS, VS = p:input("KS", {h}, "f32"), p:input("VS", {h}, "f32")
      local KC, VC = p:output("KC", {block, slot, h, d}, "e4m3"), p:output("VC", {block, slot, h, d}, "e4m3")
      local s = p:load("load_slot", Slot)
      local k, v, ks, vs = p:load(K), p:load(V), p:load(KS), p:load(VS)
      local a, b, page, at = p:task("scale", function()
        local page = where(s:lt(0), -1, s // 16)
        return k / ks, v / vs, page, s % 16
      end)
      KC:store(a, {page, at, h, d})
      VC:store(b, {page, at, h, d})
    end),
    small = {{t = 7, h = 3, d = 32, blocks = 2}},
    usual = {{t = 8192, h = 8, d = 128, blocks = 2048}},
    tolerance = 0.08,
    fill = {
      Slot = function(sizes, t) return t % 5 == 3 and -1 or t * 3 % (sizes.blocks * 16) end,
      KS = function() return 0.5 end,
      VS = function() return 0.25 end,
    },
    formula = function(t, sizes)
      local function get(f, s, scale)
        return function(b, o, h, d)
          for i = 0, sizes.t - 1 do
            if t.Slot(i) == b * 16 + o then return f(i, h, d) / scale end
          end
          return nil
        end
      end
      return {KC = get(t.K, t.KS, 0.5), VC = get(t.V, t.VS, 0.25)}
    end,
  },
  {
    name = "qkv_norm_rope",
    program = mr.program("qkv_norm_rope", function(p)
      local t, h, hk, d = p:axes("t", "h", "hk", "d")
      local half, width, r = p:axis("half", d.size // 2), p:axis("width", (h.size + 2 * hk.size) * d.size), p:axis("slots", p.slots)
      local X, GQ, GK = p:input("X", {t, width}), p:input("GQ", {d}), p:input("GK", {d})
      local C, S, Slot = p:input("C", {t, half}, "f32"), p:input("S", {t, half}, "f32"), p:input("Slot", {t}, "i32")
      local Q, KC, VC = p:output("Q", {t, h, d}), p:output("KC", {r, hk, d}), p:output("VC", {r, hk, d})
      local c, s, slot = p:load(C), p:load(S), p:load(Slot)
      local function rotate(name, head, first, G)
        local a, b = p:load(name .. "_a", X, {t, head * d.size + half + first}), p:load(name .. "_b", X, {t,
          head * d.size + half + (first + d.size // 2)})
        local ga, gb = p:load(name .. "_ga", G, {half}), p:load(name .. "_gb", G, {half + d.size // 2})
        return p:task(name, function()
          local r = mr.rsqrt(((a * a):rowsum(half) + (b * b):rowsum(half)) / d.size + 1e-6)
          local x, y = a * r * ga, b * r * gb
          return x * c - y * s, y * c + x * s
        end)
      end
      local qa, qb = rotate("q", h, 0, GQ)
      local ka, kb = rotate("k", hk, h.size * d.size, GK)
      Q:store("store_qa", qa, {t, h, half})
      Q:store("store_qb", qb, {t, h, half + d.size // 2})
      KC:store("store_ka", ka, {slot, hk, half})
      KC:store("store_kb", kb, {slot, hk, half + d.size // 2})
      VC:store("store_v", p:load("load_v", X, {t, hk * d.size + d + (h.size + hk.size) * d.size}), {slot, hk, d})
    end),
    small = {{t = 5, h = 2, hk = 1, d = 64, slots = 9}},
    usual = {{t = 8192, h = 32, hk = 8, d = 128, slots = 65536}},
    fill = {Slot = function(sizes, t) return (t * 2 + 1) % sizes.slots end},
    formula = function(t, sizes)
      local function rot(i, base, d, G)
        local r = 1 / math.sqrt(sum(function(k) return t.X(i, base + k) ^ 2 end, sizes.d) / sizes.d + 1e-6)
        local hf = sizes.d // 2
        local q = d % hf
        local a, b = t.X(i, base + q) * r * G(q), t.X(i, base + q + hf) * r * G(q + hf)
        return d < hf and a * t.C(i, q) - b * t.S(i, q) or b * t.C(i, q) + a * t.S(i, q)
      end
      local function of(slot)
        for i = 0, sizes.t - 1 do
          if t.Slot(i) == slot then return i end
        end
      end
      return {
        Q = function(i, h, d) return rot(i, h * sizes.d, d, t.GQ) end,
        KC = function(sl, h, d)
          local i = of(sl)
          return i and rot(i, (sizes.h + h) * sizes.d, d, t.GK)
        end,
        VC = function(sl, h, d)
          local i = of(sl)
          return i and t.X(i, (sizes.h + sizes.hk + h) * sizes.d + d)
        end,
      }
    end,
  },
}
