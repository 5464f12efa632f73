#include "farm/farm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "farm/message.h"
#include "farm/mpi.h"

enum {
	HOST_BYTES = 256,
	ARRIVING_MAX = 64,		/* messages that are received at a time; more wait at their senders */
	PAUSE_MIN = 10000,		/* ns between two looks for messages */
	PAUSE_MAX = 1000000,
	TAG = 1,
	TAG_CLOSES = 2,			/* of the empty message of a rank that closes */
};

/* A message on its way out or in. MPI reads or writes the bytes until it is complete. */
struct parcel {
	struct parcel *next;
	struct ompi_request_t *request;
	int rank;			/* of the other side */
	int tag;
	int complete;
	size_t size;			/* of `bytes` */
	unsigned char bytes[];
};

struct farm {
	struct mem *mem;		/* borrowed */
	struct mpi api;
	int rank, size, local_rank;
	int first;			/* the least rank on this machine */
	char host[HOST_BYTES];
	bool open;
	struct parcel *sent;		/* not complete */
	struct parcel *arriving;	/* in the order of their sending */
	int narriving;
	struct parcel *given;		/* what farm_receive returned last */
	struct ompi_request_t *barrier;	/* of farm_close; NULL: not begun */
	bool has_announced;		/* that it closes */
	int closed_rank;		/* the first rank that is known to close, or -1 */
};

/* ---- opening ---- */

static enum err_code check(const struct farm *f, int result, const char *call, struct err *e)
{
	char text[MPI_TEXT_BYTES] = "";
	int len;

	if (!result)
		return OK;
	if (f->api.MPI_Error_string(result, text, &len))
		text[0] = '\0';
	return err_set(e, ERR_IO, NOWHERE, "MPI: %s: %.200s (error %d)", call, text, result);
}

#define CALL(f, name, ...) TRY(check((f), (f)->api.name(__VA_ARGS__), #name, e))

static enum err_code find_local_rank(struct farm *f, struct err *e)
{
	struct ompi_communicator_t *machine = NULL;

	CALL(f, MPI_Comm_split_type, f->api.world, MPI_SHARED_MEMORY, f->rank, f->api.info_null, &machine);
	CALL(f, MPI_Comm_rank, machine, &f->local_rank);
	f->first = f->rank;		/* local ranks are in the order of ranks */
	CALL(f, MPI_Bcast, &f->first, sizeof(f->first), f->api.byte, 0, machine);
	CALL(f, MPI_Comm_free, &machine);
	return OK;
}

/* A launcher that this MPI does not understand starts processes of which each is a farm of its own: all would print, and
 * write the same files. */
static enum err_code check_launcher(const struct farm *f, struct err *e)
{
	static const struct { const char *variable, *launcher, *advice; } launchers[] = {
		{ "OMPI_COMM_WORLD_SIZE", "mpirun", "are mpirun and the library of the same Open MPI?" },
		{ "SLURM_STEP_NUM_TASKS", "srun", "srun --mpi=pmix or mpirun starts them so that they find each other" },
		{ "PMI_SIZE", "mpirun", "is it the one of Open MPI?" },
	};

	for (int i = 0; i < LEN(launchers) && f->size == 1; i++) {
		const char *n = getenv(launchers[i].variable);

		if (n && strtol(n, NULL, 10) > 1)
			return err_set(e, ERR_IO, NOWHERE, "%s started %.20s processes, but Open MPI knows of one: %s",
				launchers[i].launcher, n, launchers[i].advice);
	}
	return OK;
}

static enum err_code start(struct farm *f, const char *const *names, struct err *e)
{
	int given;

	TRY(mpi_open(&f->api, names ? names : mpi_names, e));
	/* Without mpirun, Open MPI would start a daemon in case this process wanted to start others. */
	setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
	CALL(f, MPI_Init_thread, NULL, NULL, MPI_FUNNELED, &given);
	f->open = true;
	CALL(f, MPI_Comm_set_errhandler, f->api.world, f->api.errors_return);
	CALL(f, MPI_Comm_rank, f->api.world, &f->rank);
	CALL(f, MPI_Comm_size, f->api.world, &f->size);
	TRY(check_launcher(f, e));
	return find_local_rank(f, e);
}

enum err_code farm_open(struct mem *mem, const char *const *names, struct farm **out, struct err *e)
{
	struct farm *f = mem_get(mem, sizeof(*f));

	memset(f, 0, sizeof(*f));
	f->mem = mem;
	f->closed_rank = -1;
	*out = f;
	if (gethostname(f->host, sizeof(f->host) - 1))
		strcpy(f->host, "unknown");
	return start(f, names, e);
}

int farm_rank(const struct farm *f)
{
	return f->rank;
}

int farm_size(const struct farm *f)
{
	return f->size;
}

int farm_local_rank(const struct farm *f)
{
	return f->local_rank;
}

bool farm_with_rank_0(const struct farm *f)
{
	return f->first == 0;
}

const char *farm_host(const struct farm *f)
{
	return f->host;
}

bool farm_is_open(const struct farm *f)
{
	return f->open;
}

int farm_closed_rank(const struct farm *f)
{
	return f->closed_rank;
}

/* ---- parcels ---- */

static struct parcel *parcel_new(struct farm *f, int rank, size_t size)
{
	struct parcel *p = mem_get(f->mem, sizeof(*p) + size);

	memset(p, 0, sizeof(*p));
	p->rank = rank;
	p->size = size;
	return p;
}

static void parcel_free(struct farm *f, struct parcel *p)
{
	if (p)
		mem_put(f->mem, p, sizeof(*p) + p->size);
}

static void append(struct parcel **list, struct parcel *p)
{
	while (*list)
		list = &(*list)->next;
	*list = p;
}

static struct parcel *take(struct parcel **list)
{
	struct parcel *p = *list;

	*list = p->next;
	p->next = NULL;
	return p;
}

static void free_list(struct farm *f, struct parcel **list)
{
	while (*list)
		parcel_free(f, take(list));
}

void farm_free(struct farm *f)
{
	if (!f)
		return;
	if (!f->open) {			/* else MPI may still write to them */
		free_list(f, &f->sent);
		free_list(f, &f->arriving);
	}
	parcel_free(f, f->given);
	mem_put(f->mem, f, sizeof(*f));
}

/* ---- progress ---- */

static enum err_code advance_sent(struct farm *f, struct err *e)
{
	for (struct parcel **p = &f->sent; *p; ) {
		CALL(f, MPI_Test, &(*p)->request, &(*p)->complete, NULL);
		if ((*p)->complete)
			parcel_free(f, take(p));
		else
			p = &(*p)->next;
	}
	return OK;
}

/* Begin to receive the message that `status` is about. */
static enum err_code begin_arrival(struct farm *f, const struct mpi_status *status, struct err *e)
{
	enum err_code code;
	struct parcel *p;
	int n;

	CALL(f, MPI_Get_count, status, f->api.byte, &n);
	if (n == MPI_UNDEFINED_COUNT || n < 0)
		return message_too_long(status->source, 0, e);
	if ((size_t)n > message_size(MESSAGE_BODY_MAX))
		return message_too_long(status->source, (uint64_t)n, e);
	p = parcel_new(f, status->source, (size_t)n);
	p->tag = status->tag;
	code = check(f, f->api.MPI_Irecv(p->bytes, n, f->api.byte, status->source, status->tag, f->api.world, &p->request),
		"MPI_Irecv", e);
	if (code) {
		parcel_free(f, p);
		return code;
	}
	append(&f->arriving, p);
	f->narriving++;
	return OK;
}

static enum err_code advance_arriving(struct farm *f, struct err *e)
{
	while (f->narriving < ARRIVING_MAX) {
		struct mpi_status status = { 0 };
		int found = 0;

		CALL(f, MPI_Iprobe, MPI_ANY, MPI_ANY, f->api.world, &found, &status);
		if (!found)
			break;
		TRY(begin_arrival(f, &status, e));
	}
	for (struct parcel *p = f->arriving; p; p = p->next)
		if (!p->complete)
			CALL(f, MPI_Test, &p->request, &p->complete, NULL);
	return OK;
}

static enum err_code advance(struct farm *f, struct err *e)
{
	TRY(advance_sent(f, e));
	return advance_arriving(f, e);
}

static bool is_first_of_rank(const struct farm *f, const struct parcel *p)
{
	const struct parcel *q = f->arriving;

	while (q->rank != p->rank)
		q = q->next;
	return q == p;
}

/* A message that is complete and that no earlier one of its rank precedes; NULL. */
static struct parcel *take_arrived(struct farm *f)
{
	for (struct parcel **p = &f->arriving; *p; ) {
		struct parcel *q;

		if (!(*p)->complete || !is_first_of_rank(f, *p)) {
			p = &(*p)->next;
			continue;
		}
		f->narriving--;
		q = take(p);
		if (q->tag != TAG_CLOSES)
			return q;
		if (f->closed_rank < 0)
			f->closed_rank = q->rank;
		parcel_free(f, q);	/* the last one of its rank */
	}
	return NULL;
}

/* Sleep before the next look, `left` seconds at most. Short at first, as an answer is often near; MPI itself would wait
 * without sleeping, and keep a core busy. */
static void sleep_some(long *ns, double left)
{
	struct timespec t = { 0 };

	*ns = *ns ? 2 * *ns : PAUSE_MIN;
	*ns = *ns < PAUSE_MAX ? *ns : PAUSE_MAX;
	t.tv_nsec = left * 1e9 < (double)*ns ? (long)(left * 1e9) : *ns;
	nanosleep(&t, NULL);
}

static enum err_code interrupted(struct err *e)
{
	return err_set(e, ERR_INTERRUPTED, NOWHERE, "interrupted");
}

/* ---- messages ---- */

static enum err_code send_parcel(struct farm *f, struct parcel *p, int tag, struct err *e)
{
	enum err_code code;

	p->tag = tag;
	code = check(f, f->api.MPI_Isend(p->bytes, (int)p->size, f->api.byte, p->rank, tag, f->api.world, &p->request),
		"MPI_Isend", e);
	if (code) {
		parcel_free(f, p);
		return code;
	}
	append(&f->sent, p);
	return advance_sent(f, e);
}

enum err_code farm_send(struct farm *f, int rank, const void *body, size_t n, struct err *e)
{
	struct parcel *p;

	if (n > MESSAGE_BODY_MAX)
		return err_set(e, ERR_LIMIT, NOWHERE, "a message has %d MiB at most, and this one has %zu bytes",
			MESSAGE_BODY_MAX >> 20, n);
	p = parcel_new(f, rank, message_size(n));
	message_write(p->bytes, body, n);
	return send_parcel(f, p, TAG, e);
}

enum err_code farm_receive(struct farm *f, double seconds, const struct stop *stop, struct farm_message *out, struct err *e)
{
	double until = clock_seconds() + seconds;
	long ns = 0;

	*out = (struct farm_message){ 0 };
	parcel_free(f, f->given);
	f->given = NULL;
	for (;;) {
		double left;

		TRY(advance(f, e));
		f->given = take_arrived(f);
		if (f->given) {
			out->rank = f->given->rank;
			return message_read(f->given->bytes, f->given->size, out->rank, &out->body, &out->len, e);
		}
		if (stop_asked(stop))
			return interrupted(e);
		left = until - clock_seconds();
		if (left <= 0)
			return OK;
		sleep_some(&ns, left);
	}
}

/* ---- closing ---- */

/* A rank has nothing on its way once all its sends are complete, which may need that the others receive. So all receive until
 * the last of them says, by a barrier, that it has nothing on its way. */
static enum err_code await_others(struct farm *f, const struct stop *stop, struct err *e)
{
	int all = 0;
	long ns = 0;

	while (!all || f->arriving) {
		struct parcel *p;

		TRY(advance(f, e));
		while ((p = take_arrived(f)))
			parcel_free(f, p);
		if (!f->barrier && !f->sent)
			CALL(f, MPI_Ibarrier, f->api.world, &f->barrier);
		if (f->barrier && !all)
			CALL(f, MPI_Test, &f->barrier, &all, NULL);
		if (stop_asked(stop))
			return interrupted(e);
		if (!all || f->arriving)
			sleep_some(&ns, INFINITY);
	}
	return OK;
}

/* Others may wait for what this rank will not send any more. */
static enum err_code announce_close(struct farm *f, struct err *e)
{
	int first = f->rank ? 0 : 1, end = f->rank ? 1 : f->size;

	if (f->has_announced)
		return OK;
	f->has_announced = true;
	for (int rank = first; rank < end; rank++)
		TRY(send_parcel(f, parcel_new(f, rank, 0), TAG_CLOSES, e));
	return OK;
}

enum err_code farm_close(struct farm *f, const struct stop *stop, struct err *e)
{
	parcel_free(f, f->given);
	f->given = NULL;
	TRY(announce_close(f, e));
	TRY(await_others(f, stop, e));
	f->open = false;
	return check(f, f->api.MPI_Finalize(), "MPI_Finalize", e);
}

void farm_abort(struct farm *f, int status)
{
	f->api.MPI_Abort(f->api.world, status);
	BUG("MPI_Abort returned");
}
