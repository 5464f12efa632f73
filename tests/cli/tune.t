# mr.tune with a device, on fake libraries: what is measured is kept, and a run that was ended goes on; the same on the ranks of a farm.
. tests/lib.sh

t_fake_cuda
export MILLRACE_STORE=$T/store.db

cat >"$T/tune.lua" <<'E2'
local list = {}
for i = 1, tonumber(arg[1]) do list[i] = {mr.examples.gemm, m = 128 * i, n = tonumber(arg[2] or 128), k = 128} end
local tuned = mr.tune(list, {device = "h200", trials = 3, measure = true})
for _, row in ipairs(tuned) do
  print(row.bound.name, row.bound.axes.m, row.plan and row.plan:check(), row.ms and row.ms > 0, row.measured > 0, row.ended == "remembered")
end
E2
count() { # KIND
	"$MILLRACE" -e "print(#mr.store:list{kind='$1'})"
}
twice() { # rows of one plan that was measured more than once, wherever
	"$MILLRACE" -e 'local n, seen = 0, {}
		for _, row in ipairs(mr.store:list{kind = "search"}) do
			local key = row.hash .. row.script:gsub("^%-%-[^\n]*\n", "")
			if seen[key] then n = n + 1 end
			seen[key] = true
		end
		print(n)'
}
lines() { # N REMEMBERED
	for ((i = 1; i <= $1; i++)); do printf 'gemm\t%d\ttrue\ttrue\ttrue\t%s\n' $((128 * i)) "$2"; done
}

t_cmd 'three rows, one after the other' 0 "$MILLRACE" "$T/tune.lua" 3
t_is '  each has a measured plan' "$(<"$T/out")" "$(lines 3 false)"
t_is '  what was measured is kept' "$(count search)" 9
t_is '  and what was found' "$(count searched)" 3
t_cmd 'again, and a fourth' 0 "$MILLRACE" "$T/tune.lua" 4
t_is '  the first three are answered by the store' "$(<"$T/out")" "$(lines 3 true; lines 4 false | tail -1)"
t_is '  as their lines say' "$(sed 's/: gemm.* ms//' "$T/err")" "$(printf '%s of 4, remembered\n' 1 2 3; echo '4 of 4')"
t_is '  the fourth is measured' "$(count search)" 12
t_is '  no plan is measured twice' "$(twice)" 0

#---- on ranks -----------------------------------------------------------------------------------
# Each rank sees the one device of its fake driver, which is of another board. What is found does not depend on how many there are.
if ! t_find_mpirun; then
	t_diag farm 'there is no mpirun'
	t_done
fi
export CUDA_VISIBLE_DEVICES=0

cat >"$T/plans.lua" <<'E2'
local list = {}
for i = 1, tonumber(arg[1]) do list[i] = {mr.examples.gemm, m = 128 * i, n = 128, k = 128} end
list[#list + 1] = {mr.examples.rmsnorm, m = 64, n = 512}
local tuned = mr.tune(list, {device = "h200", trials = 40, measure = false})
for i, row in ipairs(tuned) do
  print(row.plan:script(), row.seconds)
  if arg[2] then row.plan:save(("%s/%d.lua"):format(arg[2], i), {overwrite = true}) end
end
E2
t_cmd 'the model alone, in one process' 0 "$MILLRACE" "$T/plans.lua" 9
cp "$T/out" "$T/one"
mkdir "$T/saved"
t_cmd '  on eight ranks' 0 timeout 120 $mpi -n 8 "$MILLRACE" --farm "$T/plans.lua" 9 "$T/saved"
t_is '  finds the same plans, which one rank prints' "$(<"$T/out")" "$(<"$T/one")"
t_is '  and saves' "$(ls "$T/saved" | wc -l)" 10
t_like '  ranks that did rows are named' "$(<"$T/err")" '^10 of 10: .*, rank [1-7]$'

for variables in 'OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK' 'SLURM_STEP_NUM_TASKS=3 SLURM_PROCID' 'PMI_SIZE=3 PMI_RANK'; do
	t_cmd "one of 3 processes without --farm, $variables" 0 env $variables=0 "$MILLRACE" "$T/plans.lua" 1
	t_err '  says that each does everything' '^millrace: 3 processes were started, and each of them does everything: with --farm they divide it$'
	t_cmd '  the second one' 0 env $variables=1 "$MILLRACE" "$T/plans.lua" 1
	t_is '  does not' "$(grep processes "$T/err")" ''
done

rm -f "$T"/store.db*
t_cmd 'measured on four ranks' 0 timeout 120 $mpi -n 4 "$MILLRACE" --farm "$T/tune.lua" 5
t_is '  each row has a measured plan' "$(<"$T/out")" "$(lines 5 false)"
t_is '  what was measured is kept, once' "$(count search) $(twice)" '15 0'
t_like '  and is shown by rank' "$(<"$T/err")" '^ +[123]  [^ ]+ +NVIDIA H200 +[0-9]+ +[0-9]+ +[0-9.]+ *$'
t_is '  all of it' "$(awk '/NVIDIA H200/ { rows += $5; n += $6 } END { print rows, n }' "$T/err")" '5 15'
t_cmd 'again' 0 timeout 120 $mpi -n 3 "$MILLRACE" --farm "$T/tune.lua" 5
t_is '  the store answers' "$(<"$T/out")" "$(lines 5 true)"

# A program whose kernels no compiler takes: its row has a plan of the model, and says why it has no time.
cat >"$T/refused.lua" <<'E2'
local t = mr.tune({{mr.examples.rmsnorm, m = 64, n = 512}, {mr.examples.gemm, m = 128, n = 128, k = 128}}, {device = "h200", trials = 3})
print(t)
for _, row in ipairs(t) do print(row.plan ~= nil, row.ms ~= nil, row.why) end
print(mr.search(mr.examples.rmsnorm{m = 64, n = 512}, "h200", {farm = true, trials = 3}))
E2
rm -f "$T"/store.db*
rm -rf "$T/.cache"
FAKE_NVRTC_ERROR=rmsnorm t_cmd 'a row whose kernels fail' 0 timeout 120 $mpi -n 3 "$MILLRACE" --farm "$T/refused.lua"
why='no time was measured: of [0-9]+ plans tried on the device the first fails: the fake compiler says so'
t_like '  says so in the table' "$(<"$T/out")" "^rmsnorm +m=64 n=512 .* trials; $why\$"
t_like '  in row.why, with a plan' "$(<"$T/out")" "^true	false	$why\$"
t_like '  others do not' "$(<"$T/out")" '^true	true	nil$'
t_like '  and in its line' "$(<"$T/err")" "^[12] of 2: rmsnorm m=64 n=512 .* ms, predicted; $why, rank [12]\$"
t_like '  as does a search' "$(<"$T/out")" "^$why\$"

# Ctrl-C of one rank, in its first search, which then has the best plan so far.
cat >"$T/interrupted.lua" <<'E2'
local core = require "millrace.core"
local search, pressed = mr.search, core.farm():rank() ~= 1
mr.search = function(bound, device, o)
  if pressed or bound.axes.m == 2048 then return search(bound, device, o) end     -- 2048: what devices are compared by
  pressed = true
  local r = search(bound, device, {trials = 3, measure = false, show = false})
  assert(not core.heed(function() io.popen("kill -INT $PPID"):close() while true do end end))
  r.ended = "interrupted"
  return r
end
dofile((arg[0]:gsub("interrupted", "tune")))
E2
rm -f "$T"/store.db*
t_cmd 'Ctrl-C of one rank' 0 timeout 120 $mpi -n 3 "$MILLRACE" --farm "$T/interrupted.lua" 3
t_is '  ends no row, as another rank does it' "$(<"$T/out")" "$(lines 3 false)"
t_like '  which is said' "$(<"$T/err")" '^once more: gemm .*: no plan: interrupted, rank 1$'

# A rank that stops before it is ready; on rank 0, ten minutes go by each time it looks at the clock.
cat >"$T/hangs.lua" <<'E2'
local core = require "millrace.core"
local now = 0
if core.farm():rank() == 0 then core.clock = function() now = now + 600 return now end end
require "millrace.farm_devices".offer = function() io.popen "kill -STOP $PPID":read "a" end
dofile((arg[0]:gsub("hangs", "tune")))
E2
t_cmd 'a rank that hangs before it is ready' 1 timeout 120 $mpi -n 2 "$MILLRACE" --farm "$T/hangs.lua" 1
t_err '  is named' '^nothing has come from rank 1 for 3600 s: it is not waited for$'
t_err '  also where it is why nothing is measured' 'measure=true needs a device, and no rank has one: nothing has come from rank 1$'

# A disk that is full.
rm -f "$T"/store.db*
cat >"$T/full.lua" <<'E2'
require "millrace.core".store_put_rows = function() return nil, "store: the disk is full" end
dofile((arg[0]:gsub("full", "tune")))
E2
t_cmd 'rows that the store cannot keep' 0 timeout 120 $mpi -n 3 "$MILLRACE" --farm "$T/full.lua" 2
t_is '  are there' "$(<"$T/out")" "$(lines 2 false)"
t_is '  which is said once' "$(grep -c 'the disk is full' "$T/err")" 1
t_is '  and all that was measured is counted' "$(awk '/NVIDIA H200/ { n += $6 } END { print n }' "$T/err")" 6

# Two jobs on one store at the same time.
rm -f "$T"/store.db*
$mpi -n 3 "$MILLRACE" --farm "$T/tune.lua" 5 256 >"$T/other" 2>&1 &
t_cmd 'two jobs' 0 timeout 120 $mpi -n 3 "$MILLRACE" --farm "$T/tune.lua" 5
t_ok '  both come to their end' wait $!
t_is '  and nothing is lost, or there twice' "$(count search) $(count searched) $(twice)" '30 10 0'

#---- ranks that are killed --------------------------------------------------------------------------
# Rank 0 or another one is killed as soon as there is another measurement. mpirun then ends the job, and the same command goes on.
cat >"$T/rank" <<'E2'
#!/bin/bash
echo $$ >"$PIDS/$OMPI_COMM_WORLD_RANK"
exec "$@"
E2
chmod +x "$T/rank"
export PIDS=$T/pids
rm -f "$T"/store.db*
kept=0 lost=0 killed=0 kills=${MILLRACE_KILLS:-6}
rows=$((kills < 10 ? 12 : 4 * kills))	# so many that the last round does not find all of them done
for ((round = 0; round < kills; round++)); do
	rm -rf "$PIDS"
	mkdir "$PIDS"
	timeout 120 $mpi -n 4 "$T/rank" "$MILLRACE" --farm "$T/tune.lua" $rows >"$T/out" 2>"$T/err" &
	job=$!
	while [ "$(count search)" -le "$kept" ] && kill -0 $job 2>/dev/null; do :; done
	kill -9 "$(<"$PIDS/$((round % 4))")" 2>/dev/null
	wait $job || killed=$((killed + 1))
	now=$(count search)
	[ "$now" -ge "$kept" ] || lost=$((lost + 1))
	kept=$now
done
t_is 'ranks that are killed lose no measurement' "$lost" 0
t_ok "  they were, $killed times, with $kept measurements" [ "$killed" -gt 2 -a "$kept" -gt 2 ]
t_cmd 'the same command goes on' 0 timeout 120 $mpi -n 4 "$MILLRACE" --farm "$T/tune.lua" $rows
t_is '  with all rows' "$(sed 's,\t[a-z]*$,,' "$T/out")" "$(lines $rows x | sed 's,\tx$,,')"
t_is '  and nothing was measured twice' "$(twice)" 0
t_done
