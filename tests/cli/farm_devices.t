# Which ranks of a farm measure, on fake libraries: one for each board of a host.
. tests/lib.sh

t_fake_cuda
t_find_mpirun || t_skip_all 'there is no mpirun'
export MILLRACE_STORE=none CUDA_VISIBLE_DEVICES=0
mpi="timeout 120 $mpi"

cat >"$T/tune.lua" <<'E2'
local list = {}
for i = 1, 4 do list[i] = {mr.examples.gemm, m = 128 * i, n = 128, k = 128} end
for _, row in ipairs(mr.tune(list, {device = "h200", trials = 3, measure = true})) do print(row.ms and row.measured) end
E2
cat >"$T/search.lua" <<'E2'
print(#mr.search(mr.examples.gemm{m = 256, n = 256, k = 128}, "h200", {farm = true, trials = 3, measure = true}).measurements)
E2
shared="rank 2 on $(uname -n) measures nothing: it has the same GPU as rank 1; unset CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES there, or start fewer ranks"
said() { # what is said of ranks that measure nothing
	grep 'measures nothing' "$T/err"
}
by() { # ranks that rows are said to be of
	sed -n 's/^[1-4] of 4: .*, rank \([0-9]*\)$/\1/p' "$T/err" | sort -u | tr -d '\n'
}

FAKE_CUDA_BUS=0000:1B:00.0 t_cmd 'rows on two ranks with one GPU' 0 $mpi -n 3 "$MILLRACE" --farm "$T/tune.lua"
t_is '  the second is named' "$(said)" "$shared"
t_is '  the first measures all' "$(by) $(<"$T/out")" $'1 3\n3\n3\n3'
FAKE_CUDA_BUS=0000:1B:00.0 t_cmd 'a search' 0 $mpi -n 3 "$MILLRACE" --farm "$T/search.lua"
t_is '  the second is named' "$(said)" "$shared"
t_is '  the first measures all' "$(<"$T/out")" 3
t_cmd 'two ranks with two GPUs' 0 $mpi -n 3 "$MILLRACE" --farm "$T/search.lua"
t_is '  both measure' "$(said)" ''
FAKE_CUDA_BUS= t_cmd 'where the driver does not know the board' 0 $mpi -n 3 "$MILLRACE" --farm "$T/search.lua"
t_is '  they do as well' "$(said)" ''
FAKE_CUDA_BUS=0000:1B:00.0 FAKE_NVML_MIG=1 t_cmd 'two partitions of a board' 0 $mpi -n 3 "$MILLRACE" --farm "$T/search.lua"
t_is '  also' "$(said)" ''
rm -rf "$T/.cache"
for script in tune search; do
	FAKE_NVRTC_ERROR=gemm t_cmd "no kernel can be compiled, $script" 1 $mpi -n 3 "$MILLRACE" --farm "$T/$script.lua"
	t_is '  each rank is named, and why' "$(said | sort)" "$(for rank in 1 2; do
		echo "rank $rank on $(uname -n) measures nothing: the product by which devices are compared fails there: the fake compiler says so"
	done)"
	t_err '  which is an error' "^millrace: $T/$script.lua:[0-9]*: $script: no rank measures, for the reasons above; measure=false searches in the model alone"
done

sed 's/measure = true/measure = arg[1] and true/' "$T/tune.lua" >"$T/any.lua"
FAKE_CUDA_INIT=100 t_cmd 'rows where no rank has a GPU' 0 $mpi -n 3 "$MILLRACE" --farm "$T/any.lua"
t_err '  are by the model, which is said, and why' "^no rank has the device, so nothing is measured, and plans are by the model alone: rank 1 on $(uname -n): .*cuInit"
FAKE_CUDA_INIT=100 t_cmd '  if they must be measured' 1 $mpi -n 3 "$MILLRACE" --farm "$T/any.lua" yes
t_err '  it is an error' "tune: measure=true needs a device, and no rank has one: rank 1 on $(uname -n): .*cuInit"
t_done
