# --farm: processes that mpirun starts send messages to each other; one of them prints and writes files; an error or the end of
# one ends all.
. tests/lib.sh

t_find_mpirun || t_skip_all 'there is no mpirun'

# ranks N ARGUMENT...: the program as so many processes, for a minute at most
ranks() {
	timeout 60 $mpi -n "$1" "$MILLRACE" --farm "${@:2}" </dev/null
}

cat >"$T/ring.lua" <<'E'
local farm = require "millrace.core".farm()
local rank, size = farm:rank(), farm:size()
local function body(n) return ("%08x"):format(n * 77):rep(n // 8 + 1):sub(1, n) end
local early = {}    -- messages of ranks that are ahead: {text, rank}
local function receive(from)
  for i, message in ipairs(early) do
    if message[2] == from then return table.remove(early, i)[1] end
  end
  while true do
    local text, who = farm:receive(60)
    assert(text, "nothing came")
    if who == from then return text end
    early[#early + 1] = {text, who}
  end
end
local function expect(from, n)
  assert(receive(from) == body(n), ("rank %d expected %d bytes of rank %d"):format(rank, n, from))
end
for _, step in ipairs{1, -1} do
  local to, from = (rank + step) % size, (rank - step) % size
  for _, n in ipairs{0, 1, 1 << 20, 5 << 20} do
    if rank > 0 then expect(from, n) end
    farm:send(to, body(n))
    if rank == 0 then expect(from, n) end
  end
end
-- once all have come so far: all at once, with large ones before small ones; those of a rank come in their order
local function meet()
  farm:send(0, "here")
  if rank == 0 then
    for from = 0, size - 1 do assert(receive(from) == "here") end
    for to = 0, size - 1 do farm:send(to, "go") end
  end
  assert(receive(0) == "go")
end
meet()
for to = 0, size - 1 do
  for i = 1, 9 do farm:send(to, i .. ("."):rep(i % 3 == 1 and 3 << 20 or i)) end
end
for from = 0, size - 1 do
  for i = 1, 9 do assert(receive(from) == i .. ("."):rep(i % 3 == 1 and 3 << 20 or i)) end
end
meet()
assert(rank == 0 or #early == 0 and farm:receive(0) == nil and farm:receive(0.001) == nil)
-- a line of each rank, in their order; the others' own is not printed
assert(farm:with_rank_0(), "rank 0 is on another machine")
local line = ("rank %d of %d, %d on %s"):format(rank, size, farm:local_rank(), farm:host())
print(line)
if rank > 0 then farm:send(0, line) return end
for from = 1, size - 1 do print(receive(from)) end
assert(farm:receive(0) == nil and farm:receive(0.001) == nil)
E
t_cmd 'messages of 4 ranks around a ring and back' 0 ranks 4 "$T/ring.lua"
for i in 0 1 2 3; do echo "rank $i of 4, $i on $(uname -n)"; done >"$T/lines"
t_out 'come as they were sent; only rank 0 prints' <"$T/lines"
t_is 'nothing is said' "$(<"$T/err")" ''
t_cmd 'without mpirun' 0 timeout 60 "$MILLRACE" --farm "$T/ring.lua"
t_is 'there is one process' "$(head -1 "$T/out")" "rank 0 of 1, 0 on $(uname -n)"
for variable in OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS PMI_SIZE; do
	t_cmd "where $variable is 4" 1 env $variable=4 timeout 60 "$MILLRACE" --farm "$T/ring.lua"
	t_err 'one process is too few' '^millrace: (mpirun|srun) started 4 processes, but Open MPI knows of one: '
done
t_cmd 'without --farm' 0 "$MILLRACE" -e 'print(require "millrace.core".farm())'
t_is 'there is no farm' "$(<"$T/out")" nil

# Files.
cat >"$T/files.lua" <<'E'
local rank = require "millrace.core".farm():rank()
local dir = ...
local mr = require "millrace"
local function path(name) return ("%s/%d_%s"):format(dir, rank, name) end
local plan = mr.load_plan "gemm_cooperative"
local tl = plan:simulate()
plan:save(path "plan.lua")
plan:svg(path "plan.svg")
tl:png(path "tl.png")
tl:trace(path "tl.json")
tl:frames(path "frames", {count = 1})
plan:compile{target = "host"}:export(path "export")
local file = assert(io.open(path "w", "w"))
assert(file:write "x" and file:close())
file = assert(io.open(path "w+", "w+"))
file:write "hello"
file:seek "set"
assert(file:read "a" == "hello" and file:close())
file = assert(io.open(dir .. "/edited", "r+"))
assert(file:read "l" == "old" or rank > 0)
assert(file:seek "end" and file:write "new\n" and file:close())
file = assert(io.open(dir .. "/grown", "a"))
assert(file:write "line\n" and file:close())
io.output(path "output")
assert(io.write "x" and io.close())
io.output(io.stdout)
local pipe = io.popen("cat >" .. path "pipe", "w")
assert(pipe:write "x" and pipe:close())
assert(os.execute("touch " .. path "touched"))
assert(os.rename(path "w", path "renamed") and os.remove(path "w+"))
assert(io.popen "echo read":read "l" == "read")
assert(not io.open(dir .. "/none/x") and not pcall(io.open, dir .. "/x", "bad"))
E
mkdir "$T/files"
echo old >"$T/files/edited"
touch "$T/files/grown"
t_cmd 'a script that writes files' 0 ranks 3 "$T/files.lua" "$T/files"
t_is 'writes them once' "$(cd "$T/files" && ls -d -- *)" "$(printf '%s\n' 0_export 0_frames 0_output 0_pipe 0_plan.lua \
	0_plan.svg 0_renamed 0_tl.json 0_tl.png 0_touched edited grown)"
t_is 'also what there was before' "$(cat "$T/files/edited" "$T/files/grown")" "$(printf 'old\nnew\nline')"

# Ends.
begin='local farm = require "millrace.core".farm() local rank = farm:rank() '
others='farm:receive(math.huge)'
t_cmd 'an error on rank 2' 1 ranks 4 -e "$begin if rank == 2 then error 'boom' end $others"
t_err 'ends all ranks; the message says where' "^millrace: rank 2 on $(uname -n): \(command line\):1: boom"
t_cmd 'an error on rank 0' 1 ranks 4 -e "$begin if rank == 0 then error 'boom' end $others"
t_err 'does so, too' '^millrace: \(command line\):1: boom'
t_cmd 'an error of one process' 1 timeout 60 "$MILLRACE" --farm -e "error 'boom'"
t_is 'is all that is said' "$(grep -v '^ ' "$T/err")" 'millrace: (command line):1: boom'
t_cmd 'a syntax error' 1 ranks 2 -e 'x ='
t_err 'as well' '\(command line\):1: unexpected symbol'
t_cmd 'a rank that is killed' 137 ranks 4 -e "$begin if rank == 3 then io.popen 'kill -9 \$PPID':read 'a' end $others"
t_err 'ends all ranks' 'rank 3 .*signal 9'
t_cmd 'os.exit with a status' 7 ranks 3 -e "$begin if rank == 1 then os.exit(7) end $others"
t_cmd 'farm:abort' 5 ranks 3 -e "$begin if rank == 1 then farm:abort(5) end $others"
t_cmd 'farm:abort of rank 0' 5 ranks 2 -e "$begin if rank == 0 then print 'so far' farm:abort(5) end $others"
t_like 'writes what it printed' "$(<"$T/out")" '^so far$'
t_cmd 'os.exit without one' 0 ranks 3 -e "$begin if rank == 2 then farm:send(1, 'last') os.exit() end
	if rank == 1 then farm:send(0, (farm:receive(60))) end if rank == 0 then print(farm:receive(60)) end"
t_is 'lets the others go on' "$(<"$T/out")" 'last	1'
t_cmd 'os.exit(false)' 1 timeout 60 "$MILLRACE" --farm -e 'os.exit(false)'
t_cmd 'os.exit(true)' 0 timeout 60 "$MILLRACE" --farm -e 'os.exit(true)'
t_cmd 'what nobody receives' 0 ranks 3 -e "$begin farm:send((rank + 1) % 3, ('x'):rep(9 << 20))"
t_is 'is dropped at the end' "$(<"$T/err")" ''
t_cmd 'a closed farm' 0 ranks 2 -e "$begin farm:close() farm:close()
	print(require 'millrace.core'.farm(), select(2, pcall(farm.send, farm, 0, 'x')))
	print(pcall(require 'millrace.core'.farm_open))"
t_like 'sends nothing' "$(<"$T/out")" '^nil	.*send: the farm is closed$'
t_like 'and is not opened again' "$(<"$T/out")" '^false	.*a farm that was closed cannot be opened again$'
t_cmd 'an open farm' 0 timeout 60 "$MILLRACE" --farm -e "$begin print(require 'millrace.core'.farm_open() == farm, farm:receive(0))"
t_is 'is opened once' "$(<"$T/out")" 'true	nil'

# A rank that ends its script while others go on to a call of all ranks.
for ends in 0 2; do
	t_cmd "rank $ends ends before others call mr.tune" 1 ranks 3 -e "$begin if rank ~= $ends then
		mr.tune({{mr.examples.gemm, m = 128, n = 128, k = 64}}, {device = 'h200', trials = 2, measure = false}) end"
	t_err '  is an error of those' "farm: rank $ends has come to the end of its script, and rank [0-2] goes on: all ranks must make the same calls"
done
t_cmd 'a rank that ends after it' 1 ranks 3 -e "$begin local o = {device = 'h200', trials = 2, measure = false}
	mr.tune({{mr.examples.gemm, m = 128, n = 128, k = 64}}, o)
	if rank ~= 1 then mr.search(mr.examples.gemm{m = 128, n = 128, k = 64}, 'h200', {farm = true, trials = 2, measure = false}) end"
t_err '  as well' 'farm: rank 1 has come to the end of its script, and rank 0 goes on'

# A rank whose process stops in a task. It asks before, and hours go by on rank 0, where another rank then gets the task.
cat >"$T/hangs.lua" <<'E'
local core = require "millrace.core"
local now = 0
if core.farm():rank() == 0 then core.clock = function() return now end end
local ranks = require "millrace.ranks".shared()
ranks:serve("hours", function() now = now + 7200 return true end)
local results = ranks:map({"a task"}, function()
  if ranks.rank == 1 then
    ranks:ask("hours")
    io.popen "kill -STOP $PPID":read "a"
  end
  return "done by rank " .. ranks.rank
end)
print(results[1].value or results[1].why)
mr.store:put{plan = mr.load_plan "gemm_cooperative", kind = "bench", ms = 1}
if arg[1] == "exit" then os.exit(0) elseif arg[1] == "error" then error "boom" end
E
export MILLRACE_STORE=$T/store.db
for how in end exit; do
	rm -f "$T"/store.db*
	t_cmd "a rank that hangs, $how of the script" 0 ranks 4 "$T/hangs.lua" $how
	t_is '  is not waited for' "$(<"$T/out")" 'done by rank 2'
	t_is '  and is named' "$(grep ^millrace: "$T/err")" "millrace: rank 1 on $(uname -n) hangs: the job ends without it"
	t_is '  the store was closed' "$(cd "$T" && echo store.db*)" store.db
done
t_cmd '  and an error of the script' 1 ranks 4 "$T/hangs.lua" error
t_err '  which is said' "^millrace: (rank [23] on $(uname -n): )?$T/hangs.lua:[0-9]*: boom"	# by whoever is first
t_cmd '  and no space for the output' 1 timeout 60 $mpi -n 4 bash -c 'exec "$MILLRACE" --farm "$0" >/dev/full' "$T/hangs.lua"
t_is '  which is said' "$(grep ^millrace: "$T/err")" 'millrace: cannot write the output'
export MILLRACE_STORE=none

"$MILLRACE" --farm -e "$begin io.stderr:write 'started\n' while true do pcall(farm.receive, farm, math.huge) end" 2>"$T/err" &
t_until 60 grep -q started "$T/err"
kill -INT $!
wait $!
t_is 'Ctrl-C ends a wait' "$? $(sed -n 2p "$T/err")" '1 millrace: (command line):1: interrupted'

# Ctrl-C while the farm is opened.
cat >"$T/early.c" <<'E'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
int setenv(const char *name, const char *value, int over)
{
	static int calls;
	int (*real)(const char *, const char *, int);

	if (!calls++)
		raise(SIGINT);
	*(void **)&real = dlsym(RTLD_NEXT, "setenv");
	return real(name, value, over);
}
E
t_ok 'a library that interrupts' cc -shared -fPIC -o "$T/early.so" "$T/early.c" -ldl
t_cmd 'Ctrl-C while the farm is opened' 1 env ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" LD_PRELOAD="$T/early.so" \
	"$MILLRACE" --farm -e 'print(1)'
t_is '  is that, and no lack of memory' "$(<"$T/err")" 'millrace: interrupted'

# Arguments.
while IFS='|' read -r code message; do
	t_cmd "farm:$code" 1 timeout 60 "$MILLRACE" --farm -e "$begin farm:$code"
	t_is 'is refused' "$(head -1 "$T/err")" "millrace: (command line):1: $message"
done <<'E'
send(1, "x")|send: rank must be an integer from 0 to 0, got 1
send("a", "x")|send: rank must be an integer from 0 to 0, got 'a'
send(0, 5)|send: text must be a string, got 5
send(0, ("x"):rep((64 << 20) + 1))|a message has 64 MiB at most, and this one has 67108865 bytes
receive()|receive: seconds must be a number, got nothing
receive(-1)|receive: seconds must be 0 or more, got -1
abort(0)|abort: status must be an integer from 1 to 255, got 0
E
t_cmd 'the largest message' 0 timeout 60 "$MILLRACE" --farm -e "$begin farm:send(0, ('x'):rep(64 << 20)) print(#farm:receive(60))"
t_is 'comes' "$(<"$T/out")" 67108864

# Command lines.
t_cmd '--farm alone' 2 "$MILLRACE" --farm
t_is 'needs a script' "$(<"$T/err")" 'millrace: --farm needs a script, as in mpirun -n 4 millrace --farm FILE.lua'
t_cmd '--farm with standard input' 2 "$MILLRACE" --farm - </dev/null
t_cmd 'with the shell' 2 "$MILLRACE" --farm -i "$T/ring.lua"
t_cmd 'with a subcommand' 2 "$MILLRACE" --farm check gemm_cooperative
t_is 'is refused' "$(<"$T/err")" 'millrace: --farm takes a script, and no subcommand'

# Other libraries of this name.
mkdir "$T/other" "$T/broken"
echo 'int MPI_Finalize(void); int MPI_Finalize(void) { return 0; }' >"$T/other.c"
t_ok 'another library is made' cc -shared -fPIC -o "$T/other/libmpi.so.40" "$T/other.c"
t_cmd 'with it' 1 env LD_LIBRARY_PATH="$T/other" "$MILLRACE" --farm "$T/ring.lua"
t_is 'there is no farm' "$(<"$T/err")" \
	'millrace: a farm needs Open MPI, and libmpi.so.40 is not it (perhaps MPICH): it has no ompi_mpi_comm_world'
for name in libmpi.so.40 libmpi.so libmpi.so.12; do echo 'no library' >"$T/broken/$name"; done
t_cmd 'with files that are no libraries' 1 env LD_LIBRARY_PATH="$T/broken" "$MILLRACE" --farm "$T/ring.lua"
t_err 'it says what to install' \
	'^millrace: a farm needs Open MPI, and its library cannot be opened: install it \(on Debian openmpi-bin\), .*libmpi\.so\.40: '
t_done
