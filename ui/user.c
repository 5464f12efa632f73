#include "user.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pager.h"

enum {
	HOOK_COUNT = 1000,		/* Lua instructions between two checks of the flag */
	FRAMES_SEEN = 40,		/* frames of the stack that are looked at, at either end */
	FRAMES_SHOWN = 4,		/* frames of the user that are shown, at either end */
	LINE_SHOWN = 160,		/* bytes of a source line in a message */
};

/* ---- Ctrl-C ---- */

/* The flag of the shell, for the signal handler. */
static volatile int *stop_flag;

static void on_interrupt(int sig)
{
	static struct timespec last;
	struct timespec now;
	int saved = errno;
	double since;

	clock_gettime(CLOCK_MONOTONIC, &now);
	since = (double)(now.tv_sec - last.tv_sec) + 1e-9 * (double)(now.tv_nsec - last.tv_nsec);
	if (*stop_flag && since < 1) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	last = now;
	*stop_flag = 1;
	errno = saved;
}

/* Is it code of the user, neither ours nor C? */
static bool is_users(const lua_Debug *ar)
{
	return ar->currentline > 0 && strncmp(ar->source, "=[millrace", 10) != 0;
}

/* Source location at which Ctrl-C stopped code of the user; "" if there is none. */
static char stop_location[LUA_IDSIZE + 16];

static void note_location(lua_State *L, lua_Debug *ar)
{
	lua_getinfo(L, "Sl", ar);
	for (int level = 1; !is_users(ar); level++) {
		if (!lua_getstack(L, level, ar))
			return;
		lua_getinfo(L, "Sl", ar);
	}
	snprintf(stop_location, sizeof(stop_location), "%s:%d: ", ar->short_src, ar->currentline);
}

/* Raising an error once is not enough: `while true do pcall(f) end` would catch it. So the hook stays and raises one
 * after every instruction until the flag is cleared. An ordinary error would first call the error handler of an xpcall,
 * with hooks off, and a handler that loops could never be stopped. The only error without a handler is lack of memory,
 * so more memory is requested than can exist. */
static void stop_hook(lua_State *L, lua_Debug *ar)
{
	const struct host *h = host_of(L);

	if (h->uninterrupted)
		return;
	if (!h->interrupted) {
		if (lua_gethookcount(L) != HOOK_COUNT)
			lua_sethook(L, stop_hook, LUA_MASKCOUNT, HOOK_COUNT);
		return;
	}
	if (is_uninterrupted_call(L, ar))
		return;
	lua_sethook(L, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
	if (!stop_location[0])
		note_location(L, ar);
	lua_newuserdatauv(L, SIZE_MAX / 4, 0);
	luaL_error(L, "interrupted");
}

void user_init(lua_State *L)
{
	struct sigaction sa = { .sa_handler = on_interrupt };	/* no SA_RESTART: end reads */

	stop_flag = &host_of(L)->interrupted;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	lua_sethook(L, stop_hook, LUA_MASKCOUNT, HOOK_COUNT);
}

/* ---- source lines ---- */

/* Key in the registry of a table: name of a chunk without a file -> its text. */
#define TEXTS "millrace.texts"

void user_remember(lua_State *L, const char *text, size_t len, const char *name)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, TEXTS);
	lua_pushlstring(L, text, len);
	lua_setfield(L, -2, name);
	lua_pop(L, 1);
}

int user_load(lua_State *L, const char *text, size_t len, const char *name)
{
	int status;

	user_remember(L, text, len, name);
	lua_pushfstring(L, "=%s", name);
	status = luaL_loadbufferx(L, text, len, lua_tostring(L, -1), "t");
	lua_remove(L, -2);
	return status;
}

static bool line_of_text(lua_State *L, const char *name, int want, char line[LINE_SHOWN])
{
	const char *s;

	luaL_getsubtable(L, LUA_REGISTRYINDEX, TEXTS);
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	s = lua_tostring(L, -1);
	while (s && --want > 0) {
		s = strchr(s, '\n');
		s = s ? s + 1 : NULL;
	}
	if (s)
		snprintf(line, LINE_SHOWN, "%.*s", (int)strcspn(s, "\n"), s);
	lua_pop(L, 2);
	return s != NULL;
}

static bool line_of_file(const char *path, int want, char line[LINE_SHOWN])
{
	struct stat st;
	FILE *f;
	int at = 1;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(f = fopen(path, "r")))
		return false;
	while (at < want) {
		int c = getc(f);

		if (c == EOF)
			break;
		at += c == '\n';
	}
	line[0] = '\0';
	if (at == want && fgets(line, LINE_SHOWN, f))
		line[strcspn(line, "\n")] = '\0';
	fclose(f);
	return line[0] != '\0';
}

/* If msg begins with "NAME:LINE:", copy that line of source and return its number; else 0. */
static int source_line(lua_State *L, const char *msg, char line[LINE_SHOWN])
{
	char name[LUA_IDSIZE], *end;
	const char *colon = msg;

	while ((colon = strchr(colon, ':')) && colon < msg + strcspn(msg, "\n")) {
		long n = strtol(colon + 1, &end, 10);

		if (*end == ':' && n > 0 && n < INT32_MAX && colon - msg < LUA_IDSIZE) {
			snprintf(name, sizeof(name), "%.*s", (int)(colon - msg), msg);
			if (line_of_text(L, name, (int)n, line) || line_of_file(name, (int)n, line))
				return (int)n;
			return 0;
		}
		colon++;
	}
	return 0;
}

/* ---- errors ---- */

static int tostring_l(lua_State *L)
{
	luaL_tolstring(L, 1, NULL);
	return 1;
}

/* Push the text of the error value at index 1. */
static const char *error_text(lua_State *L)
{
	if (lua_type(L, 1) == LUA_TSTRING) {
		lua_pushvalue(L, 1);
	} else if (luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL) {
		lua_pop(L, 1);
		lua_pushcfunction(L, tostring_l);
		lua_pushvalue(L, 1);
		if (lua_pcall(L, 1, 1, 0) != LUA_OK)
			lua_pushliteral(L, "(error object whose __tostring fails)");
	} else {
		lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
	}
	return lua_tostring(L, -1);
}

/* Number of frames of the stack. lua_getstack takes time proportional to the level, so a binary search keeps this fast
 * after a stack overflow. */
static int stack_depth(lua_State *L)
{
	lua_Debug ar;
	int lo = 1, hi = 1;

	while (lua_getstack(L, hi, &ar)) {
		lo = hi;
		hi *= 2;
	}
	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (lua_getstack(L, mid, &ar))
			lo = mid + 1;
		else
			hi = mid;
	}
	return hi;
}

/* Add the frames of the user below the one that the message names. */
static void add_trace(lua_State *L, luaL_Buffer *b, const char *msg)
{
	char location[2 * FRAMES_SEEN][LUA_IDSIZE + 16];
	int depth = stack_depth(L), n = 0, skipped_at = -1;
	bool named = false;
	lua_Debug ar;

	for (int level = 1; level < depth; level++) {
		size_t len;

		if (level == FRAMES_SEEN && depth - FRAMES_SEEN > level) {
			skipped_at = n;
			level = depth - FRAMES_SEEN;
		}
		if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar) || !is_users(&ar))
			continue;
		snprintf(location[n], sizeof(location[n]), "%s:%d", ar.short_src, ar.currentline);
		len = strlen(location[n]);
		if (!named && !strncmp(msg, location[n], len) && msg[len] == ':') {
			named = true;
			n = 0;
		} else {
			n++;
		}
	}
	for (int i = 0; i < n; i++) {
		if (i == FRAMES_SHOWN && (n > 2 * FRAMES_SHOWN || skipped_at > 0)) {
			luaL_addstring(b, "\n  ...");
			i = n - FRAMES_SHOWN;
		}
		luaL_addstring(b, "\n  called from ");
		luaL_addstring(b, location[i]);
	}
}

static int on_error(lua_State *L)
{
	const char *msg, *hint;
	char line[LINE_SHOWN];
	luaL_Buffer b;

	if (lua_islightuserdata(L, 1))
		return 1;		/* quit() */
	lua_settop(L, 1);
	msg = error_text(L);
	if (host_of(L)->interrupted)
		return 1;
	if (!source_line(L, msg, line))
		line[0] = '\0';
	push_name_hint(L, msg, line);
	hint = lua_tostring(L, -1);
	luaL_buffinit(L, &b);
	luaL_addstring(&b, msg);
	luaL_addstring(&b, hint);
	add_trace(L, &b, msg);
	luaL_pushresult(&b);
	return 1;
}

int user_call(lua_State *L, int nargs, int nresults)
{
	struct host *h = host_of(L);
	int at = lua_gettop(L) - nargs, status;

	lua_pushcfunction(L, on_error);
	lua_insert(L, at);
	h->interrupted = 0;
	stop_location[0] = '\0';
	status = lua_pcall(L, nargs, nresults, at);
	lua_sethook(L, stop_hook, LUA_MASKCOUNT, HOOK_COUNT);
	lua_remove(L, at);
	if (status != LUA_OK && h->interrupted && stop_location[0]) {
		lua_pop(L, 1);
		lua_pushfstring(L, "%sinterrupted", stop_location);
	} else if (status == LUA_ERRMEM) {
		lua_gc(L, LUA_GCCOLLECT);
	}
	h->interrupted = 0;
	return status;
}

/* What was perhaps meant by what is no Lua; line: the one that the message is about. */
static const char *syntax_hint(const char *msg, const char *line)
{
	if (strstr(msg, ": function arguments expected near "))
		return "; a method is called with (), as in plan:check(), and a field read with a point";
	if (!strstr(msg, ": syntax error near ") && !strstr(msg, ": unexpected symbol near "))
		return "";
	if (!strncmp(line, "mr> ", 4) || !strncmp(line, ">> ", 3))
		return "; the prompt is no part of what is typed";
	if (!strncmp(line, "help ", 5))
		return "; what help is asked about is a text, as in help \"plan\"";
	return strstr(msg, ": syntax error near <eof>") ? "; a value alone is no statement: print(...) shows it" : "";
}

/* Print a part of a message on standard error; on a terminal with lines that are broken between words. */
static void print_part(const char *text, size_t len)
{
	struct winsize w;

	if (isatty(STDERR_FILENO) && !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 20)
		pager_wrap(stderr, text, len, w.ws_col);
	else
		fwrite(text, 1, len, stderr);
}

void user_report(lua_State *L, const char *prefix)
{
	bool colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
	const char *msg = luaL_tolstring(L, -1, NULL);
	size_t head = strcspn(msg, "\n");
	char line[LINE_SHOWN], *first = NULL;
	int n = source_line(L, msg, line);
	size_t bytes;
	FILE *f;

	fflush(stdout);
	f = open_memstream(&first, &bytes);	/* not in Lua, whose memory may be used up */
	fprintf(f ? f : stderr, "%s%s%.*s%s%s", colour ? "\033[31m" : "", prefix, (int)head, msg, syntax_hint(msg, n ?
		line : ""),
		colour ? "\033[0m" : "");
	if (f && fclose(f) == 0)
		print_part(first, bytes);
	free(first);
	putc('\n', stderr);
	if (n)
		fprintf(stderr, "  %d | %s\n", n, line);
	if (msg[head]) {
		print_part(msg + head + 1, strlen(msg + head + 1));
		putc('\n', stderr);
	}
	lua_pop(L, 2);
}
