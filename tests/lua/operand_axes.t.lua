-- Values over several axes, in any order, as a program has them when it is first written: a plan in the program's order is
-- legal, and right. Products contract several axes, operands lie in memory in any order of their axes, or in blocks, axes have
-- one value, and an index is asked for anywhere in a task.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local where = mr.where

-- The sTasks in the program's order on one lane or, with `lanes`, loads on one and the others on two more.
local function schedule(bound, tile, lanes)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for i, t in ipairs(plan.tasks) do
    plan:append(t.name, lanes and {lane = t.kind == "load" and "p0" or "c" .. i % 2} or {})
  end
  plan:fill_waits()
  return plan
end

local function right(what, bound, tile, lanes)
  local plan = schedule(bound, tile, lanes)
  local legal, problems = plan:check()
  if not tap.ok(legal, what .. ": legal", tostring(problems)) then return end
  local verdict = tostring(plan:compile{target = "host"}:check{})
  tap.ok(verdict:find "^agrees", what, verdict, plan:script())
end

-- The axes named by the letters of a word.
local function by_letters(axes, word)
  local list = {}
  for letter in word:gmatch "." do list[#list + 1] = axes[letter] end
  return list
end

-- An index -----------------------------------------------------------------------------------------

-- Wherever it stands in a task: before or after other values of the same axis, once, twice, or for both axes.
local masks = {
  last = function(c, s, i) return where(s:gt(0) & i():lt(50), c, 0) end,
  first = function(c, s, i) return where(i():lt(50) & s:gt(0), c, 0) end,
  twice = function(c, s, i) return where(i():ge(10) & i():lt(50) & s:gt(0), c, 0) end,
  kept = function(c, s, i)
    local at = i()
    return where(at:ge(10) & at:lt(50) & s:gt(0), c, 0)
  end,
  scaled = function(c, s, i) return c * (s * 2 + i():to "f32" * 0.125) end,
  between = function(c, s, i)
    local t = s * 2
    local at = i() * 3
    return c + mr.max(t, at:to "f32") * t
  end,
}
for name, mask in pairs(masks) do
  for _, axis in ipairs{"m", "n"} do
    for _, looped in ipairs{false, true} do
      local program = mr.program("index", function(p)
        local m, n, k = p:axes("m", "n", "k")
        local along = axis == "m" and m or n
        local A, B, S = p:input("A", {m, k}), p:input("B", {n, k}), p:input("S", {along}, "f32")
        local s, c = p:load("s", S), nil
        if looped then
          c = p:carry("c", {m, n}, 0)
          p:loop(k, function() c:add(p:mma("mma", p:load("a", A), p:load("b", B))) end)
        else
          c = p:mma("mma", p:load("a", A), p:load("b", B))
        end
        p:output("C", {m, n}, "f32"):store("store", p:task("mask", function()
          return mask(c, s, function() return along:index() end)
        end))
      end)
      right(("index %s of %s%s"):format(name, axis, looped and ", behind a loop" or ""), program{m = 72, n = 88, k = 32},
        {m = 64, n = 64})
    end
  end
end
-- The index of the only axis that is left.
for _, batch in ipairs{true, false} do
  local program = mr.program("find", function(p)
    local b, page, t = p:axes("b", "page", "t")
    local T, P = p:input("table", {b, t}, "i32"), p:output("found", {b, page}, "i32")
    if batch then p:batch(b, page) else p:batch(b) end
    local tab = p:load("tab", T)
    P:store("store", p:task("find", function()
      local i = t:index()
      return mr.rowmax(where(tab:eq(page:index()), i, -1), t)
    end))
  end)
  right(batch and "an index alone, by batch" or "an index alone, in one tile", program{b = 2, page = 6, t = 8})
end
tap.done_testing()
