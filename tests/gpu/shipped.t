# Every shipped program at three sizes from three plans each gives what the reference gives.
. tests/gpu/lib.sh
"$MILLRACE" tests/lua/shipped.t.lua cuda
