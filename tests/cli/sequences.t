# Subcommands for files that return a plan of a sequence: check, show, predict, run.
. tests/lib.sh
cd "$T" || exit

cat >mlp.lua <<'E2'
local mr = require "millrace"
local gemm = mr.examples.gemm
local mul = mr.program("mul", function(p)
  local m, f = p:axes("m", "f")
  local a, b = p:load("load_a", p:input("A", {m, f})), p:load("load_b", p:input("B", {m, f}))
  p:output("C", {m, f}):store("store_c", p:task("mul", function() return (a:to "f32" * b:to "f32"):to "bf16" end))
end)
return mr.sequence("mlp", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, y, w = s:input("x", {m, d}), s:output("y", {m, d}), s:input("w", {2, f, d})
  local g, u, h = s:temp("g", {m, f}), s:temp("u", {m, f}), s:temp("h", {m, f})
  s:call("gate", gemm{m=m, n=f, k=d, activation="silu"}, {A=x, B=w:rows(0, 1), C=g})
  s:call("up", gemm{m=m, n=f, k=d}, {A=x, B=w:rows(1, 1), C=u})
  s:call("mul", mul{m=m, f=f}, {A=g, B=u, C=h})
  s:call("down", gemm{m=m, n=d, k=f}, {A=h, B=s:input("wd", {d, f}), C=y})
end)
E2
"$MILLRACE" - <<'E2'
local sp = dofile "mlp.lua"{m=64, d=32, f=64}:plan("h200", {trials=50, measure=false})
for _, c in ipairs(sp.calls) do sp:launch(c.name, {stream=0, early=c.name ~= "gate", after={}}) end
sp:arena()
sp:save "good.lua"
sp:launch("up", {stream=1, early=false})
sp:save "bad.lua"
E2

t_cmd 'check of a legal plan' 0 "$MILLRACE" check --program mlp.lua good.lua
t_out 'says so' <<<'good.lua: legal'
t_cmd 'check of one that is not' 1 "$MILLRACE" check --program mlp.lua good.lua bad.lua
mul=$(grep -n 'launch("mul"' bad.lua) up=$(grep -n 'launch("up"' bad.lua)
t_like 'names both statements' "$(<"$T/out")" "^bad\.lua:${mul%%:*}: order: 'mul' reads 'u', which 'up' writes, .* in line ${up%%:*}$"
t_like 'and the repair' "$(<"$T/out")" '^  repair: sp:launch\("mul", \{stream=0, early=false, after=\{"up"\}\}\)$'
t_cmd 'as JSON' 1 "$MILLRACE" check --json --program mlp.lua good.lua bad.lua
t_is 'an object a line' "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    x = json.loads(line)
    print(x["file"], x["legal"], [(p["line"], p["other_line"], p["code"], p["call"], p["other"], p["tensor"]) for p in x["problems"]])' "$T/out")" \
	"good.lua True []
bad.lua False [(${mul%%:*}, ${up%%:*}, 'order', 'mul', 'up', 'u')]"
t_cmd 'without its program' 2 "$MILLRACE" check good.lua
t_err 'says how to give it' "this plan is for program 'mlp': give the file that returns it: --program FILE$"

t_cmd 'predict' 0 "$MILLRACE" predict --program mlp.lua good.lua
t_like 'the time' "$(<"$T/out")" '^good\.lua: predicted [0-9.]+ ms, .*; mlp\{d=32, f=64, m=64\} on h200$'
t_cmd 'predict as JSON' 0 "$MILLRACE" predict --json --program mlp.lua good.lua
t_is 'numbers' "$(python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(x["sequence"], x["given"], [k["name"] for k in x["kernels"]], abs(sum(k["seconds"] + k["gap"] for k in x["kernels"]) - x["seconds"]) < 1e-9)' "$T/out")" \
	"mlp {'d': 32, 'f': 64, 'm': 64} ['gate', 'up', 'mul', 'down'] True"
t_cmd 'predict of a plan that is not legal' 1 "$MILLRACE" predict --program mlp.lua bad.lua

t_cmd 'run' 0 "$MILLRACE" run --on host --program mlp.lua good.lua
t_like 'is compared with the reference' "$(<"$T/out")" '^good\.lua: on the CPU, it is right; '
t_cmd 'run as JSON' 0 "$MILLRACE" run --on host --json --program mlp.lua good.lua
t_is 'what was compared' "$(python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(x["status"], x["target"], [c["name"] for c in x["check"]["calls"]], x["check"]["ok"], x["benchmark"])' "$T/out")" \
	"agrees host ['gate', 'up', 'mul', 'down'] True None"
t_cmd 'run for other sizes' 0 "$MILLRACE" run --on host --sizes m=48 --program mlp.lua good.lua
t_cmd 'run of one that is not legal' 1 "$MILLRACE" run --on host --program mlp.lua bad.lua
t_cmd 'run for a size that there is not' 1 "$MILLRACE" run --on host --sizes z=128 --program mlp.lua good.lua

t_cmd 'show' 0 "$MILLRACE" show --program mlp.lua good.lua
t_like 'the plan' "$(<"$T/out")" '^down +gemm '
t_like 'and its timeline' "$(<"$T/out")" '^mlp on h200, predicted: '
t_cmd 'diff' 1 "$MILLRACE" diff --program mlp.lua good.lua bad.lua

# ---- a size that is left to the launch -------------------------------------------------------

cat >any.lua <<'E'
local mlp = dofile "mlp.lua"
local seq = mlp{m = mr.any{max = 128, multiple = 8, typical = {16, 64}}, d = 32, f = 64}
local sp = seq:plan("h200", {trials = 2, measure = false, fresh = true})
assert(mr.store:put{plan = sp, timeline = sp:simulate(), kind = "search"})
local row = mr.store:best(seq, "h200")
assert(row.sizes:find "m=128" and row:plan(seq):script() == sp:script())
assert(seq:plan("h200"):script() == sp:script())
assert(not mr.store:best(mlp{m = 128, d = 32, f = 64}, "h200"))
assert(not mr.store:best(mlp{m = mr.any{max = 128, multiple = 16}, d = 32, f = 64}, "h200"))
sp:save("any_plan.lua", {overwrite = true})
E
t_cmd 'its plan is kept in the store' 0 env MILLRACE_STORE="$T/any.db" "$MILLRACE" any.lua
t_cmd 'check of it' 0 "$MILLRACE" check --program mlp.lua any_plan.lua
t_cmd 'predict of it' 0 "$MILLRACE" predict --program mlp.lua any_plan.lua
t_is 'has the largest size, and a line for each typical one' "$(grep -oE 'm=[^}]*}|at m=.*' "$T/out" | tr '\n' ' ')" \
	'm=mr.any{max=128, multiple=8, typical={16, 64} at m=16 at m=64 '
t_cmd 'run of it' 0 "$MILLRACE" run --on host --program mlp.lua any_plan.lua
t_cmd 'run at a size' 0 "$MILLRACE" run --on host --sizes m=72 --program mlp.lua any_plan.lua
t_cmd 'run at a size that it is not for' 1 "$MILLRACE" run --on host --sizes m=73 --program mlp.lua any_plan.lua
t_err 'says for which it is' "size 'm' is 73; the sequence is for m up to 128 in steps of 8"
t_done
