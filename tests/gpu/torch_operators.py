"""For torch.t: torch_operators.py FOLDER, of the packages that operators.lua exported. Prints TAP."""
import sys
import threading

for name in "gemm", "module", "any", "attention", "rmsnorm", "rmsnorm_f32", "swiglu", "swiglu_f32":
    sys.path.insert(0, f"{sys.argv[1]}/{name}")

import torch

import attention
import gemm
import gemm_any
import gemm_module
import rmsnorm
import rmsnorm_f32
import swiglu
import swiglu_f32
from torch_lib import cost, finish, near, random, refused, test

ops = torch.ops.millrace
functional = torch.nn.functional

a, b, c = random(256, 256), random(256, 256), torch.empty(256, 256, device="cuda", dtype=torch.bfloat16)
q, k, v = (random(2, 4, 512, 64).requires_grad_() for _ in range(3))
of_o = random(2, 4, 512, 64)
wanted = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
gradients = torch.autograd.grad(wanted, (q, k, v), of_o.float())


def same_gradients(o):
    near(o, wanted)
    for x, y in zip(torch.autograd.grad(o, (q, k, v), of_o), gradients):
        near(x, y, 1e-2)


def differentiable(*shape):
    return random(*shape).requires_grad_()


def compared(f, reference, inputs):
    """Compare f and a reference, which is evaluated in f32: results, and gradients for random gradients of the result."""
    y, z = f(*inputs), reference(*[x.float() for x in inputs])
    near(y, z)
    of_y, of = random(*y.shape), [x for x in inputs if x.requires_grad]
    for got, want in zip(torch.autograd.grad(y, of, of_y), torch.autograd.grad(z, of, of_y.float())):
        near(got, want, 1e-2)


def norm_in_torch(x, g):
    return functional.rms_norm(x, (x.shape[-1],), g, eps=1e-5)


def gate_in_torch(a, b):
    return functional.silu(a) * b


def uniform(*shape):
    return (torch.rand(*shape, device="cuda") * 2 - 1).requires_grad_()


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
    torch.library.opcheck(ops.rmsnorm.default, (differentiable(1000, 512), differentiable(512)))
    torch.library.opcheck(ops.swiglu.default, (differentiable(40, 512), differentiable(40, 512)))
    torch.library.opcheck(ops.rmsnorm_backward.default, (random(1000, 512), random(512), random(1000, 512)))


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
    """gradients of a norm and of a gate are those of torch"""
    x, g = differentiable(1000, 512), differentiable(512)
    compared(ops.rmsnorm, norm_in_torch, (x, g))
    compared(rmsnorm.run, norm_in_torch, (x, g.detach()))
    norm = torch.compile(lambda x, g: ops.rmsnorm(x * 2, g), fullgraph=True)
    compared(norm, lambda x, g: norm_in_torch(x * 2, g), (x, g))
    gate = torch.compile(ops.swiglu, fullgraph=True, dynamic=True)
    for m in 1, 40, 1000:
        a, b = differentiable(m, 512), differentiable(m, 512)
        compared(ops.swiglu, gate_in_torch, (a, b))
        compared(swiglu.run, gate_in_torch, (a.detach(), b))
        compared(gate, gate_in_torch, (a, b))


@test
def _():
    """gradcheck finds that they are the slopes, and the same each time"""
    def check(f, *inputs):                  # in f32, which kernels have, and in which a slope has three digits
        torch.autograd.gradcheck(f, inputs, eps=1e-2, atol=5e-3, rtol=5e-3)
    check(ops.rmsnorm_f32, uniform(6, 16), uniform(16))
    check(rmsnorm_f32.run, uniform(6, 16), uniform(16))
    check(ops.swiglu_f32, uniform(6, 16), uniform(6, 16))
    check(swiglu_f32.run, uniform(6, 16), uniform(6, 16))


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
