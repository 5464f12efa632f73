"""The kernels of sequence @SEQUENCE@ for several sizes on torch tensors, made by Millrace from plans for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@PARAMETERS@)

The shapes of the tensors say which kernels run; SIZES says which there are: @SIZES@. Each has a module of its own in
this folder.
"""
@IMPORTS@

NAME = "@NAME@"
SIZES = (@SIZETABLES@)
_modules = (@MODULES@)
_by_shapes = {tuple([shape for _, shape, _ in m.INPUTS + m.STATES]): m for m in _modules}


def load(device=None):
    """Load all binaries onto a device, torch's current one by default."""
    for module in _modules:
        module.load(device)


@?ONE@def fit(size):
@?ONE@    """The smallest size that is there and at least so large; None: there is none."""
@?ONE@    return min([n for n in (@SORTED@,) if n >= size], default=None)
@?ONE@
@?ONE@
def run(@PARAMETERS@, out=None, temporaries=None):
    """Launch the kernels for the shapes of these tensors; as run of their module."""
    module = _by_shapes.get(tuple([tuple(x.shape) for x in (@TUPLE@)]))
    if module is None:
        raise ValueError(f"{NAME}: there are no kernels for tensors of these shapes; there are some for @SIZES@")
    return module.run(@PARAMETERS@, out=out, temporaries=temporaries)
