-- How far a search is, as a line: its text, and how it is written over itself.
local progress = require "millrace.progress"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is

---- texts --------------------------------------------------------------------------------------

local function text(state, want) is(progress.text(state), want) end

text({phase = "model", trials = 212, shapes = 48, best = 1.56e-3, bound = 1.14e-3},
  "model: 212 plans of 48 shapes, best 1.56 ms, bound 1.14")
text({phase = "device", trials = 7, most = 24, best = 1.53e-3, predicted = 1.56e-3, under_way = 3, chance = 0.12,
  device_seconds = 1.4}, "device: 7 of at most 24 measured, best 1.53 ms (model said 1.56), 3 compiling, "
  .. "chance of better 12 %, 1.4 s of device time")
text({phase = "model"}, "model: nothing yet")
text({}, "model: nothing yet")
text({phase = "device"}, "device: nothing yet")
text({phase = "model", trials = 1, shapes = 1}, "model: 1 plan of 1 shape")
text({phase = "model", trials = 3, bound = 2e-5}, "model: 3 plans, bound 20 µs")
text({phase = "model", best = 1.02e-3, bound = 9.98e-4}, "model: best 1.02 ms, bound 1")
text({phase = "model", best = 9.996e-4, bound = 4e-7}, "model: best 1 ms, bound 0")
text({phase = "model", best = 12.34, bound = 12}, "model: best 12.3 s, bound 12")
text({phase = "model", best = 0 / 0, bound = 1 / 0, trials = "3"}, "model: nothing yet")
text({phase = "device", measured = 2, trials = 40, chance = 0.004, under_way = 0},
  "device: 2 measured, chance of better 0.4 %")
text({phase = "device", trials = 0, chance = 1}, "device: 0 measured, chance of better 100 %")

---- the view of a screen -----------------------------------------------------------------------

local history = {{trial = 1, predicted = 2e-3, text = "one"},
  {trial = 2, predicted = 1.5e-3, measured = 1.6e-3, text = "two"},
  {trial = 3, predicted = 1e-3, measured = 1.6e-3, status = "wrong", text = "three"}}
local view = progress.view({phase = "device", trials = 9, measured = 2, best = 1.6e-3, bound = 1.2e-3,
  history = history}, "it")
is(view.facts[1], "best 1.6 ms measured, the model said 1.5: two", "the best says what it is")
is(view.facts[2], "bound 1.2 ms, the best is 33 % above it")
is(view.facts[3], "9 plans, 2 measured")
is(view.keys, "q stops the search and keeps the best plan")
is(view.title, "it", "the title")
is(progress.view({phase = "device", measured = 3, best = 2.5e-3}, "it").facts[1], "best 2.5 ms measured")
is(progress.view({best = 1e-3, bound = 1.1e-3}, "it").facts[2], "bound 1.1 ms, which the best reaches",
  "what is measured may be below the model's bound")
is(progress.view({}, "it").facts[1], "no legal plan yet")
is(progress.view({phase = "model", best = 2e-3, history = history}, "it").facts[1], "best 2 ms predicted: one")
is(progress.view({best = 1e-3}, "it", true).keys, "Enter opens the best plan in the explorer, any other key leaves")
is(progress.view({ended = "done"}, "it", true).keys, "any key leaves")

---- the line -----------------------------------------------------------------------------------

local function watch(columns, ascii)
  local at, out = 0, {}
  local w = progress.watch{columns = columns, ascii = ascii or false, clock = function() return at end,
    out = {write = function(_, ...) out[#out + 1] = table.concat{...} end, flush = function() end}}
  return w, out, function(seconds) at = at + seconds end
end

-- What a terminal shows of that.
local function seen(out)
  local cells, x = {}, 1
  for _, code in utf8.codes(table.concat(out)) do
    local c = utf8.char(code)
    if c == "\r" then x = 1 else cells[x], x = c, x + 1 end
  end
  return (table.concat(cells):gsub(" +$", ""))
end

do
  local w, out, wait = watch(80)
  w{trials = 10, best = 2e-3}
  is(seen(out), "model: 10 plans, best 2 ms", "the first state is seen at once")
  w{trials = 11, best = 2e-3}
  is(seen(out), "model: 10 plans, best 2 ms", "the next not so soon")
  wait(0.25)
  w{trials = 9}
  is(seen(out), "model: 9 plans", "and a later line overwrites it completely")
  out[#out + 1] = "^C"
  w:finish{best = 1e-3}
  is(seen(out), "", "at the end it is gone, and what Ctrl-C left, too")
  is(w:finish(), nil, "nothing is opened without a screen")
end
do
  local at, out = 7, {}
  local function to() return {write = function(_, ...) out[#out + 1] = table.concat{...} end, flush = function() end} end
  local w = progress.watch{title = "gemm", columns = 0, ascii = true, lines = 30, clock = function() return at end, out = to()}
  w{trials = 1}
  is(#out, 0, "without a terminal nothing is seen at once")
  at = 37
  w{phase = "device", measured = 3, most = 9, best = 2e-6}
  w{phase = "device", measured = 4, most = 9, best = 2e-6}
  at = 66
  w{phase = "device", measured = 5, most = 9, best = 2e-6}
  is(table.concat(out), "gemm: device: 3 of at most 9 measured, best 2 us\n", "if lines are asked for, there is one now and then")
  at = 67
  w{phase = "device", measured = 6, most = 9, best = 2e-6}
  w:finish{best = 1e-3}
  is(#out, 2, "  and another one, and the end clears nothing")
end
do
  local w, out = watch(20)
  do
    local v <close> = w
    v{trials = 1000, shapes = 1000, best = 1.234e-6}
    is(seen(out), "model: 1000 plans o", "a line is never broken")
  end
  is(seen(out), "", "it goes whatever ends the search")
end
do
  local w, out = watch(80, true)
  w{best = 1e-6}
  is(seen(out), "model: best 1 us", "where there is no µ")
end
do
  local w, out = watch(0)
  w{best = 1e-6}
  w:finish()
  is(#out, 0, "nothing is written where nobody looks")
end
do                                                      -- looking takes its time: then it looks less often
  local at, n = 0, 0
  local w = progress.watch{columns = 80, clock = function() return at end,
    out = {write = function() at, n = at + 1, n + 1 end, flush = function() end}}
  w{trials = 1}
  at = at + 5
  local before = n
  w{trials = 2}
  is(n, before, "a terminal that is slow is written on less often")
  at = at + 6
  w{trials = 3}
  ok(n > before, "but it is")
end

tap.done_testing()
