"""@PROGRAM@ on torch tensors, made by Millrace from a plan for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@CALL@)

@TENSORS@

All are contiguous, on one CUDA device of architecture @ARCH@. The kernel runs on torch's
current stream; a call does not wait for it. It can be captured into a CUDA graph once
load() or run() was called before. There is no gradient.

It needs @FILES@ in the same folder, torch, and NVIDIA's driver.
"""
import ctypes
import os
import threading
from collections import namedtuple

import torch

Tensor = namedtuple("Tensor", "name shape dtype")

NAME = "@NAME@"
ARCH = "@ARCH@"
FLOPS = @FLOPS@  # with those of a ragged tile's missing part
BYTES = @BYTES@  # of all inputs and outputs, each once
INPUTS = (@INPUTS@)
OUTPUTS = (@OUTPUTS@)


def run(@PARAMETERS@):
    """Launch the kernel, return its output (several: a tuple of them, as OUTPUTS has them).

    out: where to put it: a tensor (several: a tuple of them). New ones otherwise.
    """
    return _call((@TUPLE@), out)


def load(device=None):
    """Load the binary onto a device, torch's current one by default.

    run() does it when first needed; do it before capturing a CUDA graph.
    """
    index = None if device is None else torch.device(device).index
    _load(torch.cuda.current_device() if index is None else index)


# ---- what the plan says ----------------------------------------------------------

# Temporaries between phases. Tensors are numbered: inputs, outputs, temporaries.
_TEMPS = (@TEMPS@)

# One launch a phase. Parameters of the kernel in order: ("pointer", tensor);
# ("map", tensor, CUtensorMapDataType, dims, strides in bytes, box, CUtensorMapSwizzle),
# dimensions innermost first; ("order",), the output tiles as they are taken;
# ("start",), where in it the tiles of each block begin.
_PHASES = (
@PHASES@)

# ---- launching -------------------------------------------------------------------

_CACHED_MOST = 4096  # sets of addresses whose arguments are kept
_devices = {}
_lock = threading.Lock()
_one, _none = ctypes.c_uint(1), ctypes.c_void_p(None)
_names = tuple(t.name for t in INPUTS)
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
if _raw_stream is None:
    def _raw_stream(index):
        return torch.cuda.current_stream(index).cuda_stream


def _call(inputs, out):
    index = inputs[0].get_device() if inputs and isinstance(inputs[0], torch.Tensor) else None
    if not _fit(inputs, INPUTS, index):
        _refuse(inputs, INPUTS)
    if index is None:
        index = torch.cuda.current_device()
    device = _devices.get(index)
    if device is None:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError(f"{NAME}: call {NAME}.load() before capturing a CUDA graph")
        device = _load(index)
    if out is None:
        outputs = tuple([torch.empty(t.shape, dtype=t.dtype, device=device.device) for t in OUTPUTS])
    else:
        outputs = (out,) if isinstance(out, torch.Tensor) else tuple(out)
        if len(outputs) != len(OUTPUTS):
            raise TypeError(f"{NAME}: out has {len(outputs)} tensors, expected {len(OUTPUTS)}")
        if not _fit(outputs, OUTPUTS, index):
            _refuse(outputs, OUTPUTS, index)
    tensors = inputs + outputs
    if _TEMPS:
        tensors += tuple([torch.empty(t.shape, dtype=t.dtype, device=device.device) for t in _TEMPS])
    if torch.cuda.current_device() == index:
        device.launch(tuple([x.data_ptr() for x in tensors]))
    else:
        with torch.cuda.device(index):
            device.launch(tuple([x.data_ptr() for x in tensors]))
    return outputs[0] if len(outputs) == 1 else outputs


def _load(index):
    with _lock:
        if index not in _devices:
            _devices[index] = _Device(index)
    return _devices[index]


def _fit(tensors, expected, index):
    for x, (_, shape, dtype) in zip(tensors, expected):
        if (not isinstance(x, torch.Tensor) or x.dtype is not dtype or x.shape != shape
                or x.get_device() != index or index < 0 or not x.is_contiguous()):
            return False
    return True


def _refuse(tensors, expected, index=None):
    """Raise for the first tensor that is not as expected, on one device with the others."""
    for x, (name, shape, dtype) in zip(tensors, expected):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{NAME}: {name} must be a torch tensor, got {type(x).__name__}")
        if x.dtype != dtype:
            raise TypeError(f"{NAME}: {name} must have dtype {dtype}, got {x.dtype}")
        if tuple(x.shape) != shape:
            raise ValueError(f"{NAME}: {name} must have shape {shape}, got {tuple(x.shape)}; "
                             "the sizes are those that the program was bound to")
        if x.get_device() < 0:
            raise ValueError(f"{NAME}: {name} must be on a CUDA device, it is on {x.device}")
        index = x.get_device() if index is None else index
        if x.get_device() != index:
            raise ValueError(f"{NAME}: {name} is on {x.device}, other tensors are on cuda:{index}")
        if not x.is_contiguous():
            raise ValueError(f"{NAME}: {name} must be contiguous, as {name}.contiguous() is")


class _Device:
    """The binary on one device, and launches that were made ready there."""

    def __init__(self, index):
        self.index, self.device = index, torch.device("cuda", index)
        major, minor = torch.cuda.get_device_capability(index)
        if ARCH != f"sm_{major}{minor}a":
            raise RuntimeError(f"{NAME}: the binary is for {ARCH}, cuda:{index} is sm_{major}{minor}")
        self.cuda = _driver()
        self.ready = {}
        self.functions, self.orders, self.starts = [], [], []
        with torch.cuda.device(index):
            self.context = ctypes.c_void_p()
            self._do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ctypes.c_int(index))
            self._do("cuCtxSetCurrent", self.context)
            for p in _PHASES:
                self._load_phase(p)

    def _load_phase(self, p):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), p["binary"]), "rb") as f:
            binary = f.read()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("cuModuleLoadData", ctypes.byref(module), binary)
        self._do("cuModuleGetFunction", ctypes.byref(function), module, p["entry"].encode())
        self._do("cuFuncSetAttribute", function, ctypes.c_int(8), ctypes.c_int(p["smem"]))
        self.functions.append(function)
        self.orders.append(self._upload(p["order"]))
        self.starts.append(self._upload(p["start"]))

    def _upload(self, numbers):
        data, at = (ctypes.c_int * len(numbers))(*numbers), ctypes.c_uint64()
        self._do("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(ctypes.sizeof(data)))
        self._do("cuMemcpyHtoD_v2", at, data, ctypes.c_size_t(ctypes.sizeof(data)))
        return at

    def _do(self, function, *args):
        code = getattr(self.cuda, function)(*args)
        if code == 201 and self.context:  # this thread has no context yet
            self._do("cuCtxSetCurrent", self.context)
            code = getattr(self.cuda, function)(*args)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(ctypes.c_int(code), ctypes.byref(text))
            raise RuntimeError(f"{NAME}: {function} on cuda:{self.index}: "
                               f"{(text.value or b'error').decode()} ({code})")

    def launch(self, addresses):
        """Addresses: of all tensors, by number. torch's current device is this one."""
        ready = self.ready.get(addresses)
        if ready is None:
            ready = self._make_ready(addresses)
        stream = ctypes.c_void_p(_raw_stream(self.index))
        launch = self.cuda.cuLaunchKernel
        for function, grid, threads, smem, args in ready:
            if launch(function, grid, _one, _one, threads, _one, _one, smem, stream, args, _none):
                self._do("cuLaunchKernel", function, grid, _one, _one, threads, _one, _one, smem,
                         stream, args, _none)

    def _make_ready(self, addresses):
        for x, t in zip(addresses, INPUTS + OUTPUTS + _TEMPS):
            if x % 16:
                raise ValueError(f"{NAME}: {t.name} must begin at a multiple of 16 bytes, "
                                 "as a clone does")
        if len(self.ready) >= _CACHED_MOST:
            self.ready.clear()
        self.ready[addresses] = [self._arguments(i, p, addresses) for i, p in enumerate(_PHASES)]
        return self.ready[addresses]

    def _arguments(self, phase, p, addresses):
        values = []
        for kind, *x in p["params"]:
            if kind == "map":
                values.append(self._map(addresses[x[0]], *x[1:]))
            else:
                values.append(ctypes.c_uint64(addresses[x[0]]) if kind == "pointer" else
                              self.orders[phase] if kind == "order" else self.starts[phase])
        args = (ctypes.c_void_p * len(values))(*[ctypes.addressof(x) for x in values])
        args.keep = values
        return (self.functions[phase], ctypes.c_uint(p["grid"]), ctypes.c_uint(p["threads"]),
                ctypes.c_uint(p["smem"]), args)

    def _map(self, address, element, dims, strides, box, swizzle):
        buffer = ctypes.create_string_buffer(128 + 64)
        tensor_map = (ctypes.c_char * 128).from_buffer(buffer, -ctypes.addressof(buffer) % 64)
        rank = len(dims)
        self._do("cuTensorMapEncodeTiled", tensor_map, ctypes.c_int(element), ctypes.c_uint(rank),
                 ctypes.c_uint64(address), (ctypes.c_uint64 * rank)(*dims),
                 (ctypes.c_uint64 * (rank - 1))(*strides), (ctypes.c_uint32 * rank)(*box),
                 (ctypes.c_uint32 * rank)(*[1] * rank), ctypes.c_int(0), ctypes.c_int(swizzle),
                 ctypes.c_int(@PROMOTION@), ctypes.c_int(0))
        return tensor_map


def _driver():
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise RuntimeError(f"{NAME}: NVIDIA's driver cannot be loaded: {e}") from None
