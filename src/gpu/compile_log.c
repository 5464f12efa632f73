/* compile_log.c - parsing the log of NVRTC and ptxas.
 *
 * Two compilers write into one log. NVRTC: `file(line): error: text`, then the source
 * line and a caret. ptxas: `ptxas info    : text`, or `ptxas FILE, line N; error   : text`
 * with a line of the PTX; the properties of a function have lines of their own. Other lines are skipped.
 */
#include "gpu/compile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parse {
	struct arena *arena;
	VEC(struct compile_use) uses;
	VEC(struct compile_diag) diags;
	int entry;			/* the kernel that is being compiled, index of uses; -1: none */
	bool other;			/* the next properties are of another function */
};

static const struct {
	const char *word;
	enum compile_severity severity;
} words[] = {
	{ "catastrophic error", COMPILE_ERROR },
	{ "internal error", COMPILE_ERROR },
	{ "error", COMPILE_ERROR },
	{ "fatal", COMPILE_ERROR },
	{ "warning", COMPILE_WARNING },
	{ "remark", COMPILE_NOTE },
	{ "info", COMPILE_NOTE },
};

/* Of "error: text", "warning #177-D: text", "info    : text": the text; NULL if s has another form. */
static const char *read_severity(const char *s, enum compile_severity *severity)
{
	for (int i = 0; i < LEN(words); i++) {
		size_t n = strlen(words[i].word);

		if (strncmp(s, words[i].word, n))
			continue;
		s += n;
		s += strspn(s, " ");
		if (*s == '#')
			s += strcspn(s, ": ");
		s += strspn(s, " ");
		if (*s != ':')
			return NULL;
		*severity = words[i].severity;
		return s + 1 + strspn(s + 1, " ");
	}
	return NULL;
}

static struct compile_diag *add_diag(struct parse *p, enum compile_severity severity, const char *text)
{
	char *copy = arena_strdup(p->arena, text);
	struct compile_diag *d = VEC_ADD(p->arena, &p->diags);

	*d = (struct compile_diag){ .severity = severity, .text = copy, .file = "" };
	return d;
}

/* ---- NVRTC ---- */

/* `file(12): error: text`; a file name may hold parentheses. */
static bool parse_front(struct parse *p, const char *line)
{
	for (const char *s = strchr(line, '('); s; s = strchr(s + 1, '(')) {
		enum compile_severity severity;
		const char *text;
		char *end;
		long n = strtol(s + 1, &end, 10);

		if (end == s + 1 || strncmp(end, "): ", 3) || !(text = read_severity(end + 3, &severity)))
			continue;

		char *file = arena_strf(p->arena, "%.*s", (int)(s - line), line);
		struct compile_diag *d = add_diag(p, severity, text);

		d->file = file;
		d->line = (int)n;
		return true;
	}
	return false;
}

/* `nvrtc: error: text`, and `error: text` without file and line. */
static void parse_bare(struct parse *p, const char *line)
{
	enum compile_severity severity;
	const char *text;

	if (!strncmp(line, "nvrtc: ", 7))
		line += 7;
	text = read_severity(line, &severity);
	if (text && severity == COMPILE_ERROR)
		add_diag(p, severity, text);
}

/* ---- ptxas ---- */

/* The number before `word`, as in "12 bytes spill stores"; 0 if there is none. */
static int number_before(const char *line, const char *word)
{
	const char *s = strstr(line, word), *digits;

	if (!s)
		return 0;
	while (s > line && s[-1] == ' ')
		s--;
	digits = s;
	while (digits > line && isdigit((unsigned char)digits[-1]))
		digits--;
	return digits == s ? 0 : (int)strtol(digits, NULL, 10);
}

/* The text in the first pair of quotes. */
static char *quoted(struct parse *p, const char *line)
{
	const char *s = strchr(line, '\''), *end = s ? strchr(s + 1, '\'') : NULL;

	return end ? arena_strf(p->arena, "%.*s", (int)(end - s - 1), s + 1) : NULL;
}

/* Lines with numbers of a function. */
static bool parse_use(struct parse *p, const char *line)
{
	static const char properties[] = "Function properties for ";
	struct compile_use *u = p->entry < 0 ? NULL : &p->uses.v[p->entry];
	const char *s;

	if (strstr(line, "Compiling entry function '")) {
		struct compile_use fresh = { .entry = quoted(p, line) };

		if (fresh.entry) {
			VEC_PUSH(p->arena, &p->uses, fresh);
			p->entry = p->uses.n - 1;
			p->other = false;
		}
	} else if ((s = strstr(line, properties))) {
		p->other = !u || strcmp(s + strlen(properties), u->entry) != 0;
	} else if (strstr(line, "bytes stack frame")) {
		if (u && !p->other) {
			u->stack = number_before(line, "bytes stack frame");
			u->spill_stores = number_before(line, "bytes spill stores");
			u->spill_loads = number_before(line, "bytes spill loads");
		}
	} else if (strstr(line, "Used ") && strstr(line, " registers")) {
		if (u) {
			u->registers = number_before(line, "registers");
			u->barriers = number_before(line, "barriers");
			u->smem = number_before(line, "bytes smem");
		}
	} else {
		return false;
	}
	return true;
}

/* `info    : (C7510) Potential Performance Loss: ...` and the like. An info without a code in
 * parentheses is ignored. */
static void parse_ptxas(struct parse *p, const char *line)
{
	const char *semicolon = strstr(line, "; "), *at = strstr(line, ", line "), *text;
	const char *s = line + strlen("ptxas");
	enum compile_severity severity;
	struct compile_diag *d;
	int ptx_line = 0;

	s += strspn(s, " ");
	if (at && semicolon && at < semicolon) {
		ptx_line = (int)strtol(at + strlen(", line "), NULL, 10);
		s = semicolon + 2;
	}
	text = read_severity(s, &severity);
	if (!text || (severity == COMPILE_NOTE && strncmp(text, "(C", 2) != 0) || strstr(text, "aborted due to errors"))
		return;
	if (strstr(text, "Potential Performance Loss"))
		severity = COMPILE_WARNING;
	if (!ptx_line && (at = strstr(text, "around line ")))
		ptx_line = (int)strtol(at + strlen("around line "), NULL, 10);
	d = add_diag(p, severity, text);
	d->ptx_line = ptx_line;
	d->serialized = strstr(text, "wgmma") && strstr(text, "serialized");
	d->ungranted = strstr(text, "'setmaxnreg' ignored");
}

void compile_parse_log(struct compile_result *r, struct arena *a)
{
	struct parse p = { .arena = a, .entry = -1 };
	char *unread = arena_strdup(a, r->log), *line;

	while ((line = strsep(&unread, "\n"))) {
		line[strcspn(line, "\r")] = '\0';
		if (parse_use(&p, line))
			continue;
		if (!strncmp(line, "ptxas", 5))
			parse_ptxas(&p, line);
		else if (!parse_front(&p, line))
			parse_bare(&p, line);
	}
	r->uses = p.uses.v;
	r->nuses = p.uses.n;
	r->diags = p.diags.v;
	r->ndiags = p.diags.n;
}

/* ---- from PTX back to the source ---- */

/* The name that `.file NUMBER "NAME"` gives; "" if there is none. */
static const char *ptx_file(const char *ptx, int number, struct arena *a)
{
	char want[32];
	int n = snprintf(want, sizeof(want), ".file\t%d \"", number);
	const char *s = strstr(ptx, want);

	if (!s) {
		want[5] = ' ';
		s = strstr(ptx, want);
	}
	return s ? arena_strf(a, "%.*s", (int)strcspn(s + n, "\"\n"), s + n) : "";
}

void compile_map_ptx(struct compile_result *r, const char *ptx, struct arena *a)
{
	for (int i = 0; i < r->ndiags; i++) {
		struct compile_diag *d = &r->diags[i];
		const char *s = ptx;
		int file = 0, line = 0;

		if (!d->ptx_line || d->line)
			continue;
		for (int n = 1; n <= d->ptx_line && *s; n++) {
			const char *end = s + strcspn(s, "\n");

			s += strspn(s, " \t");
			if (!strncmp(s, ".loc", 4)) {
				char *next;

				file = (int)strtol(s + 4, &next, 10);
				line = (int)strtol(next, NULL, 10);
			}
			s = *end ? end + 1 : end;
		}
		if (line > 0) {
			d->line = line;
			d->file = ptx_file(ptx, file, a);
		}
	}
}
