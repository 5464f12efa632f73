#include "complete.h"

#include <ctype.h>
#include <dirent.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHAIN_MAX = 10 };		/* __index tables followed from one value */

static const char *const keywords[] = { "and", "break", "do", "else", "elseif", "end", "false",
	"for", "function", "goto", "if", "in", "local", "nil", "not", "or", "repeat", "return",
	"then", "true", "until", "while" };

/* What is being collected: a set of names at stack index `set`. */
struct words {
	lua_State *L;
	int set;
	const char *prefix;
	size_t len;
};

static bool name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_word(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(s, word, n);
}

static void add(struct words *w, const char *s, size_t n)
{
	if (n < w->len || memcmp(s, w->prefix, w->len) != 0)
		return;
	if (s[0] == '_' && !w->len)
		return;			/* private, unless asked for */
	luaL_checkstack(w->L, 4, "completion");
	lua_pushlstring(w->L, s, n);
	lua_pushboolean(w->L, 1);
	lua_rawset(w->L, w->set);
}

/* ---- the text before the cursor ---- */

enum where { IN_CODE, IN_COMMENT, IN_STRING, IN_LONG_STRING };

/* Past "[==[ ... ]==]" if that starts at s; NULL: it does not; end: it never closes. */
static const char *skip_long(const char *s, const char *end)
{
	const char *p = s + 1;
	size_t level = 0;

	while (p < end && *p == '=')
		p++, level++;
	if (p >= end || *p != '[')
		return NULL;
	for (p++; p < end; p++) {
		const char *q = p;

		if (*q++ != ']')
			continue;
		while (q < end && *q == '=' && (size_t)(q - p) <= level)
			q++;
		if (q < end && *q == ']' && (size_t)(q - p) == level + 1)
			return q + 1;
	}
	return end;
}

/* The names that `local`, `for` or a parameter list declares, up to its end. */
static const char *declare(struct words *w, const char *s, const char *end, const char *closers)
{
	while (s < end && !strchr(closers, *s)) {
		const char *from = s;

		if (*s == '<') {		/* local x <const> */
			while (s < end && *s != '>')
				s++;
			continue;
		}
		if (!name_start(*s)) {
			s++;
			continue;
		}
		while (s < end && name_char(*s))
			s++;
		if (is_word(from, (size_t)(s - from), "in"))
			return s;
		if (is_word(from, (size_t)(s - from), "function"))
			return from;		/* local function f(...) */
		if (s < end)			/* not the word under the cursor */
			add(w, from, (size_t)(s - from));
		while (s < end && (*s == ' ' || *s == '\t'))
			s++;
		if (s < end && *s != ',' && *s != '<')
			return s;
	}
	return s;
}

/* Where does the text end? If in a string, *quote is its first character. With w,
 * also collect the locals. */
static enum where scan(const char *s, const char *end, const char **quote, struct words *w)
{
	while (s < end) {
		if (s[0] == '-' && end - s > 1 && s[1] == '-') {
			const char *past = NULL;

			if (end - s > 2 && s[2] == '[')
				past = skip_long(s + 2, end);
			if (!past)
				past = memchr(s, '\n', (size_t)(end - s));
			if (!past || past == end)
				return IN_COMMENT;
			s = past;
		} else if (*s == '"' || *s == '\'') {
			*quote = s;
			for (s++; s < end && *s != **quote && *s != '\n'; s++)
				s += *s == '\\';
			if (s >= end)
				return IN_STRING;
			s++;
		} else if (*s == '[') {
			const char *past = skip_long(s, end);

			if (past == end)
				return IN_LONG_STRING;
			s = past ? past : s + 1;
		} else if (name_start(*s)) {
			const char *from = s;
			size_t n;

			while (s < end && name_char(*s))
				s++;
			n = (size_t)(s - from);
			if (!w || s == end)
				continue;
			if (is_word(from, n, "local") || is_word(from, n, "for")) {
				s = declare(w, s, end, "=\n;(");
			} else if (is_word(from, n, "function")) {
				while (s < end && (name_char(*s) || strchr(" .:", *s)))
					s++;
				if (s < end && *s == '(')
					s = declare(w, s + 1, end, ")");
			}
		} else {
			s += isdigit((unsigned char)*s) ? strspn(s, "0123456789abcdefxABCDEFX") : 1;
		}
	}
	return IN_CODE;
}

/* ---- values, without calling anything ---- */

/* Replace the table or object on top by its metatable's __index table; false, with
 * nothing on top, if there is none. */
static bool next_index(lua_State *L)
{
	if (!lua_getmetatable(L, -1)) {
		lua_pop(L, 1);
		return false;
	}
	lua_pushliteral(L, "__index");
	lua_rawget(L, -2);
	lua_replace(L, -3);
	lua_pop(L, 1);
	if (lua_istable(L, -1))
		return true;
	lua_pop(L, 1);
	return false;
}

/* Replace the value on top by its field; false, with nothing on top, if it has none
 * that can be read without a call. */
static bool field(lua_State *L, const char *name, size_t n)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (lua_istable(L, -1)) {
			lua_pushlstring(L, name, n);
			lua_rawget(L, -2);
			if (!lua_isnil(L, -1)) {
				lua_remove(L, -2);
				return true;
			}
			lua_pop(L, 1);
		}
		if (!next_index(L))
			return false;
	}
	lua_pop(L, 1);
	return false;
}

static void add_keys(struct words *w, bool functions_only)
{
	lua_State *L = w->L;

	lua_pushnil(L);
	while (lua_next(L, -2)) {
		size_t n, i = 0;

		if (lua_type(L, -2) == LUA_TSTRING && (lua_isfunction(L, -1) || !functions_only)) {
			const char *s = lua_tolstring(L, -2, &n);

			while (i < n && name_char(s[i]))
				i++;
			if (n && i == n && name_start(*s))
				add(w, s, n);
		}
		lua_pop(L, 1);
	}
}

/* The names under the value on top, which is popped. Our objects, tables and userdata,
 * keep theirs in the tables `methods` and `fields` of the metatable. */
static void add_fields(struct words *w, bool methods_only)
{
	lua_State *L = w->L;

	if (lua_getmetatable(L, -1)) {
		lua_pushliteral(L, "methods");
		lua_rawget(L, -2);
		if (lua_istable(L, -1))
			add_keys(w, false);
		lua_pop(L, 1);
		lua_pushliteral(L, "fields");
		lua_rawget(L, -2);
		if (lua_istable(L, -1) && !methods_only)
			add_keys(w, false);
		lua_pop(L, 2);
	}
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (lua_istable(L, -1))
			add_keys(w, methods_only);
		if (!next_index(L))
			return;
	}
	lua_pop(L, 1);
}

/* Push the value of the path text[..end), such as `a.b[1].c`; false: not a path, or
 * without a value that can be read. `set` holds the locals, whose values we cannot
 * know. */
static bool push_path(lua_State *L, const char *text, const char *end, int set)
{
	const char *s = end;

	if (s > text && s[-1] == ']') {
		const char *digits = --s;
		lua_Integer i;

		while (digits > text && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == s || digits == text || digits[-1] != '[' || s - digits > 9)
			return false;
		i = strtol(digits, NULL, 10);
		if (!push_path(L, text, digits - 1, set))
			return false;
		if (!lua_istable(L, -1)) {
			lua_pop(L, 1);
			return false;
		}
		lua_rawgeti(L, -1, i);
		lua_remove(L, -2);
		return true;
	}
	while (s > text && name_char(s[-1]))
		s--;
	if (s == end || !name_start(*s))
		return false;
	if (s > text && (s[-1] == '.' || s[-1] == ':')) {
		if (s - text > 1 && s[-2] == '.')
			return false;		/* a .. b */
		return push_path(L, text, s - 1, set) && field(L, s, (size_t)(end - s));
	}
	lua_pushlstring(L, s, (size_t)(end - s));
	if (lua_rawget(L, set) != LUA_TNIL) {	/* a local hides the global */
		lua_pop(L, 1);
		return false;
	}
	lua_pop(L, 1);
	lua_pushglobaltable(L);
	return field(L, s, (size_t)(end - s));
}

/* ---- files ---- */

static void add_files(struct words *w, const char *dir, size_t dir_len)
{
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *d;

	if (dir_len >= sizeof(path))
		return;
	snprintf(path, sizeof(path), "%.*s", dir_len ? (int)dir_len : 1, dir_len ? dir : ".");
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char name[NAME_MAX + 2];

		if (e->d_name[0] == '.' && !w->len)
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%.*s%s", (int)dir_len, dir, e->d_name) >=
		    sizeof(path))
			continue;
		snprintf(name, sizeof(name), "%s%s", e->d_name,
			 !stat(path, &st) && S_ISDIR(st.st_mode) ? "/" : "");
		add(w, name, strlen(name));
	}
	if (d)
		closedir(d);
}

/* ---- all together ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Replace the set on top by a sorted list. */
static void push_list(lua_State *L)
{
	const char **v;
	size_t n = 0;

	lua_pushnil(L);
	while (lua_next(L, -2)) {
		n++;
		lua_pop(L, 1);
	}
	v = lua_newuserdatauv(L, (n + 1) * sizeof(*v), 0);
	lua_pushnil(L);
	for (n = 0; lua_next(L, -3); n++) {
		v[n] = lua_tostring(L, -2);
		lua_pop(L, 1);
	}
	qsort(v, n, sizeof(*v), by_text);
	lua_createtable(L, (int)n, 0);
	for (size_t i = 0; i < n; i++) {
		lua_pushstring(L, v[i]);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	lua_replace(L, -3);
	lua_pop(L, 1);
}

size_t complete(lua_State *L, const char *text, size_t pos)
{
	const char *end = text + pos, *start = end, *quote = NULL;
	struct words w = { .L = L };
	enum where where = scan(text, end, &quote, NULL);

	luaL_checkstack(L, 20, "completion");
	lua_newtable(L);
	w.set = lua_gettop(L);
	if (where == IN_STRING)
		while (start > quote + 1 && start[-1] != '/')
			start--;
	else
		while (start > text && name_char(start[-1]))
			start--;
	w.prefix = start;
	w.len = (size_t)(end - start);
	if (where == IN_STRING) {
		add_files(&w, quote + 1, (size_t)(start - quote - 1));
	} else if (where == IN_CODE && start > text && (start[-1] == ':' || start[-1] == '.') &&
		   !(start - text > 1 && start[-2] == '.')) {
		struct words locals = { .L = L };

		lua_newtable(L);
		locals.set = lua_gettop(L);
		locals.prefix = "";
		scan(text, end, &quote, &locals);
		if (push_path(L, text, start - 1, locals.set))
			add_fields(&w, start[-1] == ':');
		lua_settop(L, w.set);
	} else if (where == IN_CODE && !(start < end && isdigit((unsigned char)*start))) {
		for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
			add(&w, keywords[i], strlen(keywords[i]));
		scan(text, end, &quote, &w);
		lua_pushglobaltable(L);
		add_fields(&w, false);
	}
	push_list(L);
	return pos - w.len;
}
