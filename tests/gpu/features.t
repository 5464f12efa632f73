# What tests/lua shows on the CPU holds on the device: stores, values that pass between lanes or
# change their layout, offsets in the tile loop, trip counts, lengths, sizes at launch, hazards, additions in
# memory, products of all types, of operands that are computed in pairs, loops that clusters divide.
. tests/gpu/lib.sh
features=${FEATURES:-stores handover layouts tile_offsets hazards trips lengths any additions targets pair_products swap divided}

# Their time is the compiler's: all run at once.
for name in $features; do
	"$MILLRACE" "tests/lua/$name.t.lua" cuda >"$T/$name" 2>&1 &
done
wait
for name in $features; do
	t_is "$name.t.lua: $(grep -c '^ok' "$T/$name") checks" "$(grep -v '^ok' "$T/$name" |
		grep -v '^1\.\.' | head -n 30)" ''
done
t_done
