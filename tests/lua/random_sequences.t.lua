-- Random sequences of small programs with random plans on the CPU. A plan that check() accepts must give what the reference gives, in any
-- order of the calls that it leaves open and with the temporaries where it puts them; of a plan that check() refuses an order that is
-- wrong is looked for, by what each byte of memory holds in terms of calls.
--
--   millrace tests/lua/random_sequences.t.lua [first [last [cuda]]]     $MILLRACE_SEQUENCES: how many (300)
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")

local N <const> = 16                                    -- rows and columns of a block; a tensor has one or two
local max = mr.max
local target = arg and arg[3] or "host"

local function program(name, inputs, f)
  return mr.program(name, function(p)
    local m, n = p:axes("m", "n")
    local values = {}
    for i = 1, inputs do values[i] = p:load("load_" .. i, p:input("X" .. i, {m, n}, "f32")) end
    p:output("Y", {m, n}, "f32"):store("store", p:task("work", function() return f(table.unpack(values)) end))
  end)
end

-- The same in two phases, with a temporary of its own; and what stores to a part of each row, which keeps all else.
local function halves(name)
  return mr.program(name, function(p)
    local m, n = p:axes("m", "n")
    local X, T, Y = p:input("X1", {m, n}, "f32"), p:temp("T", {n, m}, "f32"), p:output("Y", {m, n}, "f32")
    p:phase("first", function()
      local x = p:load("load_1", X)
      T:store("keep", p:task("once", function() return x * 2 end), {n, m})
    end)
    p:phase("second", function()
      local t = p:load("load_t", T, {n, m})
      Y:store("store", p:task("work", function() return t - 1 end))
    end)
  end)
end

local function part(name, by, inputs)
  return mr.program(name, function(p)
    local m, n = p:axes("m", "n")
    local x = p:load("load_1", p:input("X1", {m, n}, "f32"))
    local y = inputs > 1 and p:load("load_2", p:input("X2", {m, n}, "f32"))
    p:output("Y", {m, n}, "f32"):store("store", p:task("work", function() return y and x - y or x + 2 end), {m, n + by})
  end)
end

local programs = {
  halves "halves", part("behind", 8, 1),
  program("copy", 1, function(x) return x + 0 end),
  program("twice", 1, function(x) return x * 2 - 1 end),
  program("add", 2, function(x, y) return x + y end),
  program("less", 2, function(x, y) return x - y * 2 end),
  program("most", 2, function(x, y) return max(x, y) + 1 end),
  part("in_front", -4, 2),
}
local inputs_of <const>, partly <const>, has_own <const> = {1, 1, 1, 1, 2, 2, 2, 2}, {[2] = true, [8] = true}, {[1] = true}

-- Programs of one or two blocks, with plans and their kernels, which all sequences share: of two, one loads X1 before it waits for what is
-- in front of it.
local bound, plans, kernels = {}, {}, {}
for i, prog in ipairs(programs) do
  for blocks = 1, 2 do
    local b = prog{m = N * blocks, n = N}
    bound[i * 2 + blocks] = b
    local plan = mr.search(b, "h200", {trials = 20, measure = false}).plan
    local early = plan:copy()
    early:launch{ready = {"X1"}, next = "start"}
    plans[b] = {plan, early}
    kernels[b] = {plan:compile{target = target}, early:compile{target = target}}
  end
end

---- drawing -------------------------------------------------------------------------------------

local state
local function below(n)                                 -- from 0
  state = (state * 6364136223846793005 + 1442695040888963407)
  return (state >> 33) % n
end
local function pick(list) return list[below(#list) + 1] end

-- What a sequence is made of: tensors {name=, role=, blocks=}, calls {which=, blocks=, from={{tensor, block}}, to={tensor, block}}.
local function draw(seed)
  state = seed * 2654435761 + 1
  for _ = 1, 3 do below(2) end
  local d = {tensors = {}, calls = {}}
  local function tensor(role)
    local t = {name = role .. #d.tensors, role = role, blocks = 1 + below(2), written = {}}
    d.tensors[#d.tensors + 1] = t
    return t
  end
  for _ = 1, 1 + below(2) do tensor "input" end
  if below(3) == 0 then tensor "state" end
  for _ = 1, 2 + below(4) do tensor "temp" end
  tensor "output"
  -- Blocks that can be read now: {tensor, block}, so many in a row.
  local function readable(blocks)
    local list = {}
    for _, t in ipairs(d.tensors) do
      for b = 0, t.blocks - blocks do
        local good = true
        for k = b, b + blocks - 1 do good = good and (t.role == "input" or t.role == "state" or t.written[k]) end
        if good then list[#list + 1] = {t, b} end
      end
    end
    return list
  end
  local function call(to, b, blocks)
    local which, from = 1 + below(#programs), {}
    for k = b, b + blocks - 1 do                        -- what is kept of a block must be there
      if partly[which] and to.role ~= "state" and not to.written[k] then which = 3 + below(5) end
    end
    for _ = 1, inputs_of[which] do
      local list = {}
      for _, x in ipairs(readable(blocks)) do
        if x[1] ~= to or x[2] + blocks <= b or x[2] >= b + blocks then list[#list + 1] = x end
      end
      if #list == 0 then return false end
      from[#from + 1] = pick(list)
    end
    for k = b, b + blocks - 1 do to.written[k] = true end
    d.calls[#d.calls + 1] = {name = "c" .. #d.calls, which = which, blocks = blocks, from = from, to = {to, b},
      plan = 1 + below(4) // 3}
    return true
  end
  for _ = 1, 2 + below(4) do
    local to = pick(d.tensors)
    local blocks = 1 + below(to.blocks)
    if to.role ~= "input" then call(to, below(to.blocks - blocks + 1), blocks) end
  end
  for _, t in ipairs(d.tensors) do                      -- the output is complete
    if t.role == "output" then
      for b = 0, t.blocks - 1 do
        if not t.written[b] then call(t, b, 1) end
      end
    end
  end
  local used = {}                                       -- a tensor that no call uses is refused
  for _, c in ipairs(d.calls) do
    used[c.to[1]] = true
    for _, x in ipairs(c.from) do used[x[1]] = true end
  end
  local kept = {}
  for _, t in ipairs(d.tensors) do
    if used[t] then kept[#kept + 1] = t end
  end
  d.tensors = kept
  return d
end

local function make(d)
  return mr.sequence("random", function(s)
    local handles = {}
    for _, t in ipairs(d.tensors) do handles[t] = s[t.role](s, t.name, {t.blocks, N, N}, "f32") end
    for _, c in ipairs(d.calls) do
      local given = {Y = handles[c.to[1]]:rows(c.to[2], c.blocks)}
      for i, x in ipairs(c.from) do given["X" .. i] = handles[x[1]]:rows(x[2], c.blocks) end
      s:call(c.name, bound[c.which * 2 + c.blocks], given)
    end
  end)()
end

-- A plan at random: streams, waits, the order of launches, and offsets, of which most make a legal plan.
local function plan_of(seq, d)
  local sp = mr.sequence_plan(seq, "h200")
  for _, c in ipairs(d.calls) do sp:use(c.name, plans[bound[c.which * 2 + c.blocks]][c.plan]) end
  local streams = 1 + below(3)
  local order = {}
  for i, c in ipairs(d.calls) do
    order[i] = c.name
    local after = {}
    for k = 1, i - 1 do
      if below(streams > 1 and 2 or 8) == 0 then after[#after + 1] = d.calls[k].name end
    end
    sp:launch(c.name, {stream = below(streams), early = false, after = after})
  end
  if below(2) == 0 and #order > 1 then
    local i = 1 + below(#order - 1)
    order[i], order[i + 1] = order[i + 1], order[i]
    sp:order(order)
  end
  -- Add waits where the checker says that they are missing, most of the time.
  for _ = 1, below(4) > 0 and 20 or 0 do
    local ok, problems = sp:check()
    local added = false
    for _, x in ipairs(ok and {} or problems) do
      if x.code == "order" and x.hint:find "after=" and not added then
        local after = {x.other}
        for _, c in ipairs(sp.calls) do
          if c.name == x.call then table.move(c.after, 1, #c.after, 2, after) end
        end
        sp:launch(x.call, {after = after})
        added = true
      end
    end
    if not added then break end
  end
  local in_front = {}                                   -- by stream: is there a call?
  for _, c in ipairs(sp.calls) do
    if in_front[c.stream] and #c.after == 0 and below(2) == 0 then sp:launch(c.name, {early = true}) end
    in_front[c.stream] = true
  end
  sp:arena()
  local block = N * N * 4
  if below(2) == 0 and sp.arena_bytes > 0 then
    local offsets = {}
    for name, at in pairs(sp.offsets) do offsets[#offsets + 1] = name end
    table.sort(offsets)
    for i, name in ipairs(offsets) do offsets[i], offsets[name] = nil, below(3) * block end
    sp:arena(offsets)
  end
  return sp
end

---- an oracle -----------------------------------------------------------------------------------

-- What each call has computed, and the blocks of outputs and states hold, after the calls in this order, as terms. address(t): of a tensor,
-- in blocks; own(i): of what call i keeps between its phases.
local function terms(d, order, address, own)
  local memory, list = {}, {}
  local function at(t, b) return address(t) + b end
  for _, t in ipairs(d.tensors) do
    for b = 0, t.blocks - 1 do
      if t.role == "input" or t.role == "state" then memory[at(t, b)] = t.name .. b end
    end
  end
  for i = 1, #d.calls do list[i] = "" end
  for _, i in ipairs(order) do
    local c, out = d.calls[i], {}
    for k = 0, c.blocks - 1 do
      local parts = {}
      for n, x in ipairs(c.from) do parts[n] = memory[at(x[1], x[2] + k)] or "nothing" end
      if partly[c.which] then parts[#parts + 1] = memory[at(c.to[1], c.to[2] + k)] or "nothing" end
      out[k] = ("%d(%s)"):format(c.which, table.concat(parts, ","))
    end
    for k = 0, has_own[c.which] and c.blocks - 1 or -1 do memory[own(i) + k] = "its own" end
    for k = 0, c.blocks - 1 do memory[at(c.to[1], c.to[2] + k)] = out[k] end
    list[i] = table.concat(out, " ", 0)
  end
  for _, t in ipairs(d.tensors) do
    for b = 0, t.blocks - 1 do
      if t.role == "output" or t.role == "state" then list[#list + 1] = memory[at(t, b)] or "nothing" end
    end
  end
  return table.concat(list, ";")
end

-- Is there an order that the plan allows with another result? All orders are tried.
local function may_be_wrong(d, sp)
  local block, base, names = N * N * 4, {}, {}
  for i, t in ipairs(d.tensors) do base[t] = t.role == "temp" and sp.offsets[t.name] // block or 1000 * i end
  for i, c in ipairs(d.calls) do names[c.name] = i end
  local apart = {}
  for i, t in ipairs(d.tensors) do apart[t] = 1000 * i end
  local sequence = {}
  for i = 1, #d.calls do sequence[i] = i end
  local want = terms(d, sequence, function(t) return apart[t] end, function(i) return -1000 * i end)
  local needs, launched, last = {}, {}, {}
  for _, c in ipairs(sp.calls) do
    local i = names[c.name]
    needs[i] = {last[c.stream]}
    for _, name in ipairs(c.after) do
      if launched[name] then needs[i][#needs[i] + 1] = names[name] end
    end
    last[c.stream], launched[c.name] = i, true
  end
  local done, order, wrong = {}, {}, false
  local function go()
    if wrong then return end
    if #order == #d.calls then
      wrong = terms(d, order, function(t) return base[t] end, function(i) return sp.offsets[d.calls[i].name .. ".T"] // block end) ~= want
      return
    end
    for i = 1, #d.calls do
      local ready = not done[i]
      for _, k in ipairs(needs[i]) do ready = ready and done[k] end
      if ready then
        done[i], order[#order + 1] = true, i
        go()
        done[i], order[#order] = nil, nil
      end
    end
  end
  go()
  return wrong
end

---- all of them ---------------------------------------------------------------------------------

local function text_of(d)
  local lines = {}
  for _, c in ipairs(d.calls) do
    local from = {}
    for i, x in ipairs(c.from) do from[i] = ("%s[%d]"):format(x[1].name, x[2]) end
    lines[#lines + 1] = ("%s: %s[%d] = %s(%s) of %d"):format(c.name, c.to[1].name, c.to[2], programs[c.which].name, table.concat(from, ", "), c.blocks)
  end
  return table.concat(lines, "\n")
end

local first = tonumber(arg and arg[1])
local last = tonumber(arg and arg[2]) or first
local many = tonumber(os.getenv "MILLRACE_SEQUENCES") or 300
local legal, refused, harmless, wrong_ones = 0, 0, 0, 0
for seed = first or 1, last or many do
  local d = draw(seed)
  if #d.calls > 0 then
    local good, seq = pcall(make, d)
    if not good then
      tap.ok(false, ("sequence %d can be made"):format(seed), seq, text_of(d))
    else
      local sp = plan_of(seq, d)
      local ok, problems = sp:check()
      local wrong = may_be_wrong(d, sp)
      if ok then
        legal = legal + 1
        local list, inputs = {}, seq:inputs{seed = seed}
        for i, c in ipairs(d.calls) do list[i] = kernels[bound[c.which * 2 + c.blocks]][c.plan] end
        local want, right = seq:reference(inputs), not wrong
        for run = 1, 2 do
          local got = sp:compile{target = target, kernels = list}:run(inputs, {seed = seed * 10 + run})
          for name, x in pairs(want) do right = right and got[name]:max_error(x) == 0 end
        end
        if not right then wrong_ones = wrong_ones + 1 end
        if not right or first then tap.ok(right, ("sequence %d is right"):format(seed), text_of(d), sp:script()) end
      else
        refused = refused + 1
        if not wrong then harmless = harmless + 1 end
        if not wrong and first then print(text_of(d), sp:script():match "sp:order.*", tostring(problems[1].message)) end
      end
    end
  end
end
print(("# %d legal plans, %d refused, %d of them without an order that gives another result"):format(legal, refused, harmless))
tap.ok(legal >= (last or many) // 5 and refused >= (last or many) // 20 or first, "many are legal, and many are refused")
tap.ok(harmless <= refused // 2 or first, "most of what is refused would be wrong")
tap.ok(wrong_ones == 0, "every legal plan is right")
tap.done_testing()
