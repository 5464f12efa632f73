# Every example in README.md and docs/ is run.
#
#   ```lua       a chunk of its own; none may be excused from running
#   ```console   a session: what follows the prompts is typed, and all that comes out
#                must be the text, from the first "mr> " on (before it may stand how
#                the shell was started); without any prompt it is not ours to run
#                BLESS=1 writes what came out into the document instead
#   <!-- continues -->   before a block: it goes on where the block of the same kind
#                before it ended; a lua block also knows the other's locals
. tests/lib.sh
top=$PWD

# $T/N.lua and $T/N.console, with the line numbers of the document; and a list
# of blocks: N kind location first-or-more.
list=$(awk -v dir="$T" '
	FNR == 1 { kind = "" }
	kind != "" && /^[ \t]*```[ \t]*$/ { kind = ""; close(out); next }
	kind != "" { print >out; next }
	/^[ \t]*```(lua|console)[ \t]*$/ {
		kind = $0; gsub(/[ \t`]/, "", kind)
		out = dir "/" ++n "." kind
		printf "" >out
		if (kind == "lua") for (i = 0; i < FNR; i++) print "" >out
		print n, kind, FILENAME ":" FNR, (continues ? "more" : "first")
		continues = 0
		next
	}
	/^[ \t]*```lua/ { print n, "excused", FILENAME ":" FNR, "first" }
	/^[ \t]*```/ { kind = "other"; out = "/dev/null"; continues = 0; next }
	NF { continues = /^[ \t]*<!-- continues -->[ \t]*$/ }
' $(ls README.md docs/*.md docs/*/*.md 2>/dev/null))

# Runs the blocks given as pairs of location and file, one after the other, and writes the
# location of each that succeeded to the file named first.
cat >"$T/run.lua" <<'E'
local done = assert(io.open(arg[1], "w"))
for i = 2, #arg, 2 do
  local location, file = arg[i], assert(io.open(arg[i + 1]))
  local chunk, message = load(file:read "a", "@" .. location:match "^(.*):", "t")
  if not chunk then error(message, 0) end
  -- When the chunk returns, make its locals globals, for the block that goes on.
  debug.sethook(function()
    if debug.getinfo(2, "f").func ~= chunk then return end
    local k, name, value = 1, debug.getlocal(2, 1)
    while name do
      if name:find "^[%a_]" then rawset(_G, name, value) end
      k = k + 1
      name, value = debug.getlocal(2, k)
    end
  end, "r")
  chunk()
  debug.sethook()
  done:write(location, "\n")
  done:flush()
end
E

lua_chain=()
run_lua_chain() {
	[ ${#lua_chain[@]} = 0 ] && return
	mkdir -p "$T/work"
	(cd "$T/work" &&
		"$MILLRACE" "$T/run.lua" "$T/done" "${lua_chain[@]}" >"$T/out" 2>"$T/err")
	for ((i = 0; i < ${#lua_chain[@]}; i += 2)); do
		grep -qxF -- "${lua_chain[i]}" "$T/done"
		t_result $? "${lua_chain[i]}" || t_diag err "$(<"$T/err")"
	done
	rm -rf "$T/work"
	lua_chain=()
}

# Blocks that go on are one session. Of pairs of location and file, each file has the blocks up to that one, so the
# last is played, and what came out begins with every one of them. Each has a home folder of its own: what it keeps there is
# not found when it is played again.
sessions=() blessed=()
play() { # SESSION
	mkdir -p "$T/work" "$T/home"
	(cd "$T/work" && sed -n 's/^\(mr> \|>> \|>>$\|mr>$\)//p' "$1" |
		HOME="$T/home" "$MILLRACE" -i >"$T/out" 2>&1)
	rm -rf "$T/work" "$T/home"
}

run_sessions() {
	[ ${#sessions[@]} = 0 ] && return
	play "${sessions[-1]}"
	local i lines
	for ((i = 0; i < ${#sessions[@]}; i += 2)); do
		lines=$(wc -l <"${sessions[i + 1]}")
		[ $((i + 2)) = ${#sessions[@]} ] && lines=$(wc -l <"$T/out")
		head -n "$lines" "$T/out" >"$T/part"
		cmp -s "${sessions[i + 1]}" "$T/part"
		t_result $? "${sessions[i]}" ||
			diff -u --label "${sessions[i]}" --label got "${sessions[i + 1]}" "$T/part" | sed 's/^/# /'
	done
	sessions=()
}

# Plays a session up to this block, and keeps what came out for the document.
bless_session() { # N LOCATION
	local before=0
	play "$T/$1.session"
	[ -e "$T/$1.before" ] && before=$(wc -l <"$T/$1.before")
	tail -n +$((before + 1)) "$T/out" >"$T/$1.blessed"
	blessed=("$1 $2" "${blessed[@]}")
	cp "$T/out" "$T/$1.session"
}

# From the last block of a document to the first, so that lines stay where they are.
bless() {
	local n location
	for location in "${blessed[@]}"; do
		n=${location%% *} location=${location#* }
		awk -v fence="${location##*:}" -v new="$T/$n.blessed" '
			FNR <= fence { print; next }
			!done && !inside && /^mr> / {
				inside = 1
				while ((getline line <new) > 0) print line
			}
			/^[ \t]*```/ { inside = 0; done = 1 }
			!inside { print }
		' "${location%:*}" >"$T/document" && cat "$T/document" >"${location%:*}"
	done
}

while read -r n kind location first; do
	case $kind in
	lua)
		[ "$first" = first ] && run_lua_chain
		lua_chain+=("$location" "$T/$n.lua")
		;;
	console)
		grep -q '^mr> ' "$T/$n.console" || continue
		sed -n '/^mr> /,$p' "$T/$n.console" >"$T/$n.session"
		[ "$first" = first ] && run_sessions
		if [ ${#sessions[@]} -gt 0 ]; then
			cp "${sessions[-1]}" "$T/$n.before"
			cat "$T/$n.before" "$T/$n.session" >"$T/all"
			mv "$T/all" "$T/$n.session"
		fi
		[ "${BLESS-}" ] && bless_session "$n" "$location"
		sessions+=("$location" "$T/$n.session")
		;;
	excused)
		t_is "$location: every lua block runs" excused ''
		;;
	esac
done <<<"$list"
run_lua_chain
run_sessions
bless
[ $t_count -gt 0 ] || t_skip_all 'no examples'
t_done
