# Instructions in the steady state: what a warp executes for 128 keys of attention in an iteration
# without masks, in the machine code of the best of the shipped plans. Needs NVRTC and
# nvdisasm (of the CUDA toolkit, or PyPI's nvidia-cuda-nvdisasm), but no GPU.
. tests/lib.sh

nvdisasm=$(t_find_nvdisasm) || t_skip_all 'there is no nvdisasm: pip install nvidia-cuda-nvdisasm'

cat >"$T/export.lua" <<'L'
local plan = mr.load_plan("attention_" .. arg[1], mr.examples.flash_attention{b = 1, h = 1, m = 8192, n = 8192,
  d = tonumber(arg[2]), causal = arg[3] == "causal"})
local k = plan:compile{target = "cuda", without = {select(5, table.unpack(arg))}}
k:export(arg[4], {name = "kernel"})
print(k.spills)
L
"$MILLRACE" "$T/export.lua" serial 64 full "$T/first" >"$T/out" 2>&1 ||
	t_skip_all "nothing compiles here: $(tail -n 1 "$T/out")"

# PLAN HEAD_DIM full|causal KEYS [PASS...]: the instructions of the shortest loop with just the operations of a tile of so many
# keys, or a multiple of that: a thread has half as many exponentials, and 2 of rows; products are
# a 16th of the head dimension and of the keys. The only other jumps back are waits, which are repeated
# outside of the loop.
count() {
	"$MILLRACE" "$T/export.lua" "$1" "$2" "$3" "$T/$1" "${@:5}" >"$T/spills" || return
	"$nvdisasm" -c "$T/$1/kernel.cubin" | awk -v products=$((($2 + $4) / 16)) -v exponentials=$(($4 / 2 + 2)) '
		/^\.L/ { sub(":", "", $1); n_at[$1] = n; p_at[$1] = p; e_at[$1] = e; seen[$1] = 1 }
		/^ *\/\*[0-9a-f]+\*\// {
			n++
			p += /HGMMA/
			e += /MUFU\.EX2/
			if (/BRA/ && match($0, /\.L_x_[0-9]+/)) {
				l = substr($0, RSTART, RLENGTH)
				iterations = (e - e_at[l]) / exponentials
				if (seen[l] && iterations && iterations * products == p - p_at[l]) {
					x = (n - n_at[l]) / iterations
					if (!best || x < best) best = x
				}
			}
		}
		END { printf "%d\n", best + 0.5 }'
}

for case in '128 full 455' '128 causal 455' '64 full 430' '64 causal 430'; do
	set -- $case
	best=9999
	for plan in serial overlap pingpong; do
		n=$(count $plan $1 $2 128)
		t_is "head dim $1, $2, $plan: nothing spills" "$(<"$T/spills")" 0
		echo "# $plan: $n"
		[ "$n" -gt 0 ] && [ "$n" -lt "$best" ] && best=$n
	done
	t_ok "head dim $1, $2: $best instructions, at most $3" [ "$best" -le "$3" ]
done

# Plans of one shape, with as many keys a tile as fit. FlashAttention-3 has 593 and 466.
for case in 'd64 64 full 112 395' 'd64 64 causal 112 395' 'd128 128 full 176 615' 'd128 128 causal 176 615' \
	'd128_causal 128 causal 128 455' 'd256 256 full 80 480' 'd256 256 causal 80 480'; do
	set -- $case
	n=$(count $1 $2 $3 $4)
	t_is "attention_$1, $3: nothing spills" "$(<"$T/spills")" 0
	t_ok "attention_$1, $3: $n instructions for $4 keys, at most $5" [ "$n" -gt 0 -a "$n" -le "$5" ]
done

# Each pass does something there.
full=$(count serial 128 causal 128)
for pass in unmask partial_sums hoist; do
	n=$(count serial 128 causal 128 $pass)
	t_ok "without '$pass': $n, with it $full" [ "$n" -gt "$full" ]
done
t_done
