/* Bytes as a sequence and edits of its plan (sequence_edits.h): nothing crashes, an edit that fails changes
 * nothing, and check finds what is wrong, and no more. */
#include "tests/fuzz/sequence_edits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mem mem;
	static struct seq_stage stage;
	struct seq_session x;

	if (!stage.mem)
		seq_stage_init(&stage, &mem);
	seq_session_run(&x, &stage, data, size);
	if (x.wrong)
		BUG("not so: %s", x.wrong);
	return 0;
}
