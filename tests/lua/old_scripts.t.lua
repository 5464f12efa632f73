-- Plan scripts of version 0.1.0 load unchanged and give the same kernels: all measured plans of tests/perf and the example plans of
-- that version (old_examples.jsonl).
--
-- old_scripts.txt has the hash of each kernel's text without comments. Where generated text changes on purpose,
-- `BLESS=1 build/millrace tests/lua/old_scripts.t.lua` writes it again. The scripts themselves never change.
local dir = arg[0]:match "^(.*/)" or "./"
local tap, measured = dofile(dir .. "tap.lua"), dofile(dir .. "../perf/measured.lua")
local core = require "millrace.core"

-- The hash of each complete list: a renamed word in a script would hide that the old one no longer loads.
local lists = {
  {measured.sweep, "2af418063c423e863778d39131818667"},
  {measured.unseen, "b2d605ce79f4c505638a906e226b74c4"},
  {dir .. "old_examples.jsonl", "b0377dc2da0352ca283fd6adebefd537"},
}

local function read_all(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local function without_comments(text)
  local code = text:gsub("/%*.-%*/", ""):gsub("//[^\n]*", ""):gsub("[ \t]+\n", "\n"):gsub("\n\n+", "\n")
  return code
end

local lines = {}
for _, list in ipairs(lists) do
  local path, hash = table.unpack(list)
  tap.is(core.hash(read_all(path)), hash, path:match "[^/]*$" .. " is as it was written")
  local failed = {}
  for _, row in ipairs(measured.plans(path)) do
    local good, kernel = pcall(function() return assert(load(row.script))():compile{target = "cuda", text = true} end)
    local name = ("%s, %s"):format(row.family, row.name)
    if not good then failed[#failed + 1] = ("%s: %s"):format(name, kernel) end
    lines[#lines + 1] = ("%s %s"):format(good and core.hash(without_comments(kernel.source)) or "no kernel", name)
  end
  tap.is(table.concat(failed, "\n"), "", "  its plans have kernels")
end
tap.golden(dir .. "old_scripts.txt", table.concat(lines, "\n") .. "\n", "the kernels are the same")
tap.done_testing()
