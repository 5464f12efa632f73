# Operands of wgmma that are computed in registers, in the machine code: nothing writes the registers that a product reads while it is
# under way, which nvcc would not warn of, and pairs are multiplied by one instruction. Needs NVRTC and nvdisasm (of the CUDA toolkit, or
# PyPI's nvidia-cuda-nvdisasm), but no GPU.
. tests/lib.sh

nvdisasm=$(t_find_nvdisasm) || t_skip_all 'there is no nvdisasm: pip install nvidia-cuda-nvdisasm'

cat >"$T/export.lua" <<'L'
local name, steps, folder = arg[1], tonumber(arg[2]), arg[3]
local norm = name == "rmsnorm_gemm"
local sizes = {m = 1024, n = 1024, k = 1024}
local tile = norm and {m = 128, n = 256, k = 64} or {m = 256, n = 128, k = 64}
local plan = mr.plan(mr.examples[name](sizes):graph{tile = tile}, mr.device "h200")
if norm and steps > 0 then plan:split_off("squares", "convert", steps) end
if not norm then plan:swap "mma" end
plan:split(norm and "m" or "n", 2)
plan:lane("p0", {warps = 1})
for i = 0, 1 do plan:lane("c" .. i, {warps = 4}) end
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%.(%d+)$"}) end
for _, t in ipairs(plan.tasks) do
  if t.kind == "load" then plan:buffers{[t.writes[1]] = 3} end
end
plan:fill_waits()
plan:compile{target = "cuda"}:export(folder, {name = "kernel"})
L
"$MILLRACE" "$T/export.lua" rmsnorm_gemm 0 "$T/first" >"$T/out" 2>&1 || t_skip_all "nothing compiles here: $(tail -n 1 "$T/out")"

# Of the shortest loop with products: products whose first operand is in registers, multiplications of pairs, conversions to pairs, and
# instructions that write registers of such an operand between its product and the wait for it, in two iterations.
judge() {
	"$nvdisasm" -c "$1/kernel.cubin" | awk '
		/^\.L/ { sub(":", "", $1); at[$1] = n + 1 }
		/^ *\/\*[0-9a-f]+\*\// {
			sub(/^ *\/\*[0-9a-f]+\*\/ */, ""); sub(/^@!?U?P[0-9T]+ /, ""); line[++n] = $0
			products += /HGMMA/; through[n] = products
			if (/^BRA/ && match($0, /\.L_x_[0-9]+/)) {
				to = substr($0, RSTART, RLENGTH)
				if (to in at && through[n] > through[at[to] - 1] && (!size || n - at[to] < size)) {
					size = n - at[to]; first = at[to]; last = n
				}
			}
		}
		function width(op) { return op ~ /\.128/ || op ~ /^LDSM.*\.4/ ? 4 : op ~ /\.64|\.WIDE/ ? 2 : 1 }
		END {
			for (round = 0; round < 2; round++) for (i = first; i <= last; i++) {
				$0 = line[i]
				if (/^HGMMA/) {
					if (!match($0, /, R[0-9]+, gdesc/)) continue
					r = substr($0, RSTART + 3, RLENGTH - 10) + 0
					for (k = 0; k < 4; k++) reads[r + k] = 1
					from_registers++
				} else if (/^WARPGROUP\.DEPBAR.*, 0x0/) {
					delete reads
				} else if ($2 ~ /^R[0-9]+[.,]/ && $1 !~ /^(ST|BAR|RED|SYNCS|UTMA)/) {
					r = substr($2, 2) + 0
					for (k = 0; k < width($1); k++) written += (r + k) in reads
				}
				pairs += /^HMUL2\.BF16/; packed += /^F2FP\.BF16/
			}
			printf "%d products, %d pairs, %d conversions, %d written too early\n", from_registers / 2, pairs / 2, packed / 2, written
		}'
}

t_is 'products of pairs: nothing else converts, and nothing is written too early' "$(judge "$T/first")" \
	'4 products, 16 pairs, 0 conversions, 0 written too early'
"$MILLRACE" "$T/export.lua" rmsnorm_gemm 2 "$T/apart" >"$T/out" 2>&1
t_is 'the same in an sTask of its own' "$(judge "$T/apart")" '4 products, 16 pairs, 0 conversions, 0 written too early'
"$MILLRACE" "$T/export.lua" rmsnorm_gemm 1 "$T/one" >"$T/out" 2>&1
t_is 'a conversion alone' "$(judge "$T/one")" '4 products, 0 pairs, 16 conversions, 0 written too early'
"$MILLRACE" "$T/export.lua" dequant_gemm 0 "$T/weights" >"$T/out" 2>&1
t_is 'weights of 4 bits with a scale' "$(judge "$T/weights")" '4 products, 16 pairs, 0 conversions, 0 written too early'
t_done
