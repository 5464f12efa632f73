#include "farm/mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The last one is MPICH's, which is looked for only to say that it is the wrong one. */
const char *const mpi_names[] = { "libmpi.so.40", "libmpi.so", "libmpi.so.12", NULL };

struct symbol {
	const char *name;
	size_t member;			/* offset of the pointer */
};

#define MPI_SYMBOL(name, parameters) { #name, offsetof(struct mpi, name) },
static const struct symbol functions[] = { MPI_SYMBOLS(MPI_SYMBOL) };
static const struct symbol handles[] = {
	{ "ompi_mpi_comm_world", offsetof(struct mpi, world) },
	{ "ompi_mpi_byte", offsetof(struct mpi, byte) },
	{ "ompi_mpi_errors_return", offsetof(struct mpi, errors_return) },
	{ "ompi_mpi_info_null", offsetof(struct mpi, info_null) },
};

_Static_assert(sizeof(void *) == sizeof(int (*)(void)), "dlsym's result is a function");

/* The name of the first symbol that there is not; NULL: all are there. */
static const char *find_symbols(void *lib, const struct symbol *symbols, int n, struct mpi *m)
{
	for (int i = 0; i < n; i++) {
		void *p = dlsym(lib, symbols[i].name);

		if (!p)
			return symbols[i].name;
		/* ISO C has no cast from a pointer to data to one to a function. */
		memcpy((char *)m + symbols[i].member, &p, sizeof(p));
	}
	return NULL;
}

/* Open MPI opens plugins that use its symbols without naming it as their library: so they must be global. */
static void *open_first(const char *const *names, const char **name, char *why, size_t size)
{
	for (; *names; names++) {
		void *lib = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);

		*name = *names;
		if (lib)
			return lib;
		if (!*why)
			snprintf(why, size, "%s", dlerror());
	}
	return NULL;
}

enum err_code mpi_open(struct mpi *m, const char *const *names, struct err *e)
{
	char why[200] = "";	/* the first one cannot be opened */
	const char *name, *missing;
	void *lib = open_first(names, &name, why, sizeof(why));

	memset(m, 0, sizeof(*m));
	if (!lib)
		return err_set(e, ERR_IO, NOWHERE, "a farm needs Open MPI, and its library cannot be opened: install it (on Debian "
			"openmpi-bin), or load the cluster's module: %s", why);
	missing = find_symbols(lib, handles, LEN(handles), m);
	if (missing)
		return err_set(e, ERR_IO, NOWHERE, "a farm needs Open MPI, and %s is not it (perhaps MPICH): it has no %s",
			name, missing);
	missing = find_symbols(lib, functions, LEN(functions), m);
	if (missing)
		return err_set(e, ERR_IO, NOWHERE, "the Open MPI of %s has no function %s: it is too old", name, missing);
	return OK;
}
