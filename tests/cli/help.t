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
# Words of others lead to the topic that answers them, and where there is none, the nearest ones are named.
for pair in 'critical path=critical chain' 'exit status=exit status' 'exit code=exit status' 'atomic add=atomic add' \
	'padding=coalescing, alignment, padding' 'dynamic shapes=dynamic shape' 'nsight=profiler' 'cuda graph=CUDA graph' \
	'pipeline bubble=prefetch, pipeline bubble' 'register pressure=register pressure' 'prefetch=prefetch, pipeline bubble' \
	'layer norm=layer norm' 'layernorm=layer norm' 'load balancing=load balancing' 'memory coalescing=coalescing, alignment, padding' \
	'reduction=reduction' 'occupancy limit=occupancy' 'spill=register spill' 'bank conflict=bank conflict' 'tensor map=tensor map' \
	'deadlock=problem: deadlock' 'data race=data race' 'race condition=data race'; do
	t_is "help about ${pair%=*}" "$(help "${pair%=*}" | head -1)" "${pair#*=}"
done
t_like 'a race is also what others call so' "$(help race)" '^  data race '
t_like 'words that are nowhere together have nearest topics' "$(help 'persistent threads' | tr '\n' ' ')" \
	"no help about 'persistent threads' the nearest topics are   persistent kernel .* threads "
t_is 'and where nothing is near, all are listed elsewhere' "$(help xyzzy)" "no help about 'xyzzy'; help() lists the topics"
t_done
