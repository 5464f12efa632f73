-- Backward programs against the forward programs that they belong to: what a backward program gives for random gradients of a forward
-- program's results must be the slopes of the sum of results times gradients. These are found by evaluating the forward program at
-- inputs a little apart, in f64; so no formula of a gradient is taken from the backward program or written down again here. Compared
-- are the interpreter, in f64, and kernels on the CPU, in f32, f16 and bf16, at inputs as these types have them.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

local STEP <const> = 1e-5                       -- the error of a slope is about its square, and 1e-16 / STEP
local EXACT <const> = 1e-7                      -- the attention's L is an f32
local ROUNDED <const> = {{"f32", 2e-6}, {"f16", 2e-3}, {"bf16", 1.5e-2}}

-- The two programs; sizes; options of one of them alone; replacements in the backward program's text that are mistakes.
local cases <const> = {
  {"rmsnorm", "rmsnorm_backward", backward = {rows = 2}, sizes = {{m = 3, n = 5}, {m = 4, n = 8, eps = 0.3}}, mistakes = {
    {"dy * g * r - x * c", "dy * g * r + x * c"}, {"r * r * r", "r * r"}, {"x * g * dy, n", "x * dy, n"},
    {"dy * x * r, row", "dy * x, row"}, {"dg:to(dtype)", "(0 - dg):to(dtype)"},
  }},
  {"swiglu", "swiglu_backward", sizes = {{m = 3, n = 5}, {m = 2, n = 8}}, mistakes = {
    {"a * (1 - s)", "a * (1 + s)"}, {"dc * b * s", "0 - dc * b * s"}, {"dc * a * s", "dc * a"},
  }},
  {"flash_attention", "attention_backward", forward = {lse = true}, sizes = {
    {b = 1, h = 2, m = 3, d = 4}, {b = 1, h = 2, hkv = 1, m = 4, n = 5, d = 3, causal = true, scale = 0.7},
  }, mistakes = {
    {"dp - delta", "dp + delta"}, {"(s * scale - l)", "(s * scale + l)"}, {"ds, k)", "ds, v)"}, {"(dp - delta) * scale", "(dp - delta)"},
  }},
}

local function with(...)
  local all = {}
  for _, t in ipairs{...} do
    for k, v in pairs(t) do all[k] = v end
  end
  return all
end

-- The shipped program, with some of its text replaced.
local function mistaken(name, from, to)
  local file <close> = assert(io.open(dir .. "../../examples/" .. name .. ".lua"))
  local text, n = file:read "a":gsub(from:gsub("%p", "%%%0"), (to:gsub("%%", "%%%%")))
  assert(n == 1, ("'%s' is %d times in %s"):format(from, n, name))
  return assert(load(text, "=" .. name))()
end

-- What both programs are given: random inputs of the forward one as dtype has them, its results at these, and gradients of results.
local function given_at(forward, backward, dtype)
  local inputs, given = {}, {}
  for name, a in pairs(forward:inputs{seed = 11}) do inputs[name] = a:copy(dtype):copy "f64" end
  local results, random = forward:reference(inputs), backward:inputs{seed = 12}
  for _, t in ipairs(backward.tensors) do
    if t.role == "input" then given[t.name] = (inputs[t.name] or results[t.name] or random[t.name]):copy(t.dtype) end
  end
  return inputs, given
end

-- By name of an input of the forward program: an array of the slopes. `given` has a gradient dY for each result Y that has one.
local function slopes(forward, inputs, given)
  local function total()
    local sum = 0
    for name, y in pairs(forward:reference(inputs)) do
      local dy = given["d" .. name]
      for i = 1, dy and #y or 0 do sum = sum + y[i] * dy[i] end
    end
    return sum
  end
  local found = {}
  for name, x in pairs(inputs) do
    found[name] = mr.array("f64", x:shape())
    for i = 1, #x do
      local at = x[i]
      x[i] = at + STEP
      local above = total()
      x[i] = at - STEP
      found[name][i] = (above - total()) / (2 * STEP)
      x[i] = at
    end
  end
  return found
end

-- The greatest distance of a gradient in `got` from its slopes, and how many there are. A distance is relative to the norm.
local function distance(got, found)
  local most, n = 0, 0
  for name, slope in pairs(found) do
    local _, error = got["d" .. name]:copy "f64":max_error(slope)
    most, n = error == error and math.max(most, error) or math.huge, n + 1
  end
  return most, n
end

local function describe(sizes)
  local words = {}
  for k, v in pairs(sizes) do words[#words + 1] = k .. "=" .. tostring(v) end
  table.sort(words)
  return table.concat(words, " ")
end

for _, case in ipairs(cases) do
  local forward_name, backward_name = table.unpack(case)
  for _, sizes in ipairs(case.sizes) do
    local what = backward_name .. " " .. describe(sizes)
    local forward = mr.examples[forward_name](with(sizes, case.forward or {}, {dtype = "f64"}))
    local of_backward = with(sizes, case.backward or {}, {dtype = "f64"})
    local backward = mr.examples[backward_name](of_backward)
    local inputs, given = given_at(forward, backward, "f64")
    local found = slopes(forward, inputs, given)
    local far, n = distance(backward:reference(given), found)
    tap.ok(far < EXACT and n >= 2, what .. ": slopes of " .. forward_name, "distance " .. far)
    for _, m in ipairs(case.mistakes) do
      far = distance(mistaken(backward_name, m[1], m[2])(of_backward):reference(given), found)
      tap.ok(far > 1e-2, ("  but not with %s for %s"):format(m[2], m[1]), "distance " .. far)
    end
    for _, of in ipairs(ROUNDED) do
      local dtype, most = table.unpack(of)
      backward = mr.examples[backward_name](with(of_backward, {dtype = dtype}))
      inputs, given = given_at(forward, backward, dtype)
      local r, why = mr.search(backward, mr.device "h200", {measure = false, trials = 20})
      if tap.ok(r, what .. " " .. dtype .. ": there is a plan", why) then
        far = distance(r.plan:compile{target = "host"}:run(given), slopes(forward, inputs, given))
        tap.ok(far < most, "  and its kernel gives the slopes", "distance " .. far)
      end
    end
  end
end
tap.done_testing()
