-- agreement.lua - how far apart the answers of two searches of the same program are, in simulated worlds.
--
--   MILLRACE_STORE=none millrace tests/perf/agreement.lua [worlds=2] [trials=160] [PATTERN ...]
--
-- Needs no device, but python3. Of each row of rows.py whose name has a pattern (Lua; a product and two attentions unless given) there are so many
-- worlds. In a world each plan has a time, which is off from the predicted one by a bias, by an error that plans share by their traits, and by
-- one of its own, all drawn from about the process of belief.lua. Two measured searches in each world, neighbours included, differ in the
-- errors of their races alone. A line of each row:
--   trials    plans measured, the mean
--   within    share of the worlds whose two answers are within 1 %
--   apart     the greatest ratio of the two
--   ms        the geometric mean of the answers. Of two versions with the same predictions the one with the lesser is better, as worlds do not
--             depend on what was measured before
local mr = require "millrace"
local core = require "millrace.core"
local draft = require "millrace.draft"
local trials = require "millrace.trials"
local weights = require "millrace.belief"(0).weights
local dir = arg[0]:match "^(.*/)" or "./"
local program_of, table_server, normal = dofile(dir .. "program_of.lua"), dofile(dir .. "table_server.lua"), dofile(dir .. "../lua/lib/normal.lua")

assert(not require("millrace.store").is_there(), "invented times are not to be stored: set MILLRACE_STORE=none")

local BIAS <const>, SHAPE <const>, OWN <const> = 0.14, 0.07, 0.01   -- standard deviations of the logarithms: of 2,949 plans measured in 20 searches
local LENGTH <const> = 2                                -- as in belief.lua
local RACE <const>, FINAL <const> = 0.009, 0.003        -- of the errors of times; a ratio has 0.013
local WAVES <const> = 120
local NEAR <const> = 1.01
local options, rows = dofile(dir .. "row_arguments.lua")({worlds = 2, trials = 160},
  {"^gemm 4096 x 4096 x 4096$", "^attention d128 s2048$", "^attention d64 s2048$"})

local function number_of(text) return tonumber(core.hash(text):sub(1, 8), 16) end

-- The traits of a candidate. Each search numbers orders in its own way, so an order's name here is what it is: the sTasks as they are appended,
-- once for all lanes, and their offsets.
local function traits_of(c)
  local traits, order, seen = {}, {}, {}
  for trait, x in pairs(c.traits or {}) do
    if not trait:find "^order" then traits[trait] = x end
  end
  for task, options in c.script:gmatch 'plan:append%("([%w_]+)[^"]*",%s*(%b{})' do
    if not seen[task] then order[#order + 1] = task .. (options:match " at=%-?%d+" or "") end
    seen[task] = true
  end
  traits["order " .. table.concat(order, " ")] = 1
  return traits
end

-- Returns a function: a candidate -> its milliseconds. What plans share is a sum of waves over their traits, whose covariance is about the
-- squared exponential (Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007).
local function new_world(name)
  local bias, known, waves, phases = BIAS * normal(number_of(name))(), {}, {}, {}
  for k = 1, WAVES do
    phases[k] = 2 * math.pi * number_of(name .. " " .. k) / 2^32
    waves[k] = setmetatable({}, {__index = function(wave, trait)
      local x = normal(number_of(("%s %d %s"):format(name, k, trait)))() * weights[trait] / LENGTH
      wave[trait] = x
      return x
    end})
  end
  local function shared_error(traits)
    local sum = 0
    for k, wave in ipairs(waves) do
      local angle = phases[k]
      for trait, x in pairs(traits) do angle = angle + wave[trait] * x end
      sum = sum + math.cos(angle)
    end
    return SHAPE * math.sqrt(2 / WAVES) * sum
  end
  return function(c)
    local ms = known[c.script]
    if not ms then
      ms = c.predicted * 1e3 * math.exp(bias + shared_error(traits_of(c)) + OWN * normal(number_of(name .. c.script))())
      known[c.script] = ms
    end
    return ms
  end
end

-- A server that measures in the world.
local function server_in(world, draw)
  local server = table_server(function() return RACE * draw() end, function() return FINAL * draw() end)
  local begin = server.begin
  function server:begin(item)
    for _, x in ipairs(item.finalists or {item}) do x.candidate.ms = world(x.candidate) end
    return begin(self, item)
  end
  return server
end

local function make(bound, device)
  return function(search, trial) return draft.plan(bound, device, search:plan(trial)) end
end

-- A measured search in the world: its answer's milliseconds, and how many plans it measured.
local function search_in(world, bound, device, draw)
  local search = core.search(bound, device, nil, true)
  search:run(math.maxinteger, math.huge)
  local r = trials.run(search, bound, device, {driver = "none"}, {trials = options.trials, known = {}, make = make(bound, device),
    server = server_in(world, draw), search = function(s) return s:run(math.maxinteger, math.huge) end})
  return world(r.best), r.trials
end

local device = mr.device "h200"
print(("%-40s %6s %6s %7s %10s"):format("row", "trials", "within", "apart", "ms"))
for _, row in ipairs(rows) do
  local bound, near, apart, product, measured = program_of(row.program)(row.sizes), 0, 1, 0, 0
  for seed = 1, options.worlds do
    local name, answers = row.case .. " " .. seed, {}
    local world = new_world(name)
    for run = 1, 2 do
      local n
      answers[run], n = search_in(world, bound, device, normal(number_of(name .. " races " .. run)))
      product, measured = product + math.log(answers[run]), measured + n
    end
    local ratio = math.max(answers[1], answers[2]) / math.min(answers[1], answers[2])
    near, apart = near + (ratio <= NEAR and 1 or 0), math.max(apart, ratio)
  end
  print(("%-40s %6.1f %6.2f %7.4f %10.4f"):format(row.case, measured / 2 / options.worlds, near / options.worlds, apart,
    math.exp(product / 2 / options.worlds)))
end
