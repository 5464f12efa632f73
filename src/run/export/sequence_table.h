/* @NAME@.h - the kernels of sequence @SEQUENCE@ for several sizes on the GPU, made by Millrace from plans for @DEVICE@.
 *
 * Sizes: @SIZES@. Each has files of its own, which are built with this one; the functions are as there.
 */
#ifndef MILLRACE_@NAME@_H
#define MILLRACE_@NAME@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Load the binaries of all sizes. */
int @NAME@_load(int device);

/* Bytes of device memory for the temporaries of a launch with these sizes; 0: there is none. */
size_t @NAME@_temporaries(@SIZEPARAMETERS@);
@?ONE@
@?ONE@/* The smallest size that is there and at least so large; 0: there is none. Whoever has fewer rows than that gives tensors of that size. */
@?ONE@int @NAME@_fit(int size);

/* The launch of the kernels for exactly these sizes, and as a graph. */
int @NAME@_launch(struct CUstream_st *stream, @SIZEPARAMETERS@,
@ARGUMENTS@
	void *temporaries);
int @NAME@_graph_launch(struct CUstream_st *stream, @SIZEPARAMETERS@,
@ARGUMENTS@
	void *temporaries);

void @NAME@_unload(int device);
const char *@NAME@_error(void);

#ifdef __cplusplus
}
#endif
#endif
