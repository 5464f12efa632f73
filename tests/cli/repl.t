# The shell through a pipe, where it prints prompts and what it reads.
. tests/lib.sh

# session TITLE: the lines that begin with a prompt are typed, and all is compared.
session() {
	cat >"$T/want"
	sed -n 's/^\(mr> \|>> \)//p' "$T/want" | "$MILLRACE" -i >"$T/out" 2>&1
	cmp -s "$T/want" "$T/out"
	t_result $? "$1" || diff -u "$T/want" "$T/out" | sed 's/^/# /'
}

session 'expressions and statements' <<'E'
mr> 1 + 1
2
mr> x = 4
mr> x, x / 8
4	0.5
mr> return x
4
mr> nil
mr> x, nil
4	nil
mr> 
mr> -- a comment
mr> "text"
"text"
mr> "two\nlines"
two
lines
mr> "tab\tbell\a"
"tab\009bell\007"
E

session 'several lines' <<'E'
mr> for i = 1, 2 do
>>   print(i)
>> end
1
2
mr> math.max(
>>   1,
>> 
>>   2)
2
mr> {
>>   1 }
{1}
mr> s = [[
>> long
>> ]]
mr> #s
5
E

session 'what is copied with its prompt' <<'E'
mr> mr> x = 4
mr> mr> x
4
mr> mr> for i = 1, 2 do
>> >>   print(i)
>> >> end
1
2
mr> (8
>> >> 1)
4
E

session 'help without quotes' <<'E'
mr> help brave axes
no help about 'brave axes'
the nearest topics are
  p:axes  Axes whose sizes bind gives.
help "NAME" tells more.
mr> help plan:undo
plan:undo()
  Undo the last edit; plan:redo() makes it again. Loading is no edit.
E

session 'the last value' <<'E'
mr> 6 * 7
42
mr> _ + 1
43
mr> nil
mr> _
43
mr> x = 1
mr> _
43
mr> error "no value"
[7]:1: no value
  1 | error "no value"
mr> _
43
E

session 'names of other tools' <<'E'
mr> mr.relu
[1]:1: mr has no 'relu'; did you mean mr.max(x, 0)?
  1 | mr.relu
mr> plan = mr.load_plan "gemm_cooperative"
mr> plan.remove_wait
[3]:1: plan has no 'remove_wait'; did you mean plan:unwait(task, other)?
  1 | plan.remove_wait
mr> plan:tasks()
[4]:1: attempt to call a table value (method 'tasks'); that is a field: .tasks, without ()
  1 | plan:tasks()
mr> plan:suggest()[99]:apply()
[5]:1: attempt to index a nil value (field 'integer index'); plan:suggest() has no such suggestion: printed, it says what there is, or what was tried
  1 | plan:suggest()[99]:apply()
mr> plan:append("mma.0", {before="load_a"})
[6]:1: append: unknown option 'before'; an appended sTask comes last: plan:insert takes before and after
  1 | plan:append("mma.0", {before="load_a"})
mr> plan:compile{target="host"}.save
[7]:1: kernel for the CPU has no 'save'; did you mean k:export(folder)?
  1 | plan:compile{target="host"}.save
mr> mr.search(plan, mr.device "h200")
[8]:1: search: program with sizes expected, got a plan; plan:improve() goes on from a plan, and plan.graph.program is its program
  1 | mr.search(plan, mr.device "h200")
mr> mr.load_plan("attention_serial", "linear.lua")
[9]:1: load_plan: program expected, got 'linear.lua'; dofile gives the program that a file returns
  1 | mr.load_plan("attention_serial", "linear.lua")
mr> plan:timeline()
[10]:1: plan has no 'timeline'; did you mean plan:simulate()?
  1 | plan:timeline()
mr> a = mr.array("f32", {2, 2})
mr> a[1][1]
[12]:1: attempt to index a number value (field 'integer index'); of an array, a:get(i, j) is the element of row i and column j, and a[i] the i-th of all
  1 | a[1][1]
mr> plan:compile{target="host"}:export("gemm.cu")
[13]:1: export: 'gemm.cu' would be a folder, as a kernel is several files: name one, as in k:export("gemm"); k.source is the text of the kernel alone
  1 | plan:compile{target="host"}:export("gemm.cu")
mr> plan:append(plan.tasks[1])
[14]:1: append: an sTask is given by its name, here 'load_a': task.name
  1 | plan:append(plan.tasks[1])
E

# Also where the assignment drops the reason; an expression shows it itself.
session 'a search that finds nothing' <<'E'
mr> bound = mr.examples.gemm{m=1024, n=1024, k=1024}
mr> found = mr.search(bound, mr.device "h200", {tile={m=1024, n=1024, k=1024}})
no legal plan found for 1 tile shape; what stood in the way, by how many candidates:
9: registers: a product of this tile has 1048576 sums, the registers of an EU of 'h200' hold 65536
the nearest is a tile of k=1024 m=1024 n=1024: the tile does not fit: with one version of each value it needs 4325408 bytes of shared memory, 'h200' has 232448; 'a' takes most, 2097152
  try: without tile=, or with tile={k=64, m=64, n=176}, of which there is a plan of 0.008432 ms
mr> found
mr> found = nil
E

session 'errors name the chunk and show the line' <<'E'
mr> x = = 1
[1]:1: unexpected symbol near '='
  1 | x = = 1
mr> function f(t)
>>   return t.x.y
>> end
mr> f {}
[2]:2: attempt to index a nil value (field 'x')
  2 |   return t.x.y
mr> if true then
>>   local r = f {}
>> end
[2]:2: attempt to index a nil value (field 'x')
  2 |   return t.x.y
  called from [4]:2
mr> error {}
(error object is a table value)
  called from [5]:1
mr> error(setmetatable({}, {__tostring = function() return "spoken" end}))
spoken
  called from [6]:1
mr> error()
(error object is a nil value)
  called from [7]:1
E

session 'tables' <<'E'
mr> {}
{}
mr> {1, "a", true, 0.5}
{1, "a", true, 0.5}
mr> {b = 1, a = {}, [-1] = 2, 5}
{5, [-1] = 2, a = {}, b = 1}
mr> {b = "long enough", a = {}, ["two words"] = {1}, [-1] = 2, [1.5] = 3, [true] = 4, 5}
{
  5,
  [-1] = 2,
  [1.5] = 3,
  a = {},
  b = "long enough",
  ["two words"] = {...},
  [true] = 4,
}
mr> {{name = "load_a", 1}, {name = "mma"}}
{{name = "load_a", ...}, {name = "mma", ...}}
mr> t = {}
mr> for i = 1, 120 do t[i] = i * 1000 end
mr> t
{
  1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 11000, 12000,
  13000, 14000, 15000, 16000, 17000, 18000, 19000, 20000, 21000, 22000, 23000,
  24000, 25000, 26000, 27000, 28000, 29000, 30000, 31000, 32000, 33000, 34000,
  35000, 36000, 37000, 38000, 39000, 40000, 41000, 42000, 43000, 44000, 45000,
  46000, 47000, 48000, 49000, 50000, 51000, 52000, 53000, 54000, 55000, 56000,
  57000, 58000, 59000, 60000, 61000, 62000, 63000, 64000, 65000, 66000, 67000,
  68000, 69000, 70000, 71000, 72000, 73000, 74000, 75000, 76000, 77000, 78000,
  79000, 80000, 81000, 82000, 83000, 84000, 85000, 86000, 87000, 88000, 89000,
  90000, 91000, 92000, 93000, 94000, 95000, 96000, 97000, 98000, 99000, 100000,
  ... 20 more,
}
mr> {("x"):rep(100)}
{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"...}
mr> {print, function() end}
{function <built in>, function <[10]:1>}
mr> t = {} t.t = t
mr> t
{t = {...}}
E

session 'objects show what they say' <<'E'
mr> setmetatable({}, {__tostring = function() return "one\ntwo\n" end})
one
two
mr> {_}
{<table>}
mr> setmetatable({}, {__tostring = function() return "short" end}), 1
short	1
mr> setmetatable({}, {__tostring = function() error "cannot" end})
cannot show this value: [4]:1: cannot
  1 | setmetatable({}, {__tostring = function() error "cannot" end})
mr> setmetatable({}, {__tostring = function() return {} end})
cannot show this value: '__tostring' must return a string
mr> setmetatable({1}, {__index = error, __pairs = error, __len = error})
{1}
mr> 1
1
E

session 'names that there are not' <<'E'
mr> pritn(1)
[1]:1: no global 'pritn'; did you mean 'print'?
  1 | pritn(1)
mr> plna
[2]:1: no global 'plna'; did you mean 'mr.plan'?
  1 | plna
mr> plan = 1
mr> if true then
>>   x = plna
>> end
[4]:2: no global 'plna'; did you mean 'plan'?
  2 |   x = plna
mr> rawget(_G, "x") == nil
true
mr> x = nil
mr> x
mr> mr.serach
[8]:1: mr has no 'serach'; did you mean 'search'?
  1 | mr.serach
mr> mr.device("h200").naem
[9]:1: device has no 'naem'; did you mean 'name'?
  1 | mr.device("h200").naem
mr> mr.strict(false)
mr> unheard_of
E

session 'locals end with their chunk' <<'E'
mr> local x = 5 print(x)
5
mr> local x = 5
local x ends with its line here; leave out local to keep it
mr> local y = 5
E

cd "$T" || exit
session 'commands' <<'E'
mr> x = 6
mr> nonsense()
[2]:1: no global 'nonsense'
  1 | nonsense()
mr> x * 7
42
mr> w = 1
mr> y = _ +
>>   1
mr> x
6
mr> local z = 1
local z ends with its line here; leave out local to keep it
mr> (print)(y)
43
mr> help "plan:undo"
plan:undo()
  Undo the last edit; plan:redo() makes it again. Loading is no edit.
mr> :save typed.lua
typed.lua: 6 chunks
mr> :save typed.lua
typed.lua exists; :save! typed.lua overwrites it
mr> :save! typed.lua
typed.lua: 6 chunks
mr> :save none/typed.lua
cannot write none/typed.lua: No such file or directory
mr> :save
:save FILE.lua writes what was typed as a script
mr> :tiem x
no command ':tiem'; did you mean ':time'?
mr> :what
no command ':what'; :help lists them
mr> :q
no command ':q'; quit() or Ctrl-D leaves
mr> :time
:time CHUNK runs the chunk and prints how long it takes
mr> :help plan:undo
plan:undo()
  Undo the last edit; plan:redo() makes it again. Loading is no edit.
mr> ::label:: print "Lua"
Lua
E
cat >"$T/want" <<'E'
local mr = require "millrace"

x = 6
_ = x * 7
w = 1
y = _ +
  1
do
local z = 1
end
;(print)(y)
E
cmp "$T/want" "$T/typed.lua"
t_result $? 'the script that was saved'
t_cmd 'runs' 0 "$MILLRACE" -s "$T/typed.lua"
t_is 'and does the same' "$(<"$T/out")" 43
"$MILLRACE" -i >"$T/out" 2>&1 <<'E'
:time for i = 1, 2 do
  print(i)
end
:time error "late"
E
t_like 'a chunk is timed' "$(tr '\n' ' ' <"$T/out")" '>> end 1 2 [0-9.e-]+ m?s mr> '
t_like 'that fails, too' "$(tail -1 "$T/out")" '^[0-9.e-]+ m?s$'
cd "$OLDPWD" || exit

session 'leaving' <<'E'
mr> pcall(quit)
E
session 'leaving from within a chunk' <<'E'
mr> do quit() print "not reached" end
E
session 'leaving by a word' <<'E'
mr> exit
E

session 'help' <<'E'
mr> help "plan:undo"
plan:undo()
  Undo the last edit; plan:redo() makes it again. Loading is no edit.
mr> help "plan:undoo"
no help about 'plan:undoo'; did you mean 'plan:undo'?
mr> help "sarch"
no help about 'sarch'; did you mean 'search'?
mr> help(nil)
that is nil: nothing to tell about it
mr> help(mr.devices)
mr.devices()
  Names of the devices that hw/ describes.
mr> help {}
a table of your own or of Lua's: no help about it
E
t_like 'help alone lists the topics' "$("$MILLRACE" -i <<<help)" 'mr\.search'
t_like 'help of an object' "$("$MILLRACE" -i <<<'help(mr.device "h200")')" '^device$'
t_like 'help of an example is its head comment' "$("$MILLRACE" -i <<<'help "gemm"')" '^sizes'
missing=$("$MILLRACE" -i <<'E' | sed -n 's/^no help about//p'
for name in pairs(mr) do help("mr." .. name) end
E
)
t_is 'there is help about all of mr' "$missing" ''

MILLRACE_MEMORY=64 "$MILLRACE" -i >"$T/out" 2>&1 <<'E'
t = {} s = ("x"):rep(1 << 20)
for i = 1, 1 << 40 do t[i] = s .. i end
t = nil
collectgarbage(), "alive"
E
t_like 'a chunk that takes all memory is an error' "$(<"$T/out")" '^(\[2\]:1: )?not enough memory'
t_like 'that the shell survives' "$(tail -1 "$T/out")" '^0	"alive"$'
t_done
