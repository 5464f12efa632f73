#!/usr/bin/env python3
"""Generated kernels against what torch has, on one machine, in one run.

    python3 tests/perf/against_torch.py [--case PATTERN] [--seconds S] [--json FILE]

For each case (torch_cases.py): Millrace compiles a plan and exports the kernel; its result
on fresh normal data is compared with a reference in float32; then the kernel and torch's
run alternately, a batch each, over inputs that together are more than twice the L2. A time is
the median of the batches, its spread half of what lies between the first and the last
tenth. Batches are CUDA graphs, so that no launch waits for Python.

Cases run in a process of their own until one faults or hangs; the next goes on behind it.

Status 1 if a result is wrong, a kernel fails, or a ratio misses its bar; a case whose kernel
cannot be made yet is listed and does not fail. Without a device it says so and passes,
unless --need-device. MILLRACE names the program; build/millrace or a bundle is found.
"""
import argparse
import concurrent.futures
import importlib
import importlib.util
import json
import math
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEAK_FLOPS, PEAK_BYTES = 989e12, 4.8e12  # of an H200: dense bf16, and memory, a second
L2_BYTES = 50 << 20
BATCH_SECONDS = 0.03
COMPILE_SECONDS = 300
CASE_SECONDS = 240  # beyond what measuring takes; with torch's own compiler


def find_millrace():
    for path in (os.environ.get("MILLRACE"), f"{TOP}/build/millrace", f"{TOP}/build/bundle/millrace"):
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("against_torch.py: no build/millrace, no build/bundle: run make, or set MILLRACE")


def export(millrace, case, plan, folder, search_seconds):
    """Search or load the plan, compile and export. Returns what the compiler said, or raises with why not."""
    try:
        done = subprocess.run(
            [millrace, "tests/perf/export_case.lua", folder, plan, case.program, *case.arguments()], cwd=TOP,
            env={"MILLRACE_HOME": TOP, **os.environ, "SEARCH_SECONDS": str(search_seconds)}, timeout=COMPILE_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not compiled within {COMPILE_SECONDS} s") from None
    if done.returncode:
        words = [s for s in done.stderr.replace("\r", "\n").splitlines() if "millrace:" in s]
        raise RuntimeError((words or done.stderr.strip().splitlines() or ["failed"])[0])
    return done.stdout.strip()


def load(folder, name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, "kernel.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load()
    return module


# ---- measuring ---------------------------------------------------------------------


def error(got, want):
    """||got - want|| / ||want||; of several outputs the greatest. What want lacks or has None for is not compared."""
    if isinstance(want, tuple):
        got = got if isinstance(got, tuple) else (got,)
        return max(error(g, w) for g, w in zip(got, want) if w is not None)
    got, want = got.reshape(want.shape).double(), want.double()
    return ((got - want).norm() / want.norm()).item()


def unwritten(torch, module):
    """Outputs of a kernel as its run() takes them, a tensor or a tuple of several, of NaN, or of -1 if they are integers."""
    made = tuple(torch.full(t.shape, math.nan if t.dtype.is_floating_point else -1, device="cuda", dtype=t.dtype)
                 for t in module.OUTPUTS)
    return made if len(made) > 1 else made[0]


def equal(torch, got, want):
    if isinstance(got, tuple):
        return all(torch.equal(g, w) for g, w in zip(got, want))
    return torch.equal(got, want)


def make_batch(torch, calls, n):
    """n calls, round and round over the sets, as one call: a graph where that can be."""
    calls = [calls[i % len(calls)] for i in range(n)]
    try:
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream):
            for call in calls:
                call()
        graph.replay()
        torch.cuda.synchronize()
        return graph.replay, "graph"
    except Exception as problem:
        torch.cuda.synchronize()
        print(f"    without a graph: {str(problem).splitlines()[0]}", file=sys.stderr)
        return lambda: [call() for call in calls], "eager"


def seconds_of(torch, call, n):
    """Of one call, roughly."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(n):
        call()
    end.record()
    torch.cuda.synchronize()
    return max(start.elapsed_time(end) / n * 1e-3, 1e-6)


def time_alternately(torch, contenders, sets, warmup, seconds):
    """{name: calls over the sets} -> {name: sorted milliseconds of a call, one a batch}."""
    batches, counts, times = {}, {}, {name: [] for name in contenders}
    for name, calls in contenders.items():
        for call in calls:
            call()
        torch.cuda.synchronize()
        n = min(400, max(2, BATCH_SECONDS / seconds_of(torch, calls[0], 5)))
        counts[name] = n = math.ceil(n / sets) * sets
        batches[name] = make_batch(torch, calls, n)[0]
    end = time.monotonic() + warmup
    while time.monotonic() < end:
        for batch in batches.values():
            batch()
        torch.cuda.synchronize()
    elapsed = {name: 0.0 for name in batches}
    while min(elapsed.values()) < seconds:
        for name, batch in batches.items():
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            batch()
            stop.record()
            torch.cuda.synchronize()
            ms = start.elapsed_time(stop)
            elapsed[name] += ms * 1e-3
            times[name].append(ms / counts[name])
    return {name: sorted(t) for name, t in times.items()}


def summary(times):
    n = len(times)
    return {"ms": times[n // 2], "min": times[0], "max": times[-1], "batches": n,
            "spread": (times[n * 9 // 10] - times[n // 10]) / 2 / times[n // 2]}


def run_case(torch, case, module, options):
    """Check, then measure. Returns a row."""
    torch.manual_seed(20)
    l2 = max(L2_BYTES, getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0))
    sets = max(2, math.ceil(2 * l2 / module.BYTES))
    inputs = [case.inputs(module.INPUTS, case.sizes) for _ in range(sets)]
    outs = [unwritten(torch, module) for _ in range(sets)]
    ours = [lambda x=x, out=out: module.run(*x, out=out) for x, out in zip(inputs, outs)]

    want = case.reference(inputs[0])
    ours[0]()
    torch.cuda.synchronize()
    row = {"error": error(outs[0], want), "theirs": {}}
    row["right"] = row["error"] <= case.tolerance
    first = tuple(t.clone() for t in outs[0]) if isinstance(outs[0], tuple) else outs[0].clone()

    contenders = {"ours": ours}
    for name, make in case.theirs.items():
        try:
            calls = [make(x, unwritten(torch, module)) for x in inputs]
            theirs = calls[0]()
            row["theirs"][name] = {"error": math.nan if theirs is None else error(theirs, want)}
            contenders[name] = calls
        except Exception as problem:
            print(f"    {case.name}: torch's {name}: {str(problem).splitlines()[0]}", file=sys.stderr)
            row["theirs"].pop(name, None)
    del want
    found = time_alternately(torch, contenders, sets, options.warmup, options.seconds)
    row["same"] = case.any_order or equal(torch, outs[0], first)  # or runs differ: a race
    row.update(summary(found.pop("ours")), sets=sets)
    for name, times in found.items():
        row["theirs"][name].update(summary(times))
    flops = case.flops or module.FLOPS
    row.update(flops=flops, bytes=module.BYTES, tflops=flops / row["ms"] * 1e-9)
    row["limit"] = max(flops / PEAK_FLOPS, module.BYTES / PEAK_BYTES) / (row["ms"] * 1e-3)
    row["limited"] = "math" if flops / PEAK_FLOPS > module.BYTES / PEAK_BYTES else "memory"
    if row["theirs"]:
        row["best"] = min(row["theirs"], key=lambda name: row["theirs"][name]["ms"])
        row["ratio"] = row["theirs"][row["best"]]["ms"] / row["ms"]
    return row


# ---- telling -----------------------------------------------------------------------


def verdict(case, row, bars):
    if not row["right"]:
        return "WRONG"
    if not row["same"]:
        return "UNSTEADY"
    if "ratio" in row and row["ratio"] < bars.get(case.group, 0):
        return f"under {bars[case.group]:g}"
    return "ok"


def table(rows):
    head = ("case", "ours ms", "+-%", "TFLOP/s", "of limit", "error", "torch", "ms", "+-%", "TFLOP/s",
            "error", "ratio", "")
    lines = [head]
    for case, row in rows:
        mine = [case.name, f"{row['ms']:.4f}", f"{100 * row['spread']:.1f}", f"{row['tflops']:.1f}",
                f"{100 * row['limit']:.0f} % {row['limited']}", f"{row['error']:.1e}"]
        others = sorted(row["theirs"].items(), key=lambda item: item[1]["ms"]) or [("-", None)]
        for i, (name, other) in enumerate(others):
            numbers = [f"{other['ms']:.4f}", f"{100 * other['spread']:.1f}",
                       f"{row['flops'] / other['ms'] * 1e-9:.1f}", f"{other['error']:.1e}",
                       f"{other['ms'] / row['ms']:.3f}"] if other else ["-"] * 5
            lines.append((*(mine if i == 0 else [""] * len(mine)), name, *numbers,
                          row["verdict"] if i == 0 else ""))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(text.ljust(w) if i in (0, 6, 12) else text.rjust(w)
                        for i, (text, w) in enumerate(zip(line, widths))).rstrip())


def print_groups(rows, goals):
    """The ratios of each group that has goals: their geometric mean and the least one, with these goals."""
    for group, (mean, least) in goals.items():
        ratios = sorted((row["ratio"], case.name) for case, row in rows if case.group == group and "ratio" in row)
        if ratios:
            reached = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
            under = ", ".join(f"{name} {ratio:.3f}" for ratio, name in ratios if ratio < least)
            print(f"{group}: {len(ratios)} rows, mean {reached:.3f} of {mean:g}, least {ratios[0][0]:.3f} of {least:g}"
                  + (f"; under: {under}" if under else ""))


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--case", default="", help="regular expression: only cases with such a name")
    p.add_argument("--list", action="store_true", help="names of the cases, nothing else")
    p.add_argument("--programs", action="store_true",
                   help="what is compiled for each case, a line of JSON each, nothing else; needs no torch")
    p.add_argument("--seconds", type=float, default=3, help="to measure each contender of a case (3)")
    p.add_argument("--warmup", type=float, default=2, help="seconds before that (2)")
    p.add_argument("--bars", default="gemm=0.85,attention=0.75",
                   help="least ratio of torch's time to ours, by group (gemm=0.85,attention=0.75)")
    p.add_argument("--plan", action="append", default=[], metavar="PATTERN=PLAN",
                   help="another plan for the cases with such a name: a path, or a name in examples")
    p.add_argument("--search", type=float, default=20, help="seconds of a search, for the cases whose plan is searched (20)")
    p.add_argument("--alone", action="store_true", help="searches have the device alone, one after the other")
    p.add_argument("--cases", default="torch_cases", metavar="MODULE", help="what defines the cases, in this folder (torch_cases)")
    p.add_argument("--json", metavar="FILE", help="all numbers")
    p.add_argument("--keep", metavar="FOLDER", help="where the exported kernels stay")
    p.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--need-device", action="store_true", help="fail where there is none")
    options = p.parse_args(arguments)
    options.bars = {k: float(v) for k, _, v in (b.partition("=") for b in options.bars.split(",") if b)}
    options.plan = [tuple(x.rsplit("=", 1)) for x in options.plan]
    return options


def list_programs(options):
    """What is compiled for each case, for rows_model.lua. Cases name torch's functions, and none of them is called."""
    from unittest.mock import MagicMock
    for name in "torch", "torch.nn", "torch.nn.functional", "torch.nn.attention":
        sys.modules[name] = MagicMock()
    module = importlib.import_module(options.cases)
    goals = getattr(module, "GOALS", {})
    for case in module.CASES:
        if re.search(options.case, case.name):
            print(json.dumps({"case": case.name, "group": case.group, "goal": goals.get(case.group, [None])[0],
                              "program": case.program, "sizes": case.sizes}))
    return 0


def without_device(options, why):
    print(f"SKIP  {why}")
    return 1 if options.need_device else 0


def compile_all(millrace, cases, options, folder):
    """Export all of them, eight at the same time unless each is to have the device alone. -> {number: folder or exception}"""
    def one(numbered):
        number, case = numbered
        at = os.path.join(folder, f"case{number}")
        plan = next((plan for pattern, plan in options.plan if re.search(pattern, case.name)), case.plan)
        try:
            case.said = export(millrace, case, plan, at, options.search)
            return at
        except Exception as problem:
            return problem
    at_once = 1 if options.alone else min(8, os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return dict(zip((number for number, _ in cases), pool.map(one, cases)))


def serve(options):
    """In the process of the cases: numbers of cases and folders in, rows out, as JSON."""
    import torch
    CASES = importlib.import_module(options.cases).CASES
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for line in sys.stdin:
        number, folder = json.loads(line)
        try:
            row = run_case(torch, CASES[number], load(folder, f"millrace_case{number}"), options)
            torch.cuda.empty_cache()
        except Exception as problem:
            row = {"why": str(problem).splitlines()[0]}
        print("row " + json.dumps(row), flush=True)
        if "why" in row:
            os._exit(1)  # the context may be lost


class Server:
    """A process that runs cases, and what it prints."""

    def __init__(self, arguments):
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, number, folder, seconds):
        end = time.monotonic() + seconds
        try:
            self.process.stdin.write(json.dumps([number, folder]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it is gone, as the end of its output says
        while True:
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                return {"why": f"no result within {seconds:.0f} s"}
            if line is None:
                return {"why": f"the process ended with status {self.process.wait()}"}
            if line.startswith("row "):
                return json.loads(line[4:])

    def end(self):
        self.process.kill()
        self.process.wait()


def measure_all(cases, compiled, options, arguments):
    rows, left, server = [], [], None
    for number, case in cases:
        at = compiled[number]
        if isinstance(at, Exception):
            left.append((case, str(at)))
            continue
        print(f"{case.name}: {case.said}", file=sys.stderr, flush=True)
        server = server or Server(arguments)
        contenders = 1 + len(case.theirs)
        row = server.ask(number, at, CASE_SECONDS + contenders * 3 * (options.seconds + options.warmup))
        if "why" in row:
            server.end()
            server = None
        row["verdict"] = "FAILED" if "why" in row else verdict(case, row, options.bars)
        rows.append((case, row))
    if server:
        server.end()
    return rows, left


def main(arguments):
    options = parse(arguments)
    if options.serve:
        return serve(options)
    if options.programs:
        return list_programs(options)
    try:
        import torch
    except ImportError:
        return without_device(options, "there is no torch")
    if not torch.cuda.is_available():
        return without_device(options, "torch sees no CUDA device")
    module = importlib.import_module(options.cases)
    CASES = module.CASES
    cases = [(i, case) for i, case in enumerate(CASES) if re.search(options.case, case.name)]
    if options.list:
        print("\n".join(case.name for _, case in cases))
        return 0
    millrace = find_millrace()
    with tempfile.TemporaryDirectory() as scratch:
        compiled = compile_all(millrace, cases, options, os.path.abspath(options.keep or scratch))
        rows, left = measure_all(cases, compiled, options, arguments)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                       "cases": [{"case": c.name, "group": c.group, **row} for c, row in rows],
                       "not made": [{"case": c.name, "why": why} for c, why in left]}, f, indent=1)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    table([(case, row) for case, row in rows if "ms" in row])
    print_groups(rows, getattr(module, "GOALS", {}))
    for case, row in rows:
        if "why" in row:
            print(f"failed: {case.name}: {row['why']}")
    for case, why in left:
        print(f"not made: {case.name}: {why}")
    bad = [case.name for case, row in rows if row["verdict"] != "ok"]
    print(f"{len(rows) - len(bad)} of {len(rows)} are right and reach their bar" +
          (f"; not: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
