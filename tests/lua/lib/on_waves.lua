-- on_waves.lua - runs kernels that clang has compiled for gfx942, by gfx942_waves.py, and compares the results.
local mr = require "millrace"
local core = require "millrace.core"
local within = require "millrace.within"
local dir = arg[0]:match "^(.*/)" or "./"

local M = {}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function output_of(command)
  local pipe = io.popen(command .. " 2>&1")
  local text = pipe:read "a"
  return pipe:close(), text
end

-- The value of the bits of a small float.
local function small(bits, exponent, mantissa)
  local e, m = bits >> mantissa & (1 << exponent) - 1, bits & (1 << mantissa) - 1
  local bias = (1 << exponent - 1) - 1
  local x = e == 0 and m * 2.0 ^ (1 - bias - mantissa) or ((1 << mantissa) + m) * 2.0 ^ (e - bias - mantissa)
  return bits >> exponent + mantissa & 1 == 1 and -x or x
end

local small_bits <const> = {e4m3 = {}, e5m2 = {}, e2m1 = {}, f16 = {}}
for dtype, form in pairs{e4m3 = {4, 3}, e5m2 = {5, 2}, e2m1 = {2, 1}, f16 = {5, 10}} do
  for bits = (1 << 1 + form[1] + form[2]) - 1, 0, -1 do small_bits[dtype][small(bits, form[1], form[2])] = bits end
end

-- How many elements a byte has, or bytes an element; the bits of an element, and the element of bits.
local width <const> = {f32 = 4, tf32 = 4, i32 = 4, bf16 = 2, f16 = 2, e4m3 = 1, e5m2 = 1, i8 = 1, bool = 1, e2m1 = 0.5, i4 = 0.5}
local function bits_of(dtype, x)
  if small_bits[dtype] then return assert(small_bits[dtype][x], x) end
  if dtype == "f32" or dtype == "tf32" then return (string.unpack("<I4", string.pack("<f", x))) end
  if dtype == "bf16" then return string.unpack("<I4", string.pack("<f", x)) >> 16 end
  return math.tointeger(x) & (1 << 8 * width[dtype] // 1) - 1
end

local function bytes_of(x)
  local list, n = {}, width[x.dtype]
  for i = 1, #x, n < 1 and 2 or 1 do
    list[#list + 1] = n < 1 and string.char(bits_of(x.dtype, x[i]) | bits_of(x.dtype, x[i + 1]) << 4)
      or string.pack("<I" .. n, bits_of(x.dtype, x[i]))
  end
  return table.concat(list)
end

local function array_of(dtype, shape, text)
  local list = {}
  for i = 1, #text // width[dtype] do
    local bits = string.unpack("<I" .. width[dtype], text, 1 + (i - 1) * width[dtype])
    if dtype == "f32" or dtype == "tf32" then list[i] = string.unpack("<f", string.pack("<I4", bits))
    elseif dtype == "bf16" then list[i] = string.unpack("<f", string.pack("<I4", bits << 16))
    elseif dtype == "e4m3" then list[i] = small(bits, 4, 3)
    elseif dtype == "f16" then list[i] = small(bits, 5, 10)
    else list[i] = dtype == "i32" and string.unpack("<i4", string.pack("<I4", bits)) or bits end
  end
  return mr.array(dtype, shape, list)
end

local function integers(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = string.pack("<i4", x) end
  return table.concat(out)
end

-- Compile and run all phases of a plan. nil, or what is wrong; else what was reported. spoil: by how many seeds each wait, barrier
-- and arrival is tried to be needed.
function M.wrong(plan, seed, spoil)
  local bound, scratch = plan.graph.program, os.tmpname()
  local inputs, made, sizes, report = bound:inputs{seed = seed}, {scratch}, {}, {}
  local function file(name, text)
    made[#made + 1] = scratch .. name
    if text then write(made[#made], text) end
    return made[#made]
  end
  local function finish(why)
    for _, path in ipairs(made) do os.remove(path) end
    return why
  end
  local where = {}
  for _, t in ipairs(bound.tensors) do
    local n = width[t.dtype]
    for _, axis in ipairs(t.axes) do n = n * bound.axes[axis] end
    n = n // 1 | 0
    sizes[t.name] = n
    where[t.name] = file("." .. t.name, t.role == "input" and bytes_of(inputs[t.name]) or ("\xff"):rep(n))
  end
  for _, phase in ipairs(core.lower(plan, "hip", false)) do
    local args = {}
    local text, object = file(".hip", phase.text), file ".co"
    local good, said = output_of(("clang-22 -x hip --cuda-device-only --no-gpu-bundle-output --offload-arch=gfx942 -O3 -nogpuinc "
      .. "-nogpulib -w -o %s %s"):format(object, text))
    if not good then return finish(said) end
    for i, p in ipairs(phase.params) do
      args[i] = p.kind == "order" and "in:" .. file(".order", integers(phase.order))
        or p.kind == "start" and "in:" .. file(".start", integers(phase.start))
        or p.kind == "size" and "int:" .. p.size or ("out:%s:%d"):format(where[p.tensor], sizes[p.tensor])
    end
    good, said = output_of(("python3 %slib/gfx942_waves.py %s%s %s %d %d %d %s"):format(dir,
      spoil and ("--spoil %d "):format(spoil) or "", object, phase.entry, phase.threads,
      phase.blocks, seed, table.concat(args, " ")))
    if not good then return finish(said) end
    report[#report + 1] = said
  end
  local got = {}
  for _, t in ipairs(bound.tensors) do
    if t.role == "output" then
      local shape = {}
      for i, axis in ipairs(t.axes) do shape[i] = bound.axes[axis] end
      got[t.name] = array_of(t.dtype, shape, read(where[t.name]))
    end
  end
  local want, allowed = core.reference_allowing(bound, inputs, {})
  local found = within(bound, got, want, allowed, plan.tile)
  if not found.ok then
    return finish(("%s is wrong in %d elements, relative error %g"):format(found.worst.output, found.wrong, found.relative))
  end
  return finish(nil), table.concat(report)
end

return M
