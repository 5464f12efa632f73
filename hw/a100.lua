-- a100.lua - NVIDIA A100 SXM4 80 GB as a scheduler sees it.
--
-- Pure data; conventions and sources as in h200.lua, with the guide's columns for
-- compute capability 8.0 and NVIDIA's A100 white paper and data sheet. Nothing here
-- was measured by us; what is marked * should be.
--
-- mma.sync is not asynchronous as the plan means it: a product is dozens of warp
-- instructions, each of which waits for the tensor core, so the lane that issues it
-- is held to its end. cp.async is: the lane goes on, its groups complete in order,
-- and cp.async.wait_group counts them.
return {
  title = "NVIDIA A100 SXM4 80 GB",
  arch = "sm_80",
  eus = 108,                        -- SMs; white paper
  clock_ghz = 1.41,                 -- * boost clock (data sheet), which it mostly holds at 400 W

  limits = {
    warp = 32,                      -- guide
    max_threads = 1024,             -- a block; guide
    registers = 65536,              -- of an SM; guide
    thread_registers = 255,         -- guide
    register_step = 8,              -- allocated in units of 256 a warp; guide
    reserved_registers = 16,        -- nvcc 13.0 spills with less than 8 to 17 more than values and
                                    -- addresses take, in six searched plans
    named_barriers = 16,            -- of a block; PTX ISA
    max_cluster = 1,                -- no clusters before 9.0; guide
    cluster_eus = 108,              -- as there are none
  },

  memory = {
    global = {
      bytes = 80e9,                 -- data sheet
      rate = 1.87e12,               -- B/s, reading (gpu-benches); the pins give 2.04e12 (data
                                    -- sheet)
      latency = 571,                -- gpu-benches
    },
    l2 = {
      bytes = 40 * 2^20,            -- white paper; full speed to 28 MB (gpu-benches)
      rate = 3830,                  -- of the device; 5.4e12 B/s / 1.41 GHz (gpu-benches)
      eu_rate = 64,                 -- white paper: 5120 B a cycle in all, 64 to an SM
      add_rate = 650,               -- estimate: the H100's share of `rate`
      add_eu_rate = 25,             -- estimate: the H100's
      add_interval = 17,            -- likewise: 12 ns
      latency = 211,                -- near half; gpu-benches
    },
    shared = {
      bytes = 166912,               -- 163 KiB, most a block can have; guide
      rate = 128,                   -- 32 banks of 4 bytes; guide
    },
  },

  sync = {
    wait_cost = 10,                 -- * estimate: cp.async.wait_group with nothing to wait for
    tell_cost = 12,                 -- * estimate, as the H200
    warp_cost = 8,                  -- * estimate, as the H200
    fence_cost = 0,                 -- its engine is the threads themselves
    flag_latency = 92,              -- * mbarrier in shared memory; B200
    issue_order_latency = 30,       -- * named barrier; B200
    handoff_latency = 61,           -- * registers, shared memory, registers; B200
    handoff_rate = 64,              -- * 16.1 cycles a KiB; B200
    launch_seconds = 2.6e-6,        -- 10000 kernels in a row, 64 KiB each (gpu-benches)
    tile_overhead = 200,            -- * estimate, as the H200
  },

  seu = {
    {
      name = "async_copy", kind = "copy", async = true,
      ordered = false,              -- each load is seen by a flag of its own; groups would complete in order
      issue = 16,                   -- * estimate: address arithmetic and commit_group
      latency = 30,                 -- * estimate: write to shared memory after the data came
      box_bytes = 512,              -- a warp's cp.async of 16 bytes a thread; PTX ISA
      box_interval = 4,             -- 512 bytes into shared memory at its 128 a cycle
    },
    {
      name = "tensor", kind = "matrix", async = false, ordered = true,
      issue = 32,                   -- * estimate: the first ldmatrix, at the latency of shared
                                    -- memory (guide: ~30)
      latency = 33,                 -- m16n8k16, dependent; Sun et al., Dissecting Tensor Cores
                                    -- (2022)
      flops = {                     -- 312 TFLOPS (bf16, dense; data sheet) / 108 / 1.41 GHz =
                                    -- 2048
        bf16 = 2048,                -- m16n8k16 in 8 cycles of a tensor core
        f16 = 2048,                 -- the same
        tf32 = 1024,                -- half: 156 TFLOPS; data sheet
        i8 = 4096,                  -- twice: 624 TOPS; data sheet
        u8 = 4096,                  -- the same
      },
      efficiency = 0.9,             -- * estimate: good cuBLAS products reach about 280 TFLOPS
      min_m = 16,                   -- mma.m16n8kK; PTX ISA
      min_n = 8,                    -- the same
      min_k = 32,                   -- bytes: k16 of 16 bits, k32 of 8, k8 of tf32; PTX ISA
    },
    {
      name = "cuda", kind = "vector", async = false, ordered = true,
      issue = 0,                    -- its instructions are its issue
      latency = 24,                 -- * estimate, as the H200
      ops = {
        fma = 64,                   -- guide
        alu = 64,                   -- guide: integer, compare, minimum, maximum
        sfu = 16,                   -- guide: ex2, lg2, rcp, rsqrt, tanh
        cvt = 64,                   -- * estimate, as the H200
        div = 5,                    -- rcp and some eight FMA: 1 / (1/16 + 8/64)
        reduce = 54,                -- * as the H200, where a maximum takes as long as a sum does
                                    -- here
        scan = 10,                  -- * estimate, as the H200 with half the additions a cycle
        move = 32,                  -- shared memory's 128 bytes a cycle in elements of 4
      },
      slots = 128,                  -- four schedulers issue one warp instruction each; guide
      lane_share = 0.9,             -- * as the H200
      chain = 4,                    -- * ffma, as the H200
    },
  },
}
