-- lesson.lua - lessons: short texts with code that is run, drawings, and questions whose answers are
-- computed. A lesson is a file of examples/lessons/ that says mr.lesson{...}.

local core = require "millrace.core"
local raise, show, entry, hint, expect = core.raise, core.show, core.entry, core.hint, core.expect

local WIDTH <const> = 78                                -- columns of text and drawings, at most
local CLOSE <const> = 0.05                              -- a guess this near is right

-- What a step may have in addition to the key that says its kind.
local kinds <const> = {
  text = {}, code = {},
  show = {brief = true, options = true, name = true, typed = true},
  ask = {answer = true, unit = true, choices = true, because = true},
  claim = {that = true},
  try = {on = true},
}
local loading                                           -- path of the file that is being loaded, if we load it

---- numbers and text -------------------------------------------------------------------

-- Three digits, or all digits before the point of a larger number: 0.203, 12.5, 1,024.
local function number_text(x)
  if x ~= x or math.abs(x) == math.huge then return tostring(x) end
  if math.abs(x) < 1000 and x ~= math.floor(x) then return ("%.3g"):format(x) end
  local digits = ("%.0f"):format(x):gsub("^%-0$", "0")
  return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^(%-?),", "%1"))
end

-- What the expressions in a lesson's text may use in addition to the lesson's own names.
local helpers = setmetatable({
  number = number_text,
  percent = function(x) return ("%.0f %%"):format(100 * x) end,
  us = function(seconds) return number_text(seconds * 1e6) .. " us" end,
  ms = function(seconds) return ("%.3g ms"):format(seconds * 1e3) end,
}, {__index = _G})

local function evaluate(run, what, expression)
  local chunk, message = load("return " .. expression, ("=%s, %s"):format(run.lesson.name, what), "t", run.inner)
  if not chunk then raise("lesson: " .. message) end
  return chunk()
end

-- $(expression) is what that is.
local function filled(run, what, text)
  return (text:gsub("%$(%b())", function(expression)
    local value = evaluate(run, what, expression)
    return type(value) == "number" and number_text(value) or tostring(value)
  end))
end

-- Paragraphs to lines of so many columns; what is indented stays as it is.
local function wrapped(text, width, first, others)
  local lines, line = {}, nil
  first, others = first or "", others or first or ""
  local function flush()
    if line then lines[#lines + 1] = line end
    line = nil
  end
  for raw in (text:gsub("%s+$", "") .. "\n"):gmatch "(.-)\n" do
    if raw:find "^%s" or raw == "" then
      flush()
      lines[#lines + 1] = raw == "" and "" or others .. raw
    else
      for word in raw:gmatch "%S+" do
        if line and #line + 1 + #word <= width then
          line = line .. " " .. word
        else
          flush()
          line = (#lines == 0 and first or others) .. word
        end
      end
    end
  end
  flush()
  return lines
end

---- a step, done -------------------------------------------------------------------------

local function without_indent(text) return (text:gsub("^\n", ""):gsub("%s+$", "")) end

-- Runs code as the shell would; what it prints is its output.
local function do_code(run, step, what)
  local out = {}
  run.env.print = function(...)
    local list = table.pack(...)
    for i = 1, list.n do list[i] = tostring(list[i]) end
    out[#out + 1] = table.concat(list, "\t")
  end
  local chunk, message = load(step.code, "=[" .. what:match "%d+" .. "]", "t", run.env)
  if not chunk then raise(("lesson: %s, %s: %s"):format(run.lesson.name, what, message)) end
  chunk()
  run.env.print = nil
  return {kind = "code", code = without_indent(step.code), out = (table.concat(out, "\n"):gsub("%s+$", ""))}
end

-- The chart of a timeline without its totals.
local function brief(text) return (text:gsub("\n\nbusy.*", "\n")) end

local function literal(options)
  local parts = {}
  for key, value in pairs(options or {}) do
    parts[#parts + 1] = ("%s=%s"):format(key, type(value) == "string" and ("%q"):format(value) or tostring(value))
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function drawing(run, step, thing)
  local o = {width = run.width, ascii = run.ascii, color = run.color}
  for key, value in pairs(step.options or {}) do o[key] = value end
  if core.is(thing, "millrace.timeline") then
    local text = thing:text(o)
    return step.brief and brief(text) or text, ("%s:print%s"):format(step.show, step.options and literal(step.options) or "()")
  elseif core.is(thing, "millrace.graph") then
    return thing:drawing(o), ("print(%s:drawing())"):format(step.show)
  elseif core.is(thing, "millrace.plan") then
    return thing:table(o), step.show
  end
  return tostring(thing), ("print(%s)"):format(step.show)
end

local function do_show(run, step, what)
  local thing = evaluate(run, what, step.show)
  local text, typed = drawing(run, step, thing)
  return {kind = "show", typed = step.typed or typed, drawing = (text:gsub("%s+$", "")), object = thing, name = step.name,
    options = step.options}
end

local function do_ask(run, step, what)
  local answer = evaluate(run, what, step.answer)
  local page = {kind = "ask", question = filled(run, what, without_indent(step.ask)), choices = step.choices, unit = step.unit,
    answer = answer}
  if step.choices then
    page.answer = type(answer) == "number" and step.choices[answer] or answer
    for i, text in ipairs(step.choices) do
      if text == page.answer then page.index = i end
    end
    if not page.index then raise(("lesson: %s, %s: %s is no choice"):format(run.lesson.name, what, show(answer))) end
    page.shown = page.answer
  else
    page.shown = (step.unit == "%" and ("%.0f"):format(answer) or number_text(answer)) .. (step.unit and " " .. step.unit or "")
  end
  page.because = step.because and filled(run, what, without_indent(step.because))
  return page
end

local function do_try(run, step, what)
  local list = {}
  for i, t in ipairs(step.try) do
    list[i] = {edit = without_indent(t[1]), question = filled(run, what, without_indent(t[2])), that = t.that}
  end
  return {kind = "try", on = step.on or "plan", list = list}
end

local does <const> = {
  text = function(run, step, what) return {kind = "text", text = filled(run, what, without_indent(step.text))} end,
  code = do_code, show = do_show, ask = do_ask, try = do_try,
  claim = function(run, step, what)
    return {kind = "claim", claim = step.claim, holds = evaluate(run, what, step.that) and true or false}
  end,
}

local function kind_of(step)
  for kind in pairs(kinds) do
    if step[kind] ~= nil then return kind end
  end
end

-- A run of a lesson has the names that its code makes. They may hide, and not change, those of others.
local function begin(lesson, o)
  local env, hidden = setmetatable({}, {__index = _G}), {}
  local run = {lesson = lesson, env = env, width = math.min(o.width or WIDTH, WIDTH), ascii = o.ascii ~= false,
    color = o.color or false, pages = {}}
  run.inner = setmetatable({}, {__newindex = hidden, __index = function(_, key)
    if rawget(env, key) ~= nil then return env[key] end
    if hidden[key] ~= nil then return hidden[key] end
    return helpers[key]
  end})
  if lesson.setup then
    local chunk, message = load(lesson.setup, ("=%s, setup"):format(lesson.name), "t", run.inner)
    if not chunk then raise("lesson: " .. message) end
    chunk()
  end
  return run
end

-- The page of step i, which is done when it is first asked for.
local function page(run, i)
  if not run.pages[i] then
    local step = run.lesson.steps[i]
    run.pages[i] = does[kind_of(step)](run, step, "step " .. i)
  end
  return run.pages[i]
end

---- as text -------------------------------------------------------------------------------

local function as_typed(code)
  local lines, prompt = {}, "mr> "
  for line in (code .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line == "" and prompt:sub(1, -2) or prompt .. line
    -- A complete line is followed by a new prompt, as in the shell.
    local so_far = {}
    for k = #lines, 1, -1 do
      table.insert(so_far, 1, lines[k]:sub(5))
      if lines[k]:sub(1, 3) == "mr>" then break end
    end
    prompt = load(table.concat(so_far, "\n")) and "mr> " or ">> "
  end
  return table.concat(lines, "\n")
end

local function add(lines, more)
  for _, line in ipairs(more) do lines[#lines + 1] = line end
end

local function question_lines(p, width)
  local lines = wrapped(p.question, width, "? ", "  ")
  for i, choice in ipairs(p.choices or {}) do add(lines, wrapped(choice, width, ("  %d "):format(i), "    ")) end
  return lines
end

-- How far a guess is off.
local function verdict(p, guess)
  if p.choices then return guess == p.index and "That is right." or "That is another one." end
  local off = p.unit == "%" and math.abs(guess - p.answer) / 100 or math.abs(guess - p.answer) / math.max(math.abs(p.answer), 1e-9)
  if guess == p.answer then return "That is right." end
  local side = guess < p.answer and "less" or "more"
  if p.unit == "%" then
    return ("%s: %s is %.0f points %s."):format(off <= CLOSE and "That is near" or "That is not near", number_text(guess), 100 * off, side)
  end
  return ("%s: %s is %.0f %% %s."):format(off <= CLOSE and "That is near" or "That is not near", number_text(guess), 100 * off, side)
end

local function answer_lines(p, width, guess)
  local lines = wrapped(("Answer: %s.%s"):format(p.shown, guess and " " .. verdict(p, guess) or ""), width, "= ", "  ")
  if p.because then add(lines, wrapped(p.because, width)) end
  return lines
end

local function try_lines(run, p)
  local lines = wrapped("Try yourself, in the explorer or at the prompt:", run.width)
  for i, t in ipairs(p.list) do
    add(lines, {""})
    local n = 0
    for line in (t.edit .. "\n"):gmatch "(.-)\n" do
      n = n + 1
      lines[#lines + 1] = (n == 1 and ("  %d. "):format(i) or "     ") .. line
    end
    add(lines, wrapped(t.question, run.width, "     "))
  end
  return lines
end

-- The lines of a page, less the answer to a question.
local function page_lines(run, p)
  if p.kind == "text" then return wrapped(p.text, run.width) end
  if p.kind == "code" then return {as_typed(p.code) .. (p.out ~= "" and "\n" .. p.out or "")} end
  if p.kind == "show" then return {"mr> " .. p.typed, p.drawing} end
  if p.kind == "ask" then return question_lines(p, run.width) end
  if p.kind == "try" then return try_lines(run, p) end
  return nil                                            -- a claim is for the tests
end

local function head(lesson) return {("Lesson %d: %s"):format(lesson.number, lesson.title), ""} end

local function next_of(lesson)
  for _, other in ipairs(require("millrace").lessons()) do
    if other.number > lesson.number then return other end
  end
end

-- at_prompt: it was called there, where the plans are then.
local function foot(lesson, name, at_prompt)
  local lines, after = {}, next_of(lesson)
  local where = at_prompt and "Its plans are at the prompt"
    or ("To have its plans at the prompt: millrace -i examples/lessons/%s.lua"):format(lesson.file)
  lines[1] = ("%s%s %s:show() opens the explorer."):format(where, at_prompt and ":" or ";", name)
  if after then lines[2] = ('Next: mr.lesson "%s": %s'):format(after.name, after.title) end
  return lines
end

local function last_plan(run)
  for i = #run.lesson.steps, 1, -1 do
    if run.lesson.steps[i].try then return run.lesson.steps[i].on or "plan" end
  end
  return "plan"
end

---- in one go, or step by step ----------------------------------------------------------------

local function print_lines(lines)
  io.write(table.concat(lines, "\n"), "\n")
end

local function in_one_go(run)
  print_lines(head(run.lesson))
  for i = 1, #run.lesson.steps do
    local p = page(run, i)
    local lines = page_lines(run, p)
    if lines then
      print_lines(lines)
      if p.kind == "ask" then print_lines(answer_lines(p, run.width)) end
      io.write "\n"
    end
  end
  for _, text in ipairs(foot(run.lesson, last_plan(run), run.at_prompt)) do print_lines(wrapped(text, run.width)) end
end

local keys <const> = {["\n"] = "on", ["\r"] = "on", [" "] = "on", n = "on", ["\27[C"] = "on", ["\27[B"] = "on",
  b = "back", ["\127"] = "back", ["\27[D"] = "back", ["\27[A"] = "back", q = "leave", ["\4"] = "leave"}

-- Waits for a key that means something; the line that asks for it goes again.
local function wait_for_key(number, count)
  io.write(("-- %d of %d. Enter: on, b: back, q: leave --"):format(number, count))
  io.flush()
  local what
  repeat
    local key = core.key()
    what = key == nil and "leave" or keys[key]
  until what
  io.write "\r\27[K"
  return what
end

-- A guess; or "back" or "leave"; or nil.
local function wait_for_guess(p)
  while true do
    io.write(p.choices and "Your guess, its number (Enter: none) > " or "Your guess (Enter: none) > ")
    io.flush()
    local line = io.read "l"
    if not line then return "leave" end
    line = line:gsub("[%s,%%]", "")
    if p.unit then line = line:gsub(p.unit:gsub("%W", "%%%0") .. "$", "") end
    if line == "" then return nil end
    if line == "q" then return "leave" end
    if line == "b" then return "back" end
    local guess = tonumber(line)
    if guess and (not p.choices or p.choices[guess]) then return guess end
    io.write(p.choices and ("A number from 1 to %d, please.\n"):format(#p.choices) or "A number, please.\n")
  end
end

local function step_by_step(run)
  local steps, i, guesses = {}, 1, {}
  for k, step in ipairs(run.lesson.steps) do
    if not step.claim then steps[#steps + 1] = k end
  end
  print_lines(head(run.lesson))
  while i <= #steps do
    local p, what = page(run, steps[i]), nil
    print_lines(page_lines(run, p))
    if p.kind == "ask" then
      if guesses[i] == nil then what = wait_for_guess(p) end
      if type(what) == "number" or what == nil then
        guesses[i] = guesses[i] or what or false
        print_lines(answer_lines(p, run.width, guesses[i] or nil))
        what = nil
      end
    end
    if not what then
      io.write "\n"
      what = wait_for_key(i, #steps)
    end
    if what == "leave" then return end
    i = what == "back" and math.max(i - 1, 1) or i + 1
  end
  for _, text in ipairs(foot(run.lesson, last_plan(run), run.at_prompt)) do print_lines(wrapped(text, run.width)) end
end

local function play(lesson, o)
  local term = core.terminal()
  local run = begin(lesson, {width = term.width, ascii = not term.utf8, color = term.color})
  run.at_prompt = o.at_prompt
  if term.both and not o.all then step_by_step(run) else in_one_go(run) end
  for name, value in pairs(run.env) do _G[name] = value end      -- what the lesson made is the reader's
end

---- lessons ---------------------------------------------------------------------------------

local lesson_class = {__name = "millrace.lesson", __metatable = "millrace.lesson", __index = {}}

function lesson_class.__tostring(lesson) return ("lesson %d, %s: %s"):format(lesson.number, lesson.name, lesson.title) end

-- All that it says, done in order: a list of pages, and the names that its code has made.
function lesson_class.__index.pages(lesson, o)
  local run = begin(lesson, o or {})
  local pages = {}
  for i = 1, #lesson.steps do pages[i] = page(run, i) end
  return pages, run.env
end

local function check_step(step, i)
  local kind = type(step) == "table" and kind_of(step)
  if not kind then raise(("lesson: step %d is of no kind: text, code, show, ask, claim or try"):format(i)) end
  for key in pairs(step) do
    if key ~= kind and not kinds[kind][key] then
      raise(("lesson: step %d: %s has no field %s"):format(i, kind, show(key)))
    end
  end
  if kind == "ask" and not step.answer then raise(("lesson: step %d: a question needs an answer"):format(i)) end
end

-- The file that calls mr.lesson{...}.
local function calling_file()
  for level = 2, 20 do
    local info = debug.getinfo(level, "S")
    if not info then return nil end
    if info.source:sub(1, 1) == "@" then return info.source:sub(2) end
  end
end

local function define(t)
  local path = loading or calling_file() or "lesson"
  local file = path:match "([^/]*)%.lua$" or path
  local lesson = {title = t.title, idea = t.idea, setup = t.setup, file = file, path = path, number = tonumber(file:match "^%d+") or 0,
    name = file:gsub("^%d+_", ""), steps = {}}
  expect(type(t.title) == "string", "lesson", "title", t.title)
  expect(type(t.idea) == "string", "lesson", "idea", t.idea)
  for i, step in ipairs(t) do
    check_step(step, i)
    lesson.steps[i] = step
  end
  return setmetatable(lesson, lesson_class)
end

local function load_lesson(path)
  local chunk, message = loadfile(path, "t")
  if not chunk then raise("lesson: " .. message) end
  local before = loading
  loading = path
  local good, lesson = pcall(chunk)
  loading = before
  if not good then error(lesson, 0) end
  if getmetatable(lesson) ~= "millrace.lesson" then raise(("lesson: %s returns no lesson"):format(path)) end
  return lesson
end

local list_class = {__name = "millrace.lessons", __tostring = function(list)
  local lines = {}
  for i, lesson in ipairs(list) do lines[i] = ("%2d  %-12s %s"):format(lesson.number, lesson.name, lesson.title) end
  return table.concat(lines, "\n")
end}

local function lessons()
  local folder = core.home() .. "/examples/lessons"
  local files, list = core.list(folder, ".lua"), {}
  table.sort(files)
  for _, file in ipairs(files) do list[#list + 1] = load_lesson(("%s/%s.lua"):format(folder, file)) end
  table.sort(list, function(a, b) return a.number < b.number end)
  return setmetatable(list, list_class)
end

local function find(name)
  local names = {}
  for i, lesson in ipairs(lessons()) do
    if lesson.name == name or lesson.file == name or lesson.number == name then return lesson end
    names[i] = lesson.name
  end
  raise(("lesson: there is no lesson %s%s"):format(show(name), type(name) == "string" and hint(name, names) or ""))
end

-- mr.lesson "rings" plays one; mr.lesson{title=, idea=, steps...} says one, and plays it unless we load the file.
local function lesson(what, o)
  expect(o == nil or type(o) == "table", "lesson", "table of options", o)
  for key in pairs(o or {}) do
    if key ~= "all" then raise(("lesson: unknown option %s%s"):format(show(key), hint(tostring(key), {"all"}))) end
  end
  if type(what) == "string" or math.type(what) == "integer" then
    return play(find(what), {all = o and o.all, at_prompt = (core.location() or ""):find "^%[%d+%]:" ~= nil})
  end
  expect(type(what) == "table", "lesson", "name of a lesson", what)
  local made = define(what)
  if loading then return made end
  local arguments = rawget(_G, "arg") or {}
  play(made, {all = arguments[1] == "--all"})
  return made
end

return function() return {lesson = entry(lesson), lessons = entry(lessons)} end
