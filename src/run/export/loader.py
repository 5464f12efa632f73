"""@PROGRAM@ on torch tensors, made by Millrace from a plan for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@CALL@)

@TENSORS@
@ANY@
@ANY@The shapes of the tensors say the sizes: @RANGETEXT@.

All are contiguous, on one CUDA device of architecture @ARCH@. The kernel runs on torch's
current stream; a call does not wait for it. It can be captured into a CUDA graph once
@FIXED@load() or run() was called before. There is no gradient.
@ANY@load(@LOADSIZES@), or run() with tensors of these sizes, was called before. There is no gradient.

@CUDA@It needs @FILES@ in the same folder, torch, and NVIDIA's driver.
@HIP@It needs @FILES@ in the same folder, torch for ROCm, and AMD's runtime (libamdhip64.so).
"""
import ctypes
@ANY@import heapq
import os
import threading
from collections import namedtuple

import torch

Tensor = namedtuple("Tensor", "name shape dtype")
@ANY@Size = namedtuple("Size", "name max multiple like")  # like: the size that it is the same as

NAME = "@NAME@"
ARCH = "@ARCH@"
@FIXED@FLOPS = @FLOPS@  # of all products
@FIXED@BYTES = @BYTES@  # of all inputs and outputs, each once
@ANY@SIZES = (@SIZES@
@ANY@)
INPUTS = (@INPUTS@)
OUTPUTS = (@OUTPUTS@)


@FIXED@def run(@PARAMETERS@@EARLY_PARAMETER@):
@ANY@def run(@PARAMETERS@, sizes=None@EARLY_PARAMETER@):
    """Launch the kernel, return its output (several: a tuple of them, as OUTPUTS has them).

    out: where to put it: a tensor (several: a tuple of them). New ones otherwise.
@ANY@    sizes: {"@FIRSTSIZE@": 64}, of axes that no input has.
@EARLY@    early: may it begin while what is in front of it on the stream runs? It waits itself until that has ended.
    """
@FIXED@    return _call((@TUPLE@), out@EARLY_GIVEN@)@ADDRESSES@
@ANY@    return _call((@TUPLE@), out, sizes or {}@EARLY_GIVEN@)


@FIXED@def load(device=None):
@ANY@def load(device=None, sizes=None, **more):
    """Load the binary onto a device, torch's current one by default.

    run() does it when first needed; do it before capturing a CUDA graph.
@ANY@    sizes: {"@FIRSTSIZE@": 64}, also make what launches with these sizes need;
@ANY@    load(@FIRSTSIZE@=64) is the same, but for a size that is called device or sizes.
    """
    index = None if device is None else torch.device(device).index
@FIXED@    _load(torch.cuda.current_device() if index is None else index)
@ANY@    index = torch.cuda.current_device() if index is None else index
@ANY@    ready, given = _load(index), {**(sizes or {}), **more}
@ANY@    if given:
@ANY@        with torch.cuda.device(index):
@ANY@            ready.tiles(_sizes_of((), given))


# ---- what the plan says ----------------------------------------------------------

# Temporaries between phases. Tensors are numbered: inputs, outputs, temporaries.
_TEMPS = (@TEMPS@)

# One launch a phase. Parameters of the kernel in order: ("pointer", tensor);
@CUDA@# ("map", tensor, CUtensorMapDataType, dims, strides in bytes, box, CUtensorMapSwizzle),
@CUDA@# dimensions innermost first; ("order",), the output tiles as they are taken;
@HIP@# ("order",), the output tiles as they are taken;
@UNCOUNTED@# ("start",), where in it the tiles of each block begin.
@COUNTED@# ("start",), the counter by which blocks take them.
@ANY@@CUDA@# A launch gives sizes: ("size", number of it in SIZES) is one; dims and strides are (factor, numbers
@ANY@@CUDA@# of sizes by which it is to be multiplied ...). "dims" of a phase are those of its grid: tiles, elements
@ANY@@HIP@# A launch gives sizes: ("size", number of it in SIZES). "dims" of a phase are those of its grid: tiles, elements
@ANY@# of one, number of the size or -1. "first" are all tiles in the plan's order, of blocks of a cluster,
@ANY@# which take neighbours in dimension "along", the first one; "work": iterations of each, or None.
_PHASES = (
@PHASES@)
@COUNTED@_COUNTERS, _COUNTER_BYTES = 4096, -(-len(_PHASES) // 8) * 32  # of streams and captured launches: a number for each phase

# ---- launching -------------------------------------------------------------------

_CACHED_MOST = 4096  # sets of addresses whose arguments are kept
_devices = {}
_lock = threading.Lock()
@LATE@_one, _none = ctypes.c_uint(1), ctypes.c_void_p(None)
@EARLY@_none = ctypes.c_void_p(None)
@EARLY@# Phases may begin while what is in front of them runs, and wait in the kernel until it has ended: a launch
@EARLY@# attribute of 72 bytes, number 6, "programmatic stream serialization", with the value 1.
@EARLY@_early = (ctypes.c_uint64 * 9)(6, 1)
@EARLY@_early_at = ctypes.addressof(_early)
_names = tuple(t.name for t in INPUTS)
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
if _raw_stream is None:
    def _raw_stream(index):
        return torch.cuda.current_stream(index).cuda_stream


@FIXED@def _call(inputs, out@EARLY_NAME@):
@ANY@def _call(inputs, out, given@EARLY_NAME@):
    index = inputs[0].get_device() if inputs and isinstance(inputs[0], torch.Tensor) else None
@FIXED@    if not _fit(inputs, INPUTS, index):
@FIXED@        _refuse(inputs, INPUTS)
@ANY@    sizes = _sizes_of(inputs, given)
@ANY@    at = _shapes.get(sizes) or _shapes_at(sizes)
@ANY@    if not _fit(inputs, at.inputs, index):
@ANY@        _refuse(inputs, at.inputs)
    if index is None:
        index = torch.cuda.current_device()
    device = _devices.get(index)
    if device is None:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError(f"{NAME}: call {NAME}.load() before capturing a CUDA graph")
        device = _load(index)
    if out is None:
        outputs = tuple([torch.empty(t.shape, dtype=t.dtype, device=device.device) for t in @OUTPUTS_AT@])
    else:
        outputs = (out,) if isinstance(out, torch.Tensor) else tuple(out)
        if len(outputs) != len(OUTPUTS):
            raise TypeError(f"{NAME}: out has {len(outputs)} tensors, expected {len(OUTPUTS)}")
        if not _fit(outputs, @OUTPUTS_AT@, index):
            _refuse(outputs, @OUTPUTS_AT@, index)
    tensors = inputs + outputs
    if _TEMPS:
        tensors += tuple([torch.empty(t.shape, dtype=t.dtype, device=device.device) for t in @TEMPS_AT@])
    if torch.cuda.current_device() == index:
        device.launch(tuple([x.data_ptr() for x in tensors])@SIZES_TOO@@EARLY_NAME@)
    else:
        with torch.cuda.device(index):
            device.launch(tuple([x.data_ptr() for x in tensors])@SIZES_TOO@@EARLY_NAME@)
    return outputs[0] if len(outputs) == 1 else outputs


@ANY@_At = namedtuple("_At", "inputs outputs temps")
@ANY@_shapes = {}
@ANY@
@ANY@
@ANY@def _shapes_at(sizes):
@ANY@    """The tensors, with numbers in their shapes."""
@ANY@    value = dict(zip([s.name for s in SIZES], sizes))
@ANY@
@ANY@    def tensors(list):
@ANY@        return tuple([t._replace(shape=tuple([value.get(n, n) for n in t.shape])) for t in list])
@ANY@
@ANY@    if len(_shapes) >= _CACHED_MOST:
@ANY@        _shapes.clear()
@ANY@    _shapes[sizes] = _At(tensors(INPUTS), tensors(OUTPUTS), tensors(_TEMPS))
@ANY@    return _shapes[sizes]
@ANY@
@ANY@
@ANY@# Where the shapes of inputs say a size: number of the input, of the dimension.
@ANY@_SOURCES = {n: (i, d) for i, t in reversed(list(enumerate(INPUTS))) for d, n in enumerate(t.shape)
@ANY@            if isinstance(n, str)}
@ANY@
@ANY@
@ANY@def _sizes_of(inputs, given):
@ANY@    values = {}
@ANY@    for name in given:
@ANY@        if name not in [s.name for s in SIZES]:
@ANY@            raise TypeError(f"{NAME}: there is no size {name}; there is {', '.join([s.name for s in SIZES])}")
@ANY@    for s in SIZES:
@ANY@        i, d = _SOURCES.get(s.name, (len(inputs), 0))
@ANY@        if s.name in given:
@ANY@            n = given[s.name]
@ANY@            if not hasattr(n, "__index__"):
@ANY@                raise TypeError(f"{NAME}: {s.name} must be an integer, got {n!r}")
@ANY@            n = n.__index__()
@ANY@        elif s.like is not None:
@ANY@            n = values[s.like]
@ANY@        elif i < len(inputs) and isinstance(inputs[i], torch.Tensor) and d < len(inputs[i].shape):
@ANY@            n = int(inputs[i].shape[d])
@ANY@        elif i < len(inputs):
@ANY@            _refuse(inputs, INPUTS)
@ANY@            raise ValueError(f"{NAME}: {INPUTS[i].name} must have shape {INPUTS[i].shape}")
@ANY@        else:
@ANY@            raise ValueError(f"{NAME}: the size {s.name} is missing")
@ANY@        if s.like is not None and n != values[s.like]:
@ANY@            raise ValueError(f"{NAME}: {s.name} is {n}, and {s.like}, which is the same size, {values[s.like]}")
@ANY@        if n < 1 or n > s.max or n % s.multiple:
@ANY@            raise ValueError(f"{NAME}: {s.name} is {n}; it must be from 1 to {s.max}, and a multiple of {s.multiple}")
@ANY@        values[s.name] = n
@ANY@    return tuple(values.values())
@ANY@
@ANY@
@ANY@def _tiles_of(p, sizes):
@ANY@    """How many tiles each dimension of the grid of a phase has at these sizes."""
@ANY@    return tuple([tiles if size < 0 else -(-sizes[size] // extent) for tiles, extent, size in p["dims"]])
@ANY@
@ANY@
@ANY@@CHIPLETS@def _unit_of(k, n, units):
@ANY@@CHIPLETS@    """The block of number k of n tiles: those that are taken at the same time go to one chiplet after the other."""
@ANY@@CHIPLETS@    at = k % units
@ANY@@CHIPLETS@    each, more = divmod(min(units, n - (k - at)), @NCHIPLETS@)
@ANY@@CHIPLETS@    ahead = more * (each + 1)
@ANY@@CHIPLETS@    if at < ahead:
@ANY@@CHIPLETS@        return at % (each + 1) * @NCHIPLETS@ + at // (each + 1)
@ANY@@CHIPLETS@    return (at - ahead) % each * @NCHIPLETS@ + more + (at - ahead) // each
@ANY@@CHIPLETS@
@ANY@@CHIPLETS@
@ANY@def _assign(p, now):
@ANY@    """The tiles of a phase that are there, so many along each dimension, and where those of each block begin."""
@ANY@    cluster, groups, work = p["cluster"], [], []
@ANY@    for i, first in enumerate(p["first"]):
@ANY@        left, below, inside, step, last = first, 1, True, 0, 0
@ANY@        for d in range(len(now) - 1, -1, -1):
@ANY@            at = left % p["dims"][d][0]
@ANY@            inside = inside and at < now[d]
@ANY@            if d == p["along"]:
@ANY@                step, last = below, now[d] - 1 - at
@ANY@            left //= p["dims"][d][0]
@ANY@            below *= p["dims"][d][0]
@ANY@        if inside:
@ANY@            groups.append([first + min(k, last) * step for k in range(cluster)])
@ANY@            work.append(p["work"][i] if p["work"] else 0)
@ANY@    units = min(p["grid"] // cluster, len(groups))
@ANY@    lists, heap = [[] for _ in range(units)], [(0, u) for u in range(units)]
@ANY@    for i, group in enumerate(groups):
@ANY@        if p["work"]:
@ANY@            done, unit = heap[0]
@ANY@            heapq.heapreplace(heap, (done + work[i], unit))
@ANY@@CHIPLETS@            unit = _unit_of(unit, units, units)
@ANY@        else:
@ANY@@ROUND@            unit = i % units
@ANY@@CHIPLETS@            unit = _unit_of(i, len(groups), units)
@ANY@        lists[unit].append(group)
@ANY@    order, start = [], [0]
@ANY@    for groups in lists:
@ANY@        for k in range(cluster):
@ANY@            order += [group[k] for group in groups]
@ANY@            start.append(len(order))
@ANY@    return order, start
@ANY@
@ANY@
@ANY@@CUDA@def _times(x, sizes):
@ANY@@CUDA@    n = x[0]
@ANY@@CUDA@    for i in x[1:]:
@ANY@@CUDA@        n *= sizes[i]
@ANY@@CUDA@    return n
@ANY@@CUDA@
@ANY@@CUDA@
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


@EARLY@class _Config(ctypes.Structure):
@EARLY@    """CUlaunchConfig."""
@EARLY@    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("smem", ctypes.c_uint),
@EARLY@                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("nattributes", ctypes.c_uint)]
@EARLY@
@EARLY@
class _Device:
    """The binary on one device, and launches that were made ready there."""

    def __init__(self, index):
        self.index, self.device = index, torch.device("cuda", index)
@CUDA@        major, minor = torch.cuda.get_device_capability(index)
@CUDA@        if ARCH != f"sm_{major}{minor}a" and not (ARCH[-1] != "a" and ARCH[3:-1] == str(major) and int(ARCH[-1]) <= minor):
@CUDA@            raise RuntimeError(f"{NAME}: the binary is for {ARCH}, cuda:{index} is sm_{major}{minor}")
@HIP@        arch = getattr(torch.cuda.get_device_properties(index), "gcnArchName", "NVIDIA's").split(":")[0]
@HIP@        if ARCH != arch:
@HIP@            raise RuntimeError(f"{NAME}: the binary is for {ARCH}, cuda:{index} is {arch}")
        self.cuda = _driver()
        self.ready = {}
@TABLED@        self.functions, self.orders, self.starts = [], [], []
@COUNTED@        self.functions, self.orders, self.of_streams, self.used = [], [], {}, 0
@ANY@        self.functions, self.lists = [], {}
        with torch.cuda.device(index):
@CUDA@            self.context = ctypes.c_void_p()
@CUDA@            self._do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ctypes.c_int(index))
@CUDA@            self._do("cuCtxSetCurrent", self.context)
            for p in _PHASES:
                self._load_phase(p)
@COUNTED@            self.counters = self._upload([0] * (_COUNTERS * _COUNTER_BYTES // 4)).value

    def _load_phase(self, p):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), p["binary"]), "rb") as f:
            binary = f.read()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("cuModuleLoadData", ctypes.byref(module), binary)
        self._do("cuModuleGetFunction", ctypes.byref(function), module, p["entry"].encode())
@CUDA@        self._do("cuFuncSetAttribute", function, ctypes.c_int(8), ctypes.c_int(p["smem"]))
        self.functions.append(function)
@FIXED@        self.orders.append(self._upload(p["order"]))
@TABLED@        self.starts.append(self._upload(p["start"]))
@COUNTED@
@COUNTED@    def _counter(self, stream):
@COUNTED@        """The address of a counter that no other launch uses at the same time; None: there is none left.
@COUNTED@
@COUNTED@        Its numbers are 0 before a launch and behind it. The launches of a stream run one after the other, and share one.
@COUNTED@        A captured launch has one of its own, as a graph may run next to others of the same stream.
@COUNTED@        """
@COUNTED@        number = None
@COUNTED@        if not torch.cuda.is_current_stream_capturing():
@COUNTED@            number = ctypes.c_uint64()  # which no later stream has
@COUNTED@            self._do("cuStreamGetId", stream, ctypes.byref(number))
@COUNTED@            number = number.value
@COUNTED@            if number in self.of_streams:
@COUNTED@                return self.of_streams[number]
@COUNTED@        with _lock:
@COUNTED@            if self.used == _COUNTERS:
@COUNTED@                return None
@COUNTED@            at = self.counters + self.used * _COUNTER_BYTES
@COUNTED@            self.used += 1
@COUNTED@        if number is not None:
@COUNTED@            self.of_streams[number] = at
@COUNTED@        return at
@ANY@
@ANY@    def tiles(self, sizes):
@ANY@        """Of each phase the addresses of its lists of tiles, and how many blocks it has. They stay.
@ANY@
@ANY@        Sizes that have the same numbers of tiles share them.
@ANY@        """
@ANY@        keys = [(i, _tiles_of(p, sizes)) for i, p in enumerate(_PHASES)]
@ANY@        with _lock:
@ANY@            if any([key not in self.lists for key in keys]) and torch.cuda.is_current_stream_capturing():
@ANY@                given = ", ".join([f"{s.name}={n}" for s, n in zip(SIZES, sizes) if s.like is None])
@ANY@                raise RuntimeError(f"{NAME}: call {NAME}.load({given}) before capturing a CUDA graph")
@ANY@            for i, now in keys:
@ANY@                if (i, now) not in self.lists:
@ANY@                    self.lists[i, now] = self._upload_tiles(*_assign(_PHASES[i], now))
@ANY@        return [self.lists[key] for key in keys]
@ANY@
@ANY@    def _upload_tiles(self, order, start):
@ANY@        return self._upload(order), self._upload(start), len(start) - 1

    def _upload(self, numbers):
        data, at = (ctypes.c_int * len(numbers))(*numbers), ctypes.c_uint64()
        self._do("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(ctypes.sizeof(data)))
        self._do("cuMemcpyHtoD_v2", at, data, ctypes.c_size_t(ctypes.sizeof(data)))
        return at

    def _do(self, function, *args):
        code = getattr(self.cuda, function)(*args)
@CUDA@        if code == 201 and self.context:  # this thread has no context yet
@CUDA@            self._do("cuCtxSetCurrent", self.context)
@CUDA@            code = getattr(self.cuda, function)(*args)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(ctypes.c_int(code), ctypes.byref(text))
            raise RuntimeError(f"{NAME}: {function} on cuda:{self.index}: "
                               f"{(text.value or b'error').decode()} ({code})")

@FIXED@    def launch(self, addresses@EARLY_NAME@):
@ANY@    def launch(self, addresses, sizes@EARLY_NAME@):
        """Addresses: of all tensors, by number. torch's current device is this one."""
@TABLED@        ready = self.ready.get(addresses)
@TABLED@        if ready is None:
@TABLED@            ready = self._make_ready(addresses)
@ANY@        ready = self.ready.get((addresses, sizes))
@ANY@        if ready is None:
@ANY@            ready = self._make_ready(addresses, sizes)
        stream = ctypes.c_void_p(_raw_stream(self.index))
@COUNTED@        counter, alone = self._counter(stream), None
@COUNTED@        if counter is None:
@COUNTED@            alone = torch.zeros((len(_PHASES),), dtype=torch.int32, device=self.device)
@COUNTED@            counter = alone.data_ptr()
@COUNTED@        ready = self.ready.get((addresses, counter))
@COUNTED@        if ready is None:
@COUNTED@            ready = self._make_ready(addresses, counter)
@LATE@        launch = self.cuda.cuLaunchKernel
@LATE@        for function, grid, threads, smem, args in ready:
@LATE@            if launch(function, grid, _one, _one, threads, _one, _one, smem, stream, args, _none):
@LATE@                self._do("cuLaunchKernel", function, grid, _one, _one, threads, _one, _one, smem,
@LATE@                         stream, args, _none)
@EARLY@        launch = self.cuda.cuLaunchKernelEx
@EARLY@        for function, grid, threads, smem, args in ready:
@EARLY@            config = ctypes.byref(_Config(grid, threads, smem, stream, _early_at, early))
@EARLY@            early = 1
@EARLY@            if launch(config, function, args, _none):
@EARLY@                self._do("cuLaunchKernelEx", config, function, args, _none)

    def _make_ready(self, addresses@SIZES_TOO@@COUNTER_TOO@):
        for x, t in zip(addresses, INPUTS + OUTPUTS + _TEMPS):
            if x % 16:
                raise ValueError(f"{NAME}: {t.name} must begin at a multiple of 16 bytes, "
                                 "as a clone does")
        if len(self.ready) >= _CACHED_MOST:
            self.ready.clear()
@TABLED@        self.ready[addresses] = [self._arguments(i, p, addresses) for i, p in enumerate(_PHASES)]
@TABLED@        return self.ready[addresses]
@COUNTED@        self.ready[addresses, counter] = [self._arguments(i, p, addresses, counter) for i, p in enumerate(_PHASES)]
@COUNTED@        return self.ready[addresses, counter]
@ANY@        tiles = self.tiles(sizes)
@ANY@        self.ready[addresses, sizes] = [self._arguments(i, p, addresses, sizes, *tiles[i])
@ANY@                                        for i, p in enumerate(_PHASES)]
@ANY@        return self.ready[addresses, sizes]

@TABLED@    def _arguments(self, phase, p, addresses):
@COUNTED@    def _arguments(self, phase, p, addresses, counter):
@ANY@    def _arguments(self, phase, p, addresses, sizes, order, start, grid):
        values = []
        for kind, *x in p["params"]:
@CUDA@            if kind == "map":
@FIXED@@CUDA@                values.append(self._map(addresses[x[0]], *x[1:]))
@ANY@@CUDA@                tensor, element, dims, strides, box, swizzle = x
@ANY@@CUDA@                values.append(self._map(addresses[tensor], element, [_times(n, sizes) for n in dims],
@ANY@@CUDA@                                        [_times(n, sizes) for n in strides], box, swizzle))
@ANY@@CUDA@            elif kind == "size":
@ANY@@CUDA@                values.append(ctypes.c_int(sizes[x[0]]))
@CUDA@            else:
@CUDA@                values.append(ctypes.c_uint64(addresses[x[0]]) if kind == "pointer" else
@TABLED@@CUDA@                              self.orders[phase] if kind == "order" else self.starts[phase])
@COUNTED@                              self.orders[phase] if kind == "order" else ctypes.c_uint64(counter + 4 * phase))
@ANY@@CUDA@                              order if kind == "order" else start)
@FIXED@@HIP@            values.append(ctypes.c_uint64(addresses[x[0]]) if kind == "pointer" else
@FIXED@@HIP@                          self.orders[phase] if kind == "order" else self.starts[phase])
@ANY@@HIP@            if kind == "size":
@ANY@@HIP@                values.append(ctypes.c_int(sizes[x[0]]))
@ANY@@HIP@            else:
@ANY@@HIP@                values.append(ctypes.c_uint64(addresses[x[0]]) if kind == "pointer" else
@ANY@@HIP@                              order if kind == "order" else start)
        args = (ctypes.c_void_p * len(values))(*[ctypes.addressof(x) for x in values])
        args.keep = values
@LATE@        return (self.functions[phase], ctypes.c_uint(@GRID@), ctypes.c_uint(p["threads"]),
@LATE@                ctypes.c_uint(p["smem"]), args)
@EARLY@        three = ctypes.c_uint * 3
@EARLY@        return self.functions[phase], three(@GRID@, 1, 1), three(p["threads"], 1, 1), p["smem"], args
@CUDA@
@CUDA@    def _map(self, address, element, dims, strides, box, swizzle):
@CUDA@        buffer = ctypes.create_string_buffer(128 + 64)
@CUDA@        tensor_map = (ctypes.c_char * 128).from_buffer(buffer, -ctypes.addressof(buffer) % 64)
@CUDA@        rank = len(dims)
@CUDA@        self._do("cuTensorMapEncodeTiled", tensor_map, ctypes.c_int(element), ctypes.c_uint(rank),
@CUDA@                 ctypes.c_uint64(address), (ctypes.c_uint64 * rank)(*dims),
@CUDA@                 (ctypes.c_uint64 * (rank - 1))(*strides), (ctypes.c_uint32 * rank)(*box),
@CUDA@                 (ctypes.c_uint32 * rank)(*[1] * rank), ctypes.c_int(0), ctypes.c_int(swizzle),
@CUDA@                 ctypes.c_int(@PROMOTION@), ctypes.c_int(0))
@CUDA@        return tensor_map
@CUDA@
@CUDA@
@HIP@
@HIP@
def _driver():
@CUDA@    try:
@CUDA@        return ctypes.CDLL("libcuda.so.1")
@CUDA@    except OSError as e:
@CUDA@        raise RuntimeError(f"{NAME}: NVIDIA's driver cannot be loaded: {e}") from None
@HIP@    """The runtime that torch has loaded: it may have brought its own."""
@HIP@    with open("/proc/self/maps") as f:
@HIP@        loaded = [line[line.index("/"):].rstrip() for line in f if "/libamdhip64.so" in line]
@HIP@    for name in loaded[:1] + ["libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"]:
@HIP@        try:
@HIP@            return ctypes.CDLL(name)
@HIP@        except OSError as e:
@HIP@            error = e
@HIP@    raise RuntimeError(f"{NAME}: AMD's runtime cannot be loaded: {error}") from None
