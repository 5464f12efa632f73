/* main.c - the command line, with the options of the lua program. */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explore/explore.h"
#include "gpu/gpu.h"
#include "lua/lcore.h"
#include "lua/lfarm.h"
#include "repl.h"
#include "user.h"

enum { EXIT_SCRIPT = 1, EXIT_USAGE = 2 };
static const double MIB_MAX = 1 << 30;
enum { SCRIPT_MAX = 64 << 20 };		/* bytes of a script that is no file: /dev/zero has no end */

/* The lines of subcommands, which come from lua/std/commands.lua, stand for %s. */
static const char usage[] = "usage: millrace [options] [FILE.lua [arguments]]\n"
	"%s"
	"       millrace serve [--mcp]    answer other programs\n"
	"       (each has --help; a script of such a name is ./check)\n"
	"  -e CODE  run CODE (may be given again)\n"
	"  -s       strict: reading a global or field that does not exist is an error\n"
	"  -i       open the shell after the script\n"
	"  --farm   the script runs in several processes, which mpirun or srun starts\n"
	"  -v       print the version\n"
	"  -h       print this text\n"
	"  -        run what comes on standard input\n"
	"  --       end of the options\n"
	"Without a script, the shell opens.\n"
	"MILLRACE_HOME is the folder of hw/ and examples/, MILLRACE_MEMORY the most memory\n"
	"to use, in MiB.\n";

struct options {
	int argc;
	char **argv;
	int script;			/* position of FILE or "-" in argv; argc: none */
	bool code, interactive, strict, version, help, farm;
	const char *wrong;		/* an option that does not exist */
	int status;			/* of the exit */
};

static void read_options(struct options *o)
{
	int i;

	for (i = 1; i < o->argc && o->argv[i][0] == '-' && o->argv[i][1]; i++) {
		const char *s = o->argv[i];

		if (!strcmp(s, "--")) {
			i++;
			break;
		}
		if (!strcmp(s, "-i"))
			o->interactive = true;
		else if (!strcmp(s, "-s"))
			o->strict = true;
		else if (!strcmp(s, "-v") || !strcmp(s, "--version"))
			o->version = true;
		else if (!strcmp(s, "-h") || !strcmp(s, "--help"))
			o->help = true;
		else if (!strcmp(s, "--farm"))
			o->farm = true;
		else if (s[1] == 'e' && (s[2] || i + 1 < o->argc))
			o->code = true, i += !s[2];
		else
			o->wrong = o->wrong ? o->wrong : s;
	}
	o->script = i;
}

/* ---- where hw/ and examples/ are ---- */

static bool is_home(const char *dir)
{
	char path[PATH_MAX + 8];
	struct stat st;

	snprintf(path, sizeof(path), "%s/hw", dir);
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* $MILLRACE_HOME, or the first folder, from that of the program upward, that has hw/ (checkout, bundle) or
 * share/millrace/hw (installed). False: $MILLRACE_HOME is wrong, which was said. */
static bool find_home(char home[PATH_MAX])
{
	const char *given = getenv("MILLRACE_HOME");
	char dir[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (given && *given) {
		snprintf(home, PATH_MAX, "%s", given);
		if (!is_home(home))
			fprintf(stderr, "millrace: MILLRACE_HOME is %s, which has no folder hw; set it to the folder "
				"that has hw and examples, or unset it\n", given);
		return is_home(home);
	}
	dir[n > 0 ? n : 0] = '\0';
	while ((slash = strrchr(dir, '/'))) {
		*slash = '\0';
		for (int i = 0; i < 2; i++) {
			snprintf(home, PATH_MAX, "%.*s%s", PATH_MAX - 16, dir, i ? "/share/millrace" : "");
			if (is_home(home))
				return true;
		}
	}
	snprintf(home, PATH_MAX, "/usr/local/share/millrace");
	return true;
}

/* $MILLRACE_MEMORY, or three quarters of the memory of this machine or container: with more, it would swap or be
 * killed. 0: $MILLRACE_MEMORY is wrong, which was said. */
static size_t memory_cap(void)
{
	const char *given = getenv("MILLRACE_MEMORY");
	double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), limit;
	FILE *f;

	if (given && *given) {
		char *end;
		double mib = strtod(given, &end);

		if (!*end && mib >= 1 && mib <= MIB_MAX)
			return (size_t)(mib * (1 << 20));
		fprintf(stderr, "millrace: MILLRACE_MEMORY is %s; it must be a number of MiB, such as 4096\n", given);
		return 0;
	}
	f = fopen("/sys/fs/cgroup/memory.max", "r");
	if (f) {
		if (fscanf(f, "%lf", &limit) == 1 && limit < bytes)
			bytes = limit;
		fclose(f);
	}
	return (size_t)(bytes * 0.75);
}

/* ---- scripts ---- */

/* The table `arg`, as in lua: the script is at 0, its arguments follow, what comes before it has negative indices. */
static void set_arg(lua_State *L, const struct options *o)
{
	int zero = o->script < o->argc ? o->script : 0;

	lua_newtable(L);
	for (int i = 0; i < o->argc; i++) {
		lua_pushstring(L, o->argv[i]);
		lua_rawseti(L, -2, i - zero);
	}
	lua_setglobal(L, "arg");
}

/* Push the script's arguments; returns how many. */
static int push_arguments(lua_State *L, const struct options *o)
{
	int n = o->argc - o->script - 1;

	if (n <= 0)
		return 0;
	luaL_checkstack(L, n + LUA_MINSTACK, "too many arguments");
	for (int i = 1; i <= n; i++)
		lua_pushstring(L, o->argv[o->script + i]);
	return n;
}

/* help([topic]), also in what is given on the command line or in a pipe */
static int help_l(lua_State *L)
{
	lua_getglobal(L, "require");
	lua_pushliteral(L, "millrace.help");
	lua_call(L, 1, 1);
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, 0);
	return 0;
}

/* Load what is typed without a prompt: there the word help alone calls it, as at the prompt. */
static int load_typed(lua_State *L, const char *text, size_t len, const char *name)
{
	size_t at = strspn(text, " \t\n");
	bool help = !strncmp(text + at, "help", 4) && at + 4 + strspn(text + at + 4, " \t\n;") == len;

	lua_pushcfunction(L, help_l);
	lua_setglobal(L, "help");
	return help ? user_load(L, "help()", 6, name) : user_load(L, text, len, name);
}

/* Call a chunk with its arguments, which are on the stack; false if loading or calling it failed. */
static bool call_chunk(lua_State *L, int loaded, int nargs)
{
	if (loaded != LUA_OK)
		lua_pop(L, nargs);
	if (loaded == LUA_OK && user_call(L, nargs, 0) == LUA_OK)
		return true;
	user_report(L, farm_prefix(L));
	return false;
}

/* Push all of a stream as a string; false: an error message, as it has too much. */
static bool push_stream(lua_State *L, FILE *f, const char *name)
{
	luaL_Buffer b;
	size_t n, all = 0;

	luaL_buffinit(L, &b);
	do {
		char *p = luaL_prepbuffer(&b);

		n = fread(p, 1, LUAL_BUFFERSIZE, f);
		luaL_addsize(&b, n);
		all += n;
	} while (n && all <= SCRIPT_MAX);
	luaL_pushresult(&b);
	if (all > SCRIPT_MAX)
		lua_pushfstring(L, "%s is no script: it has more than %d MiB", name, SCRIPT_MAX >> 20);
	return all <= SCRIPT_MAX;
}

static int load_stream(lua_State *L, FILE *f, const char *name)
{
	const char *text;
	int loaded = LUA_ERRRUN;
	size_t len;

	if (push_stream(L, f, name)) {
		text = lua_tolstring(L, -1, &len);
		loaded = f == stdin ? load_typed(L, text, len, name) : user_load(L, text, len, name);
	}
	lua_remove(L, -2);
	return loaded;
}

/* Is it a pipe that has a name, to which perhaps nobody writes? Those of the shell, <(...), have one in /dev or
 * /proc. */
static bool is_named_pipe(const char *path, const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && strncmp(path, "/dev/", 5) && strncmp(path, "/proc/", 6);
}

/* Words that stand for a script: the chunk of lua/std, and a function in the table that it returns, or that function. It
 * is called with the arguments and returns the status. */
static const struct command { const char *word, *module, *function; } commands[] = {
	{ "serve", "millrace.agent", NULL }, { "check", "millrace.commands", "check" },
	{ "diff", "millrace.commands", "diff" }, { "show", "millrace.commands", "show" },
	{ "predict", "millrace.commands", "predict" }, { "run", "millrace.commands", "run" },
};

/* What to say of a script that is not there, if it is perhaps a subcommand that is misspelt. */
static void push_missing(lua_State *L, const char *path)
{
	const char *words[LEN(commands)];

	for (int i = 0; i < LEN(commands); i++)
		words[i] = commands[i].word;
	lua_pushfstring(L, "cannot open %s: %s%s; --help lists subcommands and options", path, strerror(errno),
		nearest_hint(path, words, LEN(commands)).text);
}

/* Load a file, or what is no file but can be read to an end. */
static int load_path(lua_State *L, const char *path)
{
	struct stat st;
	FILE *f;
	int loaded;

	if (stat(path, &st) && !strpbrk(path, "./")) {
		push_missing(L, path);
		return LUA_ERRRUN;
	}
	if (stat(path, &st) || S_ISREG(st.st_mode))
		return luaL_loadfilex(L, path, "t");
	if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) || is_named_pipe(path, &st)) {
		lua_pushfstring(L, S_ISDIR(st.st_mode) ? "%s is a folder, not a script" : S_ISBLK(st.st_mode) ?
			"%s is a disk, not a script" : "%s is a named pipe, not a script; to wait for what is written "
			"to it, run millrace - <%s", path, path);
		return LUA_ERRRUN;
	}
	f = fopen(path, "r");
	if (!f) {
		lua_pushfstring(L, "cannot open %s: %s", path, strerror(errno));
		return LUA_ERRRUN;
	}
	loaded = load_stream(L, f, path);
	fclose(f);
	return loaded;
}

/* Run a file, or standard input for "-" and no file. */
static bool run_script(lua_State *L, const struct options *o)
{
	const char *path = o->script < o->argc ? o->argv[o->script] : "-";
	int loaded = strcmp(path, "-") ? load_path(L, path) : load_stream(L, stdin, "stdin");

	return call_chunk(L, loaded, push_arguments(L, o));
}

static bool run_options(lua_State *L, const struct options *o)
{
	for (int i = 1; i < o->script; i++) {
		const char *s = o->argv[i];

		if (s[0] != '-' || s[1] != 'e')
			continue;
		s = s[2] ? s + 2 : o->argv[++i];
		if (!call_chunk(L, load_typed(L, s, strlen(s), "(command line)"), 0))
			return false;
	}
	return true;
}

static const struct command *command_of(const struct options *o)
{
	bool named = o->script < o->argc && strcmp(o->argv[o->script - 1], "--");

	for (int i = 0; i < LEN(commands) && named; i++)
		if (!strcmp(o->argv[o->script], commands[i].word))
			return &commands[i];
	return NULL;
}

static void run_command(lua_State *L, struct options *o, const struct command *c)
{
	lua_getglobal(L, "require");
	lua_pushstring(L, c->module);
	lua_call(L, 1, 1);
	if (c->function)
		lua_getfield(L, -1, c->function);
	if (user_call(L, push_arguments(L, o), 1) == LUA_OK)
		o->status = (int)lua_tointeger(L, -1);
	else
		user_report(L, "millrace: ");
}

/* Why this cannot be run by all processes of a farm; NULL: it can. */
static const char *farm_refusal(const struct options *o)
{
	bool script = o->script < o->argc;

	if (o->interactive)
		return "--farm and -i exclude each other: a farm has no shell";
	if (script && !strcmp(o->argv[o->script], "-"))
		return "--farm takes no script from standard input, which only one of the processes gets";
	if (command_of(o))
		return "--farm takes a script, and no subcommand";
	return script || o->code ? NULL : "--farm needs a script, as in mpirun -n 4 millrace --farm FILE.lua";
}

/* Only rank 0 has an output. False: the farm cannot be had so, which was said. */
static bool enter_farm(lua_State *L, struct options *o)
{
	const char *why = farm_refusal(o);
	int null, rank;

	if (why) {
		fprintf(stderr, "millrace: %s\n", why);
		o->status = EXIT_USAGE;
		return false;
	}
	rank = farm_begin(L);
	lua_getglobal(L, "require");
	lua_pushliteral(L, "millrace.farm_devices");
	lua_call(L, 1, 1);
	lua_getfield(L, -1, "enter");
	lua_call(L, 0, 0);
	lua_pop(L, 1);
	if (rank == 0)
		return true;
	null = open("/dev/null", O_WRONLY);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
		luaL_error(L, "cannot open /dev/null: %s", strerror(errno));
	close(null);
	return true;
}

static void print_usage(lua_State *L, FILE *f)
{
	lua_getglobal(L, "require");
	lua_pushstring(L, "millrace.commands");
	lua_call(L, 1, 1);
	lua_getfield(L, -1, "summary");
	lua_call(L, 0, 1);
	fprintf(f, usage, lua_tostring(L, -1));
	lua_settop(L, 1);
}

/* Everything that may raise an error of Lua. Sets o->status. */
static int main_l(lua_State *L)
{
	struct options *o = lua_touserdata(L, 1);
	bool script = o->script < o->argc;

	user_init(L);
	set_arg(L, o);
	o->status = EXIT_SCRIPT;
	if (o->farm && !o->wrong && !o->help && !enter_farm(L, o))
		return 0;
	host_set_mr(L);
	lua_open_explore(L);
	if (o->wrong && !strcmp(o->wrong, "-e"))
		fprintf(stderr, "millrace: -e needs code behind it, as in -e 'print(mr.version)'\n");
	else if (o->wrong)
		fprintf(stderr, "millrace: unknown option '%s'\n", o->wrong);
	if (o->wrong || o->help) {
		print_usage(L, o->wrong ? stderr : stdout);
		o->status = o->wrong ? EXIT_USAGE : 0;
		return 0;
	}
	if (o->strict)
		strict_set(L, STRICT_ALL);
	if (o->version) {
		lua_getglobal(L, "mr");
		lua_getfield(L, -1, "version");
		printf("Millrace %s, %s\n", luaL_tolstring(L, -1, NULL), LUA_RELEASE);
		lua_settop(L, 1);
	}
	if (!run_options(L, o))
		return 0;
	if (command_of(o)) {
		run_command(L, o, command_of(o));
		return 0;
	}
	if (script && !run_script(L, o))
		return 0;
	if (!script && !o->code && !o->version && !o->interactive && !isatty(STDIN_FILENO)) {
		if (!run_script(L, o))
			return 0;
	} else if (o->interactive || (!script && !o->code && !o->version)) {
		repl(L);
	}
	o->status = 0;
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .argc = argc, .argv = argv };
	struct host h = { 0 };
	char home[PATH_MAX];
	lua_State *L;

	if (gpu_worker_asked(argc, argv))
		return gpu_worker_main(argc, argv);
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");	/* Lua and JSON write numbers with a point */
	setlocale(LC_COLLATE, "C");	/* and sort by bytes, so that every machine has the same lists */
	read_options(&o);
	h.mem.cap = memory_cap();
	if (!h.mem.cap || (!find_home(home) && !o.help))
		return EXIT_USAGE;
	h.home = home;
	L = host_open(&h);
	if (!L) {
		fputs("millrace: not enough memory\n", stderr);
		return EXIT_SCRIPT;
	}
	lua_pushcfunction(L, main_l);
	lua_pushlightuserdata(L, &o);
	if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
		if (h.interrupted)	/* Ctrl-C, before a script was there, looks like lack of memory (user.c) */
			lua_pushliteral(L, "interrupted");
		h.interrupted = 0;	/* the farm is closed by Lua */
		user_report(L, farm_prefix(L));
		o.status = EXIT_SCRIPT;
	}
	o.status = farm_end(L, o.status);
	host_close(L);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "millrace: cannot write the output: %s\n", strerror(errno));
		return EXIT_SCRIPT;
	}
	return o.status;
}
