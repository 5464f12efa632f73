/* Messages of the farm: what was altered, truncated or comes from another version is an error that names the rank, and no
 * byte outside of a message is read (each lies in an allocation of exactly its size). And libraries that are no Open MPI.
 * tests/cli/farm_ranks.t sends messages. */
#include <stdlib.h>

#include "base/prng.h"
#include "farm/message.h"
#include "farm/mpi.h"
#include "tap.h"

enum { RANK = 17, BODY = 100 };

/* A message in memory of its size; free it. */
static unsigned char *made(const char *body, size_t n)
{
	unsigned char *m = malloc(message_size(n));

	message_write(m, body, n);
	return m;
}

static enum err_code read_copy(const unsigned char *m, size_t n, struct err *e)
{
	unsigned char *copy = malloc(n ? n : 1);
	enum err_code code;
	const char *body;
	size_t len;

	if (n)
		memcpy(copy, m, n);
	code = message_read(copy, n, RANK, &body, &len, e);
	if (!code && (body != (const char *)copy + MESSAGE_HEADER || len != n - MESSAGE_HEADER))
		code = ERR_INPUT;
	free(copy);
	return code;
}

/* Refused, with a message that names the rank. */
static bool is_refused(const unsigned char *m, size_t n)
{
	struct err e = { 0 };

	return read_copy(m, n, &e) && strstr(e.msg, "rank 17");
}

static void fill(char *body, size_t n)
{
	struct prng r = { n };

	for (size_t i = 0; i < n; i++)
		body[i] = (char)prng_next(&r);
}

static void test_good(void)
{
	static const size_t sizes[] = { 0, 1, 7, BODY, 1 << 20, MESSAGE_BODY_MAX };

	for (int i = 0; i < LEN(sizes); i++) {
		char *body = malloc(sizes[i] + 1), what[64];
		const char *got;
		unsigned char *m;
		struct err e = { 0 };
		size_t n;

		fill(body, sizes[i]);
		m = made(body, sizes[i]);
		snprintf(what, sizeof(what), "%zu bytes come as they were", sizes[i]);
		ok(!message_read(m, message_size(sizes[i]), RANK, &got, &n, &e) && n == sizes[i] && !memcmp(got, body, n), what);
		free(m);
		free(body);
	}
}

static void test_altered(void)
{
	static const unsigned char masks[] = { 1, 0x80, 0xff, 0x20 };
	size_t n = message_size(BODY);
	int accepted = 0;
	char body[BODY];
	unsigned char *m;

	fill(body, BODY);
	m = made(body, BODY);
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < LEN(masks); k++) {
			m[i] ^= masks[k];
			accepted += !is_refused(m, n);
			m[i] ^= masks[k];
		}
	is_int(accepted, 0, "each altered byte is noticed, in the header and in the body");
	for (size_t k = 0; k < n; k++)
		accepted += !is_refused(m, k);
	is_int(accepted, 0, "and each truncation");
	m = realloc(m, n + 1);
	m[n] = 0;
	ok(is_refused(m, n + 1), "and a byte too many");
	ok(!is_refused(m, n), "the message itself is good");
	free(m);
}

/* Write a number into the header, which has a magic word, a version, then the length. */
static void test_header(void)
{
	size_t n = message_size(BODY);
	uint64_t length = (uint64_t)MESSAGE_BODY_MAX + 1;
	uint32_t magic, version = MESSAGE_VERSION + 1;
	char body[BODY] = "";
	struct err e = { 0 };
	unsigned char *m = made(body, BODY);

	memcpy(m + 4, &version, sizeof(version));
	is_int(read_copy(m, n, &e), ERR_IO, "another version is refused");
	is_str(e.msg, "rank 17 sends messages of version 2, and version 1 is expected: all ranks must run the same version of the "
		"program", "  which is said");
	message_write(m, body, BODY);
	memcpy(m + 8, &length, sizeof(length));
	is_int(read_copy(m, n, &e), ERR_LIMIT, "so is a length above the limit");
	is_str(e.msg, "rank 17 sent a message of 67108865 bytes; the most are 64 MiB", "  in one line");
	length = UINT64_MAX - MESSAGE_HEADER + 1;
	memcpy(m + 8, &length, sizeof(length));
	ok(is_refused(m, n), "and one that overflows");
	message_write(m, body, BODY);
	memcpy(&magic, m, sizeof(magic));
	magic = magic << 24 | (magic & 0xff00) << 8 | (magic >> 8 & 0xff00) | magic >> 24;
	memcpy(m, &magic, sizeof(magic));
	ok(is_refused(m, n), "and the other order of bytes");
	free(m);
}

static void test_random(void)
{
	struct prng r = { 5 };
	int accepted = 0;

	for (int i = 0; i < 2000; i++) {
		size_t n = prng_next(&r) % 60;
		unsigned char m[60];

		for (size_t k = 0; k < n; k++)
			m[k] = (unsigned char)prng_next(&r);
		accepted += !is_refused(m, n);
	}
	is_int(accepted, 0, "bytes by chance are no message");
}

static void test_libraries(void)
{
	static const char *const none[] = { "libmillrace-none.so.1", "libmillrace-none.so", NULL };
	static const char *const other[] = { "libmillrace-none.so.1", "libm.so.6", NULL };
	struct err e = { 0 };
	struct mpi m;

	is_int(mpi_open(&m, none, &e), ERR_IO, "without a library there is no farm");
	ok(strstr(e.msg, "on Debian openmpi-bin") && strstr(e.msg, "libmillrace-none.so.1: cannot open"),
		"  the error says what to install");
	is_int(mpi_open(&m, other, &e), ERR_IO, "a library without the handles of Open MPI is refused");
	is_str(e.msg, "a farm needs Open MPI, and libm.so.6 is not it (perhaps MPICH): it has no ompi_mpi_comm_world",
		"  and named");
}

int main(void)
{
	test_good();
	test_altered();
	test_header();
	test_random();
	test_libraries();
	return tap_done();
}
