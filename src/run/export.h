/* export.h - writing a kernel as files that need no Millrace.
 *
 * Of a kernel for a GPU (CUDA, HIP): its source, its binaries, a C launcher, a Python module for torch. Of one for the CPU: its
 * source, the runtime, a driver with a main() and a makefile. The fixed parts are templates in src/run/export; the
 * other parts come from the plan and the emitted sources.
 */
#ifndef RUN_EXPORT_H
#define RUN_EXPORT_H

#include "run/on_host.h"
#include "run/run.h"

struct export_file {
	const char *name;		/* relative to the folder; may have a '/' in it */
	const char *text;
	size_t len;
};

struct export_set {
	VEC(struct export_file) files;
};

/* name: of files and functions; NULL: the program's name. It is made an identifier of C and Python. *out lies
 * in `a`. ERR_INPUT for a kernel without binaries. */
NODISCARD enum err_code export_gpu(const struct built *b, const char *name, struct arena *a,
	struct export_set *out, struct err *e);
/* The same as a package of a PyTorch operator (export_torch.h). */
struct export_torch_kernel {
	const struct built *kernel, *backward;	/* of the gradients; NULL: there is none */
	/* What the backward kernel's tensors are, where their names do not say it (struct torch_backward). */
	const struct export_meaning {
		const char *of, *is;
		bool gradient;		/* `of` is the gradient of `is`; else it is `is` */
	} *pairs;
	int npairs;
};
NODISCARD enum err_code export_gpu_torch(const struct export_torch_kernel *x, const char *name, struct arena *a,
	struct export_set *out, struct err *e);
/* Kernels of a sequence, whose launcher in C is text, as one PyTorch operator. */
struct export_torch_sequence {
	const char *name;		/* an identifier */
	const char *about;		/* "sequence NAME from a plan for h200" */
	const struct built *const *kernels;
	const char *const *names;	/* of the kernels' launchers */
	int nkernels;
	const char *header, *launcher;	/* NAME.h and NAME.c */
	const struct export_torch_tensor {
		const char *name;	/* of a parameter in Python */
		const char *type;	/* torch's, "bfloat16" */
		enum export_torch_role { EXPORT_INPUT, EXPORT_STATE, EXPORT_OUTPUT } role;
		int rank;
		int64_t shape[RANK_MAX];
		int size_of[RANK_MAX];	/* by dimension: the number of the size that it is; NONE: it is shape[d] */
	} *tensors;			/* as the launcher takes them */
	int ntensors;
	const struct export_torch_size {	/* that a launch gives: 1 to max, a multiple of `multiple` */
		const char *name;
		int64_t max, multiple;
	} *sizes;			/* ... behind them */
	int nsizes;
	int64_t temporaries;		/* bytes */
};
NODISCARD enum err_code export_gpu_torch_sequence(const struct export_torch_sequence *x, struct arena *a,
	struct export_set *out, struct err *e);
void export_host(const struct built *b, const char *name, struct arena *a, struct export_set *out);

/* What torch calls a type, "bfloat16"; of elements of 4 bits that of a byte, which has two. */
const char *torch_type(enum dtype t);
/* The text of a template, as it is. */
const char *export_template_text(const char *name);

/* Do the exported launchers of a kernel have two functions, of which one launches it while what is in front of it in the stream runs, and
 * the other does not? */
bool export_launches_early(const struct built *b);

/* Write all files into `dir`, which is made with its parents if it is missing. An existing file is replaced completely
 * or stays. ERR_IO names the path. */
NODISCARD enum err_code export_write(const struct export_set *set, const char *dir, struct arena *a, struct err *e);

#endif
