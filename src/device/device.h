/* device.h - the vDevice: a GPU as a scheduler sees it.
 *
 * A vDevice is EUs (SMs, CUs), all alike, that share an L2 and a device memory.
 * An EU has sEUs, specialised units that take sTasks, a shared memory, registers,
 * and lanes: contexts that issue (a warp, warpgroup, wave group). It is a plain
 * record of numbers, read from hw/NAME.lua, where each stands with its source.
 * Times are cycles of the EU clock, rates are per cycle and EU unless said.
 *
 * device_cost turns a piece of work into cycles on one of the sEUs. It is the only
 * cost model there is: the simulator, the bounds and the search all ask it.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "base/arena.h"
#include "base/err.h"
#include "tile/program.h"

enum { SEU_MAX = 8 };

/* What kind of unit an sEU is; decides which work it takes and how it is costed. */
enum seu_kind {
	SEU_COPY,			/* moves tiles between global and on-chip memory */
	SEU_MATRIX,			/* matrix products */
	SEU_VECTOR,			/* element-wise work; can run anything else slowly */
	SEU_KINDS
};

enum { RATE_TYPES = DT_COUNT };

struct seu {
	const char *name;		/* "tma", "tensor", "cuda" */
	enum seu_kind kind;
	bool async;			/* the lane goes on after issuing */
	bool ordered;			/* its work of one lane completes in order of issue */
	double issue;			/* lane cycles to issue one piece (one instruction group) */
	double latency;			/* cycles from the end of its work to visible completion */
	/* MATRIX: dense flop/cycle of one EU by operand type; 0: not supported.
	 * A product's row count is split into instructions of min_m rows. */
	double flops[RATE_TYPES];
	double efficiency;		/* share of that rate that long runs reach, (0, 1] */
	double step;			/* lane cycles to issue each further instruction */
	double depth;			/* instructions of a lane under way, beyond which it stands */
	double clock_hz;		/* of the EUs when it has work; at most the device's */
	int64_t min_m, min_n, min_k;	/* granularity: smaller products cost as much; min_k in bytes */
	/* VECTOR: element operations per cycle of one EU, by cost class. */
	double ops[CLASS_COUNT];
	double slots;			/* element operations per cycle over all classes (issue) */
	double lane_share;		/* share of the rates that one lane of 4 warps can draw */
	double contention;		/* ... of that, while a matrix unit is at work */
	double by_age;			/* share of the cycles in which the lane that came first goes
					 * first; in the others all that want the unit are alike */
	double chain;			/* cycles from an instruction to the next that needs it */
	/* COPY: most bytes one instruction moves, cycles between instructions. */
	double box_bytes;
	double box_interval;
};

/* Where energy goes, and how much of each a piece of work takes. */
enum effort_kind {
	EFFORT_PRODUCT,			/* flops of matrix units, as if on 16 bits */
	EFFORT_VECTOR,			/* operations of threads */
	EFFORT_L2,			/* bytes that L2 gives or takes */
	EFFORT_GLOBAL,			/* ... and device memory */
	EFFORT_EU,			/* cycles of EUs that have a tile */
	EFFORT_KINDS
};
extern const char *const effort_names[EFFORT_KINDS];

struct effort {
	double of[EFFORT_KINDS];
};

struct vdevice {
	struct arena arena;
	const char *name;		/* "h200" */
	const char *title;		/* "NVIDIA H200 SXM" */
	const char *arch;		/* "sm_90a" */
	int eus;
	double clock_hz;		/* that power does not limit */
	int nseus;
	struct seu seu[SEU_MAX];
	/* limits of one EU, for one block */
	int warp;			/* threads a warp (wave) */
	int max_threads;
	int registers;			/* 32-bit, of an EU */
	int thread_registers;		/* most a thread may have */
	int register_step;		/* granularity a thread */
	int reserved_registers;		/* a thread, for addresses, counters, barriers */
	int64_t shared_bytes;		/* a block can use */
	int named_barriers;
	int max_cluster;
	int cluster_eus;		/* that clusters of more than two can fill */
	/* memory */
	int64_t global_bytes;
	double global_rate;		/* bytes a second, whole device */
	double global_latency;		/* cycles */
	int64_t l2_bytes;
	double l2_rate;			/* bytes a cycle, whole device */
	double l2_eu_rate;		/* bytes a cycle that one EU can draw */
	double l2_thread_rate;		/* ... by loads of its threads, in whole sectors */
	double l2_warp_rate;		/* ... and of one warp */
	double l2_latency;		/* cycles */
	double l2_again;		/* of the time that bytes take, more for each other EU that asks
					 * for them before they are there */
	double shared_rate;		/* bytes a cycle of one EU */
	/* synchronisation, cycles */
	double wait_cost;		/* a wait that is already satisfied */
	double drain_cost;		/* ... for products of the lane's own */
	double tell_cost;		/* an arrival at a flag, of the lane that arrives */
	double warp_cost;		/* a meeting of a warp's threads */
	double fence_cost;		/* until an engine may read what threads wrote */
	double flag_latency;		/* from completion to another lane seeing it (mbarrier) */
	double issue_order_latency;	/* from an issue to the next lane in an issue order (named barrier) */
	double handoff_latency;		/* register tile through shared memory to another lane: base */
	double handoff_rate;		/* ... and bytes a cycle */
	double launch_seconds;		/* of a kernel */
	double tile_overhead;		/* cycles a lane spends between two output tiles */
	/* power: of the whole device, at clock_hz. What switches takes its voltage's square, and that
	 * goes with the clock. */
	double power_limit;		/* W, over some milliseconds; 0: none is known */
	double power_idle;		/* W, whatever the EUs do */
	double energy[EFFORT_KINDS];	/* pJ of each */
	/* uncertainty: nine of ten measured times differ from the predicted one by less than this share */
	double uncertainty_products;		/* where products bind */
	double uncertainty_other;
	double uncertainty_order;		/* predictions so far apart are in the right order, 19 of 20 */
};

/* One piece of work, as the sTask-graph describes an sTask. */
enum work_kind { WORK_LOAD, WORK_STORE, WORK_MMA, WORK_COMPUTE };

struct work {
	enum work_kind kind;
	enum dtype type;		/* of the operands (MMA) or elements moved */
	int64_t m, n, k;		/* MMA: extents of the product */
	bool a_in_registers;		/* MMA: first operand comes from registers */
	double flops;
	double global_bytes;		/* to or from global memory */
	double unique_share;		/* share of them that must come from device memory, not L2 */
	double times;			/* LOAD: as many times as long they take, as others ask, too; 0: 1 */
	bool by_threads;		/* LOAD: no engine does */
	double sharers;			/* LOAD: EUs that bring these bytes to each other; else 0 */
	double shared_bytes;		/* read or written in shared memory */
	double boxes;			/* contiguous pieces a copy engine is told */
	double ops[CLASS_COUNT];	/* element operations by cost class */
};

struct cost {
	double issue;			/* cycles of the lane before it may go on (async) */
	double busy;			/* cycles of the sEU at its full rate */
	double alone;			/* cycles when only this lane uses it; >= busy */
	double shared;			/* of `busy`, what it is longer for waiting for shared memory */
	double l2, global;		/* cycles of this EU's share of L2, and of device memory */
	double memory;			/* ... of the slower */
	double latency;			/* from the end of the work to completion */
};

/* The attached sEU that this kind of work goes to by default; NONE if there is
 * none that can. */
int device_seu_for(const struct vdevice *d, const struct work *w);
bool device_can(const struct vdevice *d, int seu, const struct work *w);
int device_find_seu(const struct vdevice *d, const char *name);	/* NONE */
/* How many EUs are at work, at which clock. L2 and device memory have clocks of their own: of an EU's
 * cycles they take fewer where those are longer. */
struct pace {
	int active;
	double clock_hz;
};
/* Cost on sEU `seu` for a lane of `warps` warps. The sEU must be able to run it. */
struct cost device_cost(const struct vdevice *d, int seu, const struct work *w, int warps,
	struct pace pace);

/* What a piece of work takes, however long. */
struct effort device_effort(const struct vdevice *d, int seu, const struct work *w);

/* The clock that power does not limit, with that work. */
double device_full_clock(const struct vdevice *d, const struct effort *e);
/* The clock at which the device does work that takes so many cycles, and `waits` seconds that no
 * clock shortens, over and over; *watts: what it draws then. Matrix units at work have their own. */
double device_clock(const struct vdevice *d, const struct effort *e, double cycles, double waits,
	double *watts);

/* Joules of each kind at that clock. */
struct effort device_energy(const struct vdevice *d, const struct effort *e, double clock_hz);

/* Operations on elements by class, on a vector sEU, for a lane of so many warps: busy and alone. */
struct cost device_vector(const struct seu *s, const double *ops, int warps);

/* Building one from named fields, as read from a file. Paths are those of the
 * file: "clock_ghz", "memory.l2.rate", "seu.tensor.flops.bf16"; true and false are
 * 1 and 0. sEUs stand in the order in which their names first appear. Unknown names
 * get the nearest known one in the message, and the device stays as it was.
 * device_finish names the first missing or impossible field; after it succeeded,
 * fields may be refined and the device finished again. Fields that an sEU's kind has
 * not are 0. Free with device_free. */
struct vdevice *device_new(struct mem *mem, const char *name);
void device_free(struct vdevice *d);
NODISCARD enum err_code device_set_number(struct vdevice *d, const char *path, double v,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code device_set_text(struct vdevice *d, const char *path, const char *v,
	struct srcloc loc, struct err *e);
/* The number of a field, as a file gives it. */
NODISCARD enum err_code device_number(const struct vdevice *d, const char *path, double *v,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code device_finish(struct vdevice *d, struct srcloc loc, struct err *e);
void device_print(const struct vdevice *d, struct buf *out);

#endif
