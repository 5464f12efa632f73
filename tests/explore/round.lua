-- round.lua - a device with round numbers, for tests of what the explorer shows: no kernel is
-- made for it, so that what is predicted follows from the plan alone and changes with no
-- measurement.
return {
  title = "a device with round numbers",
  arch = "round",
  eus = 12,
  clock_ghz = 1,
  limits = {
    warp = 32, max_threads = 1024, registers = 65536, thread_registers = 255, register_step = 8,
    reserved_registers = 0, named_barriers = 16, max_cluster = 4, cluster_eus = 12,
  },
  memory = {
    global = {bytes = 1e11, rate = 4e12, latency = 600},
    l2 = {bytes = 50e6, rate = 5000, eu_rate = 64, latency = 200},
    shared = {bytes = 232448, rate = 128},
  },
  sync = {
    wait_cost = 4, tell_cost = 4, warp_cost = 0, fence_cost = 0, flag_latency = 20, issue_order_latency = 20,
    handoff_latency = 20, handoff_rate = 128, launch_seconds = 2e-6, tile_overhead = 100,
  },
  seu = {
    {name = "tma", kind = "copy", async = true, ordered = false, issue = 20, latency = 100,
      box_bytes = 16384, box_interval = 10},
    {name = "tensor", kind = "matrix", async = true, ordered = true, issue = 20, latency = 100,
      flops = {bf16 = 8192}, efficiency = 1, min_m = 64, min_n = 8, min_k = 32},
    {name = "cuda", kind = "vector", async = false, ordered = true, issue = 0, latency = 10,
      ops = {fma = 128, alu = 64, sfu = 16, cvt = 64, div = 16, reduce = 64, scan = 32, move = 128},
      slots = 128, lane_share = 0.5, chain = 8},
  },
}
