#!/usr/bin/env python3
"""What Millrace reaches on one H200 in work of many kinds, each row searched afresh on the device, and the best of its rivals.

    python3 tests/perf/rows.py [--case PATTERN] [--group PATTERN] [--json FILE] ...
    python3 tests/perf/rows.py --json FILE --resume --within 560    # in parts; status 75: some rows are left, call it again
    python3 tests/perf/rows.py --table FILE ...                     # the complete table

Options are those of against_torch.py, with other defaults: searches of 5 seconds one after the other, 1 second for each
contender. The table is followed by a line of each group of rows: the geometric mean of the best rival's time over ours, and the
least of a row, with what they are to be. In the environment, FA3 and FA4 name folders with FlashAttention's packages
(flash_attn_interface, flash_attn.cute), which then are rivals, too.
"""
import sys

import against_torch

if __name__ == "__main__":
    sys.exit(against_torch.main(["--cases", "row_cases", "--search", "5", "--alone", "--seconds", "1", "--warmup", "0.5", "--bars", "",
                                 *sys.argv[1:]]))
