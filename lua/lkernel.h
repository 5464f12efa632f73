/* lkernel.h - what the bindings of kernels share. */
#ifndef LUA_LKERNEL_H
#define LUA_LKERNEL_H

#include "lplan.h"
#include "run/on_host.h"
#include "run/run.h"

/* What core.compile_begin gives. */
#define COMPILING_CLASS "millrace.compiling"

/* The only box of this class in the Lua state, empty at first. class_name must be the same pointer each time. */
void **box_single(lua_State *L, const char *class_name);
/* The attached device of this Lua state. */
struct gpu *gpu_of(lua_State *L);
/* The workers that compile in the background. */
struct pool *pool_of(lua_State *L);
/* The kernel, of either backend, at idx. */
struct built *check_built(lua_State *L, int idx, const char *what);
/* The backend that the string at idx names. */
enum backend check_backend(lua_State *L, int idx, const char *what);
/* Raises unless the backend prints kernels for the plan's device. */
void check_prints(lua_State *L, enum backend backend, const struct plan *p, const char *what);
/* Push an object of the class: the plan at index 1, which the object keeps alive, with its sources printed. At 3 may be
 * a function that edits the sources (core.build), at 4 the bits of passes to leave out. */
struct built *push_built(lua_State *L, const char *class_name, enum backend backend);
/* Pointers to the packed elements of all tensors: the inputs' arrays from the table at `inputs`, new
 * arrays for the outputs, which are stored in the table at `results`. In `a`. */
void **tensor_pointers(lua_State *L, const struct program *p, int inputs, int results, struct arena *a);

/* The median time of the runs of a benchmark, in milliseconds; NAN without runs. Sorts r->ms. */
double median_ms(struct gpu_result *r);

#endif
