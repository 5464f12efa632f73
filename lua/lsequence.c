/* Sequences and their plans in Lua. lua/std/sequence.lua has the language that they are written in. */
#include "lsequence.h"

#include "plan/history.h"

#define SEQ_PROBLEM_RECORD "millrace.sequence_problem"
#define SEQ_CALL_RECORD "millrace.sequence_call"

static const char *const problem_fields[] = { "code", "message", "hint", "call", "other", "tensor", "other_tensor", "location",
	"other_location", "place" /* deprecated */ };
static const char *const call_fields[] = { "name", "program", "stream", "early", "after", "reads", "writes" };

/* sequences ---------------------------------------------------------------- */

BOX_GC(sequence_gc, SEQUENCE_CLASS, sequence_free)

const struct sequence *check_sequence(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, SEQUENCE_CLASS, what);
}

static struct sequence *own_sequence(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, SEQUENCE_CLASS, what);
}

/* core.sequence(name): one without tensors and calls */
static int sequence_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const char *name = check_text(L, 1, "sequence", "name");
	void **box = box_new(L, SEQUENCE_CLASS, 1);

	lua_newtable(L);
	lua_setiuservalue(L, -2, SEQ_PROGRAMS);
	sequence_new(&h->mem, name, (struct sequence **)box);
	return 1;
}

/* The user's line, as long as the sequence lives. */
static struct srcloc line_of(lua_State *L, struct arena *a)
{
	const char *last = NULL;

	return here(L, a, &last);
}

/* core.sequence_tensor(sequence, role, name, dtype, {size, ...}) -> its number, from 1 */
static int sequence_tensor_l(lua_State *L)
{
	struct sequence *s = own_sequence(L, 1, "sequence");
	enum seq_role role = (enum seq_role)check_choice(L, 2, "sequence", "role", seq_role_names, 4);
	const char *what = seq_role_names[role], *name = check_text(L, 3, what, "name");
	enum dtype type = check_dtype(L, 4, what);
	int64_t dim[RANK_MAX];
	int rank, id;
	struct err e;

	if (lua_type(L, 5) != LUA_TTABLE)
		throw_type(L, 5, what, "list of sizes");
	rank = (int)lua_rawlen(L, 5);
	if (rank > RANK_MAX)
		throw_msg(L, "%s: '%s' has %d dimensions; %d at most", what, name, rank, RANK_MAX);
	for (int i = 0; i < rank; i++) {
		lua_rawgeti(L, 5, i + 1);
		dim[i] = check_integer(L, -1, what, "size", INT64_MIN, INT64_MAX);
		lua_pop(L, 1);
	}
	enter(L);
	raise_if(L, sequence_tensor(s, role, name, type, rank, dim, line_of(L, &s->arena), &id, &e), &e);
	lua_pushinteger(L, id + 1);
	return 1;
}

/* core.sequence_call(sequence, name, program, {{name, tensor, first, count, skip, take}, ...}), as struct seq_given */
static int sequence_call_l(lua_State *L)
{
	struct sequence *s = own_sequence(L, 1, "call");
	const char *name = check_text(L, 2, "call", "name");
	const struct program *p = check_program(L, 3, "call");
	int n = (int)lua_rawlen(L, 4);
	struct seq_given *given = lua_newuserdatauv(L, sizeof(*given) * (size_t)(n + 1), 0);
	struct err e;

	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, 4, i + 1);
		for (int k = 1; k <= 6; k++)
			lua_rawgeti(L, -k, k);
		given[i] = (struct seq_given){ lua_tostring(L, -6), (int)lua_tointeger(L, -5) - 1, lua_tointeger(L, -4),
			lua_tointeger(L, -3), lua_tointeger(L, -2), lua_tointeger(L, -1) };
		lua_pop(L, 7);
	}
	enter(L);
	/* Kept first, as that may run out of memory. What a call that fails leaves there, the next one replaces. */
	lua_getiuservalue(L, 1, SEQ_PROGRAMS);
	if (!s->finished) {
		lua_pushvalue(L, 3);
		lua_rawseti(L, -2, s->calls.n + 1);
	}
	raise_if(L, sequence_call(s, name, p, given, n, line_of(L, &s->arena), &e), &e);
	return 0;
}

/* core.sequence_finish(sequence) */
static int sequence_finish_l(lua_State *L)
{
	struct sequence *s = own_sequence(L, 1, "sequence");
	struct err e;

	enter(L);
	raise_if(L, sequence_finish(s, &e), &e);
	return 0;
}

RETURNS(sequence_name, lua_pushstring(L, check_sequence(L, 1, "name")->name))

static void push_sizes(lua_State *L, const struct seq_tensor *t)
{
	PUSH_LIST(L, i, t->rank, lua_pushinteger(L, t->dim[i]));
}

static void push_tensor(lua_State *L, const struct seq_tensor *t)
{
	lua_createtable(L, 0, 5);
	set_text(L, "name", t->name);
	set_text(L, "role", seq_role_names[t->role]);
	set_text(L, "dtype", dtype_name(t->type));
	set_integer(L, "bytes", (int64_t)t->bytes);
	push_sizes(L, t);
	lua_setfield(L, -2, "shape");
}

/* list of {name=, role=, dtype=, shape=, bytes=} */
static int sequence_tensors_l(lua_State *L)
{
	const struct sequence *s = check_sequence(L, 1, "tensors");

	PUSH_LIST(L, i, s->tensors.n, push_tensor(L, &s->tensors.v[i]));
	return 1;
}

int check_call(lua_State *L, int idx, const char *what, const struct sequence *s)
{
	const char *name = check_text(L, idx, what, "call"), **names;
	int call = sequence_find_call(s, name);

	if (call != NONE)
		return call;
	names = lua_newuserdatauv(L, sizeof(*names) * (size_t)s->calls.n, 0);
	for (int i = 0; i < s->calls.n; i++)
		names[i] = s->calls.v[i].name;
	throw_unknown(L, what, "call", name, names, s->calls.n);
}

/* sequence:program(call) -> the program with sizes that it runs */
static int sequence_program_l(lua_State *L)
{
	int call = check_call(L, 2, "program", check_sequence(L, 1, "program"));

	lua_getiuservalue(L, 1, SEQ_PROGRAMS);
	lua_rawgeti(L, -1, call + 1);
	return 1;
}

/* core.sequence_args(sequence, call) -> list of {own=, tensor=, offset=, count=, reads=, writes=}: tensor of the program, of the sequence,
 * and which elements of that */
static int sequence_args_l(lua_State *L)
{
	const struct sequence *s = check_sequence(L, 1, "sequence");
	const struct seq_call *c = &s->calls.v[check_call(L, 2, "sequence", s)];

	lua_newtable(L);
	for (int i = 0, n = 0; i < c->program->tensors.n; i++) {
		const struct seq_arg *x = &c->args[i];
		const struct seq_tensor *t = &s->tensors.v[x->tensor];

		if (t->call != NONE)
			continue;
		lua_createtable(L, 0, 7);
		set_text(L, "own", c->program->tensors.v[i].name);
		set_text(L, "tensor", t->name);
		set_integer(L, "offset", (int64_t)(x->offset * 8) / dtype_bits(t->type));
		set_integer(L, "count", (int64_t)(x->bytes * 8) / dtype_bits(t->type));
		set_bool(L, "reads", x->reads);
		set_bool(L, "writes", x->writes);
		lua_rawseti(L, -2, ++n);
	}
	return 1;
}

/* core.sequence_call_names(sequence) -> list, in order of the sequence */
static int call_names_l(lua_State *L)
{
	const struct sequence *s = check_sequence(L, 1, "sequence");

	PUSH_LIST(L, i, s->calls.n, lua_pushstring(L, s->calls.v[i].name));
	return 1;
}

/* core.sequence_edges(sequence) -> list of {from=, to=}, numbers of calls that depend on each other */
static int edges_l(lua_State *L)
{
	const struct sequence *s = check_sequence(L, 1, "sequence");

	lua_newtable(L);
	for (int i = 0; i < s->edges.n; i++) {
		lua_createtable(L, 0, 2);
		set_integer(L, "from", s->edges.v[i].from + 1);
		set_integer(L, "to", s->edges.v[i].to + 1);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* plans -------------------------------------------------------------------- */

BOX_GC(seqplan_gc, SEQPLAN_CLASS, seqplan_free)

/* One that is to be edited. */
static struct seqplan *own_plan(lua_State *L, const char *what)
{
	enter(L);
	return box_get(L, 1, SEQPLAN_CLASS, what);
}

const struct seqplan *check_seqplan(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, SEQPLAN_CLASS, what);
}

/* core.sequence_plan(sequence, device) */
static int seqplan_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct sequence *s = check_sequence(L, 1, "plan");
	const struct vdevice *d = check_device(L, 2, "plan");
	void **box = box_new(L, SEQPLAN_CLASS, 3);

	keep(L, -1, SEQPLAN_SEQUENCE, 1);
	keep(L, -1, SEQPLAN_DEVICE, 2);
	lua_createtable(L, s->calls.n, 0);		/* with space for all: to keep a plan never runs out of memory */
	lua_setiuservalue(L, -2, SEQPLAN_PLANS);
	seqplan_new(&h->mem, s, d, (struct seqplan **)box);
	return 1;
}

/* Push a copy of the plan at idx; sequence: where that is of which it is to be one at sizes, 0: it is of its own. */
static struct seqplan *push_copy(lua_State *L, int idx, int sequence, const char *what)
{
	struct host *h = enter(L);
	const struct seqplan *p = check_seqplan(L, idx, what);
	const struct sequence *s = sequence ? check_sequence(L, sequence, what) : NULL;
	int from, to, n = p->s->calls.n;
	void **box = box_new(L, SEQPLAN_CLASS, 3);

	to = lua_gettop(L);
	for (int slot = SEQPLAN_SEQUENCE; slot <= SEQPLAN_DEVICE; slot++) {
		lua_getiuservalue(L, idx, slot);
		lua_setiuservalue(L, to, slot);
	}
	lua_createtable(L, n, 0);
	lua_getiuservalue(L, idx, SEQPLAN_PLANS);
	from = lua_gettop(L);
	for (int i = 1; i <= n; i++) {
		lua_rawgeti(L, from, i);
		lua_rawseti(L, from - 1, i);
	}
	lua_settop(L, from - 1);
	lua_setiuservalue(L, to, SEQPLAN_PLANS);
	if (s) {
		keep(L, to, SEQPLAN_SEQUENCE, sequence);
		seqplan_at_sizes(&h->mem, p, s, (struct seqplan **)box);
	} else {
		seqplan_copy(&h->mem, p, (struct seqplan **)box);
	}
	return *box;
}

/* core.sequence_plan_at(sp, sequence) -> the plan for its sequence at sizes, which has the same tensors and calls; it cannot be edited */
static int seqplan_at_l(lua_State *L)
{
	const struct seqplan *p = check_seqplan(L, 1, "at_sizes");
	const struct sequence *s = check_sequence(L, 2, "at_sizes");

	if (s->tensors.n != p->s->tensors.n || s->calls.n != p->s->calls.n)
		throw_msg(L, "at_sizes: the sequence has %d tensors and %d calls at these sizes, and %d and %d where it was planned", s->tensors.n,
			s->calls.n, p->s->tensors.n, p->s->calls.n);
	push_copy(L, 1, 2, "at_sizes");
	return 1;
}

/* sp:copy() -> one that can be edited by itself */
static int seqplan_copy_l(lua_State *L)
{
	push_copy(L, 1, 0, "copy");
	return 1;
}

/* core.sequence_fixed(sp) -> a copy that cannot be edited; such a one itself */
static int seqplan_fixed_l(lua_State *L)
{
	lua_settop(L, 1);
	if (!check_seqplan(L, 1, "fixed")->fixed)
		push_copy(L, 1, 0, "fixed")->fixed = true;
	return 1;
}

/* sp:use(call, plan): a copy of it, which later edits of the plan do not change */
static int seqplan_use_l(lua_State *L)
{
	struct seqplan *p = own_plan(L, "use");
	int call = check_call(L, 2, "use", p->s);
	struct history *h;
	struct err e;

	check_plan(L, 3, "use");
	lua_getfield(L, 3, "copy");
	lua_pushvalue(L, 3);
	lua_call(L, 1, 1);
	h = check_plan(L, -1, "use");
	enter(L);
	raise_if(L, seqplan_use(p, call, history_plan(h), history_program(h), line_of(L, &p->arena), &e), &e);
	lua_getiuservalue(L, 1, SEQPLAN_PLANS);
	lua_pushvalue(L, -2);
	lua_rawseti(L, -2, call + 1);
	return 0;
}

/* sp:plan_of(call) -> a copy of its plan; nil if it has none */
static int seqplan_plan_of_l(lua_State *L)
{
	const struct seqplan *p = own_plan(L, "plan_of");
	int call = check_call(L, 2, "plan_of", p->s);

	lua_getiuservalue(L, 1, SEQPLAN_PLANS);
	if (lua_rawgeti(L, -1, call + 1) == LUA_TNIL)
		return 1;
	lua_getfield(L, -1, "copy");
	lua_insert(L, -2);
	lua_call(L, 1, 1);
	return 1;
}

/* The calls that the list at idx names; *n of them. */
static int *check_calls(lua_State *L, int idx, const char *what, const struct sequence *s, int *n)
{
	int *calls;

	if (lua_type(L, idx) != LUA_TTABLE)
		throw_type(L, idx, what, "list of calls");
	*n = (int)lua_rawlen(L, idx);
	calls = lua_newuserdatauv(L, sizeof(*calls) * (size_t)(*n + 1), 0);
	for (int i = 0; i < *n; i++) {
		lua_rawgeti(L, idx, i + 1);
		calls[i] = check_call(L, lua_gettop(L), what, s);
		lua_pop(L, 1);
	}
	return calls;
}

/* sp:order{call, ...} */
static int seqplan_order_l(lua_State *L)
{
	struct seqplan *p = own_plan(L, "order");
	int n, *calls = check_calls(L, 2, "order", p->s, &n);
	struct err e;

	enter(L);
	raise_if(L, seqplan_order(p, calls, n, line_of(L, &p->arena), &e), &e);
	return 0;
}

/* sp:launch(call, {stream=, early=, after={call, ...}}); what is not given stays */
static int seqplan_launch_l(lua_State *L)
{
	struct seqplan *p = own_plan(L, "launch");
	int call = check_call(L, 2, "launch", p->s), n = p->launches[call].waits.n, *waits = p->launches[call].waits.v;
	int64_t stream = p->launches[call].stream;
	bool early = p->launches[call].early;
	struct err e;

	lua_settop(L, 3);
	OPTIONS_CHECK(L, 3, "launch", "stream", "early", "after");
	option_integer(L, 3, "launch", "stream", 0, SEQ_STREAMS_MAX - 1, &stream);
	option_bool(L, 3, "launch", "early", &early);
	if (option_push(L, 3, "launch", "after", LUA_TTABLE))
		waits = check_calls(L, lua_gettop(L), "launch", p->s, &n);
	enter(L);
	raise_if(L, seqplan_launch(p, call, (int)stream, early, waits, n, line_of(L, &p->arena), &e), &e);
	return 0;
}

/* sp:arena([{tensor=offset, ...}[, {bytes=}]]); without offsets all temporaries are placed */
static int seqplan_arena_l(lua_State *L)
{
	struct seqplan *p = own_plan(L, "arena");
	int n = 0, *tensors;
	int64_t bytes = 0, *offsets;
	struct err e;

	lua_settop(L, 3);
	if (lua_isnil(L, 2) && !p->fixed) {
		seqplan_allocate(p);
		return 0;
	}
	if (lua_isnil(L, 2))			/* which says why not */
		raise_if(L, seqplan_at(p, NULL, NULL, 0, 0, line_of(L, &p->arena), &e), &e);
	if (lua_type(L, 2) != LUA_TTABLE)
		throw_type(L, 2, "arena", "table of offsets by temporary");
	OPTIONS_CHECK(L, 3, "arena", "bytes");
	option_integer(L, 3, "arena", "bytes", 0, (int64_t)1 << 50, &bytes);
	tensors = lua_newuserdatauv(L, sizeof(*tensors) * (size_t)(p->s->tensors.n + 1), 0);
	offsets = lua_newuserdatauv(L, sizeof(*offsets) * (size_t)(p->s->tensors.n + 1), 0);
	for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
		const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
		int tensor = name ? sequence_find_tensor(p->s, name) : NONE;

		if (tensor == NONE)
			throw_msg(L, "arena: there is no temporary '%s'", name ? name : luaL_typename(L, -2));
		tensors[n] = tensor;
		offsets[n++] = check_integer(L, -1, "arena", "offset", INT64_MIN, INT64_MAX);
	}
	enter(L);
	raise_if(L, seqplan_at(p, tensors, offsets, n, bytes, line_of(L, &p->arena), &e), &e);
	return 0;
}

static int seqplan_sequence_l(lua_State *L)
{
	check_seqplan(L, 1, "sequence");
	lua_getiuservalue(L, 1, SEQPLAN_SEQUENCE);
	return 1;
}

static int seqplan_device_l(lua_State *L)
{
	check_seqplan(L, 1, "device");
	lua_getiuservalue(L, 1, SEQPLAN_DEVICE);
	return 1;
}

/* {name = true} of the tensors that a call reads, or writes */
static void push_accessed(lua_State *L, const struct sequence *s, const struct seq_call *c, bool writes)
{
	lua_newtable(L);
	for (int i = 0, n = 0; i < c->program->tensors.n; i++) {
		if (!(writes ? c->args[i].writes : c->args[i].reads) || s->tensors.v[c->args[i].tensor].call != NONE)
			continue;
		lua_pushstring(L, s->tensors.v[c->args[i].tensor].name);
		lua_rawseti(L, -2, ++n);
	}
}

static void push_call(lua_State *L, const struct seqplan *p, int call)
{
	const struct seq_launch *l = &p->launches[call];
	const struct seq_call *c = &p->s->calls.v[call];

	lua_createtable(L, 0, 7);
	set_text(L, "name", c->name);
	set_text(L, "program", c->program->name);
	set_integer(L, "stream", l->stream);
	set_bool(L, "early", l->early);
	PUSH_LIST(L, i, l->waits.n, lua_pushstring(L, p->s->calls.v[l->waits.v[i]].name));
	lua_setfield(L, -2, "after");
	push_accessed(L, p->s, c, false);
	lua_setfield(L, -2, "reads");
	push_accessed(L, p->s, c, true);
	lua_setfield(L, -2, "writes");
	luaL_setmetatable(L, SEQ_CALL_RECORD);
}

/* list of calls in order of launches: {name=, program=, stream=, early=, after=, reads=, writes=} */
static int seqplan_calls_l(lua_State *L)
{
	const struct seqplan *p = check_seqplan(L, 1, "calls");

	PUSH_LIST(L, i, p->s->calls.n, push_call(L, p, p->order[i]));
	return 1;
}

/* {name=offset, ...} */
static int seqplan_offsets_l(lua_State *L)
{
	const struct seqplan *p = check_seqplan(L, 1, "offsets");

	lua_newtable(L);
	for (int i = 0; i < p->s->tensors.n; i++)
		if (p->offset[i] != NONE)
			set_integer(L, p->s->tensors.v[i].name, p->offset[i]);
	return 1;
}

RETURNS(seqplan_bytes, lua_pushinteger(L, check_seqplan(L, 1, "arena_bytes")->arena_bytes))

/* core.sequence_statements(sp) -> what is between the kernels, as text */
RETURNS_TEXT(statements, const struct seqplan *, check_seqplan(L, 1, "script"), seqplan_script(o, &text))

/* check -------------------------------------------------------------------- */

static void set_line(lua_State *L, const char *key, struct srcloc loc)
{
	if (!loc.file)
		return;
	lua_pushfstring(L, "%s:%d", loc.file, loc.line);
	lua_setfield(L, -2, key);
}

static void push_problem(lua_State *L, const struct sequence *s, const struct seq_problem *x)
{
	lua_createtable(L, 0, 9);
	set_text(L, "code", seq_problem_name(x->code));
	set_text(L, "message", x->message);
	set_text(L, "hint", x->hint);
	set_text(L, "call", x->call == NONE ? NULL : s->calls.v[x->call].name);
	set_text(L, "other", x->other == NONE ? NULL : s->calls.v[x->other].name);
	set_text(L, "tensor", x->tensor == NONE ? NULL : s->tensors.v[x->tensor].name);
	set_text(L, "other_tensor", x->other_tensor == NONE ? NULL : s->tensors.v[x->other_tensor].name);
	set_line(L, "location", x->loc);
	set_line(L, "other_location", x->other_loc);
	luaL_setmetatable(L, SEQ_PROBLEM_RECORD);
}

/* sp:check() -> ok, list of problems */
static int seqplan_check_l(lua_State *L)
{
	const struct seqplan *p = check_seqplan(L, 1, "check");
	struct stop stop = stop_of(host_of(L));
	struct arena *a = scratch_push(L);
	struct seq_problems problems;
	struct err e;

	enter(L);
	raise_if(L, seqplan_check(p, a, &stop, &problems, &e), &e);
	lua_pushboolean(L, problems.v.n == 0);
	PUSH_LIST(L, i, problems.v.n, push_problem(L, p->s, &problems.v.v[i]));
	luaL_setmetatable(L, PROBLEMS_CLASS);
	return 2;
}

void check_seqplan_legal(lua_State *L, const struct seqplan *p, const char *what)
{
	struct stop stop = stop_of(host_of(L));
	struct arena *a = scratch_push(L);
	struct seq_problems problems;
	struct err e;

	enter(L);
	raise_if(L, seqplan_check(p, a, &stop, &problems, &e), &e);
	if (problems.v.n)
		throw_msg(L, "%s: the plan of the sequence is not legal (%d problem%s; sp:check() lists them): %s: %s", what,
			problems.v.n, problems.v.n == 1 ? "" : "s", seq_problem_name(problems.v.v[0].code),
			problems.v.v[0].message);
}

/* core.check_sequence_plan(sp, what): raises unless it is legal */
static int check_l(lua_State *L)
{
	check_seqplan_legal(L, check_seqplan(L, 1, "check"), check_text(L, 2, "check", "what"));
	return 0;
}

/* core.sequence_plans(sp) -> list of the plans of its calls, in order of the sequence, which are not to be edited */
static int plans_l(lua_State *L)
{
	check_seqplan(L, 1, "plans");
	lua_getiuservalue(L, 1, SEQPLAN_PLANS);
	return 1;
}

/* core.sequence_warm(sp, call) -> list of the tensors of the call's program that are in L2 when it starts */
static int warm_l(lua_State *L)
{
	const struct seqplan *p = check_seqplan(L, 1, "simulate");
	int call = check_call(L, 2, "simulate", p->s);
	const struct program *own = p->s->calls.v[call].program;
	const bool *warm;

	enter(L);
	warm = seqplan_warm(scratch_push(L), p, call);
	lua_newtable(L);
	for (int i = 0, n = 0; i < own->tensors.n; i++) {
		if (!warm[i] || own->tensors.v[i].role == TENSOR_TEMP)
			continue;
		lua_pushstring(L, own->tensors.v[i].name);
		lua_rawseti(L, -2, ++n);
	}
	return 1;
}

/* timelines ---------------------------------------------------------------- */

BOX_GC(seqline_gc, SEQLINE_CLASS, seqline_free)

const struct seqline *check_seqline(lua_State *L, int idx, const char *what)
{
	return box_get(L, idx, SEQLINE_CLASS, what);
}

/* core.sequence_timeline(sp, {timeline, ...}[, begin, end]) of the calls in order of the sequence; measured with lists of seconds */
static int seqline_new_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct seqplan *p = check_seqplan(L, 1, "simulate");
	int n = p->s->calls.n;
	const struct timeline **lines;
	double *times[2] = { NULL, NULL };
	void **box;

	lua_settop(L, 4);
	lines = lua_newuserdatauv(L, sizeof(const struct timeline *) * (size_t)n, 0);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, 2, i + 1);
		lines[i] = check_timeline(L, -1, "simulate");
		lua_pop(L, 1);
	}
	for (int k = 0; k < 2 && lua_istable(L, 3); k++) {
		times[k] = lua_newuserdatauv(L, sizeof(double) * (size_t)n, 0);
		for (int i = 0; i < n; i++) {
			lua_rawgeti(L, 3 + k, i + 1);
			times[k][i] = lua_tonumber(L, -1);
			lua_pop(L, 1);
		}
	}
	box = box_new(L, SEQLINE_CLASS, 2);
	keep(L, -1, SEQLINE_PLAN, 1);
	keep(L, -1, SEQLINE_TIMELINES, 2);
	if (times[0])
		seqline_measured(&h->mem, p, lines, times[0], times[1], (struct seqline **)box);
	else
		seqline_simulate(&h->mem, p, lines, (struct seqline **)box);
	return 1;
}

static int seqline_plan_l(lua_State *L)
{
	check_seqline(L, 1, "plan");
	lua_getiuservalue(L, 1, SEQLINE_PLAN);
	return 1;
}

static void push_span(lua_State *L, const struct seqline *l, int i, int timelines)
{
	const struct seq_span *s = &l->spans[i];
	const struct sequence *of = l->plan->s;

	lua_createtable(L, 0, 10);
	set_text(L, "name", of->calls.v[s->call].name);
	set_integer(L, "stream", s->stream);
	set_real(L, "begins", s->begin);
	set_real(L, "ends", s->end);
	set_real(L, "seconds", s->end - s->begin);
	set_real(L, "gap", s->begin - s->launch);
	set_text(L, "after", s->after == NONE ? NULL : of->calls.v[s->after].name);
	set_real(L, "flops", s->flops);
	set_real(L, "bytes", s->bytes);
	lua_rawgeti(L, timelines, s->call + 1);
	lua_setfield(L, -2, "timeline");
}

/* list of {name=, stream=, begins=, ends=, seconds=, gap=, after=, flops=, bytes=, timeline=}, in order of launches */
static int seqline_kernels_l(lua_State *L)
{
	const struct seqline *l = check_seqline(L, 1, "kernels");

	lua_settop(L, 1);
	lua_getiuservalue(L, 1, SEQLINE_TIMELINES);
	PUSH_LIST(L, i, l->n, push_span(L, l, i, 2));
	return 1;
}

/* A number that is 0 where it is not known. */
static void push_known(lua_State *L, double x)
{
	if (x > 0)
		lua_pushnumber(L, x);
	else
		lua_pushnil(L);
}

RETURNS(seqline_seconds, lua_pushnumber(L, check_seqline(L, 1, "seconds")->seconds))
RETURNS(seqline_idle, lua_pushnumber(L, check_seqline(L, 1, "idle")->idle))
RETURNS(seqline_flops, lua_pushnumber(L, check_seqline(L, 1, "flops")->flops))
RETURNS(seqline_bytes, lua_pushnumber(L, check_seqline(L, 1, "bytes")->bytes))
RETURNS(seqline_clock, push_known(L, check_seqline(L, 1, "clock_hz")->clock_hz))
RETURNS(seqline_power, push_known(L, check_seqline(L, 1, "power")->watts))
RETURNS(seqline_is_measured, lua_pushboolean(L, check_seqline(L, 1, "measured")->measured))

void lua_open_sequence(lua_State *L)
{
	static const luaL_Reg methods[] = { { "program", sequence_program_l }, { NULL, NULL } };
	static const luaL_Reg fields[] = { { "name", sequence_name_l }, { "tensors", sequence_tensors_l }, { NULL, NULL } };
	static const luaL_Reg meta[] = { { "__gc", sequence_gc_l }, { NULL, NULL } };
	static const luaL_Reg plan_methods[] = { { "use", seqplan_use_l }, { "plan_of", seqplan_plan_of_l }, { "order", seqplan_order_l },
		{ "launch", seqplan_launch_l }, { "arena", seqplan_arena_l }, { "copy", seqplan_copy_l }, { "check", seqplan_check_l }, { NULL, NULL } };
	static const luaL_Reg plan_fields[] = { { "sequence", seqplan_sequence_l }, { "device", seqplan_device_l },
		{ "calls", seqplan_calls_l }, { "offsets", seqplan_offsets_l }, { "arena_bytes", seqplan_bytes_l }, { NULL, NULL } };
	static const luaL_Reg plan_meta[] = { { "__gc", seqplan_gc_l }, { NULL, NULL } };
	static const luaL_Reg line_fields[] = { { "plan", seqline_plan_l }, { "kernels", seqline_kernels_l },
		{ "seconds", seqline_seconds_l }, { "idle", seqline_idle_l }, { "flops", seqline_flops_l }, { "bytes", seqline_bytes_l },
		{ "clock_hz", seqline_clock_l }, { "power", seqline_power_l }, { "measured", seqline_is_measured_l }, { NULL, NULL } };
	static const luaL_Reg line_meta[] = { { "__gc", seqline_gc_l }, { NULL, NULL } };
	static const luaL_Reg functions[] = { { "sequence", sequence_new_l }, { "sequence_tensor", sequence_tensor_l },
		{ "sequence_call", sequence_call_l }, { "sequence_finish", sequence_finish_l }, { "sequence_args", sequence_args_l },
		{ "sequence_plan", seqplan_new_l }, { "check_sequence_plan", check_l }, { "sequence_warm", warm_l }, { "sequence_plans", plans_l }, { "sequence_fixed", seqplan_fixed_l }, { "sequence_plan_at", seqplan_at_l },
		{ "sequence_call_names", call_names_l }, { "sequence_edges", edges_l }, { "sequence_statements", statements_l }, { "sequence_timeline", seqline_new_l },
		{ NULL, NULL } };

	class_new(L, &(struct class_def){ SEQUENCE_CLASS, methods, fields, meta });
	class_new(L, &(struct class_def){ SEQPLAN_CLASS, plan_methods, plan_fields, plan_meta });
	class_new(L, &(struct class_def){ SEQLINE_CLASS, NULL, line_fields, line_meta });
	record_class(L, SEQ_PROBLEM_RECORD, "problem", problem_fields, LEN(problem_fields));
	record_class(L, SEQ_CALL_RECORD, "call", call_fields, LEN(call_fields));
	luaL_setfuncs(L, functions, 0);
}
