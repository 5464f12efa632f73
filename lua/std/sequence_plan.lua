-- sequence_plan.lua - plans of sequences: a plan for each kernel, and what is between them; predicted times; scripts.

local core = require "millrace.core"
local draft = require "millrace.draft"
local choose_streams = require "millrace.sequence_streams"
local options = require "millrace.options"
local scripts = require "millrace.script"
local sequences = require "millrace.sequence"
local launch_sizes = require "millrace.sequence_sizes"
local columns = require "millrace.columns"
local raise, show, entry, expect = core.raise, core.show, core.entry, core.expect

local SEARCH_SECONDS <const> = 10                       -- for each kernel, unless the caller says so
local EARLY_LOADS <const> = 0.03                        -- a plan that loads before the kernel in front ends may be slower by this share: the
                                                        -- gain is not in its own time

return function(mr, made)
  local sequence = {sequence = sequences.sequence}

  ---- predicting ----------------------------------------------------------------------------------

  -- The sizes of a call that its plan leaves to the launch, {m=512}; nil: it leaves none.
  local function sizes_of(p, bound)
    local sizes, any = {}, core.any_axes(p.graph.program)
    for axis in pairs(any or {}) do sizes[axis] = bound.axes[axis] end
    return any and sizes
  end

  -- The timelines of the kernels, in order of the sequence. Equal plans that find the same in L2 have one.
  local function timelines(sp)
    local lines, seen, names = {}, {}, core.sequence_call_names(sp.sequence)
    for i, p in ipairs(core.sequence_plans(sp)) do
      local warm = core.sequence_warm(sp, names[i])
      local sizes = sizes_of(p, sp.sequence:program(names[i]))
      local text = sequences.plan_key(p) .. table.concat(warm, " ") .. (sizes and draft.literal(sizes) or "")
      seen[text] = seen[text] or p:simulate{warm = warm, sizes = sizes}
      lines[i] = seen[text]
    end
    return lines
  end

  -- sp:simulate([{sizes={m=512}}]), or {m=512}: at sizes that the sequence leaves to the launch, the largest unless given
  local function simulate(sp, given)
    expect(core.is(sp, "millrace.sequence_plan"), "simulate", "plan of a sequence", sp)
    local o = options.check(given, "simulate", launch_sizes.options(sp.sequence))
    core.check_sequence_plan(sp, "simulate")
    local at = next(o) and launch_sizes.plan_at(sp, launch_sizes.launched(sp.sequence, o, nil, "simulate")) or core.sequence_fixed(sp)
    return core.sequence_timeline(at, timelines(at))
  end

  ---- planning ------------------------------------------------------------------------------------

  -- The best plan of the store for a program with sizes, or nil.
  local function stored(bound, device)
    local row = mr.store:best(bound, device)
    return row and row:plan(bound) or nil
  end

  local function check_bound(seq, what) expect(core.is(seq, "millrace.sequence"), what, "sequence with sizes", seq) end

  -- The tensors that calls of the sequence write: {name=true}.
  local function written_tensors(seq)
    local written = {}
    for _, call in ipairs(core.sequence_call_names(seq)) do
      for _, x in ipairs(core.sequence_args(seq, call)) do written[x.tensor] = written[x.tensor] or x.writes end
    end
    return written
  end

  -- The inputs of a call's program that no call of the sequence writes: kernels in front of it need not have ended when it loads them.
  local function ready(seq, name, written)
    local list = {}
    for _, x in ipairs(core.sequence_args(seq, name)) do
      if not written[x.tensor] then list[#list + 1] = x.own end
    end
    return list
  end

  -- Let a plan load what is ready before it waits, and nothing else; it stays as it is if it would not be legal.
  local function with_ready(plan, names)
    local other = plan:copy()
    other:launch{ready = names}
    return other:check() and other or plan
  end

  -- The plan that a search finds for a call of which these inputs are ready. It is also made without the statement that says so where there
  -- are several phases, or none is found: with it, loads of inputs that are not ready have a lane of their own and wait in each phase;
  -- without it, only the first phase waits.
  local function searched(call, bound, device, o, names)
    local function search(ready)
      return mr.search(bound, device, {seconds = o.seconds or SEARCH_SECONDS, trials = o.trials, measure = o.measure, fresh = o.fresh, ready = ready})
    end
    local r, why = search(names)
    if #names > 0 and (not r or #r.timeline.phases > 1) then
      local plain = search(nil)
      if plain and not (r and r.seconds * (1 - EARLY_LOADS) <= plain.seconds) then r = plain end
    end
    if not r then raise(("plan: no plan for call '%s' (%s): %s"):format(call.name, bound.name, why)) end
    return r.plan
  end

  -- The plan of a call: the one that was given, or what a search finds, which takes up what is in the store. Where nothing is measured it is
  -- the best plan of the store, if there is one. Calls of one program with equal sizes, for which the same is ready, have one plan.
  local function plan_for(seq, call, device, o, planned, written)
    local bound, given = seq:program(call.name), o.plans and o.plans[call.name]
    if given ~= nil then return given end
    local names = call.early and ready(seq, call.name, written) or {}
    local key = core.identity(bound) .. table.concat(names, " ")
    if planned[key] then return planned[key] end
    local measures = o.measure ~= false and core.attached()
    local plan = not (o.fresh or measures) and stored(bound, device) or nil
    if plan then
      plan = with_ready(plan, names)
    else
      plan = searched(call, bound, device, o, names)
    end
    planned[key] = plan
    return plan
  end

  -- seq:plan([device[, {seconds=, trials=, measure=, fresh=, plans={call=plan}}]])
  local function plan(seq, device, given)
    check_bound(seq, "plan")
    device, given = options.device(mr, device, given)
    local o = options.check(given, "plan", {"seconds", "trials", "measure", "fresh", "plans"})
    options.seconds(o, "plan", {"seconds"})
    expect(o.plans == nil or type(o.plans) == "table", "plan: plans", "table of plans by call", o.plans)
    local row = not (o.plans or o.fresh) and mr.store:best(seq, device) or nil
    if row then return row:plan(seq) end
    local sp, planned, names = core.sequence_plan(seq, device), {}, {}
    for _, call in ipairs(sp.calls) do names[call.name] = true end
    for name in pairs(o.plans or {}) do
      if not names[name] then raise(("plan: there is no call %s%s"):format(show(name), core.hint(tostring(name), draft.keys(names)))) end
    end
    local written = written_tensors(seq)
    for _, call in ipairs(sp.calls) do sp:use(call.name, plan_for(seq, call, device, o, planned, written)) end
    if sp:check() then choose_streams(sp, timelines(sp)) end
    return sp
  end

  -- mr.sequence_plan(sequence[, device]): without plans of its kernels
  sequence.sequence_plan = entry(function(seq, device)
    check_bound(seq, "sequence_plan")
    if type(device) == "string" then device = mr.device(device) end
    return core.sequence_plan(seq, device or mr.device())
  end)

  ---- texts ---------------------------------------------------------------------------------------

  local function sequence_text(seq)
    local any = launch_sizes.text(seq)
    local lines = {("sequence %s%s"):format(seq.name, any ~= "" and ", " .. any or "")}
    for _, t in ipairs(seq.tensors) do
      lines[#lines + 1] = ("  %-7s %s %s {%s}"):format(t.role, t.name, t.dtype, table.concat(launch_sizes.shape(seq, t), ", "))
    end
    return table.concat(lines, "\n")
  end

  local function plan_text(sp)
    local rows = {{"call", "program", "stream", "early", "after", "reads", "writes"}}
    for _, c in ipairs(sp.calls) do
      rows[#rows + 1] = {c.name, c.program, ("%d"):format(c.stream), c.early and "yes" or "no", table.concat(c.after, " "),
        table.concat(c.reads, " "), table.concat(c.writes, " ")}
    end
    return ("plan of sequence %s for %s; %.4g MB of temporaries\n%s"):format(sp.sequence.name, sp.device.name,
      sp.arena_bytes / 1e6, table.concat(columns(rows, function() return false end), "\n"))
  end

  ---- scripts -------------------------------------------------------------------------------------

  local function indented(text) return (text:gsub("[^\n]+", "  %0")) end

  -- How a script gets at the sequence: a shipped one by name, one's own of what mr.load_plan is given. Options without a text, as programs
  -- and functions are, cannot be written: then mr.load_plan must be given the sequence with sizes.
  local function sequence_line(seq)
    local origin, given = sequences.origin(seq)
    local lost = {}
    for _, key in ipairs(draft.keys(given)) do
      if not draft.has_literal(given[key]) then lost[#lost + 1] = key end
    end
    if #lost > 0 then
      return ("local seq = mr.bound(..., %q)  -- with sizes and options: no text gives %s"):format(origin.name, table.concat(lost, ", "))
    end
    if rawget(mr.examples, origin.name) == origin then
      return ("local seq = ... or mr.examples.%s%s"):format(origin.name, draft.literal(given))
    end
    return ("local seq = mr.bound(..., %q, %s)"):format(origin.name, draft.literal(given))
  end

  -- Lua text that rebuilds exactly this plan. Calls with equal plans share the statements of one.
  local function script(sp)
    local seq, device = launch_sizes.base(sp.sequence), sp.device
    local names = core.sequence_call_names(seq)
    local lines = {("-- millrace %s: plan of sequence %s for %s"):format(mr.version, seq.name, device.name),
      'local mr = require "millrace"', sequence_line(seq)}
    lines[4] = ("local device = %s"):format(scripts.device_call(made, device))
    lines[5] = "local sp = mr.sequence_plan(seq, device)"
    local alike, order = {}, {}                           -- calls with equal plans, by plan_key
    for i, p in ipairs(core.sequence_plans(sp)) do
      local text = sequences.plan_key(p)
      if not alike[text] then
        order[#order + 1] = {p, text}
        alike[text] = {}
      end
      table.insert(alike[text], names[i])
    end
    for _, x in ipairs(order) do
      local p, calls = x[1], alike[x[2]]
      lines[#lines + 1] = "do"
      lines[#lines + 1] = ("  local plan = mr.plan(seq:program(%q):graph{tile=%s}, device)"):format(calls[1], draft.literal(p.tile))
      lines[#lines + 1] = indented(core.statements(p)):gsub("\n+$", "")
      for _, name in ipairs(calls) do lines[#lines + 1] = ("  sp:use(%q, plan)"):format(name) end
      lines[#lines + 1] = "end"
    end
    lines[#lines + 1] = core.sequence_statements(sp) .. "return sp\n"
    return table.concat(lines, "\n")
  end

  -- sp:save(path[, {overwrite=true}])
  local function save(sp, path, given)
    expect(core.is(sp, "millrace.sequence_plan"), "save", "plan of a sequence", sp)
    expect(type(path) == "string" and path ~= "" and not path:find "\0", "save", "path", path)
    local overwrite = options.check(given, "save", {"overwrite"}).overwrite
    if core.file_kind(path) and not overwrite then
      raise(("save: %s exists; sp:save(%q, {overwrite=true}) replaces it"):format(path, path))
    end
    local good, why = core.replace_file(path, sp:script())
    if not good then raise(("save: cannot write %s: %s"):format(path, why)) end
    return path
  end

  -- What a plan can do, of a sequence with sizes: with the plan that seq:plan() makes, once.
  local planned_of = setmetatable({}, {__mode = "k"})
  for _, name in ipairs{"check", "simulate", "run", "bench"} do
    core.method("millrace.sequence", name, entry(function(seq, ...)
      check_bound(seq, name)
      planned_of[seq] = planned_of[seq] or plan(seq)
      return planned_of[seq][name](planned_of[seq], ...)
    end))
  end

  core.method("millrace.sequence", "plan", entry(plan))
  core.method("millrace.sequence_plan", "simulate", entry(simulate))
  core.method("millrace.sequence_plan", "script", entry(script))
  core.method("millrace.sequence_plan", "save", entry(save))
  core.shown("millrace.sequence", sequence_text)
  core.shown("millrace.sequence_plan", plan_text)
  return sequence
end
