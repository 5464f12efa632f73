"""The layers of layers.py as functions of torch: complete, in parts, and the tensors that they take.

A layer is a function of a dictionary of tensors. `Layer.parts` are its steps in their order, each with the ways to compute it; the layer
is the same steps in one function, which torch.compile sees complete. Attention has several backends; the fastest of the part is taken
for the layer. References are the same functions of float32 tensors.

Sizes are those of LLAMA3-8B (d_model 4096, 32 heads, 8 for keys and values, head dim 128, 14336 hidden) and of Mamba2 2.7B
(d_model 2560, 80 heads of 64, state 128, one group, convolution over 4, chunks of 256).
"""
import math
import os
import sys
import types

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

MATH, MEMORY = 780e12, 4.2e12  # what one H200 sustains a second: bf16 products, bytes
CASES = []


class Part:
    """A step of a layer: `ways` are functions of a dictionary of tensors, by name; the result is put into it under `gives`. `elsewhere`
    are milliseconds that another board of the kind took, of what this machine may not have."""

    def __init__(self, name, gives, ways, flops=0, bytes=0, takes=(), elsewhere=None):
        self.name, self.gives, self.ways, self.flops, self.bytes, self.takes = name, gives, ways, flops, bytes, takes
        self.elsewhere = {f"{way} on another board": ms for way, ms in (elsewhere or {}).items() if way not in ways}


class Layer:
    """`rivals` are the ways of attention, or of the scan, that `layer` is given; `ours` the sequence of examples, its sizes, and what its
    inputs are: names here, where they differ, or functions of the tensors here."""

    def __init__(self, name, group, make, layer, parts, flops, bytes, rivals, compute, ours=None):
        self.name, self.group, self.make, self.layer, self.parts = name, group, make, layer, parts
        self.flops, self.bytes, self.rivals, self.compute, self.ours = flops, bytes, rivals, compute, ours
        self.floor = max(flops / MATH, bytes / MEMORY)
        CASES.append(self)


def apart(f, number=[0]):
    """The same function with code of its own: what torch.compile knows of one is not shared with the other."""
    number[0] += 1
    code = f.__code__.replace(co_name=f"{f.__code__.co_name}_{number[0]}")
    return types.FunctionType(code, f.__globals__, code.co_name, f.__defaults__, f.__closure__)


def compiled(f, **options):
    return torch.compile(apart(f), dynamic=False, **options)


def random(*shape, scale=1.0):
    return torch.randn(shape, device="cuda", dtype=torch.float32).mul_(scale).bfloat16()


# ---- attention ---------------------------------------------------------------------


def sdpa(backend, rows, **options):
    """q [b, h, m, d] over k, v [b, hkv, n, d]. With `rows` the heads that share keys are rows of one head: only without a mask."""
    def call(q, k, v):
        b, h, m, d = q.shape
        if rows:
            q = q.view(b, k.shape[1], h // k.shape[1] * m, d)
        with sdpa_kernel(backend):
            y = F.scaled_dot_product_attention(q, k, v, enable_gqa=not rows, **options)
        return y.reshape(b, h, m, d)
    return call


def fa3(causal):
    def call(q, k, v):
        from flash_attn_interface import flash_attn_func
        y = flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=causal)
        return (y[0] if isinstance(y, tuple) else y).transpose(1, 2)
    return call


def attentions(decode):
    """The backends by name."""
    causal = not decode
    found = {"cuDNN": sdpa(SDPBackend.CUDNN_ATTENTION, False, is_causal=causal),
             "FLASH": sdpa(SDPBackend.FLASH_ATTENTION, False, is_causal=causal)}
    if decode:
        found["cuDNN rows"] = sdpa(SDPBackend.CUDNN_ATTENTION, True)
        found["FLASH rows"] = sdpa(SDPBackend.FLASH_ATTENTION, True)
    if os.environ.get("FA3"):
        sys.path.insert(0, os.environ["FA3"])
        found["FA3"] = fa3(causal)
    return found


def plain_attention(q, k, v):
    """In float32, a head at a time, causal if there are as many queries as keys."""
    group, m, n = q.shape[1] // k.shape[1], q.shape[2], k.shape[2]
    mask = torch.ones(m, n, device=q.device, dtype=torch.bool).triu_(1) if m == n and m > 1 else None
    y = torch.empty_like(q)
    for h in range(q.shape[1]):
        s = q[:, h] @ k[:, h // group].transpose(1, 2) / math.sqrt(q.shape[-1])
        if mask is not None:
            s.masked_fill_(mask, -math.inf)
        y[:, h] = torch.softmax(s, -1) @ v[:, h // group]
    return y


# ---- LLAMA3-8B ---------------------------------------------------------------------

D, HEADS, KV, HD, HIDDEN, THETA, EPS = 4096, 32, 8, 128, 14336, 500000.0, 1e-5


def norm(x, g):
    return F.rms_norm(x, (x.shape[-1],), g, EPS)


def rotate(x, cos, sin):
    """x [..., m, hd] with cos, sin [m, hd / 2]: pairs (i, i + hd / 2), as transformers' rotate_half has them."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def split(qkv, b, m):
    q, k, v = qkv.view(b, m, HEADS + 2 * KV, HD).transpose(1, 2).split((HEADS, KV, KV), 1)
    return q, k, v


def llama_tables(positions):
    rate = THETA ** (-torch.arange(0, HD, 2, device="cuda", dtype=torch.float32) / HD)
    angle = positions.float()[:, None] * rate
    return tuple(t.bfloat16().float() for t in (angle.cos(), angle.sin()))  # as transformers has them in a model of bf16


def llama_weights():
    w = {"g1": (random(D, scale=0.1).float() + 1).bfloat16(), "g2": (random(D, scale=0.1).float() + 1).bfloat16()}
    for name, n, k in ("wqkv", (HEADS + 2 * KV) * HD, D), ("wo", D, D), ("wgu", 2 * HIDDEN, D), ("wd", D, HIDDEN):
        w[name] = random(n, k, scale=k ** -0.5)
    return w


def swiglu(gu):
    gate, up = gu.chunk(2, -1)
    return F.silu(gate) * up


def llama_prefill(t, attend):
    b, m, _ = t["x"].shape
    q, k, v = split(F.linear(norm(t["x"], t["g1"]), t["wqkv"]), b, m)
    a = attend(rotate(q, t["cos"], t["sin"]), rotate(k, t["cos"], t["sin"]), v)
    x = t["x"] + F.linear(a.transpose(1, 2).reshape(b, m, D), t["wo"])
    return x + F.linear(swiglu(F.linear(norm(x, t["g2"]), t["wgu"])), t["wd"])


def llama_decode(t, attend):
    """The new keys and values are written into the last position of the cache, over all of which the query goes."""
    b, m, _ = t["x"].shape
    q, k, v = split(F.linear(norm(t["x"], t["g1"]), t["wqkv"]), b, m)
    t["K"][:, :, -1:].copy_(rotate(k, t["cos"], t["sin"]))
    t["V"][:, :, -1:].copy_(v)
    a = attend(rotate(q, t["cos"], t["sin"]), t["K"], t["V"])
    x = t["x"] + F.linear(a.transpose(1, 2).reshape(b, m, D), t["wo"])
    return x + F.linear(swiglu(F.linear(norm(x, t["g2"]), t["wgu"])), t["wd"])


def rope_and_cache(t):
    b, m, _ = t["x"].shape
    q, k, v = split(t["qkv"], b, m)
    t["K"][:, :, -1:].copy_(rotate(k, t["cos"], t["sin"]))
    t["V"][:, :, -1:].copy_(v)
    return rotate(q, t["cos"], t["sin"]), t["K"], t["V"]


def rope(t):
    b, m, _ = t["x"].shape
    q, k, v = split(t["qkv"], b, m)
    return rotate(q, t["cos"], t["sin"]).contiguous(), rotate(k, t["cos"], t["sin"]).contiguous(), v


def product(x, w, residual=None):
    """The ways of a product: F.linear, with its residual added by cuBLAS or by a kernel of Inductor."""
    def linear(t):
        return F.linear(t[x].flatten(0, 1), t[w])

    def addmm(t):
        return torch.addmm(t[residual].flatten(0, 1), t[x].flatten(0, 1), t[w].T)

    def added(t):
        return t[residual].flatten(0, 1) + F.linear(t[x].flatten(0, 1), t[w])
    return {"cuBLAS": linear} if residual is None else {"addmm": addmm, "eager": added}


def pointwise(f):
    return {"inductor": f}


CACHE = 8192  # keys that the cache of ours has, also if there are fewer


def split_weights():
    """Ours have the gains of norms in weights, and gate and up apart."""
    return {"wqkv": lambda t: t["wqkv"] * t["g1"], "wg": lambda t: t["wgu"][:HIDDEN] * t["g2"],
            "wu": lambda t: t["wgu"][HIDDEN:] * t["g2"]}


def step_inputs(b, n):
    """What the inputs of llama3_decode are: rows of cos and sin by sequence, positions, and caches of CACHE keys."""
    def longer(name):
        return lambda t: t[name] if n == CACHE else F.pad(t[name], (0, 0, 0, CACHE - n))
    return {**split_weights(), "x": lambda t: t["x"].view(b, D), "k": longer("K"), "v": longer("V"),
            "pos": lambda t: torch.full((b,), n - 1, dtype=torch.int32, device="cuda"),
            "cos": lambda t: t["cos"].expand(b, -1).contiguous(), "sin": lambda t: t["sin"].expand(b, -1).contiguous()}


def prefill_inputs(b, m):
    """What the inputs of llama3_layer are: its tables are bf16, and it fills caches."""
    def cache(t):
        return torch.zeros(b, KV, m, HD, device="cuda", dtype=torch.bfloat16)
    return {**split_weights(), "cos": lambda t: t["cos"].bfloat16(), "sin": lambda t: t["sin"].bfloat16(), "k": cache, "v": cache}


def llama(b, m, n, decode):
    """A layer over b sequences of m tokens, n keys for each; m = n but for decode."""
    tokens = b * m
    weights = {"wqkv": (HEADS + 2 * KV) * HD * D, "wo": D * D, "wgu": 2 * HIDDEN * D, "wd": D * HIDDEN}
    products = {name: 2 * tokens * count for name, count in weights.items()}
    attention = 4 * b * HEADS * HD * m * n * (1 if decode else 0.5)
    cache = 2 * 2 * b * KV * n * HD

    def make():
        t = {"x": random(b, m, D), **llama_weights()}
        t["cos"], t["sin"] = llama_tables(torch.arange(n - m, n, device="cuda"))
        if decode:
            t["K"], t["V"] = random(b, KV, n, HD), random(b, KV, n, HD)
        return t

    def rows(count):  # bytes of rows of so many bf16
        return 2 * tokens * count
    width = (HEADS + 2 * KV) * HD
    ways = attentions(decode)
    parts = [
        Part("rmsnorm 1", "h", pointwise(lambda t: norm(t["x"], t["g1"])), 0, rows(2 * D), ("x",)),
        Part("qkv", "qkv", product("h", "wqkv"), products["wqkv"], 2 * weights["wqkv"] + rows(D + width), ("h", "wqkv")),
        Part("rope" + (", cache" if decode else ""), ("q", "k", "v"), pointwise(rope_and_cache if decode else rope), 0,
             rows(2 * width), ("qkv",)),
        Part("attention", "a", {name: (lambda t, f=f: f(t["q"], t["k"], t["v"])) for name, f in ways.items()}, attention,
             rows(2 * D) + cache, ("q", "k", "v")),
        Part("o + residual", "x2", product("rows", "wo", "x"), products["wo"], 2 * weights["wo"] + rows(3 * D), ("rows", "wo", "x")),
        Part("rmsnorm 2", "h2", pointwise(lambda t: norm(t["x2"], t["g2"])), 0, rows(2 * D), ("x2",)),
        Part("gate up", "gu", product("h2", "wgu"), products["wgu"], 2 * weights["wgu"] + rows(D + 2 * HIDDEN), ("h2", "wgu")),
        Part("silu mul", "s", pointwise(lambda t: swiglu(t["gu"])), 0, rows(3 * HIDDEN), ("gu",)),
        Part("down + residual", "y", product("s", "wd", "x2"), products["wd"], 2 * weights["wd"] + rows(2 * D + HIDDEN), ("s", "wd", "x2")),
    ]
    function = llama_decode if decode else llama_prefill

    def compute(t):
        return function({**t, **{name: t[name].clone() for name in ("K", "V") if name in t}}, plain_attention)
    name = f"llama3 decode {b} x 1 at {n}" if decode else f"llama3 {b} x {m}"
    parts_of_keys = 1 if n < 128 else 16 if b < 8 else 4  # so many that there are tiles for all multiprocessors
    ours = ("llama3_decode", dict(b=b, nmax=CACHE, typical=n, splits=parts_of_keys), step_inputs(b, n)) if decode else \
        ("llama3_layer", dict(b=b, m=m), prefill_inputs(b, m))
    Layer(name, "llama3 decode" if decode else "llama3", make, function, parts, sum(products.values()) + attention,
          2 * sum(weights.values()) + rows(2 * D) + (cache if decode else 0), ways, compute, ours)


def after_part(t, part, value):
    """Puts what a part computes where those behind it look."""
    if isinstance(part.gives, tuple):
        t.update(zip(part.gives, value))
        return
    shape = t["x"].shape[:2]
    t[part.gives] = value.reshape(*shape, -1) if part.gives in ("qkv", "x2", "gu", "y", "zxbcdt") else value
    if part.gives == "a":
        t["rows"] = value.transpose(1, 2).reshape(*shape, D)


# ---- Mamba2 2.7B -------------------------------------------------------------------

MD, MI, MH, MP, MN, MW, CHUNK = 2560, 5120, 80, 64, 128, 4, 256


def convolve(xbc, w, bias):
    """silu of a causal convolution of each channel over MW positions. xbc [b, s, channels]."""
    padded = F.pad(xbc, (0, 0, MW - 1, 0))
    y = bias + sum(padded[:, i:i + xbc.shape[1]] * w[:, i] for i in range(MW))
    return F.silu(y)


def sums(x):
    """Running sums along the last axis, as a product: Inductor of torch 2.11 fails on some cumsum."""
    n = x.shape[-1]
    return x @ torch.ones(n, n, device=x.device, dtype=x.dtype).triu()


def ssd(x, dt, A, B, C, D_):
    """x [b, s, h, p], dt [b, s, h] in float32, B, C [b, s, n]: chunk by chunk, as the paper has it."""
    b, s, h, p = x.shape
    c = s // CHUNK
    dt, xc = dt.reshape(b, c, CHUNK, h), x.reshape(b, c, CHUNK, h, p)
    Bc, Cc = B.reshape(b, c, CHUNK, -1), C.reshape(b, c, CHUNK, -1)
    dA = sums((dt * A).permute(0, 3, 1, 2))  # b h c l
    step = dt.permute(0, 3, 1, 2)
    last = dA[..., -1:]
    scaled = (xc * ((last - dA).exp() * step).permute(0, 2, 3, 1)[..., None]).to(x.dtype)
    add = torch.einsum("bclhp,bcln->bchpn", scaled, Bc).float()
    ends = F.pad(sums(last[..., 0]), (1, 0))  # b h c+1
    decay = (ends[..., :-1, None] - ends[..., None, 1:]).tril(-1)
    decay = decay.exp() * torch.ones(c, c, device=x.device).tril(-1)
    states = torch.einsum("bhzc,bchpn->bzhpn", decay, add).to(x.dtype)
    cb = torch.einsum("bcln,bckn->bclk", Cc, Bc)
    weights = cb[:, None] * ((dA[..., :, None] - dA[..., None, :]).clamp(max=0).exp() * step[..., None, :])
    weights = weights.tril().to(x.dtype)  # b h c l k
    y = torch.einsum("bhclk,bckhp->bclhp", weights, xc).float()
    y = y + torch.einsum("bcln,bchpn->bclhp", Cc, states).float() * dA.exp().permute(0, 2, 3, 1)[..., None]
    return (y + D_[:, None] * xc).to(x.dtype).reshape(b, s, h, p)


def mamba_ssd(x, dt, A, B, C, D_):
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    return mamba_chunk_scan_combined(x, dt, A, B[:, :, None], C[:, :, None], CHUNK, D=D_)


def gated_norm(y, z, g):
    y = y.float() * F.silu(z.float())
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(z.dtype) * g


def mamba_conv(t):
    return convolve(t["zxbcdt"][..., MI:2 * MI + 2 * MN], t["wc"], t["bc"])


def mamba_steps(t):
    return F.softplus(t["zxbcdt"][..., -MH:].float() + t["bdt"])


def mamba_scan(t, scan):
    b, s, _ = t["xbc"].shape
    x, B, C = t["xbc"].split((MI, MN, MN), -1)
    return scan(x.reshape(b, s, MH, MP), mamba_steps(t), t["A"], B, C, t["D"]).reshape(b, s, MI)


def mamba_gate(t):
    return gated_norm(t["scan"], t["zxbcdt"][..., :MI], t["g"])


def mamba_layer(t, scan):
    t = {**t, "zxbcdt": F.linear(t["x"], t["win"])}
    t["xbc"] = mamba_conv(t)
    t["scan"] = mamba_scan(t, scan)
    return F.linear(mamba_gate(t), t["wout"])


def scans():
    found = {"torch": ssd}
    if os.environ.get("MAMBA_SSM"):
        sys.path.insert(0, os.environ["MAMBA_SSM"])
        found = {"mamba_ssm": mamba_ssd, **found}
    return found


def mamba(b, s):
    tokens, width = b * s, 2 * MI + 2 * MN + MH

    def make():
        return {"x": random(b, s, MD), "win": random(width, MD, scale=MD ** -0.5), "wout": random(MD, MI, scale=MI ** -0.5),
                "wc": random(MI + 2 * MN, MW, scale=0.5), "bc": random(MI + 2 * MN, scale=0.1), "bdt": torch.rand(MH, device="cuda") - 4,
                "A": -torch.exp(torch.rand(MH, device="cuda") * math.log(16)), "D": torch.ones(MH, device="cuda"),
                "g": (random(MI, scale=0.1).float() + 1).bfloat16()}

    def rows(count):
        return 2 * tokens * count
    ways = scans()
    scan_flops = 2 * tokens * (MH * MP * MN * 2 + CHUNK / 2 * MH * MP + CHUNK / 2 * MN)
    parts = [
        Part("in_proj", "zxbcdt", product("x", "win"), 2 * tokens * MD * width, 2 * MD * width + rows(MD + width), ("x", "win")),
        Part("conv1d silu", "xbc", pointwise(mamba_conv), 0, rows(2 * (MI + 2 * MN)), ("zxbcdt",)),
        Part("ssd", "scan", {name: (lambda t, f=f: mamba_scan(t, f)) for name, f in ways.items()}, scan_flops,
             rows(2 * MI + 2 * MN + MH), ("xbc", "zxbcdt"), {1: {"mamba_ssm": 0.1848}, 8: {"mamba_ssm": 1.3974}}.get(b)),
        Part("gate rmsnorm", "gated", pointwise(mamba_gate), 0, rows(3 * MI), ("scan", "zxbcdt")),
        Part("out_proj", "y", product("gated", "wout"), 2 * tokens * MI * MD, 2 * MI * MD + rows(MI + MD), ("gated", "wout")),
    ]

    def compute(t):
        """A sequence at a time: weights of chunks in float32 are large."""
        return torch.cat([mamba_layer({**t, "x": t["x"][i:i + 1]}, ssd) for i in range(b)])
    Layer(f"mamba2 {b} x {s}", "mamba2", make, mamba_layer, parts,
          2 * tokens * MD * (width + MI) + scan_flops, 2 * MD * (width + MI) + rows(2 * MD), ways, compute,
          ("mamba2_layer", dict(b=b, s=s, d=MD, h=MH, p=MP, n=MN),
           dict(input="x", w_in="win", w_out="wout", w_conv="wc", bias_conv="bc", bias_dt="bdt")))


for rows, keys in (1, 1), (1, 8192), (32, 1), (32, 8192):
    llama(rows, 1, keys, True)
llama(1, 512, 512, False)
llama(1, 4096, 4096, False)
for batch in 1, 8:
    mamba(batch, 4096)
