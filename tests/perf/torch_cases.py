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
                 tolerance=1e-2, any_order=False):
        self.name, self.group, self.plan, self.program, self.sizes = name, group, plan, program, sizes
        self.theirs, self.reference = theirs, reference
        self.inputs = inputs or normal
        self.flops = flops  # None: as the program counts
        self.tolerance = tolerance  # of ||ours - reference|| / ||reference||
        self.any_order = any_order  # sums of several tiles are added as they end, so last bits differ
        CASES.append(self)

    def arguments(self):
        return [f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in self.sizes.items()]


def taken():
    """The cases so far, which are no more in the list: another list of cases is made with what this file defines."""
    made = CASES[:]
    CASES.clear()
    return made


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


# ---- what models are made of -------------------------------------------------------
#
# The rivals of flash-linear-attention are there if Python finds the package `fla`.


def named(make):
    """Inputs by name: make(shapes) returns tensors by name; others are normal data."""
    def inputs(tensors, sizes):
        made = make({t.name: t.shape for t in tensors})
        return [made[t.name] if t.name in made else torch.randn(t.shape, device="cuda", dtype=t.dtype) for t in tensors]
    return inputs


def rows_of_probabilities(q, k, scale, causal):
    s = q.float() @ k.float().T * scale
    if causal:
        s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1), -math.inf)
    return s


def attention_backward(b, h, m, d, causal):
    scale = 1 / math.sqrt(d)

    def make(shapes):
        q, k, v = (torch.randn(shapes[name], device="cuda", dtype=torch.bfloat16) for name in "QKV")
        out, lse = torch.empty_like(q), torch.empty(b, h, m, device="cuda")
        for i in range(b):
            for j in range(h):
                s = rows_of_probabilities(q[i, j], k[i, j], scale, causal)
                lse[i, j] = torch.logsumexp(s, -1)
                out[i, j] = (torch.softmax(s, -1) @ v[i, j].float()).to(out.dtype)
        return {"Q": q, "K": k, "V": v, "O": out, "L": lse}

    def reference(x):
        q, o, do, k, v, lse = x
        dq, dk, dv = (torch.empty_like(t, dtype=torch.float32) for t in (q, k, v))
        for i in range(b):
            for j in range(h):
                p = torch.exp(rows_of_probabilities(q[i, j], k[i, j], scale, causal) - lse[i, j][:, None])
                g = do[i, j].float()
                dv[i, j] = p.T @ g
                ds = p * (g @ v[i, j].float().T - (g * o[i, j].float()).sum(-1, keepdim=True)) * scale
                dq[i, j], dk[i, j] = ds @ k[i, j].float(), ds.T @ q[i, j].float()
        return dq, dk, dv

    def cudnn(x, out):
        q, o, do, k, v, lse = x
        y = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
        return lambda: torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            do, q, k, v, y[0], y[1], y[6], y[7], None, y[2], y[3], m, m, 0.0, causal)

    def flash(x, out):
        q, o, do, k, v, lse = x
        y = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)
        return lambda: torch.ops.aten._scaled_dot_product_flash_attention_backward(
            do, q, k, v, y[0], y[1], y[2], y[3], m, m, 0.0, causal, y[6], y[7])

    Case(f"attention backward d{d} {b} x {h} x {m}{' causal' if causal else ''}", "backward", "search",
         "attention_backward", dict(b=b, h=h, m=m, d=d, causal=causal), {"cuDNN": cudnn, "FLASH": flash}, reference,
         named(make), flops=10 * b * h * m * m * d * (0.5 if causal else 1), any_order=True)


attention_backward(2, 16, 4096, 128, False)
attention_backward(2, 16, 4096, 128, True)


def paged(b, h, hkv, n, d, page=16):
    def make(shapes):
        blocks = n // page
        return {"Table": torch.randperm(b * blocks, device="cuda").view(b, blocks).to(torch.int32),
                "Length": torch.full((b,), n, device="cuda", dtype=torch.int32)}

    def contiguous(x):
        q, k, v, table, _ = x
        return q, *(t[table.long()].view(b, n, hkv, d).transpose(1, 2).contiguous() for t in (k, v))

    def reference(x):
        q, k, v = contiguous(x)
        q = q.float().view(b, hkv, h // hkv, d)
        return torch.cat([torch.softmax(q[i] @ k[i].float().transpose(1, 2) / math.sqrt(d), -1)
                          @ v[i].float() for i in range(b)]).view(b, h, d)

    def flash(x, out):
        q, k, v = contiguous(x)
        return sdpa(SDPBackend.FLASH_ATTENTION, enable_gqa=True)((q.unsqueeze(2), k, v), out)

    Case(f"paged decoding {b} x {h}/{hkv} x {n}", "decoding", "search", "paged_decoding",
         dict(b=b, h=h, hkv=hkv, n=n, d=d), {"FLASH, contiguous": flash}, reference, named(make))


paged(16, 32, 8, 8192, 128)


def mla(b, h, n):
    def reference(x):
        q, r, c, p = (t.float() for t in x)
        return torch.stack([torch.softmax((q[i] @ c[i].T + r[i] @ p[i].T) / math.sqrt(128 + r.shape[-1]), -1) @ c[i]
                            for i in range(b)])

    def eager(x, out):
        q, r, c, p = x

        def call():
            s = (q @ c.transpose(1, 2) + r @ p.transpose(1, 2)) / math.sqrt(128 + r.shape[-1])
            return torch.softmax(s, -1) @ c
        return call

    Case(f"mla decoding {b} x {h} x {n}", "decoding", "search", "mla_decoding", dict(b=b, h=h, n=n),
         {"eager": eager}, reference)


mla(32, 128, 8192)


def grouped(m, n, k, e, block=128, **options):
    """Two experts for each row, drawn at random; each expert's rows are padded to complete blocks."""
    def make(shapes):
        blocks = shapes["Expert"][0]
        chosen = torch.rand(m, e).topk(2).indices.flatten()
        token, expert, at = torch.full((blocks, block), -1), torch.full((blocks,), e), 0
        for i in range(e):
            rows = (chosen == i).nonzero().flatten() // 2
            for first in range(0, len(rows), block):
                part = rows[first:first + block]
                token[at, :len(part)], expert[at], at = part, i, at + 1
        return {"Token": token.cuda().to(torch.int32), "Expert": expert.cuda().to(torch.int32)}

    def reference(x):
        X, W, token, expert = x
        y = torch.zeros(*token.shape, n, device="cuda")
        for i in range(len(expert)):
            if expert[i] < e:
                rows = X.float()[token[i].clamp(min=0).long()] * (token[i] >= 0)[:, None]
                y[i] = rows @ W[expert[i]].float().T
        return y

    def theirs(x, out):
        X, W, token, expert = x
        rows = X[token[token >= 0].long()].contiguous()
        count = torch.stack([(token[expert == i] >= 0).sum() for i in range(e)])
        ends = count.cumsum(0).to(torch.int32)
        return lambda: torch._grouped_mm(rows, W.transpose(1, 2), offs=ends) is None or None

    Case(" ".join([f"grouped gemm {m} of {e} x {n} x {k}", *options]), "grouped", "search", "grouped_gemm",
         dict(m=m, n=n, k=k, e=e, **options),
         {"_grouped_mm, rows gathered": theirs}, reference, named(make), flops=2 * 2 * m * n * k)


grouped(8192, 4096, 2048, 16)
grouped(8192, 4096, 2048, 16, permute=True)
gemm(16384, 4096, 2048)  # the dense product of as many rows


def block_sparse(b, h, m, d, rows=128, keys=128, of=2):
    """A random one of `of` blocks of keys for each block of queries."""
    blocks = m // keys
    listed = blocks // of

    def make(shapes):
        order = torch.rand(b, h, m // rows, blocks, device="cuda").argsort(-1).to(torch.int32)
        return {"Blocks": order, "Count": torch.full((b, h, m // rows), listed, device="cuda", dtype=torch.int32)}

    def reference(x):
        q, k, v, order, count = x
        out = torch.empty_like(q, dtype=torch.float32)
        for i in range(b):
            for j in range(h):
                mask = torch.zeros(m // rows, blocks, device="cuda", dtype=torch.bool)
                mask.scatter_(1, order[i, j, :, :listed].long(), True)
                mask = mask.repeat_interleave(rows, 0).repeat_interleave(keys, 1)
                s = q[i, j].float() @ k[i, j].reshape(m, d).float().T / math.sqrt(d)
                out[i, j] = torch.softmax(s.masked_fill_(~mask, -math.inf), -1) @ v[i, j].reshape(m, d).float()
        return out

    def flex(x, out):
        from torch.nn.attention.flex_attention import BlockMask, flex_attention
        q, k, v, order, count = x
        mask = BlockMask.from_kv_blocks(torch.zeros_like(count), order, count, order, BLOCK_SIZE=(rows, keys))
        call = torch.compile(flex_attention)
        k, v = k.reshape(b, h, m, d), v.reshape(b, h, m, d)
        call(q, k, v, block_mask=mask)
        return lambda: call(q, k, v, block_mask=mask)

    Case(f"block-sparse attention {b} x {h} x {m}, half", "sparse", "search", "block_sparse_attention",
         dict(b=b, h=h, m=m, d=d, rows=rows, keys=keys, typical=listed), {"flex_attention": flex}, reference,
         named(make), flops=4 * b * h * m * m * d / of)


block_sparse(1, 16, 8192, 128)


def delta(b, s, h, d, kimi):
    """The delta rule, position by position, and flash-linear-attention's kernels in chunks."""
    def make(shapes):
        k = torch.randn(shapes["k"], device="cuda")
        q = torch.randn(shapes["q"], device="cuda")
        return {"q": F.normalize(q, dim=-1).bfloat16(), "k": F.normalize(k, dim=-1).bfloat16(),
                "g": F.logsigmoid(torch.randn(shapes["g"], device="cuda") + 3),
                "beta": torch.rand(shapes["beta"], device="cuda")}

    def reference(x):
        q, k, v, g, beta = (t.float() for t in x)
        state, out = torch.zeros(b, h, d, d, device="cuda"), torch.empty_like(v)
        for t in range(s):
            decay = torch.exp(g[:, t])
            state = state * (decay[..., None] if kimi else decay[..., None, None])
            wrong = v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t])
            state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], wrong * beta[:, t, :, None])
            out[:, t] = torch.einsum("bhkv,bhk->bhv", state, q[:, t]) / math.sqrt(d)
        return out, state

    def fla(x, out):
        if kimi:
            from fla.ops.kda import chunk_kda as chunked
        else:
            from fla.ops.gated_delta_rule import chunk_gated_delta_rule as chunked
        q, k, v, g, beta = x

        def call():
            with torch.no_grad():
                return chunked(q, k, v, g, beta, output_final_state=True)
        call()
        return call

    name = "kimi_delta_attention" if kimi else "gated_delta_rule"
    Case(f"{name} {b} x {s} x {h}", "delta", "search", name, dict(b=b, s=s, h=h, k=d, v=d), {"fla": fla}, reference,
         named(make), tolerance=2e-2)


delta(1, 8192, 32, 128, False)
delta(1, 8192, 32, 128, True)


def mamba2(b, s, h, p=64, n=128):
    def make(shapes):
        return {"dt": F.softplus(torch.randn(shapes["dt"], device="cuda") - 4),
                "A": -torch.exp(torch.rand(shapes["A"], device="cuda") * math.log(16)),
                "B": torch.randn(shapes["B"], device="cuda").bfloat16() / math.sqrt(n)}

    def reference(x):
        X, B, C, dt, A, D = (t.float() for t in x)
        state, out = torch.zeros(b, h, p, n, device="cuda"), torch.empty_like(X)
        for t in range(s):
            state = state * torch.exp(dt[:, t] * A)[..., None, None]
            state += (dt[:, t, :, None] * X[:, t])[..., None] * B[:, t, 0][:, None, None]
            out[:, t] = torch.einsum("bhpn,bn->bhp", state, C[:, t, 0]) + D[:, None] * X[:, t]
        return out, state

    def fla(x, out):
        from fla.ops.simple_gla import chunk_simple_gla
        X, B, C, dt, A, D = x
        q, k = (t.expand(b, s, h, n).contiguous() for t in (C, B))
        v, g = (X * dt[..., None]).to(X.dtype), dt * A

        def call():
            with torch.no_grad():
                return chunk_simple_gla(q, k, v, g=g, scale=1.0, output_final_state=True) and None
        call()
        return call

    Case(f"mamba2 {b} x {s} x {h}", "mamba2", "search", "mamba2", dict(b=b, s=s, h=h, p=p, n=n),
         {"fla simple_gla, without D": fla}, reference, named(make), tolerance=2e-2)


mamba2(8, 4096, 80)


def eager_and_inductor(f):
    def inductor(x, out, call=torch.compile(f)):
        call(*x)
        return lambda: call(*x)
    return {"eager": lambda x, out: lambda: f(*x), "inductor": inductor}


def rmsnorm_gemm(m, n, k):
    def f(x, w, g):
        return F.rms_norm(x, (k,), g, 1e-6) @ w.T
    Case(f"rmsnorm_gemm {m} x {n} x {k}", "norm", "search", "rmsnorm_gemm", dict(m=m, n=n, k=k), eager_and_inductor(f),
         lambda x: F.rms_norm(x[0].float(), (k,), x[2].float(), 1e-6) @ x[1].float().T)


rmsnorm_gemm(8192, 4096, 4096)


def fp8_block_scales(m, n, k):
    def make(shapes):
        return {name: torch.randn(shapes[name], device="cuda").to(torch.float8_e4m3fn) if name in "AB"
                else torch.rand(shapes[name], device="cuda") + 0.5 for name in shapes}

    def reference(x):
        A, B, SA, SB = (t.float() for t in x)
        return (A * SA.T.repeat_interleave(128, 1)) @ (B * SB.repeat_interleave(128, 0).repeat_interleave(128, 1)).T

    def scaled(x, out):
        A, B, SA, SB = x
        scales = SB.contiguous().T
        return lambda: torch._scaled_mm(A, B.T, scale_a=SA.T, scale_b=scales, out_dtype=torch.bfloat16)

    Case(f"fp8 block scales {m} x {n} x {k}", "fp8", "search", "fp8_block_scales", dict(m=m, n=n, k=k),
         {"_scaled_mm": scaled}, reference, named(make))


fp8_block_scales(4096, 4096, 7168)


def cross_entropy(m, n):
    def make(shapes):
        return {"Target": torch.randint(n, shapes["Target"], device="cuda", dtype=torch.int32)}

    def f(x, target):
        return F.cross_entropy(x.float(), target.long(), reduction="none")

    Case(f"cross_entropy {m} x {n}", "rows", "search", "cross_entropy", dict(m=m, n=n),
         eager_and_inductor(f),
         lambda x: (torch.cat([f(*part) for part in zip(x[0].split(512), x[1].split(512))]),
                    torch.cat([torch.logsumexp(part.float(), -1) for part in x[0].split(512)])), named(make))


cross_entropy(8192, 128256)


def topk(m, n, k):
    def f(x):
        weights, experts = x.topk(k)
        return torch.softmax(weights, -1), experts.to(torch.int32)
    Case(f"topk_routing {m} x {n}, {k}", "rows", "search", "topk_routing", dict(m=m, n=n, k=k), eager_and_inductor(f),
         lambda x: f(*x))


topk(32768, 128, 8)
