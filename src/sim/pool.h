/* pool.h - a vector unit that several lanes share.
 *
 * The unit has a capacity of 1. A task can draw at most busy / alone of it, times `pace` while the tasks
 * are slowed down (by a busy matrix unit). The capacity is divided evenly, up to what each task can draw
 * (water-filling); the shares are computed again whenever a task enters or leaves. In a share `by_age` of
 * the cycles the oldest task instead draws all it can, then the next. Times are ticks (engine.h). */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "base/base.h"

enum { POOL_MAX = 64 };

struct pool_task {
	double left;			/* remaining work, in ticks of the full unit */
	double most;			/* share of the unit that it can draw, (0, 1] */
	double draws;			/* share that it draws now */
	int64_t age;			/* tasks that entered before it */
	int lane;
};

struct pool {
	int n;
	struct pool_task task[POOL_MAX];	/* sorted by `most`, the least first */
	double pace;			/* factor on what tasks can draw, (0, 1] */
	double by_age;			/* share of the cycles that go to the oldest task, [0, 1] */
	int64_t entered;		/* tasks so far */
	int64_t now;			/* the time that `left` is about */
	int64_t next;			/* when the next task is done; INT64_MAX if there is none */
	int leaves;			/* ... and its index */
};

static inline void pool_init(struct pool *p, double by_age)
{
	*p = (struct pool){ .pace = 1, .by_age = by_age, .next = INT64_MAX, .leaves = -1 };
}

/* Change that for the cycles in which older tasks have priority. */
static inline void pool_share_by_age(struct pool *p)
{
	double left = 1;
	int64_t last = -1;

	for (int k = 0; k < p->n; k++) {
		struct pool_task *oldest = NULL;

		for (int i = 0; i < p->n; i++)
			if (p->task[i].age > last && (!oldest || p->task[i].age < oldest->age))
				oldest = &p->task[i];
		last = oldest->age;
		double most = oldest->most * p->pace < left ? oldest->most * p->pace : left;
		left -= most;
		oldest->draws += p->by_age * (most - oldest->draws);
	}
}

/* Set what every task draws, and find the one that is done first; of several, that of the first lane. */
static inline void pool_share(struct pool *p)
{
	double left = 1;

	p->next = INT64_MAX;
	for (int i = 0; i < p->n; i++) {	/* as if all had the same priority */
		struct pool_task *t = &p->task[i];
		double even = left / (p->n - i);

		t->draws = t->most * p->pace < even ? t->most * p->pace : even;
		left -= t->draws;
	}
	if (p->by_age > 0 && p->n > 1)
		pool_share_by_age(p);
	for (int i = 0; i < p->n; i++) {
		struct pool_task *t = &p->task[i];

		if (t->left > 0 && !(t->draws > 0))
			continue;		/* it draws nothing until older ones leave */
		int64_t end = p->now + (t->left > 0 ? (int64_t)(t->left / t->draws + 0.5) : 0);
		if (end < p->next || (end == p->next && t->lane < p->task[p->leaves].lane)) {
			p->next = end;
			p->leaves = i;
		}
	}
}

/* Do the work up to `now`. */
static inline void pool_advance(struct pool *p, int64_t now)
{
	for (int i = 0; i < p->n; i++)
		p->task[i].left -= p->task[i].draws * (double)(now - p->now);
	p->now = now;
}

/* A task of the lane enters: busy > 0 ticks of the full unit, and `alone` ticks if nothing else is in it. */
static inline void pool_enter(struct pool *p, int64_t now, int lane, int64_t busy, int64_t alone)
{
	struct pool_task t = { .left = (double)busy, .lane = lane, .age = p->entered++,
		.most = alone > busy ? (double)busy / (double)alone : 1 };
	int i;

	pool_advance(p, now);
	for (i = p->n++; i > 0 && p->task[i - 1].most > t.most; i--)
		p->task[i] = p->task[i - 1];
	p->task[i] = t;
	pool_share(p);
}

/* Change the factor on what tasks can draw, from now on. */
static inline void pool_set_pace(struct pool *p, int64_t now, double pace)
{
	pool_advance(p, now);
	p->pace = pace;
	if (p->n)
		pool_share(p);
}

/* Remove the task that is done at p->next; returns its lane. */
static inline int pool_leave(struct pool *p)
{
	int lane = p->task[p->leaves].lane;

	pool_advance(p, p->next);
	p->n--;
	for (int i = p->leaves; i < p->n; i++)
		p->task[i] = p->task[i + 1];
	pool_share(p);
	return lane;
}

#endif
