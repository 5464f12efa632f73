#include "run/run_sequence.h"

#include <string.h>

#include "base/prng.h"
#include "plan/sized.h"
#include "run/parts.h"

/* The plan of a call's kernel at the sizes of the sequence, which its program may leave to the launch. */
static const struct plan *plan_of(const struct sequence_job *j, int call, struct arena *a)
{
	const struct plan *plan = j->kernels[call]->plan;
	const struct program *p = plan->graph->program, *at = j->plan->s->calls.v[call].program;
	int64_t *sizes;

	if (!program_has_any(p))
		return plan;
	sizes = ARENA_ARRAY(a, p->axes.n, int64_t);
	for (int i = 0; i < p->axes.n; i++) {
		int k;

		FIND_FIRST(k, at->axes.n, !strcmp(at->axes.v[k].name, p->axes.v[i].name));
		sizes[i] = p->axes.v[i].multiple && k != NONE ? at->axes.v[k].size : p->axes.v[i].size;
	}
	return plan_at_sizes(a, plan, sizes);
}

/* ---- on the CPU ---- */

/* Where the bytes of the tensors are. */
static char **allocate_on_host(const struct sequence_job *j, struct arena *a)
{
	const struct sequence *s = j->plan->s;
	char **at = ARENA_ARRAY(a, s->tensors.n, char *), *memory = arena_alloc(a, (size_t)j->plan->arena_bytes + 1);

	memset(memory, SEQUENCE_POISON_BYTE, (size_t)j->plan->arena_bytes);
	for (int i = 0; i < s->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[i];

		at[i] = t->role == SEQ_TEMP ? memory + j->plan->offset[i] : j->data[i];
		if (t->role == SEQ_OUTPUT)
			memset(at[i], SEQUENCE_POISON_BYTE, t->bytes);
	}
	return at;
}

/* at: by tensor, where its bytes are. */
static enum err_code run_call(const struct sequence_job *j, int call, char *const *at, const struct on_host_options *o,
	const struct stop *stop, struct arena *a, const char **report, struct err *e)
{
	const struct seq_call *c = &j->plan->s->calls.v[call];
	void **data = ARENA_ARRAY(a, c->program->tensors.n, void *);

	for (int i = 0; i < c->program->tensors.n; i++)
		data[i] = at[c->args[i].tensor] + c->args[i].offset;
	TRY(on_host_run(j->kernels[call], plan_of(j, call, a), data, o, stop, a, report, e));
	if (*report)
		*report = arena_strf(a, "call '%s': %s", c->name, *report);
	return OK;
}

/* Calls that are played in any order that the plan allows. By call: how many calls that come before it are not
 * done; NONE: it is done itself. */
struct choice {
	const bool *before;		/* by seqplan_relation */
	int n, *missing;
	struct prng random;
};

static struct choice begin_choice(const struct sequence_job *j, uint64_t seed, struct arena *a)
{
	struct choice c = { .before = seqplan_relation(a, j->plan), .n = j->plan->s->calls.n, .random = { seed } };

	c.missing = arena_ints(a, c.n, 0);
	for (int i = 0; i < c.n; i++)
		for (int k = 0; k < c.n; k++)
			c.missing[k] += c.before[i * c.n + k];
	return c;
}

/* A random one of the calls that may come next, which is then done. */
static int choose(struct choice *c)
{
	int found = NONE, count = 0;

	for (int i = 0; i < c->n; i++)
		if (c->missing[i] == 0 && prng_below(&c->random, (uint32_t)++count) == 0)
			found = i;
	c->missing[found] = NONE;
	for (int i = 0; i < c->n; i++)
		c->missing[i] -= c->before[found * c->n + i];
	return found;
}

enum err_code sequence_on_host(const struct sequence_job *j, const struct on_host_options *o, const struct stop *stop,
	struct arena *a, const char **report, struct err *e)
{
	const struct sequence *s = j->plan->s;
	char **at = allocate_on_host(j, a);
	struct choice choice = begin_choice(j, o->seed, a);
	struct on_host_options each = *o;

	each.keep = true;
	*report = NULL;
	for (int n = 0; n < s->calls.n && !*report; n++) {
		int call = choose(&choice);

		each.seed = o->seed + (uint64_t)n;
		TRY(run_call(j, call, at, &each, stop, a, report, e));
	}
	return OK;
}

enum err_code sequence_call_on_host(const struct sequence_job *j, int call, const struct on_host_options *o,
	const struct stop *stop, struct arena *a, const char **report, struct err *e)
{
	const struct sequence *s = j->plan->s;
	const struct seq_call *c = &s->calls.v[call];
	char **at = ARENA_ARRAY(a, s->tensors.n, char *);
	struct on_host_options own = *o;

	for (int i = 0; i < s->tensors.n; i++)
		at[i] = j->data[i];
	for (int i = 0; i < c->program->tensors.n; i++) {
		int t = c->args[i].tensor;

		if (s->tensors.v[t].call != NONE)
			at[t] = memset(arena_alloc(a, s->tensors.v[t].bytes), SEQUENCE_POISON_BYTE, s->tensors.v[t].bytes);
	}
	own.keep = true;
	*report = NULL;
	return run_call(j, call, at, &own, stop, a, report, e);
}

/* ---- on the device ---- */

#define POISON_WORD (SEQUENCE_POISON_BYTE * 0x01010101u)

/* Add the buffers of all tensors; buffer[t] and offset[t] say where tensor t is. */
static void add_buffers(const struct sequence_job *j, struct parts *x, int *buffer, size_t *offset)
{
	const struct sequence *s = j->plan->s;
	int arena = NONE;

	for (int i = 0; i < s->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[i];
		struct gpu_buffer b = { .name = t->name, .bytes = t->bytes, .rotate = true, .init = GPU_INIT_WORD,
			.word = POISON_WORD, .to = j->data[i] };

		if (t->role == SEQ_INPUT || t->role == SEQ_STATE) {
			b.init = GPU_INIT_HOST;
			b.from = j->data[i];
			b.to = t->role == SEQ_STATE ? j->data[i] : NULL;
		}
		if (t->role == SEQ_TEMP) {
			offset[i] = (size_t)j->plan->offset[i];
			buffer[i] = arena;
			if (arena != NONE)
				continue;
			b.name = "temporaries";
			b.bytes = (size_t)j->plan->arena_bytes;
			b.to = NULL;
			arena = buffer[i] = x->job.nbuffers;
		}
		buffer[i] = x->job.nbuffers;
		x->buffers[x->job.nbuffers++] = b;
	}
}

/* last_step: by call, the last of its steps; NONE: it has none so far. */
static void add_call(const struct sequence_job *j, struct parts *x, int call, const int *buffer, const size_t *offset,
	int *last_step, struct arena *a)
{
	const struct built *b = j->kernels[call];
	const struct plan *at = plan_of(j, call, a);
	const struct seq_call *c = &j->plan->s->calls.v[call];
	const struct seq_launch *l = &j->plan->launches[call];
	int *tensors = arena_ints(a, c->program->tensors.n, 0);
	size_t *offsets = ARENA_ARRAY(a, c->program->tensors.n, size_t);
	int *after, same;

	FIND_FIRST(same, j->plan->s->calls.n, j->kernels[same] == b && last_step[same] != NONE);
	for (int i = 0; i < c->program->tensors.n; i++) {
		tensors[i] = buffer[c->args[i].tensor];
		offsets[i] = offset[c->args[i].tensor] + c->args[i].offset;
	}
	for (int i = 0; i < b->nphases; i++) {
		struct gpu_step *step = &x->steps[x->job.nsteps];

		parts_add_phase(x, b, at, i, 0, tensors, offsets, i > 0 || l->early, a);
		if (same != NONE) {		/* a kernel that is loaded already */
			step->binary = x->steps[last_step[same] - b->nphases + 1 + i].binary;
			x->job.nbinaries--;
		}
		step->stream = l->stream;
		if (i > 0 || !l->waits.n)
			continue;
		after = arena_ints(a, l->waits.n, 0);
		for (int k = 0; k < l->waits.n; k++)
			after[k] = last_step[l->waits.v[k]];
		step->after = after;
		step->nafter = l->waits.n;
	}
	last_step[call] = x->job.nsteps - 1;
}

/* Arrays for so many buffers of tensors and for the phases of the kernels, of which there are `nphases`. */
static void begin_job(struct parts *x, const struct built *b, int nbuffers, int nphases, struct arena *a)
{
	x->buffers = ARENA_ARRAY(a, nbuffers + PHASE_BUFFERS * nphases, struct gpu_buffer);
	x->binaries = ARENA_ARRAY(a, nphases, struct gpu_binary);
	x->steps = ARENA_ARRAY(a, nphases, struct gpu_step);
	x->job = (struct gpu_job){ .api = b->backend == BACKEND_HIP ? GPU_HIP : GPU_CUDA,
		.arch = b->backend == BACKEND_HIP ? built_arch(b) : NULL, .binaries = x->binaries, .buffers = x->buffers,
		.steps = x->steps, .mode = GPU_RUN };
}

enum err_code sequence_on_device(const struct sequence_job *j, struct gpu *g, double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e)
{
	const struct sequence *s = j->plan->s;
	int *buffer = arena_ints(a, s->tensors.n, 0), *last_step = arena_ints(a, s->calls.n, NONE), phases = 0;
	size_t *offset = ARENA_ARRAY(a, s->tensors.n, size_t);
	struct parts x;

	for (int i = 0; i < s->calls.n; i++)
		phases += j->kernels[i]->nphases;
	begin_job(&x, j->kernels[0], s->tensors.n, phases, a);
	add_buffers(j, &x, buffer, offset);
	for (int i = 0; i < s->calls.n; i++)
		add_call(j, &x, j->plan->order[i], buffer, offset, last_step, a);
	x.job.graph = j->graph;
	if (bench) {
		x.job.mode = GPU_BENCH;
		x.job.bench = *bench;
	}
	return gpu_run(g, &x.job, limit, stop, a, r, e);
}

enum err_code sequence_call_on_device(const struct sequence_job *j, int call, struct gpu *g, double limit,
	const struct stop *stop, struct arena *a, struct gpu_result *r, struct err *e)
{
	const struct built *b = j->kernels[call];
	const struct plan *sized = plan_of(j, call, a);
	const struct seq_call *c = &j->plan->s->calls.v[call];
	int n = c->program->tensors.n, *tensors = arena_ints(a, n, 0);
	struct parts x;

	begin_job(&x, b, n, b->nphases, a);
	for (int i = 0; i < n; i++) {
		const struct seq_arg *arg = &c->args[i];
		const struct seq_tensor *t = &j->plan->s->tensors.v[arg->tensor];
		char *at = t->call == NONE ? (char *)j->data[arg->tensor] + arg->offset : NULL;

		tensors[i] = x.job.nbuffers;
		x.buffers[x.job.nbuffers++] = (struct gpu_buffer){ .name = t->name, .bytes = arg->bytes,
			.init = at ? GPU_INIT_HOST : GPU_INIT_WORD, .from = at, .word = POISON_WORD, .to = arg->writes ? at : NULL };
	}
	for (int i = 0; i < b->nphases; i++)
		parts_add_phase(&x, b, sized, i, 0, tensors, NULL, i > 0, a);
	return gpu_run(g, &x.job, limit, stop, a, r, e);
}
