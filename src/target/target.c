#include "target/target.h"

#include <string.h>

static const struct target *const targets[] = { &target_sm_90a, &target_mma_sync, &target_sm_80, &target_gfx942 };

const struct target *target_find(const struct vdevice *d)
{
	for (int i = 0; i < LEN(targets); i++)
		if (d->arch && !strcmp(targets[i]->name, d->arch))
			return targets[i];
	return NULL;
}

const struct target *target_usual(void)
{
	return &target_sm_90a;
}

const struct target *target_of(const struct vdevice *d)
{
	const struct target *t = target_find(d);

	return t ? t : target_usual();
}

enum seen_by target_seen(const struct target *t, const struct seu *unit, bool own)
{
	for (int i = 0; i < t->ncompletes; i++)
		if (t->completes[i].unit == unit->kind && t->completes[i].async == unit->async &&
		    (!t->completes[i].ordered || unit->ordered))
			return own ? t->completes[i].own : t->completes[i].others;
	return own ? SEEN_DONE : SEEN_FLAGGED;
}

const struct matrix_instruction *target_matrix(const struct target *t, bool async, bool sparse, enum dtype type)
{
	for (int i = 0; i < t->nmatrix; i++)
		if (matrix_takes(&t->matrix[i], async, sparse, type))
			return &t->matrix[i];
	return NULL;
}
