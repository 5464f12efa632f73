/* @NAME@.h - the kernels of sequence @SEQUENCE@ for ranges of a size on the GPU, made by Millrace from plans for @DEVICE@.
 *
 * Size @SIZENAME@ is from 1 to @MOST@, and a multiple of @MULTIPLE@: @RANGETEXT@. Each range has files of its own, which are built with this one;
 * the functions are as there.
 */
#ifndef MILLRACE_@NAME@_H
#define MILLRACE_@NAME@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Bytes of device memory for the temporaries of any launch, whose address is a multiple of 256; those of a launch with this size, 0: there is
 * no such launch. */
enum { @NAME@_TEMPORARIES = @BYTES@ };
size_t @NAME@_temporaries(int @SIZE@);

/* Load the binaries of all ranges. */
int @NAME@_load(int device);

/* The launch of the kernels of the range that has this size, and as a graph. */
int @NAME@_launch(struct CUstream_st *stream,
@ARGUMENTS@
	void *temporaries, int @SIZE@);
int @NAME@_graph_launch(struct CUstream_st *stream,
@ARGUMENTS@
	void *temporaries, int @SIZE@);

/* Make what launches with this size need, on the device that is current in this thread. */
int @NAME@_prepare(int @SIZE@);

void @NAME@_unload(int device);
const char *@NAME@_error(void);

#ifdef __cplusplus
}
#endif
#endif
