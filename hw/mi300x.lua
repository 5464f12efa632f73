-- mi300x.lua - AMD Instinct MI300X as a scheduler sees it.
--
-- Pure data; conventions as in h200.lua. Sources:
--   data sheet  AMD Instinct MI300X data sheet
--   CDNA 3      AMD CDNA 3 white paper; CDNA 3 (gfx942) instruction set reference
--   ROCm        ROCm documentation: GPU hardware specifications, performance model
--   C&C         chipsandcheese.com, Testing AMD's giant MI300X (2024)
--   estimate    ours, with the reasoning
-- No such device was at hand: nothing was measured by us, and what is marked * should be.
--
-- Buffer loads are asynchronous and retire in order (vmcnt counts them): by way of registers
-- (vmem), or straight to LDS (lds_dma), on gfx942 only 4 bytes a lane. MFMA runs in parallel to its
-- wave, but not as an asynchronous unit in the plan's sense: there is no group to
-- count or wait for, a dependent instruction stalls by itself, and a product is dozens
-- of MFMAs, each issued when the matrix core takes it, so the wave is held to the end.
-- What overlaps with it is another wave of the same SIMD: two lanes in ping-pong.
--
-- "l2" is the level that all CUs share, the Infinity Cache. The 4 MiB L2 of each XCD
-- below it is not modelled; it makes neighbouring tiles cheaper than said here, if they are on
-- one XCD (plan:grid{chiplets=8}).
-- A transcendental holds the vector unit for four issue slots, so SFU work does not overlap
-- with FMA of the same SIMD as it does on an SM; the model is optimistic there.
return {
  title = "AMD Instinct MI300X",
  arch = "gfx942",
  eus = 304,                        -- CUs, 38 in each of 8 XCDs; data sheet
  clock_ghz = 2.1,                  -- * peak engine clock (data sheet); less under full matrix
                                    -- load

  limits = {
    warp = 64,                      -- CDNA 3
    max_threads = 1024,             -- a workgroup; ROCm
    registers = 131072,             -- 512 KiB of vector registers a CU; ROCm
    thread_registers = 512,         -- 256 and 256 accumulation registers; CDNA 3
    register_step = 8,              -- CDNA 3
    reserved_registers = 32,        -- * estimate: buffer and LDS addresses
    named_barriers = 16,            -- ours: counters in LDS, which waves read again and again. The
                                    -- machine has only s_barrier of the complete workgroup; CDNA 3
    max_cluster = 1,                -- no clusters
    cluster_eus = 304,              -- as there are none
    chiplets = 8,                   -- XCDs; the n-th workgroup goes to XCD n mod 8; ROCm
  },

  memory = {
    global = {
      bytes = 192e9,                -- data sheet
      rate = 4.3e12,                -- B/s; * about what streams reach, the pins give 5.3e12
                                    -- (data sheet)
      latency = 800,                -- * estimate: Infinity Cache and some 160 ns of HBM
    },
    l2 = {
      bytes = 256 * 2^20,           -- Infinity Cache; data sheet
      rate = 5667,                  -- of the device; 11.9e12 B/s (C&C; peak 17.2e12) / 2.1 GHz
      eu_rate = 64,                 -- a CU's vector L1 from L2; CDNA 3
      add_rate = 960,               -- estimate: the H100's share of `rate`
      add_interval = 25,            -- estimate: the H100's 12 ns
      latency = 458,                -- 218 ns (C&C) at 2.1 GHz
    },
    shared = {
      bytes = 65536,                -- LDS; data sheet
      rate = 128,                   -- CDNA 3
    },
  },

  sync = {
    wait_cost = 4,                  -- * estimate: s_waitcnt that passes, one issue slot of a
                                    -- SIMD
    tell_cost = 12,                 -- * estimate, as the H200
    warp_cost = 0,                  -- a wave is always together
    fence_cost = 0,                 -- there is no engine other than the threads
    flag_latency = 128,             -- * estimate: LDS write, s_barrier, LDS read; LDS takes
                                    -- about 64
    issue_order_latency = 40,       -- * estimate: s_barrier of eight waves
    handoff_latency = 128,          -- * estimate: as flag_latency
    handoff_rate = 64,              -- write and read of LDS at 128 each
    launch_seconds = 2.1e-6,        -- * MI210: 10000 kernels in a row (gpu-benches, see
                                    -- h200.lua)
    tile_overhead = 200,            -- * estimate, as the H200
  },

  seu = {
    {
      name = "vmem", kind = "copy", async = true,
      ordered = false,              -- each load is seen by a flag of its own; vmcnt would count in order
      issue = 16,                   -- * estimate: offsets and the first instruction
      latency = 64,                 -- * estimate: ds_write and LDS latency after the data came
      box_bytes = 1024,             -- a wave's buffer_load_dwordx4: 64 lanes of 16 bytes; CDNA 3
      box_interval = 16,            -- the vector L1 gives 64 bytes a cycle; ROCm
    },
    {
      name = "mfma", kind = "matrix", async = false,
      ordered = true,               -- a wave's instructions issue in order; CDNA 3
      issue = 16,                   -- * estimate: ds_reads of operands run ahead
      latency = 16,                 -- passes of a 16x16x16 until its result can be read; CDNA 3
      flops = {                     -- 1307 TFLOPS (f16; data sheet) / 304 / 2.1 GHz = 2048
        f16 = 2048,                 -- four matrix cores of 512
        bf16 = 2048,                -- the same
        e4m3 = 4096,                -- 2615 TFLOPS; data sheet. Operands become the machine's encoding in registers
        e5m2 = 2048,                -- multiplied as f16: the machine's encoding has no infinities
        i8 = 4096,                  -- 2615 TOPS; data sheet
        tf32 = 1024,                -- 654 TFLOPS; data sheet
        f32 = 256,                  -- 163 TFLOPS; data sheet
      },
      efficiency = 0.8,             -- * estimate: 16x16x16 back to back, LDS reads between
      min_m = 16,                   -- v_mfma_f32_16x16x16; CDNA 3
      min_n = 16,                   -- the same
      min_k = 32,                   -- bytes: k16 of 16 bits, k32 of 8; CDNA 3
    },
    {
      name = "valu", kind = "vector", async = false, ordered = true,
      issue = 0,                    -- its instructions are its issue
      latency = 8,                  -- * estimate: result of one instruction to the next
      ops = {
        fma = 64,                   -- four SIMDs of 16 lanes; packed f32 would double it (163
                                    -- TFLOPS; data sheet), not counted on
        alu = 64,                   -- the same lanes; CDNA 3
        sfu = 16,                   -- transcendentals at a quarter of that; CDNA 3
        cvt = 16,                   -- * estimate: bf16 is packed by some four integer operations
        div = 5,                    -- rcp and some eight operations: 1 / (1/16 + 8/64)
        reduce = 16,                -- * estimate: rows lie across lanes, four DPP steps an
                                    -- element
        scan = 8,                   -- * estimate: four DPP steps with a masked addition each
        move = 32,                  -- LDS's 128 bytes a cycle in elements of 4
      },
      slots = 64,                   -- one wave instruction a SIMD every four cycles; CDNA 3
      lane_share = 0.9,             -- * estimate, as the H200: one wave in each SIMD
      chain = 8,                    -- * estimate: a wave issues each fourth cycle, and
                                    -- its result is there for the one after the next
    },
    {
      name = "lds_dma", kind = "copy", async = true,
      ordered = true,               -- buffer_load_dword ... lds, which a wave counts (vmcnt); CDNA 3
      issue = 16,                   -- * estimate, as vmem
      latency = 64,                 -- * estimate, as vmem: the write to LDS, though not by the wave
      box_bytes = 256,              -- a wave's instruction: 64 lanes of 4 bytes; CDNA 3
      box_interval = 4,             -- * estimate: the vector L1 gives 64 bytes a cycle (ROCm); if it looks
                                    -- up one address a lane, 16 lanes a cycle, it takes as long
    },
  },
}
