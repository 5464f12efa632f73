"""Hold the device's memory, all but so many bytes, until the input ends.

    python3 hog.py BYTES_LEFT

Needs only the driver. Says "ready" once it has it.
"""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def do(name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        sys.exit(f"{name}: error {code}")


context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
do("cuInit", 0)
do("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
do("cuCtxSetCurrent", context)
do("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
do("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(free.value - int(sys.argv[1])))
print("ready", flush=True)
sys.stdin.read()
