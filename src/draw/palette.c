/* Colours of sTasks: a family of hues for each kind of sTask, a hue for each sTask, a shade for each slice. */
#include "draw/palette.h"

#include <math.h>
#include <stdlib.h>

/* ORDER task_kind: copies in are blue or violet, products orange or red, element-wise work green or yellow, copies
 * out pink. Chosen by simulated annealing so that the least distance in CIELAB between two sTasks is as large as
 * possible, also for people who see no red or no green (after Machado, Oliveira, Fernandes 2009); hues that are used
 * most come first. Each is far enough from both papers. A shade differs in lightness only: as it is, lighter,
 * darker. */
static const uint32_t colours[INK_KINDS][INK_HUES][INK_SHADES] = {
	{ { 0x4394f0, 0x80b0fd, 0x287dd2 }, { 0x7f40cc, 0x9b65d5, 0x652bad }, { 0x2fc5d3, 0x7ee1ec, 0x0dabb8 },
		{ 0x3b63a2, 0x657eb3, 0x234e87 }, { 0x6e92d4, 0x96afe5, 0x587bb7 } },
	{ { 0xd96421, 0xee8953, 0xba4f0e }, { 0xab4038, 0xbf655a, 0x8e2b26 }, { 0x8caa50, 0xafc67d, 0x76923e },
		{ 0x965124, 0xad704b, 0x7b3d13 }, { 0xe68d7e, 0xfbb0a2, 0xc87769 } },
	{ { 0x75c690, 0xa2e2b5, 0x61ad7b }, { 0xd6c22a, 0xf6e06e, 0xbbaa16 }, { 0x2b703a, 0x568a5d, 0x155928 },
		{ 0x3fbdaf, 0x7ed8cc, 0x29a396 }, { 0x229076, 0x5eaa94, 0x017760 } },
	{ { 0xb4579e, 0xc87cb4, 0x994285 }, { 0x934a77, 0xa86c8f, 0x793660 }, { 0xbd8ee4, 0xd7b0f6, 0xa378c7 },
		{ 0xd55271, 0xe67b90, 0xb73c5c }, { 0x9193ec, 0xb3b2fc, 0x797ccf } },
};

uint32_t task_colour(int nth)
{
	return colours[nth / (INK_HUES * INK_SHADES)][nth / INK_SHADES % INK_HUES][nth % INK_SHADES];
}

int ink_of_task(int kind, int hue, int slice)
{
	return INK_TASK + (kind * INK_HUES + hue % INK_HUES) * INK_SHADES + slice % INK_SHADES;
}

const uint8_t *task_inks(struct arena *a, const struct graph *g)
{
	uint8_t *ink = ARENA_ARRAY(a, g->tasks.n, uint8_t);
	int *hue = ARENA_ARRAY(a, g->tasks.n, int);

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		/* the hue of another slice, or the next one of the kind in the phase */
		for (int k = 0; k < i; k++) {
			const struct stask *o = &g->tasks.v[k];

			if (o->task == s->task && o->kind == s->kind) {
				hue[i] = hue[k];
				break;
			}
			if (o->phase == s->phase && o->kind == s->kind && hue[k] >= hue[i])
				hue[i] = hue[k] + 1;
		}
		ink[i] = (uint8_t)ink_of_task((int)s->kind, hue[i], s->slice);
	}
	return ink;
}

/* ---- colours in general ------------------------------------------------------------- */

static double linear(uint32_t part)
{
	double v = part / 255.0;

	return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

double colour_light(uint32_t rgb)
{
	return 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) + 0.0722 * linear(rgb & 255);
}

double colour_contrast(uint32_t a, uint32_t b)
{
	double x = colour_light(a), y = colour_light(b);

	return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

/* Of the cube of 6 by 6 by 6 colours from 16 on. */
uint8_t colour_of_256(uint32_t rgb)
{
	static const int step[] = { 0, 95, 135, 175, 215, 255 };
	int out = 16;

	for (int shift = 16, weight = 36; shift >= 0; shift -= 8, weight /= 6) {
		int v = (int)(rgb >> shift & 255), best = 0;

		for (int i = 1; i < LEN(step); i++)
			if (abs(step[i] - v) < abs(step[best] - v))
				best = i;
		out += best * weight;
	}
	return (uint8_t)out;
}
