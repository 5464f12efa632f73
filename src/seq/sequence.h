/* sequence.h - programs that run one after the other on named tensors, as a layer of a model does.
 *
 * What a sequence computes is defined by the order of its calls: each reads what those before it have written. Two
 * calls depend on each other if they access the same bytes and one of them writes these. In which order, on which
 * streams and in which memory the calls are executed is said by a plan of the sequence (seqplan.h).
 *
 *   tensor  an array in global memory, contiguous and row-major: an input; an output; a state, which calls read and
 *           write at the same address; or a temporary. What a program of several phases keeps between them is a
 *           temporary, too, of its call.
 *   call    a program with sizes, and for each input and output of it the tensor, or the part of one, that it is
 *
 * A sequence is built front to back by the calls below, and read by everything else. Positions in the arrays are
 * the ids. Names are unique among their kind and read as identifiers, as in programs.
 */
#ifndef SEQ_SEQUENCE_H
#define SEQ_SEQUENCE_H

#include "tile/program.h"

enum { SEQ_CALLS_MAX = 1024, SEQ_TENSORS_MAX = 8192 };

enum seq_role { SEQ_INPUT, SEQ_OUTPUT, SEQ_STATE, SEQ_TEMP };
extern const char *const seq_role_names[];	/* ORDER seq_role: "input", ... */

/* A call that accesses a tensor. */
struct seq_use {
	int call;
	bool reads, writes;
};

struct seq_tensor {
	const char *name;
	enum seq_role role;
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	size_t bytes;
	int call, own;			/* of a temporary that a program keeps: the call, and the program's tensor; else NONE */
	VEC(struct seq_use) uses;	/* in the order of the calls; complete after sequence_finish */
	struct srcloc loc;
};

/* What a tensor of a call's program is: `bytes` of a tensor of the sequence, from `offset` on. */
struct seq_arg {
	int tensor;
	size_t offset, bytes;
	bool reads, writes;
};

struct seq_call {
	const char *name;
	const struct program *program;	/* borrowed */
	struct seq_arg *args;		/* by tensor of the program */
	struct srcloc loc;
};

/* Call `to` comes after call `from` in the sequence, and they depend on each other because of the bytes of a
 * tensor that both access. */
struct seq_edge {
	int from, to, tensor;
	bool from_writes, to_writes;	/* one of them at least */
};

struct sequence {
	struct arena arena;
	const char *name;
	VEC(struct seq_tensor) tensors;
	VEC(struct seq_call) calls;
	VEC(struct seq_edge) edges;	/* by sequence_finish: one for each pair of calls and each tensor */
	bool finished;			/* nothing can be added */
};

/* `mem` is borrowed and outlives the sequence. Free with sequence_free. *out is set before anything that can fail. */
void sequence_new(struct mem *mem, const char *name, struct sequence **out);
void sequence_free(struct sequence *s);

/* Its id through *out. ERR_INPUT: the name, a size below 1, too many elements; the sequence is
 * finished. */
NODISCARD enum err_code sequence_tensor(struct sequence *s, enum seq_role role, const char *name, enum dtype type,
	int rank, const int64_t *dim, struct srcloc loc, int *out, struct err *e);

/* What is given for a tensor of a program: `count` rows from `first` on, counted along the tensor's first
 * dimension; count 0: all of the tensor. Of these, `take` elements from element `skip` on; take 0: all of them. */
struct seq_given {
	const char *name;		/* of the program's tensor */
	int tensor;
	int64_t first, count, skip, take;
};

/* Add a call of the program, which is borrowed. ERR_INPUT: an input or output of the program is not given, given
 * twice or is not one; another type, another number of elements, rows that are not there; an input of the sequence
 * would be written; what is written is given twice. */
NODISCARD enum err_code sequence_call(struct sequence *s, const char *name, const struct program *p,
	const struct seq_given *given, int n, struct srcloc loc, struct err *e);

/* Complete: finds the dependences; plans can be made of it, and nothing more be added. ERR_INPUT: there is no
 * call; elements are read that no call before has stored, as far as that is known without a run (tile/elements.h);
 * a tensor is not used; an output is not written completely. */
NODISCARD enum err_code sequence_finish(struct sequence *s, struct err *e);

/* Have two arguments bytes in common? */
bool seq_args_overlap(const struct seq_arg *a, const struct seq_arg *b);

int sequence_find_call(const struct sequence *s, const char *name);	/* NONE */
int sequence_find_tensor(const struct sequence *s, const char *name);	/* NONE */

#endif
