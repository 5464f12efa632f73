-- Each pass of lowering: the tree of a lane before and behind it is that of tests/lua/passes/NAME.txt, and
-- docs/internals/lowering.md lists the passes. If either changes on purpose,
-- `BLESS=1 build/millrace tests/lua/passes.t.lua` writes both again, to be read before they are committed.
local dir = (arg[0]:match "^(.*/)" or "./")
local tap = dofile(dir .. "tap.lua")
local mr = require "millrace"
local core = require "millrace.core"

local function attention(name, causal)
  return mr.load_plan(name, mr.examples.flash_attention{b = 1, h = 1, m = 256, n = 512, d = 64, causal = causal})
end

local function scan()
  local plan = mr.plan(mr.examples.chunk_scan{b = 1, h = 1, n = 64, p = 64, s = 256, D = false}:graph{tile = {k = 128, l = 128, n = 64, p = 64}},
    mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 8})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  return plan
end

-- What shows best what a pass does: a plan and one of its lanes.
local shown = {
  build = {attention "attention_overlap", "c0"}, stamp = {attention "attention_serial", "p0"},
  peel = {attention "attention_overlap", "c0"}, hoist = {attention "attention_serial", "c0"},
  unroll = {attention "attention_overlap", "c0"}, signal = {attention "attention_overlap", "c0"},
  pin = {attention "attention_serial", "c0"}, select = {attention "attention_serial", "c0"},
  skip = {scan(), "c0"},
  unmask = {attention("attention_serial", true), "c0"}, specialize = {attention("attention_serial", true), "c0"},
  merge = {attention "attention_pingpong", "c0", "c0, c1"},
}

local function read(path)
  local f = io.open(path)
  local text = f and f:read "a" or ""
  if f then f:close() end
  return text
end

-- The lane's part of a dump.
local function lane(text, name)
  local at = assert(text:find("lane " .. name .. ":", 1, true))
  local last = text:find("\nlane ", at, true)
  return text:sub(at, last or -1)
end

local passes, rows = core.passes(), {}
for i, pass in ipairs(passes) do
  rows[#rows + 1] = ("| `%s` | %s | %s | %s |"):format(pass.name, pass.optional and "yes" or "", pass.needs, pass.promises)
  if pass.tree then
    local plan, name, name_behind = table.unpack(shown[pass.name])
    local before = i > 1 and lane(core.role_text(plan, i - 1, pass.name == "stamp"), name) or ""
    tap.golden(dir .. "passes/" .. pass.name .. ".txt", ("---- before %s\n%s---- behind %s\n%s"):format(pass.name, before,
      pass.name, lane(core.role_text(plan, i, pass.name == "stamp"), name_behind or name)), pass.name .. ": the tree before and behind it")
    tap.is(tostring(plan:kernel{after = pass.name}), core.role_text(plan, i), "  plan:kernel shows it")
  end
end
tap.is(core.role_text(shown.peel[1], 10), core.role_text(shown.peel[1]), "behind unmask stands what is proven and priced")
local plan = [[local plan = mr.load_plan "attention_serial" ]]
local trees = "build, stamp, peel, hoist, unroll, signal, pin, select, skip, unmask, specialize, merge"
tap.refuses(plan .. [[plan:kernel{after = "peal"}]],
  "user.lua:1: kernel: there is no pass 'peal' that makes a tree; did you mean 'peel'? (known: " .. trees .. ")")
tap.refuses(plan .. [[plan:kernel{after = "partial_sums"}]],
  "user.lua:1: kernel: there is no pass 'partial_sums' that makes a tree (known: " .. trees .. ")")
tap.refuses(plan .. [[plan:compile{without = {"peel"}}]],
  "user.lua:1: compile: there is no pass 'peel' that can be left out (known: hoist, skip, unmask, merge, partial_sums, load_fences)")
local merged = shown.merge[1]:compile{text = true}.source
local apart = shown.merge[1]:compile{text = true, without = {"merge"}}.source
tap.ok(merged:find("lanes c0, c1 ", 1, true) and not apart:find("lanes c0", 1, true) and apart:find("lane c1 ", 1, true),
  "merge can be left out")
tap.is(shown.peel[1]:compile{text = true, without = {"before"}}.source,
  shown.peel[1]:compile{text = true, without = {"hoist"}}.source, "a deprecated name does the same")

-- The table of the document.
local path = dir .. "../../docs/internals/lowering.md"
local head, _, tail = read(path):match "^(.-<!%-%- from passes.def %-%->\n)(.-)(<!%-%- end %-%->.*)$"
local made = "| pass | can be left out | needs | promises |\n|---|---|---|---|\n" .. table.concat(rows, "\n") .. "\n"
if head then tap.golden(path, head .. made .. tail, "docs/internals/lowering.md has the passes")
else tap.ok(false, "docs/internals/lowering.md has a table of the passes") end
tap.done_testing()
