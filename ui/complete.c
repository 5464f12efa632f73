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

enum {
	CHAIN_MAX = 10,			/* __index tables followed from one value */
	DEPTH_MAX = 64,			/* brackets that are open at the cursor */
};

static const char *const keywords[] = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function",
	"goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" };

static const char *const commands[] = { "help", "save", "time" };	/* of the shell */

/* The names that are collected: keys of the table at stack index `set`. */
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
		return;			/* private, unless the prefix has a _ */
	luaL_checkstack(w->L, 4, "completion");
	lua_pushlstring(w->L, s, n);
	lua_pushboolean(w->L, 1);
	lua_rawset(w->L, w->set);
}

/* ---- the text before the cursor ---- */

enum where { IN_CODE, IN_COMMENT, IN_STRING, IN_LONG_STRING };

/* The end of the long bracket "[==[ ... ]==]" at s; NULL: there is none; `end`: it is not closed. */
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

/* Add the names that `local`, `for` or a parameter list declares; returns where the list ends. */
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

/* What is the end of the text in: code, a comment, a string (*quote is its first character)? With w, also collect the
 * locals. */
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

/* Push the set of the locals that the text declares; returns its stack index. */
static int push_locals(lua_State *L, const char *text, const char *end)
{
	struct words locals = { .L = L, .prefix = "" };
	const char *quote;

	lua_newtable(L);
	locals.set = lua_gettop(L);
	scan(text, end, &quote, &locals);
	return locals.set;
}

/* ---- values, without calling anything ---- */

/* Replace the value on top by its metatable's __index table. If there is none, pop it and return false. */
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

/* Replace the value on top by one of its fields. If that cannot be read without a call, pop the value and return
 * false. */
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

/* Add the names of the fields of the value on top, and pop it. Our objects have theirs in the tables `methods` and
 * `fields` of the metatable. */
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

/* Push the value of the path that ends at `end`, such as `a.b[1].c`. False if there is no path, or its value cannot be
 * known: that of a local, which is in the table at `set`, or one that needs a call. */
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
		if ((size_t)snprintf(path, sizeof(path), "%.*s%s", (int)dir_len, dir, e->d_name) >= sizeof(path))
			continue;
		snprintf(name, sizeof(name), "%s%s", e->d_name, !stat(path, &st) && S_ISDIR(st.st_mode) ? "/" : "");
		add(w, name, strlen(name));
	}
	if (d)
		closedir(d);
}

/* ---- calls ---- */

/* A bracket that is open at the cursor. */
struct bracket {
	const char *at;
	const char *item;		/* beginning of the element at the cursor */
	int commas;
};

/* The end of the comment, string or long string at s; s if there is none. */
static const char *skip_quiet(const char *s, const char *end)
{
	const char *past = NULL, *quote = s;

	if (s[0] == '-' && end - s > 1 && s[1] == '-') {
		if (end - s > 2 && s[2] == '[')
			past = skip_long(s + 2, end);
		if (!past)
			past = memchr(s, '\n', (size_t)(end - s));
		return past ? past : end;
	}
	if (*s == '[' && (past = skip_long(s, end)))
		return past;
	if (*s != '"' && *s != '\'')
		return s;
	for (s++; s < end && *s != *quote && *s != '\n'; s++)
		s += *s == '\\' && s + 1 < end;
	return s < end ? s + 1 : end;
}

/* Find the brackets that are open at the end, at most DEPTH_MAX; returns how many. */
static int open_brackets(const char *s, const char *end, struct bracket open[DEPTH_MAX])
{
	int n = 0;

	while (s < end) {
		const char *past = skip_quiet(s, end);

		if (past > s) {
			s = past;
			continue;
		}
		if (strchr("({[", *s) && n < DEPTH_MAX)
			open[n++] = (struct bracket){ .at = s, .item = s + 1 };
		else if (strchr(")}]", *s) && n > 0)
			n--;
		else if ((*s == ',' || *s == ';') && n > 0)
			open[n - 1].commas++, open[n - 1].item = s + 1;
		s++;
	}
	return n;
}

static const char *back_over_space(const char *s, const char *text)
{
	while (s > text && isspace((unsigned char)s[-1]))
		s--;
	return s;
}

/* The beginning of the path that ends at `end`, such as `a.b[1]:c`; `end` if there is none. */
static const char *path_begin(const char *text, const char *end)
{
	const char *s = end;

	while (s > text && (name_char(s[-1]) || strchr(".:[]", s[-1])))
		s--;
	while (s < end && !name_start(*s))
		s++;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
		if (is_word(s, (size_t)(end - s), keywords[i]))
			return end;
	return s;
}

/* Push the key of the table element that begins at s, `key =`; "" if it has none. */
static void push_key(lua_State *L, const char *s, const char *end)
{
	const char *from;

	while (s < end && isspace((unsigned char)*s))
		s++;
	for (from = s; s < end && name_char(*s); s++)
		;
	end = back_over_space(end, s);
	while (s < end && isspace((unsigned char)*s))
		s++;
	lua_pushlstring(L, from, s < end && *s == '=' ? strcspn(from, " \t\n=") : 0);
}

/* Find the call around `at`: *callee is the end of the path of the function, *arg which argument it is. Pushes the keys
 * of the tables around `at`, innermost first. False if it is in no call. */
static bool find_call(lua_State *L, const char *text, const char *at, const struct bracket *open,
	int n, bool quoted, const char **callee, int *arg)
{
	const char *before = back_over_space(at, text);
	int nkeys = 0;

	lua_newtable(L);
	*arg = 1;
	*callee = before;
	if (quoted && path_begin(text, before) < before)
		return true;			/* f "..." */
	for (; n > 0 && *open[n - 1].at == '{'; n--) {
		const struct bracket *b = &open[n - 1];

		*callee = back_over_space(b->at, text);
		if (quoted || nkeys || back_over_space(at, text) != b->item) {
			push_key(L, b->item, at);
			lua_rawseti(L, -2, ++nkeys);
		}
		if (path_begin(text, *callee) < *callee)
			return true;		/* f{...} */
		at = b->at;
		quoted = true;			/* from here on, elements contain a table */
	}
	if (!n || *open[n - 1].at != '(')
		return false;
	*arg = open[n - 1].commas + 1;
	*callee = back_over_space(open[n - 1].at, text);
	return path_begin(text, *callee) < *callee;
}

/* Add the words that lua/std/words.lua has for this argument of a call. Returns 1 if names of files are possible too, 0
 * if they are not, -1 if it does not know the call. */
static int add_call_words(struct words *w, const char *text, const char *at, bool quoted)
{
	lua_State *L = w->L;
	struct bracket open[DEPTH_MAX];
	const char *callee, *path, *name;
	int top = lua_gettop(L), locals, arg, files = -1;

	if (!find_call(L, text, at, open, open_brackets(text, at, open), quoted, &callee, &arg))
		return lua_settop(L, top), -1;
	path = path_begin(text, callee);
	for (name = callee; name > path && name_char(name[-1]); name--)
		;
	if (path == name && path > text && path[-1] == ':')
		path--;				/* f():name */
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_pushliteral(L, "millrace.words");
	if (lua_rawget(L, -2) != LUA_TFUNCTION)
		return lua_settop(L, top), -1;
	locals = push_locals(L, text, at);
	lua_pushvalue(L, -2);				/* -- keys loaded f locals f */
	if (name - path < 2 || !push_path(L, text, name - 1, locals))
		lua_pushnil(L);
	lua_pushlstring(L, name, (size_t)(callee - name));
	lua_pushlstring(L, path, (size_t)(callee - path));
	lua_pushinteger(L, arg);
	lua_pushvalue(L, top + 1);
	lua_pushboolean(L, quoted);
	if (lua_pcall(L, 6, 2, 0) == LUA_OK && lua_istable(L, -2)) {
		files = lua_toboolean(L, -1);
		lua_pop(L, 1);
		for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++, lua_pop(L, 1)) {
			size_t len;
			const char *s = lua_tolstring(L, -1, &len);

			add(w, s, len);
		}
	}
	lua_settop(L, top);
	return files;
}

/* In a string: words for the call around it, names of fields in t["..."], or else names of files. */
static void add_quoted(struct words *w, const char *text, const char *quote, const char *start)
{
	const char *before = back_over_space(quote, text);
	lua_State *L = w->L;
	int files = -1, top = lua_gettop(L);

	if (before > text && before[-1] == '[' && path_begin(text, before - 1) < before - 1) {
		if (push_path(L, text, before - 1, push_locals(L, text, quote)))
			add_fields(w, false);
		lua_settop(L, top);
		return;
	}
	if (start == quote + 1)
		files = add_call_words(w, text, quote, true);
	if (files)
		add_files(w, quote + 1, (size_t)(start - quote - 1));
}

/* Names of options, after { or a comma in a table of a call. */
static void add_options(struct words *w, const char *text, const char *start)
{
	const char *before = back_over_space(start, text);

	if (before > text && (before[-1] == '{' || before[-1] == ','))
		add_call_words(w, text, start, false);
}

/* ---- completion ---- */

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

/* Is the word a command of the shell, after its colon? */
static bool is_command(const char *text, const char *start)
{
	return start > text && start[-1] == ':' && back_over_space(start - 1, text) == text;
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
	if (is_command(text, start)) {
		w.prefix = start;
		w.len = (size_t)(end - start);
		for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			add(&w, commands[i], strlen(commands[i]));
		push_list(L);
		return pos - w.len;
	}
	w.prefix = start;
	w.len = (size_t)(end - start);
	if (where == IN_STRING) {
		add_quoted(&w, text, quote, start);
	} else if (where == IN_CODE && start > text && (start[-1] == ':' || start[-1] == '.') &&
		   !(start - text > 1 && start[-2] == '.')) {
		if (push_path(L, text, start - 1, push_locals(L, text, end)))
			add_fields(&w, start[-1] == ':');
		lua_settop(L, w.set);
	} else if (where == IN_CODE && !(start < end && isdigit((unsigned char)*start))) {
		add_options(&w, text, start);
		for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
			add(&w, keywords[i], strlen(keywords[i]));
		scan(text, end, &quote, &w);
		lua_pushglobaltable(L);
		add_fields(&w, false);
	}
	push_list(L);
	return pos - w.len;
}
