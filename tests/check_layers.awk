# check_layers.awk - awk -f tests/check_layers.awk FILE...: which folder includes which, and where the header of a library
# is included. Exit status 1 if a file breaks a rule.

BEGIN {
	# What each folder may include in addition to its own headers: all that is below it.
	below["base"] = ""
	below["tile"] = "base"
	below["farm"] = "base"
	below["reference"] = below["device"] = "base tile"
	below["target"] = "base tile device"
	below["graph"] = "base tile device target"
	below["plan"] = below["graph"] " graph"
	below["role"] = "base tile target"
	below["verify"] = below["plan"] " plan role"
	below["lower"] = below["verify"] " verify"
	below["sim"] = below["lower"] " lower"
	below["seq"] = below["sim"] " sim"
	below["search"] = below["draw"] = below["store"] = below["seq"] " seq"
	below["emit"] = below["role"] " role"
	below["gpu"] = below["host"] = below["lower"] " lower emit"
	below["run"] = below["gpu"] " gpu host reference sim seq"
	below["lua"] = below["run"] " run search draw store farm"
	below["ui"] = below["lua"] " lua explore"

	# The files that may include a library's header.
	home["n?curses\\.h"] = "^ui/explore/term_curses\\.c"
	home["histedit\\.h"] = "^ui/repl\\.c"
	home["cairo.*\\.h"] = "^src/draw/cairo\\.c"
	home["sqlite3\\.h"] = "^src/store/"
	home["jansson\\.h"] = "^lua/ljson\\.c"
	home["z3\\.h"] = "^src/search/"
	home["(lua|lauxlib|lualib)\\.h"] = "^(lua|ui)/"
	home["dlfcn\\.h"] = "^src/(gpu|host)/|^src/farm/mpi\\.c|^src/draw/chafa\\.c|^src/search/loop/cbc\\.c"
}

function bad(why) {
	print FILENAME ":" FNR ": " why
	failed = 1
}

FNR == 1 {
	split(FILENAME, part, "/")
	me = part[1] == "src" ? part[2] : part[1]
	if (!(me in below))
		bad("the layers of tests/check_layers.awk have no folder " me)
}
/^[ \t]*#[ \t]*include/ { split($0, name, /[<">]/) }
/^[ \t]*#[ \t]*include[ \t]*"[^"]*\// {
	split(name[2], dir, "/")
	if (dir[1] != me && !index(" " below[me] " ", " " dir[1] " "))
		bad(me " may not include " name[2])
}
/^[ \t]*#[ \t]*include[ \t]*"[^\/]*"/ && FILENAME ~ /^src/ {
	bad("an include of the core names its folder")
}
/^[ \t]*#[ \t]*include/ {
	for (h in home)
		if (name[2] ~ "^(.*/)?" h "$" && FILENAME !~ home[h])
			bad(name[2] " belongs in " home[h])
}
FILENAME ~ /^src/ && /(^|[^A-Za-z0-9_])(printf|puts|putchar|exit)\(|[(,] *stdout *[,)]/ {
	bad("the core neither prints nor exits")
}
END {
	if (!failed)
		print "layers hold"
	exit failed
}
