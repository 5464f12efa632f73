"""For tests of exported operators: TAP, tensors, what a call costs the host."""
import sys
import time
import traceback

import torch

count = failed = 0


def test(f):
    """Run it; its title is its docstring."""
    global count, failed
    count += 1
    try:
        f()
        print(f"ok {count} - {f.__doc__}", flush=True)
    except Exception:
        failed += 1
        print(f"not ok {count} - {f.__doc__}", flush=True)
        print("\n".join("# " + line for line in traceback.format_exc().splitlines()[-12:]), flush=True)


def finish():
    print(f"1..{count}")
    sys.exit(failed > 0)


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def near(x, y, most=5e-3):
    error = ((x.float() - y.float()).norm() / y.float().norm()).item()
    assert error < most, error


def refused(text, f, *args):
    try:
        f(*args)
    except RuntimeError as e:
        assert text in str(e), str(e)
        return
    assert False, f"nothing was raised, not {text!r}"


def cost(f, calls=2000):
    """Microseconds of the host, the median of five runs; waiting for the device is not counted."""
    runs = []
    for _ in range(5):
        torch.cuda.synchronize()
        waited, start = 0, time.perf_counter()
        for i in range(calls):
            f()
            if i % 200 == 199:
                at = time.perf_counter()
                torch.cuda.synchronize()
                waited += time.perf_counter() - at
        runs.append((time.perf_counter() - start - waited) / calls * 1e6)
    return sorted(runs)[2]
