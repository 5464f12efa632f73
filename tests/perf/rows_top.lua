-- rows_top.lua - what a measured search of the rows of rows.py would meet, without a device.
--
--   millrace tests/perf/rows_top.lua [top=8] [PATTERN ...]      rows whose names have one of the patterns (Lua); all unless given
--
-- The best `top` plans of each row's search for an H200 (of different tiles, lanes and orders) are compiled by CUDA's compiler as they are,
-- and run on the CPU, with accesses watched for races, at sizes of few tiles. A line of each row: how many plans there are; of how many
-- kernels registers are spilt, products are serialized, registers are not granted; the most seconds that one is compiled; how many results
-- are right on the CPU, wrong, and how many plans are refused at those sizes. In the environment, SECONDS=5 is how long a search takes,
-- HOST=0 runs nothing, CUDA=0 compiles nothing, PART=2/4 is every fourth row, from the second on. Exits with 1 if a result is wrong or
-- something fails.
local mr = require "millrace"
local core = require "millrace.core"
local draft = require "millrace.draft"
local unspilled = require "millrace.unspilled"
local dir = arg[0]:match "^(.*/)" or "./"
local parse_json, program_of = dofile(dir .. "../lua/lib/parse_json.lua"), dofile(dir .. "program_of.lua")

local part, parts = (os.getenv "PART" or "1/1"):match "^(%d+)/(%d+)$"
local seconds, device = tonumber(os.getenv "SECONDS" or 5), mr.device "h200"
local top, patterns = 8, {}
for _, word in ipairs(arg) do
  local n = word:match "^top=(%d+)$"
  if n then top = tonumber(n) else patterns[#patterns + 1] = word end
end

local function matches(name)
  for _, pattern in ipairs(patterns) do if name:find(pattern) then return true end end
  return #patterns == 0
end

-- Sizes at which the plan's tile is one of few; what is not an axis, as head dimensions, stays.
local function small_sizes(row, tile)
  local name, s = row.program:match ":(.*)$" or row.program, {}
  for key, value in pairs(row.sizes) do s[key] = value end
  local function few(axis, n) s[axis] = s[axis] and math.min(s[axis], n * (tile[axis] or s[axis])) end
  if name:find "attention" then
    s.b, s.h, s.m = 1, 2, math.max(256, 2 * tile.m)
  elseif name:find "decoding" then
    s.b, s.h, s.hkv, s.n = 2, 2 * s.h // s.hkv, 2, 2048
  elseif name:find "^chunk" then
    s.b, s.s, s.h = 1, 512, 4
  elseif name == "conv2d" then
    s.n, s.h, s.w, s.c, s.k = math.min(8, s.n), 14, 14, 128, 128
  elseif name:find "^depthwise" then
    s.n, s.h, s.w, s.c = tile.n or 1, 8, 8, tile.c
  elseif name == "conv1d" then
    s.b, s.t, s.c = 1, 64, 2 * tile.c
  elseif name == "splitk_gemm" then
    s.m, s.n, s.k, s.s = 2 * tile.m, 2 * tile.n, 1024, 2
  elseif name == "fp8_block_scales" then
    s.m, s.n, s.k = 256, 256, 512
  else
    few("m", 2)
    few("n", s.k and 2 or 4)
    s.b, s.k = s.b and 2, s.k and math.min(s.k, math.max(4 * (tile.k or 64), name == "dequant_gemm" and 1024 or 256))
  end
  return s
end

-- The best plans of a search, as texts that build them, with their tiles; of plans with equal kernels the best one.
local function best_plans(bound)
  local s, list, seen = core.search(bound, device, nil, true), {}, {}
  s:run(math.maxinteger, seconds)
  for _, x in ipairs(s:found()) do
    if #list == top then break end
    if x.priced then
      local plan = draft.plan(bound, device, s:plan(x.trial))
      local kind = unspilled.kind_of(plan)
      if not seen[kind] then
        seen[kind] = true
        list[#list + 1] = {plan = plan, script = plan:script(), tile = plan.tile}
      end
    end
  end
  return list
end

local totals = {}
local function try(row)
  local count, slowest, notes = {}, 0, {}
  local function add(what, note)
    count[what], totals[what] = (count[what] or 0) + 1, (totals[what] or 0) + 1
    if note then notes[#notes + 1] = ("    %s: %s"):format(what, tostring(note):gsub("\n", "\n      ")) end
  end
  local program = program_of(row.program)
  local plans = best_plans(program(row.sizes))
  for _, x in ipairs(plans) do
    if os.getenv "CUDA" ~= "0" then
      local began = core.clock()
      local ok, k = pcall(x.plan.compile, x.plan)
      slowest = math.max(slowest, core.clock() - began)
      if not ok then add("failed", k) end
      for _, p in ipairs(ok and k.problems or {}) do add(p.code) end
    end
    if os.getenv "HOST" ~= "0" then
      local ok, problem = pcall(function()
        local plan = assert(load(x.script, "=" .. row.case, "t"))(program(small_sizes(row, x.tile)))
        plan:fill_waits()                               -- where a tile follows another one sooner
        local legal, why = plan:check()
        if not legal then return add("refused", os.getenv "VERBOSE" and why) end
        local checked = plan:compile{target = "host"}:check{race = true}
        add(checked.ok and "right" or "wrong", not checked.ok and ("%s\n%s"):format(checked, x.script))
      end)
      if not ok then add("failed", ("%s\n%s"):format(problem, x.script)) end
    end
  end
  print(("%-44s %5d %6d %10d %9d %8.1f %6d %6d %8d"):format(row.case, #plans, count.spills or 0, count.serialized or 0,
    count.ungranted or 0, slowest, count.right or 0, count.wrong or 0, count.refused or 0))
  if #notes > 0 then print(table.concat(notes, "\n")) end
end

print(("%-44s %5s %6s %10s %9s %8s %6s %6s %8s"):format("row", "plans", "spills", "serialized", "ungranted",
  "compiled", "right", "wrong", "refused"))
local n, list = 0, assert(io.popen(("python3 '%srows.py' --programs"):format(dir)))
for line in list:lines() do
  local row = parse_json(line)
  if matches(row.case) then
    n = n + 1
    if n % parts == part % parts then
      local ok, problem = pcall(try, row)
      if not ok then
        totals.failed = (totals.failed or 0) + 1
        print(("%-44s failed: %s"):format(row.case, problem))
      end
      io.stdout:flush()
    end
  end
end
assert(list:close(), "rows.py --programs failed")
local words = {}
for what, sum in pairs(totals) do words[#words + 1] = ("%s %d"):format(what, sum) end
table.sort(words)
print(table.concat(words, ", "))
os.exit(not totals.wrong and not totals.failed)
