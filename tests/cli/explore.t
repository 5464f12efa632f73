# Explorers in a real terminal: what only a terminal, a shell and signals can show.
# The screen is polled until it is as wanted; nothing here waits a fixed time.
. tests/lib.sh
command -v tmux >/dev/null || t_skip_all 'no tmux'

# The sanitizer's own handler ends otherwise; and what libedit leaves over is not ours.
export ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=0:detect_leaks=0"
terminals=0
tmux() { # one server a terminal: the end of one may not touch the next
	command tmux -L "mrx$$.$terminals" -f /dev/null "$@" 2>/dev/null
}
trap '[ $BASHPID != $$ ] || { tmux kill-server; rm -rf "$T"; }' EXIT

cat >"$T/open.lua" <<'E'
plan = mr.load_plan "attention_pingpong"
print "what stood there"
local core, progress = require "millrace.core", require "millrace.progress"
local history = {}
for i = 1, 30 do history[i] = {trial=i, predicted=(1 + 7 * i % 30) * 1e-4} end
-- A search that goes on until it is stopped.
function watch(show)
	local w <close> = progress.watch{title="a search", show=show}
	local state = {phase="model", trials=30, shapes=5, best=1e-4, bound=1e-4, history=history}
	core.heed(function() while true do w(state) end end)
	return w:finish{ended="interrupted"} or "left"
end
E

# start: a shell of the system, of which millrace is a job.
start() {
	tmux kill-server
	terminals=$((terminals + 1))
	env -i PATH="$PATH" LC_ALL=C.UTF-8 TERM=screen HOME="$T" MILLRACE_HOME="$MILLRACE_HOME" \
		tmux -L "mrx$$.$terminals" -f /dev/null new-session -d -x 100 -y 30 \
		"exec env TERM=screen-256color HOME=$T HISTFILE=/dev/null PS1='sh> ' ASAN_OPTIONS='$ASAN_OPTIONS' \
		MR='$MILLRACE' T='$T' bash --norc --noprofile -i"
	tmux set -g status off
	tmux resize-window -x 100 -y 30
	t_until 20 shows 'sh>'
}

keys() {
	tmux send-keys "$@"
}

type() { # text, then Enter
	tmux send-keys -l "$1"
	keys Enter
}

screen() {
	tmux capture-pane -p | sed 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

shows() { # ERE: the last line matches
	screen | tail -n 1 | grep -Eq -- "$1"
}

has() { # TEXT
	screen | grep -Fq -- "$1"
}

lacks() {
	! has "$1"
}

job() { # process of millrace
	pgrep -P "$(tmux display -p '#{pane_pid}')" -f 'open\.lua' | head -n 1
}

modes() { # of the terminal, as a file says
	stty -a <"$(tmux display -p '#{pane_tty}')"
}

# open: the shell of millrace, and in it an explorer.
open() {
	type '"$MR" -i "$T/open.lua"; echo status $?'
	t_until 20 shows '^mr>' || return 1
	modes >"$T/modes"
	screen >"$T/before"
	type "$1"
	t_until 20 has 'q quit'
}

as_before() { # what stood there before stands there again
	screen | head -n "$(wc -l <"$T/before")" | sed '$d' >"$T/after"
	sed '$d' "$T/before" | cmp -s - "$T/after"
}

start
t_ok 'an explorer opens from the shell' open 'plan:show()'
t_ok 'on a screen of its own' lacks 'what stood there'
t_ok 'it is the one of the plan' has load_q
keys q
t_ok 'q leaves it' t_until 20 shows '^mr>'
t_ok 'the screen is as it was' as_before
t_is 'and so are the modes of the terminal' "$(modes)" "$(<"$T/modes")"
type '6 * 7'
t_ok 'the shell goes on' t_until 20 has 42
keys Up Enter
t_until 20 shows '^mr>'
type 'plan:simulate():show()'
t_ok 'another opens' t_until 20 has 'q quit'
tmux resize-window -x 60 -y 20
t_ok 'its size is the terminal'\''s' t_until 20 eval '[ "$(screen | wc -l)" = 20 ]'
tmux resize-window -x 100 -y 30
t_until 20 eval '[ "$(screen | wc -l)" = 30 ]'

keys C-c
t_ok 'Ctrl-C leaves it' t_until 20 shows '^mr>'
type '"al" .. "ive"'
t_ok 'and not the shell' t_until 20 has '"alive"'
keys C-d
t_ok 'which ends well' t_until 20 has 'status 0'

start
open 'plan:show()'
screen >"$T/explorer"
keys C-z
t_ok 'Ctrl-Z gives the terminal back' t_until 20 shows '^sh>'
t_ok 'with what stood there' has 'what stood there'
type 'echo "he"re'
t_ok 'with its echo' t_until 20 has 'echo "he"re'
t_ok 'and a shell that works' t_until 20 has here
type fg
t_ok 'fg brings the explorer back' t_until 20 has 'q quit'
t_until 20 eval 'screen | cmp -s - "$T/explorer"'
t_ok 'as it was' eval 'screen | cmp -s - "$T/explorer"'
keys q
t_ok 'and it listens to keys' t_until 20 shows '^mr>'

start
"$MILLRACE" -e "mr.load_plan 'attention_serial':save '$T/serial.lua'"
cp "$T/serial.lua" "$T/kept.lua"
type '"$MR" show "$T/serial.lua"; echo status $?'
t_ok 'millrace show opens one, too' t_until 20 has 'q quit'
type 'tn=64'
t_until 20 has 'propagate n=64'
keys C-c
t_ok 'Ctrl-C does not lose edits where nothing keeps them' t_until 20 has 'the edits are not saved: s save them to a file'
keys n
t_ok 'and leaves after n' t_until 20 has 'status 0'
t_ok 'with the file as it was' cmp -s "$T/serial.lua" "$T/kept.lua"
t_ok 'and says nothing of a plan that is gone' lacks 'keeps its edits'

start
open 'mr.load_plan "gemm_pingpong":show()'		# the search around it is short
tmux send-keys -l "i"$'\r'"?"
t_ok 'a key that is pressed while a search runs is dropped' t_until 60 has 'tried'
keys q
t_until 20 shows '^mr>|y keep'
keys n

for sig in TERM SEGV; do
	start
	open 'plan:show()'
	kill -$sig "$(job)"
	want=$((128 + $(kill -l $sig)))
	t_ok "SIG$sig: the shell of the system is there" t_until 20 shows '^sh>'
	t_ok '  knows of what' has "status $want"
	t_ok '  and what stood there stands there' has 'what stood there'
	type 'echo "he"re'
	t_ok '  with its echo' t_until 20 has 'echo "he"re'
done

start
type '"$MR" -i "$T/open.lua"; echo status $?'
t_until 20 shows '^mr>'
modes >"$T/modes"
for key in q C-c; do
	type 'watch(true)'
	t_ok "a search is watched while it runs" t_until 20 has 'q stops the search'
	keys $key
	t_ok "$key stops it" t_until 20 has 'any other key leaves'
	t_ok '  and it stays to be seen' has 'ended: interrupted'
	keys x
	t_ok '  until a key is pressed' t_until 20 shows '^mr>'
	t_is '  the modes of the terminal are as before' "$(modes)" "$(<"$T/modes")"
done
type 'watch(true)'
t_until 20 has 'q stops the search'
keys q
t_until 20 has 'any other key leaves'
keys Enter
t_ok 'Enter says that the best is to be opened' t_until 20 has '"open"'
type 'watch()'
t_ok 'without a screen there is a line' t_until 20 has 'model: 30 plans of 5 shapes, best 100 µs, bound 100'
keys C-c
t_ok 'which goes when the search ends' t_until 20 lacks 'model: 30 plans'
keys C-d
t_ok 'and the shell ends well' t_until 20 has 'status 0'

start
type 'TERM=vt0 "$MR" -i "$T/open.lua"'
t_until 20 shows '^mr>'
type 'plan:show()'
t_until 20 shows '^mr>'
type '"al" .. "ive"'
t_ok 'a terminal that is not known is no end of the shell' t_until 20 has '"alive"'
t_done
