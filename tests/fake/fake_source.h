/* fake_source.h - the kernels in a source of ours, for compilers and drivers that are none. */
#ifndef FAKE_SOURCE_H
#define FAKE_SOURCE_H

#include <stdio.h>
#include <string.h>

enum { FAKE_NAME_MAX = 64, FAKE_PARAMS_MAX = 32 };

struct fake_kernel {
	char name[FAKE_NAME_MAX];
	int threads;			/* of its bounds; 0: none are known */
	int nparams;
	size_t sizes[FAKE_PARAMS_MAX];	/* bytes of each parameter */
	char pointer[FAKE_PARAMS_MAX];	/* it is one, or begins with one */
};

static void fake_params(const char *s, struct fake_kernel *k)
{
	k->nparams = 0;
	while (*s && *s != ')' && k->nparams < FAKE_PARAMS_MAX) {
		size_t n = strcspn(s + 1, ",)");
		char text[160];

		snprintf(text, sizeof(text), "%.*s", (int)n, s + 1);
		k->pointer[k->nparams] = strstr(text, "MAP ") || strchr(text, '*');
		k->sizes[k->nparams++] = strstr(text, "MAP ") ? 128 :
			strchr(text, '*') || strstr(text, "fill_word") || strstr(text, "i64 ") ? 8 : 4;
		s += n + 1;
	}
}

/* The first kernel from `s` on; returns where to go on, NULL if there is none. */
static const char *fake_next_kernel(const char *s, struct fake_kernel *k)
{
	static const char macro[] = "KERNEL(", plain[] = "KERNEL ";
	static const char global[] = "extern \"C\" __global__ void ";

	for (; s && *s; s = strchr(s, '\n'), s = s ? s + 1 : NULL) {
		const char *at = s, *params;

		if (!strncmp(at, "CLUSTER_", 8))
			at += 8;
		if (!strncmp(at, macro, sizeof(macro) - 1)) {
			at += sizeof(macro) - 1;
			params = strstr(at, "\n(");
			params = params ? params + 1 : NULL;
		} else if (!strncmp(at, plain, sizeof(plain) - 1)) {
			at += sizeof(plain) - 1;
			params = strchr(at, '(');
		} else if (!strncmp(at, global, sizeof(global) - 1)) {
			at += sizeof(global) - 1;
			if (!strncmp(at, "__launch_bounds__", 17))
				at = strchr(at, ')') + 2;
			params = strchr(at, '(');
		} else {
			continue;
		}
		if (!params)
			continue;
		snprintf(k->name, sizeof(k->name), "%.*s", (int)strcspn(at, ",("), at);
		k->threads = 0;
		sscanf(at + strlen(k->name), ", %d)", &k->threads);
		fake_params(params, k);
		return params;
	}
	return NULL;
}

#endif
