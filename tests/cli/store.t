# The store of measurements: no row is lost when a shell ends, several shells may write at once, what is
# written parses, and a problem of a file is reported once.
. tests/lib.sh

export MILLRACE_STORE="$T/data/store.db"
row='plan = mr.load_plan "gemm_cooperative" put = function(seed) return mr.store:put{plan=plan, kind="bench", ms=1, seed=seed} end'

# ---- kill -9 ----

# A writer prints each row that it has written, and waits for permission to write the next: all printed
# rows must be there when it is killed. Before each kill it has permission for more rows than are read, so that
# it is killed while it writes.
cat >"$T/writer.lua" <<E
$row
io.stdout:setvbuf "no"
for line in io.lines() do
  assert(put(math.tointeger(line)) == true)
  print(line)
end
E
mkfifo "$T/go" "$T/done"
seed=0
for ((round = 0; round < 50; round++)); do
	"$MILLRACE" "$T/writer.lua" <"$T/go" >"$T/done" 2>>"$T/writer.err" &
	pid=$!
	exec 8>"$T/go" 9<"$T/done"
	for ((i = 0; i < 10; i++)); do echo $((++seed)) >&8; done
	for ((i = 0; i <= round % 5; i++)); do
		read -r got <&9 && echo "$got" >>"$T/printed"
	done
	for ((i = 0; i < 60 * round; i++)); do :; done # each a little deeper in what it is at
	kill -KILL $pid
	while read -r got <&9; do echo "$got" >>"$T/printed"; done
	exec 8>&- 9<&-
	wait $pid 2>/dev/null
done
printed=$(wc -l <"$T/printed")
t_ok "fifty writers were killed, each after some rows ($printed in all)" [ "$printed" -ge 150 ]
cat >"$T/lost.lua" <<'E'
local there, lost, twice = {}, 0, 0
for _, row in ipairs(mr.store:list{limit=100000}) do
  twice, there[row.seed] = twice + (there[row.seed] and 1 or 0), true
  assert(row.script == mr.load_plan "gemm_cooperative":script())
end
for line in io.lines(arg[1]) do lost = lost + (there[math.tointeger(line)] and 0 or 1) end
print(lost, twice)
E
t_cmd 'afterwards the store is read' 0 "$MILLRACE" "$T/lost.lua" "$T/printed"
t_out 'no printed row is lost, and none is there twice' <<<$'0\t0'
t_is 'and there was no message' "$(<"$T/writer.err")" ''
t_is 'nor was a file set aside' "$(ls "$T/data" | grep -c damaged)" 0

# ---- two at once ----

before=$("$MILLRACE" -e 'print(#mr.store)')
for shell in 1 2; do
	"$MILLRACE" -e "$row for i = 1, 100 do assert(put(i) == true) end" 2>"$T/err$shell" &
done
wait
t_is 'two shells that write at once write all' "$("$MILLRACE" -e 'print(#mr.store)')" $((before + 200))
t_is 'and complain of nothing' "$(cat "$T/err1" "$T/err2")" ''

# ---- for other programs ----

cat >"$T/odd.lua" <<E
$row
for i, text in ipairs{'plain', 'a "quoted", one', 'two\nlines', 'bytes \xff\0', 'ü€😀', ''} do
  mr.store:put{plan=plan, kind="odd", message=text, error=i / 3, correct=i % 2 == 0, time="2026-01-31T12:00:00Z"}
end
print(mr.store:export("$T/odd.csv", {kind="odd"}), mr.store:export("$T/odd.json", {kind="odd"}))
io.open("$T/text.json", "w"):write(mr.store:json{kind="odd"}):close()
E
t_cmd 'rows are exported' 0 "$MILLRACE" "$T/odd.lua"
t_out 'all that were asked for' <<<$'6\t6'
cmp -s "$T/odd.json" "$T/text.json"
t_result $? 'the text is what the file has'
cat >"$T/look.pl" <<'E'
use strict; use JSON::PP; binmode STDOUT, ":utf8";
local $/; open my $f, "<:raw", $ARGV[0]; my $rows = JSON::PP->new->utf8->decode(<$f>);
for my $r (@$rows) {
  printf "%s|%s|%.17g|%s|%s|%s\n", $r->{id} =~ /^\d+$/ ? "id" : "?", $r->{message} =~ s/\n/\\n/r, $r->{error},
    $r->{correct} ? "right" : "wrong", defined $r->{ms} ? "ms" : "null", $r->{script} =~ /^(-- .*\n)*local mr.*return plan\n$/s ? "script" : "?";
}
E
cat >"$T/want" <<'E'
id||2|right|null|script
id|ü€😀|1.6666666666666667|wrong|null|script
id|bytes �\0|1.3333333333333333|right|null|script
id|two\nlines|1|wrong|null|script
id|a "quoted", one|0.66666666666666663|right|null|script
id|plain|0.33333333333333331|wrong|null|script
E
perl "$T/look.pl" "$T/odd.json" 2>&1 | tr '\000' '@' | sed 's/@/\\0/' >"$T/got"
t_is 'the JSON is what another parser reads' "$(<"$T/got")" "$(<"$T/want")"
cat >"$T/look.py" <<'E'
import csv, sys
for r in csv.DictReader(open(sys.argv[1], encoding="utf-8", newline="")):
    print("|".join(["id" if r["id"].isdigit() else "?", r["message"].replace("\n", "\\n"), repr(float(r["error"])), r["correct"], r["ms"],
        "script" if "\nlocal mr" in "\n" + r["script"] and r["script"].endswith("return plan\n") else "?"]))
E
cat >"$T/want" <<'E'
id||2.0|true||script
id|ü€😀|1.6666666666666667|false||script
id|bytes ��|1.3333333333333333|true||script
id|two\nlines|1.0|false||script
id|a "quoted", one|0.6666666666666666|true||script
id|plain|0.3333333333333333|false||script
E
t_is 'so is the CSV' "$(python3 "$T/look.py" "$T/odd.csv" 2>&1)" "$(<"$T/want")"
t_is 'its first line has the names' "$(head -1 "$T/odd.csv" | awk -F , -v OFS=, '{ print $1, $2, $3, $4, $5 }')" 'id,time,kind,status,program'
t_cmd 'an export that cannot be written' 1 "$MILLRACE" -e 'mr.store:export "/dev/null/x.csv"'
t_err '  says so' '^millrace: \(command line\):1: export: /dev/null/x.csv.part: Not a directory$'
t_is '  and a file of another kind stays' "$(ls "$T" | grep -c part)" 0

# ---- a problem is reported once, and work goes on ----

work="$row for i = 1, 3 do print(put(i)) end print(mr.store:best(plan.graph.program, 'h200'), #mr.store:near(plan.graph.program, 'h200'))"
goes_on() { # TITLE ERE: one message, and the answers of an empty store
	t_cmd "$1" 0 "$MILLRACE" -e "$work"
	t_like '  work goes on' "$(tail -1 "$T/out")" '^nil	0$'
	t_err '  and there is a message' "$2"
	t_is '  once' "$(wc -l <"$T/err")" 1
}
MILLRACE_STORE=/dev/full goes_on 'a device' '^millrace: store: /dev/full is not a file; set MILLRACE_STORE to one$'
MILLRACE_STORE=/proc/store.db goes_on 'a folder that nobody may write' '^millrace: store: /proc/store.db: .*set MILLRACE_STORE'
MILLRACE_STORE=/proc/no/store.db goes_on 'one that cannot be made' '^millrace: store: the folder of /proc/no/store.db cannot be made: '
cat >"$T/newer.pl" <<'E'
open my $f, "+<:raw", $ARGV[0]; seek $f, 60, 0; print $f pack "N", 99;
E
cp "$T/data/store.db" "$T/newer.db"
perl "$T/newer.pl" "$T/newer.db"
sum=$(cksum <"$T/newer.db")
MILLRACE_STORE="$T/newer.db" goes_on 'a store of a newer Millrace' 'was written by a newer Millrace \(version 99, '
t_is '  which is not touched' "$(cksum <"$T/newer.db")" "$sum"
t_cmd 'who asks for its rows' 1 env MILLRACE_STORE="$T/newer.db" "$MILLRACE" -e 'mr.store:list()'
t_err '  gets an error' '^millrace: \(command line\):1: store: .*newer Millrace'

head -c 5000 "$T/data/store.db" >"$T/short.db"
t_cmd 'a store whose end is missing' 0 env MILLRACE_STORE="$T/short.db" "$MILLRACE" -e "$work"
t_like '  is replaced by a new one' "$(head -1 "$T/out")" '^true'
t_is '  with one message' "$(<"$T/err")" "millrace: store: $T/short.db is damaged; it was set aside as $T/short.db.damaged-1, and a new one is begun"
t_is '  and is still there' "$(wc -c <"$T/short.db.damaged-1")" 5000

echo 'Notes of a month.' >"$T/notes.txt"
MILLRACE_STORE="$T/notes.txt" goes_on 'a file of somebody' "^millrace: store: $T/notes.txt is no SQLite database and stays as it is"
t_is '  which is not touched' "$(<"$T/notes.txt")" 'Notes of a month.'
t_is '  nor renamed' "$(ls "$T" | grep -c 'notes.txt.')" 0

for end in csv json; do
	echo old >"$T/rows.$end"
	ln -s /dev/full "$T/rows.$end.part"
	t_cmd "an export as $end to a full disk" 1 "$MILLRACE" -e "mr.store:export '$T/rows.$end'"
	t_err '  is an error' "export: No space left on device, so $T/rows.$end stays as it was"
	t_is '  and the old file is there' "$(<"$T/rows.$end")" old
done

t_cmd 'no store' 0 env MILLRACE_STORE=none "$MILLRACE" -e "$row print(put(1), mr.store.path, #mr.store, #mr.store:list())"
t_out '  keeps nothing' <<<$'false\tnil\t0\t0'
t_is '  and says nothing' "$(<"$T/err")" ''

unset MILLRACE_STORE
t_cmd 'without a variable' 0 "$MILLRACE" -e 'print(mr.store.path, #mr.store)'
t_out '  it is in the home folder' <<<"$T/.local/share/millrace/store.db	0"
t_ok '  where looking makes nothing' [ ! -e "$T/.local" ]
XDG_DATA_HOME=$T/xdg "$MILLRACE" -e "$row put(1)"
t_ok '  or where XDG_DATA_HOME says' [ -s "$T/xdg/millrace/store.db" ]
t_done
