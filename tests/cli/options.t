# The command line: options, scripts, exit status, where messages go.
. tests/lib.sh
lf=$'\n'

t_cmd '-v' 0 "$MILLRACE" -v
t_like '-v prints a version' "$(<"$T/out")" '^Millrace [0-9]+\.[0-9]+'
t_cmd '-h' 0 "$MILLRACE" -h
t_like '-h prints the usage' "$(<"$T/out")" '^usage: millrace'

t_cmd 'an unknown option' 2 "$MILLRACE" -x
t_err 'is named' "unknown option '-x'"
t_err 'and answered by the usage' '^usage: millrace'
t_is 'on stderr only' "$(<"$T/out")" ''
t_cmd '-e without code' 2 "$MILLRACE" -e

t_cmd '-e' 0 "$MILLRACE" -e 'print(6 * 7)'
t_is '-e runs code' "$(<"$T/out")" 42
t_cmd '-e twice, and joined' 0 "$MILLRACE" -e 'x = 1' '-eprint(x + 1)'
t_is 'in one state' "$(<"$T/out")" 2
t_cmd 'an error in -e' 1 "$MILLRACE" -e 'print "a"' -e 'error "boom"' -e 'print "b"'
t_is 'ends what follows' "$(<"$T/out")" a
t_err 'and says where' '^millrace: \(command line\):1: boom'
t_cmd 'a syntax error in -e' 1 "$MILLRACE" -e 'x ='
t_err 'says where' '^millrace: \(command line\):1: unexpected symbol near <eof>'

cat >"$T/args.lua" <<'E'
print(arg[0]:match "[^/]*$", #arg, ...)
print(arg[1], arg[2], arg[-1] ~= nil)
E
t_cmd 'a script with arguments' 0 "$MILLRACE" "$T/args.lua" one -v
t_out 'finds them in arg and ...' <<'E'
args.lua	2	one	-v
one	-v	true
E
echo 'print(select("#", ...), #arg)' >"$T/count.lua"
t_cmd 'a script with very many arguments' 0 "$MILLRACE" "$T/count.lua" $(seq 3000)
t_out 'gets them all' <<'E'
3000	3000
E

t_cmd 'options before a script' 0 "$MILLRACE" -e 'print(1)' "$T/args.lua"
t_out 'come first' <<'E'
1
args.lua	0
nil	nil	true
E
printf '#!/usr/bin/env millrace\nprint "shebang"\n' >"$T/-dash.lua"
t_cmd '-- ends the options' 0 env -C "$T" "$MILLRACE" -- -dash.lua
t_is 'and #! is skipped' "$(<"$T/out")" shebang

printf 'local function f(t)\n  return t.x.y\nend\nlocal r = f({})\nprint(r)\n' >"$T/bad.lua"
t_cmd 'an error in a script' 1 "$MILLRACE" "$T/bad.lua"
t_err 'names file and line' "^millrace: $T/bad\.lua:2: attempt to index a nil value"
t_err 'shows the line' '^  2 \|   return t\.x\.y$'
t_err 'and who called' "^  called from $T/bad\.lua:4$"
t_is 'on stderr only' "$(<"$T/out")" ''
printf 'local t = {}\nt:nothing()\n' >"$T/call.lua"
t_cmd 'a call of a name that is wrong' 1 "$MILLRACE" "$T/call.lua"
t_err 'says how to find it' "nil value \(method 'nothing'\); millrace -s says which name is wrong$"
printf 'local mr = require "millrace"\n%s\n' 'print(mr.exampels.gemm)' >"$T/index.lua"
t_cmd 'a field that is misspelt' 1 "$MILLRACE" "$T/index.lua"
t_err 'says which was meant' "index a nil value \(field 'exampels'\); did you mean 'examples'\?$"
t_cmd 'an operation of another name' 1 "$MILLRACE" -e 'local x = mr.softmax(3)'
t_err 'is said in ours' "field 'softmax'\); did you mean mr\.exp\(x - mr\.rowmax\(x, n\)\) and its mr\.rowsum\?$"
t_cmd 'a product of another name' 1 "$MILLRACE" -e 'mr.program("x", function(p) p:matmul(1, 2) end){m=64}'
t_err 'as well' "method 'matmul'\); did you mean p:mma\(a, b\)\?$"
t_cmd 'an operation that is misspelt' 1 "$MILLRACE" -e 'local x = mr.relu(3)'
t_err 'too' "call a nil value \(field 'relu'\); did you mean mr\.max\(x, 0\)\?$"
printf 'plan = mr.load_plan "gemm_cooperative"\nlocal function f() return plan:simulat() end\nf()\n' >"$T/method.lua"
t_cmd 'a method of an object' 1 "$MILLRACE" "$T/method.lua"
t_err 'too' "call a nil value \(method 'simulat'\); did you mean 'simulate'\?$"
t_cmd 'a field of an object in an upvalue' 1 "$MILLRACE" -e 'local p = mr.load_plan "gemm_cooperative" local function f() return 1 + p:simulate{}, p.usgae.threads end local tl = p:simulate() print(tl.tflop + 1)'
t_err 'too' "nil value \(field 'tflop'\); did you mean 'tflops'\?$"
t_cmd 'a field of an object that has no value there' 1 "$MILLRACE" -e 'local r = mr.search(mr.examples.gemm{m=64, n=64, k=64}, "h200", {trials=2, measure=false, show=false}) print(r.measured.ms)'
t_err 'is not one that is misspelt' "nil value \(field 'measured'\)$"
t_cmd 'a method of a plan, of a program' 1 "$MILLRACE" -e 'local bound = mr.examples.gemm{m=64, n=64, k=64} bound:compile{}'
t_err 'says that a plan comes before' "\(method 'compile'\); did you mean mr\.plan\(prog:graph\{tile=\{\.\.\.\}\}, device\):compile\(\)\?$"
t_cmd 'also with strict names' 1 "$MILLRACE" -s -e 'local bound = mr.examples.gemm{m=64, n=64, k=64} bound:compile{}'
t_err 'says that a plan comes before' "program has no 'compile'; did you mean mr\.plan\(prog:graph\{tile=\{\.\.\.\}\}, device\):compile\(\)\?$"
t_cmd 'a field of a table of the user' 1 "$MILLRACE" -e 'local t = {gelu = 1} t.relu(3)'
t_err 'is not known' "\(field 'relu'\); millrace -s says which name is wrong$"
t_cmd 'an element that is not there' 1 "$MILLRACE" -e 'local t = {} print(t[1].x)'
t_ok 'says nothing about names' eval '! grep -q "millrace -s" "$T/err"'
t_cmd 'a local variable that is nil' 1 "$MILLRACE" -e 'local t print(t.x)'
t_ok 'neither' eval '! grep -q "millrace -s" "$T/err"'
t_cmd 'ipairs of nil' 1 "$MILLRACE" -e 'for _ in ipairs(mr.load_plan("gemm_cooperative").task) do end'
t_err 'says where' "^millrace: .*:1: ipairs: table expected, got nil; millrace -s finds misspelt names of Millrace$"
t_cmd 'pairs of nil' 1 "$MILLRACE" -s -e 'local x for _ in pairs(x) do end'
t_err 'says so' "^millrace: .*:1: pairs: table expected, got nil$"
echo 'help "plan"' >"$T/help.lua"
t_cmd 'help in a script' 1 "$MILLRACE" "$T/help.lua"
t_err 'is a word of the shell' "\(global 'help'\); help is a word of the shell: .*millrace -e 'help \"plan\"'$"
t_cmd 'a name from the text of a search' 1 "$MILLRACE" -e 'print(found.plan)'
t_err 'is no slip of another one' "\(global 'found'\); millrace -s finds misspelt names of Millrace$"
t_cmd 'no device by mistake' 1 "$MILLRACE" -e 'mr.device(target)'
t_err 'is not the usual one' "device: name expected, got nil; mr.device\(\) is the attached device, or the model h200"
printf 'x = 1\nmr> x = 2\n' >"$T/prompt.lua"
t_cmd 'a prompt in a script' 1 "$MILLRACE" "$T/prompt.lua"
t_err 'is said to be one' "near '>'; the prompt is no part of what is typed$"
for case in 'mr|syntax error near <eof>; a value alone is no statement: print\(\.\.\.\) shows it$' \
	'help plan|near .plan.; what help is asked about is a text, as in help "plan"$'; do
	t_cmd "in a pipe: ${case%%|*}" 1 "$MILLRACE" - <<<"${case%%|*}"
	t_err 'says what was meant' "${case#*|}"
done
for case in 'prnt(1)|global .prnt.\); did you mean .print.\?$' 'plam.x = 1|global .plam.\); did you mean .mr.plan.\?$' \
	'mr.load_plan("gemm_cooperative"):why()|method .why.\); did you mean plan:simulate\(\):why\(\)\?$' \
	'mr:plan|arguments expected near <eof>; a method is called with \(\), as in plan:check\(\)'; do
	t_cmd "a hint without a prompt: ${case%%|*}" 1 "$MILLRACE" -e "${case%%|*}"
	t_err 'says what was meant' "${case#*|}"
done
t_cmd 'help on the command line' 0 "$MILLRACE" -e 'help "lane"'
t_like 'prints help' "$(<"$T/out")" '^lane$'
t_is 'the word alone, in a pipe' "$(echo help | "$MILLRACE")" "$("$MILLRACE" -e 'help()')"
printf 'x = = 1\n' >"$T/syntax.lua"
t_cmd 'a syntax error in a script' 1 "$MILLRACE" "$T/syntax.lua"
t_err 'names file and line' "^millrace: $T/syntax\.lua:1: unexpected symbol"
t_cmd 'a script that is not there' 1 "$MILLRACE" "$T/none.lua"
t_err 'is named' 'none\.lua'
t_cmd 'an error object' 1 "$MILLRACE" -e \
	'error(setmetatable({}, {__tostring = function() return "spoken" end}))'
t_err 'is shown by its __tostring' '^millrace: spoken'
t_cmd 'an error object that fails to speak' 1 "$MILLRACE" -e \
	'error(setmetatable({}, {__tostring = function() error "no" end}))'
t_cmd 'endless recursion' 1 "$MILLRACE" -e 'local function f() return 1 + f() end f()'
t_err 'is an error' 'stack overflow'
"$MILLRACE" -e 'local f <const> = string.dump(load "return 1") io.stdout:write(f)' >"$T/binary.lua"
t_cmd 'compiled code' 1 "$MILLRACE" "$T/binary.lua"
t_err 'is refused' 'attempt to load a binary chunk'

t_cmd 'os.exit' 3 "$MILLRACE" -e 'os.exit(3)'
t_cmd '-' 0 "$MILLRACE" - a b <<<'print("in", ...)'
t_is 'runs standard input' "$(<"$T/out")" 'in	a	b'
t_cmd 'no option, no terminal' 0 "$MILLRACE" <<<'print("piped", #arg)'
t_is 'runs standard input too' "$(<"$T/out")" 'piped	0'
t_cmd 'an error on standard input' 1 "$MILLRACE" - <<<"${lf}error 'late'"
t_err 'names it and the line' '^millrace: stdin:2: late'
t_err 'and shows it' "^  2 \| error 'late'"
t_cmd 'output that cannot be written' 1 bash -c '"$MILLRACE" -e "print(1)" >/dev/full'

t_cmd '-i after a script' 0 "$MILLRACE" -i -e 'x = 5' <<<'x'
t_out 'opens the shell in its state' <<'E'
mr> x
5
E
t_cmd '-s' 1 "$MILLRACE" -s -e 'local a = prnt'
t_err 'makes a global that there is not an error' "^millrace: \(command line\):1: no global 'prnt'; did you mean 'print'\?"
t_cmd '-s in front of a script' 1 "$MILLRACE" -s - <<<'print(mr.serach)'
t_err 'and a field' "^millrace: stdin:1: mr has no 'serach'; did you mean 'search'\?"
t_cmd 'without it' 0 "$MILLRACE" -e 'print(prnt, mr.serach)'
t_is 'both are nil' "$(<"$T/out")" 'nil	nil'
echo 'function ask() return undefined_here, mr.none end' >"$T/ask.lua"
t_cmd 'what a script defines' 0 "$MILLRACE" -i -e "dofile '$T/ask.lua'" <<<'ask()'
t_is 'is not strict in the shell either' "$(<"$T/out")" 'mr> ask()'
mkdir -p "$T/home/hw"
t_cmd 'MILLRACE_HOME' 0 env MILLRACE_HOME="$T/home" "$MILLRACE" -e 'print(#mr.devices())'
t_is 'says where hw is' "$(<"$T/out")" 0
t_cmd 'without it' 0 env -u MILLRACE_HOME -C / "$MILLRACE" -e 'print(mr.device("h200").name)'
t_is 'hw is found from anywhere' "$(<"$T/out")" h200
t_cmd 'a folder without hw' 2 env MILLRACE_HOME="$T" "$MILLRACE" -e 'print(1)'
t_is 'is refused in one line' "$(<"$T/err")" \
	"millrace: MILLRACE_HOME is $T, which has no folder hw; set it to the folder that has hw and examples, or unset it"
for memory in abc 4G 0 -5 nan inf; do
	t_cmd "a memory of $memory" 2 env MILLRACE_MEMORY=$memory "$MILLRACE" -e 'print(1)'
	t_is 'is refused in one line' "$(<"$T/err")" "millrace: MILLRACE_MEMORY is $memory; it must be a number of MiB, such as 4096"
done
t_cmd 'a memory of 512.5' 0 env MILLRACE_MEMORY=512.5 "$MILLRACE" -e 'print(1)'
t_cmd 'an empty one is none' 0 env MILLRACE_MEMORY= MILLRACE_HOME= "$MILLRACE" -e 'print(1)'

# Scripts that are no files.
mkfifo "$T/pipe"
t_cmd 'a named pipe' 1 timeout 5 "$MILLRACE" "$T/pipe"
t_is 'is no script' "$(<"$T/err")" \
	"millrace: $T/pipe is a named pipe, not a script; to wait for what is written to it, run millrace - <$T/pipe"
t_cmd 'what has no end' 1 timeout 5 "$MILLRACE" /dev/zero
t_is 'is none either' "$(<"$T/err")" 'millrace: /dev/zero is no script: it has more than 64 MiB'
t_cmd 'nor is a folder' 1 "$MILLRACE" "$T"
t_is '  which is said' "$(<"$T/err")" "millrace: $T is a folder, not a script"
t_cmd 'a pipe of the shell' 0 "$MILLRACE" <(echo 'print(..., arg[1])') 7
t_is 'is one' "$(<"$T/out")" '7	7'
t_cmd '/dev/stdin' 0 "$MILLRACE" /dev/stdin <<<'print(8)'
t_is 'is one, too' "$(<"$T/out")" 8

t_cmd 'a huge string' 1 "$MILLRACE" -e 'local s = ("x"):rep(1 << 40)'
t_err 'is a message' 'not enough memory|too large'
t_done
