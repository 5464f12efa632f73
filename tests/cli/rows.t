# tests/perf/against_torch.py and rows.py: a run in parts, the table of all of them, and the list of the rows' programs. Torch, Millrace and
# the kernels are stubs, whose times are invented here.
. tests/lib.sh
command -v python3 >/dev/null || t_skip_all 'no python3'

mkdir "$T/torch"
cat >"$T/torch/__init__.py" <<'P'
"""As much of torch as a run of against_torch.py uses. A call of "kernel N" takes N milliseconds."""
import types
__version__, float32 = "2.0", types.SimpleNamespace(is_floating_point=True)
clock = [0.0]


class Tensor:
    def reshape(self, shape): return self
    def double(self): return self
    def clone(self): return self
    def norm(self): return self
    def item(self): return 0.0
    def __sub__(self, other): return self
    def __truediv__(self, other): return self
    shape = ()


class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = clock[0]
    def elapsed_time(self, end): return end.at - self.at


class Context:
    def __init__(self, *_, **__): pass
    def __enter__(self): pass
    def __exit__(self, *_): pass


class Graph:
    def replay(self): raise RuntimeError("no graphs")


def full(*_, **__): return Tensor()
def equal(a, b): return True
def manual_seed(seed): pass


def call(ms):
    clock[0] += ms
    return Tensor()


cuda = types.SimpleNamespace(
    is_available=lambda: True, get_device_name=lambda: __import__("os").environ.get("DEVICE_NAME", "Stub"), Event=Event, Stream=object,
    CUDAGraph=Graph, graph=Context, synchronize=lambda: None, empty_cache=lambda: None, get_device_properties=lambda i: None)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()), cudnn=types.SimpleNamespace())
version = types.SimpleNamespace(cuda="13.0")
P
cat >"$T/stub_cases.py" <<'P'
import torch
from torch_cases_stub import Case
GOALS = {"one": (1.5, 1.2), "two": (1.0, 1.0)}
CASES = [Case("a 1", "one", 1), Case("a 2", "one", 2), Case("b", "two", 4), Case("breaks", "two", 0), Case("cannot", "two", 3)]
P
cat >"$T/torch_cases_stub.py" <<'P'
import torch


class Case:
    def __init__(self, name, group, ms):
        self.name, self.group, self.ms, self.plan, self.program, self.sizes = name, group, ms, "search", name.split()[0], {"m": ms}
        self.theirs = {"rival": lambda x, out: lambda: torch.call(3)}
        self.flops, self.tolerance, self.any_order = None, 1e-2, False
    def reference(self, x): return torch.Tensor()
    def inputs(self, tensors, sizes): return []
    def arguments(self): return [f"m={self.ms}"]
P
cat >"$T/millrace" <<'S'
#!/bin/sh
# as export_case.lua is called: FOLDER PLAN PROGRAM m=MS
echo "$4" >>"$LOG"
[ "$4" = cannot ] && [ -z "$CAN" ] && { echo "millrace: no legal plan" >&2; exit 1; }
mkdir -p "$2"
cat >"$2/kernel.py" <<P
import types, os, torch
INPUTS, OUTPUTS, BYTES, FLOPS = [], [types.SimpleNamespace(shape=(), dtype=torch.float32)], 1 << 30, 1e12
def load(): pass
def run(*x, out):
    if ${5#m=} == 0:
        os._exit(3)
    return torch.call(${5#m=})
P
[ "$4" = a ] && echo "return 'plan of $5'" >"$2/plan.lua"
echo '32 registers'
S
chmod +x "$T/millrace"
run() { LOG=$T/log MILLRACE=$T/millrace PYTHONPATH=$T PYTHONDONTWRITEBYTECODE=1 \
	python3 tests/perf/against_torch.py --cases stub_cases --seconds 0.1 --warmup 0 --bars '' "$@" >"$T/out" 2>"$T/err"; }

run --json "$T/all.json"
t_is 'a run of all cases has the status of those that fail' $? 1
t_like '  its table has what is right' "$(<"$T/out")" '^a 2 +2\.0000 .*1\.500 +ok'
t_like '  and what breaks' "$(<"$T/out")" '^failed: breaks: the process ended with status 3'
t_like '  and what is not made' "$(<"$T/out")" '^not made: cannot: millrace: no legal plan'
t_like '  and groups with their goals' "$(<"$T/out")" '^one: 2 rows, mean 2\.121 of 1\.5, least 1\.500 of 1\.2$'
cp "$T/out" "$T/all.out"

# In parts: by name, by group, and the others.
run --json "$T/parts.json" --resume --case 'a 2'
t_is 'a part of the cases' $? 0
run --json "$T/parts.json" --resume --group one
t_is '  and a group' "$? $(sort "$T/log" | tr '\n' ' ')" '0 a a a a b breaks cannot '
: >"$T/log"
run --json "$T/parts.json" --resume
t_is '  and all others: what is there is not run again' "$(sort "$T/log")" 'b
breaks
cannot'
tail -n +2 "$T/out" >"$T/tail"
t_is '  are the table of all' "$(<"$T/tail")" "$(tail -n +2 "$T/all.out")"
PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --table "$T/parts.json" >"$T/out" 2>"$T/err"
t_is '  which is printed without torch, too' "$(tail -n +2 "$T/out")" "$(tail -n +2 "$T/all.out")"
: >"$T/log"
CAN=1 run --json "$T/parts.json" --resume
t_is 'what failed is tried again' "$(sort "$T/log")" 'breaks
cannot'
t_like '  and has its row' "$(<"$T/out")" '^cannot +3\.0000'

# Several files.
run --json "$T/one.json" --group one
run --json "$T/two.json" --group two
PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --table "$T/two.json" "$T/one.json" >"$T/out"
t_is 'the table of several files is in the order of the cases' "$(tail -n +2 "$T/out")" "$(tail -n +2 "$T/all.out")"

PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --table "$T/two.json" "$T/one.json" --plans "$T/plans.jsonl" >"$T/out"
t_is 'the plans that were searched are lines for sweep.lua' "$(<"$T/plans.jsonl")" \
'{"family": "a 1", "name": "searched", "ms": 1.0, "program": "a", "sizes": {"m": 1}, "script": "return '"'plan of m=1'"'\n"}
{"family": "a 2", "name": "searched", "ms": 2.0, "program": "a", "sizes": {"m": 2}, "script": "return '"'plan of m=2'"'\n"}'
PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --plans "$T/plans.jsonl" >"$T/out" 2>"$T/err"
t_like '  of a table alone' "$? $(tail -n 1 "$T/err")" '^2 .*: error: --plans needs --table FILE$'

# Without time.
rm "$T/parts.json"
run --json "$T/parts.json" --resume --within 1
t_is 'a run without time for a case leaves all of them' "$? $(grep ^left "$T/out")" '75 left: a 1, a 2, b, breaks, cannot'
run --json "$T/one.json" --resume --within 100
t_is '  with time it makes them one after the other' "$? $(grep -c '^left' "$T/out")" '1 0'
DEVICE_NAME=Other run --json "$T/one.json" --resume
t_like 'a file of another device is refused' "$(<"$T/err")" 'one.json is of Stub, and this is Other: give another file'

# A compiler that does not end.
printf '#!/bin/sh\nexec sleep 600\n' >"$T/slow"
chmod +x "$T/slow"
MILLRACE=$T/slow PYTHONPATH=$T:tests/perf PYTHONDONTWRITEBYTECODE=1 python3 -c '
import sys, against_torch
against_torch.CASE_USUAL_SECONDS = 0
sys.exit(against_torch.main(sys.argv[1:]))' --cases stub_cases --json "$T/slow.json" --resume --group one --within 1 >"$T/out" 2>"$T/err"
t_is 'a case that the time is too short for is left' "$? $(grep ^left "$T/out")" '75 left: a 1, a 2'
run --json "$T/slow.json" --resume --group one
t_is '  and made by the next run, behind the others' "$(sed -n 's/^\(a .\):.*/\1/p' "$T/err" | tr '\n' ' ')" 'a 2 a 1 '

# The list of programs, for rows_model.lua.
PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --programs >"$T/programs"
t_is 'the programs of all rows are listed without torch' "$(wc -l <"$T/programs")" 69
cat >"$T/bind.lua" <<'L'
local parse, program_of = dofile "tests/lua/lib/parse_json.lua", dofile "tests/perf/program_of.lua"
local rivals, n = {}, 0
for line in io.lines "tests/perf/rivals-h200.txt" do rivals[assert(line:match "^(.-): .*: [%d.]+$")] = true end
for line in io.lines(arg[1]) do
  local row = parse(line)
  local bound = program_of(row.program)(row.sizes)
  if not row.goal then print("no goal", row.case) end
  n = n + (rivals[row.case] and 1 or 0)
  rivals[row.case] = nil
end
for name in pairs(rivals) do print("no row", name) end
print(n > 60)
L
t_cmd '  each is bound to its sizes and has a goal, and each rival has a row' 0 "$MILLRACE" "$T/bind.lua" "$T/programs"
t_out '  ' <<<true

# Sizes drawn at random, in the same kinds of work.
for seed in 1 2; do
	SEED=$seed SHAPES=25 PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --cases random_cases --programs >"$T/drawn$seed"
done
SEED=1 SHAPES=25 PYTHONDONTWRITEBYTECODE=1 python3 tests/perf/rows.py --cases random_cases --programs | cmp -s - "$T/drawn1"
t_is 'a seed gives the same sizes again' $? 0
cmp -s "$T/drawn1" "$T/drawn2"
t_is '  and another one others' $? 1
cat >"$T/bind.lua" <<'L'
local parse, program_of = dofile "tests/lua/lib/parse_json.lua", dofile "tests/perf/program_of.lua"
local programs, n = {}, 0
for line in io.lines(arg[1]) do
  local row = parse(line)
  program_of(row.program)(row.sizes)
  n = n + (programs[row.program] and 0 or 1)
  programs[row.program] = true
end
print(n)
L
for seed in 1 2; do
	t_cmd "the programs of seed $seed are bound to their sizes" 0 "$MILLRACE" "$T/bind.lua" "$T/drawn$seed"
	t_out '  of each kind' <<<21
done
t_done
