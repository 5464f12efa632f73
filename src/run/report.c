#include "run/run.h"

#include <string.h>

/* The sTask in whose block a line of the text is: blocks begin with its name. */
static int task_at(const struct built *b, const struct source *s, int line, struct arena *a)
{
	const char *at = s->text.text, *end, *name;
	int task = NONE, found;

	for (; line > 0; line--, at = end + 1) {
		end = strchr(at, '\n');
		if (!end)
			return NONE;
		name = strstr(arena_strf(a, "%.*s", (int)(end - at), at), "{\t/* ");
		if (!name)
			continue;
		name += 5;
		found = graph_find_task(b->graph, arena_strf(a, "%.*s", (int)strcspn(name, "|,\n"), name));
		task = found == NONE ? task : found;
	}
	return task;
}

static void add_problem(const struct built *b, struct arena *a, struct problems *out, struct problem pr)
{
	int entry = pr.task == NONE ? NONE : plan_entry_of(b->plan, pr.task);

	pr.other = pr.edge = NONE;
	pr.loc = entry == NONE ? NOWHERE : b->plan->entries.v[entry].loc;
	VEC_PUSH(a, &out->v, pr);
}

/* The compiler tells no line: then it is about all products of the kernel. */
static int first_product(const struct built *b, int phase)
{
	for (int i = 0; i < b->graph->tasks.n; i++)
		if (b->graph->tasks.v[i].phase == phase && b->graph->tasks.v[i].kind == TASK_MMA)
			return i;
	return NONE;
}

static void add_serialized(const struct built *b, int phase, const struct compile_diag *d,
	struct arena *a, struct problems *out)
{
	int task = task_at(b, &b->phases[phase].source, d->line, a);
	const char *at = "somewhere, perhaps at";

	if (task == NONE)
		task = first_product(b, phase);
	else
		at = "at";
	for (int i = 0; i < out->v.n; i++)
		if (out->v.v[i].code == PROBLEM_SERIALIZED && out->v.v[i].task == task)
			return;
	add_problem(b, a, out, (struct problem){ .code = PROBLEM_SERIALIZED, .task = task,
		.message = arena_strf(a, "the compiler makes matrix products wait for each other, %s "
			"'%s': %s", at, task == NONE ? "" : b->graph->tasks.v[task].name, d->text),
		.hint = "take fewer versions of register values, a smaller tile, or more warps" });
}

/* Lanes that compute then have no more registers than those that copy, so nothing that the plan gives them helps. */
static void add_ungranted(const struct built *b, int phase, const struct compile_diag *d, struct arena *a, struct problems *out)
{
	add_problem(b, a, out, (struct problem){ .code = PROBLEM_UNGRANTED, .task = NONE,
		.message = arena_strf(a, "the compiler leaves all lanes of '%s' the same registers, as it takes more for one than "
			"its lane is given: %s", b->phases[phase].source.entry, d->text),
		.hint = "give the lanes that copy more registers, plan:lane(name, {registers=40}), or none (false), or leave some to "
			"the compiler, plan:lane(name, {spare=32}); a smaller tile" });
}

static void add_spills(const struct built *b, const struct compile_use *u, struct arena *a, struct problems *out)
{
	int bytes = u->spill_stores + u->spill_loads;

	if (bytes)
		add_problem(b, a, out, (struct problem){ .code = PROBLEM_SPILLS, .task = NONE,
			.message = arena_strf(a, "'%s' keeps registers in memory: a thread stores "
				"%d bytes and loads %d", u->entry, u->spill_stores, u->spill_loads),
			.hint = "leave registers to the compiler, plan:lane(name, {spare=32}), split the tile over more lanes, take "
				"a smaller tile, or give the lanes more warps; mr.search with compile=true takes a plan whose "
				"kernel does not" });
}

void built_problems(const struct built *b, struct arena *a, struct problems *out)
{
	memset(out, 0, sizeof(*out));
	for (int i = 0; i < b->nphases; i++) {
		const struct compile_result *r = &b->phases[i].binary;

		for (int k = 0; k < r->ndiags; k++)
			if (r->diags[k].serialized)
				add_serialized(b, i, &r->diags[k], a, out);
		for (int k = 0; k < r->ndiags; k++)
			if (r->diags[k].ungranted) {
				add_ungranted(b, i, &r->diags[k], a, out);
				break;
			}
		for (int k = 0; k < r->nuses; k++)
			add_spills(b, &r->uses[k], a, out);
	}
}
