# A search that measures, on fake libraries: what it measured is kept, the same search again answers at once,
# and kill -9 takes no finished measurement with it.
. tests/lib.sh

t_fake_cuda
export MILLRACE_STORE=$T/store.db

cat >"$T/find.lua" <<'E'
local size, o = math.tointeger(arg[1]), load("return " .. (arg[2] or "{}"))()
bound = mr.examples.gemm{m = size, n = 128, k = 128}
o.progress = function(state) print(("%d %s"):format(state.last.id, state.last.status)) io.stdout:flush() end
r = assert(mr.search(bound, mr.device "h200", o))
print(("%s, %s, %d rows"):format(r.ended, r.measured and "measured" or "predicted", #r.measurements))
E
rows() { # KIND SIZES
	"$MILLRACE" -e "print(#mr.store:list{kind='$1', sizes='$2'})"
}

t_cmd 'the best four by model' 0 "$MILLRACE" "$T/find.lua" 256 '{trials=4}'
t_is '  are measured, in the order in which they are compiled' "$(sort "$T/out")" \
	"$(printf '%d ok\n' 1 2 3 4)
trials, measured, 4 rows"
t_is '  and kept' "$(rows search 'm=256 n=128 k=128')" 4
t_is '  the best of them as the answer' "$(rows searched 'm=256 n=128 k=128')" 1
t_cmd 'the same again' 0 "$MILLRACE" "$T/find.lua" 256 '{trials=4}'
t_out '  is remembered' <<<'remembered, measured, 1 rows'
t_cmd '  also with fewer trials' 0 "$MILLRACE" "$T/find.lua" 256 '{trials=3}'
t_out '  it is' <<<'remembered, measured, 1 rows'
t_cmd 'unless it may measure more' 0 "$MILLRACE" "$T/find.lua" 256 '{trials=5}'
t_like '  then it does' "$(<"$T/out")" '^(trials|sure|done), measured, [5-9] rows$'
t_cmd 'or is to be fresh' 0 "$MILLRACE" "$T/find.lua" 256 '{trials=2, fresh=true}'
t_is '  then it measures' "$(sort "$T/out")" "$(printf '%d ok\n' 1 2)
trials, measured, 2 rows"
t_cmd 'a search of one tile' 0 "$MILLRACE" "$T/find.lua" 640 '{trials=2, tile={m=64}}'
t_is '  is no answer' "$(rows searched 'm=640 n=128 k=128')" 0
t_cmd 'with operands fetched ahead' 0 "$MILLRACE" "$T/find.lua" 640 '{trials=2, fetch=true}'
t_is '  it is one for such' "$(rows 'searched fetch' 'm=640 n=128 k=128')" 1
t_cmd 'on the model alone' 0 "$MILLRACE" "$T/find.lua" 256 '{measure=false}'
t_out '  nothing is measured' <<<'done, predicted, 0 rows'
t_cmd 'a device that is not the model' 1 "$MILLRACE" -e \
	"mr.search(mr.examples.gemm{m=64, n=64, k=64}, mr.device 'a100', {measure=true})"
t_err '  is refused' "measure=true needs an attached device: the attached NVIDIA H200 is not what 'a100' is a model of"

#---- kill -9 ----------------------------------------------------------------------------------
# Each row is printed when it is in the store. The search is killed when it has printed a few, and continues from
# there the next time. MILLRACE_KILLS: how often.
mkfifo "$T/done"
printed=0
for ((round = 0; round < ${MILLRACE_KILLS:-8}; round++)); do
	"$MILLRACE" "$T/find.lua" 1024 '{trials=100, seconds=60}' >"$T/done" 2>>"$T/killed.err" &
	pid=$!
	exec 9<"$T/done"
	for ((i = 0; i <= round % 3; i++)); do
		read -r got <&9 || break
		[[ $got == *ok ]] && printed=$((printed + 1))
	done
	kill -KILL $pid 2>/dev/null
	while read -r got <&9; do [[ $got == *ok ]] && printed=$((printed + 1)); done
	wait $pid 2>/dev/null
	exec 9<&-
done
kept=$(rows search 'm=1024 n=128 k=128')
t_ok "none of $printed printed measurements is lost ($kept are kept)" [ "$kept" -ge "$printed" ]
t_ok '  and many were made' [ "$printed" -ge "${MILLRACE_KILLS:-8}" ]
t_is '  and nothing was said of it' "$(<"$T/killed.err")" ''

#---- two at once ------------------------------------------------------------------------------
"$MILLRACE" "$T/find.lua" 2048 '{trials=6}' >"$T/one" 2>&1 &
"$MILLRACE" "$T/find.lua" 4096 '{trials=6}' >"$T/two" 2>&1
wait
t_like 'two shells on one store: the first' "$(<"$T/one")" 'measured, 6 rows$'
t_like '  and the second' "$(<"$T/two")" 'measured, 6 rows$'
t_is '  all is kept' "$(rows search 'm=2048 n=128 k=128') $(rows search 'm=4096 n=128 k=128')" '6 6'

t_cmd 'the best at other sizes is among the candidates' 0 "$MILLRACE" "$T/find.lua" 512 '{trials=12}'
t_is '  and nothing is measured twice' "$("$MILLRACE" -e "
	local n, seen = 0, {}
	for _, row in ipairs(mr.store:list{kind='search', sizes='m=512 n=128 k=128'}) do
		n = n + (seen[row.script] and 0 or 1)
		seen[row.script] = true
	end
	print(n)")" 12

space=(gemm m=256 n=128 k=128 tile.m=64,128 tile.n=64 tile.k=64 every=24)
t_cmd 'a complete space' 0 "$MILLRACE" tests/perf/space.lua measure "${space[@]}"
n=$(rows space 'm=256 n=128 k=128')
t_ok '  is measured' [ "$n" -gt 5 ]
t_cmd '  once' 0 "$MILLRACE" tests/perf/space.lua measure "${space[@]}"
t_is '  and no more' "$(rows space 'm=256 n=128 k=128')" "$n"
t_like '  and says so' "$(<"$T/out")" "^0 measured now, $n known, ended: done"
t_like '  how soon it is found' "$(<"$T/out")" '^measured ends after [0-9]+: .* of the best; 99 % after 1, '
t_cmd '  as an entry of a file' 0 "$MILLRACE" tests/perf/space.lua save "${space[@]}"
t_is '  with a line for each' "$(grep -cE '^gemm m=256 [^,]*,[0-9a-f]{12},' "$T/out")" "$n"

t_cmd 'two searches of a simulated world' 0 env MILLRACE_STORE=none "$MILLRACE" -s tests/perf/agreement.lua worlds=1 trials=12 '^gemm 2048 x 2048 x 2048$'
t_like '  have answers that are compared' "$(tail -1 "$T/out")" '^gemm 2048 x 2048 x 2048 +12\.0 +[01]\.00 +1\.0[0-9]{3} +0\.0'
t_cmd '  whose times are not stored' 1 "$MILLRACE" -s tests/perf/agreement.lua worlds=1 trials=12 '^gemm 2048 x 2048 x 2048$'
t_err '  which is an error' 'set MILLRACE_STORE=none'
t_done
