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

A long run can be made of short ones, each of which goes on with the cases that the file lacks:

    python3 tests/perf/against_torch.py --json FILE --resume --within 560    # status 75: some are left
    python3 tests/perf/against_torch.py --table FILE                         # the complete table

The file is written after each case, so what was measured is kept if a run is ended. --table needs
neither torch nor a device, and takes several files, of which a later one counts.
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
CASE_USUAL_SECONDS = 60  # no case is begun if less time is left
LEFT = 75  # the exit status if cases are left


def find_millrace():
    for path in (os.environ.get("MILLRACE"), f"{TOP}/build/millrace", f"{TOP}/build/bundle/millrace"):
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("against_torch.py: no build/millrace, no build/bundle: run make, or set MILLRACE")


class OutOfTime(Exception):
    """The time of this run is used; the case is left to the next one."""


def seconds_left(options):
    return options.ends - time.monotonic()


def export(millrace, case, plan, folder, options):
    """Search or load the plan, compile and export. Returns what the compiler said and the script of a searched plan, or raises with
    why not."""
    seconds = min(COMPILE_SECONDS, seconds_left(options))
    try:
        done = subprocess.run(
            [millrace, "tests/perf/export_case.lua", folder, plan, case.program, *case.arguments()], cwd=TOP,
            env={"MILLRACE_HOME": TOP, **os.environ, "SEARCH_SECONDS": str(options.search)}, timeout=max(seconds, 0),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        if seconds < COMPILE_SECONDS:
            raise OutOfTime from None
        raise RuntimeError(f"not compiled within {COMPILE_SECONDS} s") from None
    if done.returncode:
        words = [s for s in done.stderr.replace("\r", "\n").splitlines() if "millrace:" in s]
        raise RuntimeError((words or done.stderr.strip().splitlines() or ["failed"])[0])
    script = os.path.join(folder, "plan.lua")
    if not os.path.exists(script):
        return done.stdout.strip(), None
    with open(script) as f:
        return done.stdout.strip(), f.read()


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
    for row in rows:
        mine = [row["case"], f"{row['ms']:.4f}", f"{100 * row['spread']:.1f}", f"{row['tflops']:.1f}",
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
        ratios = sorted((row["ratio"], row["case"]) for row in rows if row["group"] == group and "ratio" in row)
        if ratios:
            reached = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
            under = ", ".join(f"{name} {ratio:.3f}" for ratio, name in ratios if ratio < least)
            print(f"{group}: {len(ratios)} rows, mean {reached:.3f} of {mean:g}, least {ratios[0][0]:.3f} of {least:g}"
                  + (f"; under: {under}" if under else ""))


def tell(results):
    """Print all results. -> the status"""
    rows = results["cases"]
    print(f"\n{results['device']}, torch {results['torch']}, CUDA {results['cuda']}")
    table([row for row in rows if "ms" in row])
    print_groups(rows, results["goals"])
    for row in rows:
        if "why" in row:
            print(f"failed: {row['case']}: {row['why']}")
    for row in results["not made"]:
        print(f"not made: {row['case']}: {row['why']}")
    bad = [row["case"] for row in rows if row["verdict"] != "ok"]
    print(f"{len(rows) - len(bad)} of {len(rows)} are right and reach their bar" +
          (f"; not: {', '.join(bad)}" if bad else ""))
    if results["left"]:
        print(f"left: {', '.join(results['left'])}")
    return 1 if bad else LEFT if results["left"] else 0


def read_results(path):
    with open(path) as f:
        return json.load(f)


def join(parts):
    """The results of several files; of a case that is in more than one, those of the last. Cases in their order."""
    known, left = {}, {}
    for part in parts:
        for kind in "cases", "not made":
            for row in part[kind]:
                known[row["case"]] = (kind, row)
        left.update(dict.fromkeys(part["left"]))
    of = {kind: sorted((row for k, row in known.values() if k == kind), key=lambda row: row["number"])
          for kind in ("cases", "not made")}
    devices = list(dict.fromkeys(part["device"] for part in parts))
    return {**parts[-1], **of, "device": " and ".join(devices), "left": [name for name in left if name not in known]}


def write_plans(path, results):
    """The plans that were searched and what they took, as measured.lua reads them."""
    with open(path, "w") as f:
        for row in results["cases"]:
            if "script" in row and "ms" in row:
                f.write(json.dumps({"family": row["case"], "name": "searched", "ms": round(row["ms"], 5), "program": row["program"],
                                    "sizes": row["sizes"], "script": row["script"]}) + "\n")


def write_results(path, results):
    """At once, so that a run that is ended leaves the file of before or that of after."""
    with open(path + ".new", "w") as f:
        json.dump(results, f, indent=1)
    os.replace(path + ".new", path)


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--case", default="", help="regular expression: only cases with such a name")
    p.add_argument("--group", default="", help="regular expression: only cases of such a group")
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
    p.add_argument("--resume", action="store_true", help="keep what the file of --json has, and run the other cases alone")
    p.add_argument("--within", type=float, default=math.inf, metavar="S", help="end after S seconds, and leave further cases to the next run")
    p.add_argument("--table", nargs="+", metavar="FILE", help="print what the files of earlier runs have, nothing else; needs no torch")
    p.add_argument("--plans", metavar="FILE", help="with --table, writes the plans that were searched, for sweep.lua judge")
    p.add_argument("--keep", metavar="FOLDER", help="where the exported kernels stay")
    p.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--need-device", action="store_true", help="fail where there is none")
    options = p.parse_args(arguments)
    options.bars = {k: float(v) for k, _, v in (b.partition("=") for b in options.bars.split(",") if b)}
    options.plan = [tuple(x.rsplit("=", 1)) for x in options.plan]
    options.ends = time.monotonic() + options.within
    if options.plans and not options.table:
        p.error("--plans needs --table FILE")
    if options.resume and not options.json:
        p.error("--resume needs --json FILE")
    return options


def is_chosen(options, case):
    return re.search(options.case, case.name) and re.search(options.group, case.group)


def list_programs(options):
    """What is compiled for each case, for rows_model.lua. Cases name torch's functions, and none of them is called."""
    from unittest.mock import MagicMock
    for name in "torch", "torch.nn", "torch.nn.functional", "torch.nn.attention":
        sys.modules[name] = MagicMock()
    module = importlib.import_module(options.cases)
    goals = getattr(module, "GOALS", {})
    for case in module.CASES:
        if is_chosen(options, case):
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
            case.said, case.script = export(millrace, case, plan, at, options)
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
    """A process that runs cases by that script, and what it prints."""

    def __init__(self, arguments, script=__file__):
        self.process = subprocess.Popen([sys.executable, script, "--serve", *arguments], text=True,
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


def measure(case, number, at, server, options):
    """A row of the case, whose kernel is in that folder; None if the time of this run was too short."""
    contenders = 1 + len(case.theirs)
    usual = CASE_SECONDS + contenders * 3 * (options.seconds + options.warmup)
    seconds = min(usual, seconds_left(options))
    row = server.ask(number, at, seconds)
    if "why" in row:
        server.end()
        if seconds < usual and seconds_left(options) <= 0:
            return None
    row["verdict"] = "FAILED" if "why" in row else verdict(case, row, options.bars)
    return row


def run_all(cases, results, options, arguments):
    """Compile and measure cases, and add their rows to the results, which are written after each. With --alone, and if the time is
    limited, one case after the other; else all are compiled first."""
    at_once = 1 if options.alone or options.within < math.inf else max(len(cases), 1)
    millrace, server = find_millrace(), None
    with tempfile.TemporaryDirectory() as scratch:
        for first in range(0, len(cases), at_once):
            if seconds_left(options) < CASE_USUAL_SECONDS:
                break
            some = cases[first:first + at_once]
            compiled = compile_all(millrace, some, options, os.path.abspath(options.keep or scratch))
            for number, case in some:
                named, at = {"case": case.name, "group": case.group, "number": number}, compiled[number]
                if isinstance(at, str):
                    print(f"{case.name}: {case.said}", file=sys.stderr, flush=True)
                    if not server or server.process.poll() is not None:
                        server = Server(arguments)
                    row = measure(case, number, at, server, options)
                    if row:
                        if case.script:
                            row.update(program=case.program, sizes=case.sizes, script=case.script)
                        results["cases"].append({**named, **row})
                elif not isinstance(at, OutOfTime):
                    results["not made"].append({**named, "why": str(at)})
                done = {row["case"] for row in results["cases"] + results["not made"]}
                right = {row["case"] for row in results["cases"] if "why" not in row}
                results["left"] = [case.name for _, case in cases if case.name not in done]
                if case.name not in right:
                    results["tried"][case.name] = results["tried"].get(case.name, 0) + 1
                if options.json:
                    write_results(options.json, results)
    if server:
        server.end()


def main(arguments):
    options = parse(arguments)
    if options.serve:
        return serve(options)
    if options.programs:
        return list_programs(options)
    if options.table:
        results = join([read_results(path) for path in options.table])
        if options.plans:
            write_plans(options.plans, results)
        return tell(results)
    try:
        import torch
    except ImportError:
        return without_device(options, "there is no torch")
    if not torch.cuda.is_available():
        return without_device(options, "torch sees no CUDA device")
    module = importlib.import_module(options.cases)
    cases = [(i, case) for i, case in enumerate(module.CASES) if is_chosen(options, case)]
    if options.list:
        print("\n".join(case.name for _, case in cases))
        return 0
    results = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
               "goals": getattr(module, "GOALS", {}), "cases": [], "not made": [], "left": [case.name for _, case in cases], "tried": {}}
    if options.resume and os.path.exists(options.json):
        before = read_results(options.json)
        if before["device"] != results["device"]:
            sys.exit(f"{options.json} is of {before['device']}, and this is {results['device']}: give another file")
        results["cases"] = [row for row in before["cases"] if "why" not in row]  # what failed or was not made is tried again
        results["tried"] = before["tried"]
    done = {row["case"] for row in results["cases"]}
    cases = [(i, case) for i, case in cases if case.name not in done]
    cases.sort(key=lambda numbered: results["tried"].get(numbered[1].name, 0))  # what failed or took too long does not stop the others
    run_all(cases, results, options, arguments)
    return tell(join([results]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
