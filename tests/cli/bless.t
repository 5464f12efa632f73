# BLESS=1 with docs.t writes what sessions of documents say: the same each time, also where a session keeps something.
. tests/lib.sh

mkdir -p "$T/tree/docs" "$T/tree/tests/cli"
cp tests/lib.sh "$T/tree/tests"
cp tests/cli/docs.t "$T/tree/tests/cli"

document() { # WHAT THE SESSIONS SAY...
	cat <<E
Kept:

\`\`\`console
mr> plan = mr.load_plan "gemm_cooperative"
mr> kept = mr.store:put{plan=plan, timeline=plan:simulate(), kind="tried"}
mr> #mr.store
$1
\`\`\`

The same session:

<!-- continues -->
\`\`\`console
mr> #mr.store
$2
\`\`\`

Another one finds nothing of it:

\`\`\`console
mr> #mr.store
$3
\`\`\`
E
}

document 7 7 7 >"$T/tree/docs/kept.md"
cd "$T/tree" || exit
BLESS=1 bash tests/cli/docs.t >"$T/out" 2>&1
t_is 'sessions are written' "$(<docs/kept.md)" "$(document 1 1 0)"
t_cmd 'written once more, they pass' 0 env BLESS=1 bash tests/cli/docs.t
t_is '  and stay as they are' "$(<docs/kept.md)" "$(document 1 1 0)"
t_cmd 'so they do when they are played' 0 bash tests/cli/docs.t
document 1 2 0 >docs/kept.md
t_cmd 'what is not said fails' 1 bash tests/cli/docs.t
cd - >/dev/null || exit
t_done
