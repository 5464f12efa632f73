-- What is measured of what a search found: candidates lead to others, as far as they are faster.
local mr, core, draft, trials = require "millrace", require "millrace.core", require "millrace.draft", require "millrace.trials"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is

local device <const> = mr.device "h200"
local bound <const> = mr.examples.flash_attention{b = 2, h = 8, m = 2048, d = 64}
local tile <const> = {m = 192, n = 112}

local function make(search, trial) return draft.plan(bound, device, search:plan(trial)) end

local function run(search) return search:run(math.maxinteger, math.huge) end

-- A device that the model predicts except for rings: `slower` gives the factor, from what a plan's script says of them.
local function server_of(slower)
  return {capacity = 4, wait = function() end, begin = function(_, item)
    return {drop = function() end, poll = function(_, incumbent)
      local function ms(c) return c.predicted * 1e3 * slower(c.script:match "plan:buffers(%b{})" or "") end
      if item.finalists then
        local x = item.finalists[1]
        local t = ms(x.candidate)
        return {id = item.id, status = "ok", right = x.id, results = {[x.id] = {ms = t, min = t, max = t, ratio = 1}}}
      end
      local row = {id = item.id, status = "ok", ms = ms(item.candidate)}
      if incumbent then row.against, row.ratio = incumbent.id, row.ms / ms(incumbent.candidate) end
      return row
    end}
  end}
end

local function measured(slower, how, o)
  local s = core.search(bound, device, tile, true)
  run(s)
  local had = {}
  for _, x in ipairs(s:found()) do had[make(s, x.trial):script()] = true end
  o = o or {}
  return trials.run(s, bound, device, {driver = "none"}, {fresh = true, trials = o.trials or 200, make = make, search = how or run,
    server = server_of(slower), tile = o.tile, limited = o.limited}), had
end

-- One version of q is faster, and so are four of k. No plan with both is a candidate at first.
local function rings(text)
  return (text:find "q=2" and 1.07 or 1) * (text:find "[{ ]k=4" and 1 or 1.05)
end
local r, had = measured(rings)
local text = r.best.script:match "plan:buffers(%b{})"
is(rings(text), 1, "the best is a neighbour of the best one so far", text)
ok(not had[r.best.script], "  and no candidate at first", text)
is(r.ended, "sure", "  found before all is measured", r.trials)

local calls = 0
r = measured(rings, function(search)
  calls = calls + 1
  return calls == 1 and "interrupted" or run(search)
end)
is(r.ended, "interrupted", "Ctrl-C in a further search ends it")
ok(r.best and calls == 1, "  and the best is kept", calls)

---- what is kept as the answer ---------------------------------------------------------------------------

do
  local store, kept = mr.store, nil
  local function answer_of(how, o)
    kept = nil
    rawset(mr, "store", {put = function(_, row) if row.kind == "searched" then kept = row end end})
    measured(rings, how, o)
    rawset(mr, "store", store)
    return kept and (kept.message or "no message")
  end
  local function finds_no_more() return "done" end      -- so that measuring ends soon
  is(answer_of(finds_no_more), "no message", "the best plan of a search that ended by itself is the answer")
  is(answer_of(nil, {trials = 3}), "no more than 3 plans were measured", "  of one that a limit ended, with that limit")
  ok(answer_of(finds_no_more, {limited = true}):find "^no more than %d+ plans were measured$", "  also where seconds= ended the search in the model")
  is(answer_of(finds_no_more, {tile = {m = 64}}), nil, "that of a search of some tiles is none")
  is(answer_of(function() return "interrupted" end), nil, "  nor that of one that was interrupted")
end

tap.done_testing()
