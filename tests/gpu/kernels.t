# Generated kernels give what the reference gives.
. tests/gpu/lib.sh
"$MILLRACE" tests/gpu/kernels.lua
