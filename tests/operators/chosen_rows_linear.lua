-- Y = X, but for the s rows Row[b,s] of each sequence, to which Weight[b,s] X[b,Row[b,s]] W^T is added: what a layer with
-- mixture of depths does with the tokens that its router chose (Raposo et al., 2024): gather, product, scatter.
local mr = require "millrace"

return {
  program = mr.program("chosen_rows_linear", function(p)
    local b, t, s, d = p:axes("b", "t", "s", "d")
    local k = p:axis("k", d.size)
    local X, W, Row = p:input("X", {b, t, d}), p:input("W", {d, k}), p:input("Row", {b, s}, "i32")
    local Weight, Y = p:input("Weight", {b, s}, "f32"), p:output("Y", {b, t, d}, "f32")
    p:phase("skip", function()
      Y:store(p:load("load_skip", X))
    end)
    p:phase("chosen", function()
      p:batch(b)
      local row, weight = p:load("load_row", Row), p:load("load_weight", Weight)
      local y = p:carry("y", {s, d}, 0)
      p:loop(k, function() y:add(p:mma("mma", p:load("load_x", X, {b, row, k}), p:load("load_w", W))) end)
      Y:add(p:task("weight", function() return y * weight end), {b, row, d})
    end)
  end),
  small = {{b = 2, t = 128, s = 64, d = 64}, {b = 2, t = 50, s = 13, d = 72}},
  usual = {{b = 8, t = 4096, s = 512, d = 4096}},
  fill = {Row = function(sizes, _, s) return s * (sizes.t // sizes.s) + 1 end},
  formula = function(t, sizes)
    return {Y = function(b, i, d)
      local y = t.X(b, i, d)
      for s = 0, sizes.s - 1 do
        if t.Row(b, s) == i then
          for k = 0, sizes.d - 1 do y = y + t.Weight(b, s) * t.X(b, i, k) * t.W(d, k) end
        end
      end
      return y
    end}
  end,
}
