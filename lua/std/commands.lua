-- commands.lua - millrace check, diff, show, predict and run: plans in files, for people, hooks and CI jobs.
--
-- Each function takes the arguments of the command line and returns the exit status. The files are data: they are evaluated as by
-- mr.load_plan, and see the tile language, so that a file may have its program in it, and can change nothing.

local core = require "millrace.core"
local draft = require "millrace.draft"
local json = require "millrace.json"
local loader = require "millrace.loader"
local repairs = require "millrace.repairs"
local sequences = require "millrace.sequence"
local on_sequences = require "millrace.sequence_commands"
local script = require "millrace.script"
local tile = require "millrace.tile"
local times = require "millrace.times"
local mr = require "millrace"

local commands = {}

local GOOD <const>, BAD <const>, WRONG <const>, SLOW <const> = 0, 1, 2, 3
local FEW <const> = 1e10                                -- flops: a quarter of a minute of a CPU
local RATE <const> = 6e8                                -- flops a second of a kernel on the CPU, which looks for races, too
local LIMIT <const> = 60                                -- seconds of a kernel, unless --limit gives others

---- the command line ----------------------------------------------------------------------------

-- How they are called, what they are for in a few words, which `millrace --help` prints, and what else they say.
local texts <const> = {
  {"check", "[--program FILE] [--device NAME] [--json] FILE...", "are these plans legal?", [[
Says of each plan whether it is legal, and where it is not: FILE:LINE, the
problem, its repair. Of a script that makes several plans, the last one.
Exit status: 0 if all are legal, 1 if one is not, 2 if one cannot be loaded.]]},
  {"diff", "[--program FILE] [--json] A B", "the statements that differ", [[
The lines to remove from plan A and to add to get plan B, as plan:script writes
both: comments, and how a plan was made, are no difference. A plan may come
through a pipe of the shell: millrace diff <(git show HEAD:plans/x.lua) plans/x.lua
Exit status: 0 if there are none, 1 if there are, 2 if a plan cannot be loaded.]]},
  {"show", "[--program FILE] [--device NAME] FILE [FILE]", "the plan in the explorer, or as text", [[
Opens the plan in the explorer, or two plans to be compared; without a
terminal, prints it as a table, or how the two differ.]]},
  {"predict", "[--program FILE] [--device NAME] [--json] FILE...", "its time by the model", [[
The time of each plan by the model of its device, and how far it may be off.
--json prints an object a line.]]},
  {"run", "[--program FILE] [--device NAME] [--sizes [PROGRAM:]NAME=N,...] [--on cuda|hip|host] [--limit S] [--json] FILE...", "its kernel, checked and timed", [[
Compiles the kernel of each plan, runs it, compares the outputs with the
reference and, on a device, times it. --on: by default cuda or hip if there is a
device, else host, the CPU, which is slow. --sizes: for these sizes instead
of those in FILE; the others stay. Of axes with mr.any they are the sizes of a
launch; without them the largest and the typical ones are compared.
It may be given again for one program, whose plans have those alone:
--sizes m=256,n=256 --sizes attention:m=128.
--limit: so many seconds for the kernel, 60 unless given.
--json prints an object a line.
Exit status: 0 if all agree, 1 if one is not legal or wrong, 2 if one cannot be
loaded, 3 if one was only too slow, or there is no device to run it on, so that
nothing is known of its outputs.]]},
}

local function usage_of(name)
  for _, t in ipairs(texts) do
    if t[1] == name then
      return ("usage: millrace %s %s\n%s\nFILE is a plan of plan:save, a script that makes one, or the name of a plan that comes\n"
        .. "with Millrace. --program: a file that returns the program of plans for programs of\nyour own, or a folder of such files; "
        .. "may be given again. A FILE that is - is\nstandard input.\n%s")
        :format(name, t[2], t[4], t[2]:find "--device" and "--device: for this device instead of the one in FILE: a name, as h100, or the file of one.\n" or "")
    end
  end
end

-- Lines of `millrace --help`.
function commands.summary()
  local lines = {}
  for i, t in ipairs(texts) do
    local call = ("%s %s"):format(t[1], t[2]:gsub("%[.-%] ", ""))
    lines[i] = ("       millrace %-16s %s\n"):format(call, t[3])
  end
  return table.concat(lines)
end

-- On standard error, behind what was written before: both may go to one file.
local function warn(...)
  io.stdout:flush()
  io.stderr:write(...)
end

local function complain(name, message)
  warn(("millrace %s: %s\n"):format(name, message), ("see millrace %s --help\n"):format(name))
  return WRONG
end

-- A message as it is printed: with the path instead of Lua's short form of a long one.
local function spell(message, path)
  local tail = message:match "^%.%.%.([^:]*):%d+:"
  return tail and path:sub(-#tail) == tail and path .. message:sub(#tail + 4) or message
end

local function is_program(x)
  return tile.is_program(x) or core.is(x, "millrace.program") or sequences.is_sequence(x) or core.is(x, "millrace.sequence")
end

-- The program that a file returns.
local function program_of(path)
  local x = loader.evaluate(mr, "program", path, {})
  if not is_program(x) then error(("%s returns no program"):format(path), 0) end
  return x
end

local function add_program(programs, x, path, sources)
  if sources[x.name] and sources[x.name] ~= path then
    error(("two programs are called '%s': those of %s and %s; give one of these files"):format(x.name, sources[x.name], path), 0)
  end
  programs[x.name], sources[x.name] = x, path
end

-- Adds the program that a file returns; of a folder, those of all its files that return one. sources: by name, the file that it
-- comes from; and a list of the files without one, each with what is wrong.
local function add_programs(programs, path, sources)
  if core.file_kind(path) == "folder" then
    local names = core.list(path, ".lua")
    table.sort(names)
    if not names[1] then error(("%s: no file of this folder ends in .lua"):format(path), 0) end
    local any, first = false, nil
    for _, name in ipairs(names) do
      local file = ("%s/%s.lua"):format((path:gsub("(.)/+$", "%1")), name)
      local good, why = core.try(program_of, file)
      if good then
        add_program(programs, why, file, sources)
        any = true
      else
        first = first or tostring(why)
        sources[#sources + 1] = spell(tostring(why), file)
      end
    end
    if not any then error(("%s; no file of %s returns a program"):format(first, path), 0) end
    return
  end
  add_program(programs, program_of(path), path, sources)
end

-- The sizes in "m=256,n=256" or "gemm:m=256,n=256", and the program; nil and what is wrong if it is something else.
local function sizes_of(text)
  local sizes, program = {}, text:match "^%s*([%a_][%w_]*)%s*:"
  for part in (text:gsub("^[^:]*:", "", program and 1 or 0) .. ","):gmatch "([^,]*)," do
    local axis, n = part:match "^%s*([%a_][%w_]*)=(%-?%d+)%s*$"
    local size = axis and math.tointeger(tonumber(n))
    if not axis then return nil, ("--sizes is NAME=N,..., as in m=256,n=256, not '%s'"):format(text) end
    if not size or size < 1 then return nil, ("--sizes %s: a size is an integer of at least 1, not %s"):format(text, n) end
    if sizes[axis] then return nil, ("--sizes %s: %s is given twice, as %d and as %s"):format(text, axis, sizes[axis], n) end
    sizes[axis] = size
  end
  return sizes, program
end

local takes_value <const> = {["--program"] = true, ["--on"] = true, ["--sizes"] = true, ["--device"] = true, ["--limit"] = true}

-- -> files, options; or nil and the exit status. flags: the options that this command has in addition to --program and --help.
local function parse(name, flags, least, most, ...)
  local files, sources, only_files, list = {}, {}, false, {...}
  local o = {command = name, programs = {}, without_program = sources, sizes_of = {}}
  local known = {"--program", "--help"}
  for flag in flags:gmatch "%S+" do known[#known + 1] = flag end
  local i = 1
  while i <= #list do
    local flag, joined = list[i]:match "^(%-%-%a[%w-]*)=(.*)$"
    if flag and not only_files and takes_value[flag] then
      list[i] = flag
      table.insert(list, i + 1, joined)
    end
    local word, value = list[i], list[i + 1]
    if only_files or not word:find "^%-." then
      files[#files + 1] = word
    elseif word == "--" then
      only_files = true
    elseif word == "--help" or word == "-h" then
      io.write(usage_of(name))
      return nil, GOOD
    elseif word == "--json" and flags:find(word, 1, true) then
      o.json = true
    elseif word == "--program" or (word == "--on" or word == "--sizes" or word == "--device" or word == "--limit") and flags:find(word, 1, true) then
      if not value then return nil, complain(name, word .. " needs a value") end
      i = i + 1
      if word == "--on" then
        o.on = value
      elseif word == "--limit" then
        o.limit = tonumber(value)
        if not (o.limit and o.limit > 0 and o.limit < math.huge) then
          return nil, complain(name, ("--limit is a number of seconds, not '%s'"):format(value))
        end
      elseif word == "--device" then
        local good, device = core.try(mr.device, value)
        if not good and value:find "%.lua$" and not tostring(device):find "^device: " then
          return nil, complain(name, ("--device: %s is not the file of a device: %s"):format(value, tostring(device)))
        end
        if not good then return nil, complain(name, tostring(device)) end
        o.device = device
      elseif word == "--sizes" then
        local sizes, program = sizes_of(value)
        if not sizes then return nil, complain(name, program) end
        if program then o.sizes_of[program] = sizes else o.sizes = sizes end
      else
        local good, wrong = core.try(add_programs, o.programs, value, sources)
        if not good then return nil, complain(name, spell(tostring(wrong), value)) end
      end
    else
      return nil, complain(name, ("unknown option '%s'%s"):format(word, core.hint(word, known)))
    end
    i = i + 1
  end
  if #files < least or #files > most then
    return nil, complain(name, least == most and ("%d file%s expected, got %d"):format(least, least == 1 and "" or "s", #files)
      or #files < least and "no file is given" or ("%d files are given, at most %d can be"):format(#files, most))
  end
  return files, o
end

---- plans in files --------------------------------------------------------------------------------

-- What to do about a plan whose program is not known.
local function no_program(programs, without)
  local names = draft.keys(programs)
  if #names == 0 then return function(start) return start .. "give the file that returns it: --program FILE" end end
  return function(start, name)
    local near = core.hint(name, names)
    return ("%s--program has %s%s%s"):format(start, #names <= 8 and table.concat(names, ", ") or ("%d others"):format(#names), near,
      without[1] and ("; files of its folder that were passed over: %s"):format(table.concat(without, "; ")) or "")
  end
end

-- A message of loading with FILE, or FILE:LINE, at its head, as all messages have it.
local function about_file(message, path)
  local file = path:gsub("%p", "%%%0")
  message = message:gsub("^load_plan: ", ""):gsub("^cannot open " .. file .. ": ", "cannot be opened: ")
    :gsub("^" .. file .. " is a ", "this is a "):gsub("load_plan: " .. file .. ": ", "", 1)
  return message:sub(1, #path) == path and message or ("%s: %s"):format(path, message)
end

-- The plan of a file; or nil and what is wrong, which begins with FILE:LINE where that is known. Then the message if it ended early,
-- the text of the file, and the names of Lua that had no effect.
local function load_file(name, o)
  local path = loader.path_of(name)
  local good, plan, stopped, text, is_plain, acts = core.try(loader.evaluate, mr, "load_plan", path, o.programs, o.device)
  if good and is_program(plan) then
    good, plan = false, ("%s: it returns a program, not a plan: --program goes before each file with one, or before their folder")
      :format(path)
  elseif good and core.is(plan, "millrace.sequence_plan") then
    return plan, stopped and spell(stopped, path), text, acts
  elseif good and not core.is(plan, "millrace.plan") then
    good, plan = false, ("%s: it makes no plan"):format(path)
  end
  if not good then
    local message = about_file(spell(plan, path), path):gsub("(this plan is for program '(.-)': )mr%.load_plan%(path, program%)$",
      no_program(o.programs, o.without_program))
      :gsub("this is a folder, not a file$", ("%%0; give its files: %s/*.lua"):format((name:gsub("/+$", ""):gsub("%%", "%%%%"))))
    return nil, message
  end
  if name == path and is_plain and not o.device and path ~= "/dev/stdin" and not loader.is_pipe(path) then script.keep_path(plan, path) end
  return plan, stopped and spell(stopped, path), text, acts
end

-- FILE:LINE of a problem: in the file itself. What is missing has no line there; then that of the last append.
local function location_of(problem, path, text)
  local file, line = (problem.location or ""):match "^(.*):(%d+)$"
  local tail = file and file:match "^%.%.%.(.*)$"
  if file and (file == path or "./" .. file == path or tail and path:sub(-#tail) == tail) then return path, math.tointeger(line) end
  local last, n = 1, 0
  for one in (text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    if one:find(":append%(") or one:find "mr%.plan%(" then last = n end
  end
  return path, last
end

-- Of a list as repairs.shown gives it, or of notes: each one as text. what: "note: "; "" unless given.
local function problem_texts(list, path, text, what)
  local out = {}
  for i, p in ipairs(list) do
    local file, line = location_of(p, path, text)
    out[i] = ("%s:%d: %s%s: %s"):format(file, line, what or "", p.code, p.message)
    if p.hint then out[i] = ("%s\n  %s: %s"):format(out[i], what and "try" or "repair", p.hint) end
  end
  return out
end

local function problems_as_json(list, path, text)
  local out = {}
  for i, p in ipairs(list) do
    local file, line = location_of(p, path, text)
    out[i] = json.object("file line code message hint", {file = file, line = line, code = p.code, message = p.message, hint = p.hint})
  end
  return json.list(out)
end

-- Of sizes that were given: those to bind the program for, and those of a launch, by axis, which are of axes with mr.any: the kernel
-- that is made for the range is run with them.
local function bound_and_launched(plan, sizes)
  local any, bind, launch = core.any_axes(plan.graph.program) or {}, {}, {}
  for axis, n in pairs(sizes or {}) do
    if any[axis] then launch[axis] = n else bind[axis] = n end
  end
  return bind, launch
end

-- The program of a plan with other sizes; those that are not given stay, and so do the ranges of those that are known at launch.
local function bound_for(plan, path, given)
  local sizes, launch = bound_and_launched(plan, given)
  if next(launch) then
    local good, wrong = core.try(plan.graph.program.at_sizes, plan.graph.program, launch)
    if not good then error(("%s: --sizes: %s"):format(path, (tostring(wrong):gsub("^at_sizes: ", ""))), 0) end
  end
  if not next(sizes) then return plan.graph.program end
  local program, own = tile.origin(plan.graph.program)
  if not program then error(("%s: --sizes needs a program that is bound by name"):format(path), 0) end
  local all = {}
  for axis, n in pairs(own) do all[axis] = n end
  for axis, n in pairs(sizes) do all[axis] = n end
  local good, bound = core.try(program.bind, program, all)
  if good then return bound end
  local unknown = tostring(bound):match "unknown size or option '([^']*)'"
  local others = {}
  for axis, n in pairs(sizes) do others[#others + 1] = axis ~= unknown and ("%s=%d"):format(axis, n) or nil end
  table.sort(others)
  error(("%s: --sizes: %s%s"):format(path, bound, unknown and ("; sizes for this program alone: --sizes %s:%s"):format(program.name,
    others[1] and table.concat(others, ",") or "NAME=N,...") or ""), 0)
end

-- The same plan for other sizes, which a file of plan:save takes.
local function at_sizes(plan, path, sizes)
  local bound = bound_for(plan, path, sizes)
  if bound == plan.graph.program then return plan end
  local other = loader.evaluate(mr, "load_plan", path, {[bound.name] = bound}, plan.device)
  if select(3, core.identity(other.graph.program)) ~= select(3, core.identity(bound)) then
    error(("%s: --sizes is for files of plan:save; this one has its sizes from elsewhere"):format(path), 0)
  end
  return other
end

-- Sizes by axis, size_of(tile, size, axis) of each tiled one that the program was bound with: as --sizes has them, if the plan is
-- legal for them; else nil. Sizes of other axes are as in `given`. keep: so are those of tiled ones of which size_of gives none.
local function legal_sizes(plan, path, size_of, given, keep)
  local _, own = tile.origin(plan.graph.program)
  local sizes, list, any = {}, {}, core.any_axes(plan.graph.program) or {}
  for axis, n in pairs(plan.tile) do
    local size, range = plan.graph.program.axes[axis], any[axis]
    local wanted = own and (own[axis] == size or range and not range.like) and size_of(n, size, axis)
    if wanted and range then wanted = math.min(-(-wanted // range.multiple) * range.multiple, range.max) end
    if wanted then
      sizes[axis] = wanted
      list[#list + 1] = ("%s=%d"):format(axis, wanted)
    end
  end
  for axis, n in pairs(given or {}) do
    if not plan.tile[axis] or keep and not sizes[axis] then
      sizes[axis] = n
      list[#list + 1] = ("%s=%d"):format(axis, n)
    end
  end
  table.sort(list)
  local good, other = core.try(at_sizes, plan, path, sizes)
  return list[1] and good and other:check() and table.concat(list, ",") or nil
end

-- Smaller sizes for which the plan is legal: of each axis so many tiles, four unless given. nil if none are known.
local function smaller_sizes(plan, path, tiles, given, keep)
  local any = false
  local text = legal_sizes(plan, path, function(n, size)
    if (tiles or 4) * n >= size then return nil end
    any = true
    return (tiles or 4) * n
  end, given, keep)
  return (any or not keep) and text or nil
end

-- "m=192, n=128"
local function tile_text(tile)
  local list = {}
  for axis, n in pairs(tile) do list[#list + 1] = ("%s=%d"):format(axis, n) end
  table.sort(list)
  return table.concat(list, ", ")
end

-- What its program is bound for, as "m=64, n=64", with the sizes of a launch.
local function sizes_text(plan, launch)
  local _, own = tile.origin(plan.graph.program)
  local _, _, sizes, given = core.identity(plan.graph.program)
  if not own then return sizes end
  local named = {}
  for axis, n in pairs(launch or {}) do named[axis] = n end
  for axis, size in pairs(own) do
    if plan.graph.program.axes[axis] == size then named[axis] = size end
  end
  return tile_text(named) .. (given ~= "" and ", " .. given:gsub(" ", ", ") or "")
end

-- A loop with fewer iterations than rings have versions needs other waits: sizes with longer loops for which the plan is legal, and
-- what was too short; nil.
local function longer_loops(plan, path, sizes)
  local deepest, loops = 0, {}
  for _, versions in pairs(plan.rings) do deepest = math.max(deepest, versions) end
  for _, task in ipairs(plan.tasks) do
    local n = task.loop and plan.tile[task.loop]
    loops[task.loop or ""] = n and n * deepest >= (sizes[task.loop] or math.huge) and n or nil
  end
  for more = 0, 2 do                                    -- iterations more than versions
    local short = {}
    local proposed = next(loops) and legal_sizes(plan, path, function(n, size, axis)
      local given = sizes[axis] or size
      if not loops[axis] then return math.min(size, -(-given // n) * n) end
      local iterations = -(-given // n)
      short[#short + 1] = ("%s has %d iteration%s"):format(axis, iterations, iterations == 1 and "" or "s")
      return math.min(size, math.max(iterations, deepest + more) * n)
    end, sizes)
    table.sort(short)
    if proposed then return proposed, ("the loop over %s, and rings have up to %d versions"):format(table.concat(short, ", "), deepest) end
  end
end

-- The plan for other sizes. If it does not fit them, the error names sizes that do: the next ones that have complete tiles, those with
-- longer loops, or the smallest ones.
local function fit_sizes(plan, path, text, sizes)
  local good, other, list = core.try(at_sizes, plan, path, sizes)
  if good then good, list = other:check() end
  if good then return other end
  local why = list and table.concat(problem_texts(repairs.shown(list), path, text), "\n") or other
  local proposed = legal_sizes(plan, path, function(n, size, axis)
    return sizes[axis] and math.min(size, -(-sizes[axis] // n) * n)
  end, sizes)
  local longer, short
  if list and not proposed then longer, short = longer_loops(plan, path, sizes) end
  if longer then error(("%s\n%s: %s; --sizes %s fits"):format(why, path, short, longer), 0) end
  for _, tiles in ipairs{1, 2, 4} do proposed = proposed or smaller_sizes(plan, path, tiles, sizes) end
  if not proposed then error(why, 0) end
  error(("%s\n%s: its tile is %s; --sizes %s fits"):format(why, path, tile_text(plan.tile), proposed), 0)
end

-- Call f(plan, path, text, stopped, acts) with each plan; what it raises, and files without a plan, are printed. Returns the exit status:
-- f returns whether all is well, and may return SLOW after false, which any other failure outweighs.
local function each(files, o, f)
  local status = GOOD
  for _, name in ipairs(files) do
    local path = loader.path_of(name)
    local plan, message, text, acts = load_file(name, o)
    local good, result, kind = true, false, nil
    if plan and core.is(plan, "millrace.sequence_plan") then
      local on = on_sequences[o.command]
      if not on then error(("%s: this is the plan of a sequence, which millrace %s does not take"):format(path, o.command), 0) end
      good, result, kind = core.try(on, plan, path, text, o)
      kind = kind and SLOW
    elseif plan then
      good, result, kind = core.try(f, plan, path, text, message, acts)
    end
    if not (plan and good) then
      message = plan and tostring(result) or message
      if o.json then
        io.write(json.line(json.object("file legal error", {file = path, legal = false, error = message})), "\n")
      else
        warn(message:find(path, 1, true) and "" or path .. ": ", message, "\n")
      end
    end
    if not plan then
      status = WRONG
    elseif not (good and result) and status ~= WRONG then
      status = good and kind == SLOW and status ~= BAD and SLOW or BAD
    end
  end
  return status
end

-- Notes on what a file would do if it were run as a script: one for each name and line.
local function notes_on_acts(acts)
  local out, seen = {}, {}
  for _, x in ipairs(acts or {}) do
    local key = ("%s %s"):format(x.name, x.location)
    if not seen[key] then
      seen[key] = true
      out[#out + 1] = {code = "no_effect", location = x.location, message = ("%s does nothing here, as a plan's file is data; run as a script, it would")
        :format(x.name)}
    end
  end
  return out
end

-- Is the plan legal? What is wrong is printed, as check prints it. acts: the names of Lua in the file that had no effect; or nil.
local function report_legality(plan, path, text, stopped, as_json, device, acts)
  local good, list = plan:check()
  local own, ran = repairs.joined(repairs.notes(list)), notes_on_acts(acts)
  if as_json then
    local notes = table.move(ran, 1, #ran, #(list.notes or {}) + 1, {table.unpack(list.notes or {})})
    io.write(json.line(json.object("file legal problems notes checked_up_to", {file = path, legal = good,
      problems = problems_as_json(repairs.shown(list), path, text), notes = problems_as_json(notes, path, text),
      checked_up_to = stopped})), "\n")
    return good
  end
  for _, problem in ipairs(problem_texts(repairs.shown(list), path, text)) do io.write(problem, "\n") end
  for _, note in ipairs(problem_texts(table.move(ran, 1, #ran, #own + 1, own), path, text, "note: ")) do io.write(note, "\n") end
  if stopped then io.write(stopped, "; what comes before is checked\n") end
  if good then io.write(path, as_json == nil and device and (": legal on %s\n"):format(device.name) or ": legal\n") end
  return good
end

-- The plan is legal and complete; otherwise what is wrong is raised. Returns its notes.
local function need_legal(plan, path, text, stopped)
  if stopped then error(stopped, 0) end
  local good, list = plan:check()
  if not good then error(table.concat(problem_texts(repairs.shown(list), path, text), "\n"), 0) end
  return repairs.notes(list)
end

---- the commands --------------------------------------------------------------------------------

function commands.check(...)
  local files, o = parse("check", "--json --device", 1, math.huge, ...)
  if not files then return o end
  return each(files, o, function(plan, path, text, stopped, acts)
    return report_legality(plan, path, text, stopped, o.json, o.device, acts)
  end)
end

function commands.diff(...)
  local files, o = parse("diff", "--json", 2, 2, ...)
  if not files then return o end
  local plans = {}
  local status = each(files, o, function(plan, _, _, stopped)
    if stopped then error(stopped, 0) end
    plans[#plans + 1] = plan
    return true
  end)
  if status ~= GOOD then return WRONG end
  local one, other = script.body(plans[1]:script()), script.body(plans[2]:script())
  if o.json then
    local rows = core.diff(one, other)
    local function with(sign)
      local out = {}
      for _, row in ipairs(rows) do out[#out + 1] = row[1] == sign and row[2] or nil end
      return json.list(out)
    end
    io.write(json.line(json.object("from to equal removed added diff", {from = files[1], to = files[2], equal = one == other,
      removed = with "-", added = with "+", diff = one == other and "" or script.diff_text(rows)})), "\n")
  end
  if one == other then return GOOD end
  if o.json then return BAD end
  io.write("--- ", files[1], "\n+++ ", files[2], "\n", script.diff_text(core.diff(one, other)), "\n")
  return BAD
end

function commands.show(...)
  local files, o = parse("show", "--device", 1, 2, ...)
  if not files then return o end
  local plans, refused = {}, {}                         -- by number: what raises that a plan is not legal
  local status = each(files, o, function(plan, path, text, stopped)
    if stopped then error(stopped, 0) end
    plans[#plans + 1] = plan
    refused[#plans] = function() need_legal(plan, path, text) end
    return true
  end)
  if status ~= GOOD or not plans[1] then return status end -- plans of sequences are shown one by one
  local good, why = core.try(function()
    if plans[2] then mr.show(plans[1], plans[2], {names = files, keeps_edits = false}) else plans[1]:show{keeps_edits = false} end
  end)
  for i = 1, (good or not plans[2]) and 0 or #plans do                    -- the explorer shows a second one that is not, too
    local legal, message = core.try(refused[i])
    if not legal then why = message break end
  end
  if not good then warn(tostring(why), "\n") end
  return good and GOOD or BAD
end

-- The sizes of a program by axis, in its order; of one that is known at launch, that of `launch`, or the largest.
local function sizes_by_axis(bound, launch)
  local names, axes = {}, {}
  for name in select(3, core.identity(bound)):gmatch "([%a_][%w_]*)<?=%d+" do
    names[#names + 1], axes[name] = name, launch and launch[name] or bound.axes[name]
  end
  return json.object(table.concat(names, " "), axes)
end

-- A prediction for each of the typical sizes of a plan whose sizes are known at launch.
local function typical_as_json(plan)
  local list = {}
  for i, at in ipairs(tile.typical(plan.graph.program)) do
    local tl = plan:simulate{events = 0, sizes = at}
    list[i] = json.object("sizes seconds uncertainty uncertainty_least tflops gbps bandwidth_share cycles ii", {
      sizes = json.object(table.concat(draft.keys(at), " "), at), seconds = tl.seconds, uncertainty = tl.uncertainty,
      uncertainty_least = tl.uncertainty_least, tflops = tl.tflops, gbps = tl.gbps, bandwidth_share = tl.bandwidth_share,
      cycles = tl.cycles, ii = tl.ii})
  end
  return json.list(list)
end

function commands.predict(...)
  local files, o = parse("predict", "--json --device", 1, math.huge, ...)
  if not files then return o end
  return each(files, o, function(plan, path, text, stopped)
    if o.json and not stopped and not plan:check() then
      report_legality(plan, path, text, nil, true)
      return false
    end
    local notes = need_legal(plan, path, text, stopped)
    local tl, bound = plan:simulate{events = 0}, plan.graph.program
    local _, _, sizes, given = core.identity(bound)
    if o.json then
      io.write(json.line(json.object("file legal program sizes sizes_by_axis options device evidence seconds uncertainty uncertainty_least uncertainty_reason tflops gbps bandwidth_share cycles ii typical notes", {file = path,
        legal = true, notes = problems_as_json(notes, path, text), program = bound.name, sizes = sizes, sizes_by_axis = sizes_by_axis(bound), options = given, device = plan.device.name,
        evidence = "predicted", seconds = tl.seconds,
        uncertainty = tl.uncertainty,
        uncertainty_least = tl.uncertainty_least, uncertainty_reason = tl.uncertainty_reason, tflops = tl.tflops, gbps = tl.gbps, bandwidth_share = tl.bandwidth_share, cycles = tl.cycles, ii = tl.ii, typical = typical_as_json(plan)})), "\n")
    else
      for _, note in ipairs(problem_texts(repairs.joined(notes), path, text, "note: ")) do io.write(note, "\n") end
      local power = core.no_power(tl)
      io.write(("%s: predicted %s; %s%s on %s\n"):format(path, times.text(tl), power and power .. "; " or "", script.program_text(bound),
        plan.device.name))
      for _, at in ipairs(tile.typical(bound)) do
        io.write(("%s: for %s: predicted %s\n"):format(path, tile_text(at), times.text(plan:simulate{events = 0, sizes = at})))
      end
    end
    return true
  end)
end

-- What is wrong with --sizes: no plan of the files is of its program, or a plan's program does not take them; nil. Before any of
-- them runs, which may take long.
local function wrong_sizes(files, o)
  if not (next(o.sizes_of) or o.sizes) then return nil end
  local of = {}
  for _, name in ipairs(files) do
    local plan = load_file(name, o)
    if not plan then return nil end                     -- it may be of that program; what is wrong is said where it is run
    if core.is(plan, "millrace.sequence_plan") then return nil end
    local program = plan.graph.program.name
    local sizes, from = o.sizes_of[program] or o.sizes, tile.origin(plan.graph.program)
    local good, message = true, nil
    if sizes and from then good, message = core.try(bound_for, plan, loader.path_of(name), sizes) end
    if not good then return message end
    of[program] = true
  end
  for _, program in ipairs(draft.keys(o.sizes_of)) do
    if not of[program] then
      local near = core.hint(program, draft.keys(of))
      return ("--sizes %s:...: no plan here is of a program '%s'%s"):format(program, program, near)
    end
  end
end

-- The sizes of a launch, of all axes that are known at launch: those that are given, else the largest. nil if all sizes are bound.
local function launch_sizes(plan, given)
  local any, sizes = core.any_axes(plan.graph.program), {}
  if not any then return nil end
  for axis, range in pairs(any) do sizes[axis] = given[axis] or range.like and given[range.like] or not range.like and range.max or nil end
  for axis, range in pairs(any) do sizes[axis] = sizes[axis] or sizes[range.like] end
  return sizes
end

-- The operations of a launch.
local function flops_of(plan, launch)
  if not launch then return plan.graph.flops end
  local bound, tile = plan.graph.program:at_sizes(launch), {}
  for axis, n in pairs(plan.tile) do tile[axis] = math.min(n, bound.axes[axis]) end
  return bound:graph{tile = tile}.flops
end

-- Run the kernel of a legal plan; `written` is the plan of the file, of which it is the one for `sizes`, if these are given. Of sizes that are known at launch, these are those of the launch,
-- and without them the largest and the typical ones are compared. Returns what happened: {status=, error=, plan=, target=, launch=,
-- check=, typical=, benchmark=}; status is "agrees", "differs", "slow" or "no device"; launch: sizes by axis, or nil; typical: a list
-- of {sizes=, check=}. say(...) gets what is worth a line meanwhile.
local function run_plan(written, plan, path, sizes, o, say)
  local program = plan.graph.program.name
  local launch = launch_sizes(written, select(2, bound_and_launched(written, sizes)))
  local own = core.target_for(plan)
  local asked = o.on ~= "host" and o.on or core.gpu_target(plan)
  local board, why = core.attached(asked)
  local device = board and asked == own
  if o.on == asked and not board then
    return {status = "no device", plan = plan, target = asked, launch = launch,
      error = ("%s: no device is attached, so that nothing was run: %s; --on host runs it on the CPU"):format(path, why)}
  end
  local absent = (board or core.attached()) and "no device that runs such kernels is attached" or "no device is attached"
  local target, flops = o.on or device and own or "host", flops_of(plan, launch)
  local less = target == "host" and smaller_sizes(plan, path, nil, sizes, true)
  local advice = ("--sizes %s is faster"):format(less and (o.sizes_of[program] and program .. ":" or "") .. less
    or "NAME=N,... with smaller sizes")
  local large = target == "host" and flops > FEW
  if large then
    local seconds = flops / RATE
    local time = seconds < 120 and ("%.0f seconds"):format(seconds) or ("%.0f minutes"):format(seconds / 60)
    local slow, limit = ("%.2g flops take the CPU some %s"):format(flops, time), ("--limit %.0f"):format(math.ceil(4 * seconds))
    local ends = seconds <= 2 * (o.limit or LIMIT)      -- perhaps: it is an estimate
    if not o.on then
      return {status = "slow", plan = plan, target = target, launch = launch, error = ("%s: %s, and %s; %s; --on host%s does it anyway")
        :format(path, absent, slow, advice, ends and "" or " " .. limit)}
    end
    if not ends then
      return {status = "slow", plan = plan, target = target, launch = launch, error = ("%s: %s, and it has %.4g s; %s; %s gives it four times as long")
        :format(path, slow, o.limit or LIMIT, advice, limit)}
    end
    say(path, ": ", slow, "\n")
  elseif target == "host" and not o.on then
    say(("%s: %s: it runs on the CPU, for %s%s\n"):format(path, absent, sizes_text(plan, launch),
      sizes and "" or "; " .. advice))
  end
  local kernel = plan:compile{target = target}
  -- The check for sizes of a launch; or nil and what is returned of a kernel that was too slow.
  local function compared(at)
    local good, result = core.try(kernel.check, kernel, {limit = o.limit, reference = large and not core.attached() and "host" or nil, sizes = at})
    if good then return result end
    local late = tostring(result):match "[^:]* did not finish within .*"
    if not late then error(result, 0) end
    return nil, {status = "slow", plan = plan, target = target, launch = launch,
      error = ("%s: too slow for %s, which says nothing of its outputs: for %s, %s; %s--limit S gives it S seconds")
        :format(path, target == "host" and "the CPU" or "the device", sizes_text(plan, at), late:match "^%s*(.*)", target == "host" and advice .. "; " or "")}
  end
  local result, slow = compared(launch)
  if slow then return slow end
  local all, typical = result.ok, {}
  for i, at in ipairs(not (sizes and next(select(2, bound_and_launched(plan, sizes)))) and tile.typical(plan.graph.program) or {}) do
    local one, slow = compared(at)
    if slow then return slow end
    typical[i], all = {sizes = at, check = one}, all and one.ok
  end
  return {status = all and "agrees" or "differs", plan = plan, target = target, launch = launch, check = result, typical = typical,
    benchmark = target ~= "host" and all and kernel:bench{sizes = launch} or nil}
end

-- legal: for the sizes that were asked for, of which bound is.
local function run_as_json(path, r, legal, bound)
  local _, _, sizes, given = core.identity(bound)
  local function decoded(x) return x and json.decode(x:json()) end
  local typical = {}
  for i, t in ipairs(r.typical or {}) do
    typical[i] = json.object("sizes check", {sizes = json.object(table.concat(draft.keys(t.sizes), " "), t.sizes), check = decoded(t.check)})
  end
  return json.line(json.object("file legal program sizes sizes_by_axis options device target status check typical benchmark error", {
    file = path, legal = legal, program = bound.name, sizes = sizes, sizes_by_axis = sizes_by_axis(bound, r.launch), options = given,
    device = r.plan.device.name, target = r.target, status = r.status, check = decoded(r.check), typical = json.list(typical),
    benchmark = decoded(r.benchmark), error = r.error})) .. "\n"
end

-- By status: nothing is known of the outputs.
local unknown <const> = {slow = SLOW, ["no device"] = SLOW}

function commands.run(...)
  local files, o = parse("run", "--on --sizes --device --limit --json", 1, math.huge, ...)
  if not files then return o end
  if o.on and o.on ~= "cuda" and o.on ~= "hip" and o.on ~= "host" then
    return complain("run", "--on is cuda, hip or host, not " .. o.on)
  end
  local wrong = wrong_sizes(files, o)
  if wrong then return complain("run", wrong) end
  return each(files, o, function(plan, path, text, stopped)
    -- As written first: sizes of few tiles hide what is wrong with waits and rings.
    if o.json and not stopped and not plan:check() then
      report_legality(plan, path, text, nil, true)
      return false
    end
    need_legal(plan, path, text, stopped)
    local sizes = o.sizes_of[plan.graph.program.name] or o.sizes
    local fits, fitted = true, plan
    if sizes then fits, fitted = core.try(fit_sizes, plan, path, text, sizes) end
    if not fits and not o.json then error(fitted, 0) end
    if o.json then
      local good, r = fits, fitted
      if fits then good, r = core.try(run_plan, plan, fitted, path, sizes, o, function() end) end
      if not good then
        r = {status = "failed", plan = plan, target = o.on, launch = launch_sizes(plan, select(2, bound_and_launched(plan, sizes))),
          error = tostring(r)}
      end
      io.write(run_as_json(path, r, fits, fits and fitted.graph.program or bound_for(plan, path, sizes)))
      return r.status == "agrees", unknown[r.status]
    end
    local r = run_plan(plan, fitted, path, sizes, o, warn)
    if unknown[r.status] then
      warn(r.error, "\n")
      return false, SLOW
    end
    local function compared(at, result)
      io.write(("%s: on %s%s, it %s\n"):format(path, r.target == "host" and "the CPU" or "the device", at and " for " .. tile_text(at) or "",
        tostring(result)))
    end
    compared(r.launch, r.check)
    for _, t in ipairs(r.typical) do compared(t.sizes, t.check) end
    if r.benchmark then io.write(("%s: measured %s\n"):format(path, tostring(r.benchmark))) end
    return r.status == "agrees"
  end)
end

return commands
