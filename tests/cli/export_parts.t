# k:export of a kernel with an input that is given by the addresses of its parts: what the module for PyTorch makes of a list
# of tensors. The driver records its calls (tests/fake/recorder.c).
. tests/lib.sh

python=$(command -v python3)
[ "$python" ] || { t_done; exit; }
. tests/fake/recorder.sh
cat >"$T/export.lua" <<'E'
local mr = require "millrace"
local bound = mr.program("parts", function(p)
  local g, n = p:axes("g", "n")
  local X, Y = p:input("torch", {g, n}, "f32", {pointers = g}), p:output("Y", {g, n}, "f32")
  p:batch(g)
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("twice", function() return x * 2 end))
end){g = 2, n = 64}
local plan = mr.plan(bound:graph{}, mr.device "h200")
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
plan:compile{target = "cuda"}:export(...)
E
t_cmd 'it is exported' 0 "$MILLRACE" "$T/export.lua" "$T/parts"
entry=$(sed -n 's/.*"entry": "\([a-z_]*\)".*/\1/p' "$T/parts/parts.py")
kinds="$entry=$(sed -n 's/^            ("\(.\).*),.*/\1/p' "$T/parts/parts.py" | tr -d '\n' | tr os p);"
python() { # CODE: what a fresh module does
	env LD_LIBRARY_PATH="$T" RECORDER_LOG="$T/log" RECORDER_PARAMS="$kinds" PYTHONDONTWRITEBYTECODE=1 \
		PYTHONPATH="tests/fake:$T/parts" "$python" -c "
import torch, parts
from modules import refused
def part(i):
    return torch.Tensor((64,), torch.float32, i * 0x100)
def run(*at):
    torch.NEW[tuple([i * 0x100 for i in at])] = 0x50000 + 0x1000 * at[0]
    parts.run([part(i) for i in at], out=torch.Tensor((2, 64), torch.float32, 0x20000))
$1"
}
t_cmd 'it runs' 0 python "
run(1, 2)
run(1, 2)
assert len(torch.made) == 1, 'addresses are kept'
assert len(torch.recorded) == 2, 'as long as a stream may read them'
"
t_cmd 'addresses that are new cannot be captured' 0 python "
parts.load()
torch.cuda.capturing = True
refused(RuntimeError, 'before capturing a CUDA graph, call parts.run() with these tensors of torch', run, 1, 2)
"
t_cmd 'those of a graph stay' 0 python "
parts._CACHED_MOST = 4
run(1, 2)
torch.cuda.capturing = True
run(1, 2)
torch.cuda.capturing = False
for i in range(3, 12):
    run(i, i + 1)
run(1, 2)
assert len(torch.made) == 10, 'the graph reads addresses that were dropped'
"
t_done
