-- chunk_scan: the output of Mamba2's scan, chunk by chunk.
--
--   out[l,p] = exp(dA[l]) sum over n of C[l,n] states[p,n]
--            + sum over k <= l of CB[l,k] exp(min(dA[l] - dA[k], 0)) dt[k] x[k,p]
--            + D[h] x[l,p],    then times silu(z[l,p])
--
-- for every batch b, chunk c and head h. Rows l of x, z, C and out stand at position
-- c chunk + l of the sequence; C and CB are those of group h // (h / g); states is the
-- state with which the chunk begins. The last chunk may be ragged.
-- Formula: _chunk_scan_fwd of state-spaces/mamba (Dao and Gu, "Transformers are SSMs", 2024).
--
-- sizes    b batch, s sequence, h heads, p head dim, n state
-- options  g      groups of heads that share C and CB; must divide h (1)
--          chunk  (256)
--          D      false: without the term D x (true)
--          z      true: with the gate (false)
--          dtype  of x, z, C, CB, states and out ("bf16")
--          decay  dtype of dt, dA and D ("f32"; "f64" if dtype is)
local mr = require "millrace"
local exp2 = mr.exp2

local LOG2E <const> = 1.4426950408889634

return mr.program("chunk_scan", function(p)
  local b, s, h, hd, n = p:axes("b", "s", "h", "p", "n")
  local chunk = p:option("chunk", "integer", 256)
  p:check(chunk >= 1, "chunk must be at least 1")
  local g, l = p:axis("g", p.g or 1), p:axis("l", chunk)
  local k = p:axis("k", chunk)                            -- l as the reduction sees it
  local c = p:axis("c", (s.size + chunk - 1) // chunk)
  local dtype = p.dtype or "bf16"
  local decay = p.decay or (dtype == "f64" and "f64" or "f32")
  p:check(h.size % g.size == 0, "g must divide h")

  local X, C = p:input("X", {b, s, h, hd}), p:input("C", {b, s, g, n})
  local CB, States = p:input("CB", {b, c, g, l, k}), p:input("states", {b, c, h, hd, n})
  local Dt, DA = p:input("dt", {b, h, c, l}, decay), p:input("dA", {b, h, c, l}, decay)
  local D = p:option("D", "boolean", true) and p:input("D", {h}, decay)
  local Z = p:option("z", "boolean") and p:input("Z", {b, s, h, hd})
  local Out = p:output("out", {b, s, h, hd})
  p:batch(b, c, h)

  local pos, group = c * chunk + l, h // (h.size // g.size)
  local dA = p:load("load_da", DA)
  local acc = p:carry("acc", {l, hd}, 0)
  acc:add(p:mma("mma_state", p:load("load_c", C, {b, pos, group, n}), p:load("load_state", States)))
  p:task("scale_state", function() acc:set(acc * exp2(dA * LOG2E)) end)
  p:loop(k, {upto = l}, function()
    local cb = p:load("load_cb", CB, {b, c, group, l, k})
    local dt_k, dA_k = p:load("load_dt", Dt, {b, h, c, k}), p:load("load_dak", DA, {b, h, c, k})
    local w = p:task("decay", function()
      local w = cb * (exp2(mr.min(dA * LOG2E - dA_k * LOG2E, 0)) * dt_k)
      return mr.where(k:index():le(l:index()), w, 0):to(dtype)
    end)
    acc:add(p:mma("mma_x", w, p:load("load_x", X, {b, c * chunk + k, h, hd})))
  end)

  local d = D and p:load("load_d", D)
  local x = D and p:load("load_skip", X, {b, pos, h, hd})
  local z = Z and p:load("load_z", Z, {b, pos, h, hd})
  Out:store("store_out", p:task("finish", function()
    local y = D and acc + d * x or acc
    if Z then y = y * mr.silu(z) end
    return y:to(dtype)
  end), {b, pos, h, hd})
end)
