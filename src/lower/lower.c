/* From a plan to a kernel: with or without verify, and with one of several layouts of fragments. */
#include "lower/lower.h"

#include "lower/passes.h"
#include "lower/refine.h"

#include <string.h>

/* How values are spread over threads: as matrix instructions have them; each row over a warp; each row over all warps
 * of its lane, which is the group of warps with one role. */
enum spread_by { BY_BLOCKS, BY_WARP, BY_LANE, BY_COUNT };

enum { PAIR_LEAST = 2, PAIR_MOST = 8, VECTOR_BYTES = 16, LAYOUTS_MOST = 1 + 2 * 3 };

/* A layout of fragments. `pair`: neighbouring columns of a thread, where the target leaves it open. `form`: BY_BLOCKS, an
 * instruction of the target as whose sums values lie; NULL: as the target has them. */
struct layout_choice {
	enum spread_by by;
	int pair;
	const struct matrix_instruction *form;
};

/* How a kernel is made: without verify; how values are spread. */
struct lower_options {
	bool unproven;
	struct layout_choice layout;
	const struct stop *stop;
};

/* The warps of the lanes that compute in the phase; 0: they have different numbers. */
static int computing_warps(const struct plan *p, int phase)
{
	int warps = 0;

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &p->graph->tasks.v[p->entries.v[i].task];
		int n = lane_warps(p, p->entries.v[i].lane);

		if (s->phase != phase || s->kind != TASK_COMPUTE)
			continue;
		if (warps && n != warps)
			return 0;
		warps = n;
	}
	return warps;
}

/* The target's layout by rows, each of a warp or of so many, in which a thread has `pair` neighbours. */
static struct frag_layout layout_by_rows(const struct target *t, int pair, int warps)
{
	struct frag_layout l = t->lines;

	l.pair = l.col.step = pair;
	l.cols = l.deep = t->warp * pair * warps;
	l.col.mod = t->warp * warps;
	l.every_warp = l.across_warps = warps > 1;
	return l;
}

static struct frag_layout layout_of(const struct plan *p, int phase, struct layout_choice x)
{
	const struct target *t = target_of(p->device);

	return x.form && x.form->sums ? *x.form->sums : x.by == BY_BLOCKS ? t->frag :
		layout_by_rows(t, x.pair, x.by == BY_WARP ? 1 : computing_warps(p, phase));
}

/* The target with the instructions of one form alone. */
static void keep_form(struct arena *a, struct target *t, const struct matrix_instruction *form)
{
	struct matrix_instruction *kept = ARENA_ARRAY(a, t->nmatrix, struct matrix_instruction);
	int n = 0;

	for (int i = 0; i < t->nmatrix; i++)
		if (t->matrix[i].sums == form->sums)
			kept[n++] = t->matrix[i];
	t->matrix = kept;
	t->nmatrix = n;
}

static enum err_code lower(struct mem *mem, const struct plan *p, int phase, struct lower_options how,
	struct kernel **out, enum err_code *wrong, struct refusal *why, struct err *e)
{
	const struct target *t = target_of(p->device);
	struct target *other;
	enum err_code code;

	*wrong = OK;
	*out = ARENA_OWNER(mem, struct kernel);
	(*out)->plan = p;
	(*out)->target = t;
	if (how.layout.by != BY_BLOCKS || how.layout.form) {
		(*out)->target = other = arena_copy(&(*out)->arena, t, 1, sizeof(*t));
		other->frag = layout_of(p, phase, how.layout);
		if (how.layout.form)
			keep_form(&(*out)->arena, other, how.layout.form);
	}
	(*out)->phase = phase;
	(*out)->unproven = how.unproven;
	(*out)->stop = how.stop;
	(*out)->cluster = 1;
	code = lower_refined(*out, wrong, e);
	*why = (*out)->refusal;
	if (stop_asked(how.stop))	/* what ended early for it may have left anything */
		code = err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
	if (code) {
		kernel_free(*out);
		*out = NULL;
	}
	return code;
}

enum err_code lower_unchecked(struct mem *mem, const struct plan *p, int phase, struct kernel **out, struct err *e)
{
	enum err_code wrong;
	struct refusal why;

	return lower(mem, p, phase, (struct lower_options){ 0 }, out, &wrong, &why, e);
}

static bool has_products(const struct plan *p, int phase)
{
	for (int i = 0; i < p->graph->tasks.n; i++)
		if (p->graph->tasks.v[i].phase == phase && p->graph->tasks.v[i].work.kind == WORK_MMA)
			return true;
	return false;
}

static enum err_code lower_checked(struct mem *mem, const struct plan *p, int phase, struct lower_options how,
	struct kernel **out, struct refusal *why, struct err *e)
{
	enum err_code wrong, code = lower(mem, p, phase, how, out, &wrong, why, e);

	if (!code && wrong) {
		kernel_free(*out);
		*out = NULL;
	}
	return code ? code : wrong;
}

static bool is_about_registers(const struct refusal *why)
{
	return why->code == PROBLEM_REGISTERS || why->code == PROBLEM_LAYOUT;
}

/* Words of a thread for a value of the shape, in a lane of so many warps. */
static int64_t words_of(const struct shape2 *v, const struct frag_layout *l, int warps)
{
	int64_t rows = v->nrow ? ceil_div(v->rows, l->rows * (l->every_warp ? 1 : warps)) * l->halves : 1;

	return v->ncol ? rows * ceil_div(v->cols, l->cols) * l->pair : rows;
}

/* Columns that a thread can read at once of the narrowest tensor that the phase loads or stores. */
static int widest_pair(const struct plan *p, int phase)
{
	const struct program *g = p->graph->program;
	int64_t bits = VECTOR_BYTES * 8 / PAIR_LEAST;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = &g->nodes.v[i];

		if ((n->op == OP_LOAD || n->op == OP_STORE) && n->task != NONE && g->tasks.v[n->task].phase == phase)
			bits = min_i64(bits, max_i64(8, dtype_bits(g->tensors.v[n->ref].type)));
	}
	return (int)max_i64(PAIR_LEAST, min_i64(PAIR_MOST, VECTOR_BYTES * 8 / bits));
}

/* Words of a thread for the largest value of a kernel's phase. */
static int64_t most_words(const struct kernel *k, const struct layout_choice *x)
{
	const struct frag_layout l = layout_of(k->plan, k->phase, *x);
	const struct program *g = k->plan->graph->program;
	int warps = computing_warps(k->plan, k->phase);
	int64_t most = 0;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = &g->nodes.v[i];

		/* what has an axis of a window is in shared memory */
		if (n->task != NONE && g->tasks.v[n->task].phase == k->phase && !any_of_window(g, n->axis, n->naxes))
			most = max_i64(most, words_of(&k->node_shape[i], &l, warps));
	}
	return most;
}

/* What a thread exchanges with others in the reductions of a kernel's phase: words by shuffles, and through shared memory. */
static int64_t words_exchanged(const struct kernel *k, const struct layout_choice *x)
{
	const struct frag_layout l = layout_of(k->plan, k->phase, *x);
	const struct program *g = k->plan->graph->program;
	int warps = computing_warps(k->plan, k->phase);
	int64_t sum = 0;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = &g->nodes.v[i];
		const struct shape2 *v;
		bool along_rows = false;
		int threads;

		if (n->task == NONE || g->tasks.v[n->task].phase != k->phase || op_class(n->op) != CLASS_REDUCE)
			continue;
		v = &k->node_shape[n->arg[0]];
		for (int r = 0; r < v->nrow; r++)
			along_rows |= v->row[r] == n->ref;
		threads = along_rows ? l.row.mod : (int)min_i64(l.col.mod, target_of(k->plan->device)->warp);
		sum += words_of(&k->node_shape[i], &l, warps) *
			(log2_of(threads) + (warps > 1 && along_rows != l.across_warps ? 1 + warps : 0));
	}
	return sum;
}

/* What a thread reads of windows that it would not if it had neighbouring rows: the taps of one element are then those of the next, which
 * compilers see. A layout in which warps share rows gives a thread all rows of its columns. */
static int64_t words_read_apart(const struct kernel *k, const struct layout_choice *x)
{
	const struct frag_layout l = layout_of(k->plan, k->phase, *x);
	const struct program *g = k->plan->graph->program;
	int64_t sum = 0;

	for (int i = 0; i < g->nodes.n && !l.across_warps; i++) {
		const struct node *n = &g->nodes.v[i];
		bool along_rows = false;

		if (n->op != OP_AT || n->task == NONE || g->tasks.v[n->task].phase != k->phase || !g->axes.v[n->ref].of_window)
			continue;
		for (int r = 0; r < k->node_shape[i].nrow; r++)
			along_rows |= index_uses(&n->index[0], k->node_shape[i].row[r]);
		sum += along_rows ? words_of(&k->node_shape[i], &l, computing_warps(k->plan, k->phase)) : 0;
	}
	return sum;
}

/* The layouts of a phase without products, that with the fewest words of a thread for its largest value first, and of
 * those with as many that in which reductions exchange least, and rows of windows are in one thread.
 * A thread has more neighbours where that takes no more
 * words. Rows over all warps of a lane need the same number of warps, more than one, in all lanes that compute. Returns
 * how many there are. */
static int order_layouts(struct mem *mem, const struct plan *p, int phase, struct layout_choice *order)
{
	int warps = computing_warps(p, phase), kinds = warps > 1 ? BY_COUNT : BY_COUNT - 1, n = 0;
	struct kernel *k = ARENA_OWNER(mem, struct kernel);
	int64_t most[LAYOUTS_MOST], exchanged[LAYOUTS_MOST];
	struct err ignored;
	bool known;

	k->plan = p;
	k->phase = phase;
	known = warps && !lower_shapes(k, &ignored);
	for (int by = 0; by < kinds; by++) {
		int64_t wider = INT64_MAX;

		for (int pair = by != BY_BLOCKS && known ? widest_pair(p, phase) : PAIR_LEAST; pair >= PAIR_LEAST; pair /= 2) {
			const struct layout_choice x = { (enum spread_by)by, pair, NULL };
			int64_t words = known ? most_words(k, &x) : 0, moved = known ? words_exchanged(k, &x) + words_read_apart(k, &x) : 0;
			int at = n;

			if (words >= wider)
				continue;
			wider = words;
			for (n++; at > 0 && (most[at - 1] > words || (most[at - 1] == words && exchanged[at - 1] > moved)); at--) {
				most[at] = most[at - 1];
				exchanged[at] = exchanged[at - 1];
				order[at] = order[at - 1];
			}
			most[at] = words;
			exchanged[at] = moved;
			order[at] = x;
		}
	}
	kernel_free(k);
	return n;
}

/* Registers of a thread for the sums of entry's product; 0 if an earlier entry adds to the same. */
static int64_t sums_of_entry(const struct plan *p, int entry)
{
	const struct stask *s = &p->graph->tasks.v[p->entries.v[entry].task];

	for (int i = 0; i < entry; i++) {
		const struct stask *x = &p->graph->tasks.v[p->entries.v[i].task];

		if (x->work.kind == WORK_MMA && x->writes.n && s->writes.n && x->writes.v[0] == s->writes.v[0])
			return 0;
	}
	return (int64_t)(s->work.m * s->work.n) / ((int64_t)lane_warps(p, p->entries.v[entry].lane) * p->device->warp);
}

/* Passes that the phase's products take by instructions of this form, and the number of instructions. False: not all products
 * of the phase have such an instruction. One with another layout than the target's must make the results without padding,
 * as the plan is counted with the target's, and their sums must not be too many registers. */
static bool cost_of_form(const struct plan *p, int phase, const struct matrix_instruction *form, double *passes, double *count)
{
	const struct target *t = target_of(p->device);
	int64_t sums[LANES_MAX] = { 0 };

	*passes = *count = 0;
	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *entry = &p->entries.v[i];
		const struct stask *s = &p->graph->tasks.v[entry->task];
		const struct seu *unit = &p->device->seu[entry->seu];
		const struct matrix_instruction *x = NULL;
		int64_t rows, cols, parts, n;

		if (s->phase != phase || s->work.kind != WORK_MMA || unit->kind != SEU_MATRIX)
			continue;
		for (int j = 0; j < t->nmatrix && !x; j++)
			if (t->matrix[j].sums == form->sums &&
			    matrix_takes(&t->matrix[j], unit->async, false, s->work.type))
				x = &t->matrix[j];
		if (!x)
			return false;
		parts = plan_lane_parts(p, entry->lane, phase);
		rows = (int64_t)x->rows * lane_warps(p, entry->lane) / x->warps / parts;
		cols = (int64_t)x->cols_most * parts;
		sums[entry->lane] += sums_of_entry(p, i);
		if (form->sums && (s->work.m % rows || s->work.n % cols || (x->sums_most && sums[entry->lane] > x->sums_most)))
			return false;
		n = ceil_div(s->work.m, rows) * ceil_div(s->work.n, cols) * ceil_div(s->work.k, matrix_depth(x, s->work.type));
		*passes += (double)n * x->passes;
		*count += (double)n;
	}
	return *count > 0 || !form->sums;
}

/* The forms of instructions that the phase's products can take, that with the fewest passes first, and of those with as many
 * that with the fewest instructions. Returns how many there are; 1 where there is no choice. */
static int order_forms(const struct plan *p, int phase, struct layout_choice *order)
{
	const struct target *t = target_of(p->device);
	double cost[LAYOUTS_MOST][2], x[2];
	int n = 0;

	for (int i = 0; i < t->nmatrix && n < LAYOUTS_MOST; i++) {
		bool known = false;
		int at;

		for (int j = 0; j < i; j++)
			known |= t->matrix[j].sums == t->matrix[i].sums;
		if (known || !cost_of_form(p, phase, &t->matrix[i], &x[0], &x[1]))
			continue;
		for (at = n++; at > 0 && (x[0] < cost[at - 1][0] || (x[0] == cost[at - 1][0] && x[1] < cost[at - 1][1])); at--) {
			order[at] = order[at - 1];
			memcpy(cost[at], cost[at - 1], sizeof(x));
		}
		order[at] = (struct layout_choice){ BY_BLOCKS, PAIR_LEAST, &t->matrix[i] };
		memcpy(cost[at], x, sizeof(x));
	}
	if (!n || (n == 1 && !order[0].form->sums)) {	/* where there is no instruction, lowering says for what */
		order[0] = (struct layout_choice){ BY_BLOCKS, PAIR_LEAST, NULL };
		n = 1;
	}
	return n;
}

enum err_code lower_or_refuse(struct mem *mem, const struct plan *p, int phase, bool unproven,
	const struct stop *stop, struct kernel **out, struct refusal *why, struct err *e)
{
	struct layout_choice order[LAYOUTS_MOST] = { { BY_BLOCKS, PAIR_LEAST, NULL } };
	enum err_code code, other_code;
	struct refusal other;
	struct err other_error;
	int n = 1;

	*out = NULL;
	*why = (struct refusal){ .code = PROBLEM_KERNEL, .task = NONE };
	if (!lower_has_target(p->device))
		return err_set(e, ERR_INPUT, NOWHERE, "plans for '%s' are model_only: they are checked, "
			"simulated and searched, but no kernels are printed for it", p->device->name);
	n = has_products(p, phase) ? order_forms(p, phase, order) : order_layouts(mem, p, phase, order);
	code = lower_checked(mem, p, phase, (struct lower_options){ unproven, order[0], stop }, out, why, e);
	for (int i = 1; i < n && code == ERR_ILLEGAL && is_about_registers(why); i++) {
		other_code = lower_checked(mem, p, phase, (struct lower_options){ unproven, order[i], stop }, out, &other,
			&other_error);
		if (other_code == ERR_ILLEGAL)
			continue;
		if (other_code)
			*e = other_error;
		code = other_code;
	}
	return code;
}

const struct pass_info lower_passes[OPTION_COUNT] = {
#define PASS(id, name, optional, needs, promises) { #name, optional, needs, promises },
#include "lower/passes.def"
#undef PASS
	{ "partial_sums", true, "shapes and rings", "the threads of a row each add up their own part of a sum" },
	{ "load_fences", true, "the tree of each lane", "the lane that has the copy engine fill a slot again fences, not those who have read it" },
};

enum err_code lower_plan(struct mem *mem, const struct plan *p, int phase, const struct stop *stop,
	struct kernel **out, struct err *e)
{
	struct refusal why;

	return lower_or_refuse(mem, p, phase, false, stop, out, &why, e);
}

enum err_code lower_for_price(struct mem *mem, const struct plan *p, int phase, const struct stop *stop,
	struct kernel **out, int64_t *shared_bytes, struct err *e)
{
	struct refusal why;
	enum err_code code = lower_or_refuse(mem, p, phase, true, stop, out, &why, e);

	*shared_bytes = code ? why.shared_bytes : 0;
	return code;
}

void kernel_free(struct kernel *k)
{
	if (k)
		arena_release(&k->arena);
}
