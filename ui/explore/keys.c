/* Names of keys, and their actions. */
#include "explore/actions.h"

#include <stdio.h>
#include <string.h>

#include "explore/term.h"

const struct action_row action_rows[ACTION_COUNT] = {
	{ "", GROUP_ANY, "", "", "" },
#define X(id, group, keys, brief, help) { #id, GROUP_##group, keys, brief, help },
	ACTIONS(X)
#undef X
};

static const struct {
	const char *name;
	int code;
} named[] = { { "Up", KEY_CODE_UP }, { "Down", KEY_CODE_DOWN }, { "Left", KEY_CODE_LEFT }, { "Right", KEY_CODE_RIGHT },
	{ "Home", KEY_CODE_HOME }, { "End", KEY_CODE_END }, { "PgUp", KEY_CODE_PAGE_UP },
	{ "PgDn", KEY_CODE_PAGE_DOWN }, { "F1", KEY_CODE_F1 }, { "Bs", KEY_CODE_BACKSPACE },
	{ "BTab", KEY_CODE_BACKTAB }, { "Tab", '\t' }, { "Enter", '\r' }, { "Esc", 27 }, { "Space", ' ' } };

/* The code of the key whose name is the first n bytes of s. */
static int key_code(const char *s, size_t n)
{
	for (int i = 0; i < LEN(named); i++)
		if (strlen(named[i].name) == n && !strncmp(named[i].name, s, n))
			return named[i].code;
	if (n == 3 && !strncmp(s, "C-", 2))
		return s[2] & 31;
	return n == 1 ? (unsigned char)*s : KEY_CODE_NONE;
}

static bool has_key(const char *keys, int code)
{
	for (const char *s = keys; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		if (key_code(s, n) == code)
			return true;
		s += n;
	}
	return false;
}

enum action action_of(int key, unsigned groups)
{
	for (int a = ACTION_COUNT - 1; a > ACT_NONE; a--)
		if ((action_rows[a].group & groups) && has_key(action_rows[a].keys, key))
			return (enum action)a;
	return ACT_NONE;
}

const char *action_group_name(enum action_group g)
{
	switch (g) {
	case GROUP_ANY: return "anywhere";
	case GROUP_SPAN: return "in the timeline and in compare";
	case GROUP_TIME: return "in the timeline";
	case GROUP_EDIT: return "to edit";
	case GROUP_CHANGES: return "in the list of changes of y";
	case GROUP_PICKED: return "with an sTask picked up";
	case GROUP_STEP: return "step by step";
	case GROUP_ITEM: return "in graph, kernel and problems";
	case GROUP_SIDES: return "in kernel and grid";
	}
	return "";
}

const char *action_key(enum action a, char buf[8])
{
	size_t n = strcspn(action_rows[a].keys, " ");

	snprintf(buf, 8, "%.*s", (int)(n < 7 ? n : 7), action_rows[a].keys);
	return buf;
}
