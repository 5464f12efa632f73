-- Y[i] = word i % 4 of Philox4x32-10(counter i // 4, key seed): random numbers that depend on their index alone (Salmon et al., 2011).
--
-- The generator of cuRAND, PyTorch and Triton. In philox_counters an element is a counter, whose four words are stored; in philox_random a
-- word, of which each has a computation of its own. philox_dropout is X[m,n] / (1 - P) where the number of the element, as a fraction
-- of 2^32, is P or more, and else 0.
local mr = require "millrace"

-- Words as i32, which wrap around; the upper half of a product is that of halves of 16 bits.
local function upper(a, constant)
  local low, high = constant & 0xffff, constant >> 16
  local x, y = a & 0xffff, a:lshr(16)
  local middle = y * low + (x * low):lshr(16)
  local carry = x * high + (middle & 0xffff)
  return y * high + middle:lshr(16) + carry:lshr(16)
end

local function signed(word) return word >= 0x80000000 and word - 0x100000000 or word end

-- The four words of a counter, an i32 value.
local function philox(counter, seed)
  local a, b, c, d = counter, counter * 0, counter * 0, counter * 0
  local k0, k1 = seed, 0
  for _ = 1, 10 do
    a, b, c, d = upper(c, 0xCD9E8D57) ~ b ~ signed(k0), c * signed(0xCD9E8D57),
      upper(a, 0xD2511F53) ~ d ~ signed(k1), a * signed(0xD2511F53)
    k0, k1 = k0 + 0x9E3779B9 & 0xffffffff, k1 + 0xBB67AE85 & 0xffffffff
  end
  return a, b, c, d
end

-- Word i % 4 of counter i // 4, from 0 to 2^32 - 1, by Lua's integers.
local function word(i, seed)
  local w, k0, k1 = {i // 4, 0, 0, 0}, seed, 0
  for _ = 1, 10 do
    local a, c = w[1] * 0xD2511F53, w[3] * 0xCD9E8D57
    w = {(c >> 32) ~ w[2] ~ k0, c & 0xffffffff, (a >> 32) ~ w[4] ~ k1, a & 0xffffffff}
    k0, k1 = k0 + 0x9E3779B9 & 0xffffffff, k1 + 0xBB67AE85 & 0xffffffff
  end
  return w[i % 4 + 1]
end

return {
  {
    name = "philox_random",
    program = mr.program("philox_random", function(p)
      local i = p:axes("i")
      local seed, Y = p:option("seed", "integer", 42), p:output("Y", {i}, "i32")
      Y:store("store_y", p:task("random", function()
        local a, b, c, d = philox(i:index() // 4, seed)
        local at = i:index() % 4
        return mr.where(at:eq(0), a, mr.where(at:eq(1), b, mr.where(at:eq(2), c, d)))
      end))
    end),
    small = {{i = 1024}, {i = 77, seed = 123}},
    usual = {{i = 1024}, {i = 1 << 26}},
    tolerance = 0,
    formula = function(_, sizes)
      return {Y = function(i) return signed(word(i, sizes.seed or 42)) end}
    end,
  },
  {
    name = "philox_counters",
    program = mr.program("philox_counters", function(p)
      local counter = p:axes("counter")
      local i, seed = p:axis("i", 4 * counter.size), p:option("seed", "integer", 42)
      local Y = p:output("Y", {i}, "i32")
      local words = {p:task("random", function() return philox(counter:index(), seed) end)}
      for w = 1, 4 do Y:store("store_" .. w, words[w], {counter * 4 + w - 1}) end
    end),
    small = {{counter = 77, seed = 123}},
    usual = {{counter = 1 << 24}},
    tolerance = 0,
    formula = function(_, sizes)
      return {Y = function(i) return signed(word(i, sizes.seed or 42)) end}
    end,
  },
  {
    name = "philox_dropout",
    program = mr.program("philox_dropout", function(p)
      local m, n = p:axes("m", "n")
      local seed, share = p:option("seed", "integer", 7), p:option("share", "number", 0.1)
      local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
      local x = p:load("load_x", X)
      Y:store("store_y", p:task("drop", function()
        local number = m:index() * n.size + n:index()
        local a, b, c, d = philox(number // 4, seed)
        local at = number % 4
        local random = mr.where(at:eq(0), a, mr.where(at:eq(1), b, mr.where(at:eq(2), c, d)))
        local fraction = ((random >> 8) & 0xffffff):to "f32" * 2^-24
        return mr.where(fraction:ge(share), x / (1 - share), 0)
      end))
    end),
    small = {{m = 24, n = 64, share = 0.5}, {m = 13, n = 50, share = 0.3}},
    usual = {{m = 8192, n = 4096}},
    formula = function(t, sizes)
      local share = sizes.share or 0.1
      return {Y = function(m, n)
        return (word(m * sizes.n + n, sizes.seed or 7) >> 8) / 2^24 >= share and t.X(m, n) / (1 - share) or 0
      end}
    end,
  },
}
