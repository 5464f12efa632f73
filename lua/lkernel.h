/* lkernel.h - what the bindings of kernels share. */
#ifndef LUA_LKERNEL_H
#define LUA_LKERNEL_H

#include "lplan.h"
#include "run/on_host.h"
#include "run/report.h"

/* The one device of this state, made when first asked for. */
struct gpu *gpu_of(lua_State *L);
/* Push an object of the class with the text of the plan at 1, which it keeps; at 3 may stand an edit
 * of its sources (core.build), at 4 the passes to leave out. */
struct built *push_text(lua_State *L, const char *class_name);
/* Pointers to the packed elements of all tensors: the inputs' arrays from the table at
 * `inputs`, new ones for the outputs, which go into the table at `results`. */
void **tensor_pointers(lua_State *L, const struct program *p, int inputs, int results,
	struct arena *a);

#endif
