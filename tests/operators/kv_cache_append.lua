-- Stores the new keys and values of each token into a cache in pages: token t is number Length[b] - (the tokens behind it) of its
-- sequence b, so it is in page Table[b, number // page], at number % page, as vLLM and FlashInfer do at each step.
-- kv_cache_append: a tensor of slots says where each token goes, -1 for those of padding.
-- kv_cache_append_decoding: one token a sequence, whose slot is computed from the table and the lengths; rotated before (rope).
local mr = require "millrace"

return {
  {
    name = "kv_cache_append",
    program = mr.program("kv_cache_append", function(p)
      local t, h, d, pages = p:axes("t", "h", "d", "pages")
      local page = p:axis("page", 16)
      local K, V, Slot = p:input("K", {t, h, d}), p:input("V", {t, h, d}), p:input("Slot", {t}, "i32")
      local CacheK, CacheV = p:output("CacheK", {pages, page, h, d}), p:output("CacheV", {pages, page, h, d})
      local slot = p:load("load_slot", Slot)
      CacheK:store("store_k", p:load("load_k", K), {slot // 16, slot % 16, h, d})
      CacheV:store("store_v", p:load("load_v", V), {slot // 16, slot % 16, h, d})
    end),
    small = {{t = 40, h = 2, d = 64, pages = 8}},
    usual = {{t = 8192, h = 8, d = 128, pages = 4096}},
    fill = {Slot = function(sizes, t) return t % 7 == 3 and -1 or t * 3 % (sizes.pages * 16) end},
    formula = function(t, sizes)
      local function cache(X)
        return function(page, at, h, d)
          for i = 0, sizes.t - 1 do
            if t.Slot(i) == page * 16 + at then return X(i, h, d) end
          end
        end
      end
      return {CacheK = cache(t.K), CacheV = cache(t.V)}
    end,
  },
  {
    name = "kv_cache_append_decoding",
    program = mr.program("kv_cache_append_decoding", function(p)
      local b, h, d, n = p:axes("b", "h", "d", "n")         -- n keys of a sequence at most
      local page = p:axis("page", 16)
      local block = p:axis("block", n.size // page.size)
      local pages = p:axis("pages", p.pages or b.size * block.size)
      local K, V = p:input("K", {b, h, d}), p:input("V", {b, h, d})
      local Table, Length = p:input("Table", {b, block}, "i32"), p:input("Length", {b}, "i32")
      local Cos, Sin = p:input("Cos", {n, d}, "f32"), p:input("Sin", {n, d}, "f32")
      local CacheK, CacheV = p:output("CacheK", {pages, page, h, d}), p:output("CacheV", {pages, page, h, d})
      local number = p:load("load_length", Length) - 1
      local index = p:load("load_table", Table, {b, number // 16})
      local cos, sin = p:load("load_cos", Cos, {number, d}), p:load("load_sin", Sin, {number, d})
      local k = p:load("load_k", K)
      local rotated = p:task("rotate", function()
        local half = d.size // 2
        local other = mr.where(d:index():lt(half), -k:at(d, d + half), k:at(d, d - half))
        return (k * cos + other * sin):to "bf16"
      end)
      CacheK:store("store_k", rotated, {index, number % 16, h, d})
      CacheV:store("store_v", p:load("load_v", V), {index, number % 16, h, d})
    end),
    small = {{b = 5, h = 2, d = 64, n = 64}},
    usual = {{b = 256, h = 8, d = 128, n = 8192, pages = 4096}},
    fill = {
      Length = function(sizes, b) return b * 41 % sizes.n + 1 end,
      Table = function(sizes, b, i) return (b * (sizes.n // 16) + i) % (sizes.pages or sizes.b * sizes.n // 16) end,
    },
    formula = function(t, sizes)
      local function cache(X)
        return function(page, at, h, d)
          for b = 0, sizes.b - 1 do
            local number = t.Length(b) - 1
            if t.Table(b, number // 16) == page and number % 16 == at then return X(b, h, d, number) end
          end
        end
      end
      local half = sizes.d // 2
      return {
        CacheK = cache(function(b, h, d, number)
          local other = d < half and -t.K(b, h, d + half) or t.K(b, h, d - half)
          return t.K(b, h, d) * t.Cos(number, d) + other * t.Sin(number, d)
        end),
        CacheV = cache(function(b, h, d) return t.V(b, h, d) end),
      }
    end,
  },
}
