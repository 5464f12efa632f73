-- bad.lua - kernels that no plan gives: correct ones, with a line of text put in.
local mr, core = require "millrace", require "millrace.core"

local bad = {}

-- Lines that go to where the kernel begins.
local lines = {
  hang = [[ while (true) asm volatile("" ::: "memory"); ]],
  fault = [[ *(volatile int *)0x10 = THREAD; ]],
  trap = [[ asm volatile("trap;"); ]],
  beyond = [[ if (BLOCK == 0 && THREAD == 0) tensor_C[%d] = 0; ]],
  shared = [[ __shared__ volatile char big[300000]; big[300 * THREAD] = 1; ]],
}

-- C of n x n; %d in a line is the number of its elements.
local function gemm(n, k)
  return mr.load_plan("gemm_cooperative", mr.examples.gemm{m=n, n=n, k=k}), n * n
end

local function with(line, n, k)
  local plan, elements = gemm(n, k)
  return core.build(plan, true, function(text)
    local edited, times = text:gsub("\tconst u32 shared = shared_base%(%);\n", function(found)
      return found .. line:format(elements) .. "\n"
    end)
    assert(times == 1, "the kernel's text begins otherwise")
    return edited
  end)
end

-- Run the kernel with such a line; `limit` in seconds.
function bad.run(name, limit)
  local k = with(lines[name], 512, 512)
  k:run(k.plan.graph.program:inputs{}, {limit = limit or 20})
end

-- A correct kernel whose C has n x n elements.
function bad.large(n)
  local k = gemm(n, 64):compile{target="cuda"}
  k:run(k.plan.graph.program:inputs{})
end

local kept

-- Does a correct kernel run, compiled before as well as now?
function bad.check()
  kept = kept or gemm(512, 512):compile{target="cuda"}
  print(kept:check{}.ok and gemm(384, 256):compile{target="cuda"}:check{}.ok and "right" or "wrong")
end

return bad
