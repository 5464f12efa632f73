"""@ABOUT@, as PyTorch operators, made by Millrace.

    import torch, @NAME@
    @RESULTS@ = torch.ops.millrace.@NAME@(@CALL@)
    torch.ops.millrace.@NAME@_out(@CALLOUT@)

@DESCRIPTION@

Tensors are contiguous, on one CUDA device of architecture @ARCH@. Operators run on torch's current
stream and do not wait. torch.compile and torch.export take them; @GRADIENTNOTE@

The operators are in C, for LibTorch's stable ABI, which is that of PyTorch 2.10 and later. build() compiles them,
once, with the system's C compiler (cc, or $CC); importing this package does it if it was not done.
"""
import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections import namedtuple

import torch

Tensor = namedtuple("Tensor", "name role dtype shape")  # role: "in", "inout" (read and written), "out"
Size = namedtuple("Size", "name max multiple given")  # given: an argument, as no tensor has it
Operator = namedtuple("Operator", "tensors sizes")
Backward = namedtuple("Backward", "operator inputs gradients")

NAME = "@NAME@"
ARCH = "@ARCH@"
OPERATORS = {@OPERATORS@
}
# Where the inputs of the operator of gradients come from: ("in", number of an argument), ("out", number of a result), ("gradient",
# number of a result); and for which arguments its results are the gradients.
BACKWARD = @BACKWARD@

_SOURCES = (@PYSOURCES@)
_HERE = os.path.dirname(os.path.abspath(__file__))


# ---- the library -----------------------------------------------------------------

def build(folder=None):
    """Compile the operators into `folder`, by default that of this package; return the library's path."""
    folder = folder or _HERE
    path = os.path.join(folder, f"{NAME}.so")
    os.makedirs(folder, exist_ok=True)
    handle, made = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    command = [*os.environ.get("CC", "cc").split(), "-std=gnu11", "-O2", "-fPIC", "-fexceptions", "-shared", "-o", made,
               *[os.path.join(_HERE, s) for s in _SOURCES], "-ldl", "-lpthread"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{NAME}: {' '.join(command)}: {done.stderr.strip()}")
        os.chmod(made, 0o755)
        os.replace(made, path)  # so that processes that import at the same time do not meet
    except FileNotFoundError:
        raise RuntimeError(f"{NAME}: there is no C compiler {command[0]}; set CC, or put {NAME}.so, made elsewhere by "
                           f"{NAME}.build(), into {_HERE}") from None
    finally:
        if os.path.exists(made):
            os.remove(made)
    return path


def _library():
    path = os.path.join(_HERE, f"{NAME}.so")
    if os.path.exists(path):
        return path
    if os.access(_HERE, os.W_OK):
        return build()
    text = hashlib.sha256()
    for s in _SOURCES:
        with open(os.path.join(_HERE, s), "rb") as f:
            text.update(f.read())
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "millrace", f"{NAME}-{text.hexdigest()[:16]}")
    path = os.path.join(folder, f"{NAME}.so")
    return path if os.path.exists(path) else build(folder)


def _load():
    library = ctypes.CDLL(_library())  # which registers the operators
    said = getattr(library, f"{NAME}_torch_error")
    said.restype = ctypes.c_char_p
    if said():
        raise ImportError(said().decode())
    return library


# ---- shapes ----------------------------------------------------------------------

def _parameters(op, out):
    names = [t.name for t in op.tensors if t.role != "out"] + [s.name for s in op.sizes if s.given]
    return names + [t.name for t in op.tensors if t.role == "out" and out]


def _check(holds, text):
    torch._check(holds, lambda: text)


def _sizes_of(name, op, given):
    """The sizes of a call, after checks of its tensors."""
    sizes = {s.name: given[s.name] for s in op.sizes if s.given}
    for t in op.tensors:
        if t.name not in given:
            continue
        x = given[t.name]
        _check(x.dtype == t.dtype, f"{name}: {t.name} must have dtype {t.dtype}, got {x.dtype}")
        _check(x.dim() == len(t.shape), f"{name}: {t.name} must have shape {t.shape}, got {tuple(x.shape)}")
        for n, have in zip(t.shape, x.shape):
            if isinstance(n, str):
                n = sizes.setdefault(n, have)
            _check(have == n, f"{name}: {t.name} must have shape {t.shape}, got {tuple(x.shape)}")
    for s in op.sizes:
        n, text = sizes[s.name], f"{name}: {s.name} must be from 1 to {s.max}, and a multiple of {s.multiple}"
        _check(n >= 1, text)
        _check(n <= s.max, text)
        if s.multiple > 1:
            _check(n % s.multiple == 0, text)
    return sizes


def _fake(name, op, out):
    names = _parameters(op, out)

    def fake(*arguments, **named):
        given = {**dict(zip(names, arguments)), **named}
        sizes = _sizes_of(name, op, given)
        if out:
            return None
        first = given[next(t.name for t in op.tensors if t.role != "out")]
        made = [first.new_empty([sizes.get(n, n) for n in t.shape], dtype=t.dtype)
                for t in op.tensors if t.role == "out"]
        return made[0] if len(made) == 1 else tuple(made) if made else None
    return fake


# ---- gradients -------------------------------------------------------------------

def _register_gradient():
    op = OPERATORS[NAME]
    backward = getattr(torch.ops.millrace, BACKWARD.operator).default
    arguments = _parameters(op, False)
    outputs = [t for t in op.tensors if t.role == "out"]
    wanted = {n for kind, n in BACKWARD.inputs if kind == "gradient"}
    saved = [x for x in BACKWARD.inputs if x[0] != "gradient"]

    def setup(ctx, inputs, output):
        results = output if len(outputs) > 1 else (output,)
        for n, needed in enumerate(ctx.needs_input_grad[:len(arguments)]):
            if needed and n not in BACKWARD.gradients:
                raise RuntimeError(f"{NAME}: {BACKWARD.operator} gives no gradient of {arguments[n]}")
        ctx.save_for_backward(*[(inputs if kind == "in" else results)[n] for kind, n in saved])
        ctx.mark_non_differentiable(*[x for n, x in enumerate(results) if n not in wanted])

    def gradients(ctx, *of_results):
        kept = iter(ctx.saved_tensors)
        results = backward(*[of_results[n].contiguous() if kind == "gradient" else next(kept)
                             for kind, n in BACKWARD.inputs])
        results = results if isinstance(results, (tuple, list)) else (results,)
        by = dict(zip(BACKWARD.gradients, results))
        return tuple([by.get(n) for n in range(len(arguments))])

    torch.library.register_autograd(f"millrace::{NAME}", gradients, setup_context=setup)


_c = _load()
for _name, _op in OPERATORS.items():
    torch.library.register_fake(f"millrace::{_name}")(_fake(_name, _op, False))
    torch.library.register_fake(f"millrace::{_name}_out")(_fake(_name, _op, True))
run_out = torch.ops.millrace.@NAME@_out.default
@WITHOUT@run = torch.ops.millrace.@NAME@.default
@GRADIENT@torch.library.register_fake("millrace::@NAME@_forward")(_fake(NAME, OPERATORS[NAME], False))
@GRADIENT@_register_gradient()
@GRADIENT@_differentiable, _forward = torch.ops.millrace.@NAME@.default, torch.ops.millrace.@NAME@_forward.default
@GRADIENT@
@GRADIENT@
@GRADIENT@def run(@CALL@):
@GRADIENT@    """torch.ops.millrace.@NAME@, but where nothing needs a gradient, what makes gradients possible costs no time."""
@GRADIENT@    if torch.is_grad_enabled() and (@NEEDED@):
@GRADIENT@        return _differentiable(@CALL@)
@GRADIENT@    return _forward(@CALL@)
