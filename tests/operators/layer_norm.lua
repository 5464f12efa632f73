-- Y[m,n] = (X[m,n] - Mean[m]) Rstd[m] G[n] + B[n], where Mean[m] is that of row m, and Rstd[m] = 1 / sqrt(its variance + eps).
--
-- The norm of BERT, GPT-2, ViT and Whisper. layer_norm_backward has the gradients of X, by c1 = mean of (G dY U) and c2 = mean of
-- (G dY) over a row, where U = (X - Mean) Rstd: dX = Rstd (G dY - U c1 - c2); dG[n] and dB[n] are the sums over m of dY U and of dY. In layer_norm_backward_rows a tile adds up
-- these of `rows` rows, one after the other, before it adds them to those of other tiles.
local mr = require "millrace"
local rowsum, rsqrt = mr.rowsum, mr.rsqrt

local EPS <const> = 1e-5

local function gradients(t, sizes)
  local function unit(i, j) return (t.X(i, j) - t.Mean(i)) * t.Rstd(i) end
  local function rows(f)
    local sum = 0
    for i = 0, sizes.m - 1 do sum = sum + f(i) end
    return sum
  end
  return {
    dG = function(j) return rows(function(i) return t.dY(i, j) * unit(i, j) end) end,
    dB = function(j) return rows(function(i) return t.dY(i, j) end) end,
    dX = function(i, j)
      local c1, c2 = 0, 0
      for l = 0, sizes.n - 1 do
        c1, c2 = c1 + t.G(l) * t.dY(i, l) * unit(i, l) / sizes.n, c2 + t.G(l) * t.dY(i, l) / sizes.n
      end
      return t.Rstd(i) * (t.G(j) * t.dY(i, j) - unit(i, j) * c1 - c2)
    end,
  }
end

return {
  {
    name = "layer_norm",
    program = mr.program("layer_norm", function(p)
      local m, n = p:axes("m", "n")
      local X, G, B = p:input("X", {m, n}), p:input("G", {n}), p:input("B", {n})
      local Y, Mean, Rstd = p:output("Y", {m, n}), p:output("Mean", {m}, "f32"), p:output("Rstd", {m}, "f32")
      local x, g, b = p:load("load_x", X), p:load("load_g", G), p:load("load_b", B)
      local y, mean, rstd = p:task("norm", function()
        local mean = rowsum(x, n) / n.size
        local away = x - mean
        local rstd = rsqrt(rowsum(away * away, n) / n.size + EPS)
        return away * rstd * g + b, mean, rstd
      end)
      Y:store("store_y", y)
      Mean:store("store_mean", mean)
      Rstd:store("store_rstd", rstd)
    end),
    small = {{m = 40, n = 96}, {m = 64, n = 50, dtype = "f16"}},
    usual = {{m = 4096, n = 8192}, {m = 8192, n = 1024}, {m = 32768, n = 768}},
    formula = function(t, sizes)
      local n = sizes.n
      local function mean(i)
        local sum = 0
        for j = 0, n - 1 do sum = sum + t.X(i, j) end
        return sum / n
      end
      local function rstd(i)
        local sum, mu = 0, mean(i)
        for j = 0, n - 1 do sum = sum + (t.X(i, j) - mu)^2 end
        return 1 / math.sqrt(sum / n + EPS)
      end
      return {Mean = mean, Rstd = rstd, Y = function(i, j) return (t.X(i, j) - mean(i)) * rstd(i) * t.G(j) + t.B(j) end}
    end,
  },
  {
    name = "layer_norm_backward",
    program = mr.program("layer_norm_backward", function(p)
      local m, n = p:axes("m", "n")
      local X, G, dY = p:input("X", {m, n}), p:input("G", {n}), p:input("dY", {m, n})
      local Mean, Rstd = p:input("Mean", {m}, "f32"), p:input("Rstd", {m}, "f32")
      local dX, dG, dB = p:output("dX", {m, n}), p:output("dG", {n}, "f32"), p:output("dB", {n}, "f32")
      p:phase("zero", function()
        local zeros = p:task("zeros", function() return (n:index() * 0):to "f32" end)
        dG:store(zeros)
        dB:store(zeros)
      end)
      p:phase("rows", function()
        local x, g, dy = p:load("load_x", X), p:load("load_g", G), p:load("load_dy", dY)
        local mean, rstd = p:load("load_mean", Mean), p:load("load_rstd", Rstd)
        local dx, dg, db = p:task("gradients", function()
          local unit, scaled = (x - mean) * rstd, dy * g
          local c1, c2 = rowsum(scaled * unit, n) / n.size, rowsum(scaled, n) / n.size
          return rstd * (scaled - unit * c1 - c2), rowsum(dy * unit, m), rowsum(dy, m)
        end)
        dX:store("store_dx", dx)
        dG:add("add_dg", dg)
        dB:add("add_db", db)
      end)
    end),
    small = {{m = 40, n = 96}},
    usual = {{m = 4096, n = 8192}, {m = 8192, n = 1024}},
    formula = gradients,
  },
  {
    name = "layer_norm_backward_rows",
    program = mr.program("layer_norm_backward_rows", function(p)
      local m, n = p:axes("m", "n")
      local rows = p:option("rows", "integer", 32)
      local part, r = p:axis("part", m.size // rows), p:axis("r", rows)
      local X, G, dY = p:input("X", {m, n}), p:input("G", {n}), p:input("dY", {m, n})
      local Mean, Rstd = p:input("Mean", {m}, "f32"), p:input("Rstd", {m}, "f32")
      local dX, dG, dB = p:output("dX", {m, n}), p:output("dG", {n}, "f32"), p:output("dB", {n}, "f32")
      p:check(m.size % rows == 0, "m must be a multiple of rows")
      p:phase("zero", function()
        local zeros = p:task("zeros", function() return (n:index() * 0):to "f32" end)
        dG:store(zeros)
        dB:store(zeros)
      end)
      p:phase("rows", function()
        p:batch(part)
        local row, g = part * rows + r, p:load("load_g", G)
        local dg, db = p:carry("dg", {n}, 0), p:carry("db", {n}, 0)
        p:loop(r, {batch = true}, function()
          local x, dy = p:load("load_x", X, {row, n}), p:load("load_dy", dY, {row, n})
          local mean, rstd = p:load("load_mean", Mean, {row}), p:load("load_rstd", Rstd, {row})
          dX:store("store_dx", p:task("gradients", function()
            local unit, scaled = (x - mean) * rstd, dy * g
            local c1, c2 = rowsum(scaled * unit, n) / n.size, rowsum(scaled, n) / n.size
            dg:add(dy * unit)
            db:add(dy)
            return rstd * (scaled - unit * c1 - c2)
          end), {row, n})
        end)
        dG:add("add_dg", dg)
        dB:add("add_db", db)
      end)
    end),
    small = {{m = 32, n = 96, rows = 8}},
    usual = {{m = 4096, n = 8192}, {m = 8192, n = 1024}},
    formula = gradients,
  },
}
