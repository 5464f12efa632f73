/* rt_warp_products.h - synchronous matrix products of a warp (mma.sync, MFMA), and ldmatrix. */
#ifndef HOST_RT_WARP_PRODUCTS_H
#define HOST_RT_WARP_PRODUCTS_H

#include "host/rt_number.h"
#include "host/rt_sync.h"

/* Elements x and y of two operands, as bits: their product, added to a sum, or to the bits of an integer. */
static inline void host_add_product(float *sum, enum host_type type_a, uint32_t x, enum host_type type_b, uint32_t y)
{
	uint32_t bits;

	if (!host_is_integer(type_a)) {
		*sum += host_from_bits(type_a, x) * host_from_bits(type_b, y);
		return;
	}
	memcpy(&bits, sum, 4);
	bits += (uint32_t)((int)host_from_bits(type_a, x) * (int)host_from_bits(type_b, y));
	memcpy(sum, &bits, 4);
}

/* mma.sync.m16n8k8, k16 and k32, by the width of elements: of the first operand, thread t has rows t / 4 and t / 4 + 8,
 * of the second one column t / 4, and along what is contracted word t mod 4 of the first 16 bytes, and the same of the
 * second 16; of the sums its rows in columns 2 (t mod 4) and the next. Integers add up modulo 2^32. */
static inline void host_warp_product(float *d, const uint32_t *a, const uint32_t *b, int add, int type_a,
	int type_b)
{
	int me = host.self->thread, t = me % host.warp, bytes = host_type_bytes((enum host_type)type_a), each = 4 / bytes;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	int half = w->meeting.generation & 1;
	uint32_t mask = (uint32_t)0xffffffff >> (32 - 8 * bytes);

	if (host_type_bytes((enum host_type)type_b) != bytes || host_is_integer((enum host_type)type_a) != host_is_integer((enum host_type)type_b))
		host_fail("a product of a warp on operands of different widths, or of integers and floats");
	memcpy(w->words[half][t].a, a, sizeof(w->words[half][t].a));
	memcpy(w->words[half][t].b, b, sizeof(w->words[half][t].b));
	half = host_meet(HOST_PRODUCT, 0, 0);
	for (int i = 0; i < 4; i++) {
		int row = t / 4 * 4, col = (2 * (t % 4) + i % 2) * 4;	/* their first threads */
		float sum = add ? d[i] : 0;

		for (int k = 0; k < 8 * each; k++) {
			int from = k / each % 4, group = k / (4 * each), shift = k % each * 8 * bytes;
			uint32_t x = w->words[half][row + from].a[group * 2 + i / 2] >> shift & mask;
			uint32_t y = w->words[half][col + from].b[group] >> shift & mask;

			host_add_product(&sum, (enum host_type)type_a, x, (enum host_type)type_b, y);
		}
		d[i] = sum;
	}
}

/* MFMA of CDNA 3, n rows and columns: of the first operand, thread t has row t mod n, of the second one column t mod n,
 * and along what is contracted 8 bytes: of e elements, e (t / n) and the next. Of the sums it has column
 * t mod n, and register i is row 4 (64 / n) (i / 4) + 4 (t / n) + i mod 4. */
static inline void host_mfma(float *d, const uint32_t *a, const uint32_t *b, int add, int n, int type_a, int type_b)
{
	int me = host.self->thread, t = me % host.warp;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	int half = w->meeting.generation & 1, bytes = host_type_bytes((enum host_type)type_a);

	if (host.warp != 64 || (n != 16 && n != 32))
		host_fail("an MFMA of %d x %d by a warp of %d threads", n, n, host.warp);
	if (host_type_bytes((enum host_type)type_b) != bytes || bytes > 2 || host_is_integer((enum host_type)type_a) != host_is_integer((enum host_type)type_b))
		host_fail("an MFMA on operands of types that do not go together");
	memcpy(w->words[half][t].a, a, 8);
	memcpy(w->words[half][t].b, b, 8);
	half = host_meet(HOST_PRODUCT, 0, 0);
	for (int i = 0; i < n * n / 64; i++) {
		int row = 4 * (64 / n) * (i / 4) + 4 * (t / n) + i % 4, col = t % n;
		float sum = add ? d[i] : 0;

		for (int at = 0; at < 512 / n; at += bytes) {
			int from = at / 8 * n, word = at % 8 / 4, shift = at % 4 * 8;
			uint32_t x = w->words[half][from + row].a[word] >> shift, y = w->words[half][from + col].b[word] >> shift;
			uint32_t mask = bytes == 2 ? 0xffff : 0xff;

			host_add_product(&sum, (enum host_type)type_a, x & mask, (enum host_type)type_b, y & mask);
		}
		d[i] = sum;
	}
}

/* ldmatrix: four matrices of 8 x 8 elements of 16 bits. Thread t gives the address of row t mod 8 of matrix t / 8, and
 * gets of each matrix row t / 4, columns 2 (t mod 4) and the next; across: column t / 4, of these rows. */
static inline void host_matrices(uint32_t *x, uint32_t at, int across)
{
	int me = host.self->thread, t = me % host.warp;
	struct host_warp *w = &host_sync.warp[me / host.warp];
	int half = w->meeting.generation & 1;

	if (at % 16)
		host_fail("a row of a matrix begins at address %u, which is no multiple of 16", at);
	w->words[half][t].a[0] = at;
	half = host_meet(HOST_MATRICES, 0, across);
	for (int i = 0; i < 4; i++) {
		uint16_t y[2];

		if (w->value[half][0].i != across)
			host_fail("the threads of warp %d fetch matrices in different ways", me / host.warp);
		for (int e = 0; e < 2; e++) {
			int row = across ? 2 * (t % 4) + e : t / 4, col = across ? t / 4 : 2 * (t % 4) + e;

			host_get(w->words[half][8 * i + row].a[0] + 2 * (uint32_t)col, &y[e], sizeof(y[e]));
		}
		x[i] = y[0] | (uint32_t)y[1] << 16;
	}
}
#endif
