/* @NAME@.c - chooses among the launchers of sequence @SEQUENCE@; see @NAME@.h. */
#include "@NAME@.h"

#include <stdio.h>
@INCLUDES@

static _Thread_local char failure[600];

/* What the launcher of one of the sizes returned. */
static int of_one(int code, const char *why)
{
	if (code)
		snprintf(failure, sizeof(failure), "%s", why);
	return code;
}

static int no_such_size(void)
{
	snprintf(failure, sizeof(failure), "@NAME@: there are no kernels for these sizes; there are some for @SIZES@");
	return -1;
}

int @NAME@_load(int device)
{
	int code = 0;

@LOADS@
	return code;
}

size_t @NAME@_temporaries(@SIZEPARAMETERS@)
{
@BYTES@
	return 0;
}

@?ONE@int @NAME@_fit(int size)
@?ONE@{
@?ONE@	static const int sizes[] = { @SORTED@ };
@?ONE@
@?ONE@	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
@?ONE@		if (sizes[i] >= size)
@?ONE@			return sizes[i];
@?ONE@	return 0;
@?ONE@}
@?ONE@
int @NAME@_launch(struct CUstream_st *stream, @SIZEPARAMETERS@,
@PARAMETERLIST@
	void *temporaries)
{
@LAUNCHES@
	return no_such_size();
}

int @NAME@_graph_launch(struct CUstream_st *stream, @SIZEPARAMETERS@,
@PARAMETERLIST@
	void *temporaries)
{
@GRAPHS@
	return no_such_size();
}

void @NAME@_unload(int device)
{
@UNLOADS@
}

const char *@NAME@_error(void)
{
	return failure;
}
