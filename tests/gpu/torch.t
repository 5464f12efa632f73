# Exported PyTorch operators with PyTorch: torch.compile, torch.export, opcheck, gradients. What a call costs the host is
# printed, not tested.
. tests/gpu/lib.sh
python3 -c 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10))' 2>"$T/why" ||
	t_skip_all "there is no PyTorch of 2.10 or later: $(tail -1 "$T/why")"
"$MILLRACE" tests/gpu/operators.lua "$T" || exit 1
python3 tests/gpu/torch_operators.py "$T"
