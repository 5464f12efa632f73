"""The cases of against_torch.py: what to compile, on what inputs, against what of torch.

A case makes its inputs by the names in the exported module, computes a reference in
float32, and names the ways in which torch does the same. Those take one set of inputs and
return a call without arguments; one that this torch cannot do raises, and is left out.
"""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES = []


class Case:
    def __init__(self, name, group, plan, program, sizes, theirs, reference, inputs=None, flops=None,
                 tolerance=1e-2):
        self.name, self.group, self.plan, self.program, self.sizes = name, group, plan, program, sizes
        self.theirs, self.reference = theirs, reference
        self.inputs = inputs or normal
        self.flops = flops  # None: as the program counts
        self.tolerance = tolerance  # of ||ours - reference|| / ||reference||
        CASES.append(self)

    def arguments(self):
        return [f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in self.sizes.items()]


def normal(tensors, sizes):
    return [torch.randn(t.shape, device="cuda", dtype=t.dtype) for t in tensors]


# ---- products ----------------------------------------------------------------------


def gemm(m, n, k):
    Case(f"gemm {m} x {n} x {k}", "gemm", "gemm_cooperative", "gemm", dict(m=m, n=n, k=k),
         {"matmul": lambda x, out: lambda: torch.matmul(x[0], x[1].T, out=out)},
         lambda x: x[0].float() @ x[1].float().T)


gemm(4096, 4096, 4096)
gemm(8192, 8192, 8192)
for k in 4096, 4100, 4097:  # rows of 16 bytes, of 8, of 2
    gemm(8192, 8192, k)


# ---- attention ---------------------------------------------------------------------


def sdpa(backend, **options):
    def make(x, out):
        q, k, v = x

        def call():
            with sdpa_kernel([backend]):
                return F.scaled_dot_product_attention(q, k, v, **options)
        return call
    return make


def attention_reference(causal):
    def compute(x):
        q, k, v = x
        out = torch.empty_like(q, dtype=torch.float32)
        for i in range(q.shape[0]):
            for j in range(q.shape[1]):
                s = q[i, j].float() @ k[i, j].float().T / math.sqrt(q.shape[-1])
                if causal:
                    s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1), -math.inf)
                out[i, j] = torch.softmax(s, -1) @ v[i, j].float()
        return out
    return compute


def attention(b, h, m, d, causal):
    Case(f"attention d{d} {b} x {h} x {m}{' causal' if causal else ''}", "attention",
         f"attention_d{d}{'_causal' if causal and d == 128 else ''}", "flash_attention",
         dict(b=b, h=h, m=m, d=d, causal=causal),
         {"cuDNN": sdpa(SDPBackend.CUDNN_ATTENTION, is_causal=causal),
          "FLASH": sdpa(SDPBackend.FLASH_ATTENTION, is_causal=causal)},
         attention_reference(causal), flops=4 * b * h * m * m * d * (0.5 if causal else 1))


for d in 128, 64, 256:
    for causal in False, True:
        attention(2, 2048 // d, 8192, d, causal)
attention(2, 16, 8191, 128, False)  # no tile divides that


# ---- one query against a long cache ------------------------------------------------


def decoding(b, h, hkv, n, d):
    def one_query(backend):
        make = sdpa(backend, enable_gqa=True)
        return lambda x, out: make((x[0].unsqueeze(2), x[1], x[2]), out)

    def reference(x):
        q, k, v = x
        q = q.float().view(b, hkv, h // hkv, d)
        return torch.cat([torch.softmax(q[i] @ k[i].float().transpose(1, 2) / math.sqrt(d), -1)
                          @ v[i].float() for i in range(b)]).view(b, h, d)

    Case(f"decoding {b} x {h}/{hkv} x {n}", "decoding", "search", "flash_decoding",
         dict(b=b, h=h, hkv=hkv, n=n, d=d),
         {"cuDNN": one_query(SDPBackend.CUDNN_ATTENTION),
          "FLASH": one_query(SDPBackend.FLASH_ATTENTION)}, reference)


decoding(16, 32, 8, 8192, 128)


# ---- Mamba2 ------------------------------------------------------------------------


def decaying(tensors, sizes):
    """Normal data; time steps around 0.02; dA their running sum in a chunk, times A < 0."""
    made = {}
    for t in tensors:
        x = torch.randn(t.shape, device="cuda", dtype=torch.float32)
        if t.name == "dt":
            x = F.softplus(x - 4)
        elif t.name == "dA":
            rate = torch.exp(torch.rand(t.shape[1], device="cuda") * math.log(16))
            x = -torch.cumsum(made["dt"].float() * rate[None, :, None, None], -1)
        made[t.name] = x.to(t.dtype)
    return [made[t.name] for t in tensors]


def state_of(x, wide):
    X, B, dt, dA = x
    b, s, h, p = X.shape
    c, l = dt.shape[2:]
    decay = torch.exp((dA[..., -1:] - dA).clamp(max=0)) * dt
    xs = X.view(b, c, l, h, p) * decay.permute(0, 2, 3, 1)[..., None]
    xs = xs.to(torch.float32 if wide else X.dtype).permute(0, 1, 3, 4, 2)
    return xs @ B.to(xs.dtype).view(b, c, 1, l, -1)


def scan_of(x, wide):
    X, C, CB, states, dt, dA, D = x
    b, s, h, p = X.shape
    c, l = dt.shape[2:]
    kind = torch.float32 if wide else X.dtype
    rows, columns = dA.permute(0, 2, 1, 3)[..., :, None], dA.permute(0, 2, 1, 3)[..., None, :]
    w = torch.exp((rows - columns).clamp(max=0)) * dt.permute(0, 2, 1, 3)[..., None, :]
    w = (CB.view(b, c, 1, l, l) * w).tril().to(kind)
    xc = X.view(b, c, l, h, p).transpose(2, 3)
    y = w @ xc.to(kind)
    y = y + torch.exp(rows) * (C.view(b, c, 1, l, -1).to(kind) @ states.to(kind).transpose(-1, -2))
    y = y + D[:, None, None] * xc
    return y.transpose(2, 3).reshape(b, s, h, p)


def by_batch(f, *indices):
    """f over one batch element at a time, where it would take much memory at once."""
    def compute(x):
        n = x[0].shape[0]
        return torch.cat([f([t if t.dim() < 2 else t[i:i + 1] for t in x], True) for i in range(n)])
    return compute


def chunks(b, s, h, p, n):
    sizes = dict(b=b, s=s, h=h, p=p, n=n)
    for name, f in ("chunk_state", state_of), ("chunk_scan", scan_of):
        def eager(x, out, f=f):
            return lambda: f(x, False)

        def inductor(x, out, f=torch.compile(f)):
            f(x, False)
            return lambda: f(x, False)
        Case(f"{name} {b} x {s} x {h}", "mamba2", "search", name, sizes,
             {"eager": eager, "inductor": inductor}, by_batch(f), decaying)


chunks(8, 4096, 80, 64, 128)


# ---- packed weights ----------------------------------------------------------------


def packed(tensors, sizes):
    made = normal([t for t in tensors if t.name != "W"], sizes)
    shape = next(t.shape for t in tensors if t.name == "W")
    words = torch.randint(-2**31, 2**31, shape, device="cuda", dtype=torch.int64).to(torch.int32)
    return [words if t.name == "W" else made.pop(0) for t in tensors]


def weights(x, dtype):
    W, scale = x[1], x[2]
    low = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
    w = ((W[..., None] << (28 - low)) >> 28).view(W.shape[0], -1)  # the sign spreads
    return w.to(dtype) * scale.to(dtype).repeat_interleave(w.shape[1] // scale.shape[1], 1)


def dequant(m, n, k):
    def plain(x, out):
        w = weights(x, x[0].dtype).T
        return lambda: torch.matmul(x[0], w, out=out)

    def tinygemm(x, out):
        w, scale = x[1], x[2]
        low = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
        q = (((w[..., None] >> low) & 15) ^ 8).view(n, k).to(torch.int32)  # offset by 8
        q = (q[:, ::2] << 4 | q[:, 1::2]).to(torch.uint8)
        packed = torch.ops.aten._convert_weight_to_int4pack(q, 8)
        both = torch.stack([scale.T, torch.zeros_like(scale.T)], -1).contiguous()
        return lambda: torch.ops.aten._weight_int4pack_mm(x[0], packed, k // scale.shape[1], both)

    Case(f"dequant_gemm {m} x {n} x {k}", "dequant", "search", "dequant_gemm", dict(m=m, n=n, k=k),
         {"bf16 weights": plain, "int4pack": tinygemm},
         lambda x: x[0].float() @ weights(x, torch.float32).T, packed)


dequant(4096, 8192, 8192)
dequant(16, 8192, 8192)


# ---- convolution -------------------------------------------------------------------


def conv(n, c, size, k, r):
    def call(x, kind):
        image, filters = x[0].to(kind).permute(0, 3, 1, 2), x[1].to(kind).permute(0, 3, 1, 2)
        return lambda: F.conv2d(image, filters, padding=r // 2).permute(0, 2, 3, 1)

    Case(f"conv2d {n} x {size} x {size} x {c}, {k} of {r} x {r}", "conv2d", "search", "conv2d",
         dict(n=n, c=c, h=size, w=size, k=k, r=r, s=r, pad=r // 2),
         {"conv2d": lambda x, out: call(x, x[0].dtype)}, lambda x: call(x, torch.float32)())


conv(32, 256, 56, 256, 3)
