# compute-sanitizer finds nothing in generated kernels, and does find what is planted.
#
# TOOLS="memcheck racecheck" and KERNELS="gemm ..." choose some; SANITIZER_OUT=folder
# keeps what the tools said.
. tests/gpu/lib.sh

command -v compute-sanitizer >/dev/null || t_skip_all 'there is no compute-sanitizer'
: "${TOOLS:=memcheck racecheck synccheck}"
: "${KERNELS:=$("$MILLRACE" tests/gpu/sanitize.lua)}"
: "${SANITIZER_OUT:=$T/said}"
mkdir -p "$SANITIZER_OUT"

# The worker process, where kernels run, is a child of the shell. Calls of the driver that
# fail are the worker's to tell: it asks for a kernel's parameters until there are no more.
sanitize() { # TOOL WHAT
	local more=
	[ "$1" != memcheck ] || more='--report-api-errors no'
	compute-sanitizer --tool "$1" $more --target-processes all \
		"$MILLRACE" tests/gpu/sanitize.lua "$2" >"$SANITIZER_OUT/$1.$2" 2>&1
}

# A few at a time: most of it is the compiler's and the tool's work on the CPU.
for tool in $TOOLS; do
	for what in $tool $KERNELS; do
		while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
		sanitize $tool $what &
	done
done
wait

for tool in $TOOLS; do
	case $tool in
	memcheck) like='Invalid __global__ write' ;;
	racecheck) like='Race reported between Write access' ;;
	*) like='Barrier error detected' ;;
	esac
	t_ok "$tool finds what is planted" grep -q "$like" "$SANITIZER_OUT/$tool.$tool" ||
		t_diag said "$(tail -n 20 "$SANITIZER_OUT/$tool.$tool")"
	like='ERROR SUMMARY: 0 errors'
	[ $tool != racecheck ] || like='RACECHECK SUMMARY: 0 hazards'
	for kernel in $KERNELS; do
		out=$SANITIZER_OUT/$tool.$kernel
		t_ok "$tool, $kernel: the result is right" grep -q '^right' "$out"
		t_ok "$tool, $kernel: nothing is found" grep -q "$like" "$out" ||
			t_diag said "$(grep -v '^right' "$out" | head -n 12)"
	done
done
t_done
