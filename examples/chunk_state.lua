-- chunk_state: what each chunk of the sequence adds to the state, in Mamba2's scan.
--
--   states[b,c,h,p,n] = sum over l of x[b,cl,h,p] B[b,cl,hg,n] exp(min(dA[last] - dA[l], 0)) dt[l]
--
-- where cl = c chunk + l is a position, dt and dA are those of (b,h,c), last is the last l
-- of a chunk, and hg = h // (h / g). dA is the running sum of dt A[h] within its chunk;
-- beyond the end of the sequence, in a ragged last chunk, it stays as it was.
-- Formula: _chunk_state_fwd of state-spaces/mamba (Dao and Gu, "Transformers are SSMs", 2024).
--
-- sizes    b batch, s sequence, h heads, p head dim, n state
-- options  g      groups of heads that share B; must divide h (1)
--          chunk  (256)
--          dtype  of x and B ("bf16")
--          decay  dtype of dt and dA ("f32"; "f64" if dtype is)
--          out    dtype of states (likewise)
local mr = require "millrace"

local LOG2E <const> = 1.4426950408889634

return mr.program("chunk_state", function(p)
  local b, s, h, hd, n = p:axes("b", "s", "h", "p", "n")
  local chunk = p:option("chunk", "integer", 256)
  p:check(chunk >= 1, "chunk must be at least 1")
  local g, l = p:axis("g", p.g or 1), p:axis("l", chunk)
  local c = p:axis("c", (s.size + chunk - 1) // chunk)
  local dtype = p.dtype or "bf16"
  local wide = dtype == "f64" and "f64" or "f32"
  local decay, out = p.decay or wide, p.out or wide
  p:check(h.size % g.size == 0, "g must divide h")

  local X, B = p:input("X", {b, s, h, hd}), p:input("B", {b, s, g, n})
  local Dt, DA = p:input("dt", {b, h, c, l}, decay), p:input("dA", {b, h, c, l}, decay)
  local States = p:output("states", {b, c, h, hd, n}, out)
  p:batch(b, c, h)

  local pos, group = c * chunk + l, h // (h.size // g.size)
  local last = p:load("load_last", DA, {b, h, c, chunk - 1})
  local acc = p:carry("acc", {hd, n}, 0)
  p:loop(l, function()
    local dt, dA = p:load("load_dt", Dt), p:load("load_da", DA)
    local x = p:load("load_x", X, {b, pos, h, hd})
    local xs = p:task("scale", function()
      return (x * (mr.exp2(mr.min(last - dA, 0) * LOG2E) * dt)):to(dtype)
    end)
    acc:add(p:mma("mma", xs, p:load("load_b", B, {b, pos, group, n})))
  end)
  States:store("store_states", p:task("convert", function() return acc:to(out) end))
end)
