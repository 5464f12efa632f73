# What tests/perf/sweep.lua prints for measured times, which are invented here.
. tests/lib.sh

cat >"$T/rows.lua" <<'L'
local json = require "millrace.json"
local function row(family, name, plan, factor)
  local tl = plan:simulate{events = 0}
  return json.encode{family = family, name = name, ms = tl.seconds * 1e3 * factor, cycles = tl.cycles, clock_hz = tl.clock_hz,
    script = plan:script()}
end
local function gemm(group)
  local plan = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 4096, n = 4096, k = 1024})
  plan:grid{group = group}
  return plan
end
-- as predicted; a fifth less; and, in a family of two, the better one measured as the worse
print(row("one", "right", gemm(8), 1))
print(row("two", "slow", mr.load_plan("attention_serial"), 0.8))
print(row("two", "fast", mr.load_plan("attention_overlap"), 1.6))
-- a program of a file, whose script takes it; predicted 20 % slower than measured
local sizes = {m = 1024, n = 1024}
local bound = dofile("tests/perf/row_programs.lua").gelu(sizes)
local plan = mr.search(bound, mr.device "h200").plan
local line = json.encode{family = "three", name = "searched", ms = plan:simulate().seconds * 1e3 / 1.2, script = plan:script()}
print((line:gsub("}$", [[, "program": "tests/perf/row_programs.lua:gelu", "sizes": {"m": 1024, "n": 1024}}]])))
L
"$MILLRACE" "$T/rows.lua" >"$T/rows" || exit 1
"$MILLRACE" tests/perf/sweep.lua judge "$T/rows" >"$T/out" 2>&1
t_is 'it judges' $? 0
t_like 'a prediction that is right' "$(grep ^one "$T/out")" '1 +0\.0 % +0\.0 % +0\.0 %'
t_like 'errors, a pair in the wrong order, and what the choice costs' "$(grep ^two "$T/out")" '2 +2?[0-9.]+ % +37\.5 % +0/1 +[1-9][0-9.]+ %'
t_like 'all of them' "$(tail -n 1 "$T/out")" 'worst 37\.5 %, 0 of 1 pairs in order; cycles alone 0\.0 %, clocks alone 0\.0 %; mean \+1\.9 %'
t_like 'a plan of a program that its script does not name' "$(grep ^three "$T/out")" '1 +20\.0 %'

"$MILLRACE" tests/perf/sweep.lua judge "$T/none" >"$T/out" 2>&1
t_is 'without a file' $? 1
t_like 'it says which' "$(<"$T/out")" "$T/none"
"$MILLRACE" tests/perf/sweep.lua >"$T/out" 2>&1
t_like 'without a command it says where they stand' "$(<"$T/out")" 'make, measure, judge or compile'

fakes=$(dirname "$(readlink -f "$MILLRACE")")/fake
if [ -e "$fakes/fake_nvrtc.so" ]; then
	export MILLRACE_LIBNVRTC=$fakes/fake_nvrtc.so MILLRACE_LIBCUDA=$fakes/fake_cuda.so
	XDG_CACHE_HOME=$T/once "$MILLRACE" tests/perf/sweep.lua compile "$T/rows" >"$T/out" 2>&1
	t_is 'plans are compiled again' "$? $(tail -n 1 "$T/out" | sed 's/[0-9.]* s,/S,/')" \
		'0 4 plans: the slowest takes S, 0 spill, are compiled badly or take more than 5 s'
	XDG_CACHE_HOME=$T/again FAKE_NVRTC_SPILLS=8 "$MILLRACE" tests/perf/sweep.lua compile "$T/rows" >"$T/out" 2>&1
	t_is '  and those that spill are bad' "$? $(grep -c ' 160 spills$' "$T/out")" '1 4'
fi

# What a device measured, in per cent: the errors of times, of cycles and of clocks alone (medians), and pairs
# of plans in the right order. The model may not become worse.
judges() {
	"$MILLRACE" tests/perf/sweep.lua judge "tests/perf/$1" >"$T/out" 2>&1
	t_is "$1 is judged" $? 0
	tail -n 1 "$T/out" | tr -d ',%;' | awk -v most="$2" '{
		split(most, m, " ")
		for (i = 1; i < NF; i++) {
			if ($i == "median") time = $(i + 1)
			if ($i == "of" && $(i + 2) == "pairs") right = 100 * $(i - 1) / $(i + 1)
			if ($i == "alone" && $(i - 1) == "cycles") cycles = $(i + 1)
			if ($i == "alone" && $(i - 1) == "clocks") clock = $(i + 1)
		}
		exit !(time > 0 && time <= m[1] && cycles <= m[2] && clock <= m[3] && right >= m[4])
	}'
	t_is "... and is as near as it was: $(tail -n 1 "$T/out")" $? 0
}
judges sweep-h200.jsonl '3.8 5.2 2.6 91'
judges unseen-h200.jsonl '3.8 5.2 2.6 88'

# Plans that searches found, which a model flatters.
"$MILLRACE" tests/perf/sweep.lua judge tests/perf/searched-h200.jsonl >"$T/out" 2>&1
t_is 'searched-h200.jsonl is judged' $? 0
tail -n 1 "$T/out" | tr -d ',%;+' | awk '{ exit !($3 > 0 && $3 <= 5 && $5 <= 20.5 && $NF <= 2 && -$NF <= 2) }'
t_is "... and is as near as it was: $(tail -n 1 "$T/out")" $? 0
t_done
