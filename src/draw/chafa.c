/* Pictures on a terminal, through libchafa, which is loaded when it is first needed. What we use of chafa 1.12 is
 * declared here. */
#include <dlfcn.h>
#include <stdlib.h>

#include "draw/picture.h"

extern char **environ;

enum {
	MODE_SIXELS = 1, MODE_KITTY = 2,	/* ChafaPixelMode */
	PIXEL_BGRA8 = 5,		/* CHAFA_PIXEL_BGRA8_UNASSOCIATED */
	SEQ_BEGIN_SIXELS = 41, SEQ_BEGIN_KITTY = 44,	/* ChafaTermSeq */
};

struct gstring {			/* GString of glib */
	char *str;
	size_t len, allocated;
};

/* What we use: its result, its name without the prefix, its parameters. */
#define CHAFA(X) \
	X(void *, term_db_get_default, (void)) \
	X(void *, term_db_detect, (void *db, char **environment)) \
	X(int, term_info_have_seq, (const void *info, int seq)) \
	X(void, term_info_unref, (void *info)) \
	X(void *, canvas_config_new, (void)) \
	X(void, canvas_config_unref, (void *config)) \
	X(void, canvas_config_set_geometry, (void *config, int w, int h)) \
	X(void, canvas_config_set_cell_geometry, (void *config, int w, int h)) \
	X(void, canvas_config_set_pixel_mode, (void *config, int mode)) \
	X(void *, canvas_new, (const void *config)) \
	X(void, canvas_unref, (void *canvas)) \
	X(void, canvas_draw_all_pixels, (void *canvas, int type, const unsigned char *pixels, int w, int h, \
		int stride)) \
	X(struct gstring *, canvas_print, (void *canvas, void *info))

struct chafa {
#define X(type, name, parameters) type (*name)parameters;
	CHAFA(X)
#undef X
	char *(*g_string_free)(struct gstring *s, int all);
};

/* ISO C converts a void * to a function pointer only through memory. */
#define FIND(lib, c, field, name) (*(void **)&(c)->field = dlsym((lib), (name)))

static bool open_chafa(struct chafa *c)
{
	void *lib = dlopen("libchafa.so.0", RTLD_NOW | RTLD_LOCAL);

#define X(type, name, parameters) FIND(lib, c, name, "chafa_" #name) &&
	return lib && CHAFA(X) FIND(lib, c, g_string_free, "g_string_free");
#undef X
}

static void put(const struct chafa *c, void *config, void *info, const unsigned char *pixels, int w, int h, FILE *f)
{
	void *canvas = c->canvas_new(config);
	struct gstring *s;

	c->canvas_draw_all_pixels(canvas, PIXEL_BGRA8, pixels, w, h, w * 4);
	s = c->canvas_print(canvas, info);
	fwrite(s->str, 1, s->len, f);
	fputc('\n', f);
	fflush(f);
	c->g_string_free(s, 1);
	c->canvas_unref(canvas);
}

const char *picture_show(const struct picture *p, const struct picture_how *how, int columns,
	int cell_w, int cell_h, FILE *f)
{
	const char *why = NULL;
	unsigned char *pixels;
	void *info, *config;
	struct chafa c;
	int w, h, mode;

	if (!open_chafa(&c))
		return "libchafa is not installed (Debian: libchafa0)";
	info = c.term_db_detect(c.term_db_get_default(), environ);
	mode = c.term_info_have_seq(info, SEQ_BEGIN_KITTY) ? MODE_KITTY :
		c.term_info_have_seq(info, SEQ_BEGIN_SIXELS) ? MODE_SIXELS : 0;
	pixels = mode ? cairo_pixels(p, how, &w, &h, &why) : NULL;
	if (pixels) {
		int rows = (int)((double)columns * cell_w * h / w / cell_h + 0.5);

		config = c.canvas_config_new();
		c.canvas_config_set_geometry(config, columns, rows > 0 ? rows : 1);
		c.canvas_config_set_cell_geometry(config, cell_w > 0 ? cell_w : 1, cell_h > 0 ? cell_h : 1);
		c.canvas_config_set_pixel_mode(config, mode);
		put(&c, config, info, pixels, w, h, f);
		c.canvas_config_unref(config);
		free(pixels);
	}
	c.term_info_unref(info);
	return mode ? why : "the terminal supports neither kitty's protocol nor sixels";
}
