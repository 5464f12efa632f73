/* settings.h - the user's colours and columns, from $XDG_CONFIG_HOME/millrace/settings, or ~/.config/millrace/settings.
 *
 * A file of lines "name = value"; # begins a comment. A line that is not understood is left out, and named in a message. */
#ifndef UI_EXPLORE_SETTINGS_H
#define UI_EXPLORE_SETTINGS_H

#include "draw/cells.h"

/* Columns of the list of entries of a plan, behind the name of the sTask. */
#define PLAN_COLUMNS(X) \
	X(unit, 8) X(at, 7) X(takes, 10) X(loc, 22) X(waits, 40)

enum plan_column {
#define X(name, width) COLUMN_##name,
	PLAN_COLUMNS(X)
#undef X
	PLAN_COLUMN_COUNT
};

struct settings {
	bool coloured;			/* some colour is changed */
	uint8_t colour[256];		/* by colour of the palette: the one to show instead */
	int ncolumns;
	enum plan_column column[PLAN_COLUMN_COUNT];
	char wrong[256];		/* "PATH:LINE: what is wrong" of the first line that is not understood; "" */
};

/* Read the file; without one all is as usual. */
void settings_read(struct settings *s);
/* The same from a text; path: for messages. */
void settings_parse(struct settings *s, const char *path, const char *text);
/* Show a grid in the user's colours. */
void settings_paint(const struct settings *s, struct cells *c);

#endif
