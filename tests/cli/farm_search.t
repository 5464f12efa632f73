# mr.search{farm=true}: one search whose candidates other ranks measure, on fake libraries.
. tests/lib.sh

t_fake_cuda
t_find_mpirun || t_skip_all 'there is no mpirun'
export MILLRACE_STORE=$T/store.db CUDA_VISIBLE_DEVICES=0
mpi="timeout 120 $mpi"

cat >"$T/search.lua" <<'E2'
local o = load("return " .. arg[1])()
o.farm = true
local r, why = mr.search(mr.examples.gemm{m = 512, n = 512, k = 256}, "h200", o)
print(r and r.plan:script() or why)
print(r and r.ended, r and r.measured and r.measured.ms, r and #r.measurements)
-- What the ranks have, which must be the same: rank 0 alone prints, so the others fail if they have something else.
local farm = require "millrace.core".farm()
if farm and farm:size() > 1 then
  local mine = ("%s %s %s %s"):format(r and r.plan:script(), why, r and r.ended, r and r.seconds)
  if farm:rank() > 0 then
    farm:send(0, mine)
  else
    for _ = 2, farm:size() do assert(farm:receive(60) == mine, "a rank has another result") end
    print "all have it"
  end
end
E2
count() { "$MILLRACE" -e "print(#mr.store:list{kind='$1', status='${2:-ok}'})"; }

t_cmd 'the model alone, in one process' 0 "$MILLRACE" "$T/search.lua" '{trials=40, measure=false}'
cp "$T/out" "$T/one"
t_cmd '  on three ranks' 0 $mpi -n 3 "$MILLRACE" --farm "$T/search.lua" '{trials=40, measure=false}'
t_is '  finds the same, which all have' "$(<"$T/out")" "$(<"$T/one")
all have it"

t_cmd 'measured in one process' 0 "$MILLRACE" "$T/search.lua" '{trials=12, measure=true}'
cp "$T/out" "$T/one"
t_is '  each once' "$(count search)" 12
# By their shared memory; not that of the product by which devices are compared.
"$MILLRACE" -e 'local r = mr.search(mr.examples.gemm{m = 2048, n = 2048, k = 2048}, "h200", {trials = 40, measure = false})
	local other = r.plan:compile{target = "cuda"}.smem
	for _, row in ipairs(mr.store:list{kind = "search"}) do
		local smem = row:plan():compile{target = "cuda"}.smem
		if smem ~= other then io.write(smem, "=fault ") end
	end' >"$T/faults"
rm -f "$T"/store.db*
for n in 2 4; do
	t_cmd "measured by ranks, $n in all" 0 $mpi -n $n "$MILLRACE" --farm "$T/search.lua" '{trials=12, measure=true}'
	t_is '  finds the same, which all have' "$(<"$T/out")" "$(<"$T/one")
all have it"
	t_is '  each is kept once' "$(count search) $(count searched)" '12 1'
	t_cmd '  and again' 0 $mpi -n $n "$MILLRACE" --farm "$T/search.lua" '{trials=12, measure=true}'
	t_like '  the store answers' "$(<"$T/out")" '^remembered	'
	rm -f "$T"/store.db*
done

# A rank on which all these kernels fault, but the one by which devices are compared.
cat >"$T/rank" <<'E2'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export FAKE_CUDA_KERNELS=$FAULTS
exec "$@"
E2
chmod +x "$T/rank"
FAULTS=$(<"$T/faults") t_cmd 'a rank whose kernels fault' 0 $mpi -n 3 "$T/rank" "$MILLRACE" --farm "$T/search.lua" '{trials=12, measure=true}'
t_is '  measures' "$(grep 'measures nothing:' "$T/err")" ''
t_is '  loses no candidate' "$(count search)" 12
t_is '  which another rank measures' "$(count search failed)" 0
rm -f "$T"/store.db*
FAULTS=$(<"$T/faults") t_cmd '  without another rank' 0 $mpi -n 2 "$T/rank" "$MILLRACE" --farm "$T/search.lua" '{trials=12, measure=true}'
t_ok '  they have failed' [ "$(count search failed)" -gt 3 ]
# Wrong results: the rank that has them is named.
sed 's/=fault/=wrong/g' "$T/faults" >"$T/wrongs"
rm -f "$T"/store.db*
FAULTS=$(<"$T/wrongs") t_cmd 'a rank whose results are wrong' 0 $mpi -n 3 "$T/rank" "$MILLRACE" --farm "$T/search.lua" '{trials=12, measure=true}'
t_err '  is named' "^millrace: a plan that was measured by rank 1 on $(uname -n) gives a wrong result .*: a fault of Millrace, or of that GPU"
echo 'mr.tune({{mr.examples.gemm, m = 512, n = 512, k = 256}}, {device = "h200", trials = 3, measure = true})' >"$T/row.lua"
rm -f "$T"/store.db*
FAULTS=$(<"$T/wrongs") t_cmd '  and of a row' 0 $mpi -n 2 "$T/rank" "$MILLRACE" --farm "$T/row.lua"
t_err '  as well' "^millrace: a plan that was measured by rank 1 on $(uname -n) gives a wrong result"

# A row of which all plans fail on one rank is done by another one.
rm -f "$T"/store.db*
echo 'mr.tune({{mr.examples.rmsnorm, m = 64, n = 512}}, {device = "h200", trials = 3, measure = true})' >"$T/row.lua"
t_cmd 'a row' 0 "$MILLRACE" "$T/row.lua"
"$MILLRACE" -e 'for _, row in ipairs(mr.store:list{kind = "search"}) do
	io.write(row:plan():compile{target = "cuda"}.smem, "=fault ") end' >"$T/row_faults"
rm -f "$T"/store.db*
FAULTS=$(<"$T/row_faults") t_cmd '  on a rank whose kernels fault' 0 $mpi -n 3 "$T/rank" "$MILLRACE" --farm "$T/row.lua"
t_err '  is tried again' '^once more: rmsnorm .*, predicted; no time was measured: of 3 plans tried on the device the first fails: .*, rank 1$'
t_err '  and measured by another one' '^1 of 1: rmsnorm m=64 n=512 on h200: [0-9.]+ ms, rank 2$'
rm -f "$T"/store.db*

FAKE_CUDA_NAME='NVIDIA A100' t_cmd 'no rank has the device' 1 $mpi -n 2 "$MILLRACE" --farm "$T/search.lua" '{measure=true, fresh=true}'
t_err '  is an error, which ends all, and says why' \
	"search: measure=true needs a device, and no rank has one: rank 1 on $(uname -n): the attached NVIDIA A100 is not what 'h200' is a model of"
FAKE_CUDA_NAME='NVIDIA A100' t_cmd '  where it need not be measured' 0 $mpi -n 2 "$MILLRACE" --farm "$T/search.lua" '{trials=40}'
t_err '  it is said' "^no rank has the device, so nothing is measured, and plans are by the model alone: rank 1 on $(uname -n): the attached NVIDIA A100 is not"
t_cmd '  where it must not' 0 $mpi -n 2 "$MILLRACE" --farm "$T/search.lua" '{trials=40, measure=false}'
t_is '  it is not' "$(grep 'no rank' "$T/err")" ''

# Calls one behind the other, and an error that a script catches: all ranks make the same calls, and get the same error.
cat >"$T/calls.lua" <<'E2'
local bound = mr.examples.gemm{m = 256, n = 256, k = 128}
local good, why = pcall(mr.search, bound, "a100", {measure = true, farm = true})
print(good, why:match "measure=true needs a device")
good, why = pcall(mr.tune, {bound}, {device = "a100", measure = true})
print(good, why:match "measure=true needs a device")
print(mr.search(bound, mr.device(), {farm = true, trials = 3}).device.name)
print((function(...) return (...).device.name, select("#", ...) end)(mr.search(mr.examples.gemm{m = 512, n = 256, k = 128}, mr.device(), {farm = true, trials = 3})))
print(#mr.tune{{mr.examples.gemm, m = 128, n = 128, k = 128}, {mr.examples.gemm, m = 128, n = 128, k = 128}}, #mr.store:list{kind = "searched"})
E2
unset CUDA_VISIBLE_DEVICES
for n in 2 4; do
	rm -f "$T"/store.db*
	t_cmd "calls one behind the other, $n ranks" 0 $mpi -n $n "$MILLRACE" --farm "$T/calls.lua"
	t_is '  errors are caught, the device is found, equal rows are one' "$(<"$T/out")" $'false\tmeasure=true needs a device
false\tmeasure=true needs a device
h200
h200\t1
2\t3'
done
# Without a name the device is that of each rank.
cat >"$T/any.lua" <<'E2'
print(mr.search(mr.examples.gemm{m = 256, n = 256, k = 128}, mr.device(), {farm = true, trials = 3}))
E2
printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" != 0 ] || export FAKE_CUDA_INIT=100\nexec "$@"\n' >"$T/rank"
FAKE_CUDA_NAME='NVIDIA A100' FAKE_CUDA_SMS=108 t_cmd 'ranks with other devices than rank 0' 1 $mpi -n 2 "$T/rank" "$MILLRACE" --farm "$T/any.lua"
t_err '  are an error at the line of the call, which says what to do' "^millrace: $T/any.lua:1: farm: rank 1 on .* searches for something else .* name the device"
t_done
