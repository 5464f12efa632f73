/* export_torch.h - a package of PyTorch operators around C functions that launch something; for use inside src/run.
 *
 * An operator is a launcher in C and a description of its tensors. The launcher may be of one kernel or of a sequence
 * of them; its functions are those of src/run/export/launcher.h:
 *
 *	int NAME_load(int device);
 *	int NAME_launch(stream, pointers to all tensors ..., sizes ...);
 *	const char *NAME_error(void);
 *
 * and if it has temporaries, for which it is given memory, instead of NAME_launch:
 *
 *	int NAME_launch_with(int early, void *const *temporaries, stream, pointers to all tensors ..., sizes ...);
 *
 * Sizes are ints. All functions that return an int return 0 if all is well.
 */
#ifndef RUN_EXPORT_TORCH_H
#define RUN_EXPORT_TORCH_H

#include "run/export_kit.h"

enum torch_role { TORCH_INPUT, TORCH_CHANGED, TORCH_OUTPUT };

struct torch_dimension {
	int64_t size;
	int of;				/* number of the operator's size that it is; NONE: it is `size` */
};

struct torch_tensor {
	const char *name;		/* of a parameter in Python */
	enum torch_role role;
	const char *type;		/* torch's dtype, "bfloat16" */
	int rank;
	struct torch_dimension dims[RANK_MAX];
};

/* A size that a launch gives: 1 to max, a multiple of `multiple`. */
struct torch_size {
	const char *name;
	int64_t max, multiple;
};

/* A temporary: its bytes are `known`, times each size of the operator so often. */
struct torch_temporary {
	int64_t known;
	int times[AXES_MAX];
};

struct torch_operator {
	const char *name;		/* an identifier */
	const char *about;		/* "gemm, from a plan for h200" */
	const char *arch;
	bool hip;
	VEC(struct torch_tensor) tensors;	/* as the launch function takes them */
	VEC(struct torch_size) sizes;		/* ... behind them */
	VEC(struct torch_temporary) temporaries;
	VEC(const char *) sources;	/* files of C, next to operators.c, with NAME.h of each launcher */
};

struct torch_pair {
	const char *of, *is;
};

/* How an operator of gradients belongs to the one that it differentiates. */
struct torch_backward {
	const struct torch_operator *op;
	/* Tensors of op by name, and those of the forward operator of which they are the gradients, or which they are. A
	 * tensor that is in neither list is the gradient of X if it is called dX, and the forward operator's tensor if it has
	 * its name. */
	VEC(struct torch_pair) gradients, saved;
};

/* Add the package: NAME/__init__.py, NAME/operators.c, pyproject.toml and README.md. The caller adds the launchers to
 * NAME/. backward may be NULL. ERR_INPUT: what cannot be an operator, or a gradient of this one. */
NODISCARD enum err_code export_torch(const struct torch_operator *op, const struct torch_backward *backward,
	struct arena *a, struct export_set *out, struct err *e);

#endif
