/* mpi.h - the functions of Open MPI that the farm calls, loaded at run time.
 *
 * libmpi is opened with dlopen when a farm is asked for, and not before; so the program runs where there is none, and is
 * built without its headers. MPI has no common ABI: in that of Open MPI, which has been the same from version 2 to 5
 * (libmpi.so.40), a predefined handle is the address of a variable of the library. In MPICH and what descends from it
 * handles are numbers. Such a library lacks these variables, and is refused.
 *
 * Results are ints, 0 for success. The library is never closed.
 */
#ifndef FARM_MPI_H
#define FARM_MPI_H

#include "base/err.h"

struct ompi_communicator_t;
struct ompi_datatype_t;
struct ompi_errhandler_t;
struct ompi_info_t;
struct ompi_request_t;

enum {
	MPI_ANY = -1,			/* MPI_ANY_SOURCE, MPI_ANY_TAG */
	MPI_UNDEFINED_COUNT = -32766,	/* MPI_UNDEFINED */
	MPI_FUNNELED = 1,		/* MPI_THREAD_FUNNELED: only the first thread calls MPI */
	MPI_SHARED_MEMORY = 0,		/* MPI_COMM_TYPE_SHARED */
	MPI_TEXT_BYTES = 512,		/* twice MPI_MAX_ERROR_STRING */
};

struct mpi_status {
	int source, tag, error;
	int cancelled;
	size_t count;
};

#define MPI_SYMBOLS(SYM) \
	SYM(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *given)) \
	SYM(MPI_Finalize, (void)) \
	SYM(MPI_Abort, (struct ompi_communicator_t *comm, int status)) \
	SYM(MPI_Comm_rank, (struct ompi_communicator_t *comm, int *rank)) \
	SYM(MPI_Comm_size, (struct ompi_communicator_t *comm, int *size)) \
	SYM(MPI_Comm_split_type, (struct ompi_communicator_t *comm, int type, int key, struct ompi_info_t *info, \
		struct ompi_communicator_t **part)) \
	SYM(MPI_Comm_free, (struct ompi_communicator_t **comm)) \
	SYM(MPI_Comm_set_errhandler, (struct ompi_communicator_t *comm, struct ompi_errhandler_t *handler)) \
	SYM(MPI_Error_string, (int error, char *text, int *len)) \
	SYM(MPI_Isend, (const void *from, int n, struct ompi_datatype_t *type, int to, int tag, \
		struct ompi_communicator_t *comm, struct ompi_request_t **request)) \
	SYM(MPI_Irecv, (void *to, int n, struct ompi_datatype_t *type, int from, int tag, \
		struct ompi_communicator_t *comm, struct ompi_request_t **request)) \
	SYM(MPI_Iprobe, (int from, int tag, struct ompi_communicator_t *comm, int *found, struct mpi_status *status)) \
	SYM(MPI_Get_count, (const struct mpi_status *status, struct ompi_datatype_t *type, int *n)) \
	SYM(MPI_Test, (struct ompi_request_t **request, int *complete, struct mpi_status *status)) \
	SYM(MPI_Bcast, (void *bytes, int n, struct ompi_datatype_t *type, int from, struct ompi_communicator_t *comm)) \
	SYM(MPI_Ibarrier, (struct ompi_communicator_t *comm, struct ompi_request_t **request))

#define MPI_MEMBER(name, parameters) int (*name) parameters;
struct mpi {
	MPI_SYMBOLS(MPI_MEMBER)
	struct ompi_communicator_t *world;	/* MPI_COMM_WORLD */
	struct ompi_datatype_t *byte;		/* MPI_BYTE */
	struct ompi_errhandler_t *errors_return;	/* MPI_ERRORS_RETURN */
	struct ompi_info_t *info_null;		/* MPI_INFO_NULL */
};
#undef MPI_MEMBER

extern const char *const mpi_names[];	/* of the library, for the loader; NULL at the end */

/* Open the first of the libraries that the loader finds. Calls none of its functions. */
NODISCARD enum err_code mpi_open(struct mpi *m, const char *const *names, struct err *e);

#endif
