/* fake_mpi.c - Open MPI for a farm of three ranks of which only rank 1 exists. It receives what the test lets arrive
 * (fake_mpi.h), and what it sends to itself. */
#include "fake/fake_mpi.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farm/mpi.h"

#define PUBLIC __attribute__((visibility("default")))
#define DECLARE(name, parameters) PUBLIC int name parameters;
MPI_SYMBOLS(DECLARE)

enum { ERROR = 16 };

/* A message, a send or a barrier. */
struct ompi_request_t {
	struct ompi_request_t *next;	/* of the messages */
	int from, after, tag;
	bool matched, is_barrier;
	unsigned char *bytes;		/* copy; NULL: there is nothing to receive */
	size_t n;
	void *to;
};

struct ompi_communicator_t { int unused; };
struct ompi_datatype_t { int unused; };
struct ompi_errhandler_t { int unused; };
struct ompi_info_t { int unused; };

extern struct ompi_communicator_t ompi_mpi_comm_world;
extern struct ompi_datatype_t ompi_mpi_byte;
extern struct ompi_errhandler_t ompi_mpi_errors_return;
extern struct ompi_info_t ompi_mpi_info_null;
PUBLIC struct ompi_communicator_t ompi_mpi_comm_world;
PUBLIC struct ompi_datatype_t ompi_mpi_byte;
PUBLIC struct ompi_errhandler_t ompi_mpi_errors_return;
PUBLIC struct ompi_info_t ompi_mpi_info_null;

static struct ompi_request_t *messages, null_request;

static void arrive(int from, const void *bytes, size_t n, int after)
{
	struct ompi_request_t **end = &messages, *m = calloc(1, sizeof(*m));

	m->from = from;
	m->after = after;
	m->tag = fake_mpi.tag ? fake_mpi.tag : 1;
	m->n = n;
	if (bytes) {
		m->bytes = malloc(n + 1);
		memcpy(m->bytes, bytes, n);
	}
	while (*end)
		end = &(*end)->next;
	*end = m;
}

static void forget(struct ompi_request_t *r)
{
	struct ompi_request_t **m = &messages;

	while (*m && *m != r)
		m = &(*m)->next;
	if (*m)
		*m = r->next;
	free(r->bytes);
	free(r);
}

static void clear(void)
{
	while (messages)
		forget(messages);
	fake_mpi = (struct fake_mpi){ .arrive = arrive, .clear = clear };
}

PUBLIC struct fake_mpi fake_mpi = { .arrive = arrive, .clear = clear };

static int result(const char *call)
{
	return fake_mpi.fails && !strcmp(fake_mpi.fails, call) ? ERROR : 0;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
	(void)argc;
	(void)argv;
	*given = wanted;
	return result("MPI_Init_thread");
}

int MPI_Finalize(void)
{
	fake_mpi.finalized++;
	return result("MPI_Finalize");
}

int MPI_Abort(struct ompi_communicator_t *comm, int status)
{
	(void)comm;
	exit(status);
}

int MPI_Comm_rank(struct ompi_communicator_t *comm, int *rank)
{
	*rank = comm == &ompi_mpi_comm_world ? FAKE_RANK : 0;
	return result("MPI_Comm_rank");
}

int MPI_Comm_size(struct ompi_communicator_t *comm, int *size)
{
	(void)comm;
	*size = FAKE_SIZE;
	return result("MPI_Comm_size");
}

int MPI_Comm_split_type(struct ompi_communicator_t *comm, int type, int key, struct ompi_info_t *info,
	struct ompi_communicator_t **part)
{
	static struct ompi_communicator_t machine;

	*part = &machine;
	return comm != &ompi_mpi_comm_world || type != MPI_SHARED_MEMORY || key != FAKE_RANK || info != &ompi_mpi_info_null;
}

/* The only rank on its machine is the first one. */
int MPI_Bcast(void *bytes, int n, struct ompi_datatype_t *type, int from, struct ompi_communicator_t *comm)
{
	(void)bytes;
	return n != sizeof(int) || type != &ompi_mpi_byte || from != 0 || comm == &ompi_mpi_comm_world;
}

int MPI_Comm_free(struct ompi_communicator_t **comm)
{
	*comm = NULL;
	return 0;
}

int MPI_Comm_set_errhandler(struct ompi_communicator_t *comm, struct ompi_errhandler_t *handler)
{
	return comm != &ompi_mpi_comm_world || handler != &ompi_mpi_errors_return;
}

int MPI_Error_string(int error, char *text, int *len)
{
	*len = sprintf(text, "fake error %d", error);
	return 0;
}

int MPI_Isend(const void *from, int n, struct ompi_datatype_t *type, int to, int tag, struct ompi_communicator_t *comm,
	struct ompi_request_t **request)
{
	(void)type;
	(void)comm;
	if (result("MPI_Isend"))
		return ERROR;
	*request = calloc(1, sizeof(**request));
	(*request)->after = fake_mpi.sends_take;
	fake_mpi.sent++;
	fake_mpi.to = to;
	fake_mpi.sent_tag = tag;
	fake_mpi.bytes = (size_t)n;
	if (to == FAKE_RANK)
		arrive(FAKE_RANK, from, (size_t)n, 0);
	return 0;
}

static struct ompi_request_t *unmatched(void)
{
	struct ompi_request_t *m = messages;

	while (m && m->matched)
		m = m->next;
	return m;
}

int MPI_Iprobe(int from, int tag, struct ompi_communicator_t *comm, int *found, struct mpi_status *status)
{
	struct ompi_request_t *m = unmatched();

	(void)from;
	(void)tag;
	(void)comm;
	fake_mpi.looks++;
	*found = m != NULL;
	if (m) {
		status->source = m->from;
		status->tag = m->tag;
		status->count = m->n;
	}
	return result("MPI_Iprobe");
}

int MPI_Get_count(const struct mpi_status *status, struct ompi_datatype_t *type, int *n)
{
	(void)type;
	*n = status->count > INT_MAX ? MPI_UNDEFINED_COUNT : (int)status->count;
	return 0;
}

int MPI_Irecv(void *to, int n, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
	struct ompi_request_t **request)
{
	struct ompi_request_t *m = unmatched();

	(void)type;
	(void)comm;
	if (!m || m->from != from || (size_t)n != m->n || tag != m->tag || !m->bytes || result("MPI_Irecv"))
		return ERROR;
	m->matched = true;
	m->to = to;
	*request = m;
	return 0;
}

int MPI_Test(struct ompi_request_t **request, int *complete, struct mpi_status *status)
{
	struct ompi_request_t *r = *request;

	(void)status;
	*complete = r == &null_request || (*(r->is_barrier ? &fake_mpi.barrier_takes : &r->after))-- <= 0;
	if (!*complete || r == &null_request)
		return 0;
	if (r->bytes)
		memcpy(r->to, r->bytes, r->n);
	forget(r);
	*request = &null_request;
	return result("MPI_Test");
}

int MPI_Ibarrier(struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	(void)comm;
	*request = calloc(1, sizeof(**request));
	(*request)->is_barrier = true;
	return result("MPI_Ibarrier");
}
