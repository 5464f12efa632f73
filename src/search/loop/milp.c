#include "search/loop/milp.h"

int milp_column(struct arena *a, struct milp *m, double lo, double hi, bool integer, double objective)
{
	VEC_PUSH(a, &m->columns, ((struct milp_column){ lo, hi, integer, objective }));
	return m->columns.n - 1;
}

void milp_row(struct arena *a, struct milp *m, double lo, double hi)
{
	VEC_PUSH(a, &m->rows, ((struct milp_row){ lo, hi, m->terms.n }));
}

/* CBC accepts each column only once in a row. Rows are short, so a linear search will do. */
void milp_term(struct arena *a, struct milp *m, int column, double factor)
{
	for (int i = m->rows.v[m->rows.n - 1].first; i < m->terms.n; i++) {
		if (m->terms.v[i].column == column) {
			m->terms.v[i].factor += factor;
			return;
		}
	}
	VEC_PUSH(a, &m->terms, ((struct milp_term){ column, factor }));
}
