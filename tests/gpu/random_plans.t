# Random legal plans give what the reference gives.
. tests/gpu/lib.sh
"$MILLRACE" tests/gpu/random_plans.lua
