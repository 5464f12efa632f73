# Random sequences of kernels, on several streams and launched early, give what the reference gives; MILLRACE_SEQUENCES is how many.
. tests/gpu/lib.sh
"$MILLRACE" tests/lua/random_sequences.t.lua 1 "${MILLRACE_SEQUENCES:-200}" cuda
