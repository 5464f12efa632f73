-- Y[t,:] = D0 (silu(G0 x) * (U0 x)) + the sum over the experts e of token t of weight[t,e] D[e] (silu(G[e] x) * (U[e] x)), x = X[t,:]:
-- a mixture of experts, of which one is shared by all tokens.
--
-- DeepSeek-V2 and V3, Qwen2-MoE, GLM-4.5. Rows are sorted by expert and each expert's are filled up to blocks: Token[blk,i] is the token of
-- a row, or -1, and Weight[blk,i] its weight; Expert[blk] is the expert of a block. The results of experts are added up in f32.
local mr = require "millrace"

local program = mr.program("fused_moe", function(p)
  local t, h, d, e = p:axes("t", "h", "d", "e")
  local rows, top = p:option("rows", "integer", 128), p:option("top", "integer", 2)
  local blk, i = p:axis("blk", t.size * top // rows + e.size), p:axis("i", rows)
  local X, Y = p:input("X", {t, h}, "f16"), p:output("Y", {t, h}, "f32")
  local G, U, D = p:input("G", {e, d, h}, "f16"), p:input("U", {e, d, h}, "f16"), p:input("D", {e, h, d}, "f16")
  local G0, U0, D0 = p:input("G0", {d, h}, "f16"), p:input("U0", {d, h}, "f16"), p:input("D0", {h, d}, "f16")
  local Token, Weight = p:input("Token", {blk, i}, "i32"), p:input("Weight", {blk, i}, "f32")
  local Expert = p:input("Expert", {blk}, "i32", {sorted = true})
  local Shared, Routed = p:temp("Shared", {t, d}, "f16"), p:temp("Routed", {blk, i, d}, "f16")

  p:phase("shared_up", function()
    local g, u = p:carry("g0", {t, d}, 0), p:carry("u0", {t, d}, 0)
    p:loop(h, function()
      local x = p:load("load_x0", X)
      g:add(p:mma("mma_g0", x, p:load("load_g0", G0)))
      u:add(p:mma("mma_u0", x, p:load("load_u0", U0)))
    end)
    Shared:store("store_shared", p:task("gate0", function() return mr.silu(g) * u end))
  end)
  p:phase("shared_down", function()
    local y = p:carry("y0", {t, h}, 0)
    p:loop(d, function()
      y:add(p:mma("mma_d0", p:load("load_shared", Shared), p:load("load_d0", D0)))
    end)
    Y:store("store_y", y)
  end)
  p:phase("routed_up", function()
    p:batch(blk)
    local token, expert = p:load("token_up", Token), p:load("expert_up", Expert)
    local g, u = p:carry("g", {i, d}, 0), p:carry("u", {i, d}, 0)
    p:loop(h, function()
      local x = p:load("load_x", X, {token, h})
      g:add(p:mma("mma_g", x, p:load("load_g", G, {expert, d, h})))
      u:add(p:mma("mma_u", x, p:load("load_u", U, {expert, d, h})))
    end)
    Routed:store("store_routed", p:task("gate", function() return mr.silu(g) * u end))
  end)
  p:phase("routed_down", function()
    p:batch(blk)
    local token, expert, weight = p:load("token_down", Token), p:load("expert_down", Expert), p:load("load_weight", Weight)
    local y = p:carry("y", {i, h}, 0)
    p:loop(d, function()
      y:add(p:mma("mma_d", p:load("load_routed", Routed), p:load("load_d", D, {expert, h, d})))
    end)
    Y:add("add_y", p:task("weigh", function() return y * weight end), {token, h})
  end)
end)

-- Row i of block blk is number (blk * rows + i) of an expert's; the blocks are divided among the experts, and the last two rows of each
-- block are padding.
local function token(sizes, blk, i)
  local rows = sizes.rows or 128
  return i < rows - 2 and (blk * rows + i) % sizes.t or -1
end
local function expert(sizes, blk)
  local blocks = sizes.t * (sizes.top or 2) // (sizes.rows or 128) + sizes.e
  return blk * sizes.e // blocks
end

local function formula(T, sizes)
  local rows, top = sizes.rows or 128, sizes.top or 2
  local known = {}
  local function hidden(e, t)  -- of an expert, or of the shared one, 0
    known[e * sizes.t + t] = known[e * sizes.t + t] or {}
    local a = known[e * sizes.t + t]
    if not a[1] then
      for d = 1, sizes.d do
        local g, u = 0, 0
        for h = 0, sizes.h - 1 do
          g = g + T.X(t, h) * (e == 0 and T.G0(d - 1, h) or e > 0 and T.G(e - 1, d - 1, h))
          u = u + T.X(t, h) * (e == 0 and T.U0(d - 1, h) or e > 0 and T.U(e - 1, d - 1, h))
        end
        a[d] = g / (1 + math.exp(-g)) * u
      end
    end
    return a
  end
  return {Y = function(t, h)
    local sum, a = 0, hidden(0, t)
    for d = 1, sizes.d do sum = sum + a[d] * T.D0(h, d - 1) end
    for blk = 0, sizes.t * top // rows + sizes.e - 1 do
      for i = 0, rows - 1 do
        if T.Token(blk, i) == t then
          local e = T.Expert(blk)
          a = hidden(e + 1, t)
          for d = 1, sizes.d do sum = sum + T.Weight(blk, i) * a[d] * T.D(e, h, d - 1) end
        end
      end
    end
    return sum
  end}
end

return {
  program = program,
  small = {{t = 32, h = 32, d = 64, e = 2, rows = 16}},
  usual = {{t = 8192, h = 7168, d = 2048, e = 8, top = 4}, {t = 128, h = 2048, d = 768, e = 128, top = 8, rows = 16}},
  fill = {Token = token, Expert = expert},
  formula = formula,
}
