"""Work of the kinds of row_cases.py, of sizes drawn at random, so that no plan or price was made with them in view.

    SEED=3 SHAPES=20 python3 tests/perf/rows.py --cases random_cases

SEED (1) is where the draw begins, SHAPES (20) how many there are. Each kind comes once before one comes again.
"""
import os
import random

import row_cases
from torch_cases import chunks, conv, decoding, dequant, fp8_block_scales, paged, rmsnorm_gemm, taken

draw = random.Random(int(os.environ.get("SEED", 1)))


def size(least, most, step=8):
    """A multiple of step: its logarithm is evenly distributed."""
    return max(least, round(least * (most / least) ** draw.random() / step) * step)


def attention():
    d, m = draw.choice((64, 128, 256)), size(200, 12000, 1)
    row_cases.attention(max(1, size(4096, 32768, 1) // m), 2048 // d, m, d, draw.random() < 0.5)


def cached(make):
    """One query of each of some sequences: queries' heads in groups of 1 to 8, up to 1 GiB of keys and values."""
    b, hkv = draw.choice((1, 4, 16, 40)), draw.choice((2, 4, 8))
    n = size(1024, min(131072, (1 << 22) // (b * hkv)), 16)
    make(b, hkv * draw.choice((1, 4, 8)), hkv, n, 128)


KINDS = {
    "gemm": lambda: row_cases.product(size(300, 9000, 1), size(300, 9000), size(300, 9000)),
    "few rows": lambda: row_cases.product(size(1, 128, 1), size(2000, 16000), size(2000, 16000)),
    "attention": attention,
    "decoding": lambda: cached(decoding),
    "paged": lambda: cached(paged),
    "chunks": lambda: chunks(draw.choice((1, 2, 4)), size(512, 8192, 256), draw.choice((24, 48, 80)), 64, 128),
    "dequant": lambda: dequant(size(1, 6000, 1), size(1024, 12000, 128), size(1024, 12000, 128)),
    "conv": lambda: conv(size(2, 64, 1), size(64, 512), size(7, 60, 1), size(64, 512), draw.choice((1, 3, 5))),
    "fp8": lambda: fp8_block_scales(size(512, 8192, 128), size(512, 8192, 128), size(512, 8192, 128)),
    "rmsnorm_gemm": lambda: rmsnorm_gemm(size(500, 9000, 1), size(512, 9000, 64), size(1024, 8192, 64)),
    "swiglu": lambda: row_cases.gated(size(500, 9000, 1), size(512, 9000), size(512, 8192)),
    "batched": lambda: row_cases.batched(size(2, 64, 1), size(100, 2048, 1), size(100, 2048), size(64, 2048)),
    **{f.__name__: lambda f=f: f(size(500, 20000, 1), size(500, 40000)) for f in
       (row_cases.softmax, row_cases.layernorm, row_cases.rmsnorm, row_cases.gelu, row_cases.argmax, row_cases.cumsum,
        row_cases.cross_entropy)},
    "conv1d": lambda: row_cases.conv1d(size(1, 8, 1), size(500, 8192, 1), size(256, 5120)),
    "depthwise": lambda: row_cases.depthwise3x3(size(4, 64, 1), size(14, 112, 1), size(64, 512)),
}

CASES = []
kinds = []
while len(CASES) < int(os.environ.get("SHAPES", 20)):
    if not kinds:
        kinds = list(KINDS)
        draw.shuffle(kinds)
    kind = kinds.pop()
    KINDS[kind]()
    for case in taken():
        case.group, case.plan = kind, "search"
        CASES.append(case)
