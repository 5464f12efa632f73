# Many plans, compiled in the background and timed alternately, by fake libraries: the driver chooses how fast
# each kernel is, and whether it is wrong, by the kernel's shared memory.
. tests/lib.sh

t_fake_cuda

# plans[n] has rings of n versions, and so another number of bytes.
cat >"$T/plans.lua" <<'E'
bound = mr.examples.gemm{m = 256, n = 256, k = 256}
device = mr.device "h200"
plans = {}
for n = 2, 7 do
  local plan = mr.plan(bound:graph{tile = {m = 128, n = 64, k = 64}}, device)
  plan:buffers{a = n, b = n}
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  plans[n] = plan
end
measure = require "millrace.measure"
function try(o)
  local candidates, names = {}, {}
  for n = 2, 7 do
    if plans[n] then
      candidates[#candidates + 1] = {plan = plans[n], predicted = 1e-4 + n * 1e-7}
      names[#candidates] = n
    end
  end
  o = o or {}
  o.gain, o.uncertainty, o.alarm = 0, 0.5, function(row) print("alarm", row.why, row.script == row.plan:script()) end
  o.limit = o.limit or 0.5
  local r = measure(bound, device, candidates, o)
  table.sort(r.results, function(a, b) return a.predicted < b.predicted end)
  for _, row in ipairs(r.results) do
    local n = math.floor((row.predicted - 1e-4) * 1e7 + 0.5)
    print(n, row.status, row.ms and ("%.3f"):format(row.score), row.why)
  end
  print("best", r.best and math.floor((r.best.predicted - 1e-4) * 1e7 + 0.5), r.ended, r.trials)
end
E
b2=67584 b3=92160 b4=116736 b5=141312 b6=165888
t_cmd 'six plans' 0 "$MILLRACE" -e "dofile '$T/plans.lua'
	for n = 2, 7 do print(n, plans[n]:compile{text=true}.smem) end"
t_out '  have these bytes' <<E
2	$b2
3	$b3
4	$b4
5	$b5
6	$b6
7	190464
E

#---- races -----------------------------------------------------------------------------------
export FAKE_CUDA_KERNELS="$b2=500 $b3=400 $b4=410"
cat >"$T/race.lua" <<'E'
dofile(arg[1])
local r = mr.race({two = plans[2], three = plans[3]:compile(), four = plans[4]}, {seconds = 0.02})
print((tostring(r):gsub("%d+ rounds", "N rounds")))
print(r.base, r[1].name, r[1].kernel.smem, r.rounds >= 12, r.cache)
local r = mr.race({plans[2], plans[3]}, {seconds = 0.02, base = 1, turn = 0.002})  -- deprecated
print(r[1].name, ("%.3f"):format(r[1].ratio), r[2].name, r[2].ratio)
E
t_cmd 'a race' 0 "$MILLRACE" "$T/race.lua" "$T/plans.lua"
t_out '  is sorted, and compares with the fastest' <<'E'
gemm, N rounds, cold L2
         ms   min   max  of three     95 % interval  TFLOP/s
three   0.4   0.4   0.4    1.0000  1.0000 to 1.0000  0.08389
four   0.41  0.41  0.41    1.0250  1.0250 to 1.0250  0.08184
two     0.5   0.5   0.5    1.2500  1.2500 to 1.2500  0.06711
three	three	92160	true	cold L2
2	0.800	1	1.0
E
FAKE_CUDA_DRIFT=0.3 t_cmd 'while the device becomes slower' 0 "$MILLRACE" -e "dofile '$T/plans.lua'
	local r = mr.race({a = plans[3], b = plans[4]}, {seconds = 0.2, sample = 0.03})
	local slower = r[1].max / r[1].min
	print(r[1].name, slower > 1.05, math.abs(r[2].ratio - 1.025) < 0.002)"
t_is '  ratios stay' "$(<"$T/out")" 'a	true	true'
FAKE_CUDA_BURST=0.1 t_cmd 'a device that begins with a burst' 0 "$MILLRACE" -e "dofile '$T/plans.lua'
	print(mr.race({plans[3], plans[4]}, {seconds = 0.2})[1].ms > 0.436)"
t_is '  has reached its steady speed before the first sample that counts' "$(<"$T/out")" true

refuses() { # CODE ERE
	t_cmd "$1" 1 "$MILLRACE" -e "dofile '$T/plans.lua' $1"
	t_err '  is refused at its line' "^millrace: \(command line\):1: race: $2\$"
}
refuses 'mr.race()' 'table of kernels expected, got nil'
refuses 'mr.race{}' 'there is no kernel to race'
refuses 'mr.race{3}' 'kernel or plan expected as 1, got 3'
refuses 'mr.race({plans[2]}, {second = 1})' "unknown option 'second'; did you mean 'seconds'\\?"
refuses 'mr.race({plans[2]}, {seconds = 0})' 'seconds must be a number of seconds, got 0'
refuses 'mr.race({a = plans[2]}, {base = "b"})' "there is no 'b' to compare with \\(known: a\\)"
refuses 'mr.race{plans[2]:compile{text=true}}' '1 is text alone; compile it without text=true'
refuses 'mr.race{plans[2], mr.load_plan("gemm_cooperative", mr.examples.gemm{m=256, n=256, k=512})}' \
	"'1' and '2' do not compute the same"
FAKE_CUDA_KERNELS="$b3=fault" t_cmd 'a race with one that faults' 1 "$MILLRACE" -e "dofile '$T/plans.lua'
	mr.race{a = plans[2], b = plans[3]}"
t_err '  names it' "after 'gemm_main' \(b\) failed with CUDA_ERROR_ILLEGAL_ADDRESS"

#---- measuring -------------------------------------------------------------------------------
export FAKE_CUDA_KERNELS="$b2=500 $b3=400 $b4=410 $b5=wrong $b6=fault"
FAKE_NVRTC_SPILLS='EACH(i, 7)' FAKE_CUDA_LOG=$T/log t_cmd 'plans of all kinds' 0 \
	"$MILLRACE" -e "dofile '$T/plans.lua' try()"
t_is '  each comes to what it is' "$(sed 's/failed	nil.*touched memory.*/failed	nil	touched memory/; s/-nan/nan/' "$T/out" | sort)" \
"$(sort <<'E'
alarm	its result is off by nan	true
2	ok	0.500	nil
3	ok	0.400	nil
4	ok	0.410	nil
5	wrong	nil	its result is off by nan
6	failed	nil	touched memory
7	skipped	nil	'gemm_main' keeps registers in memory: a thread stores 64 bytes and loads 96
best	3	done	5
E
)"
XDG_CACHE_HOME=$T/ungranted FAKE_CUDA_KERNELS="$b2=500 $b3=400" FAKE_NVRTC_UNGRANTED='EACH(i, 7)' t_cmd 'registers that are not granted' 0 \
	"$MILLRACE" -e "dofile '$T/plans.lua' plans[4], plans[5], plans[6] = nil try()"
t_like '  are a reason to skip a plan' "$(<"$T/out")" "7	skipped	nil	the compiler leaves all lanes of 'gemm_main' the same registers"
# Also at the end, if the best is the only right one whose outputs were compared: that depends on what is compiled first.
t_like '  the reference is computed for the first, and where one does not agree with it' "$(grep -c '^plain_main' "$T/log")" '^[23]$'
t_is '  what is skipped never runs' "$(grep -c '^gemm_main 190464' "$T/log")" 0

# While the model is searched: the best so far are compiled, and measured until one is right, which no later race measures again.
cat >"$T/ahead.lua" <<'E'
dofile(arg[1])
local order = {6, 5, 3, 2}                              -- what a search has found, best first: one faults, one is wrong
local found = {}
for i, n in ipairs(order) do found[i] = {trial = n, priced = true, seconds = 1e-4 + i * 1e-7, traits = {}} end
local calls, put, search = 0, 0, {found = function() return {found[1], found[2], found[3]} end}   -- one that is right, whichever is compiled first
local ahead <close> = require("millrace.ahead").of_device(bound, device, function(_, n) return plans[n] end, {progress = function(state)
  calls = calls + 1
  print("progress", state.trials, #state.results, state.best.score, state.best.plan == plans[3])
end, put = function() put = put + 1 end})
for _ = 1, 1000 do
  ahead.due = 0
  ahead:step(search, arg[2] == "first")
  if ahead.best then break end
  require "millrace.core".compile_wait(0.01)
  if arg[2] ~= "first" then break end
end
for _, x in ipairs(ahead.rows) do print(x.item.id, x.row.status, x.row.ms) end
if put ~= #ahead.rows then print("lost", put) end
local candidates = {}
for i, n in ipairs(order) do candidates[i] = {plan = plans[n], predicted = found[i].seconds, traits = {}} end
local r = require "millrace.measure"(bound, device, candidates, {server = ahead.server, early = ahead.rows, gain = 0, uncertainty = 0.5,
  limit = 0.5, alarm = function() end, put = function() put = put + 1 end})
if put ~= #r.results then print("lost", put) end
local times, ids = {}, {}
for _, row in ipairs(r.results) do
  local script = row.plan:script()
  times[script] = (times[script] or 0) + 1
  if ids[row.id] or times[script] > 1 then print("twice", row.id) end
  ids[row.id] = true
end
print(#r.results, r.trials, r.best.plan == plans[3], calls)
E
t_cmd 'plans that are measured while the model is searched' 0 "$MILLRACE" "$T/ahead.lua" "$T/plans.lua" first
t_is '  are tried until one is right' "$(grep -c '^progress.*0.4[0-9]*	true$' "$T/out") $(grep -c '	ok	0.4[0-9]*$' "$T/out")" '1 1'
t_is '  and are not measured again' "$(tail -n 1 "$T/out") $(grep -cE 'twice|lost' "$T/out")" '4	4	true	1 0'
t_cmd 'plans of a second search' 0 "$MILLRACE" "$T/ahead.lua" "$T/plans.lua" second
t_out '  are not' <<<'4	4	true	0'

# Kernels that are fast as they leave an element out. All plans are measured, also those that have no chance against a wrong one.
for how in corner inside; do
	FAKE_CUDA_KERNELS="$b2=500 $b3=$how $b4=410 $b5=420" t_cmd "one that leaves out an element: $how" 0 "$MILLRACE" -e \
		"dofile '$T/plans.lua' plans[6], plans[7] = nil try{risk = -1}"
	t_out '  is found, and another one is the best' <<-E
		alarm	its result is off by nan	true
		2	ok	0.500	nil
		3	wrong	nil	its result is off by nan
		4	ok	0.410	nil
		5	ok	0.420	nil
		best	4	done	4
	E
done

t_cmd 'a comparison' 0 "$MILLRACE" -e "dofile '$T/plans.lua'
	local core, k = require 'millrace.core', plans[3]:compile()
	for _, limit in ipairs{0, -1, 0 / 0} do print(select(2, pcall(core.verify, k, nil, {limit = limit, tiles = 8}))) end
	print(pcall(core.verify, k, nil, {limit = 60, tiles = 8}))"
t_like '  takes a limit above 0 alone' "$(sed 's/.*: verify/verify/; s/table.*/table/' "$T/out")" \
'^verify: limit is a number of seconds above 0
verify: limit is a number of seconds above 0
verify: limit is a number of seconds above 0
true	table$'

# Outputs are compared with what the program says, whatever the plan makes of its loads.
cat >"$T/window.lua" <<'E'
local core = require "millrace.core"
local filter = mr.program("filter", function(p)
  local n, c = p:axes("n", "c")
  local X, Y = p:input("X", {n, c}), p:output("Y", {n, c})
  local a, b = p:load("a", X, {n - 1, c}), p:load("b", X, {n + 1, c})
  Y:store("store_y", p:task("add", function() return a * b end))
end):bind{n = 256, c = 64}
local plan = mr.plan(filter:graph{tile = {n = 16, c = 64}}, mr.device "h200")
if arg[1] == "window" then plan:window{"a", "b"} end
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
print(pcall(core.verify, plan:compile(), nil, {tiles = 8}))
E
for how in plain window; do
	XDG_CACHE_HOME="$T/compared" t_cmd "a plan's outputs, $how" 0 "$MILLRACE" "$T/window.lua" "$how"
	t_like '  are compared' "$(<"$T/out")" '^true	table'
done
t_is '  two kernels, one reference and what makes inputs are compiled' "$(find "$T/compared" -name '*.cubin' | wc -l)" 4

FAKE_CUDA_KERNELS="$b2=500 $b3=hang" t_cmd 'one that hangs' 0 "$MILLRACE" -e "dofile '$T/plans.lua'
	plans[4], plans[5], plans[6], plans[7] = nil try()"
t_like '  costs itself' "$(<"$T/out")" "3	failed	nil	'gemm_main' did not finish within 0.5 s"
t_like '  and nothing else' "$(<"$T/out")" 'best	2	done	2'
"$MILLRACE" -e "dofile '$T/plans.lua' plans[3]:save '$T/three.lua'"
FAKE_CUDA_KERNELS="$b3=hang" t_cmd 'run of one that hangs knows nothing of its outputs' 3 "$MILLRACE" run --limit 0.5 "$T/three.lua"
t_err '  and says so' "too slow for the device, .* 'gemm_main' did not finish within 0\.5 s and was stopped: .*; --limit S gives it S seconds"

cat >"$T/compiled.lua" <<'E'
dofile(arg[1])
local o = {measure = false, trials = 40, tile = {m = 128, n = 64, k = {32, 64}}}
if arg[2] then return print((mr.search(bound, "h200", o).plan:compile{text = true}.source:match "if %(warp < %d+%) {\t/%* lanes? [^*]*")) end
for _, compile in ipairs{false, true} do
  o.compile = compile
  print(mr.search(bound, "h200", o).plan:compile().spills)
end
E
FAKE_NVRTC_SPILLS=$("$MILLRACE" "$T/compiled.lua" "$T/plans.lua" lanes) t_cmd 'a search that compiles' 0 "$MILLRACE" "$T/compiled.lua" "$T/plans.lua"
t_out '  takes a plan whose kernel does not spill' <<'E'
160
0
E

t_cmd 'a benchmark on inputs that are given' 0 "$MILLRACE" -e "dofile '$T/plans.lua'
	local k = plans[3]:compile()
	print(k:bench{inputs = bound:inputs{seed = 2}, seconds = 0.01}.ms > 0, select(2, pcall(k.bench, k, {inputs = {}})))"
t_like '  times them, and needs all of them' "$(<"$T/out")" "^true	.*input 'A'"

FAKE_NVRTC_SERIALIZES=gemm_main t_cmd 'if all have their products serialized' 0 "$MILLRACE" -e \
	"dofile '$T/plans.lua' plans[5], plans[6], plans[7] = nil try()"
t_like '  they are measured nevertheless' "$(<"$T/out")" 'best	3	done	3'

t_cmd 'the curve of a search' 0 "$MILLRACE" tests/perf/curve.lua total=20 seconds=1 "csv=$T/curve.csv" '^gemm 2048'
t_like '  has a line of each row' "$(<"$T/out")" '^gemm 2048 x 2048 x 2048 +0\.0[0-9]+ +[0-9.]+ [-0-9. ]+ [a-z]+$'
t_like '  and its steps' "$(<"$T/curve.csv")" '^gemm 2048 x 2048 x 2048,[0-9]+\.[0-9]{3},[0-9]+\.[0-9]{5}$'

# A worker is killed while it compiles.
mkdir "$T/gate"
XDG_CACHE_HOME=$T/cold FAKE_NVRTC_GATE=$T/gate FAKE_CUDA_KERNELS="$b2=500 $b3=400 $b4=410" \
	"$MILLRACE" -e "dofile '$T/plans.lua' plans[5], plans[6], plans[7] = nil try()" >"$T/out" 2>"$T/err" &
pid=$!
compiling() { grep -qs gemm_main "$T/gate"/*; }
t_ok 'a worker compiles' t_until 60 compiling
kill -KILL "$(basename "$(grep -ls gemm_main "$T/gate"/* | head -1)")"
touch "$T/gate/open"
wait $pid
t_is 'with a worker killed the run ends well' $? 0
t_is '  one candidate failed, two are measured' "$(grep -c '	ok	' "$T/out") $(grep -c '	failed	' "$T/out")" '2 1'
t_like '  and says why' "$(<"$T/out")" 'failed	nil	the worker process was killed by signal 9'

# Ctrl-C while a kernel hangs: what was measured is kept, and the shell goes on. On one core, for one
# plan after the other.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
rm -f "$T/in" "$T/out"
mkfifo "$T/in"
FAKE_CUDA_KERNELS="$b2=500 $b3=hang" FAKE_CUDA_HANGS=$T/hangs \
	taskset -c "$core" "$MILLRACE" -i <"$T/in" >"$T/out" 2>&1 &
pid=$!
exec 9>"$T/in"
echo "dofile '$T/plans.lua' plans[4], plans[5], plans[6], plans[7] = nil try{limit = 600}" >&9
t_ok 'a kernel hangs' t_until 60 test -e "$T/hangs"
kill -INT $pid
t_ok 'Ctrl-C ends it' t_until 60 grep -q '^best' "$T/out"
t_like '  the best is kept' "$(<"$T/out")" '^best	2	interrupted	1'
echo 'print(6 * 7)' >&9
t_ok '  and the shell lives' t_until 60 grep -q ^42 "$T/out"
exec 9>&-
wait $pid

# Ctrl-C while all wait for the compiler.
rm -rf "$T/gate" "$T/in" "$T/out"
mkdir "$T/gate"
mkfifo "$T/in"
XDG_CACHE_HOME=$T/colder FAKE_NVRTC_GATE=$T/gate "$MILLRACE" -i <"$T/in" >"$T/out" 2>&1 &
pid=$!
exec 9>"$T/in"
echo "dofile '$T/plans.lua' try()" >&9
t_ok 'workers compile' t_until 60 compiling
kill -INT $pid
t_ok 'Ctrl-C ends that' t_until 60 grep -q '^best	nil	interrupted	0' "$T/out"
t_is '  and the workers, but for that of the device' "$(ps -o pid= --ppid "$pid" | wc -l)" 1
exec 9>&-
wait $pid

#---- work while the device is at work ----------------------------------------------------------
cat >"$T/meanwhile.lua" <<'E'
dofile(arg[1])
local core = require "millrace.core"
local two, three = plans[2]:compile(), plans[3]:compile()   -- the third one hangs
local found, calls, got, built = mr.attached().name, 0, nil, nil
local function hang() return core.run(three, nil, {limit = 0.3}) end
local good, why = pcall(core.meanwhile, function()
  calls = calls + 1
  got = got or {mr.attached().name == found, select(2, pcall(core.run, two))}
  built = built or core.compile_begin(plans[4])
end, hang)
print(calls > 0, good, (tostring(why):match "and was stopped"))
print(got[1], (got[2]:gsub("^.*:%d+: ", "")))
print("compiled", built:kernel().registers > 0, core.run(two).C ~= nil)
calls = 0
print(pcall(core.meanwhile, function() calls = calls + 1 error("mine", 0) end, hang))
print(calls, core.meanwhile(print, function(...) return core.run(two).C ~= nil, ... end, 1, nil, 3))
print(pcall(core.meanwhile, nil, hang))
print(pcall(core.meanwhile, print, nil))
print(pcall(core.meanwhile, function() error() end, hang))
print((select(2, pcall(core.meanwhile, print, core.meanwhile, print, hang)):gsub("^.*:%d+: ", "")))
-- Each call is in the thread that waits, also behind one in which a coroutine has called the program.
local first, others = 0, 0
pcall(core.meanwhile, function()
  if select(2, coroutine.running()) then first = first + 1 else others = others + 1 end
  coroutine.wrap(mr.attached)()
end, hang)
print(first > 1, others)
E
FAKE_CUDA_KERNELS="$b3=hang" t_cmd 'a function that is called while the device is at work' 0 "$MILLRACE" "$T/meanwhile.lua" "$T/plans.lua"
t_out '  can compile, and ask what the device is; it cannot use it, and its error comes last' <<'E'
true	false	and was stopped
true	the device works for another call
compiled	true	true
false	mine
1	true	1	nil	3
false	bad argument #1 to 'millrace.core.meanwhile' (function expected, got nil)
false	bad argument #2 to 'millrace.core.meanwhile' (function expected, got nil)
false	true
meanwhile: another function is called meanwhile
true	0
E
t_done
