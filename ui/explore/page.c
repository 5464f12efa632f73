#define _GNU_SOURCE		/* strcasestr */
#include "explore/page.h"

#include <ctype.h>
#include <string.h>

enum { COLUMNS_MAX = 600, SIDE_STEP = 8 };

bool computed_begin(struct computed *c, struct model *m, uint64_t key)
{
	if (c->made && c->key == key)
		return false;
	if (!c->arena)
		c->arena = model_arena(m);
	c->made = false;
	c->key = key;
	arena_release(c->arena);
	return true;
}

uint64_t key_of_state(const struct state *s)
{
	const char *script = s->script ? s->script : "";
	uint64_t key = hash_bytes(hash_basis(0), script, strlen(script));

	return hash_mix(hash_mix(key, (uintptr_t)s), (uintptr_t)s->tl);
}

struct pen frame_pen(struct model *m, int width)
{
	struct draw_options o = { .width = width, .flags = m->flags & DRAW_COLOUR };
	struct buf *out = ARENA_NEW(&m->frame, struct buf);

	buf_init(out, &m->frame);
	return pen_new(&o, out);
}

void pen_show(const struct pen *pen, struct cells *out, int x, int y)
{
	cells_scan(out, x, y, pen->width, out->h - y, pen->out->len ? pen->out->text : "");
}

bool page_begin(struct page *p, struct model *m, uint64_t key, int width, struct pen *pen)
{
	if (p->made && p->key == key && p->width == width && p->flags == m->flags)
		return false;
	if (!p->arena)
		p->arena = model_arena(m);
	p->made = false;
	p->key = key;
	p->width = width;
	p->flags = m->flags;
	*pen = frame_pen(m, width);
	return true;
}

static bool is_name_char(const struct cell *c)
{
	return isalnum((unsigned char)c->utf8[0]) || c->utf8[0] == '_' || c->utf8[0] == '.';
}

/* The characters of n cells from (x, y) on; a blank for each that has more than one byte. */
static void read_cells(const struct cells *c, int x, int y, int n, char *out)
{
	for (int i = 0; i < n; i++) {
		const struct cell *cell = cells_at(c, x + i, y);

		out[i] = cell->utf8[0] && !cell->utf8[1] ? cell->utf8[0] : ' ';
	}
	out[n] = '\0';
}

static void find_names(struct page *p, const struct graph *g)
{
	char name[COLUMNS_MAX + 1];

	for (int y = 0; y < p->cells.h; y++) {
		for (int x = 0, n; x < p->cells.w; x += n + 1) {
			int task;

			for (n = 0; x + n < p->cells.w && is_name_char(cells_at(&p->cells, x + n, y)); n++)
				;
			if (!n)
				continue;
			read_cells(&p->cells, x, y, n, name);
			task = graph_find_task(g, name);
			if (task != NONE)
				VEC_PUSH(p->arena, &p->names, ((struct page_name){ x, y, n, task }));
		}
	}
}

void page_end(struct page *p, const struct pen *pen, const struct graph *g)
{
	const char *text = pen->out->len ? pen->out->text : "";
	int w, h;

	p->cells = (struct cells){ 0 };
	memset(&p->names, 0, sizeof(p->names));
	arena_release(p->arena);
	cells_measure(text, &w, &h);
	w = w < COLUMNS_MAX ? w : COLUMNS_MAX;
	cells_init(&p->cells, p->arena, w, h);
	cells_scan(&p->cells, 0, 0, w, h, text);
	if (g)
		find_names(p, g);
	p->made = true;
	page_go(p, p->cursor);
}

void page_go(struct page *p, int line)
{
	int last = p->cells.h ? p->cells.h - 1 : 0;

	p->cursor = line < 0 ? 0 : line > last ? last : line;
	if (p->still) {
		p->top = (int)max_i64(0, min_i64(p->cursor, p->cells.h - p->height));
		return;
	}
	if (p->cursor < p->top)
		p->top = p->cursor;
	if (p->height && p->cursor >= p->top + p->height)
		p->top = p->cursor - p->height + 1;
}

void page_mark(const struct page *p, struct cells *out, int x, int y, int w, int h, int task)
{
	int edge = w >= PAGE_EDGE_MIN;

	for (int i = 0; i < p->names.n; i++) {
		const struct page_name *m = &p->names.v[i];
		int at = m->x - p->left, row = m->y - p->top;

		if (m->task == task && row >= 0 && row < h && at >= 0)
			cells_mark(out, x + edge + at, y + row, (int)min_i64(m->n, w - edge - at), STYLE_REVERSE);
	}
}

void page_draw(struct page *p, struct cells *out, int x, int y, int w, int h, int task)
{
	int edge = w >= PAGE_EDGE_MIN;

	p->height = h;
	if (!p->still)
		page_go(p, p->cursor);
	p->top = (int)max_i64(0, min_i64(p->top, p->cells.h - h));
	cells_blit(out, x + edge, y, w - edge, h, &p->cells, p->left, p->top);
	page_mark(p, out, x, y, w, h, task);
	if (edge && h > 0 && p->cells.h && !p->still)
		cells_put(out, x, y + p->cursor - p->top, "▸", BOLD);
}

bool page_act(struct page *p, enum action a)
{
	int page = p->height > 2 ? p->height - 1 : 1, at = p->still ? p->top : p->cursor;

	switch ((int)a) {
	case ACT_UP: page_go(p, at - 1); return true;
	case ACT_DOWN: page_go(p, at + 1); return true;
	case ACT_PAGE_UP: page_go(p, at - page); return true;
	case ACT_PAGE_DOWN: page_go(p, at + page); return true;
	case ACT_HOME: page_go(p, 0); return true;
	case ACT_END: page_go(p, p->cells.h - 1); return true;
	case ACT_LEFT: p->left = p->left > SIDE_STEP ? p->left - SIDE_STEP : 0; return true;
	case ACT_RIGHT:
		if (p->left + SIDE_STEP < p->cells.w)
			p->left += SIDE_STEP;
		return true;
	}
	return false;
}

bool page_find(struct page *p, const char *text, int direction)
{
	int n = p->cells.h, step = direction ? direction : 1;
	char line[COLUMNS_MAX + 1];

	for (int i = 0; i < n; i++) {
		int y = (int)floor_mod(p->cursor + direction + (int64_t)i * step, n);

		read_cells(&p->cells, 0, y, p->cells.w, line);
		if (!strcasestr(line, text))
			continue;
		page_go(p, y);
		return true;
	}
	return false;
}

void draw_separator(struct cells *out, bool upright, int at)
{
	for (int y = 0; y < out->h && upright; y++)
		cells_put(out, at, y, "│", FAINT);
	if (!upright)
		cells_fill(out, 0, at, out->w, "─", FAINT);
}

void draw_scroll_marks(struct cells *out, int x, int y, int w, int h, int top, int all)
{
	if (w < 2 || h < 1)
		return;
	if (top + h < all)
		cells_text(out, x + w - 2, y + h - 1, 2, " ▼", BOLD);
	if (top > 0)
		cells_text(out, x + w - 2, y, 2, " ▲", BOLD);
}

const char *loc_text(struct arena *a, struct srcloc loc)
{
	const char *slash = loc.file ? strrchr(loc.file, '/') : NULL, *file = slash ? slash + 1 : loc.file;

	if (!file)
		return "";
	return loc.line ? arena_strf(a, "%s:%d", file, loc.line) : file;
}
