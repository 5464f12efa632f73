/* lcore.h - what the files of the Lua binding share.
 *
 * The binding checks arguments, calls the core and pushes results; it holds no logic of its own. Any Lua call may jump
 * out of a C function, so three rules keep it leak-free: a userdata with a null pointer and its metatable exist before
 * the core object that goes into it (box_new); temporary memory is a scratch arena that Lua closes (scratch_push); and
 * a core call that runs out of memory raises in the thread that called enter() last. An object that borrows another one
 * keeps it alive in a uservalue (keep).
 *
 * Every message for the user begins with the location in the user's script: the nearest Lua function on the stack that
 * is not one of lua/std, whose chunks are named "=[millrace.NAME]". Positions are counted from 1 outside, from 0
 * inside. */
#ifndef LUA_LCORE_H
#define LUA_LCORE_H

#include <lauxlib.h>
#include <lua.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "device/device.h"
#include "tile/extent.h"
#include "tile/program.h"

/* Where reading a missing name is an error: nowhere; in chunks typed into the shell; in all but lua/std. */
enum strict { STRICT_OFF, STRICT_TYPED, STRICT_ALL };

/* The state of the program, owned by main; every Lua thread has a pointer to it (host_of). */
struct host {
	struct mem mem;			/* of the core and of Lua; main sets the cap */
	volatile int interrupted;	/* set by Ctrl-C; code that runs long checks it */
	/* How often Ctrl-C was caught, by core.heed or by search:run, so that the script goes on; who runs several of these looks
	 * whether it has grown, and stops. */
	int heeded;
	int uninterrupted;		/* how many functions of core.uninterrupted run */
	lua_State *L;			/* the Lua thread that called the core last: set by enter() */
	enum strict strict;		/* set by strict_set */
	const char *home;		/* folder of hw/ and examples/; borrowed from main */
	int gpu_ordinal;		/* of the GPU that kernels run on, from 0 */
	lua_State *holder;		/* the thread in which hold_finalizers holds; NULL: none */
	size_t collect_at;		/* bytes of `mem` in use at which a collection is due */
};

/* lua/std/NAME.lua, and docs/reference.md for help, as text, made by the Makefile; the last one has no name. */
struct std_chunk {
	const char *name;		/* "init", "tile", "reference.md" */
	const char *text;
	size_t len;
};
extern const struct std_chunk std_chunks[];

/* A state with the standard libraries and `require "millrace"`, all of whose memory
 * is h->mem's; NULL if that is not enough. `h` must outlive it. Close with host_close. */
lua_State *host_open(struct host *h);
void host_close(lua_State *L);		/* NULL is fine */
/* Set the global `mr`. May raise: call it protected. */
void host_set_mr(lua_State *L);
struct host *host_of(lua_State *L);

#define OUR_CHUNKS "=[millrace"		/* how the names of lua/std begin */

/* First statement of every function that calls the core. Again after calling Lua. */
struct host *enter(lua_State *L);
/* Raise "interrupted" if Ctrl-C was pressed. */
void check_stop(lua_State *L);
/* Is this the call of a function of core.uninterrupted, or its return? For hooks. */
bool is_uninterrupted_call(lua_State *L, lua_Debug *ar);
struct stop stop_of(const struct host *h);

/* Locations. here(): the user's line, its file name copied into `a`, or shared with
 * *last (the previous one, NULL at first) when equal; line 0 if there is none. */
struct srcloc here(lua_State *L, struct arena *a, const char **last);
/* The same for one message: the file name goes to `file`. */
struct srcloc here_now(lua_State *L, char file[LUA_IDSIZE]);

/* Raise "FILE:LINE: message"; e's own location if it has one, else the user's line, which is
 * also what asked for more than a limit. */
NORETURN void throw_err(lua_State *L, const struct err *e);
void raise_if(lua_State *L, enum err_code code, const struct err *e);
NORETURN void throw_msg(lua_State *L, const char *fmt, ...) PRINTF(2, 3);
/* "WHAT: EXPECTED expected, got ..." about the value at idx. */
NORETURN void throw_type(lua_State *L, int idx, const char *what, const char *expected);
/* Is it an object, and no plain value or table? */
bool is_object(lua_State *L, int idx);
/* The same about the object of a method, which there is not if it was called with a point. */
NORETURN void throw_self(lua_State *L, int idx, const char *what, const char *expected);
/* Which of the names was meant: the nearest one, or the option that other tools call so ("num_warps"); NULL. */
const char *name_meant(const char *name, const char *const *names, int n);
/* "WHAT: unknown KIND 'NAME'; did you mean '...'?", or of an option that is near to none, which ones there are. */
NORETURN void throw_unknown(lua_State *L, const char *what, const char *kind, const char *name,
	const char *const *names, int n);
/* A value as messages show it: 1.5, 'text', nil, table, millrace.plan. Returns buf. */
enum { SHOW_MAX = 64 };
const char *show(lua_State *L, int idx, char buf[SHOW_MAX]);

/* Arguments; `what` is the function's name as the user wrote it, `name` what the
 * value is to it. A number is an integer if its value is one (4096.0 is). */
bool is_integer(lua_State *L, int idx, int64_t *out);	/* *out is 0 if it is not */
int64_t check_integer(lua_State *L, int idx, const char *what, const char *name, int64_t lo, int64_t hi);
double check_real(lua_State *L, int idx, const char *what, const char *name);
const char *check_text(lua_State *L, int idx, const char *what, const char *name);
int check_choice(lua_State *L, int idx, const char *what, const char *kind,
	const char *const *names, int n);	/* position of the string among names */
enum dtype check_dtype(lua_State *L, int idx, const char *what);

/* Option tables. options_check accepts nil, none or a table whose keys are all among names[]. The readers leave *out
 * alone and return false where the option is nil (a bool option may also be false); `idx` must be positive. */
void options_check(lua_State *L, int idx, const char *what, const char *const *names, int n);
bool option_integer(lua_State *L, int idx, const char *what, const char *name, int64_t lo, int64_t hi, int64_t *out);
bool option_real(lua_State *L, int idx, const char *what, const char *name, double *out);
bool option_bool(lua_State *L, int idx, const char *what, const char *name, bool *out);
bool option_name(lua_State *L, int idx, const char *what, const char *name, const char *const *names, int n, int *out);
/* Leaves the string on the stack, which keeps it alive. */
bool option_text(lua_State *L, int idx, const char *what, const char *name, const char **out);
/* Push the option's value, of Lua type `type`; pushes nothing if it is nil. */
bool option_push(lua_State *L, int idx, const char *what, const char *name, int type);
/* options_check with the names as arguments. */
#define OPTIONS_CHECK(L, idx, what, ...) \
	options_check(L, idx, what, (const char *const[]){ __VA_ARGS__ }, LEN(((const char *const[]){ __VA_ARGS__ })))
/* Set a field of the table on top. */
void set_text(lua_State *L, const char *key, const char *v);
void set_integer(lua_State *L, const char *key, int64_t v);
void set_real(lua_State *L, const char *key, double v);
void set_bool(lua_State *L, const char *key, bool v);
void set_function(lua_State *L, const char *key, lua_CFunction f);
/* Push a list of n elements; `push` pushes element i. */
#define PUSH_LIST(L, i, n, push) \
	do { \
		lua_createtable(L, (int)(n), 0); \
		for (int i = 0; i < (n); i++) { \
			push; \
			lua_rawseti(L, -2, i + 1); \
		} \
	} while (0)
/* The axis that the key at `key` of a table like {m=128, k=64} names. */
int check_axis_key(lua_State *L, int key, const char *what, const struct program *p);
/* {m=128, k=64} at idx into a tiling; the axes must be the program's. */
void check_tiling(lua_State *L, int idx, const char *what, const struct program *p, struct tiling *out);

/* Classes of userdata, named "millrace.KIND". Methods are called with the object; a field's function is called with the
 * object when the field is read; `meta` are metamethods (__index is class_index unless given there). The tables stay in
 * the metatable as `methods` and `fields`, where completion finds the names. */
struct class_def {
	const char *name;
	const luaL_Reg *methods, *fields, *meta;	/* each may be NULL */
};
void class_new(lua_State *L, const struct class_def *c);
/* Add a method to a class of another file (graph to programs). */
void class_method(lua_State *L, const char *name, const char *method, lua_CFunction f);
/* As __index, or from a class's own __index. */
int class_index(lua_State *L);

/* lstrict.c: missing names. strict_set adds to the metatable of _G on the first call; it keeps what is in it. */
void strict_set(lua_State *L, enum strict strict);
/* End of an __index function with the object and the key at 1 and 2: raise "KIND has no
 * 'KEY'; did you mean '...'?" where that is an error, else push nil and return 1. The
 * names are the keys of the tables at `one` and `two` (0: none). */
int missing_field(lua_State *L, const char *kind, int one, int two);
/* Is a missing name an error in the Lua function that reads it, the caller of the running C function? */
bool is_strict(lua_State *L);
/* Push how an object of the class `of` (NULL: of any) leads to one that has the member, "plan:simulate():why()"; NULL,
 * and nothing is pushed, if none does. */
const char *push_way_to(lua_State *L, const char *of, const char *name);
/* Push what to say about an error message of Lua that names a missing global, field or method where missing names
 * are no errors: "; did you mean 'print'?"; "" if nothing. For the handler of the error. line: that of the source,
 * or "". */
void push_name_hint(lua_State *L, const char *msg, const char *line);
/* A metatable in the registry, for luaL_setmetatable on plain tables: reading any other field
 * than these is a missing one. Its table `fields` is for completion. */
void record_class(lua_State *L, const char *name, const char *kind, const char *const *names, int n);

/* A pointer in a userdata: push one that holds NULL, return where to put it. */
void **box_new(lua_State *L, const char *class_name, int uservalues);
/* The pointer; raises if idx is no such object or its pointer is gone. */
void *box_get(lua_State *L, int idx, const char *class_name, const char *what);
/* Is the C function that runs a finalizer, called by the collector? What others borrow
 * must not be freed for a script that has found its __gc. */
bool by_collector(lua_State *L);
/* For __gc: take the pointer out of argument 1, leaving NULL. NULL for a script. */
void *box_take(lua_State *L, const char *class_name);
/* Define name_l, the __gc of a class whose objects `release` frees. */
#define BOX_GC(name, class_name, release) \
	static int name##_l(lua_State *L) \
	{ \
		release(box_take(L, class_name)); \
		return 0; \
	}
/* Define name_l, a function for Lua with one result, which `push` pushes. */
#define RETURNS(name, push) \
	static int name##_l(lua_State *L) \
	{ \
		push; \
		return 1; \
	}
/* Define name_l, a method that returns text: `print` appends it to &text, for the object o that `check` gives. */
#define RETURNS_TEXT(name, type, check, print) \
	static int name##_l(lua_State *L) \
	{ \
		type o = check; \
		struct buf text; \
		enter(L); \
		buf_init(&text, scratch_push(L)); \
		print; \
		return push_buf(L, &text); \
	}
/* Define name_l, the getter of a field: `push` pushes it, of the object o that `check` gives. */
#define GETTER(name, type, check, push) \
	static int name##_l(lua_State *L) \
	{ \
		type o = check; \
		push; \
		return 1; \
	}
/* Until the C function ends, however, no finalizer of the user's runs: it could edit the
 * plan whose parts are being pushed. */
void hold_finalizers(lua_State *L);
/* Let the object at `owner` keep the value at `value` alive, in uservalue `slot`. */
void keep(lua_State *L, int owner, int slot, int value);

/* Push a userdata that releases its arena when the C function ends, however. */
struct arena *scratch_push(lua_State *L);
/* Raise if `bytes` for `thing` would exceed the cap on memory even after a garbage collection. */
void check_memory(lua_State *L, const char *what, const char *thing, size_t bytes);
/* Tell the collector that an object it sees as small holds so many bytes. */
void account(lua_State *L, size_t bytes);
/* Push the text of a buf. */
int push_buf(lua_State *L, const struct buf *b);

/* lsurplus.c. A call takes `most` arguments, with the object of a method: raise an error, with how the call is written, if it
 * has more that are not nil. */
void refuse_surplus(lua_State *L, int most);
/* core.at_most(n, ...): the same of a function that takes any number */
int at_most_l(lua_State *L);
/* How many arguments the function at idx takes; INT_MAX: any number. */
int most_arguments(lua_State *L, int idx);
/* Push a method in C, which refuses more arguments than it takes. */
void push_method(lua_State *L, const char *class_name, const char *method, lua_CFunction f);
/* core.describe(f): f(name) gives how a call is written, or nil */
int describe_l(lua_State *L);

/* lcopies.c. Let the table on top, the copy that an object gives of something, only be read: of="plan.rings". An error
 * about setting a field of it says how it is set instead: before and after "NAME=VALUE" stand "plan:buffers{" and
 * "}"; after NULL: `before` is what to say. */
void copy_close(lua_State *L, const char *of, const char *before, const char *after);
/* Replace such a copy at idx by a table with its fields, for C, which looks at these alone; another value stays. */
void copy_open(lua_State *L, int idx);

/* core.entry(f[, most]): a C function that calls f, with at most so many arguments; f in Lua says it itself. A tail call of
 * a C function keeps the caller's frame, so `return p:load(x)` still knows the user's line. */
int entry_l(lua_State *L);

/* The files of the binding, in the order in which they are opened: lua_open_array of larray.c, and so on, add their
 * functions to the module table on top of the stack. */
#define BINDINGS(X) X(array) X(builder) X(program) X(device) X(graph) X(plan) X(check) X(timeline) X(search) X(proof) \
	X(kernel) X(race) X(compile) X(lower) X(export) X(reference) X(trace) X(picture) X(terminal) X(store) X(json) X(files) \
	X(guard) X(strict) X(copies) X(sequence) X(seqrun) X(seqdraw) X(farm)
#define DECLARE_BINDING(name) void lua_open_##name(lua_State *L);
BINDINGS(DECLARE_BINDING)
/* Add the classes of lcore.c itself: scratch arenas, and what ends hold_finalizers. */
void open_core_classes(lua_State *L);
int luaopen_millrace_core(lua_State *L);		/* lcorelib.c */
/* lguard.c: narrow Lua's own libraries, which must be open. */
void lua_guard(lua_State *L);

/* larray.c: elements packed by type, row-major. */
#define ARRAY_CLASS "millrace.array"
struct array {
	struct mem *mem;		/* borrowed */
	void *data;			/* owned; NULL before it is allocated */
	size_t bytes;
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	int64_t n;			/* elements */
};
/* Push a new array of zeros. Raises if it would be too large. */
struct array *array_new(lua_State *L, const char *what, enum dtype type, int rank, const int64_t *dim);
struct array *check_array(lua_State *L, int idx, const char *what);
/* Uniform values from -1 to 1, of integers the full range or, of i32, [0, below) unless that is 0, as different from each
 * other as they can be if they should be distinct; the same for the same seed and name. */
void array_random(lua_State *L, struct array *a, enum dtype as, uint64_t seed, const char *name, int64_t below,
	bool distinct,
	int64_t row);
/* All elements as double, rounded to `as` on the way. */
void array_read(lua_State *L, const struct array *a, enum dtype as, double *out);
void array_show(char *buf, size_t size, const struct array *a);	/* "bf16 {512, 256}" */
void array_show_shape(char *buf, size_t size, int rank, const int64_t *dim);

/* lprogram.c */
#define PROGRAM_CLASS "millrace.program"
const struct program *check_program(lua_State *L, int idx, const char *what);
/* Let the table at the top, of arrays by name, show the name, type and shape of each where it is printed. */
void arrays_describe(lua_State *L);
/* The table of inputs at idx has an array of the right shape for every input tensor
 * and no other name. It is replaced by a copy that no script can change. */
void check_inputs(lua_State *L, int idx, const char *what, const struct program *p);
/* Push the array of one tensor, which check_inputs has seen. */
struct array *push_input(lua_State *L, int idx, const char *what, const char *name);
void tensor_dims(const struct program *p, int tensor, int64_t dim[RANK_MAX]);

/* ldevice.c */
#define DEVICE_CLASS "millrace.device"
const struct vdevice *check_device(lua_State *L, int idx, const char *what);

#endif
