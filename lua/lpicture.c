/* core.picture and others: pictures and traces, to files and to the terminal. */
#include "lplan.h"
#include "lprogress.h"
#include "lsequence.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "draw/pictures.h"
#include "draw/sequences.h"
#include "draw/units.h"

static const char *const formats[] = { "svg", "png", "pdf" };	/* ORDER picture_format */
static const char *const themes[] = { "light", "dark" };	/* ORDER theme */

enum { FRAMES_MAX = 10000, CELL_W = 10, CELL_H = 20 };

/* Options of a picture. */
struct picture_wish {
	struct timeline_view view;
	struct picture_options options;
	struct picture_how how;
	double enlarge;			/* of the picture that is drawn */
	int64_t count;			/* of frames */
	int format;
};

/* Options of timelines. Pictures that move show how the pipeline fills, so they begin with the phase. */
static void check_view(lua_State *L, int idx, const char *what, const struct timeline *t, bool frames,
	struct picture_wish *w)
{
	static const char *const rows[] = { "lane", "seu", "ring" };	/* ORDER timeline_rows */
	int64_t tile = 0;
	int by = TIMELINE_LANES;

	option_name(L, idx, what, "by", rows, LEN(rows), &by);
	option_integer(L, idx, what, "tile", 0, INT32_MAX, &tile);
	option_integer(L, idx, what, "to", 1, INT64_MAX, &w->view.to);
	option_bool(L, idx, what, "animate", &w->how.animate);
	w->view.from = w->view.to || tile || w->how.animate || frames ? 0 : TIMELINE_STEADY;
	option_integer(L, idx, what, "from", 0, INT64_MAX, &w->view.from);
	option_bool(L, idx, what, "rings", &w->options.rings);
	if (w->view.to && w->view.to <= w->view.from)
		throw_msg(L, "%s: `to` must be after `from`, got from %lld to %lld", what,
			(long long)w->view.from, (long long)w->view.to);
	w->view.phase = option_phase(L, idx, what, t);
	check_from(L, what, t, w->view.phase, w->view.from);
	w->options.only_rings = by == LEN(rows) - 1;
	w->view.by = w->options.only_rings ? TIMELINE_LANES : (enum timeline_rows)by;
	w->view.tile = (int)tile;
	if (option_real(L, idx, what, "seconds", &w->how.seconds) && !(w->how.seconds >= 0.1 && w->how.seconds <= 3600))
		throw_msg(L, "%s: seconds are from 0.1 to 3600", what);
}

/* Sizes for a purpose, which options of their own override. */
static const struct preset {
	int64_t width, height;		/* height 0: what the rows need */
	double enlarge, scale;
	bool brief;
} presets[] = {
	{ 640, 360, 1.25, 3, true },	/* slide: the shape of a screen; with little on it, legible at a third of one */
	{ 640, 0, 1, 4, false },	/* print: as wide as the text of a page, with 400 dots an inch */
};

/* Read the options at idx; t is NULL if the picture is not of a timeline. */
static void check_wish(lua_State *L, int idx, const char *what, const struct timeline *t, bool frames,
	struct picture_wish *w)
{
	/* show= is not of frames, and is read where the file is chosen */
	static const char *const all[] = { "show", "width", "height", "theme", "title", "scale", "preset", "by", "phase",
		"tile", "from", "to", "rings", "animate", "seconds", "count", "format" };
	const char *const *names = frames ? all + 1 : all;
	static const char *const purposes[] = { "slide", "print" };	/* ORDER presets */
	int64_t width = 0, height = 0;
	double exact = 0;		/* the height; integral only if it is given */
	int theme = THEME_LIGHT, preset = NONE;

	options_check(L, idx, what, names, frames ? LEN(all) - 1 : t ? LEN(all) - 2 : 7);
	w->enlarge = 1;
	if (option_name(L, idx, what, "preset", purposes, LEN(purposes), &preset)) {
		width = presets[preset].width;
		w->enlarge = presets[preset].enlarge;
		w->how.scale = presets[preset].scale;
		w->options.brief = presets[preset].brief;
	}
	option_integer(L, idx, what, "width", PICTURE_WIDTH_MIN, PICTURE_WIDTH_MAX, &width);
	if (preset != NONE && presets[preset].height) {		/* the shape and the pixels of a screen, whatever the width */
		exact = (double)(width * presets[preset].height) / (double)presets[preset].width;
		w->how.scale *= (double)presets[preset].width / (double)width;
	}
	if (option_integer(L, idx, what, "height", 100, PICTURE_WIDTH_MAX, &height))
		exact = (double)height;
	option_name(L, idx, what, "theme", themes, LEN(themes), &theme);
	option_text(L, idx, what, "title", &w->options.title);
	if (option_real(L, idx, what, "scale", &w->how.scale) && !(w->how.scale >= 0.05 && w->how.scale <= 16))
		throw_msg(L, "%s: scale is from 0.05 to 16", what);
	if (t)
		check_view(L, idx, what, t, frames, w);
	if (frames) {
		option_integer(L, idx, what, "count", 1, FRAMES_MAX, &w->count);
		option_name(L, idx, what, "format", formats, LEN(formats), &w->format);
	}
	w->options.width = (double)width / w->enlarge;
	w->options.height = exact / w->enlarge;
	w->options.theme = w->how.theme = (enum theme)theme;
}

/* Show a picture on the terminal; returns NULL, or why that is not possible. */
static const char *show_picture(const struct picture *p, const struct picture_wish *w)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return "standard output is not a terminal";
	if (!size.ws_xpixel || !size.ws_ypixel || !size.ws_row) {
		size.ws_xpixel = (unsigned short)(size.ws_col * CELL_W);
		size.ws_ypixel = (unsigned short)(size.ws_row * CELL_H);
	}
	return picture_show(p, &w->how, size.ws_col, size.ws_xpixel / size.ws_col,
		size.ws_row ? size.ws_ypixel / size.ws_row : CELL_H, stdout);
}

/* A picture that a function of core is asked for, and of what. */
struct request {
	const char *what, *path;	/* for messages: the format; NULL: to no file */
	struct picture_wish wish;
	struct picture picture;
	const struct timeline *timeline, *other;
	const struct plan *plan;
	const struct graph *graph;
	const struct seqline *line;	/* of a sequence */
	const struct seqplan *sequence;
	const struct vdevice *device;
	enum dtype type;		/* of the products of a roofline */
	const struct roof_point *points;
	const struct progress_curve *curves;
	int n;				/* of points or of curves */
};

static void draw_request(struct picture *p, const void *what, const struct picture_options *o)
{
	const struct request *r = what;

	if (r->points)
		picture_roofline(p, r->device, r->type, r->points, r->n, o);
	else if (r->curves)
		picture_progress(p, r->curves, r->n, o);
	else if (r->timeline && r->other)
		picture_compare(p, r->timeline, r->other, &r->wish.view, o);
	else if (r->timeline)
		picture_timeline(p, r->timeline, &r->wish.view, o);
	else if (r->line)
		picture_seqline(p, r->line, o);
	else if (r->sequence)
		picture_seqplan(p, r->sequence, o);
	else if (r->plan)
		picture_plan(p, r->plan, o);
	else
		picture_graph(p, r->graph, o);
}

/* Draw in the size that is wished for; slides get the shape of a screen. `below`: pixels that are added later. */
static void draw_wish(struct request *r, double below)
{
	struct picture_options *o = &r->wish.options;

	if (o->brief && o->height > 0) {
		o->height = fmax(o->height - below / r->wish.enlarge, 1);
		picture_on_screen(&r->picture, draw_request, r, o);
	} else {
		draw_request(&r->picture, r, o);
	}
	if (r->wish.enlarge != 1)
		picture_enlarge(&r->picture, r->wish.enlarge);
}

/* Read format, path or nil, options or nil and script from index `first` on; t as in check_wish. Leaves scratch
 * memory on the stack, in which the picture is. */
static void begin_picture(lua_State *L, int first, const struct timeline *t, struct request *r)
{
	int format = check_choice(L, first, "picture", "format", formats, LEN(formats));

	*r = (struct request){ .what = formats[format] };
	r->path = lua_isnil(L, first + 1) ? NULL : check_text(L, first + 1, r->what, "path");
	check_wish(L, first + 2, r->what, t, false, &r->wish);
	r->wish.how.format = (enum picture_format)format;
	picture_init(&r->picture, scratch_push(L), "");
	r->picture.script = lua_isnil(L, first + 3) ? "" : check_text(L, first + 3, r->what, "script");
	enter(L);
}

/* Draw the picture, save it if there is a path, and show it on the terminal if that is wanted: returns nothing, or why
 * it cannot be shown. */
static int finish_picture(lua_State *L, struct request *r, bool show)
{
	struct err e;

	draw_wish(r, 0);
	if (r->path && picture_save(&r->picture, &r->wish.how, r->path, &e))
		throw_err(L, &e);
	if (!show)
		return 0;
	lua_pushstring(L, show_picture(&r->picture, &r->wish));
	return 1;
}

/* core.picture(x, format, path or nil, options or nil, script, other timeline or nil, show[, name, name of the other]); of a
 * plan, the other timeline is its simulation */
static int picture_l(lua_State *L)
{
	struct timeline *t = NULL, *other = NULL;
	struct request r;

	lua_settop(L, 9);
	if (luaL_testudata(L, 1, TIMELINE_CLASS))
		t = check_timeline(L, 1, "picture");
	if (!lua_isnil(L, 6))
		other = check_timeline(L, 6, "picture");
	begin_picture(L, 2, t, &r);
	r.wish.options.predicted = t ? NULL : other;
	if (r.wish.how.animate && (r.wish.how.format != PICTURE_SVG || other))
		throw_msg(L, "%s: only the svg of one timeline can be animated; tl:frames writes single pictures",
			r.what);
	for (int i = 0; i < 2 && t && other; i++)
		r.wish.options.names[i] = check_text(L, 8 + i, r.what, "name");
	r.timeline = t;
	r.other = other;
	if (!t && luaL_testudata(L, 1, PLAN_CLASS))
		r.plan = history_plan(check_plan(L, 1, r.what));
	else if (luaL_testudata(L, 1, SEQLINE_CLASS))
		r.line = check_seqline(L, 1, r.what);
	else if (luaL_testudata(L, 1, SEQPLAN_CLASS))
		r.sequence = check_seqplan(L, 1, r.what);
	else if (!t)
		r.graph = check_graph(L, 1, r.what);
	return finish_picture(L, &r, lua_toboolean(L, 7));
}

/* core.frames(timeline, folder, options or nil, script) -> list of the paths written */
static int frames_l(lua_State *L)
{
	enum { CAPTION = 20 };		/* height that the number of the frame needs more */
	struct timeline *t = check_timeline(L, 1, "frames");
	const char *dir = check_text(L, 2, "frames", "folder");
	struct request r = { .what = "frames", .timeline = t,
		.wish = { .count = 24, .format = PICTURE_PNG, .options.rings = true } };
	struct picture_how *how = &r.wish.how;
	struct picture *p = &r.picture;
	struct err e;
	int shapes;

	lua_settop(L, 4);
	check_wish(L, 3, "frames", t, true, &r.wish);
	if (how->animate)
		throw_msg(L, "frames: each frame is still; tl:svg(path, {animate=true}) moves");
	how->format = (enum picture_format)r.wish.format;
	how->still = true;
	picture_init(p, scratch_push(L), "");
	enter(L);
	draw_wish(&r, CAPTION);
	p->height += CAPTION;
	p->script = lua_isnil(L, 4) ? "" : check_text(L, 4, "frames", "script");
	if (!files_discard && mkdir(dir, 0777) && errno != EEXIST)
		throw_msg(L, "cannot create the folder %s: %s", dir, strerror(errno));
	shapes = p->shapes.n;
	lua_createtable(L, (int)r.wish.count, 0);
	for (int64_t i = 1; i <= r.wish.count; i++) {
		const char *path = lua_pushfstring(L, "%s/%s%d.%s", dir, i < 10 ? "000" : i < 100 ? "00" :
			i < 1000 ? "0" : "", (int)i, formats[r.wish.format]);

		check_stop(L);
		how->at = p->from + (p->to - p->from) * (double)i / (double)r.wish.count;
		p->shapes.n = shapes;
		picture_bold(p, p->width - 24, p->height - 12, ANCHOR_RIGHT, 15, INK_BOUND,
			arena_strf(p->arena, "frame %lld of %lld: cycle %s", (long long)i, (long long)r.wish.count,
			unit_count((int64_t)how->at).s));
		raise_if(L, picture_save(p, how, path, &e), &e);
		lua_rawseti(L, -2, (lua_Integer)i);
	}
	return 1;
}

/* core.trace_json(path, script, timeline, name[, timeline, name]); or (path, script, timeline of a sequence) */
static int trace_json_l(lua_State *L)
{
	const char *path = check_text(L, 1, "trace", "path"), *script = check_text(L, 2, "trace", "script");
	const struct timeline *t[2];
	const char *names[2];
	struct buf text;
	struct err e;
	int n = 0;

	lua_settop(L, 6);
	if (luaL_testudata(L, 3, SEQLINE_CLASS)) {
		buf_init(&text, scratch_push(L));
		enter(L);
		trace_json_sequence(check_seqline(L, 3, "trace"), script, &text);
		raise_if(L, picture_save_bytes(text.text, text.len, path, &e), &e);
		return 0;
	}
	for (; n < 2 && !lua_isnil(L, 3 + 2 * n); n++) {
		t[n] = check_timeline(L, 3 + 2 * n, "trace");
		names[n] = check_text(L, 4 + 2 * n, "trace", "name");
	}
	buf_init(&text, scratch_push(L));
	enter(L);
	trace_json(t, names, n, script, &text);
	raise_if(L, picture_save_bytes(text.text, text.len, path, &e), &e);
	return 0;
}

/* core.has_font() */
RETURNS(has_font, lua_pushboolean(L, cairo_has_font()))

/* core.products_type(graph) -> the type of its largest product, or of its first tensor if it has no products */
static int products_type_l(lua_State *L)
{
	const struct graph *g = check_graph(L, 1, "roofline");
	enum dtype type = g->program->tensors.n ? g->program->tensors.v[0].type : DT_F32;
	double most = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct work *w = &g->tasks.v[i].work;

		if (w->kind == WORK_MMA && w->flops > most) {
			most = w->flops;
			type = w->type;
		}
	}
	lua_pushstring(L, dtype_name(type));
	return 1;
}

static double number_at(lua_State *L, const char *key)
{
	double v;

	lua_getfield(L, -1, key);
	v = lua_tonumber(L, -1);
	lua_pop(L, 1);
	return v;
}

/* The name of the table on top, in the picture's arena. */
static const char *name_at(lua_State *L, const struct request *r)
{
	const char *name;

	lua_getfield(L, -1, "name");
	name = arena_strdup(r->picture.arena, check_text(L, -1, r->what, "name"));
	lua_pop(L, 1);
	return name;
}

/* core.roofline(device, format, path or nil, options or nil, script, dtype, points, show) */
static int roofline_l(lua_State *L)
{
	const struct vdevice *d = check_device(L, 1, "roofline");
	enum dtype type = check_dtype(L, 6, "roofline");
	struct roof_point *v;
	struct request r;

	lua_settop(L, 8);
	luaL_checktype(L, 7, LUA_TTABLE);
	begin_picture(L, 2, NULL, &r);
	r.n = (int)lua_rawlen(L, 7);
	v = ARENA_ARRAY(r.picture.arena, r.n, struct roof_point);
	for (int i = 0; i < r.n; i++) {
		lua_rawgeti(L, 7, i + 1);
		v[i] = (struct roof_point){ .name = name_at(L, &r), .flops = number_at(L, "flops"),
			.bytes = number_at(L, "bytes"), .seconds = number_at(L, "seconds") };
		lua_getfield(L, -1, "measured");
		v[i].measured = lua_toboolean(L, -1);
		lua_pop(L, 2);
	}
	r.device = d;
	r.type = type;
	r.points = v;
	return finish_picture(L, &r, lua_toboolean(L, 8));
}

/* core.progress(format, path or nil, options or nil, script, curves, show); curves: a list of
 * {name=, bound=, history={...}} */
static int progress_l(lua_State *L)
{
	struct progress_curve *v;
	struct request r;

	lua_settop(L, 6);
	luaL_checktype(L, 5, LUA_TTABLE);
	begin_picture(L, 1, NULL, &r);
	r.n = (int)lua_rawlen(L, 5);
	if (r.n < 1 || r.n > PROGRESS_CURVES)
		throw_msg(L, "%s: from 1 to %d searches are drawn", r.what, PROGRESS_CURVES);
	v = ARENA_ARRAY(r.picture.arena, r.n, struct progress_curve);
	for (int i = 0; i < r.n; i++) {
		lua_rawgeti(L, 5, i + 1);
		v[i] = (struct progress_curve){ .name = name_at(L, &r), .bound = number_at(L, "bound") };
		lua_getfield(L, -1, "history");
		read_history(L, lua_gettop(L), r.picture.arena, &v[i]);
		lua_pop(L, 2);
	}
	r.curves = v;
	return finish_picture(L, &r, lua_toboolean(L, 6));
}

void lua_open_picture(lua_State *L)
{
	static const luaL_Reg functions[] = { { "picture", picture_l }, { "frames", frames_l }, { "has_font", has_font_l },
		{ "trace_json", trace_json_l }, { "products_type", products_type_l },
		{ "roofline", roofline_l }, { "progress", progress_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
