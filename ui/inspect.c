#include "inspect.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "lua/lcore.h"

enum {
	ITEMS_SHOWN = 100,		/* of the array part, and of the other keys */
	ITEM_WIDTH = 48,		/* bytes of a string or object inside a table */
};

/* A key that is not in the array part. */
struct key {
	int type;			/* sorted: LUA_TNUMBER, then strings, then others */
	bool is_integer;		/* its value is in `integer` */
	lua_Integer integer;
	double number;
	const char *name;		/* a string key, or the type of another one */
	size_t len;
	const char *value;		/* text, for keys that cannot be looked up again */
};

static bool is_identifier(const char *s, size_t len)
{
	if (!len || isdigit((unsigned char)*s))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	return true;
}

/* Control characters become \ddd, but for those in `as_is`. */
static void put_escaped(struct buf *b, const char *s, size_t len, const char *as_is, bool quoted)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (quoted && (c == '"' || c == '\\'))
			buf_printf(b, "\\%c", c);
		else if (quoted && c == '\n')
			buf_puts(b, "\\n");
		else if ((c < ' ' || c == 127) && !(c && strchr(as_is, c)))
			buf_printf(b, "\\%03d", c);
		else
			buf_putc(b, s[i]);
	}
}

static void put_quoted(struct buf *b, const char *s, size_t len)
{
	buf_putc(b, '"');
	put_escaped(b, s, len, "", true);
	buf_putc(b, '"');
}

/* How many bytes to keep of at most `most`, without dividing a UTF-8 character. */
static size_t shorten(const char *s, size_t len, size_t most)
{
	if (len <= most)
		return len;
	while (most && ((unsigned char)s[most] & 0xc0) == 0x80)
		most--;
	return most;
}

static void put_function(lua_State *L, struct buf *b, int idx)
{
	lua_Debug ar;

	lua_pushvalue(L, idx);
	lua_getinfo(L, ">S", &ar);
	if (*ar.what == 'C' || !strncmp(ar.source, "=[millrace", 10))
		buf_puts(b, "function <built in>");
	else
		buf_printf(b, "function <%s:%d>", ar.short_src, ar.linedefined);
}

static bool has_tostring(lua_State *L, int idx)
{
	if (luaL_getmetafield(L, idx, "__tostring") == LUA_TNIL)
		return false;
	lua_pop(L, 1);
	return true;
}

/* A value inside a table, always short and in one line. */
static void put_item(lua_State *L, struct buf *b, int idx)
{
	size_t len, shown;
	const char *s;

	idx = lua_absindex(L, idx);
	if (lua_type(L, idx) == LUA_TSTRING) {
		s = lua_tolstring(L, idx, &len);
		shown = shorten(s, len, ITEM_WIDTH);
		put_quoted(b, s, shown);
		buf_puts(b, shown < len ? "..." : "");
	} else if (lua_isfunction(L, idx)) {
		put_function(L, b, idx);
	} else if (lua_istable(L, idx) && !has_tostring(L, idx)) {
		lua_pushnil(L);
		if (!lua_next(L, idx)) {
			buf_puts(b, "{}");
			return;
		}
		lua_pop(L, 2);
		lua_pushliteral(L, "name");
		if (lua_rawget(L, idx) == LUA_TSTRING) {
			buf_puts(b, "{name = ");
			put_item(L, b, -1);
			buf_puts(b, ", ...}");
		} else {
			buf_puts(b, "{...}");
		}
		lua_pop(L, 1);
	} else {
		s = luaL_tolstring(L, idx, &len);
		enter(L);
		if (len > ITEM_WIDTH || strchr(s, '\n'))
			buf_printf(b, "<%s>", luaL_typename(L, idx));
		else
			buf_puts(b, s);
		lua_pop(L, 1);
	}
}

static int rank(int type)
{
	return type == LUA_TNUMBER ? 0 : type == LUA_TSTRING ? 1 : 2;
}

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->type != y->type)
		return rank(x->type) - rank(y->type);
	if (x->type == LUA_TNUMBER)
		return (x->number > y->number) - (x->number < y->number);
	return strcmp(x->name, y->name);
}

/* Is the key at idx one of 1..n? */
static bool in_array(lua_State *L, int idx, lua_Integer n)
{
	return lua_isinteger(L, idx) && lua_tointeger(L, idx) >= 1 && lua_tointeger(L, idx) <= n;
}

static int collect_keys(lua_State *L, struct arena *a, int idx, lua_Integer n, struct key **out)
{
	VEC(struct key) keys = { 0 };
	int odd = 0;

	lua_pushnil(L);
	while (lua_next(L, idx)) {
		struct key k = { .type = lua_type(L, -2) };

		if (k.type == LUA_TNUMBER) {
			k.number = lua_tonumber(L, -2);
			k.is_integer = lua_isinteger(L, -2);
			k.integer = k.is_integer ? lua_tointeger(L, -2) : 0;
		} else if (k.type == LUA_TSTRING) {
			k.name = lua_tolstring(L, -2, &k.len);
		} else {
			struct buf b;

			buf_init(&b, a);
			if (++odd <= ITEMS_SHOWN)
				put_item(L, &b, -1);
			k.value = b.text;
			buf_init(&b, a);
			if (odd <= ITEMS_SHOWN)
				put_item(L, &b, -2);
			k.name = b.text;
		}
		if (!in_array(L, -2, n))
			VEC_PUSH(a, &keys, k);
		lua_pop(L, 1);
	}
	if (keys.n)
		qsort(keys.v, (size_t)keys.n, sizeof(*keys.v), by_key);
	*out = keys.v;
	return keys.n;
}

static void put_pair(lua_State *L, struct buf *b, int idx, const struct key *k)
{
	if (k->type == LUA_TNUMBER && k->is_integer) {
		buf_printf(b, "[%lld] = ", (long long)k->integer);
		lua_rawgeti(L, idx, k->integer);
	} else if (k->type == LUA_TNUMBER) {
		buf_printf(b, "[%.14g] = ", k->number);
		lua_pushnumber(L, k->number);
		lua_rawget(L, idx);
	} else if (k->type == LUA_TSTRING) {
		if (is_identifier(k->name, k->len)) {
			buf_puts(b, k->name);
		} else {
			buf_putc(b, '[');
			put_quoted(b, k->name, shorten(k->name, k->len, ITEM_WIDTH));
			buf_putc(b, ']');
		}
		buf_puts(b, " = ");
		lua_pushlstring(L, k->name, k->len);
		lua_rawget(L, idx);
	} else {
		buf_printf(b, "[%s] = %s", k->name, k->value);
		return;
	}
	put_item(L, b, -1);
	lua_pop(L, 1);
}

static void put_table(lua_State *L, struct buf *out, int idx, size_t width)
{
	struct arena *a = out->arena;
	lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
	int items = n > ITEMS_SHOWN ? ITEMS_SHOWN : (int)n, nkeys, pairs, count = 0;
	struct key *keys;
	size_t total = 2, column = 0;
	const char **item;

	nkeys = collect_keys(L, a, idx, n, &keys);
	pairs = nkeys > ITEMS_SHOWN ? ITEMS_SHOWN : nkeys;
	item = ARENA_ARRAY(a, items + pairs + 2, const char *);
	for (int i = 0; i < items + pairs; i++) {
		struct buf b;

		buf_init(&b, a);
		if (i < items) {
			lua_rawgeti(L, idx, i + 1);
			put_item(L, &b, -1);
			lua_pop(L, 1);
		} else {
			put_pair(L, &b, idx, &keys[i - items]);
		}
		total += b.len + 2;
		item[count++] = b.text;
		if (i == items - 1 && n > items)
			item[count++] = arena_strf(a, "... %lld more", (long long)n - items);
	}
	if (nkeys > pairs)
		item[count++] = arena_strf(a, "... %d more", nkeys - pairs);
	if (total <= width + 2 && n == items && nkeys == pairs) {
		buf_putc(out, '{');
		for (int i = 0; i < count; i++)
			buf_printf(out, "%s%s", i ? ", " : "", item[i]);
		buf_putc(out, '}');
		return;
	}
	buf_putc(out, '{');
	for (int i = 0; i < count; i++) {
		size_t len = strlen(item[i]) + 1;
		bool flows = i && i < items + (n > items);

		if (flows && column + 1 + len <= width) {
			buf_putc(out, ' ');
			column += 1 + len;
		} else {
			buf_puts(out, "\n  ");
			column = 2 + len;
		}
		buf_printf(out, "%s,", item[i]);
	}
	buf_puts(out, "\n}");
}

int inspect_l(lua_State *L)
{
	size_t width = (size_t)luaL_optinteger(L, 2, 80), len;
	struct buf b;
	const char *s;

	lua_settop(L, 1);
	enter(L);
	buf_init(&b, scratch_push(L));
	if (lua_type(L, 1) == LUA_TSTRING) {
		s = lua_tolstring(L, 1, &len);
		if (memchr(s, '\n', len))
			put_escaped(&b, s, s[len - 1] == '\n' ? len - 1 : len, "\n\t", false);
		else
			put_quoted(&b, s, len);
	} else if (lua_isfunction(L, 1)) {
		put_function(L, &b, 1);
	} else if (lua_istable(L, 1) && !has_tostring(L, 1)) {
		put_table(L, &b, 1, width);
	} else {
		s = luaL_tolstring(L, 1, &len);
		enter(L);
		buf_putn(&b, s, len && s[len - 1] == '\n' ? len - 1 : len);
	}
	return push_buf(L, &b);
}
