/* fake_mpi.h - what a test says to fake_mpi.c, in the library that it has opened. */
#ifndef FAKE_MPI_H
#define FAKE_MPI_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_RANK = 1, FAKE_SIZE = 3 };

struct fake_mpi {
	/* A message of n bytes from a rank is on its way; it is complete at the `after`-th look, from 0. bytes NULL: only its
	 * length matters, as it must not be received. */
	void (*arrive)(int from, const void *bytes, size_t n, int after);
	void (*clear)(void);		/* of messages, and of what is below */
	int tag;			/* of those that arrive from now on; 0: of messages */
	int sends_take;			/* looks until a send is complete */
	int barrier_takes;		/* from now on */
	const char *fails;		/* the call that fails, "MPI_Isend"; NULL: none */
	int looks;			/* calls of MPI_Iprobe */
	int finalized;
	int sent;			/* messages, and the last one of them */
	int to, sent_tag;
	size_t bytes;
};

extern struct fake_mpi fake_mpi;

#endif
