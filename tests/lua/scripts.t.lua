-- Plans as files: what plan:save writes, keeps and refuses.
local mr = require "millrace"
local core = require "millrace.core"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local dir = os.tmpname()
os.remove(dir)
assert(os.execute(("mkdir '%s'"):format(dir)))
local function at(name) return dir .. "/" .. name end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  return path
end

local function message_of(f, ...)
  local good, message = pcall(f, ...)
  return good and "no error" or (tostring(message):gsub("^[^:]*:%d+: ", ""))
end

local bound = mr.examples.gemm{m = 512, n = 512, k = 512}
local function new_plan() return mr.load_plan("gemm_cooperative", bound) end

---- the head ----------------------------------------------------------------------------------

local plan = new_plan()
local head = ("-- Millrace %s: gemm m=512 n=512 k=512 on h200\n"):format(mr.version)
is(plan:script():sub(1, #head), head, "a script begins with version, program, sizes and device")
plan:buffers{a = 3}
is(plan:script():sub(1, #head), head, "  the same when a statement changes")

---- saving ------------------------------------------------------------------------------------

is(plan.path, nil, "a plan has no file at first")
like(message_of(plan.save, plan), "^save: this plan has no file yet; say where", "  and is not saved without a path")
is(plan:save(at "one.lua"), at "one.lua", "plan:save returns the path")
is(plan.path, at "one.lua", "  which is the plan's file from then on")
local text = read(at "one.lua")
like(text, "^" .. head:gsub("%p", "%%%0") .. "%-%- predicted [%d.]+ ms\nlocal mr = ", "  it says how fast the plan is")
is(mr.load_plan(at "one.lua"):script(), plan:script(), "  and is the plan")
is(#core.list(dir, ""), #core.list(dir, ".lua") + 2, "  nothing else is left in the folder")

local other = new_plan()
like(message_of(other.save, other, at "one.lua"), "^save: .*one%.lua exists, and is not the file of this plan; " ..
  "plan:save%(\".*one%.lua\", {overwrite=true}%) replaces it$", "the file of another plan is not replaced")
is(read(at "one.lua"), text, "  and is as it was")
is(other.path, nil, "  nor is it the plan's file")
other:save(at "one.lua", {overwrite = true})
is(mr.load_plan(at "one.lua"):script(), other:script(), "  unless that is asked for")

-- A file with comments of the user's, by another name of the same file.
local comments = "#!/usr/bin/env millrace\n-- Why this plan is as it is:\n\n--[[ a longer\ntext ]]\n-- predicted 3 weeks of work\n"
write(at "two.lua", comments .. plan:script() .. "-- the end\n")
os.execute(("ln -s two.lua '%s'; chmod 600 '%s'"):format(at "link.lua", at "two.lua"))
local loaded = mr.load_plan(at "link.lua")
is(loaded.path, at "link.lua", "a plan that was loaded knows its file")
loaded:buffers{a = 4}
local copy = loaded:copy()
is(copy.path, loaded.path, "  so does a copy")
loaded:undo()
is(loaded.path, at "link.lua", "  also after edits")
copy:save(at "two.lua")
is(read(at "two.lua"):sub(1, #comments + #head), comments .. head, "comments at the head of the file stay")
copy:save()
copy:save()
local lines = select(2, read(at "two.lua"):gsub("%-%- predicted [%d.]+ ms", ""))
is(lines, 1, "  ours are written anew")
is(io.popen(("cd '%s'; stat -c '%%a %%F' two.lua link.lua"):format(dir)):read "a", "600 regular file\n777 symbolic link\n",
  "permissions and links stay, too")

plan = mr.plan(bound:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
plan:append "mma"
plan:save(at "broken.lua")
ok(not read(at "broken.lua"):find "predicted", "of a plan that is not legal no time is told")
is(mr.load_plan "gemm_cooperative".path, nil, "plans that come with Millrace have no file to be written to")

like(message_of(plan.save, plan, "x.lua", {overwrit = true}), "^save: unknown option 'overwrit'; did you mean 'overwrite'%?$",
  "an option that does not exist")
like(message_of(plan.save, plan, dir), "^save: .* is a folder, not a file$", "a folder is no file")
like(message_of(plan.save, plan, at "none/x.lua"), "^save: cannot write .*/none/x%.lua: No such file or directory$",
  "a folder that is not there")
like(message_of(plan.save, plan, "/dev/null", {overwrite = true}), "^save: /dev/null is a device or a pipe, not a file$", "a device")
like(message_of(plan.save, plan, 5), "^save: path expected, got 5$", "what is no path")

os.execute(("rm -r '%s'"):format(dir))
tap.done_testing()
