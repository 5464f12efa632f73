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

/* core.exported_early(kernel) -> has its launcher two functions, of which one launches early, NAME_launch and NAME_launch_late? */
static int early_l(lua_State *L)
{
	lua_pushboolean(L, export_launches_early(check_built(L, 1, "export")));
	return 1;
}

void lua_open_export(lua_State *L)
{
	set_function(L, "export", export_l);
	set_function(L, "exported_early", early_l);
}
