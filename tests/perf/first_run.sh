#!/bin/bash
# first_run.sh - how long a user waits from Lua source to the first run of attention.
#
#   bash tests/perf/first_run.sh [--need-device] [PLAN]
#
# PLAN: one of examples/ for flash_attention, attention_pingpong unless given. Three
# things are measured, each with inputs that are there already:
#
#   nothing cached   a fresh shell and an empty cache; from the plan's Lua source to its
#                    result: at most 1500 ms. With it: starting the worker process,
#                    loading NVRTC, making a CUDA context.
#   cached, fresh    a fresh shell, the binary in the cache. No limit: the context alone
#                    takes what the driver takes.
#   cached, open     in a shell whose worker is up: at most 50 ms.
#
# Status 1 if a limit is missed. Without a device it says why and passes, unless --need-device
# is given. MILLRACE names the program.
cd "$(dirname "$0")/../.." || exit
: "${MILLRACE:=$PWD/build/millrace}"
export MILLRACE MILLRACE_HOME="${MILLRACE_HOME:-$PWD}"
need=0
[ "$1" != --need-device ] || { need=1; shift; }
plan=${1:-attention_pingpong}

why=$("$MILLRACE" -e 'local found, why = mr.attached() if not found then print(why) end' 2>&1)
if [ "$why" ]; then
	echo "SKIP  $why"
	exit $need
fi

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# NVRTC keeps a cache of its own, with the driver's.
export XDG_CACHE_HOME="$T/cache" CUDA_CACHE_PATH="$T/cache/nvidia"
for i in 1 2 3; do
	rm -rf "$T/cache"
	"$MILLRACE" tests/perf/first_run.lua "$plan" once >>"$T/cold" || exit
	"$MILLRACE" tests/perf/first_run.lua "$plan" again >>"$T/warm" || exit
	rm -rf "$T/cache"
	"$MILLRACE" tests/perf/first_run.lua "$plan" empty >>"$T/cold" || exit
done

# The middle of three.
median() { # FILE NAME
	awk -v n="$2" '$1 == n { print $2 }' "$1" | sort -n | sed -n 2p
}
less() { # A B: A - B, at least 0
	awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; printf "%.3f", (d > 0 ? d : 0) }'
}
row() { # NAME NUMBER...
	printf '%-42s' "$1"
	shift
	for x in "$@"; do
		[ "$x" ] && printf '%16.1f' "$x" || printf '%16s' -
	done
	echo
}
rows() { # NAME KEY
	row "$1" "$(median "$T/cold" $2)" "$(median "$T/warm" $2)" "$(median "$T/warm" open_$2)"
}

compile=$(median "$T/cold" compile) text=$(median "$T/cold" text)
ptxas=$(median "$T/cold" ptxas) empty=$(median "$T/cold" empty)
front=$(less "$(less "$(less "$compile" "$text")" "$ptxas")" "$empty")
context() { less "$(median "$1" run)" "$(median "$1" second)"; }

printf '%s, milliseconds, middle of 3\n' "$plan"
printf '%-42s%16s%16s%16s\n' '' 'nothing cached' 'cached, fresh' 'cached, open'
rows 'Lua: program, graph, plan' plan
rows 'compile' compile
row '  lowering and text' "$text"
row '  starting the worker, loading NVRTC' "$empty"
row '  NVRTC before ptxas' "$front"
row '  ptxas' "$ptxas"
rows 'run' run
row '  context (first run less second)' "$(context "$T/cold")" "$(context "$T/warm")"
row '  copies, module, kernel (second run)' "$(median "$T/cold" second)" "$(median "$T/warm" second)"
rows 'total' total
row 'limit' 1500 '' 50

cold=$(median "$T/cold" total) open=$(median "$T/warm" open_total)
missed=$(awk -v cold="$cold" -v open="$open" \
	'BEGIN { if (cold > 1500) print "nothing cached"; if (open > 50) print "cached, open" }')
printf 'nothing cached %.0f ms, cached in an open shell %.0f ms: %s\n' "$cold" "$open" \
	"$([ "$missed" ] && echo "over the limit" || echo ok)"
[ ! "$missed" ]
