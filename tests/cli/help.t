# What the manual page takes from help, and help in the shell.
. tests/lib.sh
"$MILLRACE" docs/generate.lua man >"$T/millrace.1"
t_like 'the manual page has the options' "$(<"$T/millrace.1")" '^\.B "\\-e CODE"'
t_like 'the problems' "$(<"$T/millrace.1")" '^\.B "missing_wait"'
t_like 'and the functions' "$(<"$T/millrace.1")" '^\.B "plan:append'
t_is 'no line of it is a request by accident' \
	"$(grep -E "^[.']" "$T/millrace.1" | grep -vE '^\.(TH|SH|PP|TP|B|I|nf|fi)( |$)')" ''
if command -v groff >/dev/null; then
	t_is 'troff has nothing to say against it' "$(groff -man -Tascii -ww "$T/millrace.1" 2>&1 >/dev/null)" ''
fi

# The names that the shell itself uses, and how it tells what it does not know.
help() {
	"$MILLRACE" -i <<<"help \"$1\"" | tail -n +2
}
t_is 'a field, by what documents call its object' "$(help tl.ii | head -1)" timeline.ii
t_is 'a word' "$(help RecMII | head -1)" RecMII
t_like 'a problem, with its repair' "$(help deadlock)" '^  repair: take a wait out'
t_like 'a word that is a problem, too' "$(help offset)" '^problem: offset$'
t_like 'all problems' "$(help problems)" '^  missing_wait$'
t_like 'a variable' "$(help MILLRACE_HOME)" 'hw/ and examples/'
t_like 'the keys of the explorer' "$(help explorer)" '^    \? F1 '
t_is 'a slip' "$(help deadlok)" "no help about 'deadlok'; did you mean 'deadlock'?"
t_is 'a word of two' "$(help 'steady state' | head -1)" 'steady state'
t_is 'a call as it is written' "$(help 'plan:undo()' | head -1)" 'plan:undo()'
t_like 'bank conflicts: where the swizzle is' "$("$MILLRACE" -e 'help "bank conflicts"')" 'swizzle'
t_like 'the size of a png is said' "$("$MILLRACE" -e 'help "pictures"' | tr -s '\n ' ' ')" 'a png has scale= times as many'
t_done
