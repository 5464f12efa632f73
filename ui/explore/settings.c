#include "explore/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "draw/label.h"
#include "draw/picture.h"

enum { FILE_MAX = 1 << 16, SHADES = 5, BLACK = 16, WHITE = 231 };

/* What can have another colour. Kinds of sTasks have that of their names, and of bars in timelines. */
static const struct {
	const char *name;
	bool is_kind;
	enum task_kind kind;
	uint8_t colour;			/* of the palette, in which it is drawn */
} colours[] = {
	{ "colour.load", true, TASK_LOAD, 0 }, { "colour.product", true, TASK_MMA, 0 },
	{ "colour.compute", true, TASK_COMPUTE, 0 }, { "colour.store", true, TASK_STORE, 0 },
	{ "colour.faint", false, 0, 245 }, { "colour.mark", false, 0, 220 }, { "colour.error", false, 0, 203 },
};

static const char *const column_names[] = {
#define X(name, width) #name,
	PLAN_COLUMNS(X)
#undef X
};

struct line {
	struct settings *s;
	const char *path;
	int number;
};

static bool complain(const struct line *l, const char *why, const char *what)
{
	if (!l->s->wrong[0])
		snprintf(l->s->wrong, sizeof(l->s->wrong), "%s:%d is left out: %s '%s'", l->path, l->number, why, what);
	return false;
}

/* The next word of *at, which it ends with a '\0'; NULL if there is none. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t,\r"), *end = word + strcspn(word, " \t,\r");

	*at = *end ? end + 1 : end;
	*end = '\0';
	return word[0] ? word : NULL;
}

/* The colour of the palette that bars of timelines have: of a kind, of an sTask of it, of a slice of that. */
static uint8_t colour_of_bar(enum task_kind kind, int hue, int shade)
{
	return colour_of_256(ink_colour(THEME_DARK, ink_of_task((int)kind, hue, shade)));
}

/* Does this kind have the colour, or share it with kinds for which it is less important: of further slices, or later kinds? */
static bool owns_colour(enum task_kind kind, uint8_t colour)
{
	for (int shade = 0; shade < INK_SHADES; shade++)
		for (int k = 0; k < INK_KINDS; k++)
			for (int hue = 0; hue < INK_HUES; hue++)
				if (colour_of_bar((enum task_kind)k, hue, shade) == colour)
					return k == (int)kind;
	return false;
}

/* The n-th sTask of the kind has the n-th colour; so have its slices. */
static void set_kind(struct settings *s, enum task_kind kind, const uint8_t *given, int n)
{
	for (int shade = INK_SHADES - 1; shade >= 0; shade--)
		for (int hue = INK_HUES - 1; hue >= 0; hue--) {
			uint8_t usual = colour_of_bar(kind, hue, shade);

			if (owns_colour(kind, usual))
				s->colour[usual] = given[hue % n];
		}
	s->colour[style_of_kind(kind).fg] = given[0];
}

static bool set_colour(const struct line *l, int which, char *value)
{
	uint8_t given[SHADES];
	int n = 0;

	for (char *word; (word = next_word(&value));) {
		char *end;
		long v = strtol(word, &end, 10);

		if (*end || v < 1 || v > 255 || n == SHADES)
			return complain(l, n == SHADES ? "there are only five shades; not" :
				"a colour is a number from 1 to 255, not", word);
		given[n++] = (uint8_t)v;
	}
	if (!n)
		return complain(l, "no colour is given for", colours[which].name);
	if (colours[which].is_kind)
		set_kind(l->s, colours[which].kind, given, n);
	else
		l->s->colour[colours[which].colour] = given[0];
	l->s->coloured = true;
	return true;
}

static bool set_columns(const struct line *l, char *value)
{
	enum plan_column given[PLAN_COLUMN_COUNT];
	int n = 0;

	for (char *word; (word = next_word(&value));) {
		int c = 0;

		while (c < PLAN_COLUMN_COUNT && strcmp(column_names[c], word))
			c++;
		for (int i = 0; i < n; i++)
			if (given[i] == (enum plan_column)c)
				return complain(l, "this column is given twice:", word);
		if (c == PLAN_COLUMN_COUNT)
			return complain(l, "columns are unit, at, takes, loc and waits, not", word);
		given[n++] = (enum plan_column)c;
	}
	memcpy(l->s->column, given, sizeof(*given) * (size_t)n);
	l->s->ncolumns = n;
	return true;
}

static bool set(const struct line *l, char *text)
{
	char *name, *value;

	text[strcspn(text, "#")] = '\0';
	value = strchr(text, '=');
	if (value)
		*value++ = '\0';
	name = next_word(&text);
	if (!name && !value)
		return true;
	if (!name || !value)
		return complain(l, "a line is NAME = VALUE, not", name ? name : "=");
	if (!strcmp(name, "plan.columns"))
		return set_columns(l, value);
	for (int i = 0; i < LEN(colours); i++)
		if (!strcmp(name, colours[i].name))
			return set_colour(l, i, value);
	return complain(l, "there is no setting", name);
}

void settings_parse(struct settings *s, const char *path, const char *text)
{
	static const enum plan_column usual[] = { COLUMN_unit, COLUMN_at, COLUMN_waits };
	struct line l = { s, path, 0 };

	*s = (struct settings){ .ncolumns = LEN(usual) };
	memcpy(s->column, usual, sizeof(usual));
	for (int i = 0; i < 256; i++)
		s->colour[i] = (uint8_t)i;
	while (*text) {
		char one[512];
		size_t n = strcspn(text, "\n");

		l.number++;
		snprintf(one, sizeof(one), "%.*s", (int)n, text);
		set(&l, one);
		text += n + (text[n] == '\n');
	}
}

/* The text of a file that is not too large, and no pipe on which one would wait; false if there is none. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	text[0] = '\0';
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

void settings_read(struct settings *s)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	static char text[FILE_MAX];
	char path[4096];

	if (config && config[0])
		snprintf(path, sizeof(path), "%s/millrace/settings", config);
	else
		snprintf(path, sizeof(path), "%s/.config/millrace/settings", home ? home : "");
	settings_parse(s, path, read_text(path, text, sizeof(text)) ? text : "");
}

/* Is a colour of the palette so dark that black on it cannot be read? */
static bool is_dark(uint8_t c)
{
	int level = c - BLACK;

	if (c >= 232)
		return c < 244;
	if (c < BLACK)
		return c == 0 || c == 1 || c == 4 || c == 5 || c == 8;
	return 2 * (level / 36) + 4 * (level / 6 % 6) + level % 6 < 12;
}

void settings_paint(const struct settings *s, struct cells *c)
{
	for (int i = 0; i < c->w * c->h && s->coloured; i++) {
		struct style *style = &c->at[i].style;
		uint8_t bg = style->bg;

		style->bg = s->colour[bg];
		style->fg = s->colour[style->fg];
		if (style->bg != bg && (style->fg == BLACK || style->fg == WHITE))
			style->fg = is_dark(style->bg) ? WHITE : BLACK;
	}
}
