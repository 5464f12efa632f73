/* export_kit.h - what the exporters share; for use inside src/run. */
#ifndef RUN_EXPORT_KIT_H
#define RUN_EXPORT_KIT_H

#include "base/buf.h"
#include "plan/assign.h"
#include "run/export.h"

/* The files of src/run/export and the host's runtime as text, made by the Makefile; the last one has name NULL. */
struct export_template {
	const char *name;		/* "launcher.c" */
	const char *text;
	size_t len;
};
extern const struct export_template export_templates[];

struct export_word {
	const char *word;		/* "NAME", for @NAME@ in a template */
	const char *text;
};

/* What is not in the templates, and differs between exports for CUDA and HIP. */
struct export_names {
	const char *source, *binary;	/* how names of files end: ".cu" */
	const char *const (*names)[2];	/* what templates say, and what is said instead; ends with NULL */
};

/* An export in progress. */
struct export_kit {
	struct arena *a;
	const struct plan *plan;	/* NULL: none; then words and conditions that say something of it are not used */
	const char *arch;		/* CUDA, HIP: of the binary */
	const struct export_names *names;	/* NULL: for the CPU */
	bool hip;
	bool early;			/* phases are launched while what is in front of them runs */
	bool gradient;			/* of a package of PyTorch operators (export_torch.h), which has no plan */
	const struct program *p;
	const char *name;		/* an identifier */
	int *tensors;			/* ids: inputs, outputs, temporaries */
	int ninputs, noutputs, ntensors;
	int nsizes, sizes[AXES_MAX];	/* axes whose sizes a launch gives */
	int size_of[AXES_MAX];		/* by axis: the number of that size; NONE: it is known */
	VEC(struct export_word) words;
	struct export_set *out;
};

/* Begin an export, and define the words NAME, PROGRAM, DEVICE and ARCH. */
void export_begin(struct export_kit *k, const struct built *b, const char *name,
	struct arena *a, struct export_set *out);
void export_word(struct export_kit *k, const char *word, const char *text);
void export_integer(struct export_kit *k, const char *word, int64_t value);
/* Add a file with this text; or the text of a template, with its words replaced. Lines of it that begin with @ANY@
 * are there if a launch gives sizes, those that begin with @FIXED@ if not; those that begin with @CUDA@ or @HIP@ for that
 * target; @EARLY@ if phases are launched early, @LATE@ if not; @BETWEEN@ if there are temporaries between phases; @WRAPPED@ if
 * there is more than one function that launches, @PLAIN@ if not; @COUNTED@ if blocks take tiles by a counter, @UNCOUNTED@ if not, @TABLED@ if a
 * table has the tiles of each block from the start; @CHIPLETS@ and @ROUND@: as the plan goes over the device;
 * @GRADIENT@ if a PyTorch operator has one, @WITHOUT@ if not. A line may begin
 * with two. */
void export_add(struct export_kit *k, const char *name, const char *text, size_t len);
void export_fill(struct export_kit *k, const char *name, const char *template);

/* "int size_m, int size_n": parameters of a launch; what templates say of its sizes, as words. */
const char *export_size_parameters(const struct export_kit *k);
void export_size_words(struct export_kit *k);
const struct export_names *export_names_of(bool hip);
/* A text for CUDA, with the names of k->names. */
const char *export_named(const struct export_kit *k, const char *text);

/* "gemm", of one of several phases "gemm_split". */
const char *export_stem(const struct export_kit *k, int phase);
/* The index in k->tensors of a tensor. */
int export_number(const struct export_kit *k, int tensor);
int64_t export_bytes(const struct export_kit *k, int tensor);
/* A product of the sizes of some dimensions of a tensor (bits), times `factor`: what is known of it, and in *sizes
 * the bits of sizes that a launch gives. */
int64_t export_product(const struct export_kit *k, int tensor, unsigned dims, int64_t factor, uint64_t *sizes);
/* "bf16 A[m=4096][k=64]" */
const char *export_shape(const struct export_kit *k, int tensor);
/* `name`, or with an underscore behind if that is a word of Python or of our module. */
const char *export_python_name(struct arena *a, const char *name);
/* "A, by load_a": the tensor of a parameter, and the sTask of a map. */
const char *export_param_text(const struct export_kit *k, const struct param *x);

/* Tables of all phases, in C. */
struct export_tables {
	struct buf params, data, phases;	/* data: large ones, which `params` only declares */
	const char *gap;		/* between tables of `data` */
	int params_most;		/* of a phase */
};
/* The tiles of a phase in the plan's order, where a launch gives sizes: of groups that a cluster takes the first
 * one, each with its work if the longest are first, else NULL. */
struct export_groups {
	int64_t n, *first, *work;
	struct grid grid;
	int cluster, along, blocks;	/* along: position in the grid; NONE */
};
void export_find_groups(const struct export_kit *k, int phase, struct export_groups *out);
/* Add the parameters of a phase and its tiles, which *tiles gets. put_map prints a parameter that is a map. */
typedef void export_map_fn(const struct export_kit *k, const struct param *x, struct buf *out);
void export_phase(const struct export_kit *k, const struct source *s, int phase, export_map_fn *put_map,
	struct export_tables *t, struct tile_assignment *tiles);
/* "1, 2, 3", in lines that begin with `indent` from the second on. */
void export_numbers(struct buf *out, const int64_t *v, int64_t n, const char *indent);

#endif
