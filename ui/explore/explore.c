/* The explorer: one terminal, one model, and the views on it. */
#include "explore/explore.h"

#include <stdio.h>
#include <string.h>

#include "draw/pen.h"
#include "explore/bars.h"
#include "explore/page.h"
#include "explore/pane.h"
#include "explore/positions.h"

static const struct view_ops *const view_list[] = {
#define X(name) &view_##name,
	VIEWS(X)
#undef X
};

/* ---- drawing ---- */

/* What a view lacks, in as many lines as it needs. */
static void draw_lack(struct explorer *x, struct cells *out, const char *lacks)
{
	struct pen pen = frame_pen(&x->m, out->w);

	pen_wrap(&pen, "", 0, lacks);
	pen_show(&pen, out, 0, 0);
}

static void draw_view(struct explorer *x, struct cells *out, int bars)
{
	struct view *v = x->over ? x->over : x->view;
	const char *lacks = lack_of(x, v->ops);
	struct cells area;

	if (out->h <= bars)
		return;
	cells_init(&area, &x->m.frame, out->w, out->h - bars);
	if (lacks)
		draw_lack(x, &area, lacks);
	else
		v->ops->draw(v, &area);
	cells_blit(out, 0, 1, area.w, area.h, &area, 0, 0);
}

static void draw(struct explorer *x)
{
	struct arena_mark mark = arena_mark(&x->m.frame);
	struct cells out;
	int w, h, rows, cursor, row;

	term_size(x->term, &w, &h);
	cells_init(&out, &x->m.frame, w, h);
	rows = message_rows(x, w, h);
	draw_view(x, &out, BAR_ROWS + rows - 1);
	draw_tabs(x, &out);
	rows = message_rows(x, w, h);	/* the view may have given a message */
	for (int y = h - 1 - rows; y < h; y++)
		cells_fill(&out, 0, y, w, " ", PLAIN);
	draw_message(x, &out, rows, &cursor, &row);
	draw_keys(x, &out);
	settings_paint(&x->m.settings, &out);
	term_show(x->term, &out, cursor, row);
	arena_reset(&x->m.frame, mark);
}

/* ---- saving and leaving ---- */

static void ask_path(struct explorer *x, const char *proposal);

static void replace_or_ask(struct model *m, const char *answer)
{
	struct explorer *x = m->calls.arg;

	if (answer[0] != 'y')
		ask_path(x, x->path);
	else
		x->done = model_save(m, x->path, true) && x->leaving;
}

static void save_to(struct model *m, const char *path)
{
	struct explorer *x = m->calls.arg;
	const char *why = m->calls.asks ? m->calls.asks(m, path) : "";

	if (!why)
		return;
	if (!why[0]) {
		x->done = model_save(m, path, false) && x->leaving;
		return;
	}
	snprintf(x->path, sizeof(x->path), "%s", path);
	snprintf(x->question, sizeof(x->question), "%s %s: y replace it, n choose another name, Esc do not save ",
		x->path, why);
	model_ask(m, x->question, "", replace_or_ask);
	m->ask.keys = "yn";
}

static void ask_path(struct explorer *x, const char *proposal)
{
	model_ask(&x->m, "save as: ", proposal, save_to);
	x->m.ask.repeats = true;
}

static void ask_save(struct explorer *x, bool leaving)
{
	const char *path;

	if (!model_can_edit(&x->m))
		return;
	x->leaving = leaving;
	path = x->m.calls.path ? x->m.calls.path(&x->m) : NULL;
	if (path)
		ask_path(x, path);
}

static void leave(struct model *m, const char *answer)
{
	struct explorer *x = m->calls.arg;

	if (answer[0] == 's') {
		ask_save(x, true);
		return;
	}
	if (answer[0] == 'n')
		model_discard(m);
	x->done = true;
}

/* Where nothing holds the plan afterwards, its edits are kept by a file alone. */

static void ask_to_leave(struct explorer *x)
{
	if (!model_is_changed(&x->m)) {
		x->done = true;
		return;
	}
	model_ask(&x->m, x->m.keeps_edits ?
		"the plan has been edited: y keep the edits, n undo them, s save as a script, Esc stay " :
		"the edits are not saved: s save them to a file, n drop them, any other key stays ", "", leave);
	x->m.ask.keys = x->m.keeps_edits ? "yns" : "sn";
	x->m.ask.others_stay = true;
}

/* ---- keys ---- */

/* The question has been answered, or called off if it was not `given`. An empty answer calls it off, too, unless it
 * means something. */
static void answered(struct model *m, bool given)
{
	const struct state *before = m->now;
	struct question q = m->ask;

	m->ask.text = NULL;
	m->message[0] = '\0';
	m->wrong = false;
	if (given && (q.answer[0] || q.may_be_empty))
		q.then(m, q.answer);
	else if (!given && q.off)
		q.off(m);
	if (q.repeats && m->wrong && m->now == before && !m->ask.text) {
		m->ask = q;
		m->ask.offered = false;
		m->ask.repeated = true;
	}
}

/* Write a character as UTF-8; returns how many bytes. */
static size_t put_utf8(int code, char *out)
{
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

	out[0] = (char)(more ? (0xf00 >> more & 0xff) | code >> 6 * more : code);
	for (int i = 1; i <= more; i++)
		out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
	return (size_t)more + 1;
}

static void type_answer(struct explorer *x, int code)
{
	struct question *q = &x->m.ask;
	size_t n = strlen(q->answer);

	if (q->keys && code > ' ' && code < 127 && strchr(q->keys, code)) {
		q->answer[0] = (char)code;
		answered(&x->m, true);
	} else if (code == 27 || (code == '\r' && !q->keys)) {
		answered(&x->m, code == '\r');
	} else if (q->keys) {
		if (q->others_stay && code < 0x110000)
			answered(&x->m, false);
	} else if (code == KEY_CODE_RIGHT || code == KEY_CODE_END) {
		q->offered = false;
	} else if (code == ('u' & 31)) {
		q->answer[0] = '\0';
		q->offered = false;
	} else if (code == KEY_CODE_BACKSPACE) {
		n = q->offered ? 0 : n;
		while (n && ((unsigned char)q->answer[--n] & 0xc0) == 0x80)
			;
		q->answer[n] = '\0';
		q->offered = false;
	} else if (code >= ' ' && code < 0x110000 && code != 127 && n + 5 < sizeof(q->answer)) {
		n = q->offered ? 0 : n;
		q->answer[n + put_utf8(code, q->answer + n)] = '\0';
		q->offered = false;
	}
}

/* Let the view know of a change. */
static void refresh(struct explorer *x)
{
	if (x->view->ops->changed)
		x->view->ops->changed(x->view);
}

static void show_view(struct explorer *x, int id)
{
	x->view = &x->views[id];
	x->over = NULL;
	positions_close(&x->m);
	refresh(x);
}

static void click_tab(struct explorer *x, int column)
{
	int at = 0, w, h;

	term_size(x->term, &w, &h);
	for (int i = 0; i < VIEW_COUNT; i++) {
		at += tab_width(x, i, w);
		if (column < at) {
			show_view(x, i);
			return;
		}
	}
}

static void find(struct explorer *x, int direction)
{
	struct model *m = &x->m;
	struct view *v = x->view;
	bool found;

	if (!m->wanted[0]) {
		model_refuse(m, "nothing to repeat: / starts a search");
		return;
	}
	found = v->ops->find && !lack_of(x, v->ops) ? v->ops->find(v, m->wanted, direction) :
		model_find_task(m, m->wanted, direction);
	if (!found)
		model_refuse(m, "'%s' is not found", m->wanted);
	if (found && v->ops->changed)
		v->ops->changed(v);
}

static void find_first(struct model *m, const char *answer)
{
	snprintf(m->wanted, sizeof(m->wanted), "%s", answer);
	find(m->calls.arg, 0);
}

static void filter_by(struct model *m, const char *answer)
{
	model_filter(m, answer);
	refresh(m->calls.arg);
}

static void filter_by_nothing(struct model *m)
{
	filter_by(m, "");
	model_say(m, "all lanes, units and sTasks are shown");
}

static void ask_filter(struct model *m)
{
	model_ask(m, "show only lanes, units and sTasks with: ", "", filter_by);
	m->ask.may_be_empty = true;
	m->ask.off = filter_by_nothing;
	m->ask.hint = "Enter filters, an empty line shows all  Esc shows all";
}

static const char *view_cancels(const struct explorer *x)
{
	const struct view_ops *ops = x->view->ops;

	return ops->cancels && !lack_of(x, ops) ? ops->cancels(x->view) : NULL;
}

const char *explorer_cancels(const struct explorer *x)
{
	const struct model *m = &x->m;

	if (m->positions)
		return "put back";
	if (x->over)
		return "back";
	if (m->filter[0])
		return "show all";
	if (view_cancels(x))
		return view_cancels(x);
	return m->sel.task != NONE || m->sel.event != NONE ? "deselect" : NULL;
}

/* Esc where nothing hides the view and nothing is picked up: one thing, in the order of explorer_cancels. */
static void cancel(struct explorer *x)
{
	struct model *m = &x->m;

	if (!explorer_cancels(x)) {
		model_say(m, "there is nothing to cancel: q leaves the explorer");
	} else if (m->filter[0]) {
		filter_by_nothing(m);
	} else if (view_cancels(x)) {
		x->view->ops->act(x->view, ACT_CANCEL, &(struct key){ 0 });
	} else {
		m->sel.task = m->sel.event = NONE;
	}
}

static void do_wait(struct model *m, const char *answer)
{
	model_wait(m, answer, true);
}

static void do_unwait(struct model *m, const char *answer)
{
	model_wait(m, answer, false);
}

/* With the waits that there are, of which the first is proposed. */
static void ask_unwait(struct explorer *x)
{
	struct model *m = &x->m;
	const char *waits = model_waits(m);

	if (!waits)
		return;
	if (!waits[0]) {
		model_refuse(m, "'%s' waits for nothing", m->now->graph->tasks.v[m->sel.task].name);
		return;
	}
	snprintf(x->question, sizeof(x->question), "remove the wait of '%s' for which sTask (%s)? ",
		m->now->graph->tasks.v[m->sel.task].name, waits);
	model_ask(m, x->question, arena_strf(&m->frame, "%.*s", (int)strcspn(waits, " "), waits), do_unwait);
	m->ask.repeats = true;
}

/* The present tile: "m=128 n=64". */
static const char *tile_text(struct model *m)
{
	const struct program *p = m->now->graph->program;
	struct buf b = buf_new(&m->frame);

	for (int a = 0; a < p->axes.n; a++)
		if (m->now->graph->tiling.extent[a])
			buf_printf(&b, "%s%s=%lld", b.len ? " " : "", p->axes.v[a].name,
				(long long)m->now->graph->tiling.extent[a]);
	return b.text;
}

static void do_improve(struct model *m, const char *answer)
{
	struct explorer *x = m->calls.arg;

	model_say(m, "searching: Ctrl-C ends it and keeps the best plan");
	draw(x);
	model_improve(m, answer);
	term_drop_keys(x->term);
}

static void ask_improve(struct model *m)
{
	if (!model_can_edit(m))
		return;
	model_ask(m, "search, but keep as they are (sTasks, lanes, buffers, axes, grid): ",
		m->sel.task == NONE ? "" : arena_strf(&m->frame, "%s ", model_moved_name(m, m->sel.task)), do_improve);
	m->ask.offered = false;		/* more names follow */
	m->ask.repeats = m->now->legal;
	m->ask.may_be_empty = true;
}

/* Edits are the same in every view that has them. */
static bool act_edit(struct explorer *x, enum action a)
{
	struct model *m = &x->m;
	bool slow, tried;

	switch ((int)a) {
	case ACT_PICK:
		if (x->view->ops->picks)
			positions_open(m);
		else
			model_refuse(m, "sTasks are picked up in the plan or the timeline");
		return true;
	case ACT_EARLIER: model_shift(m, -1); return true;
	case ACT_LATER: model_shift(m, 1); return true;
	case ACT_MOVE_UP: model_reorder(m, -1); return true;
	case ACT_MOVE_DOWN: model_reorder(m, 1); return true;
	case ACT_OTHER_LANE: model_change_lane(m); return true;
	case ACT_DEEPER: model_deepen(m, 1); return true;
	case ACT_SHALLOWER: model_deepen(m, -1); return true;
	case ACT_REPAIR: model_repair(m); return true;
	case ACT_IMPROVE: ask_improve(m); return true;
	case ACT_UNDO: model_undo(m, false); return true;
	case ACT_REDO: model_undo(m, true); return true;
	case ACT_WHY:
		slow = !m->now->why && model_can_edit(m);
		if (slow) {
			model_say(m, "trying changes of the plan: Ctrl-C stops this");
			draw(x);
		}
		tried = model_try_changes(m);
		if (slow)
			term_drop_keys(x->term);
		if (tried) {
			x->over = &x->changes;
			x->over->ops->changed(x->over);
		}
		return true;
	case ACT_BASE: model_set_base(m); return true;
	case ACT_RUN:				/* takes seconds, so the message is drawn first */
		model_say(m, "compiling, checking against the reference, measuring: Ctrl-C stops this");
		draw(x);
		model_run(m);
		term_drop_keys(x->term);
		return true;
	case ACT_PARTS:
		m->each_part = !m->each_part;
		model_say(m, m->each_part ? "each slice of a split sTask is moved alone" :
			"all slices of a split sTask are moved alike");
		return true;
	case ACT_SAVE: ask_save(x, false); return true;
	case ACT_WAIT_ADD:
		if (model_waits(m)) {		/* an sTask is selected */
			model_ask(m, "add a wait for which sTask? ", "", do_wait);
			m->ask.repeats = true;
		}
		return true;
	case ACT_WAIT_DROP: ask_unwait(x); return true;
	case ACT_TILE:
		if (model_can_edit(m)) {
			model_ask(m, "tile: ", tile_text(m), model_tile);
			m->ask.repeats = true;
		}
		return true;
	default: return false;
	}
}

/* While an sTask is picked up. */
static bool act_picked(struct explorer *x, enum action a)
{
	struct model *m = &x->m;

	switch ((int)a) {
	case ACT_LEFT: positions_choose(m, -1, 0); return true;
	case ACT_RIGHT: positions_choose(m, 1, 0); return true;
	case ACT_UP: positions_choose(m, 0, -1); return true;
	case ACT_DOWN: positions_choose(m, 0, 1); return true;
	case ACT_DROP: positions_drop(m); return true;
	case ACT_CANCEL:
		positions_close(m);
		model_say(m, "put back where it was");
		return true;
	default: return false;
	}
}

static bool act_anywhere(struct explorer *x, enum action a)
{
	int id = (int)(x->view - x->views);

	switch ((int)a) {
	case ACT_QUIT: ask_to_leave(x); return true;
	case ACT_HELP: x->over = x->over == &x->helper ? NULL : &x->helper; return true;
	case ACT_NEXT_VIEW: show_view(x, (id + 1) % VIEW_COUNT); return true;
	case ACT_PREV_VIEW: show_view(x, (id + VIEW_COUNT - 1) % VIEW_COUNT); return true;
	case ACT_SEARCH:
		model_ask(&x->m, "/", "", find_first);
		x->m.ask.hint = "Enter finds  Esc cancels";
		return true;
	case ACT_FILTER: ask_filter(&x->m); return true;
	case ACT_FIND_NEXT: find(x, 1); return true;
	case ACT_FIND_PREV: find(x, -1); return true;
	case ACT_PANE_DOWN: pane_scroll(&x->m, 1); return true;
	case ACT_PANE_UP: pane_scroll(&x->m, -1); return true;
	case ACT_VIEW_1: case ACT_VIEW_2: case ACT_VIEW_3: case ACT_VIEW_4: case ACT_VIEW_5:
	case ACT_VIEW_6: case ACT_VIEW_7: case ACT_VIEW_8:
		show_view(x, (int)a - ACT_VIEW_1);
		return true;
	default: return false;
	}
}

/* The keys that the list of changes leaves as they are: they concern the plan, and not what the list hides. */
static bool act_in_list(struct explorer *x, int code)
{
	enum action a = action_of(code, GROUP_EDIT);

	return x->over == &x->changes && (a == ACT_SAVE || a == ACT_UNDO || a == ACT_REDO) && act_edit(x, a);
}

/* A key without an action here: where it would have one. */
static void refuse_key(struct explorer *x, int code)
{
	if (x->m.positions || action_of(code, GROUP_EDIT) == ACT_NONE)
		return;
	if (x->over)
		model_refuse(&x->m, "this key is for the view behind %s: Esc goes back there",
			x->over == &x->helper ? "the help" : "the list");
	else
		model_refuse(&x->m, "plans are not edited in this view, but in 1 (timeline) and 2 (plan)");
}

static void dispatch(struct explorer *x, const struct key *k)
{
	enum action a = action_of(k->code, groups_of(x));
	struct view *v = x->over ? x->over : x->view;
	bool lacks = lack_of(x, v->ops);
	const struct state *before = x->m.now;
	struct key own = *k;

	own.y--;				/* below the tabs */
	x->m.message[0] = '\0';
	x->m.go = -1;
	if (x->m.positions && act_picked(x, a))
		;
	else if (x->over && (a == ACT_CANCEL || a == ACT_QUIT))
		x->over = NULL;
	else if (a == ACT_CANCEL)
		cancel(x);
	else if (k->code == KEY_CODE_CLICK && k->y == 0)
		click_tab(x, k->x);
	else if (!lacks && v->ops->act && v->ops->act(v, a, &own))
		;
	else if (!((v->ops->groups & GROUP_EDIT) && act_edit(x, a)) && !act_anywhere(x, a) && !act_in_list(x, k->code))
		refuse_key(x, k->code);
	if (x->m.go >= 0)
		show_view(x, x->m.go);
	if (x->m.now != before) {
		x->over = NULL;
		refresh(x);
	}
}

static void take_key(struct explorer *x, const struct key *k)
{
	struct arena_mark mark = arena_mark(&x->m.frame);

	switch (k->code) {
	case KEY_CODE_NONE: case KEY_CODE_RESIZE:
		break;
	case KEY_CODE_INTERRUPT:
		if (!x->m.keeps_edits && model_is_changed(&x->m)) {
			ask_to_leave(x);
			break;
		}
		/* fall through */
	case KEY_CODE_CLOSED:
		x->interrupted = true;
		x->done = true;
		break;
	default:
		if (x->m.ask.text)
			type_answer(x, k->code);
		else
			dispatch(x, k);
	}
	arena_reset(&x->m.frame, mark);
}

/* ---- the loop ---- */

void explorer_open_views(struct explorer *x, int first)
{
	for (int i = 0; i < VIEW_COUNT + 2; i++) {
		struct view *v = i < VIEW_COUNT ? &x->views[i] : i == VIEW_COUNT ? &x->helper : &x->changes;

		*v = (struct view){ .ops = i < VIEW_COUNT ? view_list[i] : i == VIEW_COUNT ? &view_help : &view_changes,
			.m = &x->m };
		v->own = arena_alloc(&x->m.arena, v->ops->size + 1);
	}
	x->view = &x->views[first];
}

void explorer_run(struct explorer *x)
{
	while (!x->done) {
		struct key k;
		bool more;

		draw(x);
		more = x->m.positions != NULL && !x->m.ask.text;
		k = term_key(x->term, false);
		if (k.code == KEY_CODE_NONE && more) {
			struct arena_mark mark = arena_mark(&x->m.frame);

			more = positions_step(&x->m);
			arena_reset(&x->m.frame, mark);
			if (more)
				continue;
		}
		if (k.code == KEY_CODE_NONE)
			k = term_key(x->term, true);
		do {
			take_key(x, &k);
			k = x->done ? (struct key){ 0 } : term_key(x->term, false);
		} while (k.code != KEY_CODE_NONE);
	}
}

void explorer_close(struct explorer *x)
{
	term_close(x->term);
	x->term = NULL;
	positions_close(&x->m);
	model_free(&x->m);
}
