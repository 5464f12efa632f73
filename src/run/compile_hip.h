/* compile_hip.h - compiling a kernel for AMD's GPUs. */
#ifndef RUN_COMPILE_HIP_H
#define RUN_COMPILE_HIP_H

#include "gpu/compile.h"

/* Make a code object of HIP text by clang-22 or ROCm's clang; job->name is the kernel's entry. The registers of a thread
 * are those of both kinds; what it keeps in scratch memory counts as spilled. The result lies in `a`; if its failure
 * handler jumps, a folder with the text stays. ERR_IO: clang is not there, or refuses the text. */
NODISCARD enum err_code compile_hip(const struct compile_job *job, const struct stop *stop, struct arena *a,
	struct compile_result *r, struct err *e);

/* The same, of a text in CUDA C++ that uses what hip_names.h has, and includes nothing. */
NODISCARD enum err_code compile_as_hip(const struct compile_job *job, const struct stop *stop, struct arena *a,
	struct compile_result *r, struct err *e);

#endif
