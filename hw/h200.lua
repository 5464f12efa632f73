-- h200.lua - NVIDIA H200 SXM as a scheduler sees it.
--
-- Pure data. Times are cycles of the SM clock, rates are per cycle and SM unless a
-- comment says otherwise. Where each number comes from stands behind it:
--   data sheet  NVIDIA H200 data sheet; NVIDIA H100 white paper (the same die)
--   guide       CUDA C++ programming guide 12: compute capability 9.0, throughput of
--               native arithmetic instructions
--   gpu-benches measurements in github.com/te42kyfo/gpu-benches (1c36d50)
--   B200        latencies measured on a B200 by facebookexperimental/triton
--               (NVLatencyModel.cpp and its notes); the best there is for sm_90
--   estimate    ours, with the reasoning
-- What is marked * is to be replaced by a measurement (tests/perf/calibrate.cu).
return {
  title = "NVIDIA H200 SXM",
  arch = "sm_90a",
  eus = 132,                        -- SMs; data sheet
  clock_ghz = 1.50,                 -- * where the SMs settle under full tensor load at the 700 W
                                    -- limit; cuBLAS bf16 8192^3 at 769 TFLOPS is 0.95 of the
                                    -- peak there

  limits = {
    warp = 32,                      -- guide
    max_threads = 1024,             -- a block; guide
    registers = 65536,              -- of an SM; guide
    thread_registers = 255,         -- guide
    register_step = 8,              -- setmaxnreg takes multiples of 8; PTX ISA
    reserved_registers = 24,        -- FlashAttention-3 fills 216 of its 240 with tiles
    named_barriers = 16,            -- of a block, 0 is __syncthreads; PTX ISA
    max_cluster = 8,                -- blocks, portable size; guide
  },

  memory = {
    global = {
      bytes = 141e9,                -- data sheet
      rate = 4.2e12,                -- B/s; * copy of 4 GiB reaches 4.22e12, the pins 4.8e12
                                    -- (data sheet)
      latency = 690,                -- * GH200 (HBM3, same SM), github.com/markdewing/AI_kernels
    },
    l2 = {
      bytes = 50 * 2^20,            -- white paper; full speed to 44 MB, half at 52 MB (gpu-
                                    -- benches)
      rate = 6467,                  -- of the device; * 9.7e12 B/s (gpu-benches, H200) / 1.50
                                    -- GHz: its clock is not the SMs'; DeepGEMM reckons with 6150
      eu_rate = 64,                 -- white paper: 64 B a cycle from L2 to an SM
      latency = 281,                -- * GH200, github.com/markdewing/AI_kernels; near half of L2
    },
    shared = {
      bytes = 232448,               -- 227 KiB, most a block can have; guide
      rate = 128,                   -- 32 banks of 4 bytes; guide
    },
  },

  sync = {
    wait_cost = 30,                 -- * mbarrier wait; B200
    flag_latency = 92,              -- * mbarrier, one way; B200
    turn_latency = 30,              -- * named barrier; B200
    handoff_latency = 61,           -- * registers, shared memory, registers; B200
    handoff_rate = 64,              -- * 16.1 cycles a KiB; B200
    launch_seconds = 2.5e-6,        -- 10000 kernels in a row, 64 KiB each (gpu-benches, H200)
    tile_overhead = 200,            -- * estimate: some 40 dependent instructions of address
                                    -- arithmetic
  },

  seu = {
    {
      name = "tma", kind = "copy", async = true,
      ordered = false,              -- loads complete by mbarrier in any order; PTX ISA
      issue = 30,                   -- * B200
      latency = 179,                -- * a load takes 460 (B200), less L2's 281
      box_bytes = 32768,            -- 256 rows of the 128 bytes that swizzling allows; CUDA
                                    -- driver API
      box_interval = 64,            -- * estimate: boxes of 4 KiB keep up with the 64 B a cycle
                                    -- of L2
    },
    {
      name = "tensor", kind = "matrix", async = true,
      ordered = true,               -- wgmma groups retire in order; PTX ISA
      issue = 32,                   -- * estimate: fence, four wgmma, commit
      latency = 32,                 -- * estimate: drain of the last wgmma and the return from
                                    -- the wait
      flops = {                     -- 989 TFLOPS (bf16, dense; data sheet) / 132 / 1.83 GHz =
                                    -- 4096
        bf16 = 4096,                -- m64nNk16 in N/2 cycles
        f16 = 4096,                 -- the same
        tf32 = 2048,                -- half: 495 TFLOPS; data sheet
        e4m3 = 8192,                -- twice: 1979 TFLOPS; data sheet
        e5m2 = 8192,                -- the same
        i8 = 8192,                  -- 1979 TOPS; data sheet
      },
      efficiency = 0.95,            -- * cuBLAS at 1.50 GHz, see clock_ghz
      min_m = 64,                   -- wgmma is m64nNkK; PTX ISA
      min_n = 8,                    -- N from 8 to 256 by 8; PTX ISA
      min_k = 32,                   -- bytes: K is 16 of 16 bits, 32 of 8, 8 of tf32; PTX ISA
    },
    {
      name = "cuda", kind = "vector", async = false, ordered = true,
      issue = 0,                    -- its instructions are its issue
      latency = 24,                 -- * estimate: MUFU and shuffle return after about as much
      ops = {
        fma = 128,                  -- guide
        alu = 64,                   -- guide: integer, compare, minimum, maximum
        sfu = 16,                   -- guide: ex2, lg2, rcp, rsqrt, tanh
        cvt = 64,                   -- * estimate: to bf16 two at once on the ALU, half of it for
                                    -- moves; F2I is 16
        div = 8,                    -- rcp and some eight FMA: 1 / (1/16 + 8/128)
        reduce = 64,                -- * a row in four threads, 32 elements each, then two
                                    -- shuffles (32 a cycle): maximum 54, sum 97 a cycle; one of
                                    -- each 69
        scan = 12,                  -- * estimate: five shuffle steps across threads, two
                                    -- additions along a thread
        move = 32,                  -- shared memory's 128 bytes a cycle in elements of 4
      },
      slots = 128,                  -- four schedulers issue one warp instruction each; guide
      lane_share = 0.9,             -- * exp2 of 128x128 by one warpgroup takes 1140 cycles
                                    -- (B200), not 1024
    },
  },
}
