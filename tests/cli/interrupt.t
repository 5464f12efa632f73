# Ctrl-C stops what runs, whatever it is, and the shell lives on.
. tests/lib.sh

# stops TITLE CODE [BEFORE...]: type BEFORE and CODE, interrupt that once it has begun,
# then see whether the shell still calculates.
stops() {
	rm -f "$T/in" "$T/out"	# or grep below might see what was there before
	mkfifo "$T/in"
	"$MILLRACE" -i <"$T/in" >"$T/out" 2>&1 &
	pid=$!
	exec 9>"$T/in"
	echo "${*:3} io.write 'started\\n' $2" >&9
	t_until 30 grep -q ^started "$T/out"
	kill -INT $pid
	t_until 30 grep -q 'interrupted$' "$T/out" && echo 'print(6 * 7)' >&9 &&
		t_until 30 grep -q ^42 "$T/out"
	t_result $? "$1" || { t_diag out "$(<"$T/out")"; kill -KILL $pid; }
	exec 9>&-
	wait $pid
}

stops 'a loop' 'while true do end'
stops 'a loop around pcall' 'while true do pcall(error) end'
stops 'a loop around pcall of a loop' 'while true do pcall(function() while true do end end) end'
stops 'a coroutine' 'coroutine.wrap(function() while true do end end)()'
stops 'a coroutine with a loop around pcall' \
	'coroutine.wrap(function() while true do pcall(error) end end)()'
stops 'a loop that makes coroutines' \
	'while true do pcall(coroutine.wrap(function() while true do end end)) end'
stops 'a loop in an error handler' \
	'xpcall(error, function() while true do end end) while true do end'
stops 'a value that shows itself for ever' \
	'return setmetatable({}, {__tostring = function() while true do end end})'

stops 'a loop around pcall of what is closed without a stop' \
	'local done = require "millrace.core".at_close(function() end) '\
'while true do pcall(function() local _ <close> = done while true do end end) end'

# The core, too: waits for a plan of 1,000 sTasks on 12 lanes take a minute or more.
stops 'plan:fill_waits' 'plan:fill_waits()' \
	'chain = mr.program("chain", function(p) local m, n = p:axes("m", "n") ' \
	'local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}) ' \
	'p:loop(n, function() local v = p:load(X) ' \
	'for i = 1, 1000 do v = p:task("t" .. i, function() return v + i end) end ' \
	'Y:store(v) end) end){m = 512, n = 512} ' \
	'plan = mr.plan(chain:graph{tile = {m = 64, n = 64}}, mr.device "h200") ' \
	'for i, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c" .. i % 12}) end'

# Checks, kernels and simulations, one after the other. (tests/unit/verify.c interrupts inside of one.)
for call in 'check()' 'compile{target = "cuda", text = true}' 'compile{target = "host"}' 'simulate()'; do
	stops "plan:$call" "while true do pcall(function() plan:$call end) end" \
		'plan = mr.load_plan("attention_serial", mr.examples.flash_attention{b = 8, h = 16, m = 8192, d = 128})'
done

# What an interrupted function is to put right, it does completely, and the core with it; errors of that are errors.
cat >"$T/closed.lua" <<'E2'
local core = require "millrace.core"
local steps = 0
local function press() io.popen "kill -INT $PPID":close() end
print(core.heed(function()
  local _ <close> = core.at_close(function()
    for _ = 1, 1000 do steps = steps + 1 end
    mr.examples.gemm{m = 64, n = 64, k = 64}:graph()
  end)
  press()
  while true do end
end), steps)
print(core.heed(function()
  do local _ <close> = core.at_close(function() press() for _ = 1, 1000 do steps = steps + 1 end end) end
  while true do end
end), steps)
print(pcall(function() local _ <close> = core.at_close(function() error("boom", 0) end) end))
print(pcall(core.uninterrupted, 1))
print(pcall(core.at_close, nil))
print(select("#", core.uninterrupted(function(...) return ... end)(1, nil, nil)))
E2
t_cmd 'what is closed by an interrupted function' 0 timeout 60 "$MILLRACE" "$T/closed.lua"
t_out '  is closed completely' <<'E2'
false	1000
false	2000
false	boom
false	bad argument #1 to 'millrace.core.uninterrupted' (function expected, got number)
false	bad argument #1 to 'millrace.core.at_close' (function expected, got nil)
3
E2

# A script ends with status 1.
rm -f "$T/err"
"$MILLRACE" -e 'io.stderr:write "started\n" while true do end' 2>"$T/err" &
pid=$!
t_until 30 grep -q started "$T/err"
kill -INT $pid
wait $pid
t_is 'a script ends with status 1' $? 1
t_err 'and says why' '^millrace: \(command line\):1: interrupted'

# What Lua cannot stop ends with the second signal.
rm -f "$T/err"
"$MILLRACE" -e 'io.stderr:write "started\n" string.find(("a"):rep(1 << 20), (".-"):rep(9) .. "b")' \
	2>"$T/err" &
pid=$!
t_until 30 grep -q started "$T/err"
while kill -INT $pid 2>/dev/null; do :; done	# two at once may be one
wait $pid
t_is 'a second Ctrl-C ends the program' $? 130

# At the prompt of a pipe a signal drops the unfinished chunk.
rm -f "$T/in" "$T/out"
mkfifo "$T/in"
"$MILLRACE" -i <"$T/in" >"$T/out" 2>&1 &
pid=$!
exec 9>"$T/in"
echo 'print(' >&9
t_until 30 grep -q 'print(' "$T/out"
kill -INT $pid
echo '6 * 7' >&9
t_ok 'a signal at the prompt drops the chunk' t_until 30 grep -q ^42 "$T/out"
exec 9>&-
wait $pid
t_is 'and the end of the input ends the shell' $? 0
t_done
