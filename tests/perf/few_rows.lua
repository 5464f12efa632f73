-- few_rows.lua - products of few rows by each of a device's two matrix units.
--
--   millrace tests/perf/few_rows.lua [PATTERN] [DEVICE] [seconds=N]
--
-- wgmma pads the rows of a tile to 64, mma.sync to 16. For each program whose name has PATTERN (Lua), the best plan with
-- wgmma alone and the best with mma.sync alone, found by the model, or measured for N seconds each. A line of each: name,
-- microseconds predicted by both, those of the search in the model that may take either and the unit that it takes. With a device
-- attached the default search, which measures for N seconds (60) and may take either, finds a third plan; all three are checked and then
-- run alternately, and the line goes on with "right" or "WRONG" and microseconds measured of each, and the third one's unit. It is to be
-- the fastest. Without a device, the kernels are compiled if nvcc is there, and the line has their spills.
local mr = require "millrace"

local programs = {
  {"gemm", m = 1, n = 4096, k = 4096}, {"gemm", m = 4, n = 4096, k = 4096}, {"gemm", m = 16, n = 4096, k = 4096},
  {"dequant_gemm", m = 1, n = 4096, k = 4096}, {"dequant_gemm", m = 4, n = 4096, k = 4096}, {"dequant_gemm", m = 16, n = 4096, k = 4096},
  {"fp4_gemm", m = 1, n = 4096, k = 4096}, {"fp4_gemm", m = 16, n = 4096, k = 4096},
  {"flash_decoding", b = 16, h = 32, hkv = 8, n = 8192, d = 128}, {"paged_decoding", b = 16, h = 32, hkv = 8, n = 8192, d = 128},
  {"mla_decoding", b = 16, h = 16, n = 4096, d = 512}, {"mla_decoding", b = 16, h = 128, n = 4096, d = 512},
}

local pattern, on, seconds = "", nil, nil
for i = 1, #arg do
  if arg[i]:find "^seconds=" then
    seconds = tonumber(arg[i]:match "=(.*)")
  elseif arg[i] == "h100" or arg[i] == "h200" then
    on = arg[i]
  else
    pattern = arg[i]
  end
end
local device = on and mr.device(on) or mr.device()
local home = os.getenv "MILLRACE_HOME" or "."

-- The device without the unit of this name: a file of the same name, by which the attached device is known, elsewhere.
local function without(name)
  local folder = os.tmpname() .. "_units"
  assert(os.execute("mkdir " .. folder))
  local path = ("%s/%s.lua"):format(folder, device.name)
  local text = assert(io.open(("%s/hw/%s.lua"):format(home, device.name))):read "a"
  local begins = assert(text:find(("    {\n      name = \"%s\""):format(name), 1, true), name)
  local _, ends = text:find("\n    },\n", begins, true)
  local file = assert(io.open(path, "w"))
  file:write(text:sub(1, begins - 1), text:sub(ends + 1))
  file:close()
  return mr.device(path), folder
end

-- The best plan without that unit, for the device itself.
local function search(bound, unit_left_out)
  local d, folder = without(unit_left_out)
  local modeled = {measure = false, fetch = unit_left_out == "tensor"}   -- by mma.sync with all that its operands can be fetched and made by
  local ok, found = pcall(mr.search, bound, d, seconds and mr.attached() and {seconds = seconds, fresh = true} or modeled)
  local plan = ok and found and load((found.plan:script():gsub('mr%.device "[^"]*"', ("mr.device %q"):format(device.name))))(bound)
  os.execute("rm -r " .. folder)
  return plan, ok and "no plan" or tostring(found)
end

local function unit_of(plan) return plan:script():find '"mma_sync"' and "mma.sync" or "wgmma" end

for _, x in ipairs(programs) do
  local program = table.remove(x, 1)
  local name = ("%s%s"):format(program, x.m and (" m=%d"):format(x.m) or (" h=%d"):format(x.h))
  if name:find(pattern) then
    local bound = mr.examples[program](x)
    local plans, kernels, words = {}, {}, {}
    for i, left_out in ipairs{"mma_sync", "tensor"} do
      local plan, why = search(bound, left_out)
      plans[i] = plan
      words[i] = plan and ("%.2f"):format(plans[i]:simulate().seconds * 1e6) or why
    end
    local best = assert(mr.search(bound, device, {measure = false}))
    local line = ("%-20s predicted us: wgmma %8s, mma.sync %8s, the search %8.2f by %s"):format(name, words[1], words[2],
      best.seconds * 1e6, unit_of(best.plan))
    local names = {"wgmma", "mma.sync"}
    if mr.attached() then
      local found = assert(mr.search(bound, device, {seconds = seconds, fresh = true}))
      plans[3], names[3] = found.plan, "the search by " .. unit_of(found.plan)
    end
    for i, plan in ipairs{plans[1] or false, plans[2] or false, plans[3] or false} do
      local ok, k = pcall(function() return plan and plan:compile{target = "cuda"} end)
      kernels[i] = ok and k or nil
      if not ok then line = line .. "; " .. tostring(k):match "[^\n]*" end
    end
    if mr.attached() and kernels[1] and kernels[2] and kernels[3] then
      local took, of = {}, {}
      for i, name in ipairs(names) do took[i], of[name] = ("%s %s"):format(name, kernels[i]:check().ok and "right" or "WRONG"), i end
      for _, racer in ipairs(mr.race({[names[1]] = kernels[1], [names[2]] = kernels[2], [names[3]] = kernels[3]}, {seconds = 1})) do
        took[of[racer.name]] = ("%s %.2f"):format(took[of[racer.name]], racer.ms * 1e3)
      end
      line = ("%s; measured us: %s"):format(line, table.concat(took, ", "))
    else
      for i = 1, 2 do
        if kernels[i] then line = ("%s; %s spills %d"):format(line, names[i], kernels[i].spills or -1) end
      end
    end
    print(line)
  end
end
