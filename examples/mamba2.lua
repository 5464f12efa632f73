-- mamba2: all of Mamba2's scan. For each batch b and head h, position by position,
--
--   state[p,n] = exp(dt[t] A[h]) state[p,n] + dt[t] x[t,p] B[t,n],   out[t,p] = sum over n of C[t,n] state[p,n] + D[h] x[t,p]
--
-- and then times silu(z[t,p]), with B and C of group h // (h / g). It is computed in chunks (Dao and Gu, "Transformers
-- are SSMs", 2024), in five phases: the running sums dA of dt A in each chunk; what each chunk adds to the state (as
-- chunk_state); the state with which each chunk begins, chunk after chunk; the products C B of each chunk; the output
-- (as chunk_scan).
--
-- sizes    b batch, s sequence, h heads, p head dim, n state
-- options  g      groups of heads that share B and C; must divide h (1)
--          chunk  (256)
--          init   true: with the state before the first position; else it is zero (false)
--          D      false: without the term D x (true)
--          z      true: with the gate (false)
--          dtype  of x, B, C, z, out and of what is between the phases ("bf16")
--          decay  dtype of dt, A, D and of states ("f32"; "f64" if dtype is)
local mr = require "millrace"
local exp2, cumsum = mr.exp2, mr.cumsum

local LOG2E <const> = 1.4426950408889634

return mr.program("mamba2", function(p)
  local b, s, h, hd, n = p:axes("b", "s", "h", "p", "n")
  local chunk = p:option("chunk", "integer", 256)
  p:check(chunk >= 1, "chunk must be at least 1")
  local g, c = p:axis("g", p.g or 1), p:axis("c", (s.size + chunk - 1) // chunk)
  local head = p:axis("head", h.size)                     -- h, of which a tile has several
  local t, l = p:axis("t", chunk), p:axis("l", chunk)     -- positions of a chunk, as the sums, as the rows ...
  local j, k = p:axis("j", chunk), p:axis("k", chunk)     -- ... and as the products of two phases see them
  local dtype = p.dtype or "bf16"
  local decay = p.decay or (dtype == "f64" and "f64" or "f32")
  p:check(h.size % g.size == 0, "g must divide h")
  local function pos(i) return c * chunk + i end
  local group = h // (h.size // g.size)

  local X, B, C = p:input("X", {b, s, h, hd}), p:input("B", {b, s, g, n}), p:input("C", {b, s, g, n})
  local Dt, A = p:input("dt", {b, s, h}, decay), p:input("A", {h}, decay)
  local Init = p:option("init", "boolean") and p:input("init", {b, h, hd, n}, decay)
  local D = p:option("D", "boolean", true) and p:input("D", {h}, decay)
  local Z = p:option("z", "boolean") and p:input("Z", {b, s, h, hd})
  local Out, Final = p:output("out", {b, s, h, hd}), p:output("final", {b, h, hd, n}, decay)
  local DtC, DA = p:temp("dtc", {b, h, c, l}, decay), p:temp("dA", {b, h, c, l}, decay)
  local Add, State = p:temp("add", {b, c, h, hd, n}, decay), p:temp("state", {b, c, h, hd, n}, dtype)
  local CB = p:temp("CB", {b, c, g, l, k}, dtype)

  p:phase("decay", function()
    p:batch(b, c)
    local dt, a = p:load("load_dt", Dt, {b, pos(t), head}), p:load("load_a", A, {head})     -- 0 beyond the end
    DtC:store("store_dt", dt, {b, head, c, t})
    DA:store("store_da", p:task("sums", function() return cumsum(dt * a, t):to(decay) end), {b, head, c, t})
  end)

  p:phase("chunk_state", function()
    p:batch(b, c, h)
    local last = p:load("load_last", DA, {b, h, c, chunk - 1})
    local acc = p:carry("acc", {hd, n}, 0)
    p:loop(j, function()
      local dt, dA = p:load("load_dtj", DtC, {b, h, c, j}), p:load("load_daj", DA, {b, h, c, j})
      local x = p:load("load_xj", X, {b, pos(j), h, hd})
      local xs = p:task("scale", function() return (x * (exp2((last - dA) * LOG2E) * dt)):to(dtype) end)
      acc:add(p:mma("mma_state", xs, p:load("load_b", B, {b, pos(j), group, n})))
    end)
    Add:store("store_add", p:task("convert_add", function() return acc:to(decay) end))
  end)

  p:phase("pass", function()
    p:batch(b, h)
    local state = p:carry("running", {hd, n}, 0)
    if Init then
      local init = p:load("load_init", Init)
      p:task("begin", function() state:set(init) end)
    end
    p:loop(c, {batch = true}, function()
      local add, last = p:load("load_add", Add), p:load("load_end", DA, {b, h, c, chunk - 1})
      State:store("store_state", p:task("before", function() return state:to(dtype) end))
      p:task("step", function() state:set(state * exp2(last * LOG2E) + add) end)
    end)
    Final:store("store_final", p:task("after", function() return state:to(decay) end))
  end)

  p:phase("cb", function()
    p:batch(b, c, g)
    local cb = p:mma("mma_cb", p:load("load_cl", C, {b, pos(l), g, n}), p:load("load_bk", B, {b, pos(k), g, n}))
    CB:store("store_cb", p:task("convert_cb", function() return cb:to(dtype) end))
  end)

  p:phase("chunk_scan", function()
    p:batch(b, c, h)
    local dA = p:load("load_da", DA)
    local acc = p:carry("y", {l, hd}, 0)
    acc:add(p:mma("mma_c", p:load("load_c", C, {b, pos(l), group, n}), p:load("load_state", State)))
    p:task("scale_state", function() acc:set(acc * exp2(dA * LOG2E)) end)
    p:loop(k, {upto = l}, function()
      local cb = p:load("load_cb", CB, {b, c, group, l, k})
      local dt_k, dA_k = p:load("load_dtk", DtC, {b, h, c, k}), p:load("load_dak", DA, {b, h, c, k})
      local w = p:task("weights", function()
        local w = cb * (exp2(mr.min(dA * LOG2E - dA_k * LOG2E, 0)) * dt_k)
        return mr.where(k:index():le(l:index()), w, 0):to(dtype)
      end)
      acc:add(p:mma("mma_x", w, p:load("load_x", X, {b, pos(k), h, hd})))
    end)
    local d = D and p:load("load_d", D)
    local x = D and p:load("load_skip", X, {b, pos(l), h, hd})
    local z = Z and p:load("load_z", Z, {b, pos(l), h, hd})
    Out:store("store_out", p:task("finish", function()
      local y = D and acc + d * x or acc
      if Z then y = y * mr.silu(z) end
      return y:to(dtype)
    end), {b, pos(l), h, hd})
  end)
end)
