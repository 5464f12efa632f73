#include "repl.h"

#include <errno.h>
#include <histedit.h>
#include <lauxlib.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "past.h"
#include "input.h"
#include "lua/lcore.h"
#include "pager.h"
#include "user.h"

enum {
	CTRL_C = 3,
	HISTORY_LINES = 1000,
	SPARE_BYTES = 1 << 20,		/* that a chunk may use although memory is used up */
};

struct repl {
	lua_State *L;
	char *text;			/* the unfinished chunk, owned; NULL if none */
	int count;			/* of chunks: the next one is called [count + 1] */
	bool leave;
	bool colour;
	bool cleared;			/* Ctrl-C dropped what was typed */
	bool timed;			/* print how long the chunk takes */
	bool pasted;			/* the unfinished chunk begins with a prompt */
	EditLine *el;			/* NULL: no terminal */
	History *history;
	char *line;			/* the line just read, owned */
	size_t cap;			/* of line */
	char history_path[PATH_MAX];	/* "" if there is none */
};

static const char *prompt(const struct repl *r)
{
	bool more = r->text != NULL;

	if (r->colour && r->el)		/* \1: encloses what has no width */
		return more ? "\1\033[36m\1>> \1\033[0m\1" : "\1\033[36m\1mr> \1\033[0m\1";
	return more ? ">> " : "mr> ";
}

static int columns(void)
{
	struct winsize w;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 20)
		return w.ws_col;
	return 80;
}

/* ---- the terminal ---- */

static struct repl *repl_of(EditLine *el)
{
	void *r;

	el_get(el, EL_CLIENTDATA, &r);
	return r;
}

static char *on_prompt(EditLine *el)
{
	return (char *)(uintptr_t)prompt(repl_of(el));	/* libedit does not write to it */
}

static volatile sig_atomic_t resized, continued;

static void on_signal(int sig)
{
	if (sig == SIGWINCH)
		resized = 1;
	else
		continued = 1;
}

static bool is_pending(const void *host)
{
	return ((const struct host *)host)->interrupted || resized || continued;
}

/* Read a character for libedit. Ctrl-C becomes a key; after a change of size and after Ctrl-Z it draws again. */
static int on_read(EditLine *el, wchar_t *out)
{
	struct host *h = host_of(repl_of(el)->L);
	mbstate_t state = { 0 };
	ssize_t n;
	char c;

	for (;;) {
		input_wait(STDIN_FILENO, -1, is_pending, h);
		if (h->interrupted) {
			h->interrupted = 0;
			*out = CTRL_C;
			return 1;
		}
		if (resized || continued) {
			resized = 0;		/* before it draws: the next signal may come meanwhile */
			if (continued) {
				continued = 0;
				el_set(el, EL_PREP_TERM, 0);
				el_set(el, EL_PREP_TERM, 1);
			}
			putchar('\r');		/* el_resize expects the cursor there */
			el_resize(el);
			el_set(el, EL_REFRESH);
			continue;
		}
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		switch (mbrtowc(out, &c, 1, &state)) {
		case (size_t)-2:
			continue;
		case (size_t)-1:
			state = (mbstate_t){ 0 };
			*out = L'?';
			return 1;
		default:
			return 1;
		}
	}
}

/* Drop the line and the unfinished chunk. */
static unsigned char on_clear(EditLine *el, int ch)
{
	struct repl *r = repl_of(el);

	(void)ch;
	r->cleared = true;
	fputs("^C\n", stdout);
	return CC_EOF;
}

/* (struct repl *) -> text to insert, or nil and the words to choose from */
static int complete_l(lua_State *L)
{
	struct repl *r = lua_touserdata(L, 1);
	const LineInfo *line = el_line(r->el);

	lua_getfield(L, LUA_REGISTRYINDEX, "millrace.complete");
	lua_pushfstring(L, "%s\n", r->text ? r->text : "");
	lua_pushlstring(L, line->buffer, (size_t)(line->cursor - line->buffer));
	lua_concat(L, 2);
	lua_pushinteger(L, columns());
	lua_call(L, 2, 2);
	return 2;
}

static unsigned char on_tab(EditLine *el, int ch)
{
	struct repl *r = repl_of(el);
	lua_State *L = r->L;
	const LineInfo *line = el_line(el);
	int top = lua_gettop(L);
	unsigned char next = CC_ERROR;

	(void)ch;
	if (strspn(line->buffer, " \t") >= (size_t)(line->cursor - line->buffer))
		return el_insertstr(el, "  ") ? CC_ERROR : CC_REFRESH;
	lua_pushcfunction(L, complete_l);
	lua_pushlightuserdata(L, r);
	if (lua_pcall(L, 1, 2, 0) == LUA_OK) {
		if (!lua_isnil(L, -2) && !el_insertstr(el, lua_tostring(L, -2))) {
			next = CC_REFRESH;
		} else if (!lua_isnil(L, -1)) {
			printf("\n%s\n", lua_tostring(L, -1));
			fflush(stdout);
			next = CC_REDISPLAY;
		}
	}
	lua_settop(L, top);
	return next;
}

static void enter_history(void *ud, const char *entry)
{
	struct repl *r = ud;
	HistEvent ev;

	history(r->history, &ev, H_ENTER, entry);
}

/* A chunk of any number of lines is one entry. */
static void remember(struct repl *r, const char *lead, const char *text)
{
	size_t n = strlen(lead) + strlen(text) + 1;
	char *entry = r->history ? malloc(n) : NULL;

	if (!entry)
		return;
	snprintf(entry, n, "%s%s", lead, text);
	enter_history(r, entry);
	past_append(r->history_path, entry);
	free(entry);
}

/* ---- reading ---- */

static void open_terminal(struct repl *r)
{
	HistEvent ev;

	r->el = el_init("millrace", stdin, stdout, stderr);
	if (!r->el)
		return;
	r->history = history_init();
	el_set(r->el, EL_CLIENTDATA, r);
	el_set(r->el, EL_PROMPT_ESC, on_prompt, '\1');
	el_set(r->el, EL_EDITOR, "emacs");
	el_set(r->el, EL_GETCFN, on_read);
	if (r->history) {
		history(r->history, &ev, H_SETSIZE, HISTORY_LINES);
		history(r->history, &ev, H_SETUNIQUE, 1);
		el_set(r->el, EL_HIST, history, r->history);
		if (!past_find(r->history_path, sizeof(r->history_path))) {
			fprintf(stderr, "millrace: the history %s is not a file, so none is kept; set MILLRACE_HISTORY "
				"to one\n", r->history_path);
			r->history_path[0] = '\0';
		}
		past_load(r->history_path, enter_history, r);
	}
	el_set(r->el, EL_ADDFN, "mr-complete", "Complete the word", on_tab);
	el_set(r->el, EL_ADDFN, "mr-clear", "Drop the line", on_clear);
	el_set(r->el, EL_BIND, "^I", "mr-complete", NULL);
	el_set(r->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_source(r->el, NULL);		/* the user's ~/.editrc */
	el_set(r->el, EL_BIND, "^C", "mr-clear", NULL);
}

/* Read a line into r->line, without its newline; false at the end of input. r->cleared: Ctrl-C was pressed instead. */
static bool read_terminal(struct repl *r)
{
	struct sigaction sa = { .sa_handler = on_signal }, winch, cont;
	const char *s;
	int len;

	sigemptyset(&sa.sa_mask);
	sigaction(SIGWINCH, &sa, &winch);
	sigaction(SIGCONT, &sa, &cont);
	el_resize(r->el);
	s = el_gets(r->el, &len);
	sigaction(SIGWINCH, &winch, NULL);
	sigaction(SIGCONT, &cont, NULL);
	if (r->cleared)
		return true;
	if (!s || len <= 0) {
		putchar('\n');
		return false;
	}
	free(r->line);
	r->line = strdup(s);		/* below: the last newline only, as a recalled chunk may have several */
	if (r->line && r->line[len = (int)strlen(r->line) - 1] == '\n')
		r->line[len] = '\0';
	return r->line != NULL;
}

static void drop_text(struct repl *r)
{
	free(r->text);
	r->text = NULL;
	r->timed = false;
}

static bool read_plain(struct repl *r)
{
	struct host *h = host_of(r->L);
	bool typed = isatty(STDIN_FILENO);

	if (typed)
		fputs(prompt(r), stdout);
	fflush(stdout);
	if (getline(&r->line, &r->cap, stdin) < 0) {
		if (!h->interrupted)
			return false;
		clearerr(stdin);
		h->interrupted = 0;
		r->cleared = true;
		putchar('\n');
		return true;
	}
	if (h->interrupted) {		/* Ctrl-C came before the line */
		h->interrupted = 0;
		drop_text(r);
		putchar('\n');
	}
	r->line[strcspn(r->line, "\n")] = '\0';
	if (!typed)
		printf("%s%s\n", prompt(r), r->line);
	return true;
}

static const char *lead_of(const struct repl *r)
{
	return r->timed ? ":time " : "";
}

/* Add the line to the unfinished chunk; false if that is still blank. */
static bool add_line(struct repl *r)
{
	size_t len = r->text ? strlen(r->text) + 1 : 0;
	char *grown = realloc(r->text, len + strlen(r->line) + 1);

	if (!grown)
		return false;
	if (len)
		grown[len - 1] = '\n';
	strcpy(grown + len, r->line);
	r->text = grown;
	if (grown[strspn(grown, " \t\n")])
		return true;
	drop_text(r);
	return false;
}

/* ---- running ---- */

/* Ends the chunk that calls it, and then the shell, even if the chunk catches errors. */
static int quit_l(lua_State *L)
{
	struct repl *r = lua_touserdata(L, lua_upvalueindex(1));

	r->leave = true;
	lua_pushlightuserdata(L, r);
	return lua_error(L);		/* on_error ignores it */
}

/* Push a function of lua/std/shell.lua. */
static void push_shell(lua_State *L, const char *name)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "millrace.shell");
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
}

/* Show the results of a chunk, which are at stack index `first` and above. */
static void take_results(struct repl *r, int first)
{
	lua_State *L = r->L;
	bool wrap;

	r->leave |= lua_gettop(L) == first && lua_tocfunction(L, first) == quit_l;
	if (r->leave)
		return;
	luaL_checkstack(L, LUA_MINSTACK, "too many results");
	/* texts of objects are sentences and tables; strings may be anything, such as a script to be copied */
	wrap = isatty(STDOUT_FILENO) && lua_gettop(L) >= first;
	for (int i = first; i <= lua_gettop(L); i++)
		wrap = wrap && lua_type(L, i) != LUA_TSTRING;
	push_shell(L, "show");
	lua_pushinteger(L, columns());
	lua_rotate(L, first, 2);
	if (user_call(L, lua_gettop(L) - first, LUA_MULTRET) != LUA_OK) {
		user_report(L, "cannot show this value: ");
		return;
	}
	for (int i = first; i <= lua_gettop(L); i++) {
		size_t len, bytes;
		const char *text = lua_tolstring(L, i, &len);
		char *broken = wrap ? pager_wrapped(text, len, columns(), &bytes) : NULL;

		pager_print(broken ? broken : text, broken ? bytes : len);
		free(broken);
	}
}

/* (struct repl *): run the text, if it is complete. */
static int run_text_l(lua_State *L)
{
	struct repl *r = lua_touserdata(L, 1);
	struct mem *m = &host_of(L)->mem;
	bool timed;
	double start;
	int status;

	if (m->cap && m->used + SPARE_BYTES > m->cap)
		m->cap = m->used + SPARE_BYTES;	/* so that a chunk can free something */
	lua_pushstring(L, r->text);
	lua_replace(L, 1);
	user_remember(L, r->text, strlen(r->text), lua_pushfstring(L, "=[%d]", r->count + 1) + 1);
	push_shell(L, "load");
	lua_pushvalue(L, 1);
	lua_pushvalue(L, 2);
	lua_call(L, 2, 3);			/* -- text name chunk message more */
	if (lua_toboolean(L, -1))
		return 0;
	status = lua_isnil(L, 3) ? LUA_ERRSYNTAX : LUA_OK;
	lua_remove(L, status == LUA_OK ? 4 : 3);
	lua_remove(L, 2);
	lua_settop(L, 2);
	remember(r, lead_of(r), r->text);
	timed = r->timed;
	drop_text(r);
	r->count++;
	start = clock_seconds();
	if (status == LUA_OK)
		status = user_call(L, 0, LUA_MULTRET);
	start = clock_seconds() - start;
	if (status == LUA_OK) {
		if (lua_gettop(L) == 1)		/* keep is given a value in any case */
			lua_pushnil(L);
		push_shell(L, "keep");
		lua_pushvalue(L, 1);
		lua_pushvalue(L, 2);
		lua_call(L, 2, 0);
		take_results(r, 2);
	} else if (!r->leave) {
		user_report(L, "");
	}
	if (timed)
		printf(start < 0.1 ? "%.3g ms\n" : "%.3g s\n", start < 0.1 ? start * 1e3 : start);
	return 0;
}

static void run_text(struct repl *r)
{
	lua_State *L = r->L;

	lua_pushcfunction(L, run_text_l);
	lua_pushlightuserdata(L, r);
	if (lua_pcall(L, 1, 0, 0) == LUA_OK)
		return;
	fprintf(stderr, "%s\n", lua_tostring(L, -1));	/* short of memory: allocate nothing */
	lua_pop(L, 1);
	lua_gc(L, LUA_GCCOLLECT);
	drop_text(r);
}

/* ---- commands ---- */

static bool is_command(const char *line)
{
	line += strspn(line, " \t");
	return line[0] == ':' && line[1] != ':';	/* ::label:: is Lua */
}

/* Push what a module of ours returns; false after its error has been reported. */
static bool push_module(lua_State *L, const char *name)
{
	lua_getglobal(L, "require");
	lua_pushstring(L, name);
	if (user_call(L, 1, 1) == LUA_OK)
		return true;
	user_report(L, "");
	return false;
}

/* Run a line that is a command. True if r->line is now a chunk to be timed. */
static bool run_command(struct repl *r)
{
	lua_State *L = r->L;

	push_shell(L, "command");
	lua_pushstring(L, r->line);
	if (user_call(L, 1, 3) != LUA_OK) {
		user_report(L, "");
		return false;
	}
	r->timed = !lua_isnil(L, -3);
	if (r->timed)
		strcpy(r->line, lua_tostring(L, -3));	/* it is a part of the line */
	else
		remember(r, "", r->line);
	if (!lua_isnil(L, -2))
		printf("%s\n", lua_tostring(L, -2));
	if (!lua_isnil(L, -1))
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
	fflush(stdout);
	lua_pop(L, 3);
	return r->timed;
}

/* A line that was copied with its prompt, from documents for example, is what follows the prompt. */
static void drop_prompt(struct repl *r)
{
	const char *copied = !r->text ? "mr> " : r->pasted ? ">> " : "";
	size_t n = strlen(copied);

	if (!r->text)
		r->pasted = !strncmp(r->line, copied, n);
	if (n && !strncmp(r->line, copied, n))
		memmove(r->line, r->line + n, strlen(r->line + n) + 1);
}

static void take_line(struct repl *r)
{
	if (!r->cleared)
		drop_prompt(r);
	if (r->cleared) {		/* the history keeps the complete lines of what is dropped */
		if (r->text)
			remember(r, lead_of(r), r->text);
		drop_text(r);
	} else if (!r->text && is_command(r->line) && !run_command(r)) {
		return;
	} else if (add_line(r)) {
		run_text(r);
	}
}

/* core.page(text): print it, by screens if it is long */
static int page_l(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);

	pager_print(text, len);
	return 0;
}

static void set_globals(struct repl *r)
{
	static const char *const modules[] = { "millrace.complete", "millrace.shell" };
	lua_State *L = r->L;

	if (push_module(L, "millrace.core")) {
		lua_pushcfunction(L, page_l);
		lua_setfield(L, -2, "page");
		lua_pop(L, 1);
	}
	lua_pushlightuserdata(L, r);
	lua_pushcclosure(L, quit_l, 1);
	lua_pushvalue(L, -1);
	lua_setglobal(L, "quit");
	lua_setglobal(L, "exit");
	for (int i = 0; i < LEN(modules); i++)
		if (push_module(L, modules[i]))
			lua_setfield(L, LUA_REGISTRYINDEX, modules[i]);
	if (push_module(L, "millrace.help"))
		lua_setglobal(L, "help");
}

static void welcome(lua_State *L)
{
	lua_getglobal(L, "mr");
	if (lua_istable(L, -1))
		lua_getfield(L, -1, "version");
	printf("Millrace %s. help() lists the topics, TAB completes, Ctrl-D leaves.\n",
	       lua_isstring(L, -1) ? lua_tostring(L, -1) : "");
	lua_settop(L, 0);
}

void repl(lua_State *L)
{
	struct repl r = { .L = L };

	lua_settop(L, 0);
	set_globals(&r);
	if (host_of(L)->strict == STRICT_OFF)
		strict_set(L, STRICT_TYPED);
	r.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		open_terminal(&r);
		welcome(L);
	}
	do {
		r.cleared = false;
		fflush(stdout);
		if (!(r.el ? read_terminal(&r) : read_plain(&r)))
			break;
		take_line(&r);
	} while (!r.leave);
	if (r.el)
		el_end(r.el);
	if (r.history)
		history_end(r.history);
	free(r.text);
	free(r.line);
}
