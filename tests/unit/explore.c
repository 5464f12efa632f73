/* explore.c - explorers, by what is typed and what is seen.
 *
 * Each file of tests/explore is a test: a script that opens an explorer, keys, and the
 * screens that they lead to. BLESS=1 writes the screens as they are now into the files;
 * names of files as arguments run only those. Lines of a file:
 *
 *   # ...              a comment
 *   size 80x24         at first; also `term vt100` and `ascii` (a locale that is not UTF-8)
 *   lua                and, indented below it, the script
 *   keys jj<Down>q     what is typed, key by key: <Up> <Down> <Left> <Right> <S-Left>
 *                      <S-Right> <Home> <End> <PgUp> <PgDn> <Enter> <Esc> <Tab> <BTab> <Bs>
 *                      <Del> <F1> <Space> <C-c> (any letter) <lt>
 *   click X Y          with the left button; also menu, up, down: the right one, the wheel.
 *                      Coordinates count from 0
 *   drag X Y X Y       from one cell to another
 *   resize 120x30      the terminal
 *   screen             and, framed below it, what is to be seen
 *   styles             the same in letters, one for each style, and what they mean
 *   found TEXT         some line of the screen has it; `not found TEXT`: none has
 *   fails TEXT         the script ends with an error that has it; the last line
 *
 * A step is done when the explorer has nothing more to do and waits for a key. After the
 * last one it is closed.
 */
#include "screen.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <locale.h>

#include "session.h"
#include "tap.h"

enum { LINES_MAX = 4000, STYLES_MAX = 52, TEXT_MAX = SCREEN_TEXT + 4096 };

struct scenario {
	const char *path;
	char *text;			/* of the file, owned; split into lines */
	char *line[LINES_MAX];
	int nlines, at;			/* the line that is next */
	struct screen screen;
	const char *keys;		/* what is left of a line of keys */
	int leaving;			/* keys typed to leave */
	char fails[256];
	FILE *fresh;			/* the file as it should be */
	char *written;
	size_t nwritten;
};

/* The line of the file and what it says, as the name of a check. */
static const char *name_of(const struct scenario *s, int line)
{
	static char name[512];
	const char *base = strrchr(s->path, '/');

	snprintf(name, sizeof(name), "%s:%d: %s", base ? base + 1 : s->path, line + 1, s->line[line]);
	return name;
}

static void wrong(const struct scenario *s, const char *why)
{
	ok(false, name_of(s, s->at));
	diag("%s", why);
}

/* ---- keys ---- */

static const struct {
	const char *name, *bytes;
} key_names[] = {
	{ "Up", "\033OA" }, { "Down", "\033OB" }, { "Right", "\033OC" }, { "Left", "\033OD" },
	{ "Home", "\033OH" }, { "End", "\033OF" }, { "PgUp", "\033[5~" }, { "PgDn", "\033[6~" },
	{ "S-Left", "\033[1;2D" }, { "S-Right", "\033[1;2C" }, { "Del", "\033[3~" },
	{ "BTab", "\033[Z" }, { "F1", "\033OP" }, { "Enter", "\r" }, { "Esc", "\033" },
	{ "Tab", "\t" }, { "Bs", "\177" }, { "Space", " " }, { "lt", "<" },
};

/* The next of s->keys. */
static bool type_key(struct scenario *s)
{
	const char *end = s->keys[0] == '<' ? strchr(s->keys, '>') : NULL;
	char bytes[8] = { s->keys[0] };
	size_t len = 1;

	if (end) {
		size_t n = (size_t)(end - s->keys) - 1;

		bytes[0] = '\0';
		for (int i = 0; i < LEN(key_names); i++)
			if (strlen(key_names[i].name) == n && !strncmp(s->keys + 1, key_names[i].name, n))
				strcpy(bytes, key_names[i].bytes);
		if (n == 3 && !strncmp(s->keys + 1, "C-", 2))
			bytes[0] = s->keys[3] & 31;
		len = n + 2;
		if (!bytes[0]) {
			wrong(s, "a key of that name is not known");
			s->keys = NULL;
			return true;
		}
	} else {			/* all bytes of a character */
		while (((unsigned char)s->keys[len] & 0xc0) == 0x80 && len < 4) {
			bytes[len] = s->keys[len];
			len++;
		}
	}
	s->keys = s->keys[len] ? s->keys + len : NULL;
	if (bytes[0] == 3)
		return !raise(SIGINT);
	return screen_type(&s->screen, bytes);
}

static bool press(struct scenario *s, int button, int x, int y, char how)
{
	char bytes[64];

	snprintf(bytes, sizeof(bytes), "\033[<%d;%d;%d%c", button, x + 1, y + 1, how);
	return screen_type(&s->screen, bytes);
}

/* click, menu, up, down, drag; false: it is none of them. */
static bool use_mouse(struct scenario *s, const char *line)
{
	static const struct {
		const char *name;
		int button;
	} ways[] = { { "click", 0 }, { "menu", 2 }, { "up", 64 }, { "down", 65 } };
	int x, y, x2, y2;
	char word[16];

	if (sscanf(line, "drag %d %d %d %d", &x, &y, &x2, &y2) == 4)
		return press(s, 0, x, y, 'M') && press(s, 0, x2, y2, 'm');
	if (sscanf(line, "%15s %d %d", word, &x, &y) != 3)
		return false;
	for (int i = 0; i < LEN(ways); i++)
		if (!strcmp(word, ways[i].name))
			return press(s, ways[i].button, x, y, 'M') &&
				(ways[i].button > 2 || press(s, ways[i].button, x, y, 'm'));
	return false;
}

/* ---- screens ---- */

static void put_rule(FILE *out, int w)
{
	fputc('+', out);
	for (int x = 0; x < w; x++)
		fputc('-', out);
	fputs("+\n", out);
}

static void put_screen(struct screen *s, FILE *out)
{
	char row[4 * SCREEN_SIDE + 1];

	screen_sync(s);
	put_rule(out, s->w);
	for (int y = 0; y < s->h; y++) {
		screen_row(s, y, row);
		fprintf(out, "|%s%*s|\n", row, s->w - text_width(row), "");
	}
	put_rule(out, s->w);
}

/* "fg 203 bg 17 bold". */
static void describe(const VTermScreenCell *c, char out[64])
{
	size_t n = 0;

	out[0] = '\0';
	if (!VTERM_COLOR_IS_DEFAULT_FG(&c->fg))
		n += (size_t)snprintf(out + n, 64 - n, " fg %d", c->fg.indexed.idx);
	if (!VTERM_COLOR_IS_DEFAULT_BG(&c->bg))
		n += (size_t)snprintf(out + n, 64 - n, " bg %d", c->bg.indexed.idx);
	snprintf(out + n, 64 - n, "%s%s%s", c->attrs.bold ? " bold" : "",
		c->attrs.underline ? " underline" : "", c->attrs.reverse ? " reverse" : "");
}

/* Letters in the order in which the styles are met; a dot for what is plain. */
static void put_styles(struct screen *s, FILE *out)
{
	char seen[STYLES_MAX][64], now[64];
	int n = 0;

	put_rule(out, s->w);
	for (int y = 0; y < s->h; y++) {
		fputc('|', out);
		for (int x = 0; x < s->w; x++) {
			VTermScreenCell c = screen_cell(s, x, y);
			int i = 0;

			describe(&c, now);
			while (i < n && strcmp(seen[i], now) != 0)
				i++;
			if (now[0] && i == n && n < STYLES_MAX)
				strcpy(seen[n++], now);
			fputc(!now[0] ? '.' : i == STYLES_MAX ? '?' : i < 26 ? 'a' + i : 'A' + i - 26, out);
		}
		fputs("|\n", out);
	}
	put_rule(out, s->w);
	for (int i = 0; i < n; i++)
		fprintf(out, "%c%s\n", i < 26 ? 'a' + i : 'A' + i - 26, seen[i]);
}

static bool is_block(const char *line)
{
	return line[0] == '|' || line[0] == '+' || (line[0] && (!strncmp(line + 1, " fg ", 4) ||
		!strncmp(line + 1, " bg ", 4) || !strncmp(line + 1, " bold", 5) ||
		!strncmp(line + 1, " underline", 10) || !strncmp(line + 1, " reverse", 8)));
}

static void show_block(const char *what, const char *text)
{
	diag("%s:", what);
	while (*text) {
		int n = (int)strcspn(text, "\n");

		diag("%.*s", n, text);
		text += n + (text[n] != '\0');
	}
}

/* Compare what `put` writes with the block below the line, and go behind it. */
static void check_block(struct scenario *s, void (*put)(struct screen *, FILE *))
{
	static char want[TEXT_MAX];
	char *got = NULL;
	size_t n = 0, used = 0;
	int title = s->at - 1;
	FILE *f = open_memstream(&got, &n);

	put(&s->screen, f);
	fclose(f);
	want[0] = '\0';
	while (s->at < s->nlines && is_block(s->line[s->at]) && used < sizeof(want) - 2) {
		used += (size_t)snprintf(want + used, sizeof(want) - used, "%s\n", s->line[s->at]);
		s->at++;
	}
	fputs(got, s->fresh);
	if (getenv("BLESS")) {
		ok(true, name_of(s, title));
	} else if (!ok(!strcmp(got, want), name_of(s, title))) {
		show_block("got", got);
		show_block("want", want);
	}
	free(got);
}

static void check_found(struct scenario *s, const char *text, bool want)
{
	bool found = strstr(screen_text(&s->screen), text) != NULL;

	if (!ok(found == want, name_of(s, s->at - 1)))
		show_block("the screen", s->screen.text);
}

/* ---- steps ---- */

static bool starts(const char *line, const char *word, const char **argument)
{
	size_t n = strlen(word);

	*argument = line + n + (line[n] == ' ');
	return !strncmp(line, word, n) && (line[n] == ' ' || !line[n]);
}

/* One line; true if the explorer has something to do now. */
static bool step(struct scenario *s)
{
	const char *line = s->line[s->at++], *argument;
	int w, h;

	fprintf(s->fresh, "%s\n", line);
	if (!line[0] || line[0] == '#')
		return false;
	if (starts(line, "keys", &argument)) {
		s->keys = argument[0] ? argument : NULL;
		return s->keys && type_key(s);
	}
	if (starts(line, "screen", &argument)) {
		check_block(s, put_screen);
	} else if (starts(line, "styles", &argument)) {
		check_block(s, put_styles);
	} else if (starts(line, "found", &argument)) {
		check_found(s, argument, true);
	} else if (starts(line, "not found", &argument)) {
		check_found(s, argument, false);
	} else if (starts(line, "fails", &argument)) {
		snprintf(s->fails, sizeof(s->fails), "%s", argument);
	} else if (sscanf(line, "resize %dx%d", &w, &h) == 2 && w > 0 && h > 0 && w <= SCREEN_SIDE &&
		   h <= SCREEN_SIDE) {
		screen_resize(&s->screen, w, h);
		return true;
	} else if (use_mouse(s, line)) {
		return true;
	} else {
		s->at--;
		wrong(s, "what this line asks for is not known");
		s->at++;
	}
	return false;
}

/* Instead of a user: called when the explorer waits for a key. */
static bool idle(void *arg)
{
	static const char *const leave[] = { "\033", "\033", "q", "n" };
	struct scenario *s = arg;

	if (s->keys)
		return type_key(s);
	while (s->at < s->nlines)
		if (step(s))
			return true;
	return s->leaving < LEN(leave) && screen_type(&s->screen, leave[s->leaving++]);
}

/* ---- files ---- */

static bool read_scenario(struct scenario *s, const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n, cap = 1 << 20;

	*s = (struct scenario){ .path = path };
	if (!f)
		return false;
	s->text = calloc(1, cap + 1);
	n = fread(s->text, 1, cap, f);
	fclose(f);
	for (char *at = s->text, *end; n && *at && s->nlines < LINES_MAX; at = end + 1) {
		s->line[s->nlines++] = at;
		end = strchr(at, '\n');
		if (!end)
			break;
		*end = '\0';
	}
	s->fresh = open_memstream(&s->written, &s->nwritten);
	return true;
}

/* What stands before the steps; the script goes to `chunk`. */
static bool read_header(struct scenario *s, int *w, int *h, char *type, bool *ascii,
	char *chunk, size_t size)
{
	size_t n = 0;

	for (; s->at < s->nlines; s->at++) {
		const char *line = s->line[s->at];

		fprintf(s->fresh, "%s\n", line);
		if (!strcmp(line, "ascii"))
			*ascii = true;
		else if (!strcmp(line, "lua"))
			break;
		else if (sscanf(line, "size %dx%d", w, h) != 2 && sscanf(line, "term %63s", type) != 1 &&
			 line[0] && line[0] != '#')
			return false;
	}
	s->at++;
	chunk[0] = '\0';
	for (; s->at < s->nlines && (!s->line[s->at][0] || strchr(" \t", s->line[s->at][0])); s->at++) {
		fprintf(s->fresh, "%s\n", s->line[s->at]);
		n += (size_t)snprintf(chunk + n, size - n, "%s\n", s->line[s->at]);
		if (n >= size)
			return false;
	}
	return n > 0 && *w > 0 && *h > 0 && *w <= SCREEN_SIDE && *h <= SCREEN_SIDE;
}

static void bless(struct scenario *s)
{
	FILE *f;

	while (s->at < s->nlines)
		fprintf(s->fresh, "%s\n", s->line[s->at++]);
	fflush(s->fresh);
	f = fopen(s->path, "w");
	if (!f) {
		diag("cannot write %s: %s", s->path, strerror(errno));
		return;
	}
	fwrite(s->written, 1, s->nwritten, f);
	fclose(f);
}

static void check_end(struct scenario *s, const char *error)
{
	char what[512];

	while (s->at < s->nlines && !s->keys && (strchr("#", s->line[s->at][0]) ||
	       !strncmp(s->line[s->at], "fails ", 6)))
		step(s);
	snprintf(what, sizeof(what), "%s: ends %s", strrchr(s->path, '/') + 1,
		s->fails[0] ? "with an error" : "well");
	if (s->at < s->nlines || s->keys) {
		s->at -= s->at == s->nlines;
		wrong(s, "the explorer had ended before this line");
		if (error[0])
			show_block("with the error", error);
	} else if (s->fails[0] ? !ok(strstr(error, s->fails) != NULL, what) : !ok(!error[0], what)) {
		show_block("the error", error);
	}
}

static void run_scenario(const struct session *p, const char *path)
{
	static struct scenario s;
	static char chunk[1 << 16];
	char type[64] = "xterm-256color";
	int w = 80, h = 24;
	bool ascii = false;

	if (!read_scenario(&s, path) || !read_header(&s, &w, &h, type, &ascii, chunk, sizeof(chunk)) ||
	    !screen_open(&s.screen, w, h)) {
		ok(false, path);
		diag("cannot be read, or lacks a size or a script");
	} else {
		struct term_setup setup = screen_setup(&s.screen, type);

		setup.idle = idle;
		setup.arg = &s;
		setlocale(LC_ALL, ascii ? "C" : "C.UTF-8");
		check_end(&s, session_run(p, chunk, "script", &setup));
		screen_close(&s.screen);
		if (getenv("BLESS"))
			bless(&s);
	}
	if (s.fresh)
		fclose(s.fresh);
	free(s.written);
	free(s.text);
}

int main(int argc, char **argv)
{
	static char path[4096 + 64];
	struct session p;
	char *given[256];
	int ngiven = 0;
	glob_t files;

	if (!setlocale(LC_ALL, "C.UTF-8")) {
		skip("no locale C.UTF-8");
		return tap_done();
	}
	unsetenv("NO_COLOR");
	for (int i = 1; i < argc && ngiven < LEN(given); i++)
		given[ngiven++] = realpath(argv[i], NULL);
	if (!session_enter(&p)) {
		ok(false, "there is a folder to be in");
		return tap_done();
	}
	snprintf(path, sizeof(path), "%s/tests/explore/*.txt", p.home);
	for (int i = 0; i < ngiven; i++) {
		if (ok(given[i] != NULL, "a file that is given"))
			run_scenario(&p, given[i]);
		free(given[i]);
	}
	if (!ngiven && !glob(path, 0, NULL, &files)) {
		for (size_t i = 0; i < files.gl_pathc; i++)
			run_scenario(&p, files.gl_pathv[i]);
		globfree(&files);
	}
	session_leave(&p);
	return tap_done();
}
