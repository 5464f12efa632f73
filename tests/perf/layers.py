#!/usr/bin/env python3
"""Layers of models against torch.compile of the same, on one machine, in one run.

    python3 tests/perf/layers.py [--case PATTERN] [--parts] [--json FILE] ...
    python3 tests/perf/layers.py --json FILE --resume --within 560    # in parts; status 75: some stages are left, call it again
    python3 tests/perf/layers.py --table FILE                         # the complete table

Each case (layer_cases.py) has up to three stages, and the file is written after each: its parts alone (--parts), each by the best
way that torch has; the layer, ours and Inductor's alternately, attention by the backend that was fastest alone; with --max S the
layer again with torch.compile of mode max-autotune, if that ends within S seconds. All are CUDA graphs over inputs of more than
twice the L2; a time is the median of batches; errors are relative to the same function of float32 tensors. A layer's floor is what
its products take at 780 TFLOP/s or its tensors at 4.2 TB/s, whichever is more.

Ours is what `millrace tests/perf/export_layer.lua` exports of a plan, a folder with a module for torch: of the script in --plans, or
else the store's plan, or else a new one. Where that fails, and with --ours none, the rivals are measured alone.
In the environment, FA3 and MAMBA_SSM name folders with these packages, which then are rivals, too.
"""
import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

import against_torch
from against_torch import (L2_BYTES, LEFT, Server, error, find_millrace, read_results, seconds_left, summary, time_alternately,
                           write_results)

TOP = against_torch.TOP
STAGE_SECONDS = 150  # at most; with torch's own compiler
STAGE_USUAL_SECONDS = 10  # no stage is begun if less time is left
COMPILED = "inductor", "torch"  # ways of a part that are given to torch.compile


# ---- in the process that measures --------------------------------------------------


def sets_of(torch, byte_count, most):
    l2 = max(L2_BYTES, getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0))
    return min(most, max(2, math.ceil(2 * l2 / byte_count)))


def first_line(problem):
    return (str(problem).strip() or type(problem).__name__).splitlines()[0][:160]


class Bench:
    """What is kept from stage to stage of a case: tensors of the layer, and the attention that was fastest."""

    def __init__(self, torch, cases, options):
        self.torch, self.cases, self.options, self.case, self.fastest = torch, cases, options, None, {}

    def take(self, case):
        if self.case is not case:
            self.case, self.tensors, self.want = case, None, None
            self.torch.cuda.empty_cache()
            self.torch.manual_seed(20)
            self.tensors = case.make()

    def reference(self):
        if self.want is None:
            with self.torch.no_grad():
                self.want = self.case.compute({k: v.float() for k, v in self.tensors.items()})
            self.torch.cuda.empty_cache()
        return self.want

    def parts(self, seconds):
        case, t, rows = self.case, dict(self.tensors), []
        for part in case.parts:
            sets = sets_of(self.torch, max(part.bytes, 1), 16)
            inputs = [t] + [{**t, **{name: t[name].clone() for name in part.takes}} for _ in range(sets - 1)]
            contenders, value, said = {}, None, {}
            for name, way in part.ways.items():
                try:
                    f = self.cases.compiled(way) if name in COMPILED else way
                    value = f(t)
                    contenders[name] = [lambda f=f, x=x: f(x) for x in inputs]
                except Exception as problem:
                    said[name] = first_line(problem)
            times = {name: summary(found)["ms"] for name, found in
                     time_alternately(self.torch, contenders, sets, 0.02, seconds).items()} if contenders else {}
            rows.append({"part": part.name, "ms": times, "elsewhere": part.elsewhere, "failed": said, "flops": part.flops, "bytes": part.bytes})
            if not times:
                raise RuntimeError(f"{part.name}: {said}")
            self.cases.after_part(t, part, value)
            if part.name in ("attention", "ssd"):
                self.fastest[case.name] = min(times, key=times.get)
            del inputs, contenders
            self.torch.cuda.empty_cache()
        return {"parts": rows}

    def layer(self, seconds, folder, rivals):
        """Ours, if there is a folder with its export, and the rivals alternately, {name: options of torch.compile}."""
        torch, case = self.torch, self.case
        want, t = self.reference(), self.tensors
        sets = sets_of(torch, case.bytes, 8)
        inputs = [t] + [{name: x.clone() for name, x in t.items()} for _ in range(sets - 1)]
        ways = [self.fastest[case.name]] if case.name in self.fastest else list(case.rivals)
        contenders, rows, results = {}, {}, {}

        def add(name, call, begin):
            try:
                results[name] = call(t)
                torch.cuda.synchronize()
                rows[name] = {"first_call": round(time.monotonic() - begin, 1), "error": error(results[name], want)}
                contenders[name] = [lambda x=x: call(x) for x in inputs]
            except Exception as problem:
                rows[name] = {"why": first_line(problem)}
        if folder:
            begin = time.monotonic()
            add("ours", make(case, folder), begin)
        for name, settings in rivals.items():
            for way in ways:            # some backend has no attention of this kind
                begin = time.monotonic()
                attend = case.rivals[way]
                f = self.cases.compiled(case.layer, **settings)
                add(name, lambda x, f=f, attend=attend: f(x, attend), begin)
                if name in contenders:
                    ways = [way]
                    break
        found = time_alternately(torch, contenders, sets, 0.2, seconds) if contenders else {}
        for name, times in found.items():
            rows[name].update(summary(times))
        row = {"way": ways[0], "sets": sets, "clock": self.clock(contenders) if contenders else None, "layer": rows}
        if "ours" in contenders:
            first = results["ours"].clone()
            row["same"] = torch.equal(contenders["ours"][0]().reshape(first.shape), first)
        return row

    def clock(self, contenders):
        """MHz of the multiprocessors while the first of them runs."""
        calls = next(iter(contenders.values()))
        for _ in range(2000):
            calls[0]()
        try:
            said = subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-i", "0"],
                                  stdout=subprocess.PIPE, text=True, timeout=10).stdout
            return int(said.split()[0])
        except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
            return None
        finally:
            self.torch.cuda.synchronize()


def identifier(case):
    return re.sub(r"\W+", "_", case.name)


def make(case, folder):
    """The layer that was exported into that folder, as a function of the tensors of a case."""
    sys.path.insert(0, folder)
    module = importlib.import_module(identifier(case))
    module.load()

    known, temporaries = {}, module.torch.empty((max(1, module.TEMPORARIES),), dtype=module.torch.uint8, device="cuda")[:module.TEMPORARIES]

    def value(t, name):
        how = case.ours[2].get(name, name)
        return t[how] if isinstance(how, str) else how(t)

    def call(t):
        if id(t) not in known:
            known[id(t)] = [value(t, name) for name, _, _ in module.INPUTS + module.STATES]
        return module.run(*known[id(t)], temporaries=temporaries)
    return call


def serve(options):
    """Stages of cases in, rows out, as JSON; as against_torch.py does it."""
    import torch
    warnings.filterwarnings("ignore")  # torch says why each backend of attention that is not asked for is not taken
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    cases = importlib.import_module(options.cases)
    bench = Bench(torch, cases, options)
    for line in sys.stdin:
        (number, stage, seconds, fastest), folder = json.loads(line)
        try:
            bench.take(cases.CASES[number])
            bench.fastest.update(fastest)
            with torch.no_grad():
                if stage == "parts":
                    row = bench.parts(seconds)
                else:
                    rivals = {"inductor": {}, "max-autotune": {"mode": "max-autotune-no-cudagraphs"}}
                    row = bench.layer(seconds, folder, rivals if stage == "max" else {"inductor": {}})
        except Exception as problem:
            row = {"why": first_line(problem)}
        print("row " + json.dumps(row), flush=True)
        if "why" in row:
            os._exit(1)  # the context may be lost


# ---- in the process that asks ------------------------------------------------------


def export(case, scratch, options):
    """A folder with ours, or why there is none."""
    if options.ours == "none" or not case.ours:
        return None, None
    name = identifier(case)
    if options.ours:
        folder = os.path.join(options.ours, name)
        return (folder, None) if os.path.exists(folder) else (None, f"no {folder}")
    folder = os.path.join(scratch, name)
    arguments = [case.ours[0], *(f"{key}={value}" for key, value in case.ours[1].items())]
    try:
        done = subprocess.run([find_millrace(), "tests/perf/export_layer.lua", folder, name, *arguments], cwd=TOP,
                              env={"MILLRACE_HOME": TOP, **os.environ, "LAYER_PLANS": os.path.abspath(options.plans),
                                   "SEARCH_SECONDS": str(options.plan_seconds)}, timeout=max(1, min(600, seconds_left(options))),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        return None, "not compiled in time"
    if done.returncode:
        words = [s for s in done.stderr.replace("\r", "\n").splitlines() if "millrace:" in s]
        return None, (words or done.stderr.strip().splitlines() or ["failed"])[0]
    print(f"{case.name}: {done.stdout.strip()}", file=sys.stderr, flush=True)
    return folder, None


def stages_of(options):
    return ["parts"] * options.parts + ["layer"] + ["max"] * (options.max > 0)


def best_sum(row):
    return sum(min([*part["ms"].values(), *part["elsewhere"].values()]) for part in row["parts"]["parts"])


def run_all(cases, results, options, arguments):
    server = None
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in cases:
            row = results["cases"].get(case.name) or {"group": case.group, "floor": case.floor * 1e3, "flops": case.flops, "bytes": case.bytes}
            folder, why, known = None, None, False
            for stage in stages_of(options):
                if stage in row and "why" not in row[stage]:
                    continue
                if seconds_left(options) < STAGE_USUAL_SECONDS:
                    return server and server.end()
                if stage != "parts" and not known:
                    folder, why = export(case, scratch, options)
                    known = True
                if not server or server.process.poll() is not None:
                    server = Server(arguments, __file__)
                fastest = {case.name: row["layer"]["way"]} if "way" in row.get("layer", {}) else {}
                seconds = options.seconds if stage != "parts" else options.seconds / 4
                limit = min(STAGE_SECONDS + (options.max if stage == "max" else 0), seconds_left(options))
                answer = server.ask((number, stage, seconds, fastest), folder, limit)
                if "why" in answer:
                    server.end()
                elif why and stage != "parts":
                    answer["layer"]["ours"] = {"why": why}
                row[stage] = answer
                results["cases"][case.name] = row
                print(f"{case.name}: {stage}: " + (answer["why"] if "why" in answer else "done"), file=sys.stderr, flush=True)
                if options.json:
                    write_results(options.json, results)
                if options.follow:
                    tell_case(case.name, row, [stage])
                    sys.stdout.flush()
    if server:
        server.end()


def rate(part, ms):
    return f"{part['flops'] / ms * 1e-9:.0f} TFLOP/s" if part["flops"] / part["bytes"] > 150 else f"{part['bytes'] / ms * 1e-6:.0f} GB/s"


def tell_case(name, row, stages=("parts", "layer", "max")):
    print(f"\n{name}: floor {row['floor']:.4f} ms, {row['flops'] * 1e-9:.1f} GFLOP, {row['bytes'] * 1e-6:.0f} MB")
    if "parts" in stages and "parts" in row.get("parts", {}):
        for part in row["parts"]["parts"]:
            times = {**part["ms"], **part["elsewhere"]}
            best = min(times.values())
            ways = ", ".join(f"{way} {ms:.4f}" for way, ms in times.items())
            failed = "".join(f"; {way}: {why}" for way, why in part["failed"].items())
            print(f"  {part['part']:<18} {best:9.4f} ms  {rate(part, best):<14} {ways}{failed}")
        print(f"  {'sum of the best':<18} {best_sum(row):9.4f} ms")
    for stage in stages:
        found = row.get(stage, {})
        if "why" in found:
            print(f"  {stage}: failed: {found['why']}")
        if "layer" not in found:
            continue
        rivals = [r["ms"] for way, r in found["layer"].items() if way != "ours" and "ms" in r]
        for way, r in found["layer"].items():
            if "why" in r:
                print(f"  {way + ' (' + stage + ')':<18} {r['why']}")
            elif "ms" in r:
                ratio = f", {r['ms'] / min(rivals):.3f} of the best rival" if way == "ours" and rivals else ""
                if way == "ours" and "parts" in row.get("parts", {}):
                    ratio += f", {r['ms'] / best_sum(row):.3f} of the sum of parts"
                attention = f", attention or scan by {found['way']}" if way != "ours" else ""
                print(f"  {way + ' (' + stage + ')':<18} {r['ms']:9.4f} ms  +-{100 * r['spread']:.1f} %, {row['floor'] / r['ms']:.2f} of the floor, "
                      f"error {r['error']:.1e}, first call {r['first_call']:.0f} s, {found['clock']} MHz{attention}{ratio}")
        if found.get("same") is False:
            print("  ours: UNSTEADY: two runs differ")


def bad_ones(results):
    """Cases of which a stage failed, or whose result is wrong or differs from run to run."""
    def is_bad(row):
        for stage in "layer", "max":
            ours = row.get(stage, {}).get("layer", {}).get("ours", {})
            if "why" in row.get(stage, {}) or ours.get("error", 0) > 2e-2 or row.get(stage, {}).get("same") is False:
                return True
        return False
    return [name for name, row in results["cases"].items() if is_bad(row)]


def tell(results, printed=False):
    if not printed:
        print(f"{results['device']}, torch {results['torch']}, CUDA {results['cuda']}")
        for name, row in results["cases"].items():
            tell_case(name, row)
    bad = bad_ones(results)
    print(f"\n{len(results['cases'])} cases" + (f"; wrong or failed: {', '.join(bad)}" if bad else ""))
    if results["left"]:
        print(f"left: {', '.join(results['left'])}")
    return 1 if bad else LEFT if results["left"] else 0


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--case", default="", help="regular expression: only cases with such a name")
    p.add_argument("--list", action="store_true", help="names of the cases, nothing else")
    p.add_argument("--parts", action="store_true", help="the parts alone, too")
    p.add_argument("--max", type=float, default=0, metavar="S", help="max-autotune, too, if it ends within S seconds more")
    p.add_argument("--seconds", type=float, default=1, help="to measure each contender (1)")
    p.add_argument("--ours", metavar="FOLDER", help="a folder with the exports; none: the rivals alone; else they are made")
    p.add_argument("--plans", metavar="FOLDER", default=os.path.join(TOP, "tests/perf/layer_plans"),
                   help="with plans of layers, CASE.lua, as letters, digits and _ (layer_plans); of other cases the store's, or a new one")
    p.add_argument("--plan-seconds", type=float, default=10, metavar="S", help="to search for a plan of each kernel, where there is none (10)")
    p.add_argument("--cases", default="layer_cases", metavar="MODULE", help="what defines the cases, in this folder (layer_cases)")
    p.add_argument("--json", metavar="FILE", help="all numbers")
    p.add_argument("--resume", action="store_true", help="keep what the file of --json has, and run what it lacks")
    p.add_argument("--within", type=float, default=math.inf, metavar="S", help="end after S seconds, and leave further stages to the next run")
    p.add_argument("--table", metavar="FILE", help="print what the file of earlier runs has, nothing else; needs no torch")
    p.add_argument("--follow", action="store_true", help="print each case after each stage")
    p.add_argument("--need-device", action="store_true", help="fail where there is none")
    p.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = p.parse_args(arguments)
    options.ends = time.monotonic() + options.within
    if options.resume and not options.json:
        p.error("--resume needs --json FILE")
    return options


def main(arguments):
    options = parse(arguments)
    if options.serve:
        return serve(options)
    if options.table:
        return tell(read_results(options.table))
    try:
        import torch
    except ImportError:
        return against_torch.without_device(options, "there is no torch")
    if not torch.cuda.is_available():
        return against_torch.without_device(options, "torch sees no CUDA device")
    cases = [(i, case) for i, case in enumerate(importlib.import_module(options.cases).CASES) if re.search(options.case, case.name)]
    if options.list:
        print("\n".join(case.name for _, case in cases))
        return 0
    results = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda, "cases": {}, "left": []}
    if options.resume and os.path.exists(options.json):
        before = read_results(options.json)
        if before["device"] != results["device"]:
            sys.exit(f"{options.json} is of {before['device']}, and this is {results['device']}: give another file")
        results["cases"] = before["cases"]
    run_all(cases, results, options, arguments)
    results["left"] = [case.name for _, case in cases if any(stage not in results["cases"].get(case.name, {}) for stage in stages_of(options))]
    if options.json:
        write_results(options.json, results)
    return tell(results, options.follow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
