# The scripts of tests/perf that are about farms run; their figures are of machines with GPUs.
. tests/lib.sh

rm -f "$T/model.db"
MILLRACE_STORE=$T/model.db t_cmd 'the model of a farm' 0 "$MILLRACE" -s tests/perf/farm_model.lua ranks=3 rows=2 stored=100
t_like '  three ranks do six rows' "$(<"$T/out")" '\| 3 \| 6 \|'
t_like '  and it says whether rank 0 is the limit' "$(tail -1 "$T/out")" '^rank 0 is not the limit$'

t_fake_cuda
export MILLRACE_STORE=none
row='^gemm 2048 x 2048 x 2048$'
t_cmd 'the share of a search that the device measures' 0 "$MILLRACE" -s tests/perf/device_share.lua trials=5 "$row"
t_like '  of five plans' "$(tail -1 "$T/out")" '^gemm 2048 x 2048 x 2048 +1 +5 '
if t_find_mpirun; then
	t_cmd '  with another rank' 0 timeout 120 $mpi -n 2 "$MILLRACE" --farm tests/perf/device_share.lua trials=5 "$row"
	t_like '  which measures as many' "$(tail -1 "$T/out")" '^gemm 2048 x 2048 x 2048 +2 +5 '
fi

t_cmd 'twenty rows without a command' 1 "$MILLRACE" tests/perf/farm_tune.lua
t_err '  are an error' 'tune FILE.json, or compare ONE.json MANY.json'
for ((i = 0; i < 20; i++)); do echo '{"program": "gemm", "sizes": "m=1", "ms": 1, "script": "return"}'; done | paste -sd, |
	sed 's/.*/{"rows": [&]}/' >"$T/rows.json"
t_cmd 'two runs that found the same plans' 0 "$MILLRACE" -s tests/perf/farm_tune.lua compare "$T/rows.json" "$T/rows.json"
t_is '  have no race' "$(tail -1 "$T/out")" '20 of 20 plans are the same, 0 others within 1 % or faster; at worst 1.0000'
t_done
