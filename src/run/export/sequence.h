/* @NAME@.h - the kernels of sequence @SEQUENCE@ on the GPU, made by Millrace from a plan for @DEVICE@.
 *
 * Build it with the files of its kernels by any C11 compiler; nothing else of CUDA's or HIP's is needed:
 *
 *	cc -std=c11 -O2 -c @SOURCES@
 *
 * All functions that return an int return 0 if all is well; otherwise @NAME@_error() says what went wrong.
 */
#ifndef MILLRACE_@NAME@_H
#define MILLRACE_@NAME@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Bytes of device memory for the temporaries of a launch, whose address is a multiple of 256. */
enum { @NAME@_TEMPORARIES = @BYTES@ };

/* Load all binaries onto this device. */
int @NAME@_load(int device);

/* Put all kernels on a stream of the device that is current in this thread, and return without waiting for them. Arguments are
 * addresses in the device's memory, multiples of 16; elements are packed, the last index is the fastest. Launches that may
 * run at the same time have temporaries of their own. The call may be captured into a graph.
@?ANY@ * Sizes: @RANGETEXT@. The first launch with sizes that have other numbers of tiles makes lists of the tiles, which stay until
@?ANY@ * unload, and may wait for the device. @NAME@_prepare does it before; a launch that is captured fails unless that was done.
@?FORKED@ * The plan has several streams: the others begin and end with this one. */
@?LINEAR@ */
int @NAME@_launch(struct CUstream_st *stream,
@ARGUMENTS@
	void *temporaries@SIZEPARAMETERS@);
@?ANY@
@?ANY@/* Make what launches with these sizes need, on the device that is current in this thread. */
@?ANY@int @NAME@_prepare(@PREPAREPARAMETERS@);
@?TORCH@
@?TORCH@/* The same, for an operator of torch: the temporaries are the only one of a list. Which kernels begin early, the plan says. */
@?TORCH@int @NAME@_launch_with(int early, void *const *temporaries, struct CUstream_st *stream,
@?TORCH@@LASTARGUMENTS@

/* The same as a graph, which the call launches at once. The first call captures and instantiates it, and so do those with other addresses@ORSIZES@,
 * until there are eight; then such a call gives the graph that was not used for the longest time its addresses@ANDSIZES@. A call with
 * addresses@ANDSIZES@ that a graph has costs least. Two launches with the same addresses@ANDSIZES@ run one after the other, whatever their
 * streams. */
int @NAME@_graph_launch(struct CUstream_st *stream,
@ARGUMENTS@
	void *temporaries@SIZEPARAMETERS@);

/* Once nothing of it runs any more. */
void @NAME@_unload(int device);

/* What the last failure in this thread was; "" before the first. */
const char *@NAME@_error(void);

#ifdef __cplusplus
}
#endif
#endif
