-- farm_model.lua - how many ranks a farm can have: the queue of mr.tune (lua/std/ranks.lua) in virtual time.
--
--   millrace tests/perf/farm_model.lua [NAME=VALUE ...]
--
-- Each rank is a coroutine that runs the code of ranks.lua. A message takes the time of a network: latency=5e-6 seconds, and bandwidth=1e10
-- bytes a second of each rank's link. Rank 0 is one server: it is charged what its code takes on this machine (texts to and from JSON, the
-- queue), message=3e-6 seconds in MPI for each message, and the time of the store, which is measured first, on a file in a temporary folder
-- that has stored=20000 rows; put=SECONDS instead of the measured time of a row that is written, for slower disks. Then comes a table:
-- one row of mr.tune is one task, rows=10 for each rank that has a GPU.
--
-- A task is the search of a few seconds of docs/performance.md: up to 5 s in the model (here 2 to 5, as some come to their end), then 8 to 30
-- measurements that take 0.1 to 0.4 s each, compilers included; every twentieth task takes three times as long. It asks rank 0 for the rows of
-- three queries, and has each measurement stored, and the answer. The scripts are those of tests/perf/searched-h200.jsonl. Seeds are fixed.
--
-- ranks=64 is one line alone; most=4096 the last line of the table at most: it ends before where rank 0 is busy all the time.
local mr = require "millrace"
local core = require "millrace.core"
local json = require "millrace.json"
local new_ranks = require("millrace.ranks").new
local dir = arg[0]:match "^(.*/)" or "./"
local sim = dofile(dir .. "../lua/lib/farm_sim.lua")

local o = {latency = 5e-6, bandwidth = 1e10, message = 3e-6, stored = 20000, rows = 10, most = 4096}
for _, word in ipairs(arg) do
  local name, value = word:match "^(%a+)=(.+)$"
  if not name or not tonumber(value) then error("NAME=VALUE expected, not " .. word, 0) end
  o[name] = tonumber(value)
end

local scripts = {}
for line in io.lines(dir .. "searched-h200.jsonl") do scripts[#scripts + 1] = json.decode(line).script end

---- the store ------------------------------------------------------------------------------------------

local EACH <const> = 20                                 -- rows of a program in the store, the last of them its answer
local FAMILIES <const> = 20
local MANY <const> = 32                                 -- rows that are written together

local function hash(text) return core.hash(text) end

local function store_row(task, i)
  return {time = "2026-01-01T00:00:00Z", kind = i % EACH == 0 and "searched" or "search", status = "ok", program = "gemm",
    sizes = ("m=%d n=4096 k=4096"):format(task), hash = hash("program " .. task), family = hash("family " .. task % FAMILIES),
    device = "h200", title = "NVIDIA H200", driver = "580.159", version = mr.version, tile = "m=128 n=128 k=64",
    predicted = 1e-3 + i * 1e-6, ms = 1.1 + i % 7 * 0.013, min = 1.09, max = 1.2, error = 1.25e-3, correct = true, seed = 1,
    script = scripts[(task + i) % #scripts + 1]}
end

local queries = {
  {"best", function(task) return {hash = hash("program " .. task), device = "h200", kind = "searched", version = mr.version, limit = 1} end},
  {"list", function(task) return {hash = hash("program " .. task), device = "h200", kind = "search", limit = 1000} end},
  {"near", function(task) return {family = hash("family " .. task % FAMILIES), device = "h200", kind = "searched"} end},
}

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function seconds(f, ...)
  local began = core.clock()
  local good, why = f(...)
  if not good then error(why, 0) end
  return core.clock() - began
end

-- Seconds of each function of the store, by name; medians, as other programs use the disk, too; put: of a row that is written, more: of
-- each further row that is written together with it. MILLRACE_STORE is a new file.
local function measure_store()
  local file, times, put = core.store(), {}, {}
  local together = {}
  for i = 1, o.stored, 1 + MANY do
    local rows = {}
    for k = 0, MANY do rows[k] = store_row((i + k) // EACH, i + k) end
    put[#put + 1] = seconds(core.store_put_rows, file, {rows[0]})
    together[#together + 1] = seconds(core.store_put_rows, file, rows)
  end
  times.put = o.put or median(put)
  times.more = math.max(median(together) - median(put), 0) / (MANY - 1)
  for _, q in ipairs(queries) do
    local took = {}
    for i = 1, 50 do took[i] = seconds(core.store_find, file, q[1], q[2](i), function() end) end
    times[q[1]] = median(took)
  end
  return times
end

---- tasks ----------------------------------------------------------------------------------------------------

local function new_task(i)
  local random = sim.random(i)
  local slow = i % 20 == 0 and 3 or 1
  local t = {model = slow * (2 + 3 * random()), each = {}}
  for k = 1, 8 + math.floor(23 * random()) do t.each[k] = slow * (0.1 + 0.3 * random()) end
  return t
end

-- What mr.search asks and has stored, in its order. -> the seconds of work, and of waiting
local function search(farm, ranks, i, waits)
  local t, work = new_task(i), 0
  local function ask(name, value)
    local began = farm:now()
    local x = ranks:ask(name, value)
    waits.seconds, waits.n = waits.seconds + farm:now() - began, waits.n + 1
    return x
  end
  local function sleep(seconds)
    work = work + seconds
    farm:sleep(seconds)
  end
  ask("store rows", {query = "best", filter = queries[1][2](i)})
  sleep(t.model)
  ask("store rows", {query = "list", filter = queries[2][2](i)})
  ask("store rows", {query = "near", filter = queries[3][2](i)})
  for k, seconds in ipairs(t.each) do
    sleep(seconds)
    ask("store row", store_row(i, k % EACH))
  end
  ask("store row", store_row(i, EACH))
  waits.work = waits.work + work
  return {script = scripts[i % #scripts + 1], predicted = 1e-3, ms = 1.1 + i * 1e-6, trials = 1000, measured = #t.each, ended = "measured"}
end

---- the table ---------------------------------------------------------------------------------------------------

-- All ranks get the same texts of results. Reading them is work of each rank, but here it is done once.
local decode, decoded = json.decode, {}
function json.decode(text)
  if #text < 20000 then return decode(text) end
  decoded[text] = decoded[text] or decode(text)
  return decoded[text]
end

-- Seconds that ranks would take with no time of rank 0 and of messages: the last tasks hold some ranks up anyway.
local function seconds_alone(workers, n)
  local free, last = {}, 0
  for i = 1, n do
    local t, at = new_task(i), i > workers and sim.pop(free).time or 0
    local takes = t.model
    for _, seconds in ipairs(t.each) do takes = takes + seconds end
    last = math.max(last, at + takes)
    sim.push(free, {time = at + takes, number = i})
  end
  return last
end

local function run(workers, times)
  local n = workers * o.rows
  decoded = {}
  local names, waits, counts, has = {}, {seconds = 0, n = 0, work = 0}, {}, 0
  for i = 1, n do names[i] = ("gemm m=%d n=4096 k=4096 on h200 %s"):format(i, hash("program " .. i)) end
  local near = {}
  for i = 1, 5 do near[i] = store_row(i, EACH) end
  local _, stats = sim.play{size = workers + 1, latency = o.latency, bandwidth = o.bandwidth, real = true,
    charge = function() return 2 * o.message end, body = function(farm, rank)
      local ranks = new_ranks(farm, pcall)
      ranks:serve("store rows", function(x)
        farm:spend(times[x.query])
        return x.query == "near" and near or {}
      end)
      ranks:serve_together("store row", function(asked)
        local answers = {}
        farm:spend(times.put + (#asked - 1) * times.more)
        for i = 1, #asked do answers[i] = {good = true} end
        return answers
      end)
      local results = ranks:map(names, function(i)
        counts[i] = (counts[i] or 0) + 1
        return search(farm, ranks, i, waits)
      end)
      local good = #results == n
      for i = 1, n do good = good and results[i].good and results[i].value.ms == 1.1 + i * 1e-6 end
      has = has + (good and 1 or 0)
    end}
  for i = 1, n do if counts[i] ~= 1 then error(("task %d was done %d times"):format(i, counts[i] or 0), 0) end end
  if has ~= workers + 1 then error(("%d of %d ranks have the results"):format(has, workers + 1), 0) end
  return {workers = workers, tasks = n, alone = seconds_alone(workers, n), seconds = stats.seconds, stats = stats,
    efficiency = waits.work / (workers * stats.seconds), busy = stats.busy / stats.seconds, wait = waits.seconds / waits.n}
end

local function us(x) return ("%.0f"):format(x * 1e6) end

-- What rank 0 does, by message, the most of it first.
local function print_costs(x)
  local labels = {}
  for label in pairs(x.stats.cost) do labels[#labels + 1] = label end
  table.sort(labels, function(a, b) return x.stats.cost[a] > x.stats.cost[b] end)
  print(("rank 0 with %d others, by message: number, us of each, share of its time"):format(x.workers))
  for _, label in ipairs(labels) do
    local n, cost = x.stats.count[label], x.stats.cost[label]
    print(("  %-16s %8d %8s %5.1f %%"):format(label, n, us(cost / n), 100 * cost / x.stats.busy))
  end
end

local times = measure_store()
print(("store of %d rows, us: a row written %s, each more of those together %s; queries: best %s, list %s, near %s"):format(o.stored,
  us(times.put), us(times.more), us(times.best), us(times.list), us(times.near)))
print "| GPU ranks | rows | seconds | without rank 0 | rows a minute | GPU ranks at work | rank 0 at work | wait for rank 0, ms |"
print "|---|---|---|---|---|---|---|---|"
local sizes, last, limit = {}, nil, nil
if o.ranks then sizes = {o.ranks} else
  for k = 0, 20 do
    if 1 << k > 1000 and (1 << k) // 2 < 1000 then sizes[#sizes + 1] = 1000 else sizes[#sizes + 1] = 1 << k end
    if sizes[#sizes] >= o.most then break end
  end
end
for _, workers in ipairs(sizes) do
  local x = run(workers, times)
  print(("| %d | %d | %.1f | %.1f | %.0f | %.3f | %.3f | %.2f |"):format(x.workers, x.tasks, x.seconds, x.alone, x.tasks / x.seconds * 60, x.efficiency,
    x.busy, x.wait * 1e3))
  io.stdout:flush()
  collectgarbage()
  last = x
  if x.busy > 0.9 then limit = x break end
end
print_costs(last)
print(limit and ("rank 0 is the limit at %d ranks"):format(limit.workers) or "rank 0 is not the limit")
