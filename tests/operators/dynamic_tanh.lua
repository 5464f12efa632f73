-- Norms and what is used in their stead: dynamic_tanh, Gamma tanh(Alpha X) + Beta, with its gradients; poly_norm, a sum of normalised
-- powers; a layer norm of a residual after dropout by a hash of the element's number; Mamba-2's RMS norm of gated groups.
local mr = require "millrace"
local where = mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

local rows <const> = {{m = 24, n = 64}, {m = 13, n = 50}}

return {
  {
    name = "dynamic_tanh",
    program = mr.program("dynamic_tanh", function(p)
      local m, n = p:axes("m", "n")
      local X, Alpha = p:input("X", {m, n}), p:input("Alpha", {}, "f32")
      local Gamma, Beta, Y = p:input("Gamma", {n}), p:input("Beta", {n}), p:output("Y", {m, n})
      local x, a, g, b = p:load(X), p:load(Alpha), p:load(Gamma), p:load(Beta)
      Y:store(p:task("dynamic_tanh", function() return (x * a):tanh() * g + b end))
    end),
    small = rows,
    usual = {{m = 8192, n = 4096}},
    formula = function(t, sizes)
      return {
        Y = function(i, j)
          local x = t.Alpha() * t.X(i, j)
          local e = math.exp(2 * x)
          return (e - 1) / (e + 1) * t.Gamma(j) + t.Beta(j)
        end,
      }
    end,
  },
  {
    name = "dynamic_tanh_backward",
    program = mr.program("dynamic_tanh_backward", function(p)
      local m, n = p:axes("m", "n")
      local X, dY, Alpha = p:input("X", {m, n}), p:input("dY", {m, n}), p:input("Alpha", {}, "f32")
      local Gamma, dX = p:input("Gamma", {n}), p:output("dX", {m, n})
      local dGamma, dBeta, dAlpha = p:output("dGamma", {n}, "f32"), p:output("dBeta", {n}, "f32"), p:output("dAlpha", {}, "f32")
      p:phase("zero", function()
        local z = p:task("zeros", function() return (n:index() * 0):to "f32" end)
        dGamma:store(z)
        dBeta:store(z)
      end)
      p:phase("zero_alpha", function()
        dAlpha:store(p:carry("zero", {}, 0))
      end)
      p:phase("rows", function()
        local x, dy, a, g = p:load(X), p:load(dY), p:load(Alpha), p:load(Gamma)
        local dx, dg, db, da = p:task("gradients", function()
          local t = (x * a):tanh()
          local d = dy * g * (1 - t * t)
          return d * a, (dy * t):rowsum(m), dy:rowsum(m), (d * x):rowsum(m):rowsum(n)
        end)
        dX:store(dx)
        dGamma:add(dg)
        dBeta:add(db)
        dAlpha:add(da)
      end)
    end),
    small = rows,
    usual = {{m = 8192, n = 4096}},
    formula = function(t, sizes)
      local function T(i, j)
        local e = math.exp(2 * t.Alpha() * t.X(i, j))
        return (e - 1) / (e + 1)
      end
      local function D(i, j) return t.dY(i, j) * t.Gamma(j) * (1 - T(i, j) ^ 2) end
      return {
        dX = function(i, j) return D(i, j) * t.Alpha() end,
        dGamma = function(j) return sum(function(i) return t.dY(i, j) * T(i, j) end, sizes.m) end,
        dBeta = function(j) return sum(function(i) return t.dY(i, j) end, sizes.m) end,
        dAlpha = function()
          return sum(function(i) return sum(function(j) return D(i, j) * t.X(i, j) end, sizes.n) end, sizes.m)
        end,
      }
    end,
  },
  {
    name = "poly_norm",
    program = mr.program("poly_norm", function(p)
      local m, n = p:axes("m", "n")
      local power = p:axis("power", 3)
      local X, W, B, Y = p:input("X", {m, n}), p:input("W", {power}, "f32"), p:input("B", {}, "f32"), p:output("Y", {m, n})
      local x, w, b = p:load(X), p:load(W), p:load(B)
      Y:store(p:task("norm", function()
        local function norm(v) return v * mr.rsqrt((v * v):rowsum(n) / n.size + 1e-6) end
        return w:at(power, 0) * norm(x * x * x) + w:at(power, 1) * norm(x * x) + w:at(power, 2) * norm(x) + b
      end))
    end),
    small = rows,
    usual = {{m = 8192, n = 4096}},
    formula = function(t, sizes)
      return {
        Y = function(i, j)
          local y = t.B()
          for q = 1, 3 do
            local s = sum(function(k) return t.X(i, k) ^ (2 * q) end, sizes.n) / sizes.n
            y = y + t.W(3 - q) * t.X(i, j) ^ q / math.sqrt(s + 1e-6)
          end
          return y
        end,
      }
    end,
  },
  {
    name = "layer_norm_dropout_residual",
    program = mr.program("layer_norm_dropout_residual", function(p)
      local m, n = p:axes("m", "n")
      local share, seed = p:option("share", "number", 0.25), p:option("seed", "integer", 77)
      local X, R, G, B = p:input("X", {m, n}), p:input("R", {m, n}), p:input("G", {n}), p:input("B", {n})
      local Y, Sum = p:output("Y", {m, n}), p:output("Sum", {m, n})
      local x, r, g, b = p:load(X), p:load(R), p:load(G), p:load(B)
      local y, s = p:task("norm", function()
        -- a hash of the element's number (murmur finaliser)
        local h = (m:index() * n.size + n:index()) ~ seed
        h = (h ~ ((h >> 16) & 0xffff)) * -2048144789      -- 0x85ebca6b
        h = (h ~ ((h >> 13) & 0x7ffff)) * -1028477387     -- 0xc2b2ae35
        h = h ~ ((h >> 16) & 0xffff)
        local u = (h & 0xffffff):to "f32" / 16777216
        local s = r + where(u:ge(share), x / (1 - share), 0)
        local mean = s:rowsum(n) / n.size
        local d = s - mean
        return d * mr.rsqrt((d * d):rowsum(n) / n.size + 1e-5) * g + b, s
      end)
      Y:store(y)
      Sum:store(s)
    end),
    small = rows,
    usual = {{m = 16384, n = 4096}},
    formula = function(t, sizes)
      local function S(i, j)
        local h = ((i * sizes.n + j) ~ 77) & 0xffffffff
        h = (h ~ (h >> 16)) * 0x85ebca6b & 0xffffffff
        h = (h ~ (h >> 13)) * 0xc2b2ae35 & 0xffffffff
        h = h ~ (h >> 16)
        local u = (h & 0xffffff) / 16777216
        return t.R(i, j) + (u >= 0.25 and t.X(i, j) / 0.75 or 0)
      end
      return {
        Sum = S,
        Y = function(i, j)
          local mean = sum(function(k) return S(i, k) end, sizes.n) / sizes.n
          local var = sum(function(k) return (S(i, k) - mean) ^ 2 end, sizes.n) / sizes.n
          return (S(i, j) - mean) / math.sqrt(var + 1e-5) * t.G(j) + t.B(j)
        end,
      }
    end,
  },
  {
    name = "gated_rms_norm",
    program = mr.program("gated_rms_norm", function(p)
      local m, g, i = p:axes("m", "g", "i")
      local X, Z, W, Y = p:input("X", {m, g, i}), p:input("Z", {m, g, i}), p:input("W", {g, i}), p:output("Y", {m, g, i})
      local x, z, w = p:load(X), p:load(Z), p:load(W)
      Y:store(p:task("norm", function()
        local v = x * z:silu()
        return v * mr.rsqrt((v * v):rowsum(i) / i.size + 1e-5) * w
      end))
    end),
    small = {{m = 5, g = 3, i = 20}},
    usual = {{m = 16384, g = 8, i = 1024}},
    formula = function(t, sizes)
      return {
        Y = function(m, g, i)
          local function v(k)
            local q = t.Z(m, g, k)
            return t.X(m, g, k) * q / (1 + math.exp(-q))
          end
          return v(i) / math.sqrt(sum(function(k) return v(k) ^ 2 end, sizes.i) / sizes.i + 1e-5) * t.W(g, i)
        end,
      }
    end,
  },
}
