# mr.tune on ranks of which some have no device: these compile the kernels that the others measure.
. tests/lib.sh

t_fake_cuda
t_find_mpirun || t_skip_all 'there is no mpirun'
export MILLRACE_STORE=none FAKE_NVRTC_LOG=$T/compiled
unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES

# The driver has one device, which rank 1 takes. Each rank has a cache of its own, and one core, which the program believes to be another one for
# each: the machine may not have so many. CRASH: a text at which compilers of rank 2 die.
cat >"$T/rank" <<'E2'
#!/bin/bash
export XDG_CACHE_HOME=$T/cache$OMPI_COMM_WORLD_RANK
[ "$OMPI_COMM_WORLD_RANK" != 2 ] || export FAKE_NVRTC_CRASH=$CRASH
cores=$(taskset -pc $$)
exec taskset -c "$(sed 's/[^0-9]*[0-9]*[^0-9]*\([0-9]*\).*/\1/' <<<"$cores")" "$@"
E2
chmod +x "$T/rank"
export T CRASH=
farm() { # RANKS SCRIPT
	: >"$T/compiled"
	{
		echo 'require "millrace.helpers".compilers = function()
		  local core = require "millrace.core"
		  return {workers = core.compile_state(), cores = tostring(core.farm():rank())}
		end'
		cat "$2"
	} >"$T/farm.lua"
	timeout 120 $mpi -n "$1" "$T/rank" "$MILLRACE" --farm "$T/farm.lua"
}
# How many candidates a rank compiled.
compiled() { # RANK
	grep -c "^$1 rmsnorm" "$T/compiled"
}

# Kernels with so much shared memory are the fastest.
export FAKE_CUDA_KERNELS=6176=20
cat >"$T/tune.lua" <<'E2'
local list = {}
for i = 1, 2 do list[i] = {mr.examples.rmsnorm, m = 64 * i, n = 512} end
local tuned = mr.tune(list, {device = "h200", trials = 12, measure = true})
for _, row in ipairs(tuned) do
  print(row.plan:check(), require "millrace.core".build(row.plan, false).smem, row.measured, row.ended)
end
E2
found=$'true\t6176\t12\ttrials\ntrue\t6176\t12\ttrials'
t_cmd 'one process' 0 env XDG_CACHE_HOME="$T/alone" "$MILLRACE" "$T/tune.lua"
t_is '  finds the fastest kernels' "$(<"$T/out")" "$found"
t_cmd 'three ranks, one of them with the device' 0 farm 3 "$T/tune.lua"
t_is '  find them, too' "$(<"$T/out")" "$found"
t_is '  the one with the device has compiled none of them' "$(compiled 1)" 0
t_ok '  but the one without' [ "$(compiled 2)" -ge 24 ]
rm -rf "$T"/cache?
cat >"$T/search.lua" <<'E2'
local r = mr.search(mr.examples.rmsnorm{m = 64, n = 512}, "h200", {trials = 12, measure = true, farm = true})
print(require "millrace.core".build(r.plan, false).smem, r.ended)
E2
t_cmd 'one search' 0 farm 3 "$T/search.lua"
t_is '  finds the fastest, too' "$(<"$T/out") $(compiled 1)" $'6176\ttrials 0'

rm -rf "$T"/cache?
t_cmd 'more ranks without a device' 0 farm 5 "$T/tune.lua"
t_is '  find them' "$(<"$T/out") $(compiled 1)" "$found 0"
t_is '  and all compile some' "$(for rank in 2 3 4; do [ "$(compiled $rank)" -gt 0 ] && echo $rank; done)" $'2\n3\n4'

# Four kernels, which rank 1 asks for.
cat >"$T/four.lua" <<'E2'
local core, helpers = require "millrace.core", require "millrace.helpers"
local ranks = require "millrace.ranks".shared()
local between, stop = helpers.serve(ranks)
local results = ranks:map({"kernels"}, function(_, with)
  local helped <close> = helpers.use(ranks, with)
  local begun, registers = {}, 0
  for i = 1, 4 do
    local plan = mr.search(mr.examples.rmsnorm{m = 64, n = 512 * i}, os.getenv "DEVICE", {trials = 10, measure = false, show = false}).plan
    begun[i] = helpers.compile_begin(plan)
  end
  helpers.compile_begin(begun[4]:kernel().plan):drop()
  for i = 1, 4 do registers = registers + begun[i]:kernel().registers end
  return registers > 0
end, {between = between, compilers = helpers.compilers, choose = function(offers) return {[1] = true}, helpers.assign(offers, {[1] = true}) end})
stop()
print(results[1].good, results[1].value or results[1].why)
E2
four() { # TITLE COMPILED: what ranks 1 and 2 compile
	t_cmd "$1" 0 farm 3 "$T/four.lua"
	t_is "  ranks 1 and 2 compile $2" "$(<"$T/out") $(compiled 1) $(compiled 2)" "$(printf 'true\ttrue %s' "$2")"
}
rm -rf "$T"/cache?
export DEVICE=h200
four 'four kernels' '0 4'
four '  again' '0 0'
rm -rf "$T/cache1"
four '  where rank 1 has lost its cache' '0 0'
rm -rf "$T/cache2"
four '  where rank 2 has, and is not asked' '0 0'
if [ -e "$fakes/fake_hiprtc.so" ]; then
	export MILLRACE_LIBHIPRTC=$fakes/fake_hiprtc.so DEVICE=mi300x
	four 'four kernels of HIP' '0 4'
	rm -rf "$T/cache1"
	four '  where rank 1 has lost its cache' '0 0'
fi

#---- helpers that fail ----------------------------------------------------------------------------
rm -rf "$T"/cache?
export CRASH=rmsnorm
t_cmd 'where the compiler of the helper dies' 0 farm 3 "$T/tune.lua"
t_is '  the same is found' "$(<"$T/out")" "$found"
t_ok '  by kernels that the rank with the device compiles' [ "$(compiled 1)" -ge 24 ]
export CRASH=

# The ranks run the script first.
bad() { # TITLE SCRIPT
	rm -rf "$T"/cache?
	{ printf '%s\n' "$2"; cat "$T/tune.lua"; } >"$T/bad.lua"
	t_cmd "$1" 0 farm 3 "$T/bad.lua"
	t_is '  the same is found' "$(<"$T/out")" "$found"
	t_ok '  by kernels that the rank with the device compiles' [ "$(compiled 1)" -ge 24 ]
}
bad 'where what comes back is no binary' 'require "millrace.core".base64 = function() return "*" end'
bad 'where it is another one' 'local core = require "millrace.core"
local base64 = core.base64
function core.base64(x) return base64(x .. "x") end'
bad 'where the helper has another compiler' 'local core = require "millrace.core"
if core.farm():rank() == 2 then
  local begin = core.compile_source
  function core.compile_source(x)
    local source = begin(x)
    return {done = function() return source:done() end, drop = function() source:drop() end,
      result = function() return "nvrtc 1.0", select(2, source:result()) end}
  end
end'

# Nonsense between the two, of which the helper answers what has a number, and nothing else.
rm -rf "$T"/cache?
{
	cat <<-'E2'
		local farm = require "millrace.core".farm()
		local rank = farm:rank()
		if rank > 0 then
		  for _, text in ipairs{"", "{", "[]", "7", '{"map":1}', '{"kind":"compile","map":1}', '{"kind":"compile","map":1,"id":1,"source":7}',
		    '{"kind":"compile","map":1,"id":-1,"api":"cuda","name":"","source":"","arch":"","fast_math":false,"options":[7],"tool":""}',
		    '{"kind":"compile","map":1,"id":-2,"api":"none","name":"","source":"","arch":"","fast_math":false,"options":[],"tool":""}',
		    '{"kind":"compile","map":1,"id":-3,"api":"hip","name":"","source":"","arch":"","fast_math":false,"options":[],"tool":""}',
		    '{"kind":"forget","map":1,"id":{}}', '{"kind":"compiled","map":1,"id":"1"}', '{"kind":"compiled","map":1,"id":1,"binary":[]}',
		    '{"kind":"compiled","map":9,"id":1}', '{"kind":"end","map":1,"results":[]}'} do
		    farm:send(3 - rank, text)
		  end
		end
	E2
	cat "$T/tune.lua"
} >"$T/nonsense.lua"
t_cmd 'nonsense between ranks' 0 farm 3 "$T/nonsense.lua"
t_is '  changes nothing' "$(<"$T/out") $(compiled 1)" "$found 0"
t_done
