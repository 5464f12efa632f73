# k:export of kernels whose blocks take tiles by a counter (plan:grid{dynamic=true}): no two launches that may run at the same
# time have the same counter, and each finds 0 there. The launchers run on a driver that records its calls.
. tests/lib.sh

. tests/fake/recorder.sh
warn='-std=c11 -Wall -Wextra -Wpedantic -Werror -O1'

cat >"$T/export.lua" <<'E'
-- export.lua TARGET DIR: export a copy in two phases, by tiles of a row that 5 blocks take.
local target, dir = ...
local program = mr.program("copy_twice", function(p)
  local m, n = p:axes("m", "n")
  local Y, Z = p:temp("Y", {m, n}), p:output("Z", {m, n})
  p:phase("first", function() Y:store("store_y", p:load("load_x", p:input("X", {m, n}))) end)
  p:phase("second", function() Z:store("store_z", p:load("load_y", Y)) end)
end)
local plan = mr.plan(program:bind{m = 50, n = 128}:graph{tile = {m = 1, n = 128}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 4})
plan:buffers{x = 2, y = 2}
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
plan:fill_waits()
plan:grid{dynamic = true, eus = 5, group = 2}
assert(plan:check())
plan:compile{target = target}:export(dir)
if target == "cuda" then                                -- the kinds of each kernel's parameters, for the recorder
  local file <close> = io.open(dir .. "/kinds", "w")
  for _, s in ipairs(require "millrace.core".lower(plan, "cuda")) do
    file:write(s.entry, "=")
    for _, x in ipairs(s.params) do file:write(x.kind == "map" and "m" or "p") end
    file:write(";")
  end
end
E
dir=$T/copy
t_cmd 'a kernel with a counter is exported' 0 "$MILLRACE" "$T/export.lua" cuda "$dir"
for compiler in gcc clang; do
	command -v $compiler >/dev/null || continue
	t_cmd "$compiler has nothing to say about it" 0 $compiler $warn -c -o "$T/x.o" "$dir/copy_twice.c"
done

# ---- the C launcher ----------------------------------------------------------------

cat >"$T/main.c" <<'E'
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include "copy_twice.h"

#define AT(i) ((void *)((i) * 0x10000L))
#define STREAM(i) ((struct CUstream_st *)(i))

static void launch(long stream)
{
	if (copy_twice_launch(STREAM(stream), AT(1), AT(2)))
		printf("%s\n", copy_twice_error());
}

int main(int argc, char **argv)
{
	int more = argc > 1 ? atoi(argv[1]) : 0;

	if (copy_twice_load(0)) {
		printf("%s\n", copy_twice_error());
		return 1;
	}
	launch(0x10);
	launch(0x20);
	launch(0x10);
	setenv("RECORDER_CAPTURING", "1", 1);
	launch(0x10);
	launch(0x10);
	for (int i = 0; i < more; i++)
		launch(0x10);
	unsetenv("RECORDER_CAPTURING");
	launch(0x10);
	launch(0x30);
	launch(0x30);
	copy_twice_unload(0);
	copy_twice_load(0);
	launch(0x30);
	copy_twice_unload(0);
	return 0;
}
E
t_ok 'the launcher links' $cc $warn -I"$dir" -o "$T/main" "$T/main.c" "$dir/copy_twice.c" -ldl
on_recorder() { # LOG COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$dir/kinds")" "${@:2}"
}
# PHASE STREAM COUNTER of each launch
counters() {
	grep '^launch' "$1" | sed 's/.*_\(first\|second\) .* stream 0x\([0-9a-f]*\)[^:]*: .*\(counter([0-9]*: 0)\|temporary(8)\|0x[0-9a-f]*\) map.*/\1 \2 \3/'
}
t_cmd 'it runs' 0 on_recorder "$T/log" "$T/main"
t_is 'and says nothing' "$(cat "$T/out")" ''
t_is 'a stream has a counter, a number of each phase, and a captured launch its own' "$(counters "$T/log")" \
"first 10 counter(0: 0)
second 10 counter(4: 0)
first 20 counter(32: 0)
second 20 counter(36: 0)
first 10 counter(0: 0)
second 10 counter(4: 0)
first 10 counter(64: 0)
second 10 counter(68: 0)
first 10 counter(96: 0)
second 10 counter(100: 0)
first 10 counter(0: 0)
second 10 counter(4: 0)
first 30 counter(128: 0)
second 30 counter(132: 0)
first 30 counter(128: 0)
second 30 counter(132: 0)
first 30 counter(0: 0)
second 30 counter(4: 0)"
t_like 'the order of the tiles is that of the plan' "$(grep -m1 '^launch' "$T/log")" 'grid 5 1 1 .* ints\(0 1 2 3 4 5 6'
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'

t_cmd 'more launches than there are counters' 0 on_recorder "$T/log" "$T/main" 5000
t_is 'fail nowhere' "$(cat "$T/out")" ''
t_is 'two launches have the same counter only if they are of one stream' \
	"$(counters "$T/log" | grep -c 'first 10 counter(0: 0)'; counters "$T/log" | grep first | grep counter | sort | uniq -d | grep -v 'counter(\(0\|32\): 0)')" 3
t_is 'those that get none have one alone' "$(counters "$T/log" | grep -c 'first 10 temporary(8)')" 908
t_is 'as has a stream that comes later' "$(counters "$T/log" | grep -c '^first 30 temporary(8)')" 2
t_is 'which is set to 0 before the launch' "$(grep -c '^set 2 to 0, stream 0x[13]0$' "$T/log")" 910
t_like 'and nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'

t_cmd 'memory that cannot be set' 0 env RECORDER_FAIL=cuMemsetD32Async=2 bash -c "$(declare -f on_recorder)
	T='$T' dir='$dir'; on_recorder '$T/log' '$T/main' 5000"
t_is 'is named, each time' "$(sort "$T/out" | uniq -c | sed 's/^ *//')" \
	'910 copy_twice: cuMemsetD32Async: CUDA_ERROR_2 (as the test set it)'
t_is 'and nothing is launched without' "$(grep -c 'temporary(8)' "$T/log")" 0
t_like 'nor left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'a stream that is none' 0 env RECORDER_FAIL=cuStreamGetId=400 bash -c "$(declare -f on_recorder)
	T='$T' dir='$dir'; on_recorder '$T/log' '$T/main'"
t_is 'is named' "$(sort -u "$T/out")" 'copy_twice: cuStreamGetId: CUDA_ERROR_400 (as the test set it)'

# ---- the Python module ----------------------------------------------------------------

python=$(command -v python3)
if [ "$python" ]; then
	t_cmd 'the module runs' 0 on_recorder "$T/log" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="tests/fake:$dir" "$python" -c "
from modules import *
import copy_twice as k
X, Z = tensor(k.INPUTS[0], 1), tensor(k.OUTPUTS[0], 2)
torch.NEW[50, 128] = 0x50000

def launch(stream):
    torch.cuda._stream.cuda_stream = stream
    k.run(X, out=Z)

launch(0x10)
launch(0x20)
launch(0x10)
torch.cuda.capturing = True
launch(0x10)
launch(0x10)
torch.cuda.capturing = False
launch(0x20)
launch(0x30)
torch.cuda.capturing = True
for i in range(k._COUNTERS - 5):
    launch(0x10)
torch.NEW['zeros'] = 0x60000
made = len(torch.made)
launch(0x10)
assert torch.made[-1].shape == (2,) and torch.made[-1].dtype is torch.int32
torch.NEW['zeros'] = 0x70000
launch(0x10)
torch.cuda.capturing = False
launch(0x10)
"
	t_is 'a stream has a counter, and a captured launch its own' "$(counters "$T/log" | grep first | sed -n '1,7p;$p')" \
"first 10 counter(0: 0)
first 20 counter(32: 0)
first 10 counter(0: 0)
first 10 counter(64: 0)
first 10 counter(96: 0)
first 20 counter(32: 0)
first 30 counter(128: 0)
first 10 counter(0: 0)"
	t_is 'and a number of each phase' "$(counters "$T/log" | grep second | sed -n '1,4p;$p')" \
"second 10 counter(4: 0)
second 20 counter(36: 0)
second 10 counter(4: 0)
second 10 counter(68: 0)
second 10 counter(4: 0)"
	t_is 'of the second one behind that of the first' "$(counters "$T/log" | grep -c 'second.*0x[67]0004')" 2
	t_is 'two launches have the same counter only if they are of one stream' \
		"$(counters "$T/log" | grep first | sort | uniq -d)" "$(printf 'first 10 counter(0: 0)\nfirst 20 counter(32: 0)')"
	t_is 'those that get none have one alone' "$(counters "$T/log" | grep 'first.*0x')" "$(printf 'first 10 0x60000\nfirst 10 0x70000')"
else
	t_ok 'no Python # SKIP there is no python3' true
fi

# ---- a kernel for the CPU ----------------------------------------------------------------

t_cmd 'for the CPU' 0 "$MILLRACE" "$T/export.lua" host "$T/host"
t_cmd 'it compiles' 0 make -s -C "$T/host" -f copy_twice_host.mk CC="$cc"
head -c 12800 /dev/urandom >"$T/x.bin"
for seed in 1 2 3; do
	rm -f "$T/z.bin"
	t_cmd "it runs, seed $seed" 0 "$T/host/copy_twice_host" -r -s $seed X="$T/x.bin" Z="$T/z.bin"
	t_ok 'and copies' cmp "$T/x.bin" "$T/z.bin"
done
t_done
