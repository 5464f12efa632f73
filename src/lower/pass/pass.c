/* The passes, in their order. */
#include "lower/pass/pass.h"

pass_run *const passes[PASS_COUNT] = {
#define PASS(id, name, optional, needs, promises) pass_##name,
#include "lower/passes.def"
#undef PASS
};
