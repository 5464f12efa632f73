-- The plans for the MI300X that come with Millrace: right on the CPU, and what clang makes of their loops. Counts are those of
-- docs/performance.md.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, assembly_of = dofile(dir .. "tap.lua"), dofile(dir .. "lib/gfx942_assembly.lua")
local on_waves = dofile(dir .. "lib/on_waves.lua")

-- By lane: what a wave executes in its loop for 64 elements along k. `moves`: from one file of registers to the other, at most.
local plans <const> = {
  gemm_pingpong = {lanes = 2, k = 32, wide = 64, reads = 24, writes = 8, loads = 8, waits_for_all = 0, barriers = 4, moves = 0},
  gemm_interleave = {lanes = 1, k = 64, narrow = 256, reads = 32, writes = 16, loads = 16, waits_for_all = 0, barriers = 4, moves = 16},
}

-- The loops of the assembly that have products and no loop in them that has some: lines of each.
local function product_loops(lines)
  local at, last, multiplies, loops = {}, {}, {}, {}
  for i, line in ipairs(lines) do
    local label, target = line:match "^(%.LBB[%w_]+):", line:match "^%s+s_c?branch[%w_]*%s+(%.LBB[%w_]+)"
    if label then at[label] = i end
    if target and at[target] then last[at[target]] = i end          -- of several branches back to a label the last one
    multiplies[i] = line:find "^%s+v_mfma" ~= nil
  end
  local function has_products(first)
    for i = first, last[first] do
      if multiplies[i] then return true end
    end
  end
  for first, i in pairs(last) do
    local inner = has_products(first)
    for other, j in pairs(last) do inner = inner and not (other > first and j <= i and has_products(other)) end
    if inner then loops[#loops + 1] = table.move(lines, first, i, 1, {}) end
  end
  return loops
end

local function counts(body)
  local function count(pattern)
    local n = 0
    for _, line in ipairs(body) do n = n + (line:find("^%s+" .. pattern) and 1 or 0) end
    return n
  end
  return {wide = count "v_mfma_f32_32x32x8_bf16", narrow = count "v_mfma_f32_16x16x16_bf16", reads = count "ds_read_b128",
    other_reads = count "ds_read" - count "ds_read_b128", writes = count "ds_write_b128", other_writes = count "ds_write" - count "ds_write_b128",
    loads = count "buffer_load_dwordx4", other_loads = count "global_load" + count "buffer_load" - count "buffer_load_dwordx4",
    waits_for_all = count "s_waitcnt.*vmcnt%(0%)", barriers = count "s_barrier", moves = count "v_accvgpr", scratch = count "scratch_"}
end

-- Sums that would fill one file of registers are made by the narrow form.
local function form_of(tile)
  local plan = mr.plan(mr.examples.gemm{m = 2 * tile.m, n = 2 * tile.n, k = 64}:graph{tile = tile}, mr.device "mi300x")
  plan:lane("c0", {warps = 4, columns = 2})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0"}) end
  plan:fill_waits()
  return tostring(plan:kernel{}):match "mfma (%d+x%d+)"
end
tap.is(form_of{m = 256, n = 256, k = 32}, "16x16", "256 sums of a thread")
tap.is(form_of{m = 320, n = 192, k = 32}, "32x32", "240 sums of a thread")

local has_clang = os.execute "clang-22 --version >/dev/null 2>&1"
for name, want in pairs(plans) do
  local plan = mr.load_plan(name)
  local good, problems = plan:check()
  tap.ok(good, name .. " is legal", tostring(problems))
  tap.is(plan.usage.shared_bytes, 65536, "  and takes all of the LDS")
  for _, sizes in ipairs{{m = 512, n = 512, k = 320}, {m = 300, n = 280, k = 136}, {m = 256, n = 256, k = 64}} do
    local k = mr.load_plan(name, mr.examples.gemm(sizes)):compile{target = "host"}
    local result, watched = k:check{}, k:check{race = true}
    tap.ok(result.ok and watched.ok, ("  right for %d x %d x %d, and without a race"):format(sizes.m, sizes.n, sizes.k), tostring(result),
      tostring(watched))
  end
  local lines = has_clang and assembly_of(plan)
  if not lines then
    tap.ok(not has_clang, "  compiled # SKIP there is no clang-22")
  else
    tap.ok(table.concat(lines, "\n"):find "private_segment_fixed_size: 0\n", "  nothing is in scratch memory")
    local loops = product_loops(lines)
    tap.is(#loops, want.lanes, "  a loop a lane")
    for lane, loop in ipairs(loops) do
      local got = counts(loop)
      for what, n in pairs(got) do
        local each = n * 64 // want.k
        if what == "moves" then
          tap.ok(each <= want.moves, ("  lane %d: few moves of registers"):format(lane), each)
        else
          tap.is(each, want[what] or 0, ("  lane %d: %s"):format(lane, what))
        end
      end
    end
  end
end
-- Sizes that the tiles do not divide: the loop is there once, as a second one would keep its sums in other registers.
for name, most in pairs{gemm_pingpong = 0, gemm_interleave = 160} do
  local plan = mr.load_plan(name, mr.examples.gemm{m = 8000, n = 8000, k = 8000})
  tap.ok(not plan:compile{text = true}.source:find("/* unmasked */", 1, true), name .. ", 8000 cubed: no loop without tests of loads")
  local lines = has_clang and assembly_of(plan)
  local bytes = lines and tonumber(table.concat(lines, "\n"):match "private_segment_fixed_size: (%d+)\n")
  tap.ok(not lines or bytes <= most, ("  at most %d bytes of a thread in memory"):format(most), bytes)
  for lane, loop in ipairs(lines and product_loops(lines) or {}) do
    local got = counts(loop)
    tap.ok(got.scratch == 0 and got.loads == plans[name].loads * plans[name].k // 64 and got.other_loads == 0,
      ("  lane %d: none in its loop, whose loads are as many"):format(lane), got.scratch, got.loads)
  end
end
-- A tensor of 2 GiB or more has elements that no offset of 32 bits reaches.
do
  local function loads(m, k)
    local source = mr.load_plan("gemm_pingpong", mr.examples.gemm{m = m, n = 256, k = k}):compile{text = true}.source
    return ("%s %s"):format(source:find("load_16_of(r_load_a", 1, true) and "offset" or "pointer", source:find("load_16_of(r_load_b", 1, true) and
      "offset" or "pointer")
  end
  tap.is(loads(32768, 32736), "offset offset", "loads by offset from a tensor below 2 GiB")
  tap.is(loads(32768, 32768), "pointer offset", "  by pointers from one of 2 GiB")
end
-- A masked program keeps its loop without tests, if there are registers.
do
  local function unmasked(staged)
    local p = mr.plan(mr.examples.flash_attention{b = 1, h = 1, m = 256, n = 256, d = 64, causal = true}:graph{tile = {m = 64, n = 32, d = 64}},
      mr.device "mi300x")
    if staged then p:split_off("k", "put_k") end
    p:lane("c0", {warps = 4})
    for _, t in ipairs{"load_q", "load_k", staged and "put_k" or "", "load_v", "mma_qk", "softmax", "rescale", "mma_pv", "normalise", "store_o"} do
      if t ~= "" then p:append(t, {lane = "c0", seu = t:find "^load" and "valu" or nil}) end
    end
    p:fill_waits()
    return p:compile{text = true}.source:find("/* unmasked */", 1, true) ~= nil
  end
  tap.ok(unmasked(false) and unmasked(true), "attention under a mask has a loop without its tests, with held loads, too")
end
-- The machine code, where memory answers as late as it may.
if has_clang and os.execute "/usr/lib/llvm-22/bin/llvm-objdump --version >/dev/null 2>&1 && python3 --version >/dev/null 2>&1" then
  for name, sizes in pairs{gemm_pingpong = {m = 256, n = 256, k = 192}, gemm_interleave = {m = 512, n = 512, k = 256}} do
    local wrong = on_waves.wrong(mr.load_plan(name, mr.examples.gemm(sizes)), 1)
    tap.ok(not wrong, name .. ": its machine code is right", wrong)
  end
else
  tap.ok(true, "machine code # SKIP there is no clang-22, llvm-objdump or python3")
end
tap.done_testing()
