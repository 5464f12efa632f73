/* err.h - how the core reports a mistake.
 *
 * Functions that can fail return an err_code and take a `struct err *`, which they fill on failure and leave alone on
 * success. The record has a fixed size, so that filling it cannot fail. A message is one complete sentence without a
 * full stop; `loc` is the line of the user's script that it is about.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/base.h"

/* A line of a user's script. `file` is Lua's short source ("gemm.lua", "stdin")
 * and lives as long as the object that holds the location. line 0: unknown. */
struct srcloc {
	const char *file;
	int line;
};

enum err_code {
	OK = 0,
	ERR_INPUT,			/* the user's program, size, or name is wrong */
	ERR_ILLEGAL,			/* a plan that check() refuses was used */
	ERR_LIMIT,			/* a size beyond what we take */
	ERR_INTERRUPTED,		/* stopped by the user; partial results stand */
	ERR_IO,
};

struct err {
	enum err_code code;
	char file[128];			/* copy of srcloc.file; "" if unknown */
	int line;
	char msg[512];
};

/* Fill *e and return code, so that `return err_set(...)` reads well. */
enum err_code err_set(struct err *e, enum err_code code, struct srcloc loc, const char *fmt, ...) PRINTF(4, 5);

#define NOWHERE ((struct srcloc){ 0 })
#define TRY(call) do { enum err_code code_ = (call); if (code_) return code_; } while (0)

/* Code that runs long checks it regularly; Ctrl-C sets it. */
struct stop {
	const volatile int *flag;	/* NULL: never */
};

static inline bool stop_asked(const struct stop *s)
{
	return s && s->flag && *s->flag;
}

/* What names consist of, for strspn. */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

/* Of names[0..n), the one nearest to `name` by edit distance; if none is near enough to be a likely slip of the keyboard, the
 * shortest that begins with it, or has it as a word; else NULL. Of one letter, none is near: it may mean any other one. */
const char *nearest_name(const char *name, const char *const *names, int n);
/* The same as the end of a message: "; did you mean 'x'?", or "". */
struct name_hint {
	char text[96];
};
struct name_hint nearest_hint(const char *name, const char *const *names, int n);

#endif
