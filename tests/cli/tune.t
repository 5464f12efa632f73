# mr.tune with a device, on fake libraries: what is measured is kept, and a run that was ended goes on; the same on the ranks of a farm.
. tests/lib.sh

fakes=$(dirname "$(readlink -f "$MILLRACE")")/fake
[ -e "$fakes/fake_cuda.so" ] && [ -e "$fakes/fake_nvrtc.so" ] ||
	t_skip_all "no fake libraries in $fakes: make check builds them"
export MILLRACE_LIBCUDA=$fakes/fake_cuda.so MILLRACE_LIBNVML=$fakes/fake_nvml.so
export MILLRACE_LIBNVRTC=$fakes/fake_nvrtc.so FAKE_CUDA_NAME='NVIDIA H200' FAKE_CUDA_SMS=132
export MILLRACE_STORE=$T/store.db

cat >"$T/tune.lua" <<'E2'
local list = {}
for i = 1, tonumber(arg[1]) do list[i] = {mr.examples.gemm, m = 128 * i, n = 128, k = 128} end
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
t_is '  the fourth is measured' "$(count search)" 12
t_is '  no plan is measured twice' "$(twice)" 0
t_done
