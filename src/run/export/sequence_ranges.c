/* @NAME@.c - chooses among the launchers of sequence @SEQUENCE@ by a size; see @NAME@.h. */
#include "@NAME@.h"

#include <stdio.h>
@INCLUDES@

static _Thread_local char failure[600];

/* What the launcher of one of the ranges returned. */
static int of_one(int code, const char *why)
{
	if (code)
		snprintf(failure, sizeof(failure), "%s", why);
	return code;
}

static int check_size(int size)
{
	if (size >= 1 && size <= @MOST@ && size % @MULTIPLE@ == 0)
		return 0;
	snprintf(failure, sizeof(failure), "@NAME@: @SIZENAME@ is %d; it is to be from 1 to @MOST@, and a multiple of @MULTIPLE@", size);
	return -1;
}

int @NAME@_load(int device)
{
	int code = 0;

@LOADS@
	return code;
}

size_t @NAME@_temporaries(int @SIZE@)
{
	if (check_size(@SIZE@))
		return 0;
@TEMPORARIES@
}

int @NAME@_prepare(int @SIZE@)
{
	if (check_size(@SIZE@))
		return -1;
@PREPARES@
}

int @NAME@_launch(struct CUstream_st *stream,
@PARAMETERLIST@
	void *temporaries, int @SIZE@)
{
	if (check_size(@SIZE@))
		return -1;
@LAUNCHES@
}

int @NAME@_graph_launch(struct CUstream_st *stream,
@PARAMETERLIST@
	void *temporaries, int @SIZE@)
{
	if (check_size(@SIZE@))
		return -1;
@GRAPHS@
}

void @NAME@_unload(int device)
{
@UNLOADS@
}

const char *@NAME@_error(void)
{
	return failure;
}
