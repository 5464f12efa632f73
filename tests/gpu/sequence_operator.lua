-- sequence_operator.lua FOLDER: the package and the module that torch_sequence.py calls, from a plan that the model alone chooses.
local mr = require "millrace"
local gemm, folder = mr.examples.gemm, arg[1]

-- Two layers of an MLP without its nonlinearity. What is between the layers is kept in one half of a state.
local mlp = mr.sequence("mlp", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, up, down, kept = s:input("x", {m, d}), s:input("up", {2, f, d}), s:input("down", {2, d, f}), s:state("kept", {2, m, d})
  local h, i, y = s:temp("h", {m, f}), s:temp("i", {m, f}), s:output("y", {m, d})
  s:call("up", gemm{m = m, n = f, k = d}, {A = x, B = up:rows(0, 1), C = h})
  s:call("down", gemm{m = m, n = d, k = f}, {A = h, B = down:rows(0, 1), C = kept:rows(1, 1)})
  s:call("up2", gemm{m = m, n = f, k = d}, {A = kept:rows(1, 1), B = up:rows(1, 1), C = i})
  s:call("down2", gemm{m = m, n = d, k = f}, {A = i, B = down:rows(1, 1), C = y})
end)
local k = mlp{m = 256, d = 256, f = 512}:plan("h200", {trials = 40, seconds = 600, measure = false}):compile{target = "cuda"}
k:export(folder .. "/operator", {torch = true})
k:export(folder .. "/module", {name = "mlp_module"})
