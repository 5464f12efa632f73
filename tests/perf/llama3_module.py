#!/usr/bin/env python3
"""transformers' LlamaDecoderLayer with the forward pass of Millrace's kernels in it, on random weights: do both give the same?

    python3 tests/perf/llama3_module.py [FOLDER] [--tokens 512]      # FOLDER: an export of export_layer.lua, of that many tokens
    python3 tests/perf/llama3_module.py FOLDER --operator            # FOLDER: .../NAME of a package, of export(..., {torch=true})
    python3 tests/perf/llama3_module.py --torch --small --tokens 64  # functions of torch instead of kernels, on the CPU, too

`Layer` is what a user writes: a module with the tensors of the layer that it stands for, whose forward calls the kernels. Its weights are
those of transformers' layer, q, k and v as rows of one matrix, and gate and up as rows of another. Without transformers a layer of the
same names and formulas, in this file, is what is replaced. Prints relative errors against float32 of the layer replaced, of the layer
itself in bf16 and of ours; status 1 if ours is more than twice as far off.
"""
import argparse
import importlib
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

try:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding
except ImportError:
    LlamaDecoderLayer = None


class Config:
    hidden_size, intermediate_size, num_attention_heads, num_key_value_heads, rms_norm_eps, rope_theta = 4096, 14336, 32, 8, 1e-5, 500000.0


class SmallConfig(Config):
    hidden_size, intermediate_size, num_attention_heads, num_key_value_heads = 256, 512, 8, 2


# ---- a layer of the same names, for where transformers is not --------------------------------------------------


class Norm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.variance_epsilon)


class PlainLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        hd = c.hidden_size // c.num_attention_heads

        def linear(n, k):
            return nn.Linear(k, n, bias=False)
        self.self_attn, self.mlp = nn.Module(), nn.Module()
        self.self_attn.q_proj, self.self_attn.o_proj = linear(c.hidden_size, c.hidden_size), linear(c.hidden_size, c.hidden_size)
        self.self_attn.k_proj, self.self_attn.v_proj = (linear(c.num_key_value_heads * hd, c.hidden_size) for _ in range(2))
        self.mlp.gate_proj, self.mlp.up_proj = (linear(c.intermediate_size, c.hidden_size) for _ in range(2))
        self.mlp.down_proj = linear(c.hidden_size, c.intermediate_size)
        self.input_layernorm, self.post_attention_layernorm = (Norm(c.hidden_size, c.rms_norm_eps) for _ in range(2))
        self.heads = c.num_attention_heads

    def forward(self, x, position_embeddings):
        cos, sin = (t.unsqueeze(1) for t in position_embeddings)
        h, a = self.input_layernorm(x), self.self_attn

        def by_head(t):
            return t.unflatten(-1, (-1, x.shape[-1] // self.heads)).transpose(1, 2)

        def rope(t):
            low, high = t.chunk(2, -1)
            return t * cos + torch.cat((-high, low), -1) * sin
        q, k, v = rope(by_head(a.q_proj(h))), rope(by_head(a.k_proj(h))), by_head(a.v_proj(h))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + a.o_proj(y.transpose(1, 2).flatten(2))
        h, m = self.post_attention_layernorm(x), self.mlp
        return x + m.down_proj(F.silu(m.gate_proj(h)) * m.up_proj(h))


def reference_layer(c):
    """A decoder layer, and a function from positions to its tables of cos and sin."""
    if LlamaDecoderLayer:
        config = LlamaConfig(**{name: getattr(c, name) for name in ("hidden_size", "intermediate_size", "num_attention_heads",
                                                                    "num_key_value_heads", "rms_norm_eps")},
                             rope_theta=c.rope_theta, rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta},
                             attn_implementation="sdpa")
        layer, rotary = LlamaDecoderLayer(config, 0), LlamaRotaryEmbedding(config)
        return layer, lambda x, positions: rotary(x, positions)
    hd = c.hidden_size // c.num_attention_heads

    def tables(x, positions):
        rate = c.rope_theta ** (-torch.arange(0, hd, 2, device=x.device, dtype=torch.float32) / hd)
        angle = positions[..., None].float() * torch.cat((rate, rate))
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return PlainLayer(c), tables


# ---- what a user writes -------------------------------------------------------------------------------------------


class Layer(nn.Module):
    """Instead of a LlamaDecoderLayer: the same weights, `kernels` instead of its forward. kernels(t) takes the tensors by name."""

    def __init__(self, layer, kernels, tables):
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp

        def rows(*modules):
            return torch.cat([m.weight.detach() for m in modules])
        self.kernels = kernels
        self.t = {"g1": layer.input_layernorm.weight.detach(), "g2": layer.post_attention_layernorm.weight.detach(),
                  "wqkv": rows(attention.q_proj, attention.k_proj, attention.v_proj), "wo": attention.o_proj.weight.detach(),
                  "wgu": rows(mlp.gate_proj, mlp.up_proj), "wd": mlp.down_proj.weight.detach(), **tables}

    def forward(self, hidden_states, **_):
        return self.kernels({"x": hidden_states, **self.t})


def value_of(t, name, names, kept):
    """What a tensor of layer_cases.py is; kept: weights that were brought into its form."""
    how = names.get(name, name)
    if name == "x":
        return t["x"]
    if name not in kept:
        kept[name] = t[how] if isinstance(how, str) else how(t)
    return kept[name]


def exported(folder, names):
    """The module in that folder, as a function of the tensors of layer_cases.py. The weights are brought into its form once."""
    sys.path.insert(0, os.path.abspath(folder))
    module, kept = importlib.import_module(os.path.basename(os.path.abspath(folder))), {}
    module.load()
    return lambda t: module.run(*[value_of(t, name, names, kept) for name, _, _ in module.INPUTS + module.STATES])


def exported_operator(folder, names):
    """The same of a package's operator."""
    folder = os.path.abspath(folder)
    sys.path.insert(0, os.path.dirname(folder))
    package, kept = importlib.import_module(os.path.basename(folder)), {}
    given = [t.name for t in package.OPERATORS[package.NAME].tensors if t.role != "out"]
    return lambda t: package.run(*[value_of(t, name, names, kept) for name in given])


def plain(c):
    """The layer of layer_cases.py, with attention of torch."""
    import layer_cases as cases
    cases.D, cases.HEADS, cases.KV = c.hidden_size, c.num_attention_heads, c.num_key_value_heads
    cases.HD, cases.HIDDEN = c.hidden_size // c.num_attention_heads, c.intermediate_size

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return lambda t: cases.llama_prefill(t, attend)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("folder", nargs="?")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--torch", action="store_true")
    p.add_argument("--operator", action="store_true")
    p.add_argument("--small", action="store_true")
    options = p.parse_args()
    if not options.torch and not options.folder:
        p.error("give the folder of an export, or --torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(11)
    torch.set_grad_enabled(False)
    c = SmallConfig if options.small else Config
    wide, rotary = reference_layer(c)
    for name, weight in wide.named_parameters():
        weight.normal_(0, weight.shape[-1] ** -0.5).bfloat16() if weight.dim() == 2 else weight.normal_(1, 0.1)
        weight.copy_(weight.bfloat16())  # what both have exactly
    wide = wide.to(device).eval()
    x = torch.randn(1, options.tokens, c.hidden_size, device=device).bfloat16()
    positions = torch.arange(options.tokens, device=device)[None]

    def output(layer, x):
        y = layer(x, position_embeddings=rotary(x, positions))
        return y[0] if isinstance(y, tuple) else y
    want = output(wide, x.float())
    narrow = wide.bfloat16()
    hd = c.hidden_size // c.num_attention_heads
    cos, sin = rotary(x, positions)
    tables = {"cos": cos[0, :, :hd // 2].float().contiguous(), "sin": sin[0, :, :hd // 2].float().contiguous()}
    if options.torch:
        kernels = plain(c)
    else:
        from layer_cases import CASES
        names = next(case.ours[2] for case in CASES if case.name == f"llama3 1 x {options.tokens}")
        kernels = (exported_operator if options.operator else exported)(options.folder, names)
    ours = Layer(narrow, kernels, tables)
    model = nn.ModuleList([narrow])
    theirs = output(model[0], x)
    model[0] = ours
    got = output(model[0], x)

    def off(y):
        return ((y.float() - want).norm() / want.norm()).item()
    print(f"{'transformers' if LlamaDecoderLayer else 'a layer of the same names'}, {options.tokens} tokens on {device}: "
          f"off by {off(theirs):.2e} in bf16, {off(got):.2e} with ours instead")
    return 1 if not off(got) <= 2 * off(theirs) else 0


if __name__ == "__main__":
    sys.exit(main())
