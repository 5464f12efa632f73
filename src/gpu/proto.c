/* proto.c - the structs of a message.
 *
 * One function for each struct both writes it and reads it, so that the two directions cannot
 * differ. Arrays of a struct that is written are copied first: the functions assign to what they
 * are given in either direction. What is read lies in the arena, nothing in the message.
 */
#include "gpu/proto.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct codec {
	struct wire *w;
	struct arena *arena;
	bool reading;
	unsigned char *share;		/* the mapping that a job's memory is in; only when reading */
	size_t share_bytes;
};

/* put_TYPE and get_TYPE of a struct by its code_TYPE. */
#define PUT_AND_GET(type) \
	void put_##type(struct wire *w, const struct type *x) \
	{ \
		struct codec c = { .w = w, .arena = w->arena }; \
		struct type copy = *x; \
		code_##type(&c, &copy); \
	} \
	void get_##type(struct wire *w, struct type *x, struct arena *a) \
	{ \
		struct codec c = { .w = w, .arena = a, .reading = true }; \
		*x = (struct type){ 0 }; \
		code_##type(&c, x); \
	}

/* ---- values ---- */

/* n bytes; zeros if the message is bad. */
static void code_bytes(struct codec *c, void *p, size_t n)
{
	const void *from;

	if (!c->reading) {
		wire_put(c->w, p, n);
		return;
	}
	from = wire_get(c->w, n);
	if (from)
		memcpy(p, from, n);
	else
		memset(p, 0, n);
}

#define CODE(c, x) code_bytes((c), &(x), sizeof(x))
/* An array of char that holds a string. */
#define CODE_CHARS(c, x) (CODE((c), (x)), (void)((x)[sizeof(x) - 1] = '\0'))

/* A number in [0, end). */
static int code_below(struct codec *c, int x, int end)
{
	if (c->reading)
		return wire_get_below(c->w, end);
	wire_put_u32(c->w, (uint32_t)x);
	return x;
}

#define CODE_ENUM(c, x, type, last) ((x) = (enum type)code_below((c), (int)(x), (last) + 1))
#define CODE_BOOL(c, x) ((x) = code_below((c), (x), 2))

/* A string or NULL. */
static void code_string(struct codec *c, const char **s)
{
	if (!c->reading) {
		wire_put_str(c->w, *s);
		return;
	}
	*s = wire_get_str(c->w);
	if (*s)
		*s = arena_strdup(c->arena, *s);
}

/* A string; never NULL when it is read. */
static void code_text(struct codec *c, const char **s)
{
	code_string(c, s);
	if (!*s)
		*s = "";
}

/* n elements in the arena: copies of v if they are to be written, else zeros. */
static void *new_array(struct codec *c, const void *v, int n, size_t size)
{
	return c->reading ? arena_array(c->arena, (size_t)n, size) : arena_copy(c->arena, v, (size_t)n, size);
}

/* The number of elements, each of which takes at least `least` bytes, and their array. */
static void *code_array(struct codec *c, const void *v, int *n, size_t size, size_t least)
{
	if (c->reading)
		*n = wire_get_count(c->w, least);
	else
		wire_put_u32(c->w, (uint32_t)*n);
	return new_array(c, v, *n, size);
}

static const char *const *code_texts(struct codec *c, const char *const *v, int *n)
{
	const char **texts = code_array(c, v, n, sizeof(*texts), sizeof(uint32_t));

	for (int i = 0; i < *n; i++)
		code_text(c, &texts[i]);
	return texts;
}

/* ---- verdicts ---- */

static void code_verdict(struct codec *c, struct verdict *v)
{
	CODE_ENUM(c, v->failure, gpu_failure, GPU_FAIL_OTHER);
	CODE_BOOL(c, v->worker_lost);
	CODE_ENUM(c, v->err.code, err_code, ERR_IO);
	CODE(c, v->err.line);
	CODE_CHARS(c, v->err.file);
	CODE_CHARS(c, v->err.msg);
	if (v->failure != GPU_FAIL_NONE && v->err.code == OK)
		v->err.code = ERR_IO;
}

PUT_AND_GET(verdict)

/* ---- compiling ---- */

static void code_compile_job(struct codec *c, struct compile_job *job)
{
	code_string(c, &job->name);
	code_string(c, &job->source);
	code_string(c, &job->arch);
	CODE_BOOL(c, job->fast_math);
	CODE_BOOL(c, job->no_cache);
	job->options = code_texts(c, job->options, &job->noptions);
}

PUT_AND_GET(compile_job)

static void code_use(struct codec *c, struct compile_use *u)
{
	code_text(c, &u->entry);
	CODE(c, u->registers);
	CODE(c, u->spill_stores);
	CODE(c, u->spill_loads);
	CODE(c, u->stack);
	CODE(c, u->smem);
	CODE(c, u->barriers);
}

static void code_diag(struct codec *c, struct compile_diag *d)
{
	CODE_ENUM(c, d->severity, compile_severity, COMPILE_ERROR);
	code_text(c, &d->file);
	CODE(c, d->line);
	CODE(c, d->ptx_line);
	CODE_BOOL(c, d->serialized);
	code_text(c, &d->text);
}

static void code_cubin(struct codec *c, struct compile_result *r)
{
	CODE(c, r->cubin_bytes);
	if (!c->reading) {
		wire_put(c->w, r->cubin, r->cubin_bytes);
		return;
	}
	r->cubin = wire_get(c->w, r->cubin_bytes);
	if (!r->cubin)
		r->cubin_bytes = 0;
	r->cubin = r->cubin_bytes ? arena_copy(c->arena, r->cubin, r->cubin_bytes, 1) : NULL;
}

static void code_compile_result(struct codec *c, struct compile_result *r)
{
	code_cubin(c, r);
	r->uses = code_array(c, r->uses, &r->nuses, sizeof(*r->uses), 7 * sizeof(uint32_t));
	for (int i = 0; i < r->nuses; i++)
		code_use(c, &r->uses[i]);
	r->diags = code_array(c, r->diags, &r->ndiags, sizeof(*r->diags), 6 * sizeof(uint32_t));
	for (int i = 0; i < r->ndiags; i++)
		code_diag(c, &r->diags[i]);
	code_text(c, &r->log);
	CODE(c, r->nvrtc_major);
	CODE(c, r->nvrtc_minor);
	CODE_BOOL(c, r->cached);
}

PUT_AND_GET(compile_result)

/* ---- the device and the times ---- */

static void code_gpu_info(struct codec *c, struct gpu_info *info)
{
	struct gpu_board *b = &info->board;

	code_bytes(c, info, offsetof(struct gpu_info, board));	/* numbers and texts alone */
	info->name[sizeof(info->name) - 1] = '\0';
	info->arch[sizeof(info->arch) - 1] = '\0';
	CODE_CHARS(c, b->driver);
	CODE(c, b->power_limit);
	CODE(c, b->clock);
	CODE_ENUM(c, b->throttle, gpu_throttle, GPU_THROTTLE_SETTING);
	CODE_BOOL(c, b->partition);
	CODE_BOOL(c, b->others_known);
	CODE(c, b->others);
	CODE(c, b->other_pid);
	CODE(c, b->utilisation);
}

PUT_AND_GET(gpu_info)

static void code_gpu_result(struct codec *c, struct gpu_result *r)
{
	CODE(c, r->copies);
	CODE_ENUM(c, r->cache, gpu_cache, GPU_CACHE_COLD);
	CODE(c, r->watts);
	r->ms = code_array(c, r->ms, &r->runs, sizeof(*r->ms), sizeof(*r->ms));
	code_bytes(c, r->ms, (size_t)r->runs * sizeof(*r->ms));
	r->min_ms = code_array(c, r->min_ms, &r->contestants, sizeof(*r->min_ms), 2 * sizeof(double) + sizeof(int));
	r->max_ms = new_array(c, r->max_ms, r->contestants, sizeof(*r->max_ms));
	r->sample_runs = new_array(c, r->sample_runs, r->contestants, sizeof(*r->sample_runs));
	for (int i = 0; i < r->contestants; i++) {
		CODE(c, r->min_ms[i]);
		CODE(c, r->max_ms[i]);
		CODE(c, r->sample_runs[i]);
	}
}

PUT_AND_GET(gpu_result)

/* ---- jobs ---- */

enum { SHARE_ALIGN = 64 };

/* Set *at to the end of what there is and add n bytes. */
static bool share_add(struct share_layout *l, size_t n, size_t *at)
{
	*at = l->bytes;
	if (n > SIZE_MAX / 4 - l->bytes)
		return false;
	l->bytes += (n + SHARE_ALIGN - 1) / SHARE_ALIGN * SHARE_ALIGN;
	return true;
}

bool share_layout(const struct gpu_job *job, struct share_layout *l, struct arena *a)
{
	*l = (struct share_layout){ 0 };
	l->binary = ARENA_ARRAY(a, job->nbinaries, size_t);
	l->from = ARENA_ARRAY(a, job->nbuffers, size_t);
	l->to = ARENA_ARRAY(a, job->nbuffers, size_t);
	for (int i = 0; i < job->nbinaries; i++)
		if (!share_add(l, job->binaries[i].bytes, &l->binary[i]))
			return false;
	for (int i = 0; i < job->nbuffers; i++) {
		const struct gpu_buffer *b = &job->buffers[i];

		if ((b->init == GPU_INIT_HOST && !share_add(l, b->bytes, &l->from[i])) ||
		    (b->to && !share_add(l, b->bytes, &l->to[i])))
			return false;
	}
	return true;
}

/* The start of n bytes of the mapping. When reading, the address; NULL if they are not all in it. */
static void *code_shared(struct codec *c, size_t start, size_t n)
{
	CODE(c, start);
	if (c->reading && (start > c->share_bytes || n > c->share_bytes - start))
		c->w->bad = true;
	return c->reading && !c->w->bad ? c->share + start : NULL;
}

static void code_buffer(struct codec *c, struct gpu_buffer *b, size_t from, size_t to)
{
	bool wanted = b->to != NULL;

	code_string(c, &b->name);
	CODE(c, b->bytes);
	CODE_ENUM(c, b->init, gpu_init, GPU_INIT_WORD);
	CODE(c, b->word);
	CODE_BOOL(c, b->rotate);
	CODE(c, b->contestant);
	CODE_BOOL(c, wanted);
	if (b->init == GPU_INIT_HOST)
		b->from = code_shared(c, from, b->bytes);
	if (wanted)
		b->to = code_shared(c, to, b->bytes);
}

static void code_param(struct codec *c, struct gpu_param *p)
{
	struct gpu_tensor *t;

	CODE_ENUM(c, p->kind, gpu_param_kind, GPU_PARAM_TENSOR);
	CODE(c, p->buffer);
	CODE(c, p->offset);
	CODE(c, p->bits);
	if (p->kind != GPU_PARAM_TENSOR)
		return;
	t = new_array(c, p->tensor, 1, sizeof(*t));
	CODE(c, *t);
	p->tensor = t;
}

static void code_step(struct codec *c, struct gpu_step *s)
{
	struct gpu_param *params;

	CODE_ENUM(c, s->kind, gpu_step_kind, GPU_STEP_FILL);
	CODE(c, s->buffer);
	CODE(c, s->word);
	CODE_BOOL(c, s->once);
	CODE(c, s->contestant);
	if (s->kind != GPU_STEP_KERNEL)
		return;
	CODE(c, s->binary);
	code_text(c, &s->entry);
	CODE(c, s->grid);
	CODE(c, s->block);
	CODE(c, s->cluster);
	CODE(c, s->smem);
	CODE_BOOL(c, s->cooperative);
	CODE_BOOL(c, s->early);
	params = code_array(c, s->params, &s->nparams, sizeof(*params), 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t));
	for (int i = 0; i < s->nparams; i++)
		code_param(c, &params[i]);
	s->params = params;
}

static void code_race(struct codec *c, struct gpu_race *r)
{
	CODE(c, r->warmup);
	CODE(c, r->sample_seconds);
	CODE(c, r->seconds);
	CODE(c, r->rounds_min);
	CODE(c, r->give_up_ratio);
	r->names = code_texts(c, r->names, &r->n);
}

/* l: where the memory is; read from the message when reading. */
static void code_job(struct codec *c, struct gpu_job *job, const struct share_layout *l)
{
	struct gpu_binary *binaries;
	struct gpu_buffer *buffers;
	struct gpu_step *steps;

	CODE_ENUM(c, job->mode, gpu_mode, GPU_RACE);
	CODE(c, job->bench);		/* numbers alone */
	code_race(c, &job->race);
	binaries = code_array(c, job->binaries, &job->nbinaries, sizeof(*binaries), 2 * sizeof(uint64_t));
	for (int i = 0; i < job->nbinaries; i++) {
		CODE(c, binaries[i].bytes);
		binaries[i].image = code_shared(c, l ? l->binary[i] : 0, binaries[i].bytes);
	}
	buffers = code_array(c, job->buffers, &job->nbuffers, sizeof(*buffers),
		6 * sizeof(uint32_t) + sizeof(uint64_t));
	for (int i = 0; i < job->nbuffers; i++)
		code_buffer(c, &buffers[i], l ? l->from[i] : 0, l ? l->to[i] : 0);
	steps = code_array(c, job->steps, &job->nsteps, sizeof(*steps), 5 * sizeof(uint32_t));
	for (int i = 0; i < job->nsteps; i++)
		code_step(c, &steps[i]);
	job->binaries = binaries;
	job->buffers = buffers;
	job->steps = steps;
}

void put_job(struct wire *w, const struct gpu_job *job, const struct share_layout *l)
{
	struct codec c = { .w = w, .arena = w->arena };
	struct gpu_job copy = *job;

	code_job(&c, &copy, l);
}

void get_job(struct wire *w, struct gpu_job *job, unsigned char *share, size_t bytes, struct arena *a)
{
	struct codec c = { w, a, true, share, bytes };

	*job = (struct gpu_job){ 0 };
	code_job(&c, job, NULL);
}
