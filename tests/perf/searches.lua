-- searches.lua - what mr.search comes to without a device, for each shipped program.
--
--   millrace tests/perf/searches.lua [PATTERN]
--
-- One line of each program whose name has PATTERN (Lua), words with one space between: name, predicted
-- milliseconds, the interval's gap to its bound in per cent, "proven" or "open", plans tried, then what depends on the
-- machine: milliseconds of the processor until the first legal plan, and seconds until the end. One
-- process is one core. MILLRACE_LIBCBC=/nowhere does without CBC.
local mr = require "millrace"
local core = require "millrace.core"

local shapes = {
  {"gemm", m=4096, n=4096, k=4096},
  {"matmul_sum", m=8192, n=8192, k=4096},
  {"flash_attention", b=8, h=16, m=2048, d=128},
  {"flash_attention", b=8, h=32, m=2048, d=64, causal=true},
  {"flash_decoding", b=64, h=32, hkv=8, n=8192, d=128},
  {"chunk_state", b=8, s=8192, h=80, p=64, n=128},
  {"chunk_scan", b=8, s=8192, h=80, p=64, n=128},
  {"dequant_gemm", m=4096, n=8192, k=8192},
  {"conv2d", n=128, c=128, h=56, w=56, k=128, r=3, s=3, pad=1},
}

local device = mr.device "h200"
for _, shape in ipairs(shapes) do
  local program = table.remove(shape, 1)
  local name = program .. (shape.causal and "_causal" or "")
  if name:find(arg[1] or "") then
    local bound = mr.examples[program](shape)
    local start = os.clock()
    core.search(bound, device):run(1, math.huge)
    local first = os.clock() - start
    start = os.clock()
    local r = assert(mr.search(bound, device, {measure=false}))
    print(("%s %.4f %.1f %s %d %.0f %.2f"):format(name, r.seconds * 1e3, 100 * r.gap, r.proven and "proven" or "open", r.trials,
      1e3 * first, os.clock() - start))
  end
end
