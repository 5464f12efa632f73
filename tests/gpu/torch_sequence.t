# A sequence as a PyTorch operator, with PyTorch: torch.compile, opcheck, a state that is changed, the module of the same plan. What a call
# costs the host is printed, not tested.
. tests/gpu/lib.sh
python3 -c 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10))' 2>"$T/why" ||
	t_skip_all "there is no PyTorch of 2.10 or later: $(tail -1 "$T/why")"
"$MILLRACE" tests/gpu/sequence_operator.lua "$T" || exit 1
python3 tests/gpu/torch_sequence.py "$T"
