/* The passes, in their order. */
#include "lower/pass/pass.h"

const struct pass passes[PASS_COUNT] = {
#define PASS(id, name, optional, needs, promises) { #name, pass_##name, optional, needs, promises },
#include "lower/passes.def"
#undef PASS
};
