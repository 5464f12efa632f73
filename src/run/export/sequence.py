"""The kernels of sequence @SEQUENCE@ on torch tensors, made by Millrace from a plan for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@PARAMETERS@)

INPUTS, STATES, which the kernels read and write, and OUTPUTS say names, shapes and types. All are contiguous, on one device. A call does not
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
TEMPORARIES = @BYTES@  # bytes


def load(device=None):
    """Load all binaries onto a device, torch's current one by default."""
    for kernel in (@MODULES@):
        kernel.load(device)
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


def run(@PARAMETERS@, out=None, temporaries=None):
    """Launch all kernels; return the output (several: a tuple of them).

    out: where to put it. temporaries: TEMPORARIES bytes, uint8, that no other launch uses at the same time. New ones otherwise.
    """
    _check((@TUPLE@), INPUTS + STATES)
    device = @FIRST@.device
    out = (out,) if isinstance(out, torch.Tensor) else out
    if out is None:
        out = tuple([torch.empty(shape, dtype=dtype, device=device) for _, shape, dtype in OUTPUTS])
    _check(out, OUTPUTS)
    if temporaries is None:
        temporaries = torch.empty((TEMPORARIES,), dtype=torch.uint8, device=device)
    _check((temporaries,), (("temporaries", (TEMPORARIES,), torch.uint8),))
@OUTS@
@BODY@
    return out[0] if len(out) == 1 else out
