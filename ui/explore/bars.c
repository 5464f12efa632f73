#include "explore/bars.h"

#include <string.h>

enum {
	MESSAGE_ROWS = 6,		/* of a long message or question, at most */
	NAMED_AT = 100,			/* columns from which on tabs have complete names, */
	TABS_WIDTH = 78,		/* which take so many */
	TITLE_LEAST = 8,		/* columns that a title is shortened to, at least */
	LETTERS_LEAST = 3,		/* of the name of a view; with fewer, tabs have numbers alone */
};

unsigned groups_of(const struct explorer *x)
{
	return GROUP_ANY | (x->m.positions ? (unsigned)GROUP_PICKED :
		(x->over ? x->over : x->view)->ops->groups);
}

/* Is the view shown, and not hidden by another one? */
static bool is_shown(const struct explorer *x, int i)
{
	return !x->over && x->view == &x->views[i];
}

/* " 2 plan ", with so many letters of names: as many for the view that is shown, so that no tab moves when that changes,
 * unless the others have numbers alone. */
static const char *tab_with(struct explorer *x, int i, int width, int letters)
{
	const char *name = x->views[i].ops->name;

	if (is_shown(x, i) && !letters)
		letters = (int)strlen(name);
	return arena_strf(&x->m.frame, letters ? " %d %.*s%s" : " %d%.*s%s", i + 1, letters, name,
		width < NAMED_AT ? "" : " ");
}

static int tabs_width(struct explorer *x, int width, int letters)
{
	int sum = 0;

	for (int i = 0; i < VIEW_COUNT; i++)
		sum += text_width(tab_with(x, i, width, letters));
	return sum;
}

/* "gemm on h200 *": `*` if it is edited. On a narrow terminal without the device, and as much as tabs with letters leave. */
static const char *title_text(struct explorer *x, int width)
{
	const char *title = x->m.title, *device = width < TABS_WIDTH + text_width(title) + 3 ? strstr(title, " on ") : NULL;
	const char *changed = model_is_changed(&x->m) ? " *" : "";
	int space = width - tabs_width(x, width, LETTERS_LEAST) - 2 - (int)strlen(changed);
	struct buf b = buf_new(&x->m.frame);

	title = arena_strf(&x->m.frame, "%.*s", device ? (int)(device - title) : (int)strlen(title), title);
	if (text_width(title) > space && space >= TITLE_LEAST)
		text_fit(&b, title, space, ALIGN_LEFT, x->m.flags);
	else
		buf_puts(&b, title);
	buf_puts(&b, changed);
	return b.text;
}

/* Letters of names for which tabs and title have space; 0: the numbers must do. */
static int tab_letters(struct explorer *x, int width)
{
	int space = width - text_width(title_text(x, width)) - 2, letters = 8;

	while (letters >= LETTERS_LEAST && width < NAMED_AT && tabs_width(x, width, letters) > space)
		letters--;
	return letters < LETTERS_LEAST ? 0 : letters;
}

int tab_width(struct explorer *x, int i, int width)
{
	return text_width(tab_with(x, i, width, tab_letters(x, width)));
}

const char *lack_of(const struct explorer *x, const struct view_ops *ops)
{
	return ops->lacks ? ops->lacks(&x->m) : NULL;
}

void draw_tabs(struct explorer *x, struct cells *out)
{
	const char *title = title_text(x, out->w);
	int at = 0, space = out->w - text_width(title) - 1, letters = tab_letters(x, out->w);

	for (int i = 0; i < VIEW_COUNT; i++) {
		struct style style = is_shown(x, i) ? (struct style){ .attr = STYLE_REVERSE | STYLE_BOLD } :
			lack_of(x, x->views[i].ops) ? FAINT : PLAIN;

		at += cells_text(out, at, 0, out->w - at, tab_with(x, i, out->w, letters), style);
	}
	if (space > at)
		cells_text(out, out->w - text_width(title), 0, out->w, title, BOLD);
}

/* Keys that are the same in all views are first in the bar. */
static bool comes_first(int a)
{
	return a == ACT_QUIT || a == ACT_HELP || a == ACT_NEXT_VIEW || a == ACT_SEARCH;
}

/* A key and what it does, if both fit; the column behind it, or -1. */
static int draw_key(struct cells *out, int at, const char *key, const char *brief)
{
	if (at + text_width(key) + 1 + text_width(brief) > out->w)
		return -1;
	at += cells_text(out, at, out->h - 1, out->w - at, key, BOLD) + 1;
	return at + cells_text(out, at, out->h - 1, out->w - at, brief, FAINT) + 2;
}

/* "q quit  ? help  Esc deselect", as many as fit. */
void draw_keys(struct explorer *x, struct cells *out)
{
	unsigned groups = groups_of(x);
	const char *cancels = explorer_cancels(x);
	int at = 0;

	if (x->m.ask.text) {
		if (!x->m.ask.keys)
			cells_text(out, 0, out->h - 1, out->w, arena_strf(&x->m.frame, "%s  C-u clears the line%s",
				x->m.ask.hint ? x->m.ask.hint : "Enter confirms  Esc cancels", x->m.ask.offered ?
				"  typing replaces the proposal  Right: edit it" : ""), FAINT);
		return;
	}
	for (int i = 0; i < 2 * ACTION_COUNT; i++) {
		int a = i % ACTION_COUNT;
		const struct action_row *r = &action_rows[a];
		char key[8];

		if (!r->brief[0] || !(r->group & groups) || comes_first(a) != (i < ACTION_COUNT))
			continue;
		at = draw_key(out, at, action_key((enum action)a, key), r->brief);
		if (a == ACT_HELP && at > 0 && cancels)
			at = draw_key(out, at, "Esc", cancels);
		if (at < 0)
			return;
	}
}

/* The filter, whether the plan is legal, and what it takes. */
static void draw_state(struct explorer *x, struct cells *out, int y)
{
	struct model *m = &x->m;
	int at = 0;

	if (m->filter[0])
		at = cells_text(out, 0, y, out->w, arena_strf(&m->frame, "only %s (& changes this%s); ", m->filter,
			x->over ? "" : ", Esc shows all"), BOLD);
	cells_text(out, at, y, out->w - at, model_usage_text(m), FAINT);
}

/* Bytes of the text that fit into a line, which ends behind a space if it can. */
static size_t line_bytes(struct arena *a, const char *s, int w)
{
	size_t n = 0, last = 0;

	while (s[n]) {
		size_t next = n + 1;

		while (((unsigned char)s[next] & 0xc0) == 0x80)
			next++;
		if (text_width(arena_strf(a, "%.*s", (int)next, s)) > w)
			return last ? last : n ? n : next;
		last = s[n] == ' ' ? next : last;
		n = next;
	}
	return n;
}

/* Lines that a text takes, at most MESSAGE_ROWS and a third of the screen; and these lines. Spaces stay, as they are typed. */
static int wrapped(struct explorer *x, const char *text, int w, int h, const char **out)
{
	int most = (int)max_i64(1, min_i64(MESSAGE_ROWS, h / 3)), rows = 0;
	struct buf b = buf_new(&x->m.frame);

	for (; *text && rows < most; rows++) {
		size_t n = rows == most - 1 ? strlen(text) : line_bytes(&x->m.frame, text, w);

		buf_printf(&b, "%s%.*s", rows ? "\n" : "", (int)n, text);
		text += n;
	}
	*out = b.len ? b.text : "";
	return rows ? rows : 1;
}

/* What stands above the keys: a question with its answer, behind what was wrong with the last one; a message; or "", then it
 * is the state of the plan. */
static const char *message_text(struct explorer *x)
{
	const struct model *m = &x->m;

	if (m->ask.text && m->ask.repeated)
		return arena_strf(&x->m.frame, "%s; %s%s", m->message, m->ask.text, m->ask.answer);
	if (m->ask.text)
		return arena_strf(&x->m.frame, "%s%s", m->ask.text, m->ask.answer);
	return m->message;
}

int message_rows(struct explorer *x, int w, int h)
{
	const char *lines;

	return wrapped(x, message_text(x), w, h, &lines);
}

void draw_message(struct explorer *x, struct cells *out, int rows, int *cursor, int *row)
{
	const struct model *m = &x->m;
	struct style style = m->wrong && !m->ask.text ? (struct style){ .fg = 203, .attr = STYLE_BOLD } : BOLD;
	int y = out->h - 1 - rows, at = 0;
	const char *lines;

	*cursor = -1;
	*row = y;
	if (!m->ask.text && !m->message[0]) {
		if (m->positions)
			cells_text(out, 0, y, out->w, "arrows choose (+: with more versions), Enter puts it there, Esc cancels",
				FAINT);
		else
			draw_state(x, out, y);
		return;
	}
	wrapped(x, message_text(x), out->w, out->h, &lines);
	for (int i = 0; i < rows; i++) {
		size_t n = strcspn(lines, "\n");

		at = cells_text(out, 0, y + i, out->w, arena_strf(&x->m.frame, "%.*s", (int)n, lines), style);
		lines += n + (lines[n] == '\n');
	}
	if (!m->ask.text)
		return;
	*row = y + rows - 1;
	*cursor = at;
	for (int left = text_width(m->ask.answer); left > 0 && at > 0; left--) {	/* the answer is not bold */
		struct cell *c = cells_at(out, --at, *row);

		if (c)		/* a screen of one or two rows has none for the message */
			c->style = m->ask.offered ? (struct style){ .attr = STYLE_REVERSE } : PLAIN;
	}
}
