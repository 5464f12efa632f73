/* lsequence.h - what the bindings of sequences share. */
#ifndef LUA_LSEQUENCE_H
#define LUA_LSEQUENCE_H

#include "lplan.h"
#include "seq/seqline.h"

#define SEQUENCE_CLASS "millrace.sequence"
#define SEQPLAN_CLASS "millrace.sequence_plan"
#define SEQLINE_CLASS "millrace.sequence_timeline"

/* What a sequence keeps in its uservalue: a list of its programs, by call. A plan of one: the sequence, the device, and a list of
 * the plans of its calls. A timeline: the plan, and a list of the timelines. */
enum { SEQ_PROGRAMS = 1, SEQPLAN_SEQUENCE = 1, SEQPLAN_DEVICE, SEQPLAN_PLANS, SEQLINE_PLAN = 1, SEQLINE_TIMELINES };

const struct sequence *check_sequence(lua_State *L, int idx, const char *what);
const struct seqplan *check_seqplan(lua_State *L, int idx, const char *what);
const struct seqline *check_seqline(lua_State *L, int idx, const char *what);
/* Raise if the plan at idx is not legal, telling its first problem. */
void check_seqplan_legal(lua_State *L, const struct seqplan *p, const char *what);
/* The call that the text at idx names. */
int check_call(lua_State *L, int idx, const char *what, const struct sequence *s);

#endif
