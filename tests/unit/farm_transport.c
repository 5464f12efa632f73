/* The farm with tests/fake/fake_mpi.c instead of Open MPI: which messages are given when, what is refused, how waits end, and
 * that all memory is given back. tests/cli/farm_ranks.t does it with Open MPI. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/fake_mpi.h"
#include "farm/farm.h"
#include "farm/message.h"
#include "tap.h"

static struct mem mem;
static struct err err;
static struct fake_mpi *mpi;
static char library[PATH_MAX + 32];

static struct farm *opened(void)
{
	struct farm *f = NULL;

	mpi->clear();
	if (farm_open(&mem, (const char *const[]){ library, NULL }, &f, &err))
		diag("%s", err.msg);
	return f;
}

static void arrive(int from, const char *text, int after)
{
	unsigned char m[MESSAGE_HEADER + 100];

	message_write(m, text, strlen(text));
	mpi->arrive(from, m, message_size(strlen(text)), after);
}

/* The next message as "RANK:TEXT", "-" if there is none, or the error. */
static const char *next(struct farm *f, double seconds)
{
	static char text[600];
	struct farm_message m;

	if (farm_receive(f, seconds, NULL, &m, &err))
		return err.msg;
	if (!m.body)
		return "-";
	snprintf(text, sizeof(text), "%d:%.*s", m.rank, (int)m.len, m.body);
	return text;
}

static void close_farm(struct farm *f, const char *what)
{
	ok(!farm_close(f, NULL, &err) && mpi->finalized == 1 && !farm_is_open(f), what);
	farm_free(f);
	is_int((long long)mem.used, 0, "  and its memory is given back");
}

static void test_open(void)
{
	struct farm *f = opened();

	is_int(farm_rank(f), 1, "the rank");
	is_int(farm_size(f), 3, "and size");
	is_int(farm_local_rank(f), 0, "the rank on this machine is another one");
	ok(!farm_with_rank_0(f), "rank 0 is not there");
	ok(*farm_host(f), "the machine has a name");
	close_farm(f, "a farm is closed");
}

static void test_receive(void)
{
	struct farm *f = opened();

	is_str(next(f, 0), "-", "nothing has come");
	arrive(0, "first", 0);
	arrive(2, "", 0);
	is_str(next(f, 0), "0:first", "a message is given");
	is_str(next(f, 0), "2:", "the next one has no bytes");
	is_str(next(f, 0), "-", "there are no more");
	arrive(0, "large", 3);
	arrive(0, "small", 0);
	arrive(2, "other", 0);
	is_str(next(f, 0), "2:other", "one that is complete is given before those that are not");
	is_str(next(f, 0), "-", "and not before an earlier one of its rank");
	is_str(next(f, 60), "0:large", "which is waited for");
	is_str(next(f, 0), "0:small", "and then it is");
	for (int i = 0; i < 200; i++)
		arrive(i % 2 * 2, i % 2 ? "b" : "a", i % 7);
	for (int i = 0; i < 199; i++)
		next(f, 60);
	ok(strcmp(next(f, 60), "-"), "more come than are received at a time");
	is_str(next(f, 0), "-", "  each once");
	close_farm(f, "the farm is closed");
}

static void test_refused(void)
{
	unsigned char m[MESSAGE_HEADER + 4];
	struct farm *f = opened();

	message_write(m, "text", 4);
	m[MESSAGE_HEADER + 1] ^= 1;
	mpi->arrive(2, m, sizeof(m), 0);
	is_str(next(f, 0), "a message of rank 2 was altered on its way: its hash is another one", "an altered message is refused");
	mpi->arrive(0, m, 5, 0);
	is_str(next(f, 0), "rank 0 sent 5 bytes, which are no message", "so is a part of one");
	mpi->arrive(0, m, 0, 0);
	is_str(next(f, 0), "rank 0 sent 0 bytes, which are no message", "or nothing");
	arrive(0, "good", 0);
	is_str(next(f, 0), "0:good", "then a good one is given");
	mpi->arrive(2, NULL, MESSAGE_HEADER + MESSAGE_BODY_MAX + 1, 0);
	is_str(next(f, 60), "rank 2 sent a message of 67108889 bytes; the most are 64 MiB", "one that is too long is not received");
	mpi->clear();
	mpi->arrive(2, NULL, (size_t)INT_MAX + 1, 0);
	is_str(next(f, 60), "rank 2 sent a message of more than 2 GiB; the most are 64 MiB", "however long");
	ok(mem.used < 1 << 20, "  nor is there memory for it");
	mpi->clear();
	close_farm(f, "the farm is closed");
}

static void test_send(void)
{
	struct farm *f = opened();
	char text[] = "mine";

	mpi->sends_take = 3;
	ok(!farm_send(f, 1, text, 4, &err) && mpi->to == 1 && mpi->bytes == message_size(4), "a message is sent");
	memset(text, 0, sizeof(text));
	is_str(next(f, 0), "1:mine", "as a copy, here to the rank itself");
	mpi->sends_take = 50;
	ok(!farm_send(f, 2, "x", 1, &err) && mpi->sent == 2, "a send that is slow does not wait");
	arrive(0, "nobody reads it", 5);
	mpi->barrier_takes = 5;
	close_farm(f, "closing waits for it and for the others, and drops what comes");
	f = opened();
	mpi->fails = "MPI_Isend";
	is_int(farm_send(f, 0, "x", 1, &err), ERR_IO, "an error of MPI is one");
	is_str(err.msg, "MPI: MPI_Isend: fake error 16 (error 16)", "  with its text");
	mpi->fails = "MPI_Irecv";
	arrive(0, "x", 0);
	is_str(next(f, 0), "MPI: MPI_Irecv: fake error 16 (error 16)", "of receiving, too");
	mpi->fails = NULL;
	is_str(next(f, 0), "0:x", "  the message is still there");
	close_farm(f, "the farm is closed");
}

static void test_closed(void)
{
	struct farm *f = opened();

	is_int(farm_closed_rank(f), -1, "no rank is known to close");
	arrive(0, "last", 3);
	mpi->tag = 2;
	mpi->arrive(0, "", 0, 0);
	mpi->tag = 0;
	is_str(next(f, 0), "-", "rank 0 closes, and its message is not there yet");
	is_int(farm_closed_rank(f), -1, "  so it is not closed");
	is_str(next(f, 60), "0:last", "when it is");
	is_str(next(f, 0), "-", "  and there are no more");
	is_int(farm_closed_rank(f), 0, "  rank 0 is closed");
	mpi->sent = 0;
	close_farm(f, "the farm is closed");
	ok(mpi->sent == 1 && mpi->to == 0 && mpi->sent_tag == 2 && mpi->bytes == 0, "  which rank 0 gets to know");
}

static void test_stop(void)
{
	volatile int flag = 1;
	struct stop stop = { &flag };
	struct farm_message m;
	struct farm *f = opened();

	is_int(farm_receive(f, INFINITY, &stop, &m, &err), ERR_INTERRUPTED, "Ctrl-C ends a wait");
	arrive(0, "there", 0);
	is_int(farm_receive(f, 0, &stop, &m, &err), OK, "but what is there is given");
	mpi->barrier_takes = INT_MAX;
	is_int(farm_close(f, &stop, &err), ERR_INTERRUPTED, "it ends waiting for the others, too");
	ok(farm_is_open(f), "  which leaves the farm open");
	mpi->barrier_takes = 3;
	close_farm(f, "  and can be done again");
}

static void test_opening_fails(void)
{
	static const char *const calls[] = { "MPI_Init_thread", "MPI_Comm_rank", "MPI_Comm_size" };

	for (int i = 0; i < LEN(calls); i++) {
		struct farm *f = NULL;
		char want[100];

		mpi->fails = calls[i];
		is_int(farm_open(&mem, (const char *const[]){ library, NULL }, &f, &err), ERR_IO, calls[i]);
		snprintf(want, sizeof(want), "MPI: %s: fake error 16 (error 16)", calls[i]);
		is_str(err.msg, want, "  fails, which is said");
		farm_free(f);
	}
	mpi->fails = NULL;
	is_int((long long)mem.used, 0, "memory is given back");
}

/* The library is in fake/ next to the folder of this program. */
static bool find_library(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	void *lib;

	path[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 2 && strrchr(path, '/'); i++)
		*strrchr(path, '/') = '\0';
	snprintf(library, sizeof(library), "%s/fake/fake_mpi.so", path);
	lib = dlopen(library, RTLD_NOW);
	mpi = lib ? dlsym(lib, "fake_mpi") : NULL;
	return mpi != NULL;
}

int main(void)
{
	if (!ok(find_library(), "the library is there"))
		return tap_done();
	test_open();
	test_opening_fails();
	test_receive();
	test_send();
	test_refused();
	test_closed();
	test_stop();
	return tap_done();
}
