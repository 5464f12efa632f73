# A kernel that hangs, faults, or asks for too much memory costs one message. The shell
# lives on, and the next kernel is right.
. tests/gpu/lib.sh

cat >"$T/script.lua" <<'L'
local bad = dofile "tests/gpu/bad.lua"
bad.check()
for _, case in ipairs{{"hang", 2}, {"fault"}, {"trap"}, {"beyond"}, {"shared"}} do
  local ok, message = pcall(bad.run, table.unpack(case))
  print(case[1], not ok and message or "runs")
  bad.check()
end
L

# WHAT, and what the message must match
expect() {
	cat <<'L'
hang	'gemm_main' did not finish within 2 s and was stopped
fault	after 'gemm_main'.*touched memory that is none of its buffers
trap	after 'gemm_main'.*(trap|illegal instruction|ILLEGAL_INSTRUCTION|LAUNCH_FAILED)
beyond	'C' was written to beyond its end
shared	too much shared data
L
}

t_cmd 'a script meets them all and comes to its end' 0 "$MILLRACE" "$T/script.lua"
t_is 'a right kernel runs first, and after each' "$(grep -c ^right "$T/out")" 6
cp "$T/out" "$T/script.out"
while IFS=$'\t' read -r what like; do
	t_like "$what: says so" "$(grep "^$what	" "$T/script.out")" "$like"
done < <(expect)

# Uncaught, they end a script with status 1 and the same message.
for what in hang fault; do
	like=$(expect | sed -n "s/^$what	//p")
	t_cmd "-e, $what: status 1" 1 "$MILLRACE" -e \
		"local bad = dofile 'tests/gpu/bad.lua' bad.run('$what', 2) print 'not here'"
	t_err "-e, $what: and why" "$like"
	echo "dofile('tests/gpu/bad.lua').run('$what', 2)" >"$T/in.lua"
	t_cmd "-, $what: status 1" 1 "$MILLRACE" - <"$T/in.lua"
	t_err "-, $what: and why" "$like"
done

# The interactive shell, through a pipe.
"$MILLRACE" -i >"$T/shell" 2>&1 <<'L'
bad = dofile "tests/gpu/bad.lua"
bad.check()
bad.run("hang", 2)
bad.check()
bad.run("fault")
bad.check()
6 * 7
L
t_is 'the shell ends well' $? 0
t_is 'the shell: a right kernel before, between and after' "$(grep -c ^right "$T/shell")" 3
t_like 'the shell: the message of the hang' "$(<"$T/shell")" 'did not finish within 2 s'
t_like 'the shell: the message of the fault' "$(<"$T/shell")" 'touched memory'
t_ok 'the shell: and it calculates' grep -q ^42 "$T/shell"

# NVRTC has a cache of binaries, too, and prints nothing if it uses one: what we know of a kernel must not depend
# on that.
for i in 1 2; do
	XDG_CACHE_HOME=$T/cache$i "$MILLRACE" -e 'local k = mr.load_plan "gemm_cooperative":compile{target="cuda"}
		print(k.registers > 0, k.spills)' >"$T/out"
	t_is "compiled without a cache of ours, time $i: registers and spills" "$(<"$T/out")" 'true	0'
done

# While a kernel hangs: Ctrl-C, and the end of the worker by another hand.
# while_hanging TITLE COMMAND... (of the shell's process id), then $like in its output
while_hanging() {
	rm -f "$T/in" "$T/out"
	mkfifo "$T/in"
	"$MILLRACE" -i <"$T/in" >"$T/out" 2>&1 &
	pid=$!
	exec 9>"$T/in"
	echo 'bad = dofile "tests/gpu/bad.lua" bad.check() print "ready"' >&9
	echo 'io.write "started\n" bad.run("hang", 600)' >&9
	t_until 60 grep -q ^started "$T/out" && t_until 60 "${@:2}" $pid &&
		t_until 60 grep -Eq "$like" "$T/out" && echo 'bad.check()' >&9 &&
		echo 'print(6 * 7)' >&9 && t_until 120 grep -q ^42 "$T/out" &&
		[ "$(grep -c ^right "$T/out")" = 2 ]
	t_result $? "$1" || { t_diag out "$(<"$T/out")"; kill -KILL $pid; }
	exec 9>&-
	wait $pid
}
end_worker() { kill -KILL $(ps -o pid= --ppid "$1"); }

like='interrupted$'
while_hanging 'Ctrl-C while a kernel hangs' kill -INT
like='the worker process'
while_hanging 'the worker is killed while a kernel hangs' end_worker

# Memory: somebody else holds all but two gibibytes, and then gives it back.
if command -v python3 >/dev/null; then
	mkfifo "$T/hold"
	python3 tests/gpu/hog.py $((2 << 30)) <"$T/hold" >"$T/hog" 2>&1 &
	hog=$!
	exec 8>"$T/hold"
	t_ok 'another process takes the memory' t_until 60 grep -q ^ready "$T/hog"
	"$MILLRACE" -i >"$T/shell" 2>&1 <<'L'
bad = dofile "tests/gpu/bad.lua"
bad.large(40960)
bad.check()
L
	t_like 'too little memory for a kernel: says so' "$(<"$T/shell")" \
		'cuMemAlloc.*(out of memory|OUT_OF_MEMORY|smaller sizes)'
	t_ok 'and a smaller one is right' grep -q ^right "$T/shell"
	exec 8>&-
	wait $hog
	t_cmd 'with the memory back it runs' 0 "$MILLRACE" -e \
		'dofile("tests/gpu/bad.lua").large(40960)'
else
	t_ok 'too little memory # SKIP no python3 to take it' true
fi
t_done
