/* @NAME@.h - @PROGRAM@ on the GPU, made by Millrace from a plan for @DEVICE@.
 *
 * Build it with any C11 compiler. It opens the driver (libcuda.so.1) when it is loaded,
 * and wants nothing else of CUDA's, neither headers nor libraries:
 *
 *	cc -std=c11 -O2 -c @NAME@.c
 *	cc -o app app.o @NAME@.o -ldl
 *
 * or, to be called from another language,
 *
 *	cc -std=c11 -O2 -fPIC -shared -o lib@NAME@.so @NAME@.c -ldl
 *
 * All functions that return an int return 0 if all is well. Otherwise it is CUDA's number
 * of the error, or -1, and @NAME@_error() says what went wrong. They may be called from
 * several threads, but for loading and unloading the same device at the same time.
 */
#ifndef MILLRACE_@NAME@_H
#define MILLRACE_@NAME@_H

#ifdef __cplusplus
extern "C" {
#endif

@CUDA@struct CUstream_st;			/* CUDA's: a CUstream or cudaStream_t points to one */
@HIP@struct ihipStream_t;			/* HIP's: a hipStream_t points to one */

@CUDA@/* Load the binary onto this device, an @ARCH@. Makes the device's primary context, which
@CUDA@ * is that of CUDA's runtime and of PyTorch, current in the calling thread. */
@HIP@/* Load the binary onto this device, a @ARCH@, which becomes the current one of the
@HIP@ * calling thread. */
int @NAME@_load(int device);

/* Put the kernel on a stream (NULL: the default one) of the device that is current in
 * this thread, and return without waiting for it. Arguments are addresses in the device's
 * memory, multiples of 16; elements are packed, the last index is the fastest. The call
 * may be captured into a CUDA graph.
@COUNTED@ * Blocks take tiles by a counter in memory. Each stream has one of its own, and so has each captured
@COUNTED@ * launch; so do not instantiate a captured graph twice and run both at the same time.
@ANY@ * Sizes: @RANGETEXT@.
@ANY@ * The first launch with sizes that have other numbers of tiles makes lists of the tiles, which stay
@ANY@ * until unload, and may wait for the device (cuMemAlloc). @NAME@_prepare does it before; a launch
@ANY@ * that is captured fails unless that was done.
@TEMPNOTE@@EARLY@ * The kernel may begin while what is in front of it in the stream runs, and waits itself until that has ended.
 */
int @NAME@_launch(struct CUstream_st *stream,
@C_ARGUMENTS@
@EARLY@
@EARLY@/* The same, but it begins when what is in front of it in the stream has ended. */
@EARLY@int @NAME@_launch_late(struct CUstream_st *stream,
@EARLY@@C_ARGUMENTS@
@BETWEEN@
@BETWEEN@/* The same with memory of the caller's for the @NTEMPS@ tensors between phases, multiples of 16: @TEMPSHAPES@.
@BETWEEN@ * early: 1 as @NAME@_launch, 0: it begins when what is in front of it in the stream has ended. */
@BETWEEN@int @NAME@_launch_with(int early, void *const *temporaries, struct CUstream_st *stream,
@BETWEEN@@C_ARGUMENTS@

@ANY@/* Make what launches with these sizes need, on the device that is current in this thread. */
@ANY@int @NAME@_prepare(@C_SIZES@);
@ANY@
/* Once nothing of it runs any more. */
void @NAME@_unload(int device);

/* What the last failure in this thread was; "" before the first. */
const char *@NAME@_error(void);

#ifdef __cplusplus
}
#endif
#endif
