-- h100.lua - NVIDIA H100 SXM5 80 GB as a scheduler sees it.
--
-- The SMs are those of the H200; only clock, power and memory differ. Sources as in
-- h200.lua, where the reasoning behind the shared numbers stands. What is marked * is
-- measured on an H200 or another relative, not on this device.
return {
  title = "NVIDIA H100 SXM5",
  arch = "sm_90a",
  eus = 132,                        -- SMs; NVIDIA H100 white paper
  clock_ghz = 1.50,                 -- * as the H200: the same die and the same 700 W

  uncertainty = {                   -- * of the H200, whose SMs these are. Its clock, power and memory were
    least_products = 0.066,         -- measured, these were not, so errors can only be larger
    least_other = 0.135,
  },

  limits = {
    warp = 32,                      -- guide
    max_threads = 1024,             -- a block; guide
    registers = 65536,              -- of an SM; guide
    thread_registers = 255,         -- guide
    register_step = 8,              -- setmaxnreg takes multiples of 8; PTX ISA
    reserved_registers = 24,        -- FlashAttention-3 fills 216 of its 240 with tiles
    named_barriers = 16,            -- of a block; PTX ISA
    max_cluster = 8,                -- blocks, portable size; guide
    cluster_eus = 120,              -- as on an H200, which is the same die
  },

  memory = {
    global = {
      bytes = 80e9,                 -- data sheet
      rate = 2.95e12,               -- B/s; * 0.88 of the data sheet's 3.35e12, the H200's share
      latency = 690,                -- GH200 (HBM3, same SM), github.com/markdewing/AI_kernels
    },
    l2 = {
      bytes = 50 * 2^20,            -- white paper
      rate = 6467,                  -- of the device; * the H200's
      eu_rate = 64,                 -- white paper: 64 B a cycle from L2 to an SM
      thread_rate = 43,             -- * the H200's
      warp_rate = 21.5,             -- * the H200's
      add_rate = 1600,              -- all SMs, by complete sectors, by the copy engine or by threads: 2.4 TB/s if all
                                    -- go through the same 32 KB to 1 MB in the same order, 3.1 if each begins
                                    -- elsewhere in 4 or 16 MB; tests/perf/adds.cu, an H100 at 1.9 GHz
      add_eu_rate = 25,             -- one SM, others idle: 25.3; adds.cu
      add_interval = 18,            -- all SMs to the same 1, 4, 8, 16 KB: 108, 426, 669, 1280 GB/s, which is a sum every
                                    -- 12 ns where several lines of a slice of L2 are the same ones; adds.cu
      latency = 281,                -- GH200; 265 on an H100 PCIe (gpu-benches)
    },
    shared = {
      bytes = 232448,               -- 227 KiB, most a block can have; guide
      rate = 128,                   -- 32 banks of 4 bytes; guide
      peer_rate = 14,               -- estimate: 16 in clusters of two, 13 of four, on an H800 (arXiv 2402.13499)
      peer_latency = 900,           -- estimate: the 180 of a read there, an mbarrier, two fences at the scope of a cluster
    },
  },

  sync = {
    wait_cost = 30,                 -- * mbarrier wait; B200
    tell_cost = 12,                 -- * estimate, as the H200
    warp_cost = 8,                  -- * estimate, as the H200
    fence_cost = 24,                -- * estimate, as the H200
    flag_latency = 92,              -- * mbarrier, one way; B200
    issue_order_latency = 30,       -- * named barrier; B200
    handoff_latency = 61,           -- * registers, shared memory, registers; B200
    handoff_rate = 64,              -- * 16.1 cycles a KiB; B200
    launch_seconds = 2.5e-6,        -- * the H200's (gpu-benches)
    tile_overhead = 200,            -- * estimate, as the H200
  },

  seu = {
    {
      name = "tma", kind = "copy", async = true,
      ordered = false,              -- loads complete by mbarrier in any order; PTX ISA
      issue = 30,                   -- * B200
      latency = 179,                -- * a load takes 460 (B200), less L2's 281
      box_bytes = 32768,            -- 256 rows of the 128 bytes that swizzling allows; CUDA
                                    -- driver API
      box_interval = 64,            -- * estimate, as the H200
      row_interval = 14,            -- boxes of a row each, by four warps: 9.7 ns on an H100; tests/perf/rows.lua
      add_interval = 128,           -- boxes of 16 rows of 64 B that are added: 128; of 512 B or 1 KB contiguous 105; adds.cu
    },
    {
      name = "tensor", kind = "matrix", async = true,
      ordered = true,               -- wgmma groups retire in order; PTX ISA
      issue = 32,                   -- * estimate, as the H200
      latency = 32,                 -- * estimate, as the H200
      flops = {                     -- 989 TFLOPS (bf16, dense; data sheet) / 132 / 1.83 GHz =
                                    -- 4096
        bf16 = 4096,                -- m64nNk16 in N/2 cycles
        f16 = 4096,                 -- the same
        tf32 = 2048,                -- half: 495 TFLOPS; data sheet
        e4m3 = 8192,                -- twice: 1979 TFLOPS; data sheet
        e5m2 = 8192,                -- the same
        i8 = 8192,                  -- 1979 TOPS; data sheet
        u8 = 8192,                  -- the same
      },
      efficiency = 0.95,            -- * cuBLAS on an H200 at 1.50 GHz
      min_m = 64,                   -- wgmma is m64nNkK; PTX ISA
      min_n = 8,                    -- N from 8 to 256 by 8; PTX ISA
      min_k = 32,                   -- bytes: K is 16 of 16 bits, 32 of 8, 8 of tf32; PTX ISA
    },
    {
      name = "cuda", kind = "vector", async = false, ordered = true,
      issue = 0,                    -- its instructions are its issue
      latency = 24,                 -- * estimate, as the H200
      ops = {
        fma = 128,                  -- guide
        alu = 64,                   -- guide: integer, compare, minimum, maximum
        sfu = 16,                   -- guide: ex2, lg2, rcp, rsqrt, tanh
        cvt = 64,                   -- * estimate, as the H200
        div = 8,                    -- rcp and some eight FMA: 1 / (1/16 + 8/128)
        reduce = 64,                -- * from rates of ALU, FMA and shuffles, as the H200
        scan = 12,                  -- * estimate, as the H200
        move = 32,                  -- shared memory's 128 bytes a cycle in elements of 4
      },
      slots = 128,                  -- four schedulers issue one warp instruction each; guide
      lane_share = 0.9,             -- * exp2 of 128x128 by one warpgroup takes 1140 cycles
                                    -- (B200), not 1024
      chain = 4,                    -- * ffma, as the H200
    },
    {
      name = "mma_sync", kind = "matrix", async = false, ordered = true,
      -- Behind the units that work goes to by default: a plan names it. What it can do that wgmma cannot: 16 rows
      -- instead of 64, and both operands out of registers.
      issue = 32,                   -- * estimate: the first ldmatrix, at the latency of shared memory (guide: ~30)
      latency = 33,                 -- * as the A100
      flops = {                     -- of wgmma's rate 62 % (Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU
                                    -- Architecture, 2024: mma.sync on an H100 PCIe)
        bf16 = 2540,                -- * 0.62 of 4096, m16n8k16; estimate
        f16 = 2540,                 -- * the same
        tf32 = 1270,                -- * half; estimate
        e4m3 = 1365,                -- * estimate: ptxas makes two f16 products of each, and up to twelve conversions,
                                    -- which go at 64 a cycle
        e5m2 = 1365,                -- * the same
        i8 = 5080,                  -- * twice; estimate
        u8 = 5080,                  -- the same
      },
      efficiency = 1.0,             -- in the rates above
      min_m = 16,                   -- mma.m16n8kK; PTX ISA
      min_n = 8,                    -- the same
      min_k = 32,                   -- bytes: k16 of 16 bits, k32 of 8, k8 of tf32; PTX ISA
    },
  },
}
