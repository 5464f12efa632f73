-- Pictures of the shipped plans can be read: no two texts touch, none leaves the picture, no line of a graph runs behind a box, and
-- sTasks of one phase have different colours. tests/unit/legible.c does the same with random graphs and at many widths.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local path = os.tmpname()
local NARROW <const> = {["'"] = true, [","] = true, ["."] = true, [":"] = true, [";"] = true, i = true, l = true, I = true, j = true,
  t = true, f = true, r = true, [" "] = true, ["1"] = false}

-- Width of a text, rather too little: fonts differ.
local function width(text, size)
  local w = 0
  for _, c in utf8.codes(text) do w = w + (NARROW[utf8.char(c)] and 0.28 or 0.52) end
  return w * size
end

local function number(tag, name) return tonumber(tag:match(" " .. name .. '="([-%d.]+)"')) end

-- Texts, boxes of sTasks and lines of a picture.
local function read(svg)
  local texts, boxes, lines = {}, {}, {}
  for tag, text in svg:gmatch "<text([^>]*)>([^<]*)</text>" do
    local x, y, size = number(tag, "x"), number(tag, "y"), number(tag, "font%-size")
    local w = width(text:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&amp;", "&"):gsub("&quot;", '"'), size)
    local anchor = tag:match 'text%-anchor="(%a+)"'
    x = anchor == "middle" and x - w / 2 or anchor == "end" and x - w or x
    texts[#texts + 1] = {x, y - 0.7 * size, x + w, y, text = text}
  end
  for tag in svg:gmatch "<rect([^>]*)>" do
    local x, y, w, h = number(tag, "x"), number(tag, "y"), number(tag, "width"), number(tag, "height")
    if h == 62 and x then boxes[#boxes + 1] = {x + 1, y + 1, x + w - 1, y + h - 1, text = "a box"} end
  end
  for d in svg:gmatch '<path d="(M[^"Z]*)"' do
    local line = {}
    for x, y in d:gmatch "[ML]([-%d.]+) ([-%d.]+)" do line[#line + 1] = {tonumber(x), tonumber(y)} end
    lines[#lines + 1] = line
  end
  for tag in svg:gmatch "<line([^>]*)>" do
    lines[#lines + 1] = {{number(tag, "x1"), number(tag, "y1")}, {number(tag, "x2"), number(tag, "y2")}}
  end
  return texts, boxes, lines
end

local function touching(texts)
  for i, a in ipairs(texts) do
    for k = 1, i - 1 do
      local b = texts[k]
      if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4] and a.text ~= "" and b.text ~= "" then
        return ("%s | %s"):format(a.text, b.text)
      end
    end
  end
end

-- Two texts that touch, or one that leaves the picture.
local function unclear(svg)
  local w, h = number(svg, "width"), number(svg, "height")
  local texts = read(svg)
  for _, t in ipairs(texts) do
    if t[1] < 0 or t[3] > w or t[2] < 0 or t[4] > h then return t.text .. " leaves the picture" end
  end
  return touching(texts)
end

local function crossing(lines, things)
  for _, line in ipairs(lines) do
    for i = 2, #line do
      local a, b = line[i - 1], line[i]
      for t = 0, 1, 0.05 do
        local x, y = a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t
        for _, o in ipairs(things) do
          if x > o[1] and x < o[3] and y > o[2] and y < o[4] then return ("a line through %s at %.0f, %.0f"):format(o.text, x, y) end
        end
      end
    end
  end
end

-- A text through which the line of an sTask or the edge of a frame runs; what is drawn between the two hides a line.
local LINES <const> = {["#6b7078"] = true, ["#dfe2e6"] = true}
local function struck(svg)
  local shapes = {}
  for kind, tag, text in svg:gmatch "<(%a+)([^>]*)>([^<]*)" do
    local s = {kind = kind, text = text, fill = tag:match ' fill="(#%x+)"', stroke = tag:match ' stroke="(#%x+)"'}
    if kind == "line" then
      s.a, s.b = {number(tag, "x1"), number(tag, "y1")}, {number(tag, "x2"), number(tag, "y2")}
    elseif kind == "text" then
      s.box = read(("<text%s>%s</text>"):format(tag, text))[1]
    elseif kind == "rect" then
      local x, y = number(tag, "x"), number(tag, "y")
      s.box = x and {x, y, x + number(tag, "width"), y + number(tag, "height")}
    end
    shapes[#shapes + 1] = s
  end
  local function hidden(line, text)
    for i = line + 1, text do
      local o, b = shapes[i], shapes[text].box
      if o.kind == "rect" and o.fill and o.box and o.box[1] <= b[1] + 1 and o.box[3] >= b[3] - 1 and o.box[2] <= b[2] + 1
          and o.box[4] >= b[4] - 1 then return true end
    end
  end
  for i, line in ipairs(shapes) do
    for k, text in ipairs(shapes) do
      if text.kind ~= "text" or text.text == "" then
      elseif line.kind == "line" and line.stroke and not LINES[line.stroke] then
        if crossing({{line.a, line.b}}, {text.box}) and not hidden(i, k) then return "a line through " .. text.text end
      elseif line.kind == "rect" and line.stroke == "#6b7078" then
        local f, b = line.box, text.box
        if b[2] < f[2] + 1.5 and f[2] < b[4] and b[1] < f[3] and f[1] < b[3] then return "the edge of a frame through " .. text.text end
      end
    end
  end
end

local function drawn(x, options)
  x:svg(path, options)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- Where bars of one colour begin, and where the interval and the steady state are drawn; slides have all sizes.
local function bars(svg)
  local starts, interval, steady = {}, {}, {}
  for tag in svg:gmatch "<rect([^>]*)>" do
    local x, w, h, fill = number(tag, "x"), number(tag, "width"), number(tag, "height"), tag:match ' fill="(#%x+)"'
    if fill == "#1a1a1a" and w > h then interval = {x, x + w} end
    if fill == "#009e73" and w > 0 then steady[#steady + 1] = {x, x + w} end
    if fill and tag:find 'stroke="#ffffff"' then starts[fill] = starts[fill] or {} table.insert(starts[fill], x) end
  end
  return starts, interval, steady
end

local function near(list, x)
  for _, other in ipairs(list) do if math.abs(other - x) < 0.8 then return true end end
  return false
end

-- Does the bracket of the interval reach from one start of an sTask to another one, in the steady state?
local function between_starts(svg)
  local starts, interval, steady = bars(svg)
  local inside = false
  for _, span in ipairs(steady) do
    inside = inside or interval[1] and interval[1] >= span[1] - 0.8 and interval[2] <= span[2] + 2
  end
  for _, list in pairs(starts) do
    if inside and near(list, interval[1]) and near(list, interval[2]) then return true end
  end
  return false
end

-- A letter of a cause that the legend explains, but no row has.
local function explained_in_vain(svg)
  local rows, causes = svg:match "^(.*)the lane waits for: ([^<]*)"
  for letter in (", " .. (causes or "")):gmatch ", (%l+) " do
    if not rows:find(">" .. letter .. "[:<]") then return letter end
  end
end

-- Each sTask of a program with one phase has a colour of its own; its box is the only one that has it.
local function same_colour(svg)
  local seen = {}
  for fill in svg:gmatch '<rect [^>]*height="62"[^>]*fill="(#%x+)"' do
    if seen[fill] then return fill end
    seen[fill] = true
  end
end

-- As large as a third of a screen, with letters that can be read on a screen: `least` of 360 pixels are their size.
local function slide(svg, what, least)
  local size = 100
  for text in svg:gmatch 'font%-size="([%d.]+)"' do size = math.min(size, tonumber(text)) end
  tap.is(number(svg, "width"), 640, what .. " is as wide as a third of a screen")
  tap.is(number(svg, "height"), 360, "  and as high")
  tap.ok(size >= least, "  with text that can be read", size)
end

-- The least space between the lanes of a plan that are below each other: each has a line at its left.
local function space_between_lanes(svg)
  local lanes, least = {}, 100
  for x, y, w, h in svg:gmatch '<rect x="([%d.]+)" y="([%d.]+)" width="([%d.]+)" height="([%d.]+)" fill="#6b7078"/>' do
    if tonumber(h) > 4 * w then lanes[#lanes + 1] = {x = x, from = tonumber(y), to = y + h} end
  end
  for _, a in ipairs(lanes) do
    for _, b in ipairs(lanes) do
      if a.x == b.x and a.from < b.from then least = math.min(least, b.from - a.to) end
    end
  end
  return least
end

for _, name in ipairs{"attention_serial", "attention_overlap", "attention_pingpong", "attention_d128", "attention_d128_causal", "attention_d256",
    "attention_d64", "gemm_cooperative", "gemm_by_threads", "decoding_split"} do
  local plan = mr.load_plan(name)
  local graph = drawn(plan.graph)
  local texts, boxes, lines = read(graph)
  tap.ok(#boxes >= 4 and #lines >= 4, name .. " has a graph")
  tap.is(unclear(graph), nil, "  whose texts lie apart")
  tap.is(crossing(lines, boxes), nil, "  whose lines do not run behind boxes")
  tap.is(crossing(lines, texts), nil, "  or through texts")
  if name ~= "decoding_split" then tap.is(same_colour(graph), nil, "  whose boxes differ in colour") end
  local tl = plan:simulate()
  for _, o in ipairs{{}, {width = 640}, {preset = "slide"}, {from = 0}, {rings = true}} do
    local what = ("%s with %s"):format(name, next(o) or "no options")
    local picture = drawn(tl, o)
    tap.is(unclear(picture), nil, what .. ": texts of the timeline lie apart")
    tap.is(explained_in_vain(picture), nil, what .. ": its legend explains what is drawn")
    tap.ok(between_starts(picture) or (o.from or o.preset) and not picture:find ">II ",
      what .. ": its interval lies between two starts of an sTask in the steady state")
    tap.is(struck(picture), nil, what .. ": no line runs through a text")
    if o.preset then slide(picture, what .. ": the timeline", 9) end
    o.rings, o.from = nil, nil
    if next(o) then
      picture = drawn(plan, o)
      tap.is(unclear(picture), nil, what .. ": texts of the plan, too")
      if o.preset then
        slide(picture, what .. ": the plan", 7)
        tap.is(picture:match ">([^<]+…)<", nil, "  which says all that is waited for")
        tap.is(picture:match ">(and %d+ more[^<]*)<", nil, "  of all entries")
        tap.ok(space_between_lanes(picture) >= 5.5, "  with space between its lanes", space_between_lanes(picture))
      end
    end
  end
  for _, o in ipairs{{width = 640}, {preset = "slide"}} do
    local pair = drawn(mr.compare(tl, tl, {names = {"one", "other"}}), o)
    tap.is(unclear(pair), nil, ("%s with %s: and of a comparison"):format(name, next(o)))
    if o.preset then slide(pair, name .. ": the comparison", 7) end
  end
  local small = drawn(plan.graph, {preset = "slide"})
  slide(small, name .. ": the graph", 7)
  tap.is(unclear(small), nil, "  whose texts lie apart")
  tap.is(crossing(select(3, read(small)), (read(small))), nil, "  with no line through them")
  tap.is(struck(small), nil, "  and no edge of a loop")
  local left, right = 640, 0
  for x, w in small:gmatch '<rect x="([%d.]+)" y="[%d.]+" width="([%d.]+)" height="[%d.]+" rx="[%d.]+" fill="#%x+" stroke' do
    left, right = math.min(left, tonumber(x)), math.max(right, tonumber(x) + tonumber(w))
  end
  tap.ok(math.abs(640 - right - left) < 80, "  in the middle", left, 640 - right)
end

-- A comparison on a slide has no bars of sTasks, so it has no colours for them either; and a label next to a mark is not the only
-- one of many marks. Other pictures have the colours.
do
  local pair = mr.compare(mr.load_plan "attention_serial":simulate(), mr.load_plan "attention_overlap":simulate())
  local full, brief = drawn(pair), drawn(pair, {preset = "slide"})
  for _, colour in ipairs{"#0072b2", "#e69f00"} do
    tap.ok(full:find(colour, 1, true), "a comparison has bars of " .. colour)
    tap.ok(not brief:find(colour, 1, true), "  and on a slide nothing")
  end
  local seen = {}
  for tag, letter in brief:gmatch "<text([^>]*)>(%a)%d*</text>" do
    if not tag:find "anchor" then
      local key = letter .. (tag:match ' y="([%d.]+)"')
      seen[key] = (seen[key] or 0) + 1
    end
  end
  for key, n in pairs(seen) do tap.ok(n > 3, "a label next to a mark is not alone: " .. key, n) end
end

-- A row of transfers that are under way together has names, too, if there are many of them, and they are in it with their
-- underscores.
for name, text in pairs{decoding_split = "load_v 1", gemm_cooperative = "load_b 6"} do
  for _, o in ipairs{{}, {preset = "slide"}} do
    local svg, inside = drawn(mr.load_plan(name):simulate(), o), false
    local y, size = svg:match('<text [^>]*y="([%d.]+)" font%-size="([%d.]+)"[^>]*>' .. text .. "<")
    tap.ok(y, ("a bar of %s is %s"):format(name, text), next(o))
    y, size = tonumber(y or 0), tonumber(size or 0)
    for top, high in svg:gmatch '<rect [^>]*y="([%d.]+)" width="[%d.]+" height="([%d.]+)" rx=' do
      local below = top + high - y
      inside = inside or below > 0.23 * size + 0.5 and below < tonumber(high)
    end
    tap.ok(inside, "  and that is within its row", next(o))
  end
end

-- The steady state begins with the first iteration in which all entries of a lane have something to do, on the lane that
-- reaches it last: with offsets the second product of the one instance is that of the other's first. An iteration that takes
-- longer or shorter than those that follow is not yet part of it: the first of attention_serial waits for its first tiles.
for name, first in pairs{attention_serial = "mma_qk 1", attention_overlap = "mma_qk 1", attention_pingpong = "mma_qk.1 1"} do
  local svg = drawn(mr.load_plan(name):simulate(), {from = 0, to = 9000})
  local _, _, steady = bars(svg)
  local starts = svg:match('<rect x="([%d.]+)"[^>]*stroke="#ffffff"[^>]*><title>' .. first:gsub("%p", "%%%0") .. " of ")
  tap.ok(#steady > 0 and math.abs(steady[1][1] - tonumber(starts)) < 0.6, name .. ": the steady state begins with " .. first, starts)
end

-- No sTask has a letter that says why a lane waits, and what is written on a bar is not a number alone.
local gated = mr.program("gated", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, U, W, D = p:input("X", {m, k}), p:input("U", {n, k}), p:input("W", {n, k}), p:input("D", {m, n})
  local Y, a, b = p:output("Y", {m, n}), p:carry("a", {m, n}, 0), p:carry("b", {m, n}, 0)
  p:loop(k, function()
    local x = p:load("load_x", X)
    a:add(p:mma("mma_1", x, p:load("u", U)))
    b:add(p:mma("mma_2", x, p:load("load_w1", W)))
  end)
  local d = p:load("d", D)
  Y:store("o", p:task("gate", function() return (mr.silu(a) * b + d):to "bf16" end))
end)
local plan = mr.plan(gated{m = 4096, n = 4096, k = 4096}:graph{tile = {m = 128, n = 64, k = 64}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 8})
plan:buffers{x = 4, u = 4, w1 = 4}
for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
plan:fill_waits()
local legal, problems = plan:check()
tap.ok(legal, "the gated product has a plan", tostring(problems))
local tl = plan:simulate()
local legend = tl:text{width = 80, ascii = true}:match "\n(%a load_x.-)\n#"
for letter, task in legend:gmatch "(%S) (%S+)" do
  tap.ok(not letter:find "[woud]", ("%s is not the letter of a cause: %s"):format(letter, task))
end
for _, o in ipairs{{}, {preset = "slide"}} do
  local svg = drawn(tl, o)
  tap.ok(between_starts(svg) or o.preset and not svg:find ">II ", "the interval of the gated product lies in its steady state", next(o))
  tap.is(svg:match ">[%d.]+ %d+</text>", nil, "its bars have names or letters")
  tap.is(unclear(svg), nil, "its texts lie apart")
end

-- A loop edge of an sTask on itself stays at its box, also if no other box is in its row.
local function farthest_dash(svg)
  local x = 0
  for d in svg:gmatch '<path d="(M[^"]*)"[^>]*stroke%-dasharray' do for at in d:gmatch "[ML]([%d.]+) " do x = math.max(x, tonumber(at)) end end
  return x
end
local _, boxes = read(drawn(mr.load_plan "gemm_cooperative".graph))
local right = 0
for _, box in ipairs(boxes) do if box[3] > right and box[2] > boxes[1][4] then right = box[3] end end
tap.ok(farthest_dash(drawn(mr.load_plan "gemm_cooperative".graph)) <= right + 16, "a loop at its box is small", right)

os.remove(path)
tap.done_testing()
