# The shell in a real terminal: editing, Ctrl-C at the prompt, completion, history.
# The screen is polled until it is as wanted; nothing here waits a fixed time.
. tests/lib.sh
command -v tmux >/dev/null || t_skip_all 'no tmux'

terminals=0
tmux() { # one server a terminal: the end of one may not touch the next
	command tmux -L "mr$$.$terminals" -f /dev/null "$@" 2>/dev/null
}
trap '[ $BASHPID != $$ ] || { tmux kill-server; rm -rf "$T"; }' EXIT

# start WIDTH HEIGHT [VARIABLES]: a fresh shell in a fresh terminal.
start() {
	tmux kill-server
	terminals=$((terminals + 1))
	env -i PATH="$PATH" LC_ALL=C.UTF-8 TERM=screen HOME="$T" MILLRACE_HOME="$MILLRACE_HOME" \
		tmux -L "mr$$.$terminals" -f /dev/null new-session -d -x "$1" -y "$2" \
		"exec env TERM=screen NO_COLOR=1 HOME=$T $3 '$MILLRACE'"
	tmux set -g status off
	tmux resize-window -x "$1" -y "$2"
	t_until 20 eval "screen | grep -q '^mr>'"
}

keys() { # names of keys
	tmux send-keys "$@"
}

type() { # text, then Enter
	tmux send-keys -l "$1"
	keys Enter
}

screen() {
	tmux capture-pane -p | sed 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' | tail -n +2
}

shows() {
	screen >"$T/out"
	cmp -s "$T/want" "$T/out"
}

# becomes TITLE: the screen below the line of welcome.
becomes() {
	cat >"$T/want"
	t_until 20 shows
	t_result $? "$1" || diff -u "$T/want" "$T/out" | sed 's/^/# /'
}

start 80 24
becomes 'the prompt appears' <<'E'
mr>
E
t_like 'below one line of welcome' "$(tmux capture-pane -p | head -1)" '^Millrace [0-9.]+\. '

type 'for i = 1, 2 do'
becomes 'an unfinished chunk goes on' <<'E'
mr> for i = 1, 2 do
>>
E
keys -l '  print(j)'
keys Left BSpace
type i
type end
becomes 'with editing' <<'E'
mr> for i = 1, 2 do
>>   print(i)
>> end
1
2
mr>
E

# Long lines of messages and of objects are broken between words; strings are as they are.
start 80 24
type 'text = "the first words of a message of ours, which is longer than a line"'
type 'error(text .. " of this terminal, and its end")'
becomes 'a message goes on below, between words' <<'E'
mr> text = "the first words of a message of ours, which is longer than a line"
mr> error(text .. " of this terminal, and its end")
[2]:1: the first words of a message of ours, which is longer than a line of this
  terminal, and its end
  1 | error(text .. " of this terminal, and its end")
mr>
E
keys C-l
type 'mr.load_plan("attention_overlap"):simulate():why()'
t_ok 'tl:why() has no broken word' t_until 20 eval 'screen | grep -q "^[0-9]* changes tried"'
t_is '  in any line' "$(screen | tail -n +2 | grep -cE '^.{80}$')" 0
keys C-l
type 'text .. " of this terminal, and as it is\n"'
t_ok 'a string is as it is' t_until 20 eval 'screen | grep -qE "^the first words .{64}$"'

start 80 24
type 'x = 1 +'
keys -l more
t_until 20 eval "screen | grep -q '>> more'"
keys C-c
becomes 'Ctrl-C drops the line and the chunk' <<'E'
mr> x = 1 +
>> more^C
mr>
E
type 'rawget(_G, "x")'
type '"alive"'
becomes 'and nothing of it was run' <<'E'
mr> x = 1 +
>> more^C
mr> rawget(_G, "x")
mr> "alive"
"alive"
mr>
E
type 'print "started" while true do pcall(error) end'
t_until 20 eval "screen | grep -q '^started'"
keys C-c
t_until 20 eval "screen | grep -q 'interrupted'"
type '7 * 6'
t_ok 'Ctrl-C stops what runs' t_until 20 eval "screen | grep -q '^42'"

start 80 24
keys -l string.up
keys Tab
type '("a")'
becomes 'TAB completes a field' <<'E'
mr> string.upper("a")
"A"
mr>
E
keys -l math.m
keys Tab
becomes 'and lists the choices' <<'E'
mr> string.upper("a")
"A"
mr> math.m
max         maxinteger  min         mininteger  modf
mr> math.m
E
keys C-c Up Enter
becomes 'the history has what was typed' <<'E'
mr> string.upper("a")
"A"
mr> math.m
max         maxinteger  min         mininteger  modf
mr> math.m^C
mr> string.upper("a")
"A"
mr>
E
keys C-d
t_ok 'Ctrl-D leaves' t_until 20 eval '! tmux has-session'
start 80 24
keys Up Enter
becomes 'the history is kept' <<'E'
mr> string.upper("a")
"A"
mr>
E

start 80 24
type 'for i = 1, 2 do'
type '  print(i)'
type 'end'
t_until 20 eval "screen | grep -q '^2'"
keys Up Enter
becomes 'a chunk of several lines is one entry' <<'E'
mr> for i = 1, 2 do
>>   print(i)
>> end
1
2
mr> for i = 1, 2 do
  print(i)
end
1
2
mr>
E
keys C-d
t_until 20 eval '! tmux has-session'
start 80 24
keys Up BSpace BSpace BSpace
type 'end print "again"'
becomes 'which is kept, and can be edited' <<'E'
mr> for i = 1, 2 do
  print(i)
end print "again"
1
2
again
mr>
E
keys C-r
keys -l upper
t_until 20 eval "screen | grep -q 'string.upper'"
keys Enter
t_ok 'Ctrl-R finds an entry' t_until 20 eval "screen | grep -q '^\"A\"'"
type 'while true do'
t_until 20 eval "screen | tail -1 | grep -q '^>>'"
keys C-c
t_until 20 eval "screen | tail -1 | grep -q '^mr>'"
keys Up
t_ok 'what Ctrl-C dropped can be had back' t_until 20 eval "screen | tail -1 | grep -q 'while true do'"

start 80 24 MILLRACE_HISTORY="$T/mine"
keys Up
type '"fresh"'
becomes 'MILLRACE_HISTORY names another file' <<'E'
mr> "fresh"
"fresh"
mr>
E
t_is 'which is written' "$(<"$T/mine")" '"fresh"'
mkfifo "$T/pipe"
for history in "$T/pipe" /dev/zero; do
	start 80 24 MILLRACE_HISTORY="$history"
	type '1 + 1'
	t_ok "MILLRACE_HISTORY that is no file, $history, is not read" t_until 20 eval "screen | grep -q '^2'"
	t_ok '  which is said' eval "tmux capture-pane -p | grep -q '^millrace: the history $history is not a file'"
done
start 80 24 MILLRACE_HISTORY=
type '"nowhere"'
t_until 20 eval "screen | grep -q '^\"nowhere'"
t_is 'empty: none is kept' "$(cat "$T/mine" "$T/.local/state/millrace/history" | grep -c nowhere)" 0
keys -l ':sa'
keys Tab
type " $T/saved.lua"
t_ok 'TAB completes a command' t_until 20 eval "screen | grep -q 'saved.lua: 0 chunks'"
keys -l 'plan = mr.load_plan "gemm_co'
keys Tab
type '"'
t_until 20 eval "screen | tail -1 | grep -q '^mr>$'"
keys -l 'plan:append("lo'
keys Tab
t_ok 'and an sTask' t_until 20 eval "screen | grep -q 'plan:append(\"load_'"

start 80 10 "MILLRACE_PAGER='cat >$T/paged'"
type 'text = ("line\n"):rep(10) .. "last"'
type 'text'
t_until 20 eval "grep -q last '$T/paged'"
becomes 'what fills the screen goes to the pager' <<'E'
mr> text = ("line\n"):rep(10) .. "last"
mr> text
mr>
E
rm "$T/paged"
type '"short"'
t_until 20 eval "screen | grep -q '^\"short'"
t_ok 'and what does not, does not' test ! -e "$T/paged"
type 'help'
t_ok 'help does, too' t_until 20 grep -q '^  Environment' "$T/paged"
type 'long = setmetatable({}, {__tostring = function() return ("line\n"):rep(10) .. "second" end})'
type 'return "first", long'
t_ok 'and of several values the long one' t_until 20 grep -q '^second' "$T/paged"
t_ok 'but no other' t_until 20 eval "screen | grep -q '^\"first'"
type 'mr.load_plan("attention_serial"):simulate():print()'
t_ok 'and a timeline that is printed' t_until 20 grep -q '^loop n: II' "$T/paged"
start 80 10 MILLRACE_PAGER=
type '("line\n"):rep(80) .. "last"'
t_ok 'an empty MILLRACE_PAGER: there is none' t_until 20 eval "screen | tail -1 | grep -q '^mr>' && screen | grep -q '^last'"
start 80 10 "MILLRACE_PAGER=$T/none"
type '("line\n"):rep(80) .. "last"'
t_ok 'nor if it is not there' t_until 20 eval "screen | tail -1 | grep -q '^mr>' && screen | grep -q '^last'"
if command -v less >/dev/null; then
	start 80 10
	type '("line\n"):rep(80) .. "last"'
	t_until 20 eval "screen | tail -1 | grep -q '^:'"
	t_result $? 'without MILLRACE_PAGER it is less'
	leave() { # Ctrl-C may take what is typed right behind it away
		screen | tail -1 | grep -q '^mr>' || { keys q; false; }
	}
	keys C-c
	t_ok 'that q leaves, and Ctrl-C does not' t_until 20 leave
	keys C-u
	type '6 * 7'
	t_ok 'for the shell' t_until 20 eval "screen | grep -q '^42'"
fi
t_done
