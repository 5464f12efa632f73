# make install and uninstall, in a folder: what comes, that it works from there, that nothing stays.
. tests/lib.sh
case $MILLRACE in
*/build/*/millrace) mode=$(basename "$(dirname "$MILLRACE")") ;;
*) mode=release ;;
esac
[ -x "build/$mode/millrace" ] || t_skip_all "no build/$mode"
top=$PWD

at() { # TARGET: made of the build that is there, with whatever compiler and flags that was
	env -u MILLRACE_HOME make --no-print-directory -o "build/$mode/millrace" MODE="$mode" \
		PREFIX=/opt/m DESTDIR="$T/stage" "$@"
}

link=$(readlink build/millrace)
rm -rf "build/$mode/page"
t_cmd 'make install' 0 at install
( cd "$T/stage" && find . -type f | grep -v '/share/millrace/' | sort ) >"$T/out"
t_out 'puts these outside share/millrace' <<'E'
./opt/m/bin/millrace
./opt/m/share/bash-completion/completions/millrace
./opt/m/share/man/man1/millrace.1
./opt/m/share/zsh/site-functions/_millrace
E
t_ok 'and the devices and examples there' test -f "$T/stage/opt/m/share/millrace/hw/h200.lua" -a \
	-f "$T/stage/opt/m/share/millrace/examples/gemm.lua"
t_cmd 'the program finds them from anywhere' 0 env -u MILLRACE_HOME -C / "$T/stage/opt/m/bin/millrace" \
	-e 'print(mr.device("h200").name, mr.home)'
t_is 'in the prefix' "$(<"$T/out")" "h200	$T/stage/opt/m/share/millrace"
t_like 'the manual page is one' "$(head -1 "$T/stage/opt/m/share/man/man1/millrace.1")" '^\.TH MILLRACE 1 '
if command -v man >/dev/null; then
	t_like 'and can be read' "$(MANWIDTH=80 man -l "$T/stage/opt/m/share/man/man1/millrace.1" 2>&1)" \
		'^ +MILLRACE_HOME$'
fi

# complete WORDS...: what bash offers for the last word.
complete_words() {
	bash -c '. "$1"; shift; COMP_WORDS=(millrace "$@"); COMP_CWORD=$#; _millrace; echo "${COMPREPLY[@]}"' \
		- "$T/stage/opt/m/share/bash-completion/completions/millrace" "$@"
}
mkdir -p "$T/here/folder"
touch "$T/here/plan.lua" "$T/here/plan.txt"
cd "$T/here" || exit
t_is 'bash completes options' "$(complete_words --)" '--farm --version --help --'
t_is 'scripts, folders and subcommands' "$(complete_words '')" 'plan.lua folder check diff show predict run serve'
t_is 'subcommands' "$(complete_words pr)" 'predict'
t_is 'their options' "$(complete_words check --p)" '--program'
t_is 'and their plans' "$(complete_words check --json pl)" 'plan.lua'
t_is 'also behind options' "$(complete_words -s -e x pl)" 'plan.lua'
t_is 'nothing behind -e' "$(complete_words -e pl)" ''
t_is 'and any file behind the script' "$(complete_words plan.lua pl | tr ' ' '\n' | sort | tr '\n' ' ')" 'plan.lua plan.txt '
cd "$top" || exit
t_like 'zsh completes every option' "$(<"$T/stage/opt/m/share/zsh/site-functions/_millrace")" "'--help\["
if command -v zsh >/dev/null; then
	t_ok 'in a form that it can read' zsh -n "$T/stage/opt/m/share/zsh/site-functions/_millrace"
	cat >"$T/type.zsh" <<'E'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; cd $2; print REA''DY"
zpty -r z out '*READY*' || exit 1
zpty -w -n z "$3"$'\t'
zpty -r z out "$4"
E
	zsh_shows() { # TITLE TEXT PATTERN: what is seen in a terminal after the text and a tab
		t_ok "$1" timeout 60 zsh -f "$T/type.zsh" "$T/stage/opt/m/share/zsh/site-functions" "$T/here" "$2" "$3"
	}
	zsh_shows 'and offers the options' 'millrace --' '*--help*--version*'
	zsh_shows 'and scripts' 'millrace pl' '*millrace plan.lua*'
	zsh_shows 'subcommands' 'millrace pred' '*millrace predict*'
	zsh_shows 'their options' 'millrace check --pro' '*check --program*'
	zsh_shows 'and their plans' 'millrace check pl' '*check plan.lua*'
	zsh_shows 'scripts also behind options' 'millrace -s -e x pl' '*-e x plan.lua*'
fi

t_cmd 'make uninstall' 0 at uninstall
t_is 'leaves no file' "$(find "$T/stage" ! -type d)" ''
t_is 'and no folder of its own' "$(find "$T/stage" -type d -name millrace)" ''
[ -z "$link" ] || ln -sfn "$link" build/millrace
t_done
