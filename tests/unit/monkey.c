/* monkey.c - explorers under random keys, clicks and sizes.
 *
 * Whatever is typed, an explorer must go on, and leave when it is asked to: no error of Lua,
 * no byte left over, and under the sanitizers nothing that they see. MILLRACE_MONKEY is
 * how many keys are typed, MILLRACE_SEED which (the same ones each time); a million with
 *
 *   make MODE=asan CC=clang build/asan/tests/monkey && MILLRACE_MONKEY=1000000 build/asan/tests/monkey
 *
 * What is saved goes to a folder of its own; nothing is run on a device.
 */
#include "screen.h"

#include <locale.h>

#include "base/prng.h"
#include "session.h"
#include "tap.h"

enum { KEYS = 7500, SHOWN = 60, BURST = 6 };

static const struct opening {
	const char *name, *chunk;
} openings[] = {
	{ "a plan", "mr.load_plan 'attention_pingpong':show()\n" },
	{ "a timeline", "mr.load_plan 'attention_pingpong':simulate():show()\n" },
	{ "a plan for gemm",
		"local b = mr.examples.gemm{m=512, n=512, k=512}\n"
		"mr.plan(b:graph{tile={m=128, n=128, k=64}}, mr.device 'h200'):show()\n" },
	{ "a graph",
		"local b = mr.examples.gemm{m=512, n=512, k=512}\n"
		"b:graph{tile={m=128, n=128, k=64}}:show()\n" },
	{ "a comparison", "mr.show(mr.load_plan 'attention_serial', mr.load_plan 'attention_pingpong')\n" },
};

struct monkey {
	struct screen screen;
	struct prng random;
	int left;			/* keys to be typed in this opening */
	int leaving;			/* keys typed to leave */
	char last[SHOWN][32];		/* what was typed last, for a person to type */
	int typed;
	bool stuck;			/* it did not leave */
};

static bool type(struct monkey *m, const char *bytes)
{
	char *to = m->last[m->typed++ % SHOWN];

	for (int n = 0; *bytes && n < 27; bytes++) {
		if (*bytes < ' ' || *bytes == 127)
			n += snprintf(to + n, (size_t)(32 - n), "\\x%02x", (unsigned char)*bytes);
		else
			n += snprintf(to + n, (size_t)(32 - n), "%c", *bytes);
	}
	return true;
}

/* Something that is closed again: a prompt that takes a name would take any. */
static void random_answer(struct monkey *m, char first, char *out)
{
	int n = 0;

	out[n++] = first;
	for (int more = (int)prng_below(&m->random, 4); more > 0; more--)
		out[n++] = (char)('a' + prng_below(&m->random, 26));
	out[n++] = prng_below(&m->random, 8) ? '\r' : '\033';
	out[n] = '\0';
}

static void random_mouse(struct monkey *m, char *out)
{
	static const int buttons[] = { 0, 0, 0, 2, 64, 65 };
	int x = 1 + (int)prng_below(&m->random, (uint32_t)m->screen.w);
	int y = 1 + (int)prng_below(&m->random, (uint32_t)m->screen.h);

	sprintf(out, "\033[<%d;%d;%d%c", buttons[prng_below(&m->random, LEN(buttons))], x, y,
		prng_below(&m->random, 4) ? 'M' : 'm');
}

/* One key, or a few that belong together. */
static void random_key(struct monkey *m, char *out)
{
	static const char *const named[] = {
		"\033OA", "\033OB", "\033OC", "\033OD", "\033OH", "\033OF", "\033[5~", "\033[6~",
		"\033[1;2D", "\033[1;2C", "\033[3~", "\033[Z", "\033OP", "\r", "\t", "\177", " ",
		"\033OA", "\033OB", "\033OC", "\033OD", "\r", "\t", " ",
	};
	uint32_t what = prng_below(&m->random, 100);
	int c;

	if (what < 40) {
		strcpy(out, named[prng_below(&m->random, LEN(named))]);
	} else if (what < 50) {
		random_mouse(m, out);
	} else if (what < 51) {
		strcpy(out, "\033");
	} else if (what < 54) {
		sprintf(out, "%c", (int)(1 + prng_below(&m->random, 26)));
	} else if (what < 55) {
		strcpy(out, "漢");
	} else {
		do
			c = ' ' + (int)prng_below(&m->random, 95);
		while (c == '!' || (c == 'q' && prng_below(&m->random, 8)));
		if (c == 's' || c == '/')
			random_answer(m, (char)c, out);
		else if (c == 'i')		/* a search takes seconds: for a name that there is not */
			strcpy(out, prng_below(&m->random, 2) ? "ixx\r" : "i\033");
		else
			sprintf(out, "%c", c);
	}
	if (strchr(out, 3) || strchr(out, 26) || strchr(out, 28))
		strcpy(out, "x");		/* they would be signals */
}

static bool idle(void *arg)
{
	static const char *const leave[] = { "\033", "\033", "\033", "q", "n" };
	struct monkey *m = arg;
	char keys[BURST * 64], one[64];
	int n = 0, burst;

	if (m->left <= 0) {
		m->stuck = m->leaving == LEN(leave);
		if (m->stuck)
			return false;
		type(m, leave[m->leaving]);
		return screen_type(&m->screen, leave[m->leaving++]);
	}
	if (!prng_below(&m->random, 200)) {
		int w = 1 + (int)prng_below(&m->random, 160), h = 1 + (int)prng_below(&m->random, 50);

		m->left--;
		type(m, "(resize)");
		screen_resize(&m->screen, w, h);
		return true;
	}
	burst = prng_below(&m->random, 4) ? 1 : 1 + (int)prng_below(&m->random, BURST);
	keys[0] = '\0';
	for (int i = 0; i < burst && m->left > 0; i++, m->left--) {
		random_key(m, one);
		type(m, one);
		n += sprintf(keys + n, "%s", one);
	}
	return screen_type(&m->screen, keys);
}

/* Type n keys, in as many explorers as it takes. */
static void run_opening(const struct session *p, const struct opening *o, uint64_t seed, int n)
{
	static struct monkey m;
	const char *error = "";
	char what[128];

	snprintf(what, sizeof(what), "%s, seed %llu", o->name, (unsigned long long)seed);
	diag("%s", what);		/* what a crash leaves behind */
	m = (struct monkey){ .random = { seed } };
	while (n > 0 && !error[0] && !m.stuck) {
		int before = m.left = n < 2000 ? n : 2000;
		struct term_setup setup;

		if (!screen_open(&m.screen, 80, 24))
			break;
		m.leaving = 0;
		setup = screen_setup(&m.screen, "xterm-256color");
		setup.idle = idle;
		setup.arg = &m;
		error = session_run(p, o->chunk, "script", &setup);
		screen_close(&m.screen);
		n -= before - m.left > 0 ? before - m.left : 1;
	}
	if (ok(!error[0] && !m.stuck, what))
		return;
	diag("%s", m.stuck ? "it does not leave" : error);
	for (int i = m.typed > SHOWN ? m.typed - SHOWN : 0; i < m.typed; i++)
		diag("typed: %s", m.last[i % SHOWN]);
}

int main(void)
{
	const char *keys = getenv("MILLRACE_MONKEY"), *from = getenv("MILLRACE_SEED");
	uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
	int n = keys ? atoi(keys) : KEYS;
	struct session p;

	if (!setlocale(LC_ALL, "C.UTF-8")) {
		skip("no locale C.UTF-8");
		return tap_done();
	}
	if (!session_enter(&p)) {
		ok(false, "there is a folder to be in");
		return tap_done();
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < LEN(openings); i++)
		run_opening(&p, &openings[i], seed + (uint64_t)i, n / LEN(openings));
	session_leave(&p);
	return tap_done();
}
