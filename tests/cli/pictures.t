# Pictures and traces where something is missing: a font, space on the disk, a reader. One message each.
. tests/lib.sh

tl='local tl = mr.load_plan("attention_serial"):simulate()'
# The message alone, without the line of the program that it shows.
message() { sed -n '/^  1 | /!p' "$T/err"; }

cat >"$T/fonts.conf" <<'E'
<?xml version="1.0"?><fontconfig><dir>/nowhere</dir></fontconfig>
E
without_fonts() { t_cmd "$1" 0 env FONTCONFIG_FILE="$T/fonts.conf" "$MILLRACE" -e "$tl $2"; }
without_fonts 'a machine without fonts' "tl:png '$T/a.png' tl:pdf '$T/a.pdf' tl:frames('$T/frames', {count = 2})"
t_is 'gets one message' "$(wc -l <"$T/err")" 1
t_err 'and what helps' '^no font is installed, .* fonts-dejavu-core'
t_ok 'and has its pictures' [ -s "$T/a.png" -a -s "$T/a.pdf" -a -s "$T/frames/0002.png" ]
without_fonts 'a picture that names its font' "tl:svg '$T/a.svg'"
t_is 'needs none' "$(<"$T/err")" ''

for call in svg png pdf trace; do
	options=
	[ $call = png ] && options=', {scale = 6}' # more than a pipe takes
	t_cmd "$call to a full disk" 1 "$MILLRACE" -e "$tl tl:$call '/dev/full'"
	t_is 'is one message' "$(message)" 'millrace: (command line):1: cannot write /dev/full: No space left on device'
	t_cmd "$call to a pipe that nobody reads" 1 bash -c 'set -o pipefail; "$MILLRACE" -e "$1" | :' - \
		"$tl tl:$call('/dev/stdout'$options)"
	t_is 'is one message' "$(message)" 'millrace: (command line):1: cannot write /dev/stdout: Broken pipe'
done
t_done
