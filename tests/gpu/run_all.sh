#!/bin/bash
# run_all.sh - all that needs a device, and a table of how it went.
#
#   bash tests/gpu/run_all.sh [--out FOLDER] [PATTERN]
#
# Runs tests/gpu/*.t, tests/perf/gpu_smoke.sh, first_run.sh and against_torch.py; with
# PATTERN, a regular expression, those with such a name. What they print goes to FOLDER
# (build/gpu unless given), the table to the terminal. Status 1 if something fails or
# if there is no device.
#
# MILLRACE names the program, also one of a bundle; build/millrace otherwise. SECONDS_EACH
# is what against_torch.py measures each contender (3).
here=$PWD
cd "$(dirname "$0")/../.." || exit
out=$PWD/build/gpu
if [ "$1" = --out ]; then
	case $2 in
	/*) out=$2 ;;
	*) out=$here/$2 ;;
	esac
	shift 2
fi
pattern=${1:-.}
case $MILLRACE in
/* | '') ;;
*) MILLRACE=$here/$MILLRACE ;;
esac
: "${MILLRACE:=$PWD/build/millrace}"
export MILLRACE MILLRACE_HOME="$PWD" MILLRACE_NEED_DEVICE=1
"$MILLRACE" -v || { echo "run_all.sh: no $MILLRACE: run make, or set MILLRACE"; exit 2; }
mkdir -p "$out" || exit

table= failed=0

# Count what a test printed as TAP.
tap() {
	local good bad
	good=$(grep -c '^ok' "$1") bad=$(grep -c '^not ok' "$1")
	grep '^1\.\.0 # SKIP' "$1" | sed 's/^1\.\.0 # //' | grep . ||
		echo "$good of $((good + bad)) pass"
}

# run NAME COMMAND...: FOLDER/NAME.txt has the output, the table a line.
run() {
	local name=$1 file=$out/$1.txt start=$SECONDS status summary
	printf '%s\n' "$name" | grep -Eq -- "$pattern" || return
	shift
	echo "== $name"
	timeout 1200 "$@" >"$file" 2>"$out/$name.err"
	status=$?
	case $name in
	*.t) summary=$(tap "$file"); grep -A4 '^not ok' "$file" | head -n 40 ;;
	gpu_smoke) summary="$(grep -c ^PASS "$file") of $(grep -Ec '^(PASS|FAIL)' "$file") pass"
		grep -A1 ^FAIL "$file" ;;
	*) summary=$(tail -n 1 "$file"); cat "$file" ;;
	esac
	[ $status = 0 ] || { failed=1; tail -n 5 "$out/$name.err"; }
	table+=$(printf '%-16s %-6s %5d s  %s' "$name" "$([ $status = 0 ] && echo ok || echo "fail $status")" \
		$((SECONDS - start)) "$summary")$'\n'
}

for t in tests/gpu/*.t; do run "$(basename "$t")" bash "$t"; done
run gpu_smoke bash tests/perf/gpu_smoke.sh --need-device
run first_run bash tests/perf/first_run.sh --need-device
run against_torch python3 tests/perf/against_torch.py --need-device \
	--seconds "${SECONDS_EACH:-3}" --json "$out/against_torch.json"
printf '\n%s' "$table" | tee "$out/summary.txt"
exit $failed
