"""As much of torch as an exported kernel uses; for tests/cli/export*.t.

Tensors are nothing but what they claim to be. New ones of a shape begin where NEW says. What streams record and wait for
is written to the file $RECORDER_LOG, as the recorder (recorder.c) does.
"""
import os

float64, float32, float16, bfloat16 = "torch.float64", "torch.float32", "torch.float16", "torch.bfloat16"
float8_e4m3fn, float8_e5m2, uint8 = "torch.float8_e4m3fn", "torch.float8_e5m2", "torch.uint8"
int64, int32, int8, bool = "torch.int64", "torch.int32", "torch.int8", "torch.bool"

NEW = {}
made, recorded = [], []
_bytes = {float64: 8, float32: 4, float16: 2, bfloat16: 2, float8_e4m3fn: 1, float8_e5m2: 1, uint8: 1, int64: 8, int32: 4, int8: 1, bool: 1}


class device:
    def __init__(self, kind, index=None):
        if isinstance(kind, int):
            kind, index = "cuda", kind
        if ":" in kind:
            kind, index = kind.split(":")
        self.type, self.index = kind, None if index is None else int(index)

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Tensor:
    def __init__(self, shape, dtype, address, index=0, contiguous=True):
        self.shape, self.dtype, self.address, self.contiguous = tuple(shape), dtype, address, contiguous
        self.device = device("cpu") if index < 0 else device("cuda", index)

    def get_device(self):
        return -1 if self.device.type == "cpu" else self.device.index

    def is_contiguous(self):
        return self.contiguous

    def data_ptr(self):
        return self.address

    def record_stream(self, stream):
        recorded.append((self, stream))

    def view(self, to):
        """In another shape, -1: as many as there are; or in another type."""
        shape, n = list(self.shape), 1
        for size in shape:
            n *= size
        if isinstance(to, str):
            shape[-1] = shape[-1] * _bytes[self.dtype] // _bytes[to]
            return Tensor(shape, to, self.address, self.device.index)
        shape, m = (n,) if to == -1 else to, 1
        for size in shape:
            m *= size
        if m != n or not self.contiguous:
            raise RuntimeError("the shape is of another size")
        return Tensor(shape, self.dtype, self.address, self.device.index)

    def __getitem__(self, part):
        assert part.step is None and len(self.shape) == 1 and 0 <= part.start <= part.stop <= self.shape[0]
        return Tensor((part.stop - part.start,), self.dtype, self.address + part.start * _bytes[self.dtype], self.device.index)


def empty(shape, dtype, device):
    made.append(Tensor(shape, dtype, NEW[tuple(shape)], device.index))
    return made[-1]


def zeros(shape, dtype, device):
    made.append(Tensor(shape, dtype, NEW["zeros"], device.index))
    return made[-1]


def tensor(values, dtype, device):
    if cuda.capturing:
        raise RuntimeError("an allocation and a copy cannot be captured")
    made.append(Tensor((len(values),), dtype, NEW[tuple(values)], device.index))
    return made[-1]


def _log(line):
    with open(os.environ["RECORDER_LOG"], "a") as f:
        f.write(line + "\n")


class _Event:
    made = 0

    def __init__(self):
        _Event.made += 1
        self.number = _Event.made


class Stream:
    made = 0

    def __init__(self, device=None):
        Stream.made += 1
        self.cuda_stream = Stream.made * 0x1000

    def record_event(self):
        event = _Event()
        _log(f"record event {event.number} on {self.cuda_stream:#x}")
        return event

    def wait_event(self, event):
        _log(f"wait on {self.cuda_stream:#x} for event {event.number}")

    def wait_stream(self, other):
        self.wait_event(other.record_event())


class _Current(Stream):
    """The one on which torch's own work is."""
    def __init__(self):
        self.cuda_stream = 0x77


class _Properties:
    gcnArchName = "gfx942:sramecc+:xnack-"


class cuda:
    capturing, current, capability = False, 0, (9, 0)

    def current_device():
        return cuda.current

    Stream = Stream
    _stream = _Current()

    def current_stream(index=None):
        return cuda._stream

    class stream:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            self.before, cuda._stream = cuda._stream, self.stream

        def __exit__(self, *_):
            cuda._stream = self.before

    def is_current_stream_capturing():
        return cuda.capturing

    def get_device_capability(index):
        return cuda.capability

    def get_device_properties(index):
        return _Properties

    class device:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            self.before, cuda.current = cuda.current, self.index

        def __exit__(self, *_):
            cuda.current = self.before


class _C:
    pass
