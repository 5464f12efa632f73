/* Bytes as edits of a plan (plan_edits.h): nothing crashes, an undo restores the text,
 * the check comes to an end. */
#include "tests/fuzz/plan_edits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mem mem;
	static struct stage stage;
	struct session s;

	if (!stage.graph)
		stage_init(&stage, &mem);
	session_run(&s, &stage, data, size);
	if (s.wrong)
		BUG("not so: %s", s.wrong);
	return 0;
}
