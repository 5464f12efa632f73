#include "target/target.h"

#include <string.h>

static const struct target *const targets[] = { &target_sm_90a };

const struct target *target_find(const char *arch)
{
	for (int i = 0; i < LEN(targets); i++)
		if (!strcmp(targets[i]->name, arch))
			return targets[i];
	return NULL;
}

const struct target *target_usual(void)
{
	return &target_sm_90a;
}

const struct target *target_of(const char *arch)
{
	const struct target *t = target_find(arch);

	return t ? t : target_usual();
}

const struct matrix_instruction *target_matrix(const struct target *t, bool async,
	enum dtype type)
{
	for (int i = 0; i < t->nmatrix; i++)
		if (t->matrix[i].async == async && t->matrix[i].types >> type & 1)
			return &t->matrix[i];
	return NULL;
}
