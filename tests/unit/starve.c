/* Memory that runs out while an explorer is open: whatever it was doing, the terminal is given back
 * as it was, nothing is lost, and the user gets one message. */
#include <locale.h>

#include "screen.h"
#include "session.h"
#include "tap.h"

enum { RUNS = 120 };

static const char chunk[] = "mr.load_plan 'attention_serial':simulate():show()";

/* Through all views, an edit, an undo, all occurrences of an sTask. */
static const char *const keys[] = { "l", "l", "c", "0", "z", "2", "3", "4", "v", "5", "6", " ", "7", "8", "?",
	"?", "2", "/", "mma_pv\r", "}", "u", " ", "k", "\r", "1", "u", "f", "t", "\033", "qn" };

struct run {
	struct screen screen;
	int at;
};

static bool idle(void *arg)
{
	struct run *r = arg;

	return r->at < LEN(keys) && screen_type(&r->screen, keys[r->at++]);
}

/* "" or what the session says is wrong. Was the terminal given back? */
static const char *run(const struct session *p, uint64_t fail_at, bool *back)
{
	struct run r = { .at = 0 };
	struct termios before = { 0 }, after = { 0 };
	struct term_setup setup;
	const char *wrong;

	if (!screen_open(&r.screen, 100, 40) || tcgetattr(r.screen.slave, &before))
		return "there is no pty";
	setup = screen_setup(&r.screen, "xterm-256color");
	setup.idle = idle;
	setup.arg = &r;
	session_fail_at = fail_at;
	wrong = session_run(p, chunk, "script", &setup);
	screen_sync(&r.screen);
	*back = !r.screen.other && !tcgetattr(r.screen.slave, &after) &&
		!memcmp(&before, &after, sizeof(before));
	screen_close(&r.screen);
	return wrong;
}

int main(void)
{
	int reported = 0, kept = 0, open = 0;
	struct session p;
	uint64_t all;
	bool back;

	setlocale(LC_ALL, "C.UTF-8");
	if (!session_enter(&p))
		return 1;
	/* With this, arenas request every allocation separately. */
	is_str(run(&p, UINT64_MAX, &back), "", "with enough memory all goes well");
	ok(back, "  and the terminal is given back");
	all = session_calls;
	for (int i = 1; i < RUNS; i++) {
		const char *wrong = run(&p, all * (uint64_t)i / RUNS, &back);

		reported += strstr(wrong, "not enough memory") != NULL;
		kept += strstr(wrong, "left over") != NULL;
		open += !back;
	}
	is_int(kept, 0, "nothing is left over, wherever memory runs out");
	is_int(open, 0, "the terminal is always given back");
	ok(reported > RUNS / 2, "and most sessions report it");
	session_leave(&p);
	return tap_done();
}
