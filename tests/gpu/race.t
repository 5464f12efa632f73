# Plans compiled in the background, raced, and measured until none is likely to be faster.
. tests/gpu/lib.sh
XDG_CACHE_HOME=$T/cold "$MILLRACE" tests/gpu/race.lua
