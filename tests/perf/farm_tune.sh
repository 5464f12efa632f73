#!/bin/bash
# farm_tune.sh - twenty rows of mr.tune on 1, 2, 4, ... GPUs of this machine, one rank each, and once more with a rank killed.
#
#   MILLRACE=build/millrace tests/perf/farm_tune.sh [FOLDER [PART...]]
#
# Needs mpirun and an idle machine with GPUs. Each run has a store and a cache of its own in FOLDER (a new one). Prints a line for each
# number of GPUs; compares the plans of each run with those of one GPU by races; and tells what the run whose rank was killed in the
# middle measured before and after. PART is a number of GPUs, again (one GPU once more: how much two runs on one GPU differ), or killed, after
# the part 1 in the same FOLDER with the same OPTIONS: 1, 2, 4, ... and killed, unless given. OPTIONS are those of tune, like trials=16; MPI
# more options of mpirun.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${MILLRACE:=$here/../../build/millrace}"
folder=${1:-$(mktemp -d)}
[ $# = 0 ] || shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset CUDA_VISIBLE_DEVICES
mpi="mpirun --oversubscribe --bind-to none ${MPI-}"
most=$(nvidia-smi -L | wc -l)

tune() { # NAME GPUS
	mkdir -p "$folder/$1.cache"
	MILLRACE_STORE=$folder/$1.db XDG_CACHE_HOME=$folder/$1.cache $mpi -n $(($2 + 1)) "$MILLRACE" --farm "$here/farm_tune.lua" tune \
		"$folder/$1.json" ${OPTIONS-} 2>"$folder/$1.err"
}
measured() { # NAME
	MILLRACE_STORE=$folder/$1.db "$MILLRACE" -e 'local seen, twice = {}, 0
		local list = mr.store:list{kind = "search", status = "ok", limit = 100000}
		for _, row in ipairs(list) do
			local key = row.program .. row.sizes .. row.script
			if seen[key] then twice = twice + 1 end
			seen[key] = true
		end
		print(("%d rows measured, %d twice"):format(#list, twice))'
}

compare() { # NAME
	MILLRACE_STORE=none XDG_CACHE_HOME=$folder/$1.cache "$MILLRACE" "$here/farm_tune.lua" compare "$folder/1.json" "$folder/$1.json"
}

tune_on() { # NAME GPUS
	tune "$1" "$2" || { cat "$folder/$1.err"; exit 1; }
	grep -h 'measures nothing' "$folder/$1.err"
	tail -n $(($2 + 1)) "$folder/$1.err"
	[ "$1" = 1 ] || compare "$1"
}

# Kill the last rank when half of the rows are done, and give the same command again.
tune_killed() { # GPUS
	tune killed "$1" &
	while ! grep -q '^10 of 20' "$folder/killed.err" 2>/dev/null && kill -0 $! 2>/dev/null; do sleep 0.2; done
	kill -9 "$(pgrep -P "$(pgrep -P $! -x mpirun)" | tail -n 1)"
	wait $!
	echo "a rank was killed, exit status $?: $(measured killed)"
	tune killed "$1" || { cat "$folder/killed.err"; exit 1; }
	echo "after the same command again: $(measured killed)"
	compare killed
}

if (($# == 0)); then
	for ((n = 1; n <= most; n *= 2)); do set -- "$@" "$n"; done
	set -- "$@" killed
fi
for part; do
	case $part in
	killed) tune_killed "$most" ;;
	again) tune_on again 1 ;;
	*) tune_on "$part" "$part" ;;
	esac
done
