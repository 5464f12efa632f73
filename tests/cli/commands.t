# Subcommands for plans in files: check, diff, show, predict, run.
. tests/lib.sh
top=$PWD
cp examples/attention_overlap.lua "$T/" && mkdir "$T/plans" && cd "$T" || exit

cat >scale.lua <<'E'
local mr = require "millrace"
return mr.program("scale", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}))
  p:output("Y", {m, n}):store("store_y", p:task("double", function() return x * 2 end))
end)
E
"$MILLRACE" - <<'E'
local plan = mr.plan(dofile "scale.lua"{m=128, n=128}:graph{tile={m=64, n=64}}, mr.device "h200")
for _, task in ipairs(plan.tasks) do plan:append(task.name) end
plan:fill_waits()
plan:save "plans/scale.lua"
plan:move("load_x", {at=1})
plan:save "plans/ahead.lua"
local gemm = mr.load_plan("gemm_cooperative", mr.examples.gemm{m=512, n=512, k=512})
gemm:unwait("mma.0", "load_a")
gemm:save "plans/broken.lua"
E

# check
t_cmd 'check of legal plans' 0 "$MILLRACE" check --program scale.lua plans/scale.lua plans/ahead.lua attention_overlap.lua
t_out 'says so' <<'E'
plans/scale.lua: legal
plans/ahead.lua: legal
attention_overlap.lua: legal
E
t_cmd 'check of a plan that is not' 1 "$MILLRACE" check attention_overlap.lua plans/broken.lua
line=$(grep -n 'append("mma.0"' plans/broken.lua) line=${line%%:*}
t_like 'names the line of its script' "$(<"$T/out")" "^plans/broken\.lua:$line: missing_wait: .*'mma\.0' .*'load_a'"
t_like 'and the repair' "$(<"$T/out")" '^  repair: plan:wait\("mma\.0", \{"load_a"\}\)'
t_like 'and checks the others' "$(<"$T/out")" '^attention_overlap\.lua: legal$'
t_cmd 'the same as JSON, and a file that is not there' 2 "$MILLRACE" check --json attention_overlap.lua plans/broken.lua plans/none.lua
t_is 'an object a line' "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    x = json.loads(line)
    print(x["file"], x["legal"], [(p["line"], p["code"]) for p in x.get("problems", [])], x.get("error"))' "$T/out")" \
	"attention_overlap.lua True [] None
plans/broken.lua False [($line, 'missing_wait')] None
plans/none.lua False [] plans/none.lua: cannot be opened: No such file or directory"
t_cmd 'a plan of a program that is elsewhere' 2 "$MILLRACE" check plans/scale.lua
t_err 'says how to give it' "^plans/scale\.lua:[0-9]+: this plan is for program 'scale': give the file that returns it: --program FILE$"
echo 'return require("millrace").program("scales", function(p)
  local m, n = p:axes("m", "n")
  p:output("Y", {m, n}):store("store_y", p:load("load_x", p:input("X", {m, n})))
end)' >scales.lua
t_cmd 'a plan of a program that is not in what --program gives' 2 "$MILLRACE" check --program scales.lua plans/scale.lua
t_err 'says which ones are there' "^plans/scale\.lua:[0-9]+: this plan is for program 'scale': --program has scales; did you mean 'scales'\?$"

cat >unaligned.lua <<'E'
local bound = require "millrace".examples.gemm{m=512, n=512, k=516}
local plan = require "millrace".load_plan("gemm_by_threads", bound)
for _, t in ipairs(plan.tasks) do if t.kind == "load" then plan:move(t.name, {seu="tma"}) end end
E
t_cmd 'check of a plan whose loads threads copy' 0 "$MILLRACE" check unaligned.lua
joined="^unaligned\.lua:3: note: by_threads: 'load_a' and 'load_b' are copied by the threads of their lane, 8 bytes at a time: rows of 'A' and 'B' have 1032 bytes, "
t_like 'says so, once for both' "$(<"$T/out")" "$joined"
t_is 'and not twice' "$(grep -c by_threads "$T/out")" 1
t_like 'and what to do' "$(<"$T/out")" "^  try: pad axis 'k' with zeros to a multiple of 8, or give lane 'p0' more warps$"
t_like 'and that it is legal' "$(<"$T/out")" '^unaligned\.lua: legal$'
t_cmd 'its time' 0 "$MILLRACE" predict unaligned.lua
t_like 'comes with the same' "$(<"$T/out")" "$joined"
t_is 'which stands before it, as in check' "$(sed 's/: .*//' "$T/out" | tr '\n' ' ')" 'unaligned.lua:3   try unaligned.lua '
t_cmd 'the same as JSON' 0 "$MILLRACE" check --json unaligned.lua
t_like 'has notes' "$(<"$T/out")" '"notes": \[\{"file": "unaligned\.lua", "line": 3, "code": "by_threads"'
echo 'print(plan:check())' >>unaligned.lua
t_like 'in a script, too' "$("$MILLRACE" unaligned.lua | tr -s ' \n' ' ')" "unaligned\.lua:3: note: by_threads: 'load_a' and 'load_b' are copied by the threads"

t_like 'and a search' "$("$MILLRACE" -e 'print((mr.search(mr.examples.gemm{m=512, n=512, k=516}, mr.device "h200", {trials=20})))')" \
	'^by_threads: the copy engine cannot do load_a, load_b; r\.plan:check\(\) says why, and what to do$'

mkdir both
cp scale.lua both/
sed 's/"scale"/"other"/' scale.lua >both/other.lua
t_cmd 'programs of a folder' 0 "$MILLRACE" check --program both plans/scale.lua
t_cmd 'of several files, after one --program' 2 "$MILLRACE" check --program both/other.lua both/scale.lua plans/scale.lua
t_err 'says how to give more' '^both/scale\.lua: it returns a program, not a plan: --program goes before each file with one, or before their folder$'
mkdir twice && cp scale.lua twice/a.lua && cp scale.lua twice/b.lua
t_cmd 'a folder with two programs of one name' 2 "$MILLRACE" check --program twice plans/scale.lua
t_err 'names both files' "^millrace check: two programs are called 'scale': those of twice/a\.lua and twice/b\.lua; give one of these files$"
t_cmd 'a folder with a file that is no program' 2 "$MILLRACE" check --program plans plans/scale.lua
t_err 'is refused' "^millrace check: plans/ahead\.lua:4: this plan is for program 'scale'"
mkdir mixed && cp scale.lua mixed/ && echo 'x = dofile "y.lua" print(x.y + 1)' >mixed/a.lua && echo 'return 1' >mixed/b.lua
t_cmd 'files of a folder that are no programs are passed over' 0 "$MILLRACE" check --program mixed plans/scale.lua
sed -i 's/"scale"/"other"/' mixed/scale.lua
t_cmd 'and named' 2 "$MILLRACE" check --program mixed plans/scale.lua
t_err 'if the program is in none of the others' "passed over: mixed/a\.lua.*; mixed/b\.lua returns no program"
t_cmd 'a plan from standard input' 0 eval 'cat plans/scale.lua | "$MILLRACE" check --program scale.lua -'
t_is 'is checked' "$(<"$T/out")" '/dev/stdin: legal'
t_cmd 'also by its name' 0 eval 'cat plans/scale.lua | "$MILLRACE" check --program scale.lua /dev/stdin'
t_cmd 'and from a file' 0 eval '"$MILLRACE" check --program scale.lua - <plans/scale.lua'

cat >script.lua <<'E'
local mr = require "millrace"
local m <const> = math.max(128, 64)
local own = mr.program("own", function(p)
  local axis = p:axes("m")
  p:output("Y", {axis}):store("store_y", p:task("fill", function() return axis:index() * 2 end))
end)
local plan = mr.plan(own{m=m}:graph{}, mr.device "h200")
plan:append "fill"
print(plan:check(), plan:simulate(), mr.search(own{m=m}).plan)
io.open("touched", "w"):write("cycles: " .. plan:simulate().cycles / 2)
local kernel = plan:compile{target="host"}
for i, outputs in ipairs{kernel:run(own{m=m}:inputs())} do print(i, outputs.Y:get(1)) end
plan:append "store_y"
plan:remove "fill"
for i = 1, #arg do plan:append(arg[i]) end
E
t_cmd 'check of an ordinary script' 1 "$MILLRACE" check script.lua
t_out 'that ends with a plan that is not legal' <<'E'
script.lua:7: missing_task: sTask 'fill' is not in the plan
  repair: plan:insert("fill", {before="store_y", seu="cuda", lane="c0"})
script.lua:10: note: no_effect: io does nothing here, as a plan's file is data; run as a script, it would
E
t_ok 'and it has done nothing else' test ! -e touched
printf 'os.execute "touch touched"\n' | cat - attention_overlap.lua >acts.lua
t_cmd 'check of a plan that runs a command' 0 "$MILLRACE" check acts.lua
t_out 'says that it has no effect' <<'E'
acts.lua:1: note: no_effect: os does nothing here, as a plan's file is data; run as a script, it would
acts.lua: legal
E
t_cmd 'the same as JSON' 0 "$MILLRACE" check --json acts.lua
t_like 'is a note' "$(<"$T/out")" '"notes": \[\{"file": "acts\.lua", "line": 1, "code": "no_effect"'
t_ok 'and it has none' test ! -e touched
printf 'while true do end' >endless.lua
t_cmd 'check of what does not end' 2 "$MILLRACE" check endless.lua
t_is 'says it at its line, once' "$(<"$T/err")" 'endless.lua:1: it takes more than 5 million steps'
{ sed '/^print/,$d' script.lua; echo 'if plan:simulate().cycles < 1 then plan:append "store_y" end'; } >early.lua
t_cmd 'check of a script that needs what is not done' 1 "$MILLRACE" check early.lua
t_like 'says up to where it is checked' "$(<"$T/out")" \
	"^early\.lua:9: attempt to compare .* \(a plan's file is data and cannot use 'simulate' .*\); what comes before is checked$"
"$MILLRACE" -e 'mr.load_plan("gemm_cooperative"):save "right.lua"'
for name in 's/plan:buffers/plan:bufers/' 's/plan:grid/plan:gird/' 's/^return/mr.nope() return/'; do
	sed "$name" right.lua >misspelt.lua
	for command in check predict; do
		t_cmd "$command of a plan with a misspelt name, $name" 2 "$MILLRACE" $command misspelt.lua
		t_err '  says it at its line' '^misspelt\.lua:[0-9]+: .*(no .bufers.*buffers|no .gird.*grid|cannot use mr\.nope)'
	done
done
echo 'x = = 1' >syntax.lua
t_cmd 'check of what is no Lua' 2 "$MILLRACE" check syntax.lua scale.lua .
t_err 'says where' '^syntax\.lua:1: unexpected symbol'
t_err 'of a program' '^scale\.lua: it returns a program, not a plan: '
t_err 'and of a folder' '^\.: this is a folder, not a file; give its files: \./\*\.lua$'
echo 'return 1' >nothing.lua
t_cmd 'check of what makes nothing' 2 "$MILLRACE" check nothing.lua
t_err 'says so' '^nothing\.lua: it makes no plan$'
t_cmd 'check of names' 2 "$MILLRACE" check plans gemm_coperative
t_err 'says of a folder what to give' '^plans: this is a folder, not a file; give its files: plans/\*\.lua$'
t_err 'and which plans there are' "^gemm_coperative: no plan 'gemm_coperative' comes with Millrace; did you mean 'gemm_cooperative'\? To load a file"

# A script is no file of a plan: the explorer must not propose to replace it.
"$MILLRACE" -e 'local core = require "millrace.core"
core.method("millrace.plan", "show", function(plan, _) print(plan.path) end)
local commands = require "millrace.commands"
commands.show("script.lua") commands.show("--program", "scale.lua", "plans/scale.lua") commands.show("attention_overlap")' >"$T/out" 2>&1
t_out 'only the file of a plan is where it may be saved to' <<'E'
nil
plans/scale.lua
nil
E

# diff
t_cmd 'diff of equal plans' 0 "$MILLRACE" diff attention_overlap.lua attention_overlap
t_is 'prints nothing' "$(<"$T/out")" ''
t_cmd 'diff of others' 1 "$MILLRACE" diff --program scale.lua plans/scale.lua plans/ahead.lua
t_out 'prints the statements' <<'E'
--- plans/scale.lua
+++ plans/ahead.lua
  plan:lane("c0", {})
- plan:append("load_x", {seu="tma", lane="p0"})
+ plan:append("load_x", {seu="tma", lane="p0", at=1})
  plan:append("double", {seu="cuda", lane="c0"})
E
sed 's/m=128/m=256/' plans/scale.lua >larger.lua
t_cmd 'diff of plans for other sizes' 1 "$MILLRACE" diff --program scale.lua plans/scale.lua larger.lua
t_out 'prints these' <<'E'
--- plans/scale.lua
+++ larger.lua
  local mr = require "millrace"
- local bound = mr.bound(..., "scale", {m=128, n=128})
+ local bound = mr.bound(..., "scale", {m=256, n=128})
  local plan = mr.plan(bound:graph{tile={m=64, n=64}}, mr.device "h200")
E
t_cmd 'diff --json' 1 "$MILLRACE" diff --json --program scale.lua plans/scale.lua plans/ahead.lua
t_out 'is an object' <<'E'
{"from": "plans/scale.lua", "to": "plans/ahead.lua", "equal": false, "removed": ["plan:append(\"load_x\", {seu=\"tma\", lane=\"p0\"})"], "added": ["plan:append(\"load_x\", {seu=\"tma\", lane=\"p0\", at=1})"], "diff": "  plan:lane(\"c0\", {})\n- plan:append(\"load_x\", {seu=\"tma\", lane=\"p0\"})\n+ plan:append(\"load_x\", {seu=\"tma\", lane=\"p0\", at=1})\n  plan:append(\"double\", {seu=\"cuda\", lane=\"c0\"})"}
E
t_cmd 'diff --json of equal plans' 0 "$MILLRACE" diff --json attention_overlap.lua attention_overlap
t_is 'is one, too' "$(<"$T/out")" \
	'{"from": "attention_overlap.lua", "to": "attention_overlap", "equal": true, "removed": [], "added": [], "diff": ""}'
t_cmd 'diff of what comes through a pipe of the shell' 1 "$MILLRACE" diff --program <(sleep 0.2; cat scale.lua) <(cat plans/scale.lua) plans/ahead.lua
t_is 'is the same' "$(sed 1,2d "$T/out")" '  plan:lane("c0", {})
- plan:append("load_x", {seu="tma", lane="p0"})
+ plan:append("load_x", {seu="tma", lane="p0", at=1})
  plan:append("double", {seu="cuda", lane="c0"})'
t_cmd 'run of one' 0 "$MILLRACE" run --on host --sizes m=64 --program scale.lua <(cat plans/scale.lua)
mkfifo named
t_cmd 'a named pipe' 2 timeout 10 "$MILLRACE" check named
t_is 'is refused, as nobody may write to it' "$(<"$T/err")" 'named: this is a device or a pipe, not a file'
t_cmd 'diff with a plan that is not there' 2 "$MILLRACE" diff attention_overlap.lua plans/none.lua
t_err 'says so' '^plans/none\.lua: cannot be opened: No such file'

# show, predict, run
t_cmd 'show' 0 "$MILLRACE" show --program scale.lua plans/scale.lua
t_like 'prints the plan, where there is no terminal' "$(<"$T/out")" '^lane p0: '
t_cmd 'show of two' 0 "$MILLRACE" show attention_serial attention_overlap
t_like 'names both' "$(<"$T/out")" '^from attention_serial to attention_overlap:$'
t_like 'and shows the statements that differ' "$(<"$T/out")" '^- plan:buffers\{k=2, v=2\}$'
t_like 'and both times' "$(<"$T/out")" '^attention_serial 1\.[0-9]+ ms .*; attention_overlap 1\.[0-9]+ ms '
t_cmd 'show of two, of which one is not legal' 1 "$MILLRACE" show attention_serial plans/broken.lua
t_err 'says which, and where' "^plans/broken\.lua:$line: missing_wait: .*'mma\.0' .*'load_a'"
t_like 'in a script, too' "$("$MILLRACE" -e 'local b = mr.load_plan "attention_serial" mr.show(b, mr.load_plan "./attention_overlap.lua")' </dev/null)" \
	'^from attention_serial to \./attention_overlap\.lua:$'
mkdir -p more
cp "$MILLRACE_HOME"/examples/attention_overlap.lua more/one_overlap.lua
cp "$MILLRACE_HOME"/examples/attention_pingpong.lua more/one_pingpong.lua
"$MILLRACE" show more/one_overlap.lua more/one_pingpong.lua >"$T/out" 2>&1
t_like 'the names of files above columns differ' "$(<"$T/out")" '^sTask +lane +overlap +pingpo\. +ratio'
mkdir -p more/a more/b
cp more/one_overlap.lua more/a/p.lua
cp more/one_pingpong.lua more/b/p.lua
"$MILLRACE" show more/a/p.lua more/b/p.lua >"$T/out" 2>&1
t_like '  or are first and second' "$(<"$T/out")" '^sTask +lane +(a/p|first) +(b/p|second) +ratio'
t_cmd 'check for another device' 0 "$MILLRACE" check --device h100 more/one_overlap.lua
t_is 'says which' "$(<"$T/out")" 'more/one_overlap.lua: legal on h100'
t_cmd 'predict for another device' 0 "$MILLRACE" predict --device h100 more/one_overlap.lua
t_like 'is for it' "$(<"$T/out")" ' on h100$'
t_cmd 'check for a device whose units are others' 2 "$MILLRACE" check --device a100 more/one_overlap.lua
t_err 'says where' "^more/one_overlap\.lua:[0-9]+: 'a100' has no sEU 'tma' \(the plan is loaded for a100\); mr\.search\(program, mr\.device \"a100\"\) finds a plan for its units$"
t_cmd 'check for no device' 2 "$MILLRACE" check --device h101 more/one_overlap.lua
t_err 'names the nearest' "^millrace check: device: unknown device 'h101'; did you mean 'h100'"
t_cmd 'a value behind =' 0 "$MILLRACE" check --device=h100 --program=scale.lua plans/scale.lua
t_is '  is as one behind a space' "$(<"$T/out")" 'plans/scale.lua: legal on h100'
echo 'local plan = mr.plan()' >more/no_device.lua
t_cmd 'check for what is no file of a device' 2 "$MILLRACE" check --device more/no_device.lua plans/scale.lua
t_err 'says so' '^millrace check: --device: more/no_device\.lua is not the file of a device: .*:1: '
t_cmd 'code that is missing' 2 "$MILLRACE" -e
t_err 'is asked for' '^millrace: -e needs code behind it'
t_cmd 'show of three' 2 "$MILLRACE" show attention_serial attention_overlap attention_pingpong
t_err 'are too many' '^millrace show: 3 files are given, at most 2 can be$'
t_cmd 'predict' 0 "$MILLRACE" predict attention_overlap.lua
t_like 'says the time and its uncertainty' "$(<"$T/out")" \
	'^attention_overlap\.lua: predicted [0-9.]+ ms \+- [0-9.]+ %, [0-9]+ TFLOP/s; flash_attention b=2 h=16 .* on h200$'
t_cmd 'predict of a program with an option' 0 "$MILLRACE" predict attention_d128_causal
t_like 'names it' "$(<"$T/out")" '; flash_attention b=2 .* causal=true on h200$'
t_cmd 'predict --json of it' 0 "$MILLRACE" predict --json attention_d128_causal
t_like 'has it, too' "$(<"$T/out")" '"options": ?"causal=true"'
t_like '  and the sizes as text and as numbers' "$(<"$T/out")" '"sizes": "b=2 h=16 .*", "sizes_by_axis": \{"b": 2, "h": 16, '
t_cmd 'predict where power is left out' 0 "$MILLRACE" predict --device h100 attention_d128_causal
t_like 'says so' "$(<"$T/out")" '; clock not limited by power: this device has no power model; flash_attention .* on h100$'
t_cmd 'predict --json, one plan not legal' 1 "$MILLRACE" predict --json attention_overlap.lua plans/broken.lua
t_is 'an object a line, with its evidence' "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    x = json.loads(line)
    print(x["file"], x["legal"], x.get("evidence"), x.get("seconds", 0) > 0, x.get("uncertainty", 0) > 0)' "$T/out")" \
	'attention_overlap.lua True predicted True True
plans/broken.lua False None False False'
"$MILLRACE" check --json plans/broken.lua >checked.json
t_is 'of one that is not legal, the problems, as check has them' "$(tail -1 "$T/out")" "$(<checked.json)"
t_cmd 'run' 0 "$MILLRACE" run --program scale.lua --on host plans/scale.lua
t_like 'compares with the reference' "$(<"$T/out")" '^plans/scale\.lua: on the CPU, it agrees with the reference'
t_cmd 'run of a large plan without a device' 3 env CUDA_VISIBLE_DEVICES= "$MILLRACE" run attention_overlap.lua
t_err 'says how long it takes, and for which sizes less' \
	'^attention_overlap\.lua: no device is attached, and .* flops take the CPU some [0-9]+ minutes; --sizes b?=?[0-9]*.*m=[0-9]+,n=[0-9]+ is faster;'
t_like '  and how to run it anyway' "$(<"$T/err")" '; --on host --limit [0-9]+ does it anyway$'
t_cmd 'run on a device that is not there' 3 env CUDA_VISIBLE_DEVICES= MILLRACE_LIBCUDA=/nosuch.so "$MILLRACE" run --on cuda attention_overlap.lua
t_err 'says that nothing was run' '^attention_overlap\.lua: no device is attached, so that nothing was run: .*; --on host runs it on the CPU$'
t_cmd 'run at sizes for which a plan is not legal' 1 "$MILLRACE" run --json --sizes n=64,m=100 attention_pingpong
t_like 'says that it is not, and the sizes' "$(<"$T/out")" '"legal": false, .* m=100 .* n=64 .*"m": 100, .*"status": "failed"'
t_cmd 'run of a large plan on the CPU' 3 "$MILLRACE" run --on host attention_overlap.lua
t_is 'says one time that it takes too long, and what to do' "$(sed -E 's/[0-9.]+e\+[0-9]+/F/; s/some [0-9]+/some N/; s/--limit [0-9]+/--limit N/; s/[a-z]+=[0-9]+(,[a-z]+=[0-9]+)*/SIZES/' "$T/err")" \
	'attention_overlap.lua: F flops take the CPU some N minutes, and it has 60 s; --sizes SIZES is faster; --limit N gives it four times as long'
t_is '  and nothing else' "$(<"$T/out")" ''
t_cmd 'the same for sizes that are still too large' 3 "$MILLRACE" run --on host --sizes m=4096,n=4096 attention_overlap.lua
t_err 'proposes smaller ones' '; --sizes m=512,n=512 is faster;'
t_cmd 'run for sizes by program' 0 "$MILLRACE" run --on host --sizes m=1,q=1 --sizes scale:m=192 --program scale.lua plans/scale.lua
t_like 'takes those of the program alone' "$(<"$T/out")" '^plans/scale\.lua: on the CPU, it agrees with the reference'
t_cmd 'run for sizes of a program that there is not' 2 "$MILLRACE" run --on host --sizes scal:m=64 --sizes m=64 --program scale.lua plans/scale.lua
t_is '  and runs none' "$(<"$T/out")" ''
t_err 'names it' "^millrace run: --sizes scal:\.\.\.: no plan here is of a program 'scal'; did you mean 'scale'\?$"
t_cmd 'run for other sizes' 0 "$MILLRACE" run --on host --sizes m=64 --program scale.lua plans/scale.lua
t_like 'compares these' "$(<"$T/out")" '^plans/scale\.lua: on the CPU, it agrees with the reference'
t_cmd 'run for an axis that there is not' 2 "$MILLRACE" run --on host --sizes z=64 --program scale.lua plans/scale.lua attention_overlap.lua
t_is '  runs nothing' "$(<"$T/out")" ''
t_err 'names it' "^millrace run: plans/scale\.lua: --sizes: bind: unknown size or option 'z' of 'scale' .*; sizes for this program alone: --sizes scale:NAME=N,\.\.\.$"
cat >more/three.lua <<'E'
local bound = ... or mr.examples.gemm{m=1536, n=1024, k=256}
local plan = mr.plan(bound:graph{tile={m=192, n=64, k=64}}, mr.device "h200")
plan:split("m", 3)
plan:lane("p0", {})
for i = 0, 2 do plan:lane("c" .. i, {warps=4}) end
for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane=task.kind == "load" and "p0" or "c" .. task.name:match "%d$"}) end
plan:fill_waits()
return plan
E
t_cmd 'run for sizes less than its tile' 1 "$MILLRACE" run --on host --sizes m=128,n=64,k=64 more/three.lua
t_err 'says what does not fit' "^more/three\.lua:3: 'mma' cannot be split 3 ways along 'm'"
t_err 'and which sizes do' '^more/three\.lua: its tile is k=64, m=192, n=64; --sizes k=64,m=192,n=64 fits$'
t_cmd '  as they do' 0 "$MILLRACE" run --on host --sizes k=64,m=192,n=64 more/three.lua
cat >more/residual.lua <<'E'
local mr = require "millrace"
return mr.program("residual", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, W, R = p:input("X", {m, k}), p:input("W", {n, k}), p:input("R", {m, n})
  local acc = p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W))) end)
  local r = p:load("load_r", R)
  p:output("Y", {m, n}):store("store_y", p:task("epilogue", function() return (acc + r):to "bf16" end))
end)
E
cat >more/deep.lua <<'E'
local mr = require "millrace"
local bound = mr.bound(..., "residual", {m=4096, n=4096, k=4096})
local plan = mr.plan(bound:graph{tile={m=64, n=64, k=64}}, mr.device "h200")
plan:lane("c0", {warps=4})
plan:lane("p0", {})
plan:buffers{x=3, w=3}
for _, name in ipairs{"mma", "epilogue", "store_y"} do plan:append(name, {lane="c0"}) end
for _, name in ipairs{"load_x", "load_w", "load_r"} do plan:append(name, {lane="p0"}) end
plan:fill_waits()
return plan
E
"$MILLRACE" - <<'E'
mr.load_plan("more/deep.lua", dofile "more/residual.lua"):save "more/kept.lua"
E
t_cmd 'run for a loop that is shorter than its rings are deep' 1 "$MILLRACE" run --on host --sizes m=128,n=128,k=192 --program more/residual.lua more/kept.lua
t_err 'says so, and how long it is to be' \
	'^more/kept\.lua: the loop over k has 3 iterations, and rings have up to 3 versions; --sizes k=256,m=128,n=128 fits$'
t_cmd '  as it does' 0 "$MILLRACE" run --on host --sizes k=256,m=128,n=128 --program more/residual.lua more/kept.lua
t_cmd 'run with what are no sizes' 2 "$MILLRACE" run --sizes 64 plans/scale.lua
t_err 'says what they look like' '^millrace run: --sizes is NAME=N,\.\.\., as in m=256,n=256, not .64.$'
t_cmd 'a size twice' 2 "$MILLRACE" run --sizes m=128,n=64,n=32 plans/scale.lua
t_err 'is refused' '^millrace run: --sizes m=128,n=64,n=32: n is given twice, as 64 and as 32$'
t_cmd 'a size below 1' 2 "$MILLRACE" run --sizes m=-5 plans/scale.lua
t_err 'too' '^millrace run: --sizes m=-5: a size is an integer of at least 1, not -5$'
t_cmd 'run --json' 1 "$MILLRACE" run --json --on host --sizes m=64 --program scale.lua plans/scale.lua plans/broken.lua
t_is 'an object a line' "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    x = json.loads(line)
    c = x.get("check") or {}
    print(x["file"], x["legal"], x.get("status"), x.get("target"), x.get("sizes_by_axis"), c.get("ok"), c.get("wrong"), c.get("notes"),
        [p["code"] for p in x.get("problems", [])])' "$T/out")" \
	"plans/scale.lua True agrees host {'m': 64, 'n': 128} True 0 [] []
plans/broken.lua False None None None None None None ['missing_wait']"
t_cmd 'run --json of what is too slow' 3 "$MILLRACE" run --json --on host attention_overlap.lua
t_is 'says so in the object' "$(python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(x["status"], x["check"], "gives it" in x["error"])' "$T/out")$(<"$T/err")" 'slow None True'
cat >more/make_wide.lua <<'E'
local bound = ... or dofile "scale.lua"{m=4096, n=4096}
local plan = mr.plan(bound:graph{tile={m=64, n=64}}, mr.device "h200")
for _, task in ipairs(plan.tasks) do plan:append(task.name) end
plan:fill_waits()
plan:save "more/wide.lua"
plan:unwait("load_x", "double")
plan:save "more/unkept.lua"
E
"$MILLRACE" more/make_wide.lua
t_cmd 'run of what is too slow here is not wrong' 3 env CUDA_VISIBLE_DEVICES= "$MILLRACE" run --limit 0.01 --program scale.lua more/wide.lua
t_err 'it says at once where it runs, and which sizes are faster' \
	'^more/wide\.lua: no device is attached: it runs on the CPU, for m=4096, n=4096; --sizes m=256,n=256 is faster$'
t_err '  and that nothing is known' '^more/wide\.lua: too slow for the CPU, .* did not finish within 0\.01 s; --sizes m=256,n=256 is faster; --limit S'
t_cmd 'run for no time' 2 "$MILLRACE" run --limit none plans/scale.lua
t_err 'says what a limit is' "^millrace run: --limit is a number of seconds, not 'none'$"
t_cmd 'run of an illegal plan for sizes that hide it' 1 "$MILLRACE" run --on host --sizes m=64,n=64 --program scale.lua more/unkept.lua
t_err 'says what is wrong' '^more/unkept\.lua:[0-9]+: missing_wait: '
t_is '  and proposes no sizes' "$(grep -c -e --sizes "$T/err")" 0
t_cmd 'run of a plan that is not legal' 1 "$MILLRACE" run --on host plans/broken.lua
t_err 'says why' '^plans/broken\.lua:[0-9]+: missing_wait: '

cat >more/open.lua <<'E'
local bound = ... or mr.examples.gemm{m=mr.any{max=512, typical={1, 100}}, n=mr.any{max=512, multiple=8}, k=256}
local plan = mr.plan(bound:graph{tile={m=64, n=64, k=64}}, mr.device "h200")
plan:lane("p0", {})
for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane=task.kind == "load" and "p0" or "c0"}) end
plan:fill_waits()
return plan
E
t_cmd 'run of a plan whose sizes are known at launch, for a size beyond its range' 2 "$MILLRACE" run --on host --sizes m=600 more/open.lua
t_err 'is refused, as its kernel does' '^millrace run: more/open\.lua: --sizes: m is 600, and the program is for 1 to 512; '
t_cmd '  and for no multiple' 2 "$MILLRACE" run --on host --sizes m=100,n=100,k=64 more/open.lua
t_err 'too' '^millrace run: more/open\.lua: --sizes: n is 100, and the program is for multiples of 8; '
t_cmd '  and for sizes within it' 0 "$MILLRACE" run --on host --sizes m=100,n=72,k=512 more/open.lua
t_like 'launches its kernel with them' "$(<"$T/out")" '^more/open\.lua: on the CPU for m=100, n=72, it agrees with the reference'
t_cmd '  and where no device is attached' 0 "$MILLRACE" run --sizes m=40,k=512 more/open.lua
t_err 'says the sizes of the launch' '^more/open\.lua: no device is attached: it runs on the CPU, for k=512, m=40, n=512'
t_cmd '  and as JSON' 0 "$MILLRACE" run --json --on host --sizes m=100,k=512 more/open.lua
t_is 'has the range and the size' "$(python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(x["sizes"], x["sizes_by_axis"], x["typical"])' "$T/out")" "m<=512 n<=512 k=512 {'m': 100, 'n': 512, 'k': 512} []"
t_cmd '  and without sizes' 0 "$MILLRACE" run --on host more/open.lua
t_is 'compares the largest and the typical ones' "$(sed 's/, it agrees.*//' "$T/out")" 'more/open.lua: on the CPU for m=512, n=512
more/open.lua: on the CPU for m=1, n=512
more/open.lua: on the CPU for m=100, n=512'
t_cmd '  and as JSON' 0 "$MILLRACE" run --json --on host more/open.lua
t_is 'too' "$(python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(x["sizes_by_axis"], [(t["sizes"]["m"], t["check"]["ok"]) for t in x["typical"]])' "$T/out")" "{'m': 512, 'n': 512, 'k': 256} [(1, True), (100, True)]"

# The job of docs/howto/schedules-under-ci.md: its commands, in a repository like the one that it is for.
# After a step that failed, those with `if: ${{ !cancelled() }}` are run.
python3 -c 'import re, sys
text = open(sys.argv[1]).read()
open("hook.sh", "w").write(re.search(r"```sh\n(.*?)```", text, re.S).group(1))
print("status=0")
for step in re.search(r"```yaml\n(.*?)```", text, re.S).group(1).split("\n      - ")[1:]:
    block = re.search(r"run: \|\n((?:          .*(?:\n|$)|\n)+)", step)
    if block and "git clone" not in step:
        print("!cancelled()" in step and "true" or "[ $status = 0 ]", "&& { bash -e <<\"STEP\" || status=1")
        print(re.sub("(?m)^          ", "", block.group(1)) + "\nSTEP\n}")
print("exit $status")' "$top/docs/howto/schedules-under-ci.md" >job.sh
mkdir programs bin && mv scale.lua programs/ && mv plans/broken.lua . && ln -s "$MILLRACE" bin/millrace
git init -q -b main && git config user.email a@b && git config user.name a && git add programs plans && git commit -qm one
cp plans/ahead.lua plans/scale.lua && git commit -qam two
t_cmd 'the CI job of the guide' 0 env PATH="$T/bin:$PATH" BASE=HEAD~1 bash -e job.sh
t_like 'checks the plans' "$(<"$T/out")" '^plans/scale\.lua: legal$'
t_like 'shows what has changed' "$(<"$T/out")" '^\+ plan:append\("load_x", \{seu="tma", lane="p0", at=1\}\)$'
t_like 'and predicts' "$(<predicted.jsonl)" '"evidence": "predicted"'
cp broken.lua plans/
t_cmd 'it fails' 1 env PATH="$T/bin:$PATH" BASE=HEAD~1 bash -e job.sh
t_like 'for a plan that is not legal' "$(<"$T/out")" '^plans/broken\.lua:[0-9]+: missing_wait: '
t_like 'and still shows what has changed' "$(<"$T/out")" '^\+ plan:append\("load_x", \{seu="tma", lane="p0", at=1\}\)$'

# Its hook.
rm plans/broken.lua && install -m 755 hook.sh .git/hooks/pre-commit
t_cmd 'the hook lets a commit without plans pass' 0 env PATH="$T/bin:$PATH" git commit -q --allow-empty -m none
sed 's/m=128/m=256/' plans/scale.lua >larger.lua && cp larger.lua plans/scale.lua && git add plans && cp broken.lua plans/scale.lua
t_cmd 'checks what is staged' 0 env PATH="$T/bin:$PATH" git commit -q -m larger
git add plans && cp larger.lua plans/scale.lua
t_cmd 'and stops the commit of a plan that is not legal' 1 env PATH="$T/bin:$PATH" git commit -q -m broken
t_like 'which it names' "$(cat "$T/out" "$T/err")" '^plans/scale\.lua:[0-9]+: missing_wait: '

# the command line
usage=$("$MILLRACE" --help)
for command in check diff show predict run; do
	t_cmd "$command --help" 0 "$MILLRACE" "$command" --help
	t_like 'says how it is used' "$(<"$T/out")" "^usage: millrace $command "
	t_cmd "$command alone" 2 "$MILLRACE" "$command"
	t_like 'millrace --help lists it' "$usage" "^ +millrace $command "
done
t_like 'with the files that it takes' "$usage" '^ +millrace run FILE\.\.\. +its kernel'
t_cmd '--help in spite of a wrong MILLRACE_HOME' 0 env MILLRACE_HOME=/nowhere "$MILLRACE" --help
t_is 'prints the same' "$(<"$T/out")" "$usage"
t_cmd 'an unknown option' 2 "$MILLRACE" check --jsn x.lua
t_err 'has a hint' "^millrace check: unknown option '--jsn'; did you mean '--json'\?$"
t_is 'and not the usage, which --help has' "$(tail -n +2 "$T/err")" 'see millrace check --help'
t_cmd 'a wrong value of an option' 2 "$MILLRACE" check --device h101 x.lua
t_is 'is said in two lines' "$(<"$T/err")" "$(printf '%s\n' "$(sed -n 1p "$T/err")" 'see millrace check --help')"
t_is 'failures stand in the order of the files, in a pipe, too' \
	"$("$MILLRACE" check attention_overlap.lua plans/none.lua attention_overlap.lua 2>&1 | sed "s/:.*//")" \
	"$(printf 'attention_overlap.lua\nplans/none.lua\nattention_overlap.lua')"
t_cmd 'a program that is not there' 2 "$MILLRACE" check --program none.lua plans/scale.lua
t_err 'is named' '^millrace check: program: cannot open none\.lua: No such file or directory$'
t_cmd 'a subcommand that is misspelt' 1 "$MILLRACE" chek x.lua
t_err 'has a hint, too' "^millrace: cannot open chek: No such file or directory; did you mean 'check'\?; --help lists"
echo 'print("a script", ...)' >check
t_cmd 'a script that is named like a subcommand' 0 "$MILLRACE" ./check x
t_is 'is run by its path' "$(<"$T/out")" 'a script	x'
t_cmd 'or behind --' 0 "$MILLRACE" -- check x
t_is 'as well' "$(<"$T/out")" 'a script	x'

cd "$top" || exit
t_done
