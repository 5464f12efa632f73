# recorder.sh - builds the driver that records its calls (recorder.c) as a library of that name in $T, and lets NVRTC be it.
# After tests/lib.sh:
#
#   . tests/fake/recorder.sh [NAME]         NAME: libcuda.so.1 unless given; AMD's runtime if it is libamdhip64.so.6
cc=${CC:-cc}
recorder="$T/${1:-libcuda.so.1}"
case $recorder in *hip*) hip=_hip ;; *) hip= ;; esac
$cc -std=c11 -D_DEFAULT_SOURCE -Isrc -fPIC -shared -o "$recorder" tests/fake/recorder$hip.c || exit 1
export MILLRACE_LIBNVRTC="$recorder"
