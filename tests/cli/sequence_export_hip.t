# sk:export for AMD's GPUs: the launcher runs on a runtime that records its calls (tests/fake/recorder_hip.c).
. tests/lib.sh

type clang-22 >/dev/null 2>&1 || t_skip_all 'no clang-22'
. tests/fake/recorder.sh libamdhip64.so.6
cat >"$T/export.lua" <<'E'
local gemm = mr.examples.gemm
local seq = mr.sequence("forked", function(s)
  local x, w, y = s:input("x", {64, 64}), s:input("w", {2, 64, 64}), s:output("y", {2, 64, 64})
  local t = s:temp("t", {64, 64})
  s:call("left", gemm{m = 64, n = 64, k = 64}, {A = x, B = w:rows(0, 1), C = y:rows(0, 1)})
  s:call("right", gemm{m = 64, n = 64, k = 64}, {A = x, B = w:rows(1, 1), C = t})
  s:call("last", gemm{m = 64, n = 64, k = 64}, {A = t, B = w:rows(1, 1), C = y:rows(1, 1)})
end)()
local plan = mr.plan(seq:program "left":graph{tile = {m = 64, n = 64, k = 32}}, "mi300x")
plan:lane("c0", {warps = 4})
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
local sp = mr.sequence_plan(seq, "mi300x")
for _, c in ipairs(sp.calls) do sp:use(c.name, plan) end
sp:arena()
sp:launch("left", {stream = 0, early = false})
sp:launch("right", {stream = 1, early = false})
sp:launch("last", {stream = 0, early = false, after = {"right"}})
assert(sp:check())
sp:compile():export(...)
E
t_cmd 'a sequence is exported' 0 "$MILLRACE" "$T/export.lua" "$T/out.d"
cat >"$T/main.c" <<'E'
#include <stdio.h>
#include "forked.h"

#define AT(i) ((void *)((i) * 0x100000L))

int main(int argc, char **argv)
{
	int code = forked_load(0);

	(void)argv;
	for (int i = 0; i < 2 && !code; i++)
		code = argc > 1 ? forked_graph_launch((void *)0x77L, AT(1), AT(2), AT(3), AT(4)) :
			forked_launch((void *)0x77L, AT(1), AT(2), AT(3), AT(4));
	printf("%d %s\n", code, forked_error());
	forked_unload(0);
	return code != 0;
}
E
t_ok 'its launcher links' $cc -std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -I"$T/out.d" -o "$T/main" "$T/main.c" "$T"/out.d/*.c -ldl
on_recorder() {
	rm -f "$T/log"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" RECORDER_PARAMS='gemm_main=ppppp' "$@"
}
addresses() { grep ^launch "$T/log" | sed 's/.*\(stream [^ :]*\).*: \(0x[^ ]*\) \(0x[^ ]*\) \(0x[^ ]*\) .*/\1 \2 \3 \4/'; }
t_cmd 'it runs' 0 on_recorder "$T/main"
t_is 'with the addresses of the calls' "$(addresses | head -3)" "stream 0x77 0x100000 0x200000 0x300000
stream 0x2000 0x100000 0x202000 0x400000
stream 0x77 0x400000 0x202000 0x302000"
sed -n '1,/^launch.*0x302000/p' "$T/log" >"$T/once"
t_is 'in the order of the plan' "$("$MILLRACE" tests/fake/order.lua "$T/once" 0x77)" "1<3
2<3
begin end"
t_like 'nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_cmd 'as a graph, too' 0 on_recorder "$T/main" graph
t_is 'which is captured once' "$(grep -E '^(capture|instantiate|update|run)' "$T/log")" "capture on 0x1000
instantiate graph 1 as 1
run 1 on 0x77
run 1 on 0x77"
t_is 'with the same launches' "$(addresses)" "stream 0x1000 0x100000 0x200000 0x300000
stream 0x2000 0x100000 0x202000 0x400000
stream 0x1000 0x400000 0x202000 0x302000"
t_like 'and nothing is left' "$(tail -1 "$T/log")" '^released: 0 contexts, 0 modules left$'
t_done
