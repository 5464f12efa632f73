-- One step of an LSTM: z[b,g,h] = sum over i of X[b,i] W[g,h,i] + sum over j of H[b,j] U[g,h,j] + Bias[g,h] for the four gates
-- g = input, forget, cell, output; C = sigmoid(z_f) C + sigmoid(z_i) tanh(z_c), H = sigmoid(z_o) tanh(C), as torch.nn.LSTMCell.
local mr = require "millrace"

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

return {
  program = mr.program("lstm_cell", function(p)
    local b, h, i = p:axes("b", "h", "i")
    local g, j = p:axis("g", 4), p:axis("j", h.size)
    local X, H, C = p:input("X", {b, i}), p:input("H", {b, j}), p:input("C", {b, h}, "f32")
    local W, U, Bias = p:input("W", {g, h, i}), p:input("U", {g, h, j}), p:input("Bias", {g, h}, "f32")
    local NewH, NewC = p:output("NewH", {b, h}), p:output("NewC", {b, h}, "f32")
    local z = {}
    for gate = 0, 3 do z[gate] = p:carry("z" .. gate, {b, h}, 0) end
    p:loop(i, function()
      local x = p:load("load_x", X)
      for gate = 0, 3 do z[gate]:add(p:mma("mma_w" .. gate, x, p:load("load_w" .. gate, W, {gate, h, i}))) end
    end)
    p:loop(j, function()
      local old = p:load("load_h", H)
      for gate = 0, 3 do z[gate]:add(p:mma("mma_u" .. gate, old, p:load("load_u" .. gate, U, {gate, h, j}))) end
    end)
    local c, bias = p:load("load_c", C), {}
    for gate = 0, 3 do bias[gate] = p:load("load_bias" .. gate, Bias, {gate, h}) end
    local new_h, new_c = p:task("gates", function()
      local cell = mr.sigmoid(z[1] + bias[1]) * c + mr.sigmoid(z[0] + bias[0]) * mr.tanh(z[2] + bias[2])
      return (mr.sigmoid(z[3] + bias[3]) * mr.tanh(cell)):to "bf16", cell
    end)
    NewH:store("store_h", new_h)
    NewC:store("store_c", new_c)
  end),
  small = {{b = 64, h = 64, i = 64}, {b = 10, h = 40, i = 56}},
  usual = {{b = 256, h = 1024, i = 1024}},
  formula = function(t, sizes)
    local function z(b, g, h)
      local sum = t.Bias(g, h)
      for i = 0, sizes.i - 1 do sum = sum + t.X(b, i) * t.W(g, h, i) end
      for j = 0, sizes.h - 1 do sum = sum + t.H(b, j) * t.U(g, h, j) end
      return sum
    end
    local function tanh(x) return 2 * sigmoid(2 * x) - 1 end
    local function c(b, h) return sigmoid(z(b, 1, h)) * t.C(b, h) + sigmoid(z(b, 0, h)) * tanh(z(b, 2, h)) end
    return {NewC = c, NewH = function(b, h) return sigmoid(z(b, 3, h)) * tanh(c(b, h)) end}
  end,
}
