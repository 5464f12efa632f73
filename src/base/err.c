#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum err_code err_set(struct err *e, enum err_code code, struct srcloc loc, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	e->line = loc.line;
	snprintf(e->file, sizeof(e->file), "%s", loc.file ? loc.file : "");
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return code;
}

void bug_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "millrace: internal error at %s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

enum { NAME_MAX_LEN = 64, PART_MIN_LEN = 4, SHORT_LEN = 6 };

/* Letters to change, add, leave out or exchange with the next one; both names at most NAME_MAX_LEN long. */
static int edit_distance(const char *a, const char *b)
{
	int row[NAME_MAX_LEN + 1], above[NAME_MAX_LEN + 1] = { 0 };
	int na = (int)strlen(a), nb = (int)strlen(b);

	for (int j = 0; j <= nb; j++)
		row[j] = j;
	for (int i = 1; i <= na; i++) {
		int before[NAME_MAX_LEN + 1];
		int diagonal = row[0];

		memcpy(before, row, sizeof(row[0]) * (size_t)(nb + 1));
		row[0] = i;
		for (int j = 1; j <= nb; j++) {
			int best = diagonal + (a[i - 1] != b[j - 1]);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above[j - 2] + 1 < best)
				best = above[j - 2] + 1;
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
		memcpy(above, before, sizeof(above[0]) * (size_t)(nb + 1));
	}
	return row[nb];
}

/* Is `part` the beginning of the name, or some of its words, which are divided by _? */
static bool is_part(const char *part, const char *name)
{
	size_t len = strlen(part);

	for (const char *at = strstr(name, part); at; at = strstr(at + 1, part))
		if (at == name || (at[-1] == '_' && (!at[len] || at[len] == '_')))
			return true;
	return false;
}

const char *nearest_name(const char *name, const char *const *names, int n)
{
	const char *best = NULL;
	int len = (int)strlen(name), least = len < SHORT_LEN ? 4 : 6;

	for (int i = 0; i < n; i++)	/* "H100" is nearer to "h100" than to "a100" */
		if (strcasecmp(name, names[i]) == 0)
			return names[i];
	for (int i = 0; i < n && len > 1 && len <= NAME_MAX_LEN; i++) {
		int d;

		if (strlen(names[i]) > NAME_MAX_LEN)
			continue;
		/* of equally near ones, that of the same length */
		d = 2 * edit_distance(name, names[i]) + ((int)strlen(names[i]) != len);
		if (d < least) {
			least = d;
			best = names[i];
		}
	}
	for (int i = 0, found = 0; i < n && (found || !best) && len >= PART_MIN_LEN; i++)
		if (is_part(name, names[i]) && (!best || strlen(names[i]) < strlen(best))) {
			best = names[i];
			found = 1;
		}
	return best;
}

struct name_hint nearest_hint(const char *name, const char *const *names, int n)
{
	const char *near = nearest_name(name, names, n);
	struct name_hint hint = { "" };

	if (near)
		snprintf(hint.text, sizeof(hint.text), "; did you mean '%s'?", near);
	return hint;
}
