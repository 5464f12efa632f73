/* farm.h - the processes of a farm, and messages between them.
 *
 * A farm is the program started several times by mpirun or Slurm. Each process has a rank, 0 to size - 1. A process that was
 * not started so is a farm of size 1. Only one farm can be opened in the life of a process, by the thread that then makes
 * all calls.
 *
 * Messages are bytes, at most MESSAGE_BODY_MAX (message.h). Those from one rank to another one arrive in the order in which
 * they were sent. Large ones only advance while either side is in one of these functions: who computes long calls
 * farm_receive now and then.
 *
 * Functions that wait look at `stop` every millisecond and then return ERR_INTERRUPTED. After another error a farm is good
 * for nothing but farm_abort, unless it is about a body that was too long to be sent.
 */
#ifndef FARM_FARM_H
#define FARM_FARM_H

#include "base/err.h"
#include "base/mem.h"

struct farm;

/* Start MPI. `names` are those of the library to open; NULL: the usual ones (mpi.h). The process must not have opened a
 * farm before. */
NODISCARD enum err_code farm_open(struct mem *mem, const char *const *names, struct farm **out, struct err *e);
/* Frees the memory, and leaves MPI as it is. NULL is fine. */
void farm_free(struct farm *f);

int farm_rank(const struct farm *f);
int farm_size(const struct farm *f);
/* Which of the ranks on this machine it is, from 0. As MPI counts: whatever has started the ranks, those that can share
 * memory are of one machine. Variables of the environment have another name for each launcher. */
int farm_local_rank(const struct farm *f);
bool farm_with_rank_0(const struct farm *f);	/* is rank 0 on this machine? */
const char *farm_host(const struct farm *f);
bool farm_is_open(const struct farm *f);	/* not after farm_close */
/* A rank that has called farm_close, of which farm_receive has given all messages: the first that is known, or -1. Rank 0 hears of all
 * others, and these of rank 0. */
int farm_closed_rank(const struct farm *f);

/* Send a copy of n bytes to a rank, which may be this one; does not wait. */
NODISCARD enum err_code farm_send(struct farm *f, int rank, const void *body, size_t n, struct err *e);

struct farm_message {
	const char *body;		/* NULL: none came in time */
	size_t len;
	int rank;			/* who sent it */
};

/* The next message of any rank; waits for so many seconds at most, 0 or more, also INFINITY. The body stays until the next
 * call of farm_receive or farm_close. */
NODISCARD enum err_code farm_receive(struct farm *f, double seconds, const struct stop *stop, struct farm_message *out,
	struct err *e);

/* End MPI. Waits until all ranks have called it and what was sent has arrived; what comes is not read any more. After an
 * interrupt it may be called again, and nothing else but farm_abort. */
NODISCARD enum err_code farm_close(struct farm *f, const struct stop *stop, struct err *e);

/* End all processes of the farm, with this status. Write out what stdio holds before. */
NORETURN void farm_abort(struct farm *f, int status);

#endif
