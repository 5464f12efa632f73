-- H[b,t,d] = a H[b,t-1,d] + sqrt(1 - a^2) sigmoid(I[b,t,d]) X[b,t,d], a = exp(-8 softplus(L[d]) sigmoid(R[b,t,d])): the recurrence of
-- RG-LRU (Griffin, RecurrentGemma).
-- gated_recurrence: position after position. gated_recurrence_chunks: chunks at once, of which three phases compute what each
-- does to the state, the states between them, and the positions, as a prefix scan.
local mr = require "millrace"

-- a and what is added, of loads of a position
local function gates(x, i, r, l)
  local softplus = mr.log(1 + mr.exp(l))
  local log_a = -8 * softplus * mr.sigmoid(r)
  local a = mr.exp(log_a)
  return a, mr.sqrt(mr.max(1 - a * a, 0)) * (mr.sigmoid(i) * x), log_a
end

-- The recurrence h = a h + add of a tile, from pairs (a, h) of neighbours at distances 1, 2, 4, ...
local function scan(a, h, s)
  local step = 1
  while step < s.size do
    local later = s:index():ge(step)
    h = h + mr.where(later, a * h:at(s, s - step), 0)
    a = mr.where(later, a * a:at(s, s - step), a)
    step = step * 2
  end
  return h
end

local function formula(t, sizes)
  local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
  local function at(b, last, d)
    local h = 0
    for i = 0, last do
      local a = math.exp(-8 * math.log(1 + math.exp(t.L(d))) * sigmoid(t.R(b, i, d)))
      h = a * h + math.sqrt(1 - a * a) * sigmoid(t.I(b, i, d)) * t.X(b, i, d)
    end
    return h
  end
  return {H = at, Last = function(b, d) return at(b, sizes.t - 1, d) end}
end

local function decay(_, d) return -3 - d % 7 / 2 end           -- so that a is near 1, as in a model

return {
  {
    name = "gated_recurrence",
    program = mr.program("gated_recurrence", function(p)
      local b, t, d = p:axes("b", "t", "d")
      local X, I, R, L = p:input("X", {b, t, d}), p:input("I", {b, t, d}), p:input("R", {b, t, d}), p:input("L", {d}, "f32")
      local H, Last = p:output("H", {b, t, d}), p:output("Last", {b, d}, "f32")
      p:batch(b)
      local l, h = p:load("load_l", L), p:carry("h", {d}, 0)
      p:loop(t, {batch = true}, function()
        local x, i, r = p:load("load_x", X), p:load("load_i", I), p:load("load_r", R)
        H:store("store_h", p:task("step", function()
          local a, add = gates(x, i, r, l)
          local new = a * h + add
          h:set(new)
          return new:to "bf16"
        end))
      end)
      Last:store("store_last", h)
    end),
    small = {{b = 2, t = 20, d = 64}, {b = 1, t = 13, d = 40}},
    usual = {{b = 8, t = 2048, d = 4096}},
    fill = {L = decay},
    formula = formula,
  },
  {
    name = "gated_recurrence_chunks",
    program = mr.program("gated_recurrence_chunks", function(p)
      local b, t, d = p:axes("b", "t", "d")
      local s = p:axis("s", p:option("chunk", "integer", 64))
      local c = p:axis("c", (t.size + s.size - 1) // s.size)
      local e, f = p:axis("e", d.size), p:axis("f", d.size)
      local X, I, R, L = p:input("X", {b, t, d}), p:input("I", {b, t, d}), p:input("R", {b, t, d}), p:input("L", {d}, "f32")
      local H, Last = p:output("H", {b, t, d}), p:output("Last", {b, d}, "f32")
      local Decay, Add, State = p:temp("Decay", {b, c, d}, "f32"), p:temp("Add", {b, c, d}, "f32"), p:temp("State", {b, c, d}, "f32")
      p:phase("chunks", function()
        p:batch(b, c)
        local at = {b, c * s.size + s, d}
        local x, i, r, l = p:load("load_x", X, at), p:load("load_i", I, at), p:load("load_r", R, at), p:load("load_l", L)
        local decay, add = p:task("reduce", function()
          local _, add, log_a = gates(x, i, r, l)
          log_a = mr.where((s:index() + c:index() * s.size):lt(t.size), log_a, 0)
          local sum, all = log_a:cumsum(s), log_a:rowsum(s)
          return mr.exp(all), (add * mr.exp(all - sum)):rowsum(s)
        end)
        Decay:store("store_decay", decay)
        Add:store("store_add", add)
      end)
      p:phase("states", function()
        p:batch(b)
        local h = p:carry("h", {e}, 0)
        p:loop(c, {batch = true}, function()
          local decay, add = p:load("load_decay", Decay, {b, c, e}), p:load("load_add", Add, {b, c, e})
          State:store("store_state", p:task("before", function() return h:to "f32" end), {b, c, e})
          p:task("pass", function() h:set(h * decay + add) end)
        end)
        Last:store("store_last", h, {b, e})
      end)
      p:phase("positions", function()
        p:batch(b, c)
        local at = {b, c * s.size + s, f}
        local x, i, r = p:load("load_x_f", X, at), p:load("load_i_f", I, at), p:load("load_r_f", R, at)
        local l, state = p:load("load_l_f", L, {f}), p:load("load_state", State, {b, c, f})
        H:store("store_h", p:task("scan", function()
          local a, h = gates(x, i, r, l)
          h = h + mr.where(s:index():eq(0), a * state, 0)
          return scan(a, h, s):to "bf16"
        end), at)
      end)
    end),
    small = {{b = 2, t = 128, d = 64}, {b = 1, t = 50, d = 40, chunk = 16}},
    usual = {{b = 8, t = 2048, d = 4096}, {b = 1, t = 32768, d = 4096}},
    fill = {L = decay},
    formula = formula,
  },
  {
    name = "gated_recurrence_blocks",                          -- in one pass, several positions at a time
    program = mr.program("gated_recurrence_blocks", function(p)
      local b, t, d = p:axes("b", "t", "d")
      local s = p:axis("s", p:option("chunk", "integer", 16))
      local c = p:axis("c", (t.size + s.size - 1) // s.size)
      local X, I, R, L = p:input("X", {b, t, d}), p:input("I", {b, t, d}), p:input("R", {b, t, d}), p:input("L", {d}, "f32")
      local H, Last = p:output("H", {b, t, d}), p:output("Last", {b, d}, "f32")
      p:batch(b)
      local l, state = p:load("load_l", L), p:carry("state", {d}, 0)
      p:loop(c, {batch = true}, function()
        local at = {b, c * s.size + s, d}
        local x, i, r = p:load("load_x", X, at), p:load("load_i", I, at), p:load("load_r", R, at)
        H:store("store_h", p:task("scan", function()
          local a, h = gates(x, i, r, l)
          local behind = (s:index() + c:index() * s.size):ge(t.size)
          a, h = mr.where(behind, 1, a), mr.where(behind, 0, h)
          h = h + mr.where(s:index():eq(0), a * state, 0)
          h = scan(a, h, s)
          state:set(h:at(s, s.size - 1))
          return h:to "bf16"
        end), at)
      end)
      Last:store("store_last", state)
    end),
    small = {{b = 2, t = 64, d = 64}, {b = 1, t = 50, d = 40, chunk = 8}},
    usual = {{b = 8, t = 2048, d = 4096}},
    fill = {L = decay},
    formula = formula,
  },
}
