-- host.lua - the CPU that runs this program, as a scheduler sees it.
--
-- The host target runs a kernel's own text, lane after lane, to check it: nobody
-- schedules for speed here, so these are plain numbers of a small x86-64 machine
-- (two cores, AMD Zen 4 class) that make plans and timelines come out sensible. An EU
-- is a core. All its units are the core itself, hence none is asynchronous. Limits
-- are the H200's, so that a plan for a GPU fits here unchanged.
return {
  title = "host CPU",
  arch = "x86_64",
  eus = 2,                          -- cores of the smallest machine we test on
  clock_ghz = 3.0,                  -- between base and boost clock of a server core

  limits = {
    warp = 32,                      -- as h200.lua
    max_threads = 1024,             -- as h200.lua
    registers = 65536,              -- as h200.lua; they are arrays on the stack
    thread_registers = 255,         -- as h200.lua
    register_step = 8,              -- as h200.lua
    reserved_registers = 24,        -- as h200.lua
    named_barriers = 16,            -- as h200.lua
    max_cluster = 1,                -- blocks run one after the other
    cluster_eus = 2,                -- as there are none
  },

  memory = {
    global = {
      bytes = 8 * 2^30,             -- 8 GiB, a small machine's memory
      rate = 20e9,                  -- B/s: what one DDR5 channel gives two cores, about
      latency = 300,                -- 100 ns at 3 GHz, usual for server memory
    },
    l2 = {
      bytes = 32 * 2^20,            -- L3 of a Zen 4 die
      rate = 32,                    -- two cores at 16
      eu_rate = 16,                 -- half of the 32 bytes a cycle that L3 can give a Zen core
      add_rate = 16,                -- estimate: a read and a write
      latency = 50,                 -- L3 of Zen 4, about
    },
    shared = {
      bytes = 232448,               -- as h200.lua; lies in a core's L2
      rate = 32,                    -- L2 of Zen 4 to its core
    },
  },

  sync = {
    wait_cost = 10,                 -- a test of a variable and a branch
    tell_cost = 10,                 -- a write and a branch
    warp_cost = 0,                  -- a lane is one thread
    fence_cost = 0,                 -- one memory for all
    flag_latency = 100,             -- a switch to another lane's state
    issue_order_latency = 100,      -- the same
    handoff_latency = 100,          -- the same
    handoff_rate = 16,              -- a write and a read at the rate of L2
    launch_seconds = 5e-5,          -- waking two threads
    tile_overhead = 100,            -- loop and address arithmetic
  },

  seu = {
    {
      name = "copy", kind = "copy", async = false, ordered = true,
      issue = 10,                   -- call and loop set-up
      latency = 0,                  -- done when it returns
      box_bytes = 4096,             -- a memcpy of a few rows
      box_interval = 128,           -- 32 bytes a cycle
    },
    {
      name = "matrix", kind = "matrix", async = false, ordered = true,
      issue = 10,                   -- call and loop set-up
      latency = 0,                  -- done when it returns
      flops = {                     -- two 8-wide f32 FMA a cycle, whatever the operands are
                                    -- stored as
        f32 = 32,                   -- AVX2
        tf32 = 32,                  -- computed as f32
        bf16 = 32,                  -- computed as f32
        f16 = 32,                   -- computed as f32
        e4m3 = 32,                  -- computed as f32
        e5m2 = 32,                  -- computed as f32
        i8 = 32,                    -- computed in 32 bits
        u8 = 32,                    -- the same
      },
      efficiency = 0.1,             -- plain loops of C with conversions, not a tuned kernel
      min_m = 1,                    -- no granularity
      min_n = 1,                    -- no granularity
      min_k = 1,                    -- no granularity
    },
    {
      name = "vector", kind = "vector", async = false, ordered = true,
      issue = 10,                   -- call and loop set-up
      latency = 0,                  -- done when it returns
      ops = {
        fma = 8,                    -- one 8-wide operation a cycle
        alu = 8,                    -- the same
        sfu = 0.1,                  -- a call of libm for each element
        cvt = 1,                    -- scalar bit operations
        div = 1,                    -- 8-wide divide every 5 cycles or more
        reduce = 2,                 -- a chain of 4-cycle additions, vectorised
        scan = 0.25,                -- a chain of 4-cycle additions
        move = 4,                   -- a load and a store of 4 bytes, vectorised
      },
      slots = 16,                   -- two 8-wide instructions a cycle
      lane_share = 1,               -- a core runs one lane at a time
      chain = 4,                    -- an FMA of Zen 4
    },
  },
}
