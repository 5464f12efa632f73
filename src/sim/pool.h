/* pool.h - a unit shared by the lanes that want it.
 *
 * The unit gives one cycle of work a cycle. A task that is in it draws at most busy / alone
 * of that, and `pace` of this while the tasks are held up; the rest is spread evenly
 * (water-filling), anew whenever a task enters or leaves. Of `by_age` of its cycles, however,
 * tasks take all that they can draw in the order in which they came. Times are ticks, see
 * engine.h.
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "base/base.h"

enum { POOL_MAX = 64 };

struct pool_task {
	double left;			/* work to do, in ticks of the whole unit */
	double most;			/* of the unit that it can draw, (0, 1] */
	double draws;
	int64_t came;			/* how many came before it */
	int who;
};

struct pool {
	int n;
	struct pool_task task[POOL_MAX];	/* by `most`, the least first */
	double pace;			/* (0, 1] */
	double by_age;			/* [0, 1] */
	int64_t came;			/* tasks so far */
	int64_t now;			/* up to when `left` is right */
	int64_t next;			/* when the first leaves; INT64_MAX if empty */
	int leaves;			/* ... and which */
};

static inline void pool_init(struct pool *p, double by_age)
{
	p->n = 0;
	p->pace = 1;
	p->by_age = by_age;
	p->came = 0;
	p->now = 0;
	p->next = INT64_MAX;
	p->leaves = -1;
}

/* What every task draws where all are treated alike. */
static inline void pool_share_evenly(struct pool *p)
{
	double rest = 1;

	for (int i = 0; i < p->n; i++) {
		struct pool_task *t = &p->task[i];
		double even = rest / (p->n - i);

		t->draws = t->most * p->pace < even ? t->most * p->pace : even;
		rest -= t->draws;
	}
}

/* ... and where that which came first takes what it can, then the next. */
static inline void pool_share_by_age(struct pool *p)
{
	double rest = 1;
	int64_t last = -1;

	for (int k = 0; k < p->n; k++) {
		struct pool_task *oldest = NULL;
		double most;

		for (int i = 0; i < p->n; i++)
			if (p->task[i].came > last && (!oldest || p->task[i].came < oldest->came))
				oldest = &p->task[i];
		last = oldest->came;
		most = oldest->most * p->pace < rest ? oldest->most * p->pace : rest;
		rest -= most;
		oldest->draws += p->by_age * (most - oldest->draws);
	}
}

/* Give every task its part and find who is done first; of several, the least `who`. */
static inline void pool_share(struct pool *p)
{
	p->next = INT64_MAX;
	pool_share_evenly(p);
	if (p->by_age > 0 && p->n > 1)
		pool_share_by_age(p);
	for (int i = 0; i < p->n; i++) {
		struct pool_task *t = &p->task[i];
		int64_t end;

		if (t->left > 0 && !(t->draws > 0))
			continue;		/* it waits for those before it */
		end = p->now + (t->left > 0 ? (int64_t)(t->left / t->draws + 0.5) : 0);
		if (end < p->next || (end == p->next && t->who < p->task[p->leaves].who)) {
			p->next = end;
			p->leaves = i;
		}
	}
}

static inline void pool_advance(struct pool *p, int64_t now)
{
	for (int i = 0; i < p->n; i++)
		p->task[i].left -= p->task[i].draws * (double)(now - p->now);
	p->now = now;
}

/* busy > 0 ticks of the whole unit, of which the task draws at most busy / alone. */
static inline void pool_enter(struct pool *p, int64_t now, int who, int64_t busy, int64_t alone)
{
	struct pool_task t = { .left = (double)busy, .who = who, .came = p->came++,
		.most = alone > busy ? (double)busy / (double)alone : 1 };
	int i;

	pool_advance(p, now);
	for (i = p->n++; i > 0 && p->task[i - 1].most > t.most; i--)
		p->task[i] = p->task[i - 1];
	p->task[i] = t;
	pool_share(p);
}

/* Tasks are as fast as that from now on. */
static inline void pool_set_pace(struct pool *p, int64_t now, double pace)
{
	pool_advance(p, now);
	p->pace = pace;
	if (p->n)
		pool_share(p);
}

/* Takes out the task that is done at p->next; returns whose it was. */
static inline int pool_leave(struct pool *p)
{
	int who = p->task[p->leaves].who;

	pool_advance(p, p->next);
	p->n--;
	for (int i = p->leaves; i < p->n; i++)
		p->task[i] = p->task[i + 1];
	pool_share(p);
	return who;
}

#endif
