/* One text for lanes that do the same.
 *
 * The lanes of a split sTask have texts that differ only in numbers (places in shared
 * memory, first rows) and in the names of what they declare. Each copy costs as much of the
 * instruction cache as the first, so such lanes share one, in which `who` says which of
 * them is at hand. Whether they are alike is read off the texts, token by token: what is
 * printed is then the same for each by construction. */
#include "emit/print.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum token { TOKEN_SPACE, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_COMMENT, TOKEN_OTHER,
	TOKEN_END };

struct scan {
	const char *at;
	enum token kind;
	size_t len;
};

static bool in_word(char x)
{
	return isalnum((unsigned char)x) || x == '_';
}

static void next_token(struct scan *s)
{
	const char *p = s->at += s->len, *end;

	if (!*p) {
		s->kind = TOKEN_END;
		end = p;
	} else if (isspace((unsigned char)*p)) {
		s->kind = TOKEN_SPACE;
		end = p + strspn(p, " \t\n");
	} else if (in_word(*p)) {
		s->kind = isdigit((unsigned char)*p) ? TOKEN_NUMBER : TOKEN_NAME;
		for (end = p; in_word(*end) || (s->kind == TOKEN_NUMBER && *end == '.'); end++)
			;
	} else if (*p == '"') {
		s->kind = TOKEN_STRING;
		end = strchr(p + 1, '"') + 1;
	} else if (!strncmp(p, "/*", 2)) {
		s->kind = TOKEN_COMMENT;
		end = strstr(p, "*/") + 2;
	} else {
		s->kind = TOKEN_OTHER;
		end = p + 1;
	}
	s->len = (size_t)(end - p);
}

/* Names that differ, by lane: always the same ones stand for each other. */
struct names {
	struct arena *a;
	int n;				/* lanes */
	VEC(const char *) v;		/* n for each name */
};

static bool is_declared(const char *name)
{
	static const char *const own[] = { "r_", "slot_", "issued_", "released_" };

	for (int i = 0; i < LEN(own); i++)
		if (!strncmp(name, own[i], strlen(own[i])))
			return true;
	return false;
}

static bool same_name(struct names *m, const struct scan *s)
{
	const char **row = ARENA_ARRAY(m->a, m->n, const char *);
	bool differ = false;

	for (int l = 0; l < m->n; l++) {
		row[l] = arena_strf(m->a, "%.*s", (int)s[l].len, s[l].at);
		differ |= strcmp(row[l], row[0]) != 0;
	}
	if (!is_declared(row[0]))
		return !differ;
	for (int i = 0; i < m->v.n; i += m->n) {
		int same = 0;

		for (int l = 0; l < m->n; l++)
			same += !strcmp(m->v.v[i + l], row[l]);
		if (same)
			return same == m->n;
	}
	for (int l = 0; l < m->n; l++)
		VEC_PUSH(m->a, &m->v, row[l]);
	return true;
}

static bool same_text(const struct scan *s, int n)
{
	for (int l = 1; l < n; l++)
		if (s[l].len != s[0].len || memcmp(s[l].at, s[0].at, s[0].len))
			return false;
	return true;
}

static bool is_integer(const struct scan *s)
{
	return strspn(s->at, "0123456789") == s->len;
}

/* A number may go by `who` where the compiler need not know it: as a term, or as the
 * number of a named barrier. `before` is what stands before it. */
static bool put_number(const struct scan *s, int n, const char *before, struct buf *out)
{
	long long first = atoll(s[0].at), step = atoll(s[1].at) - first;

	if (*before != '+' && *before != '-' && strcmp(before, "==") && strcmp(before, "lane_sync("))
		return false;
	for (int l = 0; l < n; l++)
		if (!is_integer(&s[l]) || atoll(s[l].at) != first + l * step)
			return false;
	buf_printf(out, "(%lld + who * %lld)", first, step);
	return true;
}

static void put_string(const struct scan *s, int n, struct buf *out)
{
	buf_putc(out, '(');
	for (int l = 0; l < n - 1; l++)
		buf_printf(out, "who == %d ? %.*s : ", l, (int)s[l].len, s[l].at);
	buf_printf(out, "%.*s)", (int)s[n - 1].len, s[n - 1].at);
}

/* Word by word, with a bar between those that differ. */
static void put_comment(const struct scan *s, int n, struct buf *out)
{
	const char *at[LANES_MERGED];

	for (int l = 0; l < n; l++)
		at[l] = s[l].at;
	for (;;) {
		size_t len[LANES_MERGED];
		bool same = true;

		for (int l = 0; l < n; l++) {
			len[l] = strcspn(at[l], " ");
			len[l] += strspn(at[l] + len[l], " ");
			if (at[l] + len[l] > s[l].at + s[l].len)
				len[l] = (size_t)(s[l].at + s[l].len - at[l]);
			same &= len[l] == len[0] && !memcmp(at[l], at[0], len[0]);
		}
		if (!len[0])
			return;
		for (int l = 0; l < (same ? 1 : n); l++) {
			size_t shown = l < n - 1 && !same ? strcspn(at[l], " ,") : len[l];

			buf_printf(out, "%s%.*s", l ? "|" : "", (int)shown, at[l]);
		}
		for (int l = 0; l < n; l++)
			at[l] += len[l];
	}
}

static bool put_token(struct names *m, const struct scan *s, const char *before, struct buf *out)
{
	if (s->kind == TOKEN_NAME ? same_name(m, s) : same_text(s, m->n)) {
		buf_putn(out, s->at, s->len);
		return true;
	}
	if (s->kind == TOKEN_STRING)
		put_string(s, m->n, out);
	else if (s->kind == TOKEN_COMMENT)
		put_comment(s, m->n, out);
	return s->kind == TOKEN_STRING || s->kind == TOKEN_COMMENT ||
		(s->kind == TOKEN_NUMBER && put_number(s, m->n, before, out));
}

bool merge_texts(struct arena *a, const char *const *text, int n, struct buf *out)
{
	struct scan s[LANES_MERGED] = { { 0 } };
	struct names names = { .a = a, .n = n };
	const char *before = "";

	for (int l = 0; l < n; l++)
		s[l].at = text[l];
	for (;;) {
		for (int l = 0; l < n; l++) {
			next_token(&s[l]);
			if (s[l].kind != s[0].kind)
				return false;
		}
		if (s->kind == TOKEN_END)
			return true;
		if (!put_token(&names, s, before, out))
			return false;
		if (s->kind == TOKEN_OTHER || s->kind == TOKEN_NAME)
			before = *s->at == '(' ? arena_strf(a, "%s(", before) : *s->at == '=' &&
				*before == '=' ? "==" : arena_strf(a, "%.*s", (int)s->len, s->at);
	}
}
