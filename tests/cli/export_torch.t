# k:export(dir, {torch=true}), and that of a sequence. The operators really run, for a fake LibTorch (tests/fake/torch_shim.c),
# on a driver that records its calls (tests/fake/recorder.c).
. tests/lib.sh

. tests/fake/recorder.sh
warn='-Wall -Wextra -Werror -O1'
for lib in cpu cuda; do
	$cc -std=c11 -D_DEFAULT_SOURCE $warn -Wno-unused-parameter $([ $lib = cuda ] && echo -DFAKE_TORCH_CUDA) -fPIC -shared \
		-o "$T/libtorch_$lib.so" tests/fake/torch_shim.c || exit 1
done

cat >"$T/export.lua" <<'E'
-- export.lua PLAN DIR: export it, and print what the driver needs to know of its parameters; or the error.
local name, dir = ...
local core = require "millrace.core"
local make = {}

local function lanes(bound, tile, rings)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:buffers(rings)
  for _, t in ipairs(plan.tasks) do
    local load = t.name:match "^load"
    local seu = (load or t.name:match "^store") and "tma" or t.name:match "^mma" and "tensor" or "cuda"
    plan:append(t.name, {lane = load and "p0" or "c0", seu = seu})
  end
  plan:fill_waits()
  return plan
end

local kinds = {}
local function compile(plan)
  for _, s in ipairs(core.lower(plan, "cuda")) do
    kinds[#kinds + 1] = s.entry .. "="
    for _, p in ipairs(s.params) do kinds[#kinds + 1] = p.kind == "map" and "m" or p.kind == "size" and "i" or "p" end
    kinds[#kinds + 1] = ";"
  end
  return plan:compile{target = "cuda"}
end

-- Y = X W, of which dX = dY W' and dW = X' dY; the products of two phases are in one program.
local function forward(m)
  return lanes(mr.examples.gemm{m = m, n = 64, k = 128}, {m = 64, n = 64, k = 64}, {a = 2, b = 2})
end

local function two(names)
  local prog = mr.program("product_backward", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local G, B = p:input(names.G or "dC", {m, n}), p:input("B", {n, k})
    local T, D = p:temp("T", {n, k}), p:output(names.D or "dA", {m, k})
    p:phase("first", function()
      local b = p:load("load_b0", B)
      T:store("store_t", p:task("twice", function() return (b * 2):to "bf16" end))
    end)
    p:phase("second", function()
      local acc = p:carry("acc", {m, k}, 0)
      p:loop(n, function() acc:add(p:mma("mma", p:load("load_g", G), p:load("load_t", T))) end)
      D:store("store_d", p:task("round", function() return acc:to "bf16" end))
    end)
  end)
  return lanes(prog:bind{m = names.m or 64, n = 64, k = 128}, {m = 64, n = 64, k = 64}, {g = 2, t = 2})
end

-- A shipped program and that of its gradients, in their own order.
local function shipped(name, sizes, tile, tile_backward)
  local function in_order(example, tile)
    local plan = mr.plan(mr.examples[example](sizes):graph{tile = tile}, mr.device "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    return compile(plan)
  end
  return in_order(name, tile), {torch = true, backward = in_order(name .. "_backward", tile_backward)}
end

function make.norm() return shipped("rmsnorm", {m = 64, n = 128}, {m = 4}, {row = 1, part = 8, column = 64}) end
function make.gate() return shipped("swiglu", {m = mr.any{max = 256}, n = 128}, {m = 4}, {m = 4}) end
function make.plain() return compile(forward(64)), {torch = true} end
function make.any() return compile(forward(mr.any{max = 256, multiple = 8})), {torch = true, name = "gemm any"} end
function make.gradient() return compile(forward(64)), {torch = true, name = "product", backward = compile(two{})} end
function make.named()
  return compile(forward(64)), {torch = true, name = "product", backward = compile(two{G = "G", D = "D"}),
    gradients = {G = "C", D = "A"}}
end
function make.unnamed() return compile(forward(64)), {torch = true, backward = compile(two{G = "G"})} end
function make.wrong_shape() return compile(forward(64)), {torch = true, backward = compile(two{m = 128})} end
function make.no_such() return compile(forward(64)), {torch = true, backward = compile(two{}), gradients = {Q = "C"}} end
function make.host() return forward(64):compile{target = "host"}, {torch = true} end
function make.alone() return compile(forward(64)), {backward = compile(two{})} end
function make.gradients_alone() return compile(forward(64)), {torch = true, gradients = {Q = "C"}} end

-- t = x w0, h[1] = t w1, u = h[1] w2, y = u t: a state that is written in part and read, and two temporaries at the same time.
local function sequence()
  local gemm = mr.examples.gemm
  local sp = mr.sequence_plan(mr.sequence("chain", function(s)
    local x, w, h = s:input("class", {64, 64}), s:input("w", {3, 64, 64}), s:state("h", {2, 64, 64})
    local t, u, y = s:temp("t", {64, 64}), s:temp("u", {64, 64}), s:output("y", {64, 64})
    s:call("up", gemm{m = 64, n = 64, k = 64}, {A = x, B = w:rows(0, 1), C = t})
    s:call("keep", gemm{m = 64, n = 64, k = 64}, {A = t, B = w:rows(1, 1), C = h:rows(1, 1)})
    s:call("down", gemm{m = 64, n = 64, k = 64}, {A = h:rows(1, 1), B = w:rows(2, 1), C = u})
    s:call("last", gemm{m = 64, n = 64, k = 64}, {A = u, B = t, C = y})
  end)(), "h200")
  for _, c in ipairs(sp.calls) do
    sp:use(c.name, lanes(sp.sequence:program(c.name), {m = 64, n = 64, k = 64}, {a = 2, b = 2}))
  end
  sp:launch("keep", {early = false})
  sp:arena()
  for _, s in ipairs(core.lower(core.sequence_plans(sp)[1], "cuda")) do
    kinds[1] = s.entry .. "="
    for _, p in ipairs(s.params) do kinds[1] = kinds[1] .. (p.kind == "map" and "m" or "p") end
  end
  return sp:compile{target = "cuda"}
end

function make.sequence() return sequence(), {torch = true, name = "two layers"} end
function make.sequence_backward() return sequence(), {torch = true, backward = compile(forward(64))} end
function make.sequence_others() return sequence(), {torch = true, others = {sequence()}} end
function make.sequence_torch() return sequence(), {torch = 1} end

local k, options = make[name]()
local ok, e = pcall(k.export, k, dir, options)
if not ok then print((tostring(e):gsub("^.-: export", "export"))) return end
for _, path in ipairs(e) do print((path:gsub("^.*/new/", ""))) end
local file <close> = io.open(dir .. "/kinds", "w")
file:write(table.concat(kinds))
E

t_cmd 'a package' 0 "$MILLRACE" "$T/export.lua" plain "$T/new"
t_out 'has these files' <<'E'
gemm/gemm.cu
gemm/gemm.h
gemm/gemm.c
gemm/__init__.py
gemm/operators.c
pyproject.toml
README.md
E
t_cmd 'one of a size that is known at launch' 0 "$MILLRACE" "$T/export.lua" any "$T/any"
t_cmd 'one with a gradient' 0 "$MILLRACE" "$T/export.lua" gradient "$T/gradient"
t_cmd 'one whose names say nothing' 0 "$MILLRACE" "$T/export.lua" named "$T/named"
t_cmd 'a norm with its gradients' 0 "$MILLRACE" "$T/export.lua" norm "$T/norm"
t_cmd 'a gate of any number of rows with its gradients' 0 "$MILLRACE" "$T/export.lua" gate "$T/gate"
backward() { sed -n '/^BACKWARD/p' "$1/$2/__init__.py"; }
t_is 'the gradients are found by names' "$(backward "$T/gradient" product)" \
	'BACKWARD = Backward("product_backward", (("gradient", 0), ("in", 1)), (0,))'
t_is 'or are said' "$(backward "$T/named" product)" "$(backward "$T/gradient" product)"
t_is 'several, of inputs that are saved' "$(backward "$T/norm" rmsnorm)" \
	'BACKWARD = Backward("rmsnorm_backward", (("in", 0), ("in", 1), ("gradient", 0)), (0, 1))'
t_is 'also at sizes that are known at launch' "$(backward "$T/gate" swiglu)" \
	'BACKWARD = Backward("swiglu_backward", (("in", 0), ("in", 1), ("gradient", 0)), (0, 1))'
refused() { # TITLE PLAN TEXT
	t_cmd "$1" 0 "$MILLRACE" "$T/export.lua" "$2" "$T/no"
	t_like '... is refused' "$(cat "$T/out")" "^export: $3"
}
refused 'a name that says nothing' unnamed "'G' of gemm_backward is neither a tensor of gemm nor the gradient of one.*gradients=.G="
refused 'another shape' wrong_shape \
	"'dC' of gemm_backward is bfloat16 \(128, 64\), and 'C' of gemm, of which it is the gradient, is bfloat16 \(64, 64\)"
refused 'a name that is not there' no_such "gradients names 'Q', which gemm_backward does not have"
refused 'a kernel for the CPU' host 'a PyTorch operator is made of kernels for the GPU'
refused 'a gradient without an operator' alone 'backward= goes with torch=true'
refused 'names without a gradient' gradients_alone 'gradients= goes with backward='

# ---- the operators ---------------------------------------------------------------------

library() { # FOLDER NAME
	$cc -std=gnu11 $warn -fPIC -fexceptions -shared -o "$T/$2.so" "$1/$2"/*.c -ldl -lpthread
}
t_ok 'it compiles' library "$T/new" gemm
t_ok 'that of other sizes, too' library "$T/any" gemm_any
t_ok 'and that with a gradient' library "$T/gradient" product
t_ok 'and that of a norm' library "$T/norm" rmsnorm
t_ok 'and that of a gate' library "$T/gate" swiglu

cat >"$T/main.c" <<'E'
/* main [LIBRARY NAME]...: load them, print the operators, call them. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "fake_torch.h"

enum { BF16 = 15, F32 = 6 };

int aoti_torch_delete_tensor_object(void *tensor);

static uint64_t tensor(int type, int64_t m, int64_t n, int device, uintptr_t address)
{
	return fake_tensor(&(struct fake_tensor){ .type = type, .rank = 2, .sizes = { m, n }, .device = device,
		.address = address });
}

#define CALL(what, name, nin, nout, ...) call(what, name, nin, nout, (uint64_t[4]){ __VA_ARGS__ })

static void call(const char *what, const char *name, int nin, int nout, uint64_t *stack)
{
	const char *error = fake_call(name, stack, nin, nout);

	printf("%s: %s", what, error ? error : "ok");
	for (int i = 0; i < nout && !error; i++) {
		struct fake_tensor t = fake_tensor_of(stack[i]);

		printf(", dtype %d (%lld, %lld) at %#lx", t.type, (long long)t.sizes[0], (long long)t.sizes[1],
			(unsigned long)t.address);
		aoti_torch_delete_tensor_object((void *)(uintptr_t)stack[i]);
	}
	printf("; %d handles\n", fake_handles());
}

int main(int argc, char **argv)
{
	const char *(*error)(void);

	if (!dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_GLOBAL) || !dlopen("libtorch_cuda.so", RTLD_NOW))
		return 2;
	for (int i = 1; i + 1 < argc; i += 2) {
		char name[64];
		void *library = dlopen(argv[i], RTLD_NOW);

		snprintf(name, sizeof(name), "%s_torch_error", argv[i + 1]);
		*(void **)&error = library ? dlsym(library, name) : NULL;
		printf("%s: '%s'\n", argv[i + 1], error ? error() : dlerror());
	}
	fake_list();
	CALL("made", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("given", "gemm_out", 3, 0, tensor(BF16, 64, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000),
		tensor(BF16, 64, 64, 0, 0x30000));
	CALL("dtype", "gemm", 2, 1, tensor(F32, 64, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("shape", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10000), tensor(BF16, 128, 64, 0, 0x20000));
	CALL("cpu", "gemm", 2, 1, tensor(BF16, 64, 128, -1, 0x10000), tensor(BF16, 64, 128, -1, 0x20000));
	CALL("devices", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10000), tensor(BF16, 64, 128, 1, 0x20000));
	CALL("crooked", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10008), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("output", "gemm_out", 3, 0, tensor(BF16, 64, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000),
		tensor(F32, 64, 64, 0, 0x30000));
	CALL("strided", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10000), fake_tensor(&(struct fake_tensor){ .type = BF16,
		.rank = 2, .sizes = { 64, 128 }, .strided = true, .address = 0x20000 }));
	CALL("rank", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10000), fake_tensor(&(struct fake_tensor){ .type = BF16,
		.rank = 1, .sizes = { 8192 }, .address = 0x20000 }));
	fake_set_device(1);
	CALL("another device is current", "gemm", 2, 1, tensor(BF16, 64, 128, 0, 0x10000),
		tensor(BF16, 64, 128, 0, 0x20000));
	fake_set_device(0);
	if (argc <= 3)
		return 0;
	CALL("40 rows", "gemm_any", 2, 1, tensor(BF16, 40, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("264 rows", "gemm_any", 2, 1, tensor(BF16, 264, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("41 rows", "gemm_any", 2, 1, tensor(BF16, 41, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("40 and 48 rows", "gemm_any_out", 3, 0, tensor(BF16, 40, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000),
		tensor(BF16, 48, 64, 0, 0x30000));
	CALL("forward", "product_forward", 2, 1, tensor(BF16, 64, 128, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("backward", "product_backward", 2, 1, tensor(BF16, 64, 64, 0, 0x10000), tensor(BF16, 64, 128, 0, 0x20000));
	CALL("norm", "rmsnorm_backward", 3, 2, tensor(BF16, 64, 128, 0, 0x10000), fake_tensor(&(struct fake_tensor){ .type = BF16,
		.rank = 1, .sizes = { 128 }, .address = 0x20000 }), tensor(BF16, 64, 128, 0, 0x30000));
	CALL("gate", "swiglu_backward", 3, 2, tensor(BF16, 7, 128, 0, 0x10000), tensor(BF16, 7, 128, 0, 0x20000),
		tensor(BF16, 7, 128, 0, 0x30000));
	CALL("gate of other rows", "swiglu_backward", 3, 2, tensor(BF16, 7, 128, 0, 0x10000), tensor(BF16, 7, 128, 0, 0x20000),
		tensor(BF16, 8, 128, 0, 0x30000));
	return 0;
}
E
t_ok 'the test links' $cc -std=gnu11 -Wall -Itests/fake -o "$T/main" "$T/main.c" -L"$T" -ltorch_cpu -ldl

on_torch() { # LOG COMMAND...
	rm -f "$1"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$1" RECORDER_PARAMS="$(cat "$T"/{new,any,gradient,norm,gate}/kinds)" "${@:2}"
}
t_cmd 'they run' 0 on_torch "$T/log" "$T/main" "$T/gemm.so" gemm "$T/gemm_any.so" gemm_any "$T/product.so" product "$T/rmsnorm.so" rmsnorm \
	"$T/swiglu.so" swiglu
t_out 'and refuse what they cannot take' <<'E'
gemm: ''
gemm_any: ''
product: ''
rmsnorm: ''
swiglu: ''
gemm(Tensor A, Tensor B) -> Tensor on CUDA CPU
gemm_out(Tensor A, Tensor B, Tensor(a!) C) -> () on CUDA CPU
gemm_any(Tensor A, Tensor B) -> Tensor on CUDA CPU
gemm_any_out(Tensor A, Tensor B, Tensor(a!) C) -> () on CUDA CPU
product(Tensor A, Tensor B) -> Tensor on CUDA CPU
product_out(Tensor A, Tensor B, Tensor(a!) C) -> () on CUDA CPU
product_forward(Tensor A, Tensor B) -> Tensor on CUDA CPU
product_backward(Tensor dC, Tensor B) -> Tensor on CUDA CPU
product_backward_out(Tensor dC, Tensor B, Tensor(a!) dA) -> () on CUDA CPU
rmsnorm(Tensor X, Tensor G) -> Tensor on CUDA CPU
rmsnorm_out(Tensor X, Tensor G, Tensor(a!) Y) -> () on CUDA CPU
rmsnorm_forward(Tensor X, Tensor G) -> Tensor on CUDA CPU
rmsnorm_backward(Tensor X, Tensor G, Tensor dY) -> (Tensor, Tensor) on CUDA CPU
rmsnorm_backward_out(Tensor X, Tensor G, Tensor dY, Tensor(a!) dX, Tensor(b!) dG) -> () on CUDA CPU
swiglu(Tensor A, Tensor B) -> Tensor on CUDA CPU
swiglu_out(Tensor A, Tensor B, Tensor(a!) C) -> () on CUDA CPU
swiglu_forward(Tensor A, Tensor B) -> Tensor on CUDA CPU
swiglu_backward(Tensor A, Tensor B, Tensor dC) -> (Tensor, Tensor) on CUDA CPU
swiglu_backward_out(Tensor A, Tensor B, Tensor dC, Tensor(a!) dA, Tensor(b!) dB) -> () on CUDA CPU
made: ok, dtype 15 (64, 64) at 0x900000; 0 handles
given: ok; 0 handles
dtype: gemm: A must have dtype torch.bfloat16, got torch.float32; 0 handles
shape: gemm: B must have shape (64, 128), got (128, 64); 0 handles
cpu: gemm: A must be on a CUDA device; 0 handles
devices: gemm: B is on cuda:1, other tensors are on cuda:0; 0 handles
crooked: gemm: A must begin at a multiple of 16 bytes, as a clone does; 0 handles
output: gemm: C must have dtype torch.bfloat16, got torch.float32; 0 handles
strided: gemm: B must be contiguous, as B.contiguous() is; 0 handles
rank: gemm: B must have shape (64, 128), got (8192,); 0 handles
another device is current: ok, dtype 15 (64, 64) at 0x910000; 0 handles
40 rows: ok, dtype 15 (40, 64) at 0x920000; 0 handles
264 rows: gemm_any: m is 264; it must be from 1 to 256, and a multiple of 8; 0 handles
41 rows: gemm_any: m is 41; it must be from 1 to 256, and a multiple of 8; 0 handles
40 and 48 rows: gemm_any: dimension 0 of C is 48, and m is 40 in front of it; 0 handles
forward: ok, dtype 15 (64, 64) at 0x930000; 0 handles
backward: ok, dtype 15 (64, 128) at 0x940000; 0 handles
norm: ok, dtype 15 (64, 128) at 0x960000, dtype 15 (128, 0) at 0x970000; 0 handles
gate: ok, dtype 15 (7, 128) at 0x990000, dtype 15 (7, 128) at 0x9a0000; 0 handles
gate of other rows: swiglu_backward: dimension 0 of dC is 8, and m is 7 in front of it; 0 handles
E
launches() { grep '^launch' "$T/log"; }
t_like 'the output that was made goes to the kernel' "$(launches | sed -n 1p)" '^launch gemm_main .* stream 0x77 .*0x900000'
t_like 'as does that which was given' "$(launches | sed -n 2p)" '^launch gemm_main .*0x30000'
t_is 'what is between phases is in memory of torch' "$(launches | sed -n 6,7p | grep -c '0x950000')" 2
t_is 'for each call' "$(launches | sed -n 8,9p | grep -c '0x980000')" 2
t_is 'and what was refused was not launched' "$(launches | wc -l)" 10
t_is 'nothing is taken from the pool' "$(grep -c -i async "$T/log")" 0
with() { # SETTING COMMAND...: on_torch with it
	env "$1" bash -c "$(declare -f on_torch); T='$T'; on_torch '$T/log' \"\$@\"" bash "${@:2}"
}
cp "$T/gemm.so" "$T/again.so"
t_cmd 'two of a name' 0 on_torch "$T/log" "$T/main" "$T/gemm.so" gemm "$T/again.so" gemm
t_like 'are not taken' "$(sed -n 2p "$T/out")" "^gemm: 'gemm: torch did not take the operators: another library may have defined them'"
t_cmd 'a launch that fails' 0 with RECORDER_FAIL=cuLaunchKernelEx=719 "$T/main" "$T/gemm.so" gemm
t_like 'is reported' "$(grep '^made' "$T/out")" '^made: gemm: cuLaunchKernelEx: CUDA_ERROR_719 .*; 0 handles$'
t_cmd 'a capture' 0 with RECORDER_CAPTURING=1 "$T/main" "$T/gemm.so" gemm
t_like 'needs a call before' "$(grep '^made' "$T/out")" \
	'^made: gemm: call it once on cuda:0 before capturing a CUDA graph; 0 handles$'
# ---- a sequence ------------------------------------------------------------------------

refused 'a gradient of a sequence' sequence_backward 'an operator of a sequence has no gradient'
refused 'an operator of several sizes' sequence_others \
	'an operator has the sizes of one compiled sequence, so others= does not go with torch'
refused 'torch=1' sequence_torch 'torch: true or false expected, got 1'
t_cmd 'a sequence is a package' 0 "$MILLRACE" "$T/export.lua" sequence "$T/seq/new"
t_out 'with a launcher of its own and of each kernel' <<'E'
two_layers/two_layers_up.cu
two_layers/two_layers_up.h
two_layers/two_layers_up.c
two_layers/two_layers.h
two_layers/two_layers.c
two_layers/__init__.py
two_layers/operators.c
pyproject.toml
README.md
E
t_ok 'it compiles' library "$T/seq/new" two_layers
cat >"$T/seq.c" <<'E'
/* seq LIBRARY: print its operators, call them. */
#include <dlfcn.h>
#include <stdio.h>

#include "fake_torch.h"

int aoti_torch_delete_tensor_object(void *tensor);

static uint64_t tensor(int rank, int64_t first, uintptr_t address)
{
	return fake_tensor(&(struct fake_tensor){ .type = 15, .rank = rank, .sizes = { rank == 3 ? first : 64, 64, 64 },
		.address = address });
}

static void call(const char *name, int64_t states, int given)
{
	uint64_t stack[4] = { tensor(2, 0, 0x10000), tensor(3, 3, 0x20000), tensor(3, states, 0x30000) };
	const char *error;

	if (given)
		stack[3] = tensor(2, 0, 0x40000);
	error = fake_call(name, stack, 3 + given, 1 - given);
	printf("%s: %s", name, error ? error : "ok");
	if (!error && !given) {
		printf(", y at %#lx", (unsigned long)fake_tensor_of(stack[0]).address);
		aoti_torch_delete_tensor_object((void *)(uintptr_t)stack[0]);
	}
	printf("; %d handles\n", fake_handles());
}

int main(int argc, char **argv)
{
	if (argc != 2 || !dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_GLOBAL) || !dlopen("libtorch_cuda.so", RTLD_NOW) ||
	    !dlopen(argv[1], RTLD_NOW))
		return 2;
	fake_list();
	call("two_layers", 2, 0);
	call("two_layers_out", 2, 1);
	call("two_layers", 1, 0);
	return 0;
}
E
t_ok 'a program that calls it links' $cc -std=gnu11 -Wall -Itests/fake -o "$T/seq_main" "$T/seq.c" -L"$T" -ltorch_cpu -ldl
on_sequence() { # [SETTING] COMMAND...
	rm -f "$T/log"
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" RECORDER_PARAMS="$(cat "$T/seq/new/kinds")" "$@"
}
t_cmd 'it runs' 0 on_sequence "$T/seq_main" "$T/two_layers.so"
t_out 'a state is changed, an output is new' <<'E'
two_layers(Tensor class_, Tensor w, Tensor(a!) h) -> Tensor on CUDA CPU
two_layers_out(Tensor class_, Tensor w, Tensor(a!) h, Tensor(b!) y) -> () on CUDA CPU
two_layers: ok, y at 0x900000; 0 handles
two_layers_out: ok; 0 handles
two_layers: two_layers: h must have shape (2, 64, 64), got (1, 64, 64); 0 handles
E
# launched ARENA Y: of each kernel, does it begin early, and its tensors A, B, C
launched() {
	printf '%s\n' ": 0x10000 0x20000 $1" ": $1 0x22000 0x32000" " early: 0x32000 0x24000 ${1}2000" " early: ${1}2000 $1 $2" |
		sed "s/${1}2000/$(printf '%#x' $(($1 + 0x2000)))/"
}
t_is 'its kernels run in the order of the plan, with temporaries in memory of torch' \
	"$(launches | sed 's/.*stream 0x77\( early\)\?\(:\( 0x[0-9a-f]*\)*\) .*/\1\2/')" \
	"$(launched 0x910000 0x900000; launched 0x920000 0x40000)"
t_is 'nothing is taken from the pool' "$(grep -c -i async "$T/log")" 0
t_cmd 'a launch of it that fails' 0 on_sequence RECORDER_FAIL=cuLaunchKernelEx=719 "$T/seq_main" "$T/two_layers.so"
t_like 'is reported, with the kernel' "$(grep '^two_layers:' "$T/out")" \
	'^two_layers: two_layers: two_layers_up: cuLaunchKernelEx: CUDA_ERROR_719 .*; 0 handles'
t_cmd 'a capture' 0 on_sequence RECORDER_CAPTURING=1 "$T/seq_main" "$T/two_layers.so"
t_like 'needs a call before' "$(grep '^two_layers:' "$T/out")" \
	'^two_layers: two_layers: call it once on cuda:0 before capturing a CUDA graph; 0 handles'
mkdir "$T/old"
echo 'int aoti_torch_get_dim;' | $cc -x c - -shared -fPIC -o "$T/old/libtorch_cpu.so"
cat >"$T/old.c" <<'E'
#include <dlfcn.h>
#include <stdio.h>

int main(int n, char **argv)
{
	void *cpu = dlopen("libtorch_cpu.so", RTLD_NOW), *gpu = dlopen("libtorch_cuda.so", RTLD_NOW);
	void *library = dlopen(argv[1], RTLD_NOW);

	puts(((const char *(*)(void))dlsym(library, "gemm_torch_error"))());
	return n != 2 || !cpu || !gpu;
}
E
t_ok 'a program for another torch' $cc -w -o "$T/old_main" "$T/old.c" -ldl
t_cmd 'that is too old' 0 env LD_LIBRARY_PATH="$T/old:$T" "$T/old_main" "$T/gemm.so"
t_like 'is named' "$(cat "$T/out")" 'this torch has no aoti_torch_abi_version: version 2.10 or later is needed'

if command -v python3 >/dev/null; then
	t_cmd 'the modules compile' 0 python3 -m py_compile "$T/new/gemm/__init__.py" "$T/any/gemm_any/__init__.py" \
		"$T/gradient/product/__init__.py" "$T/seq/new/two_layers/__init__.py"
fi
t_done
