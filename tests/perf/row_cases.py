"""The rows of rows.py: work of many kinds on one H200, each with a plan that is searched afresh, and the best of its rivals.

GOALS has what each group is to reach: the geometric mean of the best rival's time over ours, and the least of a row.
"""
import os
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend

from torch_cases import (Case, attention_reference, chunks, conv, decoding, dequant, eager_and_inductor,
                         fp8_block_scales, attention_backward, paged, rmsnorm_gemm, sdpa, taken)

GOALS = {"gemm": (1.08, 1.00), "attention": (1.05, 0.99), "backward": (1.05, 1.05), "decoding": (1.02, 1.02),
         "chunk_state": (1.8, 1.8), "chunk_scan": (2.5, 2.5), "dequant": (1.0, 1.0), "dequant, few rows": (3.0, 3.0),
         "conv": (1.05, 1.05), "fp8": (1.03, 1.03), "fused": (1.05, 1.05), "few rows": (1.02, 1.02), "rows": (1.05, 1.05)}
PROGRAMS, OPERATORS = "tests/perf/row_programs.lua:", "tests/operators/"


def rows(group):
    """Renames the group of the cases that were made since the last call; of case.program, if `group` is None."""
    for case in taken():
        case.group, case.plan = group or case.program, "search"
        CASES.append(case)


CASES = []
taken()

# ---- products ----------------------------------------------------------------------



def product(m, n, k):
    Case(f"gemm {m} x {n} x {k}", "", "search", "gemm", dict(m=m, n=n, k=k),
         {"cuBLAS": lambda x, out: lambda: torch.matmul(x[0], x[1].T, out=out)}, lambda x: x[0].float() @ x[1].float().T)


for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), *((8192, 8192, k) for k in (256, 512, 1024, 2048, 4096, 16384)),
                (8192, 28672, 8192), (8192, 8192, 28672), (2048, 2048, 2048), (16, 8192, 8192), (64, 28672, 8192),
                (128, 8192, 28672), (1024, 1024, 16384), (333, 4096, 4096), (5120, 5120, 5120)):
    product(m, n, k)
rows("gemm")

for m in 1, 4, 8, 16:
    def f(x, w):
        return x @ w.T
    Case(f"few rows {m} x 8192 x 8192", "", "search", "gemm", dict(m=m, n=8192, k=8192), eager_and_inductor(f),
         lambda x: x[0].float() @ x[1].float().T)
Case("gemv 8192 x 8192 f32", "", "search", PROGRAMS + "gemv", dict(n=8192, k=8192, dtype="f32"),
     eager_and_inductor(lambda w, x: w @ x), lambda x: (x[0].double() @ x[1].double()).float())
rows("few rows")

# ---- attention ---------------------------------------------------------------------


def flash(folder, make):
    """A rival from a package in that folder, which is not part of torch."""
    def rival(x, out):
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return make([t.transpose(1, 2).contiguous() for t in x])
    return rival


def attention(b, h, m, d, causal):
    def fa3(x):
        from flash_attn_interface import flash_attn_func
        return lambda: flash_attn_func(*x, causal=causal).transpose(1, 2)

    def fa4(x):
        from flash_attn.cute import flash_attn_func
        return lambda: flash_attn_func(*x, causal=causal)[0].transpose(1, 2)
    rivals = {"cuDNN": sdpa(SDPBackend.CUDNN_ATTENTION, is_causal=causal)}
    for name, make in ("FA3", fa3), ("FA4", fa4):
        folder = os.environ.get(name)
        if folder:
            rivals[name] = flash(folder, make)
    Case(f"attention d{d} s{m}{' causal' if causal else ''}", "", "search", "flash_attention",
         dict(b=b, h=h, m=m, d=d, causal=causal), rivals, attention_reference(causal),
         flops=4 * b * h * m * m * d * (0.5 if causal else 1))


for d in 128, 64, 256:
    for m in 8192, 2048, 512:
        for causal in False, True:
            attention(16384 // m, 2048 // d, m, d, causal)
rows("attention")

for causal in False, True:
    attention_backward(2, 16, 4096, 128, causal)
rows("backward")

decoding(16, 32, 8, 8192, 128)
decoding(1, 64, 8, 131072, 128)
paged(16, 32, 8, 8192, 128)
rows("decoding")

# ---- parts of models ---------------------------------------------------------------

for s in 8192, 1024:
    chunks(8, s, 80, 64, 128)
rows(None)

dequant(4096, 8192, 8192)
rows("dequant")
dequant(16, 8192, 8192)
rows("dequant, few rows")

conv(32, 256, 56, 256, 3)
conv(128, 128, 28, 128, 3)
rows("conv")


def scaled_mm(x, out, fast=False):
    a, b = x
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)


def bytes_of(tensors, sizes):
    """Normal data as fp8, integers of 8 bits over all their range, and scales around 1 / 4096."""
    def make(t):
        if t.dtype == torch.int8:
            return torch.randint(-128, 128, t.shape, device="cuda", dtype=torch.int8)
        if t.dtype == torch.float32:
            return (torch.rand(t.shape, device="cuda") + 0.5) / 64
        return torch.randn(t.shape, device="cuda").to(t.dtype)
    return [make(t) for t in tensors]


Case("fp8 8192 x 8192 x 8192", "", "search", "gemm", dict(m=8192, n=8192, k=8192, dtype="e4m3", out="bf16"),
     {"_scaled_mm": scaled_mm, "_scaled_mm fast": lambda x, out: scaled_mm(x, out, True)},
     lambda x: x[0].float() @ x[1].float().T, bytes_of)
fp8_block_scales(8192, 8192, 8192)


def int8_scaled(a, b, s, z):
    return (torch._int_mm(a, b.T) * (s[:, None] * z)).bfloat16()


Case("int8 8192 x 8192 x 8192", "", "search", PROGRAMS + "int8_gemm", dict(m=8192, n=8192, k=8192),
     {"_int_mm alone": lambda x, out: lambda: torch._int_mm(x[0], x[1].T) is None or None, **eager_and_inductor(int8_scaled)},
     lambda x: (x[0].double() @ x[1].double().T * (x[2].double()[:, None] * x[3].double())).float(), bytes_of)
rows("fp8")

rmsnorm_gemm(8192, 8192, 4096)


def swiglu(a, g, u):
    return F.silu(a @ g.T) * (a @ u.T)


def gated(m, n, k):
    Case(f"swiglu {m} x {n} x {k}", "", "search", PROGRAMS + "swiglu", dict(m=m, n=n, k=k), eager_and_inductor(swiglu),
         lambda x: swiglu(*(t.float() for t in x)), flops=4 * m * n * k)


def batched(b, m, n, k):
    Case(f"batched gemm {b} x {m} x {n} x {k}", "", "search", PROGRAMS + "batched_gemm", dict(b=b, m=m, n=n, k=k),
         eager_and_inductor(lambda a, b: a @ b.transpose(1, 2)), lambda x: x[0].float() @ x[1].float().transpose(1, 2))


gated(8192, 8192, 4096)
batched(32, 2048, 2048, 1024)
Case("split-k 512 x 1024 x 32768, 8 parts", "", "search", OPERATORS + "splitk_gemm.lua:splitk_gemm", dict(m=512, n=1024, k=32768, s=8),
     {"cuBLAS": lambda x, out: lambda: x[0] @ x[1]}, lambda x: x[0].float() @ x[1].float(), any_order=True)
rows("fused")

# ---- rows and images ---------------------------------------------------------------


def over_rows(name, program, sizes, f, reference=None, inputs=None):
    """A function of torch's by torch itself and by its compiler; the reference is the function of float32."""
    Case(name, "", "search", program, sizes, eager_and_inductor(f), reference or (lambda x: f(*(t.float() for t in x))), inputs)


def softmax(m, n):
    over_rows(f"softmax {m} x {n}", PROGRAMS + "softmax", dict(m=m, n=n), lambda x: torch.softmax(x, -1))


def layernorm(m, n):
    over_rows(f"layernorm {m} x {n}", PROGRAMS + "layernorm", dict(m=m, n=n), lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b, 1e-5))


def rmsnorm(m, n):
    over_rows(f"rmsnorm {m} x {n}", PROGRAMS + "rmsnorm", dict(m=m, n=n), lambda x, g: F.rms_norm(x, (x.shape[-1],), g, 1e-6))


def gelu(m, n):
    over_rows(f"gelu {m} x {n}", PROGRAMS + "gelu", dict(m=m, n=n), F.gelu)


def argmax(m, n):
    over_rows(f"argmax {m} x {n}", OPERATORS + "row_scans.lua:argmax", dict(m=m, n=n), lambda x: x.argmax(-1).to(torch.int32))


def cumsum(m, n):
    over_rows(f"cumsum {m} x {n}", OPERATORS + "row_scans.lua:cumsum", dict(m=m, n=n), lambda x: torch.cumsum(x, -1),
              lambda x: torch.cumsum(x[0].double(), -1))


softmax(4096, 16384)
layernorm(8192, 8192)
rmsnorm(8192, 8192)
gelu(8192, 8192)
argmax(2048, 32768)
cumsum(4096, 8192)


def loss(x, target):
    return F.cross_entropy(x.float(), target.long(), reduction="none")


def logits(tensors, sizes):
    return [torch.randint(sizes["n"], t.shape, device="cuda", dtype=t.dtype) if t.name == "Target"
            else torch.randn(t.shape, device="cuda", dtype=t.dtype) for t in tensors]


def cross_entropy(m, n):
    Case(f"cross_entropy {m} x {n}", "", "search", "cross_entropy", dict(m=m, n=n), eager_and_inductor(loss),
         lambda x: (loss(*x), torch.logsumexp(x[0].float(), -1)), logits)


cross_entropy(2048, 32768)


def filtered(x, w, b):
    padded = F.pad(x.transpose(1, 2), (w.shape[1] - 1, 0))
    return F.silu(F.conv1d(padded, w[:, None], b, groups=w.shape[0])).transpose(1, 2)


def conv1d(b, t, c):
    over_rows(f"conv1d {b} x {t} x {c}", PROGRAMS + "conv1d", dict(b=b, t=t, c=c), filtered)


conv1d(4, 4096, 2560)


def depthwise(x, f):
    return F.conv2d(x.permute(0, 3, 1, 2), f.permute(2, 0, 1)[:, None], padding=1, groups=f.shape[2]).permute(0, 2, 3, 1)


def depthwise3x3(n, size, c):
    over_rows(f"depthwise {n} x {size} x {size} x {c}", OPERATORS + "depthwise_conv3x3.lua:depthwise_conv3x3_taps",
              dict(n=n, h=size, w=size, c=c), depthwise)


depthwise3x3(16, 56, 256)
rows("rows")
