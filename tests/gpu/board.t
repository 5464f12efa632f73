# The state of the board: what is known of it, the power of a benchmark, what L2 holds, and that
# somebody else at work is noticed. The device must be ours alone.
. tests/gpu/lib.sh

cat >"$T/board.lua" <<'L'
local a = assert(mr.attached())
print("board", a.name, a.sms, a.driver, a.power_limit, a.partition, a.trouble)
print("device", mr.device().name, mr.device().eus == a.sms)
L
cat >"$T/bench.lua" <<'L'
local k = mr.load_plan("gemm_cooperative"):compile()
local b = k:bench{seconds = tonumber(arg[1])}
print("bench", b.ms, b.cache, b.watts)
print(b)
if arg[2] then
  print("short", k:bench{seconds = 0.1}.watts)
  print("trace", k:trace().cache)
  local limit, idle = mr.attached().power_limit, mr.device().name == "h200" and 100 or 30
  print("power", not limit or b.watts > idle and b.watts < 1.1 * limit)
end
L

t_cmd 'the board' 0 "$MILLRACE" "$T/board.lua"
t_diag board "$(<"$T/out")"
t_like '  is known' "$(<"$T/out")" $'^board\t.*\t[0-9]+\t[0-9]+\\.[0-9.]+\t[0-9.]+\tfalse\tnil$'
t_like '  and in hw/' "$(<"$T/out")" $'^device\t[a-z0-9]+\ttrue$'
if command -v nvidia-smi >/dev/null; then
	t_is '  its driver, as nvidia-smi has it' "$(awk -F '\t' '/^board/ { print $4 }' "$T/out")" \
		"$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
fi

t_cmd 'a benchmark' 0 "$MILLRACE" "$T/bench.lua" 2 more
t_diag bench "$(<"$T/out")"
t_like '  finds a cold L2, and has a power' "$(<"$T/out")" $'^bench\t.*\tcold L2\t[0-9.]+$'
t_like '  and is shown with what comes first first' "$(<"$T/out")" '^[0-9.]+ ms, [0-9.]+ TFLOP/s, [0-9.e+]+ GB/s$'
t_like '  and how it was taken below' "$(<"$T/out")" '^[0-9]+ runs, [0-9.]+ to [0-9.]+ ms; cold L2; [0-9]+ W$'
t_like '  that is possible' "$(<"$T/out")" $'^power\ttrue$'
t_like '  but none of a moment' "$(<"$T/out")" $'^short\tnil$'
t_like '  as does a trace' "$(<"$T/out")" $'^trace\tcold L2$'

# Where processes are not seen (in a container), only the use of the last second tells.
noticed() {
	"$MILLRACE" "$T/board.lua" >"$T/busy"
	grep -Eq '(is|are) on it' "$T/busy"
}
"$MILLRACE" "$T/bench.lua" 60 >/dev/null 2>&1 &
other=$!
t_ok 'another process at work is noticed' t_until 60 noticed
t_diag busy "$(<"$T/busy")"
kill $other
wait $other 2>/dev/null
t_done
