-- h200.lua - NVIDIA H200 SXM as a scheduler sees it.
--
-- Pure data. Times are cycles of the SM clock, rates are per cycle and SM unless a
-- comment says otherwise. Where each number comes from stands behind it:
--   data sheet  NVIDIA H200 data sheet; NVIDIA H100 white paper (the same die)
--   guide       CUDA C++ programming guide 12: compute capability 9.0, throughput of
--               native arithmetic instructions
--   gpu-benches measurements in github.com/te42kyfo/gpu-benches (1c36d50)
--   measured    on an H200 by tests/perf/calibrate.cu (driver 580.159, CUDA 13.0); the
--               name of its output line in brackets
--   fitted      to what the same device took for many plans, traced (tests/perf/sweep.lua);
--               docs/internals/simulator.md has what each shows
--   estimate    ours, with the reasoning
--   calibrated  by mr.calibrate, on NVIDIA H200, 2026-11-23, driver 580.159.04; +-: the spread of 3 rounds
return {
  title = "NVIDIA H200 SXM",
  arch = "sm_90a",
  eus = 132,                        -- SMs; data sheet
  clock_ghz = 1.97,                 -- calibrated, +- 0.2 %: no products, and little power

  limits = {
    warp = 32,                      -- guide
    max_threads = 1024,             -- a block; guide
    registers = 65536,              -- of an SM; guide
    thread_registers = 255,         -- guide
    register_step = 8,              -- setmaxnreg takes multiples of 8; PTX ISA
    reserved_registers = 24,        -- FlashAttention-3 fills 216 of its 240 with tiles
    named_barriers = 16,            -- of a block, 0 is __syncthreads; PTX ISA
    max_cluster = 8,                -- blocks, portable size; guide
    cluster_eus = 120,              -- 30 clusters of 4, 15 of 8, on one chip; on others other
                                    -- SMs are left out; cudaOccupancyMaxActiveClusters
  },

  memory = {
    global = {
      bytes = 141e9,                -- data sheet
      rate = 4.553e12,              -- calibrated, +- 0.5 %: reads once
      uneven = 0.041,               -- tiles by a counter gained 2.4, 3.0 and 4.3 % of a copy, rmsnorm and gelu of 8192 x
                                    -- 8192, of whose tiles 27 of 31 are taken so; measured, tests/perf/dynamic.lua
      switching = 0.345,            -- kernels that read and write: of the bytes 0, 11, 20, 33 and 50 % written 4.48, 4.18,
                                    -- 4.08, 3.88 and 3.82 TB/s; only written 4.51; measured
      latency = 923.5,              -- calibrated, +- 0.3 %: requests a chunk when it has the one before
    },
    l2 = {
      bytes = 50 * 2^20,            -- white paper; full speed to 44 MB, half at 52 MB (gpu-
                                    -- benches)
      rate = 7580,                  -- calibrated, +- 0.4 %: reads again what L2 has
      eu_rate = 110,                -- one SM alone: 24 KiB more take 220 cycles more; measured
                                    -- [tma_load_32kb_latency_l2 and _8kb_]
      apart_rate = 4000,            -- all SMs read other bytes, which L2 has: 8.05 TB/s; with 4, 12, 33 that read the same 8.3,
                                    -- 10.2, 12.5. Products whose loops clusters divide: 5.4 to 8.6 (tests/perf/divided.lua)
      thread_rate = 33.42,          -- calibrated, +- 1.3 %: copies by threads
      warp_rate = 21.5,             -- GEMM of rows of 8,200 bytes: one warp 2.14 ms, two lanes of one
                                    -- 1.91, one of four 1.30
      again = 0.28,                 -- pairs of EUs that read the same 135 MB take 1.35 times as long as each its
                                    -- own, the same 470 MB 1.21 times; both come from device memory once
      add_rate = 1220,              -- estimate: the H100's 2.4 TB/s, as it is the same die
      add_eu_rate = 25,             -- likewise
      add_interval = 24,            -- likewise: 12 ns
      latency = 183,                -- 8 KiB arrive after 376 cycles, of which 74 are transfer and
                                    -- 120 the engine's; measured [tma_load_8kb_latency_l2]
    },
    shared = {
      bytes = 232448,               -- 227 KiB, most a block can have; guide
      rate = 118.2,                 -- calibrated, +- 5.9 %: products of 64 columns, both operands from there
      peer_rate = 14,               -- estimate: 16 in clusters of two, 13 of four, on an H800 (arXiv 2402.13499)
      peer_latency = 900,           -- estimate: the 180 of a read there, an mbarrier, two fences at the scope of a cluster
    },
  },

  sync = {
    wait_cost = 61,                 -- mbarrier.try_wait that holds; measured [mbarrier_try_wait]
    drain_cost = 18,                -- wgmma.wait_group that holds; traced
    tell_cost = 12,                 -- estimate: an address, a branch, mbarrier.arrive
    warp_cost = 8,                  -- estimate: a __syncwarp that all have come to
    fence_cost = 24,                -- estimate: fence.proxy.async, about a write to shared memory
    flag_latency = 88,              -- mbarrier, one way; measured [mbarrier_handoff_128]
    issue_order_latency = 39,       -- named barrier; measured [named_barrier_handoff]
    handoff_latency = 194,          -- registers, shared memory, registers of another lane:
    handoff_rate = 197,             -- 8 KiB 235 cycles, 16 KiB 277; measured [handover_64x64, _64x128]
    launch_seconds = 3.907e-06,     -- calibrated, +- 0.9 %: one small tile
    early_seconds = 2.3e-6,         -- traces of decoding: products begin 1.2 to 2.4 us behind the last end in front; chains of 40
                                    -- products in a graph, launched early, and with weights ready: 10.6 and 9.9 us each
    ahead_seconds = 0.6e-6,         -- ready weights of products of 16 rows: 0.5 to 0.7 us less; blocks begin 0.2 us before waits pass
    cluster_seconds = 0.9e-6,       -- 132 blocks of one small tile: 5.95 us, in clusters of two 6.85; of four, 120 blocks 6.62
    tile_overhead = 200,            -- estimate: some 40 dependent instructions of address
                                    -- arithmetic
  },

  uncertainty = {                   -- of 232 plans that were measured
    products = 0.066,
    other = 0.135,
    order = 0.08,
  },

  power = {
    limit = 700,                    -- calibrated, +- 0.0 %: products without a pause
    idle = 122.8,                   -- calibrated, +- 2.9 %: waits, on an eighth of the EUs
    product = 0.8056,               -- calibrated, +- 4.0 %: products without a pause
    vector = 6.848,                 -- calibrated, +- 9.5 %: much work on a product
    l2 = 19.86,                     -- calibrated, +- 3.2 %: reads again what L2 has
    l2_rows = 0.3,                  -- fitted to gemm plans of sweep-h200.jsonl whose rows have 64 bytes
    global = 61.8,                  -- calibrated, +- 13.0 %: reads once
    eu = 397.4,                     -- calibrated, +- 7.2 %: waits, on all EUs
  },

  seu = {
    {
      name = "tma", kind = "copy", async = true,
      ordered = false,              -- loads complete by mbarrier in any order; PTX ISA
      issue = 16,                   -- expect_tx and one load; measured [tma_load_issue_1]
      latency = 120,                -- estimate: the engine's part of a load's 303 cycles
      box_bytes = 32768,            -- 256 rows of the 128 bytes that swizzling allows; CUDA
                                    -- driver API
      box_interval = 16,            -- between loads of one thread 11 to 27; measured
                                    -- [tma_load_issue_4, _16]
      row_interval = 14,            -- boxes of a row each, by four warps: 9.7 ns on an H100; tests/perf/rows.lua
      add_interval = 128,           -- estimate: the H100's
    },
    {
      name = "tensor", kind = "matrix", async = true,
      ordered = true,               -- wgmma groups retire in order; PTX ISA
      issue = 32,                   -- estimate: fence, four wgmma, commit
      latency = 28.03,              -- calibrated, +- 17.1 %: products that wait for work on the one before
      flops = {                     -- 989 TFLOPS (bf16, dense; data sheet) / 132 / 1.83 GHz =
                                    -- 4096
        bf16 = 4096,                -- measured: N/2 cycles an m64nNk16 [wgmma_bf16_ss_n*]
        f16 = 4096,                 -- the same
        tf32 = 2048,                -- half: 495 TFLOPS; data sheet
        e4m3 = 8192,                -- measured: 128 cycles an m64n256k32 [wgmma_e4m3_ss_n256_*]
        e5m2 = 8192,                -- the same
        i8 = 8192,                  -- 1979 TOPS; data sheet
        u8 = 8192,                  -- the same
      },
      clock_ghz = 1.791,            -- calibrated, +- 0.2 %: products, and little power
      efficiency = 1.0,             -- the rates above are reached exactly; measured
      step = 8,                     -- fitted: eight instructions are issued in 125 cycles, stamps included
      depth = 11,                   -- fitted: 16 of 64 cycles are issued when six are done
      min_m = 64,                   -- wgmma is m64nNkK; PTX ISA
      min_n = 8,                    -- N from 8 to 256 by 8; PTX ISA
      min_k = 32,                   -- bytes: K is 16 of 16 bits, 32 of 8, 8 of tf32; PTX ISA
    },
    {
      name = "cuda", kind = "vector", async = false, ordered = true,
      issue = 0,                    -- its instructions are its issue
      latency = 24,                 -- a shuffle; measured [shfl_latency]; ex2 17, ffma 4
      ops = {
        fma = 126,                  -- measured [ffma_8w]; guide: 128
        alu = 62.69,                -- calibrated, +- 0.2 %: 64 maxima and minima an element
        sfu = 16.04,                -- calibrated, +- 0.2 %: 32 exponentials an element
        cvt = 127,                  -- two elements to bf16 at once, 64 a cycle; measured
                                    -- [cvt_bf16x2_*]; F2I is 16 (guide)
        div = 8,                    -- rcp and some eight FMA: 1 / (1/16 + 8/128)
        reduce = 128,               -- of what is not lowered: half alu (maximum), half fma (sum)
        scan = 12,                  -- estimate: five shuffle steps across threads, two
                                    -- additions along a thread
        move = 32,                  -- shared memory's 128 bytes a cycle in elements of 4
      },
      slots = 128,                  -- four schedulers issue one warp instruction each; guide
      lane_share = 0.9407,          -- calibrated, +- 0.4 %: 16 multiply-adds an element, by one lane
      contention = 0.5,             -- fitted: a softmax takes 783 cycles alone, 1,200 during products
      by_age = 0.3,                 -- fitted: two lanes that do one thing after the other get out of
                                    -- each other's way
      chain = 4,                    -- ffma; measured, see latency above
    },
    {
      name = "mma_sync", kind = "matrix", async = false, ordered = true,
      -- Behind the units that work goes to by default: a plan names it. What it can do that wgmma cannot: 16 rows
      -- instead of 64, and both operands out of registers.
      issue = 32,                   -- estimate: the first ldmatrix, at the latency of shared memory (guide: ~30)
      latency = 33,                 -- as the A100
      flops = {                     -- of wgmma's rate 62 % (Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU
                                    -- Architecture, 2024: mma.sync on an H100 PCIe)
        bf16 = 2540,                -- 0.62 of 4096, m16n8k16; estimate
        f16 = 2540,                 -- the same
        tf32 = 1270,                -- half; estimate
        e4m3 = 1365,                -- estimate: ptxas makes two f16 products of each, and up to twelve conversions,
                                    -- which go at 64 a cycle
        e5m2 = 1365,                -- the same
        i8 = 5080,                  -- twice; estimate
        u8 = 5080,                  -- the same
      },
      efficiency = 1.0,             -- in the rates above
      min_m = 16,                   -- mma.m16n8kK; PTX ISA
      min_n = 8,                    -- the same
      min_k = 32,                   -- bytes: k16 of 16 bits, k32 of 8, k8 of tf32; PTX ISA
    },
  },
}
