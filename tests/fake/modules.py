"""What tests/cli/export*.t do with exported modules, on tensors of the fake torch."""
import torch


def tensor(t, i, sizes={}, **other):
    """A tensor as a module describes it, number i of all; an axis whose size is known at launch has that in `sizes`."""
    return torch.Tensor(tuple(sizes.get(n, n) for n in t.shape), t.dtype, i * 0x10000, **other)


def refused(kind, text, f, *args, **kwargs):
    """f(...) raises an exception of that kind, which says the text."""
    try:
        f(*args, **kwargs)
    except kind as e:
        assert text in str(e), f"{e!r} does not say {text!r}"
        return
    assert False, f"nothing was raised, not {text!r}"
