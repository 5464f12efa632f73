/* report.h - what a compiler did to a kernel that the plan's author should know. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "plan/check.h"
#include "run/run.h"

/* Problems of a compiled kernel, in the form of a check's, in `a`: registers that went to
 * memory, and products that the compiler made wait for each other, each with the sTask in
 * whose text that is. Not the compiler's other warnings. */
void built_problems(const struct built *b, struct arena *a, struct problems *out);

#endif
