"""The kernels of sequence @SEQUENCE@ for ranges of a size on torch tensors, made by Millrace from plans for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@PARAMETERS@)

The tensors say what the size @SIZENAME@ is, and that which kernels run: @RANGETEXT@. Each range has a module of its own in
this folder.
"""
@IMPORTS@

NAME = "@NAME@"
RANGES = (@RANGES@)  # the last size of each, and its module
INPUTS, STATES, OUTPUTS, SIZES = @LAST@.INPUTS, @LAST@.STATES, @LAST@.OUTPUTS, (("@SIZENAME@", @MOST@, @MULTIPLE@),)
TEMPORARIES = max([module.TEMPORARIES for _, module in RANGES])  # bytes


def module_of(size):
    """The module of the range that has this size."""
    if size < 1 or size > @MOST@ or size % @MULTIPLE@:
        raise ValueError(f"{NAME}: @SIZENAME@ is {size}; it must be from 1 to @MOST@, and a multiple of @MULTIPLE@")
    return [module for last, module in RANGES if size <= last][0]


def load(device=None, sizes=None):
    """Load all binaries onto a device, torch's current one by default. sizes: {"@SIZENAME@": 64}, also make what launches with it need."""
    for _, module in RANGES:
        module.load(device)
    if sizes:
        module_of(sizes["@SIZENAME@"]).load(device, sizes)


def run(@PARAMETERS@, out=None, temporaries=None, sizes=None):
    """Launch the kernels of the range that has the tensors' size; as run of its module. temporaries: TEMPORARIES bytes."""
    module = module_of(@LAST@.@SIZEVALUE@)
    if temporaries is not None:
        temporaries = temporaries[0:module.TEMPORARIES]
    return module.run(@PARAMETERS@, out=out, temporaries=temporaries, sizes=sizes)
