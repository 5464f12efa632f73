-- grouped_gemm: Y[r,n] = act(sum over k of X[Token[r],k] W[e,n,k]) for rows r in blocks, of which each has an
-- expert e = Expert[r // block]: the products of a mixture of experts.
--
-- The rows are sorted by expert, and each expert's are filled up to complete blocks, as MegaBlocks (Gale et al., 2023)
-- and the kernels of vLLM have it. Two tables say what is where: Token[blk,i] is the row of X that row i of a block
-- multiplies, or -1 for a row of padding, which is zero; Expert[blk] is whose weights the block takes, or e for a block
-- behind the last one. With gated, an expert has two products, and Y = silu(X W) * (X V).
--
-- sizes    m rows of X, n, k, e experts
-- options  blocks  of rows, at most (so many that top 2 of all m rows fit, whatever the experts have)
--          block   rows of a block (128)
--          gated   true: with V, Y = silu(X W) * (X V) (false)
--          permute true: a phase before copies the rows in the order of the blocks (false). The product then loads boxes by
--                  the copy engine instead of single rows by threads. It pays from some thousand rows and columns on
--          dtype   of X, W, V and Y ("bf16")
--          out     of Y (dtype)
local mr = require "millrace"

return mr.program("grouped_gemm", function(p)
  local m, n, k, e = p:axes("m", "n", "k", "e")
  local block, dtype = p:option("block", "integer", 128), p.dtype or "bf16"
  local out, gated, permute = p.out or dtype, p:option("gated", "boolean"), p:option("permute", "boolean")
  p:check(block >= 1, "block must be at least 1")
  local blk = p:axis("blocks", p.blocks or math.ceil(2 * m.size / block) + e.size)
  local i = p:axis("i", block)
  local X, W = p:input("X", {m, k}), p:input("W", {e, n, k})
  local V = gated and p:input("V", {e, n, k})
  local Token, Expert = p:input("Token", {blk, i}, "i32"), p:input("Expert", {blk}, "i32", {sorted = true})
  local Y = p:output("Y", {blk, i, n}, out)

  local Rows = permute and p:temp("Rows", {blk, i, k}, dtype)

  local function products()
    p:batch(blk)
    local row, expert = not permute and p:load("load_token", Token), p:load("load_expert", Expert)
    local y, g = p:carry("y", {i, n}, 0), gated and p:carry("g", {i, n}, 0)
    p:loop(k, function()
      local x = permute and p:load("load_rows", Rows) or p:load("load_x", X, {row, k})
      y:add(p:mma("mma", x, p:load("load_w", W, {expert, n, k})))
      if gated then g:add(p:mma("mma_v", x, p:load("load_v", V, {expert, n, k}))) end
    end)
    Y:store("store_y", p:task("convert", function() return (gated and mr.silu(y) * g or y):to(out) end))
  end

  if not permute then return products() end
  p:phase("permute", function()
    p:batch(blk)
    Rows:store("store_rows", p:load("load_x", X, {p:load("load_token", Token), k}))
  end)
  p:phase("products", products)
end)
