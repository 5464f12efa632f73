/* bound:reference: the answer on given inputs, by the interpreter or by the plain kernel. */
#include "lkernel.h"

#include <math.h>
#include <string.h>

#include "run/reference.h"
#include "tile/interp.h"
#include "tile/roundings.h"

#define REFERENCE_CLASS "millrace.reference"

enum { INTERPRETER, HOST, DEVICE };	/* ORDER evaluators */
static const char *const evaluators[] = { "interpreter", "host", "device" };

/* The options of all functions here; those that one does not know have their usual values. */
struct asked {
	bool tiled, round;
	struct tiling tiling;
	int on;
	double limit;			/* seconds */
	int64_t seed;			/* of random inputs, and of a sample */
	struct plain_sample sample;
	bool reference;			/* compare with the reference */
};

/* Read the options of a function that knows the names `known`; where the reference is evaluated, if nothing says that: `on`. */
static struct asked check_asked(lua_State *L, int opts, const char *what, const struct program *p, int on,
	const char *const *known, int nknown)
{
	struct asked out = { .on = on, .limit = 600, .seed = 1, .reference = true };

	options_check(L, opts, what, known, nknown);
	option_bool(L, opts, what, "round", &out.round);
	option_bool(L, opts, what, "reference", &out.reference);
	option_name(L, opts, what, "on", evaluators, LEN(evaluators), &out.on);
	option_integer(L, opts, what, "seed", INT64_MIN, INT64_MAX, &out.seed);
	option_integer(L, opts, what, "tiles", 0, 1 << 16, &out.sample.tiles);
	out.sample.seed = (uint64_t)out.seed;
	if (option_real(L, opts, what, "limit", &out.limit) && !(out.limit > 0))
		throw_msg(L, "%s: limit is a number of seconds above 0", what);
	out.tiled = option_push(L, opts, what, "tile", LUA_TTABLE);
	if (out.tiled) {
		check_tiling(L, -1, what, p, &out.tiling);
		lua_pop(L, 1);
	}
	return out;
}

/* ... with the names as arguments. */
#define CHECK_ASKED(L, opts, what, p, on, ...) check_asked(L, opts, what, p, on, \
	(const char *const[]){ __VA_ARGS__ }, LEN(((const char *const[]){ __VA_ARGS__ })))

/* Where outputs go: tables from their names to arrays. */
struct results {
	int values, allowances;		/* stack indices; the second 0: there are none */
	const struct program *named;	/* the program whose outputs they are */
	const int *allowance;		/* by tensor of it: the one that holds its allowance */
};

/* Push zeros for an output, into its table too. */
static double *new_output(lua_State *L, const struct results *results, const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];
	int into = results->values;
	int64_t dim[RANK_MAX];
	struct array *array;

	tensor_dims(p, tensor, dim);
	array = array_new(L, "reference", DT_F64, t->rank, dim);
	for (int i = 0; results->allowances && i < results->named->tensors.n; i++)
		if (results->allowance[i] == tensor) {
			into = results->allowances;
			t = &results->named->tensors.v[i];
		}
	lua_setfield(L, into, t->name);
	return array->data;
}

/* the interpreter --------------------------------------------------------- */

/* Checked first, as converting the inputs takes time. */
static void check_reference_memory(lua_State *L, const struct program *p)
{
	size_t bytes = 0;

	for (int i = 0; i < p->tensors.n; i++)
		bytes += dtype_bytes(DT_F64, (size_t)tensor_elements(p, i));
	check_memory(L, "reference", "every tensor in f64", bytes);
}

/* The packed elements of an input, converted if its array is of another type. */
static void *input_data(lua_State *L, int inputs, const struct tensor *t, struct arena *a)
{
	struct array *x = push_input(L, inputs, "reference", t->name);
	void *data = x->data;

	lua_pop(L, 1);
	if (x->type == t->element)
		return data;
	enter(L);
	data = arena_alloc(a, dtype_bytes(t->element, (size_t)x->n));
	for (int64_t i = 0; i < x->n; i++)
		dtype_store(t->element, data, (size_t)i, dtype_load(x->type, x->data, (size_t)i));
	return data;
}

/* The elements of a tensor as doubles: those of an input, or zeros. */
static double *tensor_data(lua_State *L, int inputs, const struct results *results, const struct program *p, int tensor,
	struct arena *a)
{
	const struct tensor *t = &p->tensors.v[tensor];
	double *data;

	if (t->role == TENSOR_OUTPUT)
		return new_output(L, results, p, tensor);
	enter(L);
	data = ARENA_ARRAY(a, tensor_elements(p, tensor), double);
	if (t->role == TENSOR_INPUT && t->unpacked != NONE) {
		dtype_load_many(t->type, input_data(L, inputs, t, a), 0, (size_t)tensor_elements(p, tensor), data);
	} else if (t->role == TENSOR_INPUT) {
		array_read(L, push_input(L, inputs, "reference", t->name), t->type, data);
		lua_pop(L, 1);
	}
	return data;
}

static void interpret(lua_State *L, int inputs, const struct results *results, const struct program *p,
	const struct asked *asked)
{
	struct stop stop = stop_of(enter(L));
	struct extents extents;
	struct arena *a;
	double **data;
	struct err e;

	check_reference_memory(L, p);
	a = scratch_push(L);
	raise_if(L, asked->tiled ? extents_infer(a, p, &asked->tiling, &extents, &e) :
		interp_extents(a, p, &extents, &e), &e);
	data = ARENA_ARRAY(a, p->tensors.n, double *);
	for (int i = 0; i < p->tensors.n; i++)
		data[i] = tensor_data(L, inputs, results, p, i, a);
	enter(L);
	raise_if(L, interp_run(a, &extents, data, asked->round ? INTERP_ROUND : 0, &stop, &e), &e);
}

/* the plain kernel -------------------------------------------------------- */

static int reference_gc_l(lua_State *L)
{
	void **box = luaL_checkudata(L, 1, REFERENCE_CLASS);

	reference_free(*box);
	*box = NULL;
	return 0;
}

/* Push a plain kernel's text; freed when the C function ends. */
static struct reference *emit(lua_State *L, const struct program *p, const struct asked *asked)
{
	struct host *h = host_of(L);
	void **box = box_new(L, REFERENCE_CLASS, 0);
	struct err e;

	lua_toclose(L, -1);
	enter(L);
	reference_new(&h->mem, p, (struct reference **)box);
	raise_if(L, reference_emit(*box, asked->tiled ? &asked->tiling : NULL, asked->round ? PLAIN_ROUND : 0,
		&asked->sample, &e), &e);
	return *box;
}

static void play(lua_State *L, int inputs, const struct results *results, const struct program *p,
	const struct asked *asked)
{
	struct reference *r = emit(L, p, asked);
	struct stop stop = stop_of(host_of(L));
	enum err_code code;
	struct gpu *g;
	void **data;
	struct err e;

	data = ARENA_ARRAY(&r->arena, p->tensors.n, void *);
	for (int i = 0; i < p->tensors.n; i++) {
		if (p->tensors.v[i].role == TENSOR_INPUT && !lua_isnil(L, inputs))
			data[i] = input_data(L, inputs, &p->tensors.v[i], &r->arena);
		else if (p->tensors.v[i].role == TENSOR_OUTPUT)
			data[i] = new_output(L, results, p, i);
	}
	g = asked->on == DEVICE ? gpu_of(L) : NULL;
	enter(L);
	code = g ? reference_on_device(r, g, &(struct feed){ data, (uint64_t)asked->seed }, asked->limit, &stop, &e) :
		reference_on_host(r, data, asked->limit, &stop, &e);
	if (code)
		throw_err(L, &e);
}

/* Run the reference that is asked for. */
static void evaluate(lua_State *L, int inputs, const struct results *results, const struct program *p,
	const struct asked *asked)
{
	if (asked->on == INTERPRETER)
		interpret(L, inputs, results, p, asked);
	else
		play(L, inputs, results, p, asked);
}

/* Arguments program, inputs, options. sampled: a sample may be asked for. */
static const struct program *check_call(lua_State *L, bool sampled, struct asked *asked)
{
	const struct program *p = check_program(L, 1, "reference");

	lua_settop(L, 3);
	enter(L);
	if (sampled)
		*asked = CHECK_ASKED(L, 3, "reference", p, INTERPRETER, "tile", "on", "limit", "seed", "tiles");
	else
		*asked = CHECK_ASKED(L, 3, "reference", p, INTERPRETER, "tile", "round", "on", "limit", "seed");
	if (asked->on != DEVICE || !lua_isnil(L, 2))
		check_inputs(L, 2, "reference", p);
	return p;
}

/* bound:reference(inputs[, {tile=, round=, on=, limit=, seed=}]) -> name -> array of f64. On the device
 * inputs may be nil: random ones of the seed. */
static int program_reference_l(lua_State *L)
{
	struct asked asked;
	const struct program *p = check_call(L, false, &asked);

	lua_newtable(L);			/* -- program inputs options results */
	arrays_describe(L);
	evaluate(L, 2, &(struct results){ .values = 4 }, p, &asked);
	lua_pushvalue(L, 4);
	return 1;
}

/* Unless tiles are asked for: those that suit the program itself, so that more values do not make them smaller. */
static void take_tiles(lua_State *L, struct arena *a, const struct program *p, struct asked *asked)
{
	struct extents x;
	struct err e;

	if (asked->tiled)
		return;
	enter(L);
	raise_if(L, asked->on == INTERPRETER ? interp_extents(a, p, &x, &e) : plain_extents(a, p, &x, &e), &e);
	for (int i = 0; i < p->axes.n; i++) {
		/* Where an axis is not batch, it may be complete in every tile. */
		bool follows = p->axes.v[i].packs != NONE || p->axes.v[i].single;

		asked->tiling.extent[i] = follows ? 0 : x.tile[i];
	}
	asked->tiled = true;
}

/* Tiles of the program for that with its roundings, whose tiles have an axis in full where they only add sums over it:
 * in any number of parts, such a sum has no more roundings. */
static void leave_complete(const struct program *with, struct tiling *t)
{
	for (int a = 0; a < with->axes.n; a++) {
		bool tiled = false;

		for (int i = 0; i < with->phases.n; i++) {
			enum axis_role role = program_axis_role(with, i, a);

			tiled |= role == AXIS_GRID || role == AXIS_LOOP;
		}
		t->extent[a] = tiled ? t->extent[a] : 0;
	}
}

/* core.adds(bound) -> are there additions? What each tile adds is rounded, so that the allowances depend on the tiles. */
static int adds_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "adds");
	bool adds = false;

	for (int i = 0; i < p->nodes.n; i++)
		adds |= p->nodes.v[i].adds;
	lua_pushboolean(L, adds);
	return 1;
}

/* core.reference_allowing(bound, inputs[, {tile=, on=, limit=, seed=, tiles=}]) -> the same; name -> array of how far a right
 * kernel's elements may be from these (0: the program stores no such element, or it is in none of the `tiles` that are sampled) */
static int reference_allowing_l(lua_State *L)
{
	struct asked asked;
	const struct program *p = check_call(L, true, &asked), *with;
	struct results results = { .values = 4, .allowances = 5, .named = p };
	struct arena *a;
	int *allowance;

	lua_newtable(L);
	lua_newtable(L);			/* -- program inputs options values allowances */
	enter(L);
	a = scratch_push(L);
	program_with_roundings(a, p, &with, &allowance);
	results.allowance = allowance;
	take_tiles(L, a, p, &asked);
	leave_complete(with, &asked.tiling);
	evaluate(L, 2, &results, with, &asked);
	lua_pushvalue(L, 4);
	lua_pushvalue(L, 5);
	return 2;
}

/* comparing ------------------------------------------------------------------ */

enum { COMPARED = 1 << 10 };			/* elements at a time */

/* What is found out about the elements of an output. */
struct comparison {
	double greatest;		/* difference */
	double off, size, most;		/* squares: of differences, of the reference, of what is allowed */
	double worst;				/* the greatest share of what is allowed */
	int64_t wrong, compared, at;		/* elements; where the worst one is */
	int64_t unlimited, telling;		/* elements that may be any number; numbers other than 0 that may not */
	int64_t stray, first_stray;		/* elements that were written, and that the program stores nowhere; the first one */
	double got, want, allowed;		/* of the worst one */
};

static void compare_element(struct comparison *c, int64_t at, double got, double want, double allowed)
{
	double d = got == want || (isnan(got) && isnan(want)) ? 0 : fabs(got - want), share;

	if (allowed == 0)			/* never stored */
		return;
	if (isnan(allowed))
		allowed = INFINITY;
	share = d == 0 || isinf(allowed) ? 0 : isnan(d) ? INFINITY : d / allowed;
	c->telling += !isinf(allowed) && isfinite(want) && want != 0;
	if (isinf(allowed)) {			/* a number that may be anything */
		c->unlimited++;
		d = 0;
	} else {
		c->most += allowed * allowed;
	}
	c->greatest = d <= c->greatest ? c->greatest : d;
	c->off += d * d;
	c->size += isfinite(want) ? want * want : 0;
	c->wrong += share > 1;
	if (c->compared++ && share <= c->worst)
		return;
	c->worst = share;
	c->at = at;
	c->got = got;
	c->want = want;
	c->allowed = allowed;
}

/* Has nothing written element `at` of the array? Then it is as it was before, which is, unless an array is given, as a run begins: on a device
 * every word POISON of src/run/run.c, on the CPU every byte 255. True of elements of 4 bits, of which two share a byte. */
static bool is_unwritten(const struct array *a, const struct array *before, int64_t at)
{
	static const unsigned char word[] = { 0xc0, 0x7f, 0xc0, 0x7f };
	int bits = dtype_bits(a->type), bytes = bits / 8;
	const unsigned char *element = (const unsigned char *)a->data + at * bytes;
	bool on_device = true, on_host = true;

	if (before)
		return memcmp(element, (const unsigned char *)before->data + at * bytes, (size_t)bytes) == 0;
	for (int i = 0; i < bytes; i++) {
		on_device &= element[i] == word[(at * bytes + i) % 4];
		on_host &= element[i] == 0xff;
	}
	return on_device || on_host;
}

static double relative_to(double squares, double size)
{
	return squares == 0 ? 0 : sqrt(squares) / sqrt(size);
}

/* Push the indices of an element, from 1. */
static void push_index(lua_State *L, int64_t at, int rank, const int64_t *dim)
{
	lua_createtable(L, rank, 0);
	for (int i = rank; i > 0; i--) {
		lua_pushinteger(L, at % dim[i - 1] + 1);
		lua_rawseti(L, -2, i);
		at /= dim[i - 1];
	}
}

/* Push what was found out about the elements of an output of these dimensions, as core.compare gives it. */
static void push_comparison(lua_State *L, const struct comparison *c, int rank, const int64_t *dim)
{
	lua_newtable(L);
	set_integer(L, "wrong", c->wrong);
	set_integer(L, "compared", c->compared);
	set_integer(L, "unlimited", c->unlimited);
	set_integer(L, "telling", c->telling);
	set_real(L, "max_abs", c->greatest);
	set_real(L, "relative", relative_to(c->off, c->size));
	set_real(L, "allowed", relative_to(c->most, c->size));
	set_real(L, "share", c->worst);
	set_integer(L, "stray", c->stray);
	if (c->stray) {
		push_index(L, c->first_stray, rank, dim);
		lua_setfield(L, -2, "stray_at");
	}
	if (!c->compared)
		return;
	lua_newtable(L);
	set_real(L, "got", c->got);
	set_real(L, "want", c->want);
	set_real(L, "allowed", c->allowed);
	push_index(L, c->at, rank, dim);
	lua_setfield(L, -2, "index");
	lua_setfield(L, -2, "worst");
}

/* core.compare(got, want, allowed[, before]) -> {wrong=, compared=, unlimited=, telling=, relative=, max_abs=, allowed= (all relative), share=,
 * stray= (elements written that the program does not store:
 * other than in `before`, or, without it, than a run begins with; false: unknown, none), stray_at= (the first one's index), worst = {index=, got=, want=, allowed=}} */
static int compare_l(lua_State *L)
{
	const struct array *got = check_array(L, 1, "check"), *want = check_array(L, 2, "check");
	const struct array *allowed = check_array(L, 3, "check");
	const struct array *before = lua_toboolean(L, 4) ? check_array(L, 4, "check") : NULL;
	bool known = lua_isnoneornil(L, 4) || before;
	struct comparison c = { 0 };
	double x[COMPARED], y[COMPARED], z[COMPARED];

	if (got->n != want->n || want->n != allowed->n || (before && (before->n != got->n || before->type != got->type)))
		throw_msg(L, "check: the arrays have different shapes");
	for (int64_t from = 0; from < got->n; from += COMPARED) {
		size_t n = (size_t)min_i64(COMPARED, got->n - from);

		check_stop(L);
		dtype_load_many(got->type, got->data, (size_t)from, n, x);
		dtype_load_many(want->type, want->data, (size_t)from, n, y);
		dtype_load_many(allowed->type, allowed->data, (size_t)from, n, z);
		for (size_t i = 0; i < n; i++) {
			int64_t at = from + (int64_t)i;

			compare_element(&c, at, x[i], y[i], z[i]);
			if (known && z[i] == 0 && !is_unwritten(got, before, at) && !c.stray++)
				c.first_stray = at;
		}
	}
	push_comparison(L, &c, want->rank, want->dim);
	return 1;
}

/* verifying on the device -------------------------------------------------- */

static const struct built *check_on_device(lua_State *L, int idx)
{
	return box_get(L, idx, KERNEL_CLASS, "verify");
}

/* Short tiles along axes of the grid, so that many blocks share a sample of them. */
static void take_short_tiles(const struct program *p, struct tiling *t)
{
	enum { SHORT = 16 };

	for (int a = 0; a < p->axes.n; a++) {
		bool in_grid = false, elsewhere = false;

		for (int i = 0; i < p->phases.n; i++) {
			enum axis_role role = program_axis_role(p, i, a);

			in_grid |= role == AXIS_GRID;
			elsewhere |= role != AXIS_GRID && role != AXIS_UNUSED;
		}
		if (in_grid && !elsewhere && t->extent[a] > SHORT)
			t->extent[a] = SHORT;
	}
}

static struct comparison comparison_of(const struct plain_found *f)
{
	return (struct comparison){ .greatest = f->greatest, .off = f->off, .size = f->size, .most = f->most, .worst = f->worst,
		.wrong = f->wrong, .compared = f->compared, .at = f->at, .unlimited = f->unlimited, .telling = f->telling,
		.got = f->got, .want = f->want, .allowed = f->allowed };
}

/* Push the reference's text with kernels that compare outputs, of the program with its roundings. */
static struct reference *emit_comparing(lua_State *L, const struct program *p, struct asked *asked, int **allowance)
{
	const struct program *with;
	struct reference *r;
	struct arena *a;

	enter(L);
	a = scratch_push(L);
	program_with_roundings(a, p, &with, allowance);
	take_tiles(L, a, p, asked);
	if (asked->sample.tiles)
		take_short_tiles(p, &asked->tiling);
	leave_complete(with, &asked->tiling);
	r = emit(L, with, asked);
	for (int i = 0; i < p->tensors.n; i++) {
		bool again = p->tensors.v[i].role != TENSOR_OUTPUT;

		for (int k = 0; k < i; k++)
			again |= p->tensors.v[k].role == TENSOR_OUTPUT && p->tensors.v[k].type == p->tensors.v[i].type;
		if (!again)
			plain_put_comparisons(&r->plain, p->tensors.v[i].type);
	}
	return r;
}

#define AHEAD_CLASS "millrace.ahead"

BOX_GC(ahead_gc, AHEAD_CLASS, pool_drop)

static int ahead_drop_l(lua_State *L)
{
	void **box = luaL_checkudata(L, 1, AHEAD_CLASS);

	pool_drop(*box);
	*box = NULL;
	return 0;
}

/* ahead:done() -> is it compiled? Not before core.compile_wait has seen it */
static int ahead_done_l(lua_State *L)
{
	void **box = luaL_checkudata(L, 1, AHEAD_CLASS);

	lua_pushboolean(L, *box && pool_done(*box));
	return 1;
}

static void compile_ahead(lua_State *L, const struct compile_job *job)
{
	void **box = box_new(L, AHEAD_CLASS, 0);

	enter(L);
	pool_begin(pool_of(L), job, (struct pool_job **)box);
}

/* core.verify_begin(bound, {seed=, tiles=}) -> two values: until their :drop(), what core.verify needs is compiled in the background */
static int verify_begin_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "verify");
	struct compile_job job;
	struct asked asked;
	struct gpu_info info;
	struct reference *r;
	struct stop stop;
	int *allowance;
	struct err e;

	lua_settop(L, 2);
	asked = CHECK_ASKED(L, 2, "verify", p, DEVICE, "seed", "tiles");
	stop = stop_of(host_of(L));
	raise_if(L, gpu_probe(gpu_of(L), GPU_APIS, &stop, &info, &e), &e);
	r = emit_comparing(L, p, &asked, &allowance);
	enter(L);
	job = reference_job(r, &info);
	compile_ahead(L, &job);
	job = feed_job(info.api, info.arch, &r->arena);
	compile_ahead(L, &job);
	return 2;
}

/* core.verify(kernel, other or nil, {seed=, tiles=, reference=, limit=}) -> name of an output -> what core.compare gives, and .chunk: how
 * far 32 elements are at most from those of the reference, relative to their norm; with another kernel also .apart: how far such elements are at most
 * from those of the other one, relative to their norm, .at: the first of them, .unwritten: how many elements both leave NaN; then
 * whether all elements were compared. On random inputs, in the device's memory. tiles: so many of the reference's are computed
 * where a phase allows that, 0: all. reference=false: only with the other kernel. */
static int verify_l(lua_State *L)
{
	const struct built *b = check_on_device(L, 1), *other = lua_isnoneornil(L, 2) ? NULL : check_on_device(L, 2);
	const struct program *p = b->graph->source;
	struct compile_job job;
	struct verified_by by;
	struct verified *found;
	struct reference *r;
	struct gpu_info info;
	struct asked asked;
	int *allowance;
	struct arena *a;
	struct stop stop;
	void **data;
	struct err e;

	lua_settop(L, 3);
	asked = CHECK_ASKED(L, 3, "verify", p, DEVICE, "seed", "tiles", "limit", "reference");
	if (!other && !asked.reference)
		throw_msg(L, "verify: there is nothing to compare with");
	if (other && !built_same_tensors(b, other))
		throw_msg(L, "verify: the kernels do not compute the same");
	stop = stop_of(host_of(L));
	raise_if(L, gpu_probe(gpu_of(L), GPU_APIS, &stop, &info, &e), &e);
	r = emit_comparing(L, p, &asked, &allowance);
	a = scratch_push(L);
	job = reference_job(r, &info);
	raise_if(L, pool_await(pool_of(L), &job, &stop, &e), &e);
	by = (struct verified_by){ .reference = r, .allowance = allowance, .computes = asked.reference };
	found = ARENA_ARRAY(a, p->tensors.n, struct verified);
	data = ARENA_ARRAY(a, p->tensors.n, void *);
	enter(L);
	raise_if(L, built_verify(b, other, &by, gpu_of(L), &(struct feed){ data, (uint64_t)asked.seed }, asked.limit, &stop, a, found,
		&e), &e);
	lua_newtable(L);
	for (int i = 0; i < p->tensors.n; i++) {
		const struct plain_found *f = &found[i].reference, *o = &found[i].other;
		struct comparison c = comparison_of(f);
		int64_t dim[RANK_MAX];

		if (p->tensors.v[i].role != TENSOR_OUTPUT)
			continue;
		tensor_dims(p, i, dim);
		if (by.computes)
			push_comparison(L, &c, p->tensors.v[i].rank, dim);
		else
			lua_newtable(L);
		if (by.computes)
			set_real(L, "chunk", sqrt(f->chunk));
		if (other) {
			set_real(L, "apart", sqrt(o->worst));
			push_index(L, o->at, p->tensors.v[i].rank, dim);
			lua_setfield(L, -2, "at");
			set_integer(L, "unwritten", o->unwritten);
		}
		lua_setfield(L, -2, p->tensors.v[i].name);
	}
	lua_pushboolean(L, by.computes && !r->plain.sampled);
	return 2;
}

/* core.plain(bound[, {tile=, round=}]) -> text of the plain kernel */
static int plain_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "plain");
	struct asked asked;

	lua_settop(L, 2);
	asked = CHECK_ASKED(L, 2, "plain", p, HOST, "tile", "round");
	return push_buf(L, &emit(L, p, &asked)->plain.text);
}

void lua_open_reference(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", reference_gc_l }, { "__close", reference_gc_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = { { "plain", plain_l }, { "compare", compare_l },
		{ "reference_allowing", reference_allowing_l }, { "verify", verify_l },
		{ "verify_begin", verify_begin_l },
		{ "adds", adds_l }, { NULL, NULL } };

	static const luaL_Reg ahead_methods[] = { { "done", ahead_done_l }, { "drop", ahead_drop_l }, { NULL, NULL } };
	static const luaL_Reg ahead[] = { { "__gc", ahead_gc_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = REFERENCE_CLASS, .meta = meta });
	class_new(L, &(struct class_def){ .name = AHEAD_CLASS, .methods = ahead_methods, .meta = ahead });
	class_method(L, PROGRAM_CLASS, "reference", program_reference_l);
	luaL_setfuncs(L, functions, 0);
}
