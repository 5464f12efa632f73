/* compile_clang.h - compiling HIP by clang, in a child process; for use inside src/gpu. */
#ifndef GPU_COMPILE_CLANG_H
#define GPU_COMPILE_CLANG_H

#include "gpu/compile.h"

/* The first clang that is there of that in HIP_CLANG_PATH, which ROCm's hipcc reads, too, clang-22 and ROCm's. *tool: its
 * file, with its size and time, which stand for its version. */
bool clang_find(struct arena *a, const char **clang, const char **tool);
/* Make a code object of a text. The result lies in `a`. A process that is killed leaves a folder with the text. */
NODISCARD enum err_code clang_compile(const char *clang, const char *const *options, int noptions, const char *source,
	struct arena *a, struct compile_result *r, struct err *e);

#endif
