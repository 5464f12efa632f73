/* CBC, opened by dlopen. The declarations repeat what is used of Cbc_C_Interface.h of CBC 2.10
 * (github.com/coin-or/Cbc), by its names. CoinBigIndex is int there unless
 * CoinUtils was configured otherwise, which Debian's is not. */
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/loop/milp.h"

enum {
	COLUMNS_MAX = 20000,
	ROWS_MAX = 50000,
	TERMS_MAX = 400000,
	BY_EVENT = 5,			/* Cbc_status: stopped by Ctrl-C */
};

static const double LARGE = 1e9;	/* CBC is not exact with greater numbers */

struct cbc {
	void *(*newModel)(void);
	void (*deleteModel)(void *model);
	void (*loadProblem)(void *model, int columns, int rows, const int *start, const int *index,
		const double *value, const double *column_lo, const double *column_hi,
		const double *objective, const double *row_lo, const double *row_hi);
	void (*setInteger)(void *model, int column);
	void (*setParameter)(void *model, const char *name, const char *value);
	int (*solve)(void *model);
	int (*status)(void *model);
	int (*isProvenOptimal)(void *model);
	int (*isProvenInfeasible)(void *model);
	int (*numberSavedSolutions)(void *model);
	double (*getObjValue)(void *model);
	double (*getBestPossibleObjValue)(void *model);
	const double *(*getColSolution)(void *model);
};

#define SYMBOL(name) { "Cbc_" #name, offsetof(struct cbc, name) }
static const struct { const char *name; size_t member; } symbols[] = {
	SYMBOL(newModel), SYMBOL(deleteModel), SYMBOL(loadProblem), SYMBOL(setInteger),
	SYMBOL(setParameter), SYMBOL(solve), SYMBOL(status), SYMBOL(isProvenOptimal),
	SYMBOL(isProvenInfeasible), SYMBOL(numberSavedSolutions), SYMBOL(getObjValue),
	SYMBOL(getBestPossibleObjValue), SYMBOL(getColSolution),
};

/* ---- opening ---- */

static enum err_code find_symbols(void *lib, struct cbc *c, struct err *e)
{
	for (int i = 0; i < LEN(symbols); i++) {
		void *p = dlsym(lib, symbols[i].name);

		if (!p)
			return err_set(e, ERR_IO, NOWHERE, "the solver's library has no function %s", symbols[i].name);
		/* ISO C has no cast from a pointer to data to one to a function. */
		memcpy((char *)c + symbols[i].member, &p, sizeof(p));
	}
	return OK;
}

/* Called for each program: the loader counts, and finds at once what is open. The library is never closed, as libraries of
 * C++ do not always survive that. */
static enum err_code open_cbc(struct cbc *c, struct err *e)
{
	const char *given = getenv("MILLRACE_LIBCBC");
	void *lib;

	if (given && !strcmp(given, "none"))
		return err_set(e, ERR_IO, NOWHERE, "MILLRACE_LIBCBC says that there is no solver");
	lib = dlopen(given && *given ? given : "libCbcSolver.so.3", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(e, ERR_IO, NOWHERE, "cannot open the solver CBC: %s", dlerror());
	return find_symbols(lib, c, e);
}

bool milp_available(void)
{
	struct err e;
	struct cbc c;

	return open_cbc(&c, &e) == OK;
}

/* ---- the input of CBC ---- */

/* False for NaN, too. */
static bool is_sane(double x)
{
	return fabs(x) <= LARGE;
}

/* CBC aborts if it runs out of memory, and may abort on NaN. */
static enum err_code check(const struct milp *m, struct err *e)
{
	if (m->columns.n > COLUMNS_MAX || m->rows.n > ROWS_MAX || m->terms.n > TERMS_MAX)
		return err_set(e, ERR_LIMIT, NOWHERE, "%d columns and %d rows are more than a solver is asked for",
			m->columns.n, m->rows.n);
	if (!m->columns.n)
		return err_set(e, ERR_INPUT, NOWHERE, "a linear program without columns");
	for (int i = 0; i < m->columns.n; i++) {
		const struct milp_column *c = &m->columns.v[i];

		if (!is_sane(c->lo) || !is_sane(c->hi) || !is_sane(c->objective) || c->lo > c->hi)
			return err_set(e, ERR_INPUT, NOWHERE, "column %d of a linear program", i);
	}
	for (int i = 0; i < m->rows.n; i++) {
		const struct milp_row *r = &m->rows.v[i];

		if (!(is_sane(r->lo) || r->lo == -INFINITY) || !(is_sane(r->hi) || r->hi == INFINITY) || r->lo > r->hi)
			return err_set(e, ERR_INPUT, NOWHERE, "row %d of a linear program", i);
	}
	for (int i = 0; i < m->terms.n; i++)
		if (!is_sane(m->terms.v[i].factor) || m->terms.v[i].column < 0 || m->terms.v[i].column >= m->columns.n)
			return err_set(e, ERR_INPUT, NOWHERE, "term %d of a linear program", i);
	return OK;
}

/* The terms by column. */
struct matrix {
	int *start, *index;
	double *value;
};

static struct matrix transpose(struct arena *a, const struct milp *m)
{
	int n = m->columns.n, r = 0;
	struct matrix x = { ARENA_ARRAY(a, n + 2, int), ARENA_ARRAY(a, m->terms.n + 1, int),
		ARENA_ARRAY(a, m->terms.n + 1, double) };
	int *next = x.start + 1;	/* by column; becomes its end, which is the next one's start */

	for (int i = 0; i < m->terms.n; i++)
		next[m->terms.v[i].column + 1]++;
	for (int c = 0; c < n; c++)
		next[c + 1] += next[c];
	for (int i = 0; i < m->terms.n; i++) {
		int at = next[m->terms.v[i].column]++;

		while (r + 1 < m->rows.n && m->rows.v[r + 1].first <= i)
			r++;
		x.index[at] = r;
		x.value[at] = m->terms.v[i].factor;
	}
	return x;
}

/* All arrays that CBC reads, allocated before there is a model that could leak. CBC minimises, so the objective is negated:
 * then its bound has the expected sign. */
struct input {
	struct matrix x;
	double *lo, *hi, *cost, *row_lo, *row_hi;
	double *solution;		/* of n columns */
};

static struct input prepare(struct arena *a, const struct milp *m)
{
	int n = m->columns.n, k = m->rows.n;
	struct input s = { transpose(a, m), ARENA_ARRAY(a, n, double), ARENA_ARRAY(a, n, double),
		ARENA_ARRAY(a, n, double), ARENA_ARRAY(a, k + 1, double),
		ARENA_ARRAY(a, k + 1, double), ARENA_ARRAY(a, n, double) };

	for (int i = 0; i < n; i++) {
		s.lo[i] = m->columns.v[i].lo;
		s.hi[i] = m->columns.v[i].hi;
		s.cost[i] = -m->columns.v[i].objective;
	}
	for (int i = 0; i < k; i++) {
		s.row_lo[i] = fmax(m->rows.v[i].lo, -1e30);
		s.row_hi[i] = fmin(m->rows.v[i].hi, 1e30);
	}
	return s;
}

static void set_parameters(const struct cbc *c, void *model, const char *nodes)
{
	static const char *const fixed[][2] = {
		{ "log", "0" },
		{ "primalTolerance", "1e-9" }, { "dualTolerance", "1e-9" },
		{ "integerTolerance", "1e-9" },
		{ "allowableGap", "0" }, { "ratioGap", "0" }, { "increment", "0" },
	};

	for (int i = 0; i < LEN(fixed); i++)
		c->setParameter(model, fixed[i][0], fixed[i][1]);
	c->setParameter(model, "maxNodes", nodes);
}

/* ---- solving ---- */

static enum milp_status outcome(const struct cbc *c, void *model)
{
	if (c->isProvenInfeasible(model))
		return MILP_INFEASIBLE;
	if (c->isProvenOptimal(model))
		return MILP_OPTIMAL;
	if (c->status(model) == BY_EVENT)
		return MILP_INTERRUPTED;
	return c->status(model) == 1 ? MILP_LIMIT : MILP_FAILED;
}

static void take(const struct cbc *c, void *model, const struct input *s, int n, struct milp_result *out)
{
	out->status = outcome(c, model);
	if (out->status == MILP_INFEASIBLE || out->status == MILP_FAILED)
		return;
	out->bound = -c->getBestPossibleObjValue(model);
	if (out->status != MILP_OPTIMAL && !c->numberSavedSolutions(model))
		return;
	memcpy(s->solution, c->getColSolution(model), (size_t)n * sizeof(double));
	out->x = s->solution;
	out->objective = -c->getObjValue(model);
}

enum err_code milp_solve(struct arena *a, const struct milp *m, int nodes, struct milp_result *out, struct err *e)
{
	struct sigaction before;
	char limit[16];
	struct input s;
	struct cbc c;
	void *model;

	*out = (struct milp_result){ .status = MILP_FAILED, .bound = INFINITY };
	TRY(check(m, e));
	TRY(open_cbc(&c, e));
	snprintf(limit, sizeof(limit), "%d", nodes > 0 ? nodes : 1);
	s = prepare(a, m);
	/* CBC catches Ctrl-C itself while it works. */
	sigaction(SIGINT, NULL, &before);
	model = c.newModel();
	c.loadProblem(model, m->columns.n, m->rows.n, s.x.start, s.x.index, s.x.value, s.lo, s.hi, s.cost, s.row_lo,
		s.row_hi);
	for (int i = 0; i < m->columns.n; i++)
		if (m->columns.v[i].integer)
			c.setInteger(model, i);
	set_parameters(&c, model, limit);
	c.solve(model);
	sigaction(SIGINT, &before, NULL);
	take(&c, model, &s, m->columns.n, out);
	c.deleteModel(model);
	return OK;
}
