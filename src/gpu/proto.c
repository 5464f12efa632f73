/* proto.c - the structs of a message.
 *
 * One function for each struct both writes it and reads it, so that the two directions cannot differ. A struct is sent
 * as its bytes, and then what must be valid in it: strings, arrays, enums, bools, the ends of texts. The functions
 * assign to what they are given in either direction; so a struct that is written, and its arrays, are copied first.
 * What is read lies in the arena, nothing in the message.
 */
#include "gpu/proto.h"

#include <string.h>

/* put_TYPE and get_TYPE of a struct by its code_TYPE. */
#define PUT_AND_GET(type) \
	void put_##type(struct wire *w, const struct type *x) \
	{ \
		struct type copy = *x; \
		code_##type(w, &copy); \
	} \
	void get_##type(struct wire *w, struct type *x, struct arena *a) \
	{ \
		*x = (struct type){ 0 }; \
		w->arena = a; \
		w->reading = true; \
		code_##type(w, x); \
	}

/* ---- values ---- */

/* n bytes; zeros if the message is bad. */
static void code_bytes(struct wire *w, void *p, size_t n)
{
	const void *from = w->reading ? wire_get(w, n) : NULL;

	if (!w->reading)
		wire_put(w, p, n);
	else if (from)
		memcpy(p, from, n);
	else
		memset(p, 0, n);
}

#define CODE(w, x) code_bytes((w), &(x), sizeof(x))

/* A number in [0, end). */
static int code_below(struct wire *w, int x, int end)
{
	uint32_t n = (uint32_t)x;

	CODE(w, n);
	w->bad |= n >= (uint32_t)end;
	return w->bad ? 0 : (int)n;
}

/* When reading, x may hold a value that its type does not have; so it is only assigned. */
#define CODE_ENUM(w, x, type, last) ((x) = (enum type)code_below((w), (w)->reading ? 0 : (int)(x), (last) + 1))
#define CODE_BOOL(w, x) ((x) = code_below((w), (w)->reading ? 0 : (x), 2))
#define END_CHARS(x) ((x)[sizeof(x) - 1] = '\0')

/* A string or NULL. */
static void code_string(struct wire *w, const char **s)
{
	bool set = !w->reading && *s;
	size_t n = set ? strlen(*s) : 0;

	CODE_BOOL(w, set);
	CODE(w, n);
	if (!w->reading)
		wire_put(w, *s, n);
	else if (!set || !(*s = wire_get(w, n)))
		*s = NULL;
	else
		*s = arena_strf(w->arena, "%.*s", (int)n, *s);
}

/* A string; never NULL when it is read. */
static void code_text(struct wire *w, const char **s)
{
	code_string(w, s);
	if (!*s)
		*s = "";
}

/* n elements in the arena: copies of v if they are to be written, else zeros. */
static void *new_array(struct wire *w, const void *v, int n, size_t size)
{
	return w->reading ? arena_array(w->arena, (size_t)n, size) : arena_copy(w->arena, v, (size_t)n, size);
}

/* n elements that are numbers alone. */
static void *code_numbers(struct wire *w, const void *v, int n, size_t size)
{
	void *array = new_array(w, v, n, size);

	code_bytes(w, array, (size_t)n * size);
	return array;
}

/* The number of elements that follow, each of which takes at least four bytes. */
static int code_count(struct wire *w, int *n)
{
	CODE(w, *n);
	if (w->reading && (*n < 0 || (size_t)*n > (w->len - w->pos) / 4)) {
		w->bad = true;
		*n = 0;
	}
	return *n;
}

/* n elements of the type at v, each by the function `code`. */
#define CODE_ARRAY(w, v, n, type, code) do { \
	type *array_ = new_array((w), (v), code_count((w), &(n)), sizeof(type)); \
	for (int i_ = 0; i_ < (n); i_++) \
		code((w), &array_[i_]); \
	(v) = array_; \
} while (0)

/* ---- verdicts ---- */

static void code_verdict(struct wire *w, struct verdict *v)
{
	CODE(w, *v);
	CODE_ENUM(w, v->failure, gpu_failure, GPU_FAIL_OTHER);
	CODE_BOOL(w, v->worker_lost);
	CODE_ENUM(w, v->err.code, err_code, ERR_IO);
	END_CHARS(v->err.file);
	END_CHARS(v->err.msg);
	if (v->failure != GPU_FAIL_NONE && v->err.code == OK)
		v->err.code = ERR_IO;
}

PUT_AND_GET(verdict)

/* ---- compiling ---- */

/* Bytes of a binary. */
static void code_binary(struct wire *w, const void **v, size_t *n)
{
	if (!w->reading) {
		wire_put(w, *v, *n);
		return;
	}
	*v = wire_get(w, *n);
	*n = *v ? *n : 0;
	*v = *n ? arena_copy(w->arena, *v, *n, 1) : NULL;
}

static void code_given(struct wire *w, struct compile_given *g)
{
	code_string(w, &g->tool);
	code_text(w, &g->log);
	CODE(w, g->cubin_bytes);
	code_binary(w, &g->cubin, &g->cubin_bytes);
}

static void code_compile_job(struct wire *w, struct compile_job *job)
{
	CODE_ENUM(w, job->api, gpu_api, GPU_APIS - 1);
	code_string(w, &job->name);
	code_string(w, &job->source);
	code_string(w, &job->arch);
	CODE_BOOL(w, job->fast_math);
	CODE_BOOL(w, job->no_cache);
	CODE_BOOL(w, job->only_cached);
	code_given(w, &job->given);
	CODE_ARRAY(w, job->options, job->noptions, const char *, code_text);
}

PUT_AND_GET(compile_job)

static void code_use(struct wire *w, struct compile_use *u)
{
	CODE(w, *u);
	code_text(w, &u->entry);
}

static void code_diag(struct wire *w, struct compile_diag *d)
{
	CODE(w, *d);
	CODE_ENUM(w, d->severity, compile_severity, COMPILE_ERROR);
	code_text(w, &d->file);
	CODE_BOOL(w, d->serialized);
	CODE_BOOL(w, d->ungranted);
	code_text(w, &d->text);
}

static void code_compile_result(struct wire *w, struct compile_result *r)
{
	CODE(w, *r);
	code_binary(w, &r->cubin, &r->cubin_bytes);
	CODE_ARRAY(w, r->uses, r->nuses, struct compile_use, code_use);
	CODE_ARRAY(w, r->diags, r->ndiags, struct compile_diag, code_diag);
	code_text(w, &r->log);
	code_string(w, &r->tool);
	CODE_BOOL(w, r->cached);
	CODE_BOOL(w, r->missing);
	CODE_BOOL(w, r->no_compiler);
}

PUT_AND_GET(compile_result)

/* ---- the device and the times ---- */

static void code_gpu_info(struct wire *w, struct gpu_info *info)
{
	struct gpu_board *b = &info->board;

	CODE(w, *info);
	CODE_ENUM(w, info->api, gpu_api, GPU_APIS - 1);
	END_CHARS(info->name);
	END_CHARS(info->arch);
	END_CHARS(info->bus);
	END_CHARS(b->driver);
	CODE_ENUM(w, b->throttle, gpu_throttle, GPU_THROTTLE_SETTING);
	CODE_BOOL(w, b->partition);
	CODE_BOOL(w, b->others_known);
}

PUT_AND_GET(gpu_info)

static void code_gpu_result(struct wire *w, struct gpu_result *r)
{
	CODE(w, *r);
	CODE_ENUM(w, r->cache, gpu_cache, GPU_CACHE_COLD);
	CODE_BOOL(w, r->graph);
	r->ms = code_numbers(w, r->ms, code_count(w, &r->runs), sizeof(*r->ms));
	r->min_ms = code_numbers(w, r->min_ms, code_count(w, &r->contestants), sizeof(*r->min_ms));
	r->max_ms = code_numbers(w, r->max_ms, r->contestants, sizeof(*r->max_ms));
	r->sample_runs = code_numbers(w, r->sample_runs, r->contestants, sizeof(*r->sample_runs));
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

static void code_gpu_binary(struct wire *w, struct gpu_binary *b)
{
	CODE(w, b->bytes);
}

static void code_gpu_buffer(struct wire *w, struct gpu_buffer *b)
{
	bool wanted = b->to != NULL;

	CODE(w, *b);
	code_string(w, &b->name);
	CODE_ENUM(w, b->init, gpu_init, GPU_INIT_WORD);
	CODE_BOOL(w, b->rotate);
	CODE_BOOL(w, wanted);
	b->from = NULL;
	b->to = wanted ? b : NULL;	/* until get_shared_job sets it */
}

static void code_param(struct wire *w, struct gpu_param *p)
{
	CODE(w, *p);
	CODE_ENUM(w, p->kind, gpu_param_kind, GPU_PARAM_TENSOR);
	p->tensor = p->kind == GPU_PARAM_TENSOR ? code_numbers(w, p->tensor, 1, sizeof(*p->tensor)) : NULL;
}

static void code_int(struct wire *w, int *x)
{
	CODE(w, *x);
}

static void code_gpu_step(struct wire *w, struct gpu_step *s)
{
	CODE(w, *s);
	CODE_ENUM(w, s->kind, gpu_step_kind, GPU_STEP_FILL);
	CODE_BOOL(w, s->once);
	CODE_BOOL(w, s->cooperative);
	CODE_BOOL(w, s->early);
	code_text(w, &s->entry);
	CODE_ARRAY(w, s->params, s->nparams, struct gpu_param, code_param);
	CODE_ARRAY(w, s->after, s->nafter, int, code_int);
}

/* All but the memory. */
static void code_gpu_job(struct wire *w, struct gpu_job *job)
{
	CODE(w, *job);
	CODE_ENUM(w, job->api, gpu_api, GPU_APIS - 1);
	code_string(w, &job->arch);
	CODE_ENUM(w, job->mode, gpu_mode, GPU_RACE);
	CODE_BOOL(w, job->graph);
	CODE_ARRAY(w, job->race.names, job->race.n, const char *, code_text);
	CODE_ARRAY(w, job->binaries, job->nbinaries, struct gpu_binary, code_gpu_binary);
	CODE_ARRAY(w, job->buffers, job->nbuffers, struct gpu_buffer, code_gpu_buffer);
	CODE_ARRAY(w, job->steps, job->nsteps, struct gpu_step, code_gpu_step);
}

PUT_AND_GET(gpu_job)

void get_shared_job(struct wire *w, struct gpu_job *job, unsigned char *share, size_t bytes, struct arena *a)
{
	struct gpu_binary *binaries;
	struct gpu_buffer *buffers;
	struct share_layout l;

	get_gpu_job(w, job, a);
	w->bad = w->bad || !share_layout(job, &l, a) || l.bytes > bytes;
	if (w->bad)
		return;
	job->binaries = binaries = arena_copy(a, job->binaries, (size_t)job->nbinaries, sizeof(*binaries));
	for (int i = 0; i < job->nbinaries; i++)
		binaries[i].image = share + l.binary[i];
	job->buffers = buffers = arena_copy(a, job->buffers, (size_t)job->nbuffers, sizeof(*buffers));
	for (int i = 0; i < job->nbuffers; i++) {
		buffers[i].from = buffers[i].init == GPU_INIT_HOST ? share + l.from[i] : NULL;
		buffers[i].to = buffers[i].to ? share + l.to[i] : NULL;
	}
}
