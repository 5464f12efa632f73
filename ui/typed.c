#include "typed.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct typed_chunk {
	char *text;			/* owned */
	bool statement, value;
};

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Does the text begin with this word? */
static bool begins(const char *s, const char *word)
{
	size_t n = strlen(word);

	s += strspn(s, " \t\n");
	return !strncmp(s, word, n) && !name_char(s[n]);
}

/* The word's next occurrence in s, or NULL. */
static const char *find_word(const char *s, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = s; (p = strstr(p, word)); p += n)
		if ((p == s || !name_char(p[-1])) && !name_char(p[n]))
			return p;
	return NULL;
}

void typed_add(struct typed *t, const char *text, bool statement, bool value)
{
	struct typed_chunk c = { NULL, statement, value };

	if (begins(text, "help") || begins(text, "quit") || begins(text, "exit"))
		return;			/* scripts do not have these functions */
	if (t->n == t->cap) {
		int cap = t->cap ? 2 * t->cap : 16;
		struct typed_chunk *v = realloc(t->v, (size_t)cap * sizeof(*v));

		if (!v)
			return;
		t->v = v;
		t->cap = cap;
	}
	c.text = strdup(text);
	if (c.text)
		t->v[t->n++] = c;
}

void typed_free(struct typed *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->v[i].text);
	free(t->v);
	*t = (struct typed){ 0 };
}

/* Does the chunk read the last value, `_`? Not if it declares `_` as a variable. */
static bool reads_last(const char *text)
{
	for (const char *s = text; (s = find_word(s, "_")); s++) {
		const char *before = s;

		while (before > text && isspace((unsigned char)before[-1]))
			before--;
		if (before - text >= 3 && !strncmp(before - 3, "for", 3))
			continue;
		if (before - text >= 5 && !strncmp(before - 5, "local", 5))
			continue;
		return true;
	}
	return false;
}

/* Is the value of chunk i read by a later chunk, before there is another value? */
static bool is_read(const struct typed *t, int i)
{
	if (!t->v[i].value)
		return false;
	for (int k = i + 1; k < t->n; k++) {
		if (reads_last(t->v[k].text))
			return true;
		if (t->v[k].value)
			return false;
	}
	return false;
}

/* Does the chunk begin with a parenthesis? It would be taken for arguments of the statement before it. */
static bool begins_call(const char *text)
{
	return text[strspn(text, " \t\n")] == '(';
}

static int write_chunks(const struct typed *t, FILE *f)
{
	int n = 0;

	fputs("local mr = require \"millrace\"\n\n", f);
	for (int i = 0; i < t->n; i++) {
		const struct typed_chunk *c = &t->v[i];
		bool read = is_read(t, i);

		if (begins(c->text, "return") || (!c->statement && !read))
			continue;
		n++;
		if (read)
			fprintf(f, "_ = %s\n", c->text);
		else if (begins(c->text, "local"))
			fprintf(f, "do\n%s\nend\n", c->text);	/* it is local to its chunk */
		else
			fprintf(f, "%s%s\n", begins_call(c->text) ? ";" : "", c->text);
	}
	return n;
}

int typed_save(const struct typed *t, const char *path, bool over)
{
	int fd = open(path, O_WRONLY | O_CREAT | (over ? O_TRUNC : O_EXCL), 0666), n;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	n = write_chunks(t, f);
	if (fflush(f) || ferror(f)) {
		int saved = errno;

		fclose(f);
		errno = saved;
		return -1;
	}
	return fclose(f) ? -1 : n;
}

const char *typed_lost_local(const char *text, char name[64])
{
	const char *s = text + strspn(text, " \t\n"), *from, *after, *end;
	bool function;

	if (!begins(s, "local"))
		return NULL;
	s += strlen("local");
	s += strspn(s, " \t\n");
	function = begins(s, "function");
	if (function) {
		s += strlen("function");
		s += strspn(s, " \t\n");
	}
	for (from = s; name_char(*s); s++)
		;
	if (s == from)
		return NULL;
	snprintf(name, 64, "%.*s", (int)(s - from), from);
	after = s;
	while (function && (end = find_word(after, "end")))
		after = end + strlen("end");
	return find_word(after, name) ? NULL : name;
}
