/* bound:reference: the answer on given inputs, by the interpreter or by the plain kernel. */
#include "lkernel.h"

#include "run/reference.h"
#include "tile/interp.h"

#define REFERENCE_CLASS "millrace.reference"

enum { INTERPRETER, HOST, DEVICE };	/* ORDER evaluators */
static const char *const evaluators[] = { "interpreter", "host", "device" };

struct asked {
	bool tiled, round;
	struct tiling tiling;
	int on;
	double limit;
	int64_t seed;			/* of random inputs */
};

static void check_asked(lua_State *L, int opts, const char *what, const struct program *p, struct asked *out)
{

	*out = (struct asked){ .on = INTERPRETER, .limit = 600, .seed = 1 };
	OPTIONS_CHECK(L, opts, what, "tile", "round", "on", "limit", "seed");
	option_bool(L, opts, what, "round", &out->round);
	option_name(L, opts, what, "on", evaluators, LEN(evaluators), &out->on);
	option_integer(L, opts, what, "seed", INT64_MIN, INT64_MAX, &out->seed);
	if (option_real(L, opts, what, "limit", &out->limit) && !(out->limit > 0))
		throw_msg(L, "%s: limit is a number of seconds above 0", what);
	out->tiled = option_push(L, opts, what, "tile", LUA_TTABLE);
	if (out->tiled) {
		check_tiling(L, -1, what, p, &out->tiling);
		lua_pop(L, 1);
	}
}

/* Push zeros for an output, into the table at `results` too. */
static double *new_output(lua_State *L, int results, const struct program *p, int tensor)
{
	const struct tensor *t = &p->tensors.v[tensor];
	int64_t dim[RANK_MAX];
	struct array *array;

	tensor_dims(p, tensor, dim);
	array = array_new(L, "reference", DT_F64, t->rank, dim);
	lua_setfield(L, results, t->name);
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

/* The elements of a tensor as doubles: those of an input, or zeros. */
static double *tensor_data(lua_State *L, int inputs, int results, const struct program *p, int tensor, struct arena *a)
{
	const struct tensor *t = &p->tensors.v[tensor];
	double *data;

	if (t->role == TENSOR_OUTPUT)
		return new_output(L, results, p, tensor);
	enter(L);
	data = ARENA_ARRAY(a, tensor_elements(p, tensor), double);
	if (t->role == TENSOR_INPUT) {
		array_read(L, push_input(L, inputs, "reference", t->name), t->type, data);
		lua_pop(L, 1);
	}
	return data;
}

static void interpret(lua_State *L, int inputs, int results, const struct program *p, const struct asked *asked)
{
	struct stop stop = stop_of(enter(L));
	struct extents extents;
	struct arena *a;
	double **data;
	struct err e;

	check_reference_memory(L, p);
	a = scratch_push(L);
	raise_if(L, asked->tiled ? extents_infer(a, p, &asked->tiling, &extents, &e) : interp_extents(a, p, &extents, &e), &e);
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
	raise_if(L, reference_emit(*box, asked->tiled ? &asked->tiling : NULL, asked->round ? PLAIN_ROUND : 0, &e), &e);
	return *box;
}

/* The packed elements of an input, converted if its array is of another type. */
static void *input_data(lua_State *L, int inputs, const struct tensor *t, struct arena *a)
{
	struct array *x = push_input(L, inputs, "reference", t->name);
	void *data = x->data;

	lua_pop(L, 1);
	if (x->type == t->type)
		return data;
	enter(L);
	data = arena_alloc(a, dtype_bytes(t->type, (size_t)x->n));
	for (int64_t i = 0; i < x->n; i++)
		dtype_store(t->type, data, (size_t)i, dtype_load(x->type, x->data, (size_t)i));
	return data;
}

static void play(lua_State *L, int inputs, int results, const struct program *p, const struct asked *asked)
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

/* bound:reference(inputs[, {tile=, round=, on=, limit=, seed=}]) -> name -> array of f64. On the device
 * inputs may be nil: random ones of the seed. */
static int program_reference_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "reference");
	struct asked asked;

	lua_settop(L, 3);
	enter(L);
	check_asked(L, 3, "reference", p, &asked);
	if (asked.on != DEVICE || !lua_isnil(L, 2))
		check_inputs(L, 2, "reference", p);
	lua_newtable(L);			/* -- program inputs options results */
	if (asked.on == INTERPRETER)
		interpret(L, 2, 4, p, &asked);
	else
		play(L, 2, 4, p, &asked);
	lua_pushvalue(L, 4);
	return 1;
}

/* core.plain(bound[, {tile=, round=}]) -> text of the plain kernel */
static int plain_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "plain");
	struct asked asked;

	lua_settop(L, 2);
	check_asked(L, 2, "plain", p, &asked);
	return push_buf(L, &emit(L, p, &asked)->plain.text);
}

void lua_open_reference(lua_State *L)
{
	static const luaL_Reg meta[] = { { "__gc", reference_gc_l }, { "__close", reference_gc_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = { { "plain", plain_l }, { NULL, NULL } };

	class_new(L, &(struct class_def){ .name = REFERENCE_CLASS, .meta = meta });
	class_method(L, PROGRAM_CLASS, "reference", program_reference_l);
	luaL_setfuncs(L, functions, 0);
}
