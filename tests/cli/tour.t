# The tour of the README, typed as it stands there into a fresh shell. Every key must stand on the
# screen before it is typed, and what the right column promises must come true.
. tests/lib.sh
command -v tmux >/dev/null || t_skip_all 'no tmux'

tmux() {
	command tmux -L "mrt$$" -f /dev/null "$@" 2>/dev/null
}
# What ends now may still write: what a first rm leaves, a second one removes.
trap '[ $BASHPID != $$ ] || { tmux kill-server; rm -rf "$T" 2>/dev/null || rm -rf "$T"; }' EXIT

screen() {
	tmux capture-pane -p
}

has() { # TEXT
	screen | grep -Fq -- "$1"
}

# What is typed, row by row: code stands in backquotes, keys by name.
awk -F' [|] ' '/^<!-- tour/ { on = 1; next } on && /^[|] [^t-]/ { sub(/^[|] /, "", $1); print $1 } on && /^$/ { exit }' \
	README.md >"$T/tour"
# What must be seen after each row.
cat >"$T/seen" <<'E'
mr>
mr>
waits for load_q, load_k
mma_pv 0, tile 0
mma_pv is picked up
with one version more
ms (-
steady state, tile 0
now takes
print(_) prints it
E
t_is 'the tour is as long as what is to be seen' "$(wc -l <"$T/tour")" "$(wc -l <"$T/seen")"

env -i PATH="$PATH" LC_ALL=C.UTF-8 TERM=screen HOME="$T" \
	tmux -L "mrt$$" -f /dev/null new-session -d -x 80 -y 24 "exec env -i PATH='$PATH' HOME='$T' LC_ALL=C.UTF-8 \
	TERM=screen-256color MILLRACE_HOME='$MILLRACE_HOME' MILLRACE_HISTORY= PS1='sh> ' bash --norc --noprofile -i"
tmux set -g status off
tmux resize-window -x 80 -y 24
t_until 20 has 'sh>'

# type WHAT: a command of a shell, or one key, which must be on the screen.
type() {
	case $1 in
	build/millrace) tmux send-keys -l "$MILLRACE"; tmux send-keys Enter ;;
	plan*) tmux send-keys -l "$1"; tmux send-keys Enter ;;
	Up | Left) t_until 20 has arrows; t_result $? "arrows are spoken of before $1"; tmux send-keys "$1" ;;
	Enter | Space) t_until 20 has "$1"; t_result $? "$1 stands on the screen"; tmux send-keys "$1" ;;
	*) t_until 20 has "$1"; t_result $? "$1 stands on the screen"; tmux send-keys -l "$1" ;;
	esac
}

while read -r row <&3 && read -r seen <&4; do
	printf '%s\n' "$row" | sed 's/ then /\n/g; s/, /\n/g' | tr -d '`' >"$T/row"
	while read -r what <&5; do type "$what"; done 5<"$T/row"
	t_until 20 has "$seen"
	t_result $? "$row: '$seen'" || screen | sed 's/^/# /'
done 3<"$T/tour" 4<"$T/seen"
t_done
