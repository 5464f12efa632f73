"""As much of torch as an exported kernel uses; for tests/cli/export*.t.

Tensors are nothing but what they claim to be. New ones of a shape begin where NEW says.
"""
float64, float32, float16, bfloat16 = "torch.float64", "torch.float32", "torch.float16", "torch.bfloat16"
float8_e4m3fn, float8_e5m2, uint8 = "torch.float8_e4m3fn", "torch.float8_e5m2", "torch.uint8"
int64, int32, int8, bool = "torch.int64", "torch.int32", "torch.int8", "torch.bool"

NEW = {}
made, recorded = [], []


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


class _Stream:
    cuda_stream = 0x77


class _Properties:
    gcnArchName = "gfx942:sramecc+:xnack-"


class cuda:
    capturing, current, capability = False, 0, (9, 0)

    def current_device():
        return cuda.current

    def current_stream(index=None):
        return _Stream

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
