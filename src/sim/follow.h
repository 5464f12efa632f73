/* follow.h - how a kernel begins behind another one, in a stream or a graph of launches.
 *
 * A launch that is not early (programmatic dependent launch) begins when all of what is in front of it has ended, launch_seconds of
 * the device later. An early one has its blocks on the EUs by then: what must wait (plan/phases.h) begins early_seconds behind that
 * end, and loads that are ready ahead of it. Where the kernel in front lets it begin, a block begins on an EU when the block in front
 * of it there has ended, as no two fit; so on average before the last one by what EUs have less to do than the busiest, and
 * by ahead_seconds, which a wait takes longer than a start. Loads ahead are as many as their rings have slots. */
#ifndef SIM_FOLLOW_H
#define SIM_FOLLOW_H

#include "sim/timeline.h"

struct follow {
	double start;		/* seconds from the end of the kernel in front to the beginning of this one's timeline, which is that of
				 * the first accesses that wait */
	double ahead;		/* seconds before that in which loads that are ready may be on their way; 0: none are */
	double saved;		/* of these, seconds by which the kernel ends earlier: until the rings of such loads are full */
	double bytes;		/* of all EUs that are loaded ahead, at most */
};

/* The first phase of `behind` behind the last one of `front`, both simulated with their plans. early: it is launched so. `a` is for
 * work memory. */
void sim_follow(struct arena *a, const struct timeline *front, const struct timeline *behind, bool early, struct follow *out);

#endif
