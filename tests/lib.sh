# lib.sh - tests of the command line, in bash, that print TAP.
#
#   bash tests/lib.sh FILE   runs one test of whichever kind; this is what prove calls
#   . tests/lib.sh           begins a test: fixed environment, scratch folder $T
#
#   t_is TITLE GOT WANT      two texts are equal
#   t_like TITLE GOT ERE     some line of the text matches
#   t_ok TITLE COMMAND...    the command succeeds
#   t_cmd TITLE STATUS COMMAND...   it ends with this status; what it wrote is then in
#                            $T/out and $T/err
#   t_out TITLE <<EOF        $T/out is exactly this
#   t_err TITLE ERE          some line of $T/err matches
#   t_until SECONDS COMMAND...   try again until it succeeds; fails after that time
#   t_skip_all WHY           end here, skipped
#   t_fake_cuda              takes the fake libraries, in $fakes, as those of CUDA, an H200; skips all if there are none
#   t_find_mpirun            sets $mpi, mpirun for ranks on this machine; fails if there is none
#   t_find_nvdisasm          prints the path of nvdisasm; fails if there is none
#   t_done                   the plan; the last line of every test
#
# Tests run in the top folder. A test that fails says so and goes on.

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	: "${MILLRACE:=$PWD/build/millrace}"
	export MILLRACE MILLRACE_STORE=none
	# Kernels on the CPU run in fresh processes, which spend a seventh of their time on page faults: larger pages.
	export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
	case $1 in
	*.lua) set -- "$MILLRACE" "$1" ;;
	*.t) set -- bash "$1" ;;
	esac
	exec timeout "${TEST_TIMEOUT:-900}" "$@"
fi

: "${MILLRACE:=$PWD/build/millrace}"
T=$(mktemp -d)
t_count=0 t_failed=0
export MILLRACE MILLRACE_HOME="${MILLRACE_HOME:-$PWD}"
export TZ=UTC LC_ALL=C.UTF-8 TERM=xterm-256color LINES=24 COLUMNS=80 HOME="$T" NO_COLOR=1
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME MILLRACE_STORE MAKEFLAGS MFLAGS MAKELEVEL
trap '[ $BASHPID != $$ ] || rm -rf "$T"' EXIT # not from a child that a signal ends early

t_result() { # STATUS TITLE
	t_count=$((t_count + 1))
	[ "$1" = 0 ] && { echo "ok $t_count - $2"; return; }
	t_failed=$((t_failed + 1))
	echo "not ok $t_count - $2"
	echo "# failed at ${BASH_SOURCE[2]}:${BASH_LINENO[1]}"
	return 1
}

t_fake_cuda() {
	fakes=$(dirname "$(readlink -f "$MILLRACE")")/fake
	[ -e "$fakes/fake_cuda.so" ] && [ -e "$fakes/fake_nvrtc.so" ] ||
		t_skip_all "no fake libraries in $fakes: make check builds them"
	export MILLRACE_LIBCUDA=$fakes/fake_cuda.so MILLRACE_LIBNVML=$fakes/fake_nvml.so
	export MILLRACE_LIBNVRTC=$fakes/fake_nvrtc.so FAKE_CUDA_NAME='NVIDIA H200' FAKE_CUDA_SMS=132
}

# Between processes of this machine alone, so without ssh, and without reading each other's memory, which containers forbid.
t_find_mpirun() {
	command -v mpirun >/dev/null || return
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"	# Open MPI keeps memory
	mpi='mpirun --oversubscribe --bind-to none --mca plm isolated --mca btl self,vader --mca btl_vader_single_copy_mechanism none'
}

t_diag() { # TITLE TEXT
	printf '%s\n' "$2" | sed "s/^/# $1: /"
}

t_is() {
	[ "$2" = "$3" ]
	t_result $? "$1" || { t_diag got "$2"; t_diag want "$3"; }
}

t_like() {
	printf '%s\n' "$2" | grep -Eq -- "$3"
	t_result $? "$1" || { t_diag got "$2"; t_diag like "$3"; }
}

t_ok() {
	"${@:2}" >/dev/null 2>&1
	t_result $? "$1"
}

t_cmd() {
	local status
	"${@:3}" >"$T/out" 2>"$T/err"
	status=$?
	[ $status = "$2" ]
	t_result $? "$1" && return
	t_diag status $status
	t_diag out "$(<"$T/out")"
	t_diag err "$(<"$T/err")"
}

t_out() {
	cat >"$T/want"
	cmp -s "$T/want" "$T/out"
	t_result $? "$1" || diff -u "$T/want" "$T/out" | sed 's/^/# /'
}

t_err() {
	grep -Eq -- "$2" "$T/err"
	t_result $? "$1" || { t_diag err "$(<"$T/err")"; t_diag like "$2"; }
}

t_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

t_skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# Of the CUDA toolkit, or of PyPI's nvidia-cuda-nvdisasm.
t_find_nvdisasm() {
	command -v nvdisasm && return
	for python in "$MILLRACE_TOOLS/bin/python3" python3; do
		command -v "$python" >/dev/null && "$python" - 2>/dev/null <<'P' && return
import glob, os, sys
for folder in sys.path:
    for path in glob.glob(os.path.join(folder, "nvidia", "*", "bin", "nvdisasm")):
        print(path)
        sys.exit(0)
sys.exit(1)
P
	done
	return 1
}

t_done() {
	echo "1..$t_count"
	[ $t_failed = 0 ]
	exit
}
