-- Y[i] = X[i] A[e]^T B[e]^T for the rows i of each segment, e its adapter: low-rank updates of many adapters in one batch
-- (Punica's SGMV and vLLM's multi-LoRA). Segment s has the rows First[s] to First[s + 1] - 1 and the adapter Adapter[s].
-- lora_decoding: each row has an adapter of its own (BGMV).
local mr = require "millrace"

return {
  {
    name = "lora_grouped",
    program = mr.program("lora_grouped", function(p)
      local s, m, k, n, r, e = p:axes("s", "m", "k", "n", "r", "e")
      local most = p:axis("most", p:option("most", "integer", m.size))        -- rows of the longest segment
      local i, bound = p:axis("i", 64), p:axis("bound", s.size + 1)
      local block = p:axis("block", (most.size + i.size - 1) // i.size)
      local X, A, B = p:input("X", {m, k}), p:input("A", {e, r, k}), p:input("B", {e, n, r})
      local First, Adapter = p:input("First", {bound}, "i32"), p:input("Adapter", {s}, "i32")
      local Low, Y = p:temp("Low", {m, r}), p:output("Y", {m, n}, "f32")
      local function rows(name, first, last)                 -- of a block of a segment, -1 behind the last one
        return p:task(name, function()
          local row = first + block:index() * i.size + i:index()
          return mr.where(row:lt(last), row, -1)
        end)
      end
      p:phase("shrink", function()
        p:batch(s, block)
        local row = rows("rows", p:load("load_first", First, {s}), p:load("load_last", First, {s + 1}))
        local adapter, low = p:load("load_adapter", Adapter), p:carry("low", {i, r}, 0)
        p:loop(k, function()
          low:add(p:mma("mma_a", p:load("load_x", X, {row, k}), p:load("load_a", A, {adapter, r, k})))
        end)
        Low:store("store_low", low, {row, r})
      end)
      p:phase("expand", function()
        p:batch(s, block)
        local row = rows("rows_b", p:load("load_begin", First, {s}), p:load("load_end", First, {s + 1}))
        local adapter = p:load("load_adapter_b", Adapter)
        Y:store("store_y", p:mma("mma_b", p:load("load_low", Low, {row, r}), p:load("load_b", B, {adapter, n, r})), {row, n})
      end)
    end),
    small = {{s = 3, m = 150, k = 64, n = 64, r = 16, e = 4}, {s = 2, m = 40, k = 72, n = 40, r = 8, e = 2}},
    usual = {{s = 8, m = 4096, k = 4096, n = 4096, r = 16, e = 8, most = 1024},
      {s = 8, m = 4096, k = 4096, n = 4096, r = 64, e = 8, most = 1024}},
    fill = {
      First = function(sizes, s) return math.min(sizes.m, s * (sizes.m // sizes.s + 3)) end,
      Adapter = function(sizes, s) return (s * 3 + 1) % sizes.e end,
    },
    formula = function(t, sizes)
      return {Y = function(i, j)
        local s = 0
        while s < sizes.s and t.First(s + 1) <= i do s = s + 1 end
        if s == sizes.s then return nil end
        local e, sum = t.Adapter(s), 0
        for r = 0, sizes.r - 1 do
          local low = 0
          for k = 0, sizes.k - 1 do low = low + t.X(i, k) * t.A(e, r, k) end
          sum = sum + low * t.B(e, j, r)
        end
        return sum
      end}
    end,
  },
  {
    name = "lora_decoding",
    program = mr.program("lora_decoding", function(p)
      local b, k, n, r, e = p:axes("b", "k", "n", "r", "e")
      local X, A, B = p:input("X", {b, k}), p:input("A", {e, r, k}), p:input("B", {e, n, r})
      local Adapter, Low, Y = p:input("Adapter", {b}, "i32"), p:temp("Low", {b, r}, "f32"), p:output("Y", {b, n})
      p:phase("shrink", function()
        p:batch(b)
        local adapter, low = p:load("load_adapter", Adapter), p:carry("low", {r}, 0)
        p:loop(k, function()
          local x, a = p:load("load_x", X), p:load("load_a", A, {adapter, r, k})
          p:task("product", function() low:add((x * a):rowsum(k)) end)
        end)
        Low:store("store_low", low)
      end)
      p:phase("expand", function()
        p:batch(b)
        local low, w = p:load("load_low", Low), p:load("load_b", B, {p:load("load_adapter_b", Adapter), n, r})
        Y:store("store_y", p:task("sum", function() return (low * w):rowsum(r):to "bf16" end))
      end)
    end),
    small = {{b = 3, k = 64, n = 64, r = 16, e = 4}, {b = 5, k = 136, n = 40, r = 8, e = 3}},
    usual = {{b = 64, k = 4096, n = 4096, r = 16, e = 32}},
    fill = {Adapter = function(sizes, b) return b * 5 % sizes.e end},
    formula = function(t, sizes)
      return {Y = function(b, j)
        local e, sum = t.Adapter(b), 0
        for r = 0, sizes.r - 1 do
          for k = 0, sizes.k - 1 do sum = sum + t.X(b, k) * t.A(e, r, k) * t.B(e, j, r) end
        end
        return sum
      end}
    end,
  },
}
