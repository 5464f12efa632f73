"""The kernels of sequence @SEQUENCE@ on torch tensors, made by Millrace from a plan for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@PARAMETERS@)

INPUTS, STATES, which the kernels read and write, and OUTPUTS say names, shapes and types.@SIZENOTE@ All are contiguous, on one device. A call does not
wait for the kernels; it can be captured into a CUDA graph once load() or run() was called before. There is no gradient. The
modules of the kernels are in the same folder: @KERNELS@.
"""
import torch

@IMPORTS@

NAME = "@NAME@"
FLOPS = @FLOPS@
BYTES = @ACCESSED@
INPUTS = (@INPUTS@)
STATES = (@STATES@)
OUTPUTS = (@OUTPUTS@)
@?ANY@SIZES = (@SIZETABLE@)  # names, the largest, and of what they are multiples; FLOPS and BYTES are for the largest
TEMPORARIES = @BYTES@  # bytes


@?FIXED@def load(device=None):
@?FIXED@    """Load all binaries onto a device, torch's current one by default."""
@?ANY@def load(device=None, sizes=None):
@?ANY@    """Load all binaries onto a device, torch's current one by default. sizes: {"@FIRSTSIZE@": 64}, also make what launches with these need."""
@?ANY@    given = _check_sizes(tuple([sizes[name] for name, _, _ in SIZES])) if sizes else None
@?FIXED@    for kernel in (@MODULES@):
@?FIXED@        kernel.load(device)
@LOADCALLS@
@?FORKED@    _streams_of(torch.cuda.current_device() if device is None else torch.device(device).index or 0)


@?FORKED@_streams = {}
@?FORKED@
@?FORKED@
@?FORKED@def _streams_of(index):
@?FORKED@    if index not in _streams:
@?FORKED@        _streams[index] = [torch.cuda.Stream(torch.device("cuda", index)) for _ in range(@MORESTREAMS@)]
@?FORKED@    return _streams[index]
@?FORKED@
@?FORKED@
@?ANY@def _check_sizes(values):
@?ANY@    for n, (name, most, multiple) in zip(values, SIZES):
@?ANY@        if n < 1 or n > most or n % multiple:
@?ANY@            raise ValueError(f"{NAME}: {name} is {n}; it must be from 1 to {most}, and a multiple of {multiple}")
@?ANY@    return values
@?ANY@
@?ANY@
@?ANY@def _size(name, given, x, tensor, d, factor):
@?ANY@    """A size by what was given, or by a dimension of a tensor."""
@?ANY@    if given and name in given:
@?ANY@        return int(given[name])
@?ANY@    if x is None:
@?ANY@        raise ValueError(f"{NAME}: no tensor has the size {name}; give sizes={{'{name}': ...}}")
@?ANY@    if not isinstance(x, torch.Tensor) or d >= len(x.shape):
@?ANY@        raise ValueError(f"{NAME}: {tensor} must be a tensor with more than {d} dimensions")
@?ANY@    return int(x.shape[d]) // factor
@?ANY@
@?ANY@
@?ANY@def _at(tensors, shapes):
@?ANY@    """INPUTS, STATES or OUTPUTS with the shapes at some sizes."""
@?ANY@    return tuple([(name, shapes[name], dtype) for name, _, dtype in tensors])
@?ANY@
@?ANY@
def _check(tensors, wanted):
    for x, (name, shape, dtype) in zip(tensors, wanted):
        if not isinstance(x, torch.Tensor) or x.dtype != dtype or tuple(x.shape) != shape or not x.is_contiguous():
            raise ValueError(f"{NAME}: {name} must be a contiguous tensor of {dtype} with shape {shape}")


def _part(x, offset, shape):
    """Elements of a tensor from `offset` on, in another shape."""
    n = 1
    for size in shape:
        n *= size
    return x.view(-1)[offset:offset + n].view(shape)


def run(@PARAMETERS@, out=None, temporaries=None@SIZESNONE@):
    """Launch all kernels; return the output (several: a tuple of them).

    out: where to put it. temporaries: TEMPORARIES bytes, uint8, that no other launch uses at the same time. New ones otherwise.
@?ANY@    sizes: {"@FIRSTSIZE@": 64}, of those that no tensor has.
    """
@?ANY@    @SIZELIST@, = _check_sizes((@SIZEVALUES@,))
@?ANY@    shapes = {@SHAPES@}
@?ANY@    _check((@TUPLE@), _at(INPUTS + STATES, shapes))
@?FIXED@    _check((@TUPLE@), INPUTS + STATES)
    device = @FIRST@.device
    out = (out,) if isinstance(out, torch.Tensor) else out
    if out is None:
        out = tuple([torch.empty(shape, dtype=dtype, device=device) for _, shape, dtype in @OUTPUTSAT@])
    _check(out, @OUTPUTSAT@)
    if temporaries is None:
        temporaries = torch.empty((TEMPORARIES,), dtype=torch.uint8, device=device)
    _check((temporaries,), (("temporaries", (TEMPORARIES,), torch.uint8),))
@OUTS@
@BODY@
    return out[0] if len(out) == 1 else out
