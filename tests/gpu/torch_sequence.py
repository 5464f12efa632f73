"""For torch_sequence.t: torch_sequence.py FOLDER, of what sequence_operator.lua exported. Prints TAP."""
import sys

for name in "operator", "module":
    sys.path.insert(0, f"{sys.argv[1]}/{name}")

import torch

import mlp
import mlp_module
from torch_lib import cost, finish, near, random, refused, test

op, op_out = torch.ops.millrace.mlp, torch.ops.millrace.mlp_out
m, d, f = 256, 256, 512
x, up, down = random(m, d), random(2, f, d) * d ** -0.5, random(2, d, f) * f ** -0.5
first = random(2, m, d)  # of the state


def wanted(x):
    """What is kept, and the output, in float32."""
    kept = x.float() @ up[0].float().t() @ down[0].float().t()
    return kept, kept @ up[1].float().t() @ down[1].float().t()


def right(y, kept, x):
    for got, want in zip((kept[1], y), wanted(x)):
        near(got, want, 2e-2)
    assert torch.equal(kept[0], first[0]), "the half that no kernel writes has changed"


@test
def _():
    """an operator makes its output, or is given it, and changes the state"""
    kept, y = first.clone(), torch.empty(m, d, device="cuda", dtype=torch.bfloat16)
    right(op(x, up, down, kept), kept, x)
    kept = first.clone()
    op_out(x, up, down, kept, y)
    right(y, kept, x)


@test
def _():
    """it gives the bits that the module gives"""
    ours, theirs = first.clone(), first.clone()
    assert torch.equal(op(x, up, down, ours), mlp_module.run(x, up, down, theirs))
    assert torch.equal(ours, theirs)


@test
def _():
    """a wrong state is refused by name"""
    refused("kept must have shape (2, 256, 256), got (1, 256, 256)", op, x, up, down, first[:1])
    refused("kept must have dtype torch.bfloat16", op, x, up, down, first.float())


@test
def _():
    """it is captured into a CUDA graph"""
    kept, y, graph = first.clone(), torch.empty(m, d, device="cuda", dtype=torch.bfloat16), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op_out(x, up, down, kept, y)
    y.zero_()
    kept.copy_(first)
    graph.replay()
    right(y, kept, x)


@test
def _():
    """opcheck finds nothing"""
    torch.library.opcheck(op.default, (x, up, down, first.clone()))
    torch.library.opcheck(op_out.default, (x, up, down, first.clone(), torch.empty_like(x)))


@test
def _():
    """torch.compile takes it in one graph, and what it changes is seen there and after"""
    def step(x, kept):
        y = op(x * 2, up, down, kept)
        return y + 1, kept[1] * 3
    kept = first.clone()
    y, three = torch.compile(step, fullgraph=True)(x, kept)
    right(y - 1, kept, x * 2)
    near(three, kept[1].float() * 3)


run, run_out = mlp.run, mlp.run_out
kept, y = first.clone(), torch.empty_like(x)
temporaries = torch.empty((mlp_module.TEMPORARIES,), device="cuda", dtype=torch.uint8)
for title, call in (("operator, given its output", lambda: run_out(x, up, down, kept, y)),
                    ("operator", lambda: run(x, up, down, kept)),
                    ("module, out= and temporaries=", lambda: mlp_module.run(x, up, down, kept, out=y, temporaries=temporaries)),
                    ("module", lambda: mlp_module.run(x, up, down, kept))):
    call()
    print(f"# a call of four products: {title}: {cost(call, 1000):.2f} microseconds", flush=True)
finish()
