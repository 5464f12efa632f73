-- embedding: Y[t,d] = W[Token[t],d], the first layer of a language model.
-- embedding_gradient: dW[v,d] = sum over the t with Token[t] = v of dY[t,d].
local mr = require "millrace"

local function token(sizes, t) return t * t * 7 % sizes.v end

return {
  {
    name = "embedding",
    program = mr.program("embedding", function(p)
      local t, v, d = p:axes("t", "v", "d")
      local Token, W, Y = p:input("Token", {t}, "i32"), p:input("W", {v, d}), p:output("Y", {t, d})
      Y:store(p:load("load_w", W, {p:load("load_token", Token), d}))
    end),
    small = {{t = 64, v = 100, d = 64}, {t = 37, v = 50, d = 72}},
    usual = {{t = 8192, v = 128256, d = 4096}},
    fill = {Token = token},
    formula = function(t) return {Y = function(i, d) return t.W(t.Token(i), d) end} end,
  },
  {
    name = "embedding_gradient",
    program = mr.program("embedding_gradient", function(p)
      local t, v, d = p:axes("t", "v", "d")
      local Token, dY = p:input("Token", {t}, "i32"), p:input("dY", {t, d})
      local dW = p:output("dW", {v, d}, "f32")
      p:phase("zero", function()
        dW:store(p:task("zeros", function() return (v:index() + d:index()):to "f32" * 0 end))
      end)
      p:phase("add", function()
        dW:add(p:load("load_dy", dY), {p:load("load_token", Token), d})
      end)
    end),
    small = {{t = 64, v = 20, d = 64}, {t = 37, v = 50, d = 72}},
    usual = {{t = 8192, v = 128256, d = 4096}},
    fill = {Token = token},
    formula = function(t, sizes)
      return {dW = function(v, d)
        local sum = 0
        for i = 0, sizes.t - 1 do if t.Token(i) == v then sum = sum + t.dY(i, d) end end
        return sum
      end}
    end,
  },
}
