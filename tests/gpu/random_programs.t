# Programs drawn at random give what the reference gives; MILLRACE_PROGRAMS is how many are drawn.
. tests/gpu/lib.sh
"$MILLRACE" tests/lua/random_programs.t.lua 1 "${MILLRACE_PROGRAMS:-50}" cuda
