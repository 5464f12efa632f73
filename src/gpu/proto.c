#include "gpu/proto.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- verdicts ---- */

void put_verdict(struct wire *w, const struct verdict *v)
{
	wire_put_u32(w, v->failure);
	wire_put_u32(w, v->lost);
	if (v->failure == GPU_FAIL_NONE)
		return;
	wire_put_u32(w, v->err.code);
	wire_put_u32(w, (uint32_t)v->err.line);
	wire_put_str(w, v->err.file);
	wire_put_str(w, v->err.msg);
}

void get_verdict(struct wire *w, struct verdict *v)
{
	struct srcloc loc;
	enum err_code code;

	*v = (struct verdict){ 0 };
	v->failure = (enum gpu_failure)wire_get_below(w, GPU_FAIL_OTHER + 1);
	v->lost = wire_get_below(w, 2);
	if (v->failure == GPU_FAIL_NONE)
		return;
	code = (enum err_code)wire_get_below(w, ERR_IO + 1);
	loc.line = (int)wire_get_u32(w);
	loc.file = wire_get_text(w);
	err_set(&v->err, code ? code : ERR_IO, loc, "%s", wire_get_text(w));
}

/* ---- compiling ---- */

void put_compile_job(struct wire *w, const struct compile_job *job)
{
	wire_put_str(w, job->name);
	wire_put_str(w, job->source);
	wire_put_str(w, job->arch);
	wire_put_u32(w, job->fast_math);
	wire_put_u32(w, job->no_cache);
	wire_put_u32(w, (uint32_t)job->noptions);
	for (int i = 0; i < job->noptions; i++)
		wire_put_str(w, job->options[i]);
}

void get_compile_job(struct wire *w, struct compile_job *job, struct arena *a)
{
	const char **options;

	*job = (struct compile_job){ 0 };
	job->name = wire_get_str(w);
	job->source = wire_get_str(w);
	job->arch = wire_get_str(w);
	job->fast_math = wire_get_below(w, 2);
	job->no_cache = wire_get_below(w, 2);
	job->noptions = wire_get_count(w, sizeof(uint32_t));
	options = ARENA_ARRAY(a, job->noptions, const char *);
	for (int i = 0; i < job->noptions; i++)
		options[i] = wire_get_text(w);
	job->options = options;
}

static void put_use(struct wire *w, const struct compile_use *u)
{
	wire_put_str(w, u->entry);
	wire_put_u32(w, (uint32_t)u->registers);
	wire_put_u32(w, (uint32_t)u->spill_stores);
	wire_put_u32(w, (uint32_t)u->spill_loads);
	wire_put_u32(w, (uint32_t)u->stack);
	wire_put_u32(w, (uint32_t)u->smem);
	wire_put_u32(w, (uint32_t)u->barriers);
}

static void get_use(struct wire *w, struct compile_use *u, struct arena *a)
{
	u->entry = arena_strdup(a, wire_get_text(w));
	u->registers = (int)wire_get_u32(w);
	u->spill_stores = (int)wire_get_u32(w);
	u->spill_loads = (int)wire_get_u32(w);
	u->stack = (int)wire_get_u32(w);
	u->smem = (int)wire_get_u32(w);
	u->barriers = (int)wire_get_u32(w);
}

static void put_diag(struct wire *w, const struct compile_diag *d)
{
	wire_put_u32(w, d->severity);
	wire_put_str(w, d->file);
	wire_put_u32(w, (uint32_t)d->line);
	wire_put_u32(w, (uint32_t)d->ptx_line);
	wire_put_u32(w, d->serialized);
	wire_put_str(w, d->text);
}

static void get_diag(struct wire *w, struct compile_diag *d, struct arena *a)
{
	d->severity = (enum compile_severity)wire_get_below(w, COMPILE_ERROR + 1);
	d->file = arena_strdup(a, wire_get_text(w));
	d->line = (int)wire_get_u32(w);
	d->ptx_line = (int)wire_get_u32(w);
	d->serialized = wire_get_below(w, 2);
	d->text = arena_strdup(a, wire_get_text(w));
}

void put_compile_result(struct wire *w, const struct compile_result *r)
{
	wire_put_u64(w, r->cubin_bytes);
	wire_put(w, r->cubin, r->cubin_bytes);
	wire_put_u32(w, (uint32_t)r->nuses);
	for (int i = 0; i < r->nuses; i++)
		put_use(w, &r->uses[i]);
	wire_put_u32(w, (uint32_t)r->ndiags);
	for (int i = 0; i < r->ndiags; i++)
		put_diag(w, &r->diags[i]);
	wire_put_str(w, r->log);
	wire_put_u32(w, (uint32_t)r->nvrtc_major);
	wire_put_u32(w, (uint32_t)r->nvrtc_minor);
	wire_put_u32(w, r->cached);
}

/* Everything copied: the result outlives the message. */
void get_compile_result(struct wire *w, struct compile_result *r, struct arena *a)
{
	const void *cubin;

	*r = (struct compile_result){ .log = "" };
	r->cubin_bytes = wire_get_u64(w);
	cubin = wire_get(w, r->cubin_bytes);
	if (!cubin)
		r->cubin_bytes = 0;
	if (r->cubin_bytes)
		r->cubin = memcpy(arena_alloc(a, r->cubin_bytes), cubin, r->cubin_bytes);
	r->nuses = wire_get_count(w, 7 * sizeof(uint32_t));
	r->uses = ARENA_ARRAY(a, r->nuses, struct compile_use);
	for (int i = 0; i < r->nuses; i++)
		get_use(w, &r->uses[i], a);
	r->ndiags = wire_get_count(w, 6 * sizeof(uint32_t));
	r->diags = ARENA_ARRAY(a, r->ndiags, struct compile_diag);
	for (int i = 0; i < r->ndiags; i++)
		get_diag(w, &r->diags[i], a);
	r->log = arena_strdup(a, wire_get_text(w));
	r->nvrtc_major = (int)wire_get_u32(w);
	r->nvrtc_minor = (int)wire_get_u32(w);
	r->cached = wire_get_below(w, 2);
}

/* ---- the device and the times ---- */

static void put_board(struct wire *w, const struct gpu_board *b)
{
	wire_put_str(w, b->driver);
	wire_put_double(w, b->power_limit);
	wire_put_double(w, b->clock);
	wire_put_u32(w, b->held);
	wire_put_u32(w, b->partition);
	wire_put_u32(w, b->counted);
	wire_put_u32(w, (uint32_t)b->others);
	wire_put_u32(w, (uint32_t)b->other);
	wire_put_u32(w, (uint32_t)b->use);
}

static void get_board(struct wire *w, struct gpu_board *b)
{
	snprintf(b->driver, sizeof(b->driver), "%s", wire_get_text(w));
	b->power_limit = wire_get_double(w);
	b->clock = wire_get_double(w);
	b->held = (enum gpu_held)wire_get_below(w, GPU_HELD_SETTING + 1);
	b->partition = wire_get_below(w, 2);
	b->counted = wire_get_below(w, 2);
	b->others = (int)wire_get_u32(w);
	b->other = (int)wire_get_u32(w);
	b->use = (int)wire_get_u32(w);
}

/* What is all numbers and texts goes as it is. */
enum { INFO_PLAIN = offsetof(struct gpu_info, board) };

void put_info(struct wire *w, const struct gpu_info *info)
{
	wire_put(w, info, INFO_PLAIN);
	put_board(w, &info->board);
}

void get_info(struct wire *w, struct gpu_info *info)
{
	const void *p = wire_get(w, INFO_PLAIN);

	*info = (struct gpu_info){ 0 };
	if (p)
		memcpy(info, p, INFO_PLAIN);
	info->name[sizeof(info->name) - 1] = '\0';
	info->arch[sizeof(info->arch) - 1] = '\0';
	get_board(w, &info->board);
}

void put_result(struct wire *w, const struct gpu_result *r)
{
	wire_put_u32(w, (uint32_t)r->copies);
	wire_put_u32(w, r->cache);
	wire_put_double(w, r->watts);
	wire_put_u32(w, (uint32_t)r->runs);
	wire_put(w, r->ms, (size_t)r->runs * sizeof(*r->ms));
	wire_put_u32(w, (uint32_t)r->contestants);
	for (int i = 0; i < r->contestants; i++) {
		wire_put_double(w, r->least[i]);
		wire_put_double(w, r->most[i]);
		wire_put_u32(w, (uint32_t)r->batch[i]);
	}
}

void get_result(struct wire *w, struct gpu_result *r, struct arena *a)
{
	*r = (struct gpu_result){ 0 };
	r->copies = (int)wire_get_u32(w);
	r->cache = (enum gpu_cache)wire_get_below(w, GPU_CACHE_COLD + 1);
	r->watts = wire_get_double(w);
	r->runs = wire_get_count(w, sizeof(*r->ms));
	r->ms = ARENA_ARRAY(a, r->runs, double);
	for (int i = 0; i < r->runs; i++)
		r->ms[i] = wire_get_double(w);
	r->contestants = wire_get_count(w, 2 * sizeof(double) + sizeof(uint32_t));
	r->least = ARENA_ARRAY(a, r->contestants, double);
	r->most = ARENA_ARRAY(a, r->contestants, double);
	r->batch = ARENA_ARRAY(a, r->contestants, int);
	for (int i = 0; i < r->contestants; i++) {
		r->least[i] = wire_get_double(w);
		r->most[i] = wire_get_double(w);
		r->batch[i] = (int)wire_get_u32(w);
	}
}

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

/* n bytes of the mapping that start at a number from the wire; NULL if not there. */
static unsigned char *get_place(struct wire *w, size_t n, unsigned char *share, size_t bytes)
{
	uint64_t at = wire_get_u64(w);

	if (at > bytes || n > bytes - at)
		w->bad = true;
	return w->bad ? NULL : share + at;
}

static void put_binary(struct wire *w, const struct gpu_binary *b, size_t at)
{
	wire_put_u64(w, b->bytes);
	wire_put_u64(w, at);
}

static void get_binary(struct wire *w, struct gpu_binary *b, unsigned char *share, size_t bytes)
{
	b->bytes = wire_get_u64(w);
	b->image = get_place(w, b->bytes, share, bytes);
}

static void put_buffer(struct wire *w, const struct gpu_buffer *b, size_t from, size_t to)
{
	wire_put_str(w, b->name);
	wire_put_u64(w, b->bytes);
	wire_put_u32(w, b->init);
	wire_put_u32(w, b->word);
	wire_put_u32(w, b->rotate);
	wire_put_u32(w, (uint32_t)b->contestant);
	wire_put_u32(w, b->to != NULL);
	if (b->init == GPU_INIT_HOST)
		wire_put_u64(w, from);
	if (b->to)
		wire_put_u64(w, to);
}

static void get_buffer(struct wire *w, struct gpu_buffer *b, unsigned char *share, size_t bytes)
{
	bool to;

	b->name = wire_get_str(w);
	b->bytes = wire_get_u64(w);
	b->init = (enum gpu_init)wire_get_below(w, GPU_INIT_WORD + 1);
	b->word = wire_get_u32(w);
	b->rotate = wire_get_below(w, 2);
	b->contestant = (int)wire_get_u32(w);
	to = wire_get_below(w, 2);
	if (b->init == GPU_INIT_HOST)
		b->from = get_place(w, b->bytes, share, bytes);
	if (to)
		b->to = get_place(w, b->bytes, share, bytes);
}

static void put_param(struct wire *w, const struct gpu_param *p)
{
	wire_put_u32(w, p->kind);
	wire_put_u32(w, (uint32_t)p->buffer);
	wire_put_u64(w, p->offset);
	wire_put_u64(w, p->bits);
	if (p->kind == GPU_PARAM_TENSOR)
		wire_put(w, p->tensor, sizeof(*p->tensor));
}

static void get_param(struct wire *w, struct gpu_param *p, struct arena *a)
{
	p->kind = (enum gpu_param_kind)wire_get_below(w, GPU_PARAM_TENSOR + 1);
	p->buffer = (int)wire_get_u32(w);
	p->offset = wire_get_u64(w);
	p->bits = wire_get_u64(w);
	if (p->kind == GPU_PARAM_TENSOR) {
		const void *from = wire_get(w, sizeof(struct gpu_tensor));
		struct gpu_tensor *t = ARENA_NEW(a, struct gpu_tensor);

		if (from)
			memcpy(t, from, sizeof(*t));
		p->tensor = t;
	}
}

static void put_step(struct wire *w, const struct gpu_step *s)
{
	wire_put_u32(w, s->kind);
	wire_put_u32(w, (uint32_t)s->buffer);
	wire_put_u32(w, s->word);
	wire_put_u32(w, s->once);
	wire_put_u32(w, (uint32_t)s->contestant);
	if (s->kind != GPU_STEP_KERNEL)
		return;
	wire_put_u32(w, (uint32_t)s->binary);
	wire_put_str(w, s->entry);
	wire_put(w, s->grid, sizeof(s->grid));
	wire_put(w, s->block, sizeof(s->block));
	wire_put(w, s->cluster, sizeof(s->cluster));
	wire_put_u32(w, s->smem);
	wire_put_u32(w, s->cooperative);
	wire_put_u32(w, s->early);
	wire_put_u32(w, (uint32_t)s->nparams);
	for (int i = 0; i < s->nparams; i++)
		put_param(w, &s->params[i]);
}

static void get_three(struct wire *w, unsigned x[3])
{
	for (int i = 0; i < 3; i++)
		x[i] = wire_get_u32(w);
}

static void get_step(struct wire *w, struct gpu_step *s, struct arena *a)
{
	struct gpu_param *params;

	s->kind = (enum gpu_step_kind)wire_get_below(w, GPU_STEP_FILL + 1);
	s->buffer = (int)wire_get_u32(w);
	s->word = wire_get_u32(w);
	s->once = wire_get_below(w, 2);
	s->contestant = (int)wire_get_u32(w);
	if (s->kind != GPU_STEP_KERNEL)
		return;
	s->binary = (int)wire_get_u32(w);
	s->entry = wire_get_text(w);
	get_three(w, s->grid);
	get_three(w, s->block);
	get_three(w, s->cluster);
	s->smem = wire_get_u32(w);
	s->cooperative = wire_get_below(w, 2);
	s->early = wire_get_below(w, 2);
	s->nparams = wire_get_count(w, 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t));
	params = ARENA_ARRAY(a, s->nparams, struct gpu_param);
	for (int i = 0; i < s->nparams; i++)
		get_param(w, &params[i], a);
	s->params = params;
}

static void put_race(struct wire *w, const struct gpu_race *r)
{
	wire_put_double(w, r->warmup);
	wire_put_double(w, r->turn);
	wire_put_double(w, r->seconds);
	wire_put_u32(w, (uint32_t)r->rounds_min);
	wire_put_double(w, r->lost);
	wire_put_u32(w, (uint32_t)r->n);
	for (int i = 0; i < r->n; i++)
		wire_put_str(w, r->names[i]);
}

static void get_race(struct wire *w, struct gpu_race *r, struct arena *a)
{
	const char **names;

	r->warmup = wire_get_double(w);
	r->turn = wire_get_double(w);
	r->seconds = wire_get_double(w);
	r->rounds_min = (int)wire_get_u32(w);
	r->lost = wire_get_double(w);
	r->n = wire_get_count(w, sizeof(uint32_t));
	names = ARENA_ARRAY(a, r->n, const char *);
	for (int i = 0; i < r->n; i++)
		names[i] = wire_get_text(w);
	r->names = names;
}

void put_job(struct wire *w, const struct gpu_job *job, const struct share_layout *l)
{
	wire_put_u32(w, job->mode);
	wire_put_double(w, job->bench.warmup);
	wire_put_double(w, job->bench.seconds);
	wire_put_u32(w, (uint32_t)job->bench.runs_min);
	wire_put_u32(w, (uint32_t)job->bench.runs_max);
	wire_put_u32(w, (uint32_t)job->bench.copies);
	put_race(w, &job->race);
	wire_put_u32(w, (uint32_t)job->nbinaries);
	for (int i = 0; i < job->nbinaries; i++)
		put_binary(w, &job->binaries[i], l->binary[i]);
	wire_put_u32(w, (uint32_t)job->nbuffers);
	for (int i = 0; i < job->nbuffers; i++)
		put_buffer(w, &job->buffers[i], l->from[i], l->to[i]);
	wire_put_u32(w, (uint32_t)job->nsteps);
	for (int i = 0; i < job->nsteps; i++)
		put_step(w, &job->steps[i]);
}

void get_job(struct wire *w, struct gpu_job *job, unsigned char *share, size_t bytes,
	struct arena *a)
{
	struct gpu_binary *binaries;
	struct gpu_buffer *buffers;
	struct gpu_step *steps;

	*job = (struct gpu_job){ 0 };
	job->mode = (enum gpu_mode)wire_get_below(w, GPU_RACE + 1);
	job->bench.warmup = wire_get_double(w);
	job->bench.seconds = wire_get_double(w);
	job->bench.runs_min = (int)wire_get_u32(w);
	job->bench.runs_max = (int)wire_get_u32(w);
	job->bench.copies = (int)wire_get_u32(w);
	get_race(w, &job->race, a);
	job->nbinaries = wire_get_count(w, 2 * sizeof(uint64_t));
	binaries = ARENA_ARRAY(a, job->nbinaries, struct gpu_binary);
	for (int i = 0; i < job->nbinaries; i++)
		get_binary(w, &binaries[i], share, bytes);
	job->nbuffers = wire_get_count(w, 6 * sizeof(uint32_t) + sizeof(uint64_t));
	buffers = ARENA_ARRAY(a, job->nbuffers, struct gpu_buffer);
	for (int i = 0; i < job->nbuffers; i++)
		get_buffer(w, &buffers[i], share, bytes);
	job->nsteps = wire_get_count(w, 5 * sizeof(uint32_t));
	steps = ARENA_ARRAY(a, job->nsteps, struct gpu_step);
	for (int i = 0; i < job->nsteps; i++)
		get_step(w, &steps[i], a);
	job->binaries = binaries;
	job->buffers = buffers;
	job->steps = steps;
}
