/* k:export: kernels as files. */
#include "lkernel.h"

#include <string.h>

#include "run/export.h"

/* Raises unless it can be files. */
static const struct built *check_exportable(lua_State *L, int idx)
{
	const struct built *b = check_built(L, idx, "export");

	if (b->traced)
		throw_msg(L, "export: a traced kernel needs memory for its stamps: export the kernel that was traced");
	for (int i = 0; i < b->graph->program->tensors.n; i++)
		if (b->backend == BACKEND_HOST && b->graph->program->tensors.v[i].by_address)
			throw_msg(L,
				"export: input '%s' is given by addresses, which the program that is exported for the CPU does not "
				"make; compile for the GPU, or declare it without pointers",
					b->graph->program->tensors.v[i].name);
	for (int i = 0; i < b->graph->program->tensors.n; i++)
		for (int k = 0; b->graph->program->tensors.v[i].by_address && k < b->graph->program->axes.n; k++)
			if (b->graph->program->axes.v[k].multiple)
				throw_msg(L,
					"export: input '%s' is given by addresses, which needs sizes that are known now, and that of '%s' "
					"is known at launch", b->graph->program->tensors.v[i].name,
						b->graph->program->axes.v[k].name);
	return b;
}

/* The pairs of lists, {NAME, NAME, ...} at idx. */
static void add_pairs(lua_State *L, int idx, bool gradient, struct arena *a, struct export_torch_kernel *x,
	struct export_meaning *pairs)
{
	for (lua_Integer i = 1; i < (lua_Integer)lua_rawlen(L, idx); i += 2) {
		lua_rawgeti(L, idx, i);
		lua_rawgeti(L, idx, i + 1);
		pairs[x->npairs++] = (struct export_meaning){ arena_strdup(a, lua_tostring(L, -2)),
			arena_strdup(a, lua_tostring(L, -1)), gradient };
		lua_pop(L, 2);
	}
}

/* core.export(kernel, dir, name or nil[, true[, backward[, gradients, saved]]]) -> list of the paths written. With true: as a
 * PyTorch operator; backward: the kernel of its gradients; the lists: pairs of names, one behind the other. */
static int export_l(lua_State *L)
{
	const char *dir = check_text(L, 2, "export", "folder");
	const char *name = lua_isnoneornil(L, 3) ? NULL : check_text(L, 3, "export", "name");
	const struct built *b = check_exportable(L, 1);
	struct export_torch_kernel torch = { .kernel = b,
		.backward = lua_isnoneornil(L, 5) ? NULL : check_exportable(L, 5) };
	struct export_meaning *pairs;
	struct export_set set;
	char *path, *end;
	struct arena *a;
	struct err e;

	lua_settop(L, 7);
	if (lua_toboolean(L, 4) && (b->backend == BACKEND_HOST || (torch.backward && torch.backward->backend != b->backend)))
		throw_msg(L, "export: a PyTorch operator is made of kernels for the GPU, of one target");
	if (!*dir)
		throw_msg(L, "export: the folder has no name; \".\" is this one");
	if (name && !*name)
		throw_msg(L, "export: the name is empty");
	a = scratch_push(L);
	enter(L);
	for (end = path = arena_strdup(a, dir), end += strlen(path); end > path + 1 && end[-1] == '/';)
		*--end = '\0';
	torch.pairs = pairs = ARENA_ARRAY(a, lua_rawlen(L, 6) + lua_rawlen(L, 7) + 1, struct export_meaning);
	if (torch.backward) {
		add_pairs(L, 6, true, a, &torch, pairs);
		add_pairs(L, 7, false, a, &torch, pairs);
	}
	if (lua_toboolean(L, 4))
		raise_if(L, export_gpu_torch(&torch, name, a, &set, &e), &e);
	else if (b->backend == BACKEND_HOST)
		export_host(b, name, a, &set);
	else if (export_gpu(b, name, a, &set, &e))
		throw_err(L, &e);
	raise_if(L, export_write(&set, path, a, &e), &e);
	PUSH_LIST(L, i, set.files.n, lua_pushfstring(L, "%s/%s", path, set.files.v[i].name));
	return 1;
}

static const char *text_of(lua_State *L, int idx, const char *key, struct arena *a)
{
	const char *text;

	lua_getfield(L, idx, key);
	text = arena_strdup(a, lua_tostring(L, -1));
	lua_pop(L, 1);
	return text;
}

/* The tensor {name=, type=, role=, shape=, size_of=} on top of the stack; size_of: by dimension, from 1, the number of a size, from 1. */
static struct export_torch_tensor torch_tensor_of(lua_State *L, struct arena *a)
{
	struct export_torch_tensor t = { .name = text_of(L, -1, "name", a), .type = text_of(L, -1, "type", a) };
	const char *role = text_of(L, -1, "role", a);

	t.role = !strcmp(role, "input") ? EXPORT_INPUT : !strcmp(role, "state") ? EXPORT_STATE : EXPORT_OUTPUT;
	lua_getfield(L, -1, "shape");
	t.rank = (int)lua_rawlen(L, -1);
	for (int d = 0; d < t.rank; d++) {
		lua_rawgeti(L, -1, d + 1);
		t.shape[d] = lua_tointeger(L, -1);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	lua_getfield(L, -1, "size_of");
	for (int d = 0; d < t.rank; d++) {
		t.size_of[d] = lua_rawgeti(L, -1, d + 1) == LUA_TNIL ? NONE : (int)lua_tointeger(L, -1) - 1;
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return t;
}

static int64_t integer_of(lua_State *L, const char *key)
{
	int64_t n;

	lua_getfield(L, -1, key);
	n = lua_tointeger(L, -1);
	lua_pop(L, 1);
	return n;
}

/* core.export_torch_sequence(dir, {name=, about=, header=, launcher=, temporaries=}, {kernel, ...}, {name, ...}, {tensor, ...},
 * {{name=, max=, multiple=}, ...}) -> list of the paths written. The names are those of the kernels; then tensors, and sizes that a launch gives. */
static int torch_sequence_l(lua_State *L)
{
	struct export_torch_sequence x = { .nkernels = (int)lua_rawlen(L, 3), .ntensors = (int)lua_rawlen(L, 5),
		.nsizes = (int)lua_rawlen(L, 6) };
	struct export_torch_tensor *tensors;
	struct export_torch_size *sizes;
	const struct built **kernels;
	struct export_set set;
	const char **names;
	struct arena *a;
	char *path, *end;
	struct err e;

	lua_settop(L, 6);
	a = scratch_push(L);
	enter(L);
	x.sizes = sizes = ARENA_ARRAY(a, x.nsizes + 1, struct export_torch_size);
	for (int i = 0; i < x.nsizes; i++) {
		lua_rawgeti(L, 6, i + 1);
		sizes[i] = (struct export_torch_size){ text_of(L, -1, "name", a), integer_of(L, "max"), integer_of(L, "multiple") };
		lua_pop(L, 1);
	}
	x.kernels = kernels = ARENA_ARRAY(a, x.nkernels + 1, const struct built *);
	x.names = names = ARENA_ARRAY(a, x.nkernels + 1, const char *);
	x.tensors = tensors = ARENA_ARRAY(a, x.ntensors + 1, struct export_torch_tensor);
	for (int i = 0; i < x.nkernels; i++) {
		lua_rawgeti(L, 3, i + 1);
		lua_rawgeti(L, 4, i + 1);
		kernels[i] = check_exportable(L, lua_gettop(L) - 1);
		names[i] = arena_strdup(a, lua_tostring(L, -1));
		lua_pop(L, 2);
	}
	for (int i = 0; i < x.ntensors; i++) {
		lua_rawgeti(L, 5, i + 1);
		tensors[i] = torch_tensor_of(L, a);
		lua_pop(L, 1);
	}
	x.name = text_of(L, 2, "name", a);
	x.about = text_of(L, 2, "about", a);
	x.header = text_of(L, 2, "header", a);
	x.launcher = text_of(L, 2, "launcher", a);
	lua_getfield(L, 2, "temporaries");
	x.temporaries = lua_tointeger(L, -1);
	lua_pop(L, 1);
	for (end = path = arena_strdup(a, lua_tostring(L, 1)), end += strlen(path); end > path + 1 && end[-1] == '/';)
		*--end = '\0';
	raise_if(L, export_gpu_torch_sequence(&x, a, &set, &e), &e);
	raise_if(L, export_write(&set, path, a, &e), &e);
	PUSH_LIST(L, i, set.files.n, lua_pushfstring(L, "%s/%s", path, set.files.v[i].name));
	return 1;
}

/* core.exported_early(kernel) -> has its launcher two functions, of which one launches early, NAME_launch and NAME_launch_late? */
static int early_l(lua_State *L)
{
	lua_pushboolean(L, export_launches_early(check_built(L, 1, "export")));
	return 1;
}

/* core.export_template(name) -> the text of a file of src/run/export */
static int template_l(lua_State *L)
{
	lua_pushstring(L, export_template_text(check_text(L, 1, "export", "name")));
	return 1;
}

/* core.torch_type(dtype) -> "bfloat16"; of elements of 4 bits that of a byte, which has two */
static int torch_type_l(lua_State *L)
{
	lua_pushstring(L, torch_type(check_dtype(L, 1, "export")));
	return 1;
}

/* core.dtype_bits(dtype) -> of an element in memory */
static int dtype_bits_l(lua_State *L)
{
	lua_pushinteger(L, dtype_bits(check_dtype(L, 1, "export")));
	return 1;
}

void lua_open_export(lua_State *L)
{
	set_function(L, "export_template", template_l);
	set_function(L, "torch_type", torch_type_l);
	set_function(L, "dtype_bits", dtype_bits_l);
	set_function(L, "export", export_l);
	set_function(L, "export_torch_sequence", torch_sequence_l);
	set_function(L, "exported_early", early_l);
}
