# Lessons at the command line: in one go where there is no terminal, step by step by keys where there is;
# and docs/lessons.md and docs/gallery.md are what "make docs" would write.
. tests/lib.sh

# ---- in one go --------------------------------------------------------------------

for f in examples/lessons/*.lua; do
	t_cmd "$f in a pipe, in ten seconds" 0 timeout 10 "$MILLRACE" "$f"
	t_like '  prints its answers' "$(<"$T/out")" '^= Answer: '
	t_is '  and no prompt' "$(grep -c 'Enter: on' "$T/out")" 0
	[ "$(grep -c '\$(' "$T/out")" = 0 ]
	t_result $? '  and has filled in all numbers'
done
t_cmd 'one by name' 0 "$MILLRACE" -e 'mr.lesson "rings"'
cp "$T/out" "$T/rings"
t_cmd 'is the same as its file' 0 "$MILLRACE" examples/lessons/03_rings.lua
t_is '  to the letter' "$(<"$T/out")" "$(<"$T/rings")"
t_cmd 'its plan is there afterwards' 0 "$MILLRACE" -e 'mr.lesson "rings" print(plan.rings.a)'
t_is '  with what the lesson did' "$(tail -n 1 "$T/out")" 5
t_is 'at the prompt, the end does not send the reader there' \
	"$(echo 'mr.lesson("rings", {all=true})' | "$MILLRACE" -i | grep -c '^Its plans are at the prompt: plan:show() opens')" 1
t_cmd 'the list' 0 "$MILLRACE" -e 'print(mr.lessons())'
t_is '  has every file' "$(wc -l <"$T/out")" "$(ls examples/lessons/*.lua | wc -l)"

# ---- the documents ------------------------------------------------------------------

mkdir "$T/docs"
t_cmd 'the documents are made' 0 "$MILLRACE" lua/tools/docs.lua "$T/docs"
for f in lessons gallery; do
	cmp -s "docs/$f.md" "$T/docs/$f.md"
	t_result $? "docs/$f.md is what is made (make docs)" ||
		diff -u "docs/$f.md" "$T/docs/$f.md" | head -40 | sed 's/^/# /'
done
for f in $(ls "$T/docs/pictures" 2>/dev/null); do
	cmp -s "docs/pictures/$f" "$T/docs/pictures/$f"
	t_result $? "docs/pictures/$f is what is made"
done

# ---- step by step ---------------------------------------------------------------------

command -v tmux >/dev/null || { t_done; exit; }
terminals=0
tmux() { # one server a terminal: the end of one may not touch the next
	command tmux -L "mrl$$.$terminals" -f /dev/null "$@" 2>/dev/null
}
trap '[ $BASHPID != $$ ] || { tmux kill-server; rm -rf "$T"; }' EXIT

screen() {
	tmux capture-pane -p -S -
}

# start LESSON: in a fresh terminal, which stays when the lesson ends.
start() {
	tmux kill-server
	terminals=$((terminals + 1))
	printf '%s\n' "cd '$PWD'" "'$MILLRACE' $1" 'echo "it ended with $?"' 'read' >"$T/start.sh"
	env -i PATH="$PATH" LC_ALL=C.UTF-8 TERM=screen HOME="$T" MILLRACE_HOME="$MILLRACE_HOME" \
		tmux -L "mrl$$.$terminals" -f /dev/null new-session -d -x 80 -y 50 \
		"exec env TERM=screen NO_COLOR=1 HOME='$T' bash --norc --noprofile '$T/start.sh'"
	tmux set -g status off
}

at() { # STEP: the line that asks for a key, and nothing after it
	screen | sed '/^ *$/d' | tail -n 1 | grep -q "^-- $1 of [0-9]*\. Enter: on, b: back, q: leave --"
}

is_at() { # TITLE STEP
	t_until 20 at "$2"
	t_result $? "$1" || screen | tail -n 12 | sed 's/^/# /'
}

shows() { # TITLE TEXT
	t_until 20 eval "screen | grep -Fq -- '$2'"
	t_result $? "$1" || screen | tail -n 12 | sed 's/^/# /'
}

start examples/lessons/02_loads.lua
is_at 'it stops behind the first step' 1
shows 'which says what it is about' 'Lesson 2: How do loads'
t_is 'and shows no more' "$(screen | grep -c 'function product')" 0
tmux send-keys Enter
is_at 'Enter goes on' 2
shows 'to code as it would be typed' 'mr> function product(versions)'
tmux send-keys b
is_at 'b goes back' 1
tmux send-keys x
tmux send-keys Right
is_at 'another key does nothing, an arrow goes on' 2
tmux send-keys Space
is_at 'Space, too' 3
tmux send-keys Enter
shows 'a question waits for a guess' 'Your guess (Enter: none) >'
t_is '  without its answer' "$(screen | grep -c 'Answer:')" 0
tmux send-keys -l many
tmux send-keys Enter
shows '  which is a number' 'A number, please.'
tmux send-keys -l '1,000'
tmux send-keys Enter
shows '  and the lesson says how far off it is' 'That is not near: 1,000 is 50 % less.'
is_at '  and waits for a key' 4
tmux send-keys b
is_at 'back over it' 3
tmux send-keys Enter
is_at '  it does not ask again' 4
tmux send-keys q
shows 'q leaves' 'it ended with 0'

start 'examples/lessons/07_softmax.lua'
for i in 1 2 3 4; do
	is_at "on to the choice, step $i" $i
	tmux send-keys Enter
done
shows 'a choice has numbers' '  2 the same'
tmux send-keys -l 7
tmux send-keys Enter
shows '  and takes no other' 'A number from 1 to 3, please.'
tmux send-keys -l 3
tmux send-keys Enter
shows '  and the lesson says that it is right' 'That is right.'
tmux send-keys C-c
t_until 20 eval "screen | grep -q '^it ended with'"
t_result $? 'Ctrl-C ends it'

start -i
shows 'in the shell' 'mr>'
tmux send-keys -l 'mr.lesson "loads"'
tmux send-keys Enter
is_at '  a lesson goes step by step, too' 1
tmux send-keys Enter
is_at '  on' 2
tmux send-keys q
tmux send-keys -l 'print(("II is %.0f"):format(single.ii))'
tmux send-keys Enter
shows '  and what its code made is there' 'II is 1992'

# every lesson to its end, by Enter alone
for f in examples/lessons/*.lua; do
	start "$f"
	ended=
	for ((i = 0; i < 60; i++)); do
		before=$(screen | sed '/^ *$/d' | tail -n 1)
		[[ $before = 'it ended with'* ]] && { ended=$before; break; }
		case $before in
		--*Enter* | 'Your guess'*)
			count=$(screen | grep -c .)
			tmux send-keys Enter
			t_until 20 eval '[ "$(screen | grep -c .)" != '"$count"' ] || [ "$(screen | sed "/^ *$/d" | tail -n 1)" != "$before" ]'
			;;
		*) t_until 20 eval 'screen | sed "/^ *$/d" | tail -n 1 | grep -Eq "^(-- |Your guess|it ended)"' ;;
		esac
	done
	t_is "$f step by step to its end" "$ended" 'it ended with 0'
done
t_is 'the last one points to nothing further, the first to the second' \
	"$("$MILLRACE" examples/lessons/01_idle.lua | grep -c '^Next: mr.lesson "loads"')" 1

start 'examples/lessons/01_idle.lua --all'
shows '--all is in one go in a terminal, too' 'it ended with 0'
t_is '  without a prompt' "$(screen | grep -c 'Enter: on')" 0
t_done
