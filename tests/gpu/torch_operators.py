"""For torch.t: torch_operators.py FOLDER, of the packages that operators.lua exported. Prints TAP."""
import sys
import threading

for name in "gemm", "module", "any", "attention":
    sys.path.insert(0, f"{sys.argv[1]}/{name}")

import torch

import attention
import gemm
import gemm_any
import gemm_module
from torch_lib import cost, finish, near, random, refused, test

ops = torch.ops.millrace

a, b, c = random(256, 256), random(256, 256), torch.empty(256, 256, device="cuda", dtype=torch.bfloat16)
q, k, v = (random(2, 4, 512, 64).requires_grad_() for _ in range(3))
of_o = random(2, 4, 512, 64)
wanted = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
gradients = torch.autograd.grad(wanted, (q, k, v), of_o.float())


def same_gradients(o):
    near(o, wanted)
    for x, y in zip(torch.autograd.grad(o, (q, k, v), of_o), gradients):
        near(x, y, 1e-2)


@test
def _():
    """an operator makes its output, or is given it"""
    near(ops.gemm(a, b), a @ b.t())
    ops.gemm_out(a, b, c)
    near(c, a @ b.t())


@test
def _():
    """what it cannot take is refused by name"""
    refused("A must have dtype torch.bfloat16, got torch.float32", ops.gemm, a.float(), b)
    refused("B must have shape (256, 256), got (256, 128)", ops.gemm, a, b[:, :128])
    refused("B must be contiguous", ops.gemm, a, b.t())
    refused("B must be on a CUDA device", ops.gemm, a, b.cpu())
    refused("A must be on a CUDA device", ops.gemm, a.cpu(), b.cpu())
    refused("m is 1032; it must be from 1 to 1024", ops.gemm_any, random(1032, 256), b)


@test
def _():
    """it is captured into a CUDA graph, and called by other threads"""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ops.gemm_out(a, b, c)
    c.zero_()
    graph.replay()
    near(c, a @ b.t())
    done = []
    thread = threading.Thread(target=lambda: done.append(ops.gemm(a, b)))
    thread.start()
    thread.join()
    near(done[0], a @ b.t())


@test
def _():
    """opcheck finds nothing"""
    torch.library.opcheck(ops.gemm.default, (a, b))
    torch.library.opcheck(ops.gemm_out.default, (a, b, c))
    torch.library.opcheck(ops.gemm_any.default, (random(64, 256), b))
    torch.library.opcheck(ops.attention.default, (q, k, v), atol=2e-2, rtol=2e-2)


@test
def _():
    """torch.compile takes it in one graph, with sizes that vary"""
    f = torch.compile(lambda x: ops.gemm_any(x * 2, b) + 1, fullgraph=True, dynamic=True)
    for m in 8, 64, 1000:
        x = random(m, 256)
        near(f(x), (x * 2) @ b.t() + 1)


@test
def _():
    """gradients are those of torch's attention"""
    same_gradients(ops.attention(q, k, v)[0])
    same_gradients(attention.run(q, k, v)[0])
    with torch.no_grad():
        assert not attention.run(q, k, v)[0].requires_grad


@test
def _():
    """compiled, too"""
    same_gradients(torch.compile(lambda q, k, v: attention.run(q * 1, k, v)[0], fullgraph=True)(q, k, v))


@test
def _():
    """torch.export takes it"""
    class Module(torch.nn.Module):
        def forward(self, q, k, v):
            return ops.attention(q, k, v)[0]
    given = tuple(x.detach() for x in (q, k, v))
    program = torch.export.export(Module(), given)
    assert "millrace.attention.default" in [str(n.target) for n in program.graph.nodes]
    near(program.module()(*given), wanted)


run, run_out = gemm.run, gemm.run_out
for title, f in (("operator, given its output", lambda: run_out(a, b, c)), ("operator", lambda: run(a, b)),
                 ("module, out=", lambda: gemm_module.run(a, b, out=c)), ("torch.mm, out=", lambda: torch.mm(a, b, out=c))):
    f()
    print(f"# a call of 256^3: {title}: {cost(f):.2f} microseconds")
finish()
