/* device.h - the vDevice: a GPU as the scheduler models it.
 *
 * A vDevice has EUs (SMs, CUs), all alike, that share an L2 and a device memory. An EU has sEUs (specialised
 * units that execute sTasks), shared memory, registers, and lanes: contexts that issue (a warp, a warpgroup,
 * a group of waves). A vDevice is a record of numbers, read from hw/NAME.lua, which states the source of each.
 * Times are cycles of the EU clock, and rates are per cycle and EU, unless stated otherwise.
 *
 * device_cost converts work to cycles on an sEU. It is the only cost model: the simulator, the bounds and the
 * search all use it.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "base/arena.h"
#include "base/err.h"
#include "tile/program.h"

enum { SEU_MAX = 8 };

/* The kind of an sEU decides which work it can execute and how its cost is computed. */
enum seu_kind {
	SEU_COPY,			/* moves tiles between global and on-chip memory */
	SEU_MATRIX,			/* matrix products */
	SEU_VECTOR,			/* element-wise work; can execute anything else slowly */
	SEU_KINDS
};

enum { RATE_TYPES = DT_COUNT };

struct seu {
	const char *name;		/* "tma", "tensor", "cuda" */
	enum seu_kind kind;
	bool async;			/* the lane continues after the issue */
	bool ordered;			/* work of one lane completes in order of issue */
	double issue;			/* lane cycles to issue one sTask (an instruction, or a group of them) */
	double latency;			/* cycles from the end of its work to visible completion */
	/* MATRIX: dense flop/cycle of one EU, by type of the operands; 0: not supported */
	double flops[RATE_TYPES];
	double efficiency;		/* share of that rate that long sequences reach, (0, 1] */
	double step;			/* lane cycles to issue each further instruction */
	double depth;			/* instructions that a lane may have in flight before it must wait */
	double clock_hz;		/* clock of the EUs while it has work, Hz; at most the device's */
	int64_t min_m, min_n, min_k;	/* extents of an instruction; smaller products cost as much; min_k in bytes */
	/* VECTOR: operations on elements per cycle of one EU, by cost class */
	double ops[CLASS_COUNT];
	double slots;			/* operations on elements per cycle, over all classes (issue slots) */
	double lane_share;		/* share of these rates that one lane of 4 warps can use */
	double contention;		/* factor on lane_share while a matrix unit is at work */
	double by_age;			/* share of the cycles in which the oldest work has priority; in the
					 * others all lanes have the same */
	double chain;			/* cycles from an instruction to one that depends on it */
	/* COPY */
	double box_bytes;		/* bytes that one instruction moves, at most */
	double box_interval;		/* cycles between instructions */
	double row_interval;		/* ... each of a row, that many threads issue */
	double add_interval;		/* ... whose boxes are added in memory */
};

/* What consumes energy. */
enum effort_kind {
	EFFORT_PRODUCT,			/* flops of matrix units, scaled to 16-bit operands */
	EFFORT_VECTOR,			/* operations of threads on elements */
	EFFORT_L2,			/* bytes to or from L2 */
	EFFORT_GLOBAL,			/* bytes to or from device memory */
	EFFORT_EU,			/* cycles of EUs that have a tile */
	EFFORT_KINDS
};
extern const char *const effort_names[EFFORT_KINDS];

/* An amount of each, or its energy in joules. */
struct effort {
	double of[EFFORT_KINDS];
};

struct vdevice {
	struct arena arena;
	const char *name;		/* "h200" */
	const char *title;		/* "NVIDIA H200 SXM" */
	const char *arch;		/* "sm_90a" */
	int eus;
	double clock_hz;		/* Hz, if power does not limit it */
	int nseus;
	struct seu seu[SEU_MAX];
	/* limits of an EU, for one block */
	int warp;			/* threads per warp (wave) */
	int max_threads;
	int registers;			/* 32-bit, of an EU */
	int thread_registers;		/* of a thread, at most */
	int register_step;		/* a thread has a multiple of this */
	int reserved_registers;		/* of a thread, for addresses, counters, barriers */
	int64_t shared_bytes;		/* of a block, at most */
	int named_barriers;
	int max_cluster;
	int cluster_eus;		/* EUs that clusters of more than two can use at the same time */
	int chiplets;			/* that blocks go round, one to each; 1: there are none */
	/* memory */
	int64_t global_bytes;
	double global_rate;		/* bytes per second, of the device */
	double global_uneven;		/* the share of it that is lost, as some EUs get less than others and end last; EUs that
					 * take tiles by a counter have it */
	double global_switching;		/* share by which a byte takes longer behind one of the other kind: read, written */
	double global_latency;		/* cycles */
	int64_t l2_bytes;
	double l2_rate;			/* bytes per cycle, of the device */
	double l2_eu_rate;		/* bytes per cycle that one EU can load */
	double l2_apart_rate;		/* ... of the device, if EUs of clusters divide a loop, and so load at different positions */
	double l2_thread_rate;		/* ... by loads of its threads, counting complete sectors */
	double l2_warp_rate;		/* ... of one warp */
	double l2_add_rate;		/* bytes per cycle, of the device, that additions in memory bring to L2 */
	double l2_add_eu_rate;		/* ... of one EU */
	double l2_add_interval;		/* cycles from one addition to the same bytes to the next */
	double l2_latency;		/* cycles */
	double l2_again;		/* time of a request for bytes that another EU is fetching, over that of
					 * the fetch */
	double shared_rate;		/* bytes per cycle of one EU */
	double peer_rate;		/* bytes per cycle that an EU reads from shared memory of others of its cluster */
	double peer_latency;		/* cycles from a signal to others of the cluster until what they have is read */
	/* synchronisation, cycles */
	double wait_cost;		/* a wait that is satisfied already */
	double drain_cost;		/* ... for products of the lane itself */
	double tell_cost;		/* an arrival at a flag, for the lane that arrives */
	double warp_cost;		/* synchronisation of a warp's threads */
	double fence_cost;		/* a fence, after which an engine can read what threads wrote */
	double flag_latency;		/* from completion until another lane sees it (mbarrier) */
	double issue_order_latency;	/* from an issue to the next lane in an issue order (named barrier) */
	double handoff_latency;		/* to hand a register value to another lane: base */
	double handoff_rate;		/* ... plus its bytes at so many bytes per cycle */
	double launch_seconds;		/* seconds to start a kernel */
	double early_seconds;		/* ... from the end of the one in front of it, if it is launched while that runs */
	double ahead_seconds;		/* ... and its blocks begin so long before that, where all in front end together */
	double cluster_seconds;		/* ... whose EUs form clusters, in addition */
	double tile_overhead;		/* cycles of a lane between two output tiles */
	/* power of the device, at clock_hz */
	double power_limit;		/* W, averaged over some milliseconds; 0: not known */
	double power_idle;		/* W that it always draws */
	double l2_row_energy;		/* share by which a byte of half a line takes more of energy[EFFORT_L2] than one of a line */
	double energy[EFFORT_KINDS];	/* pJ per unit of each kind of effort */
	/* uncertainty: nine of ten measured times differ from the predicted one by less than this share */
	double uncertainty_products;		/* if products bind */
	double uncertainty_other;	/* else */
	double least_products, least_other;	/* if those are not known, as the device is not calibrated: those of a
					 * relative; it has no smaller ones. 0: not known either */
	double uncertainty_order;		/* of a difference: 19 of 20 pairs that differ by more are in the
					 * right order */
};

/* The work of an instance of an sTask. */
enum work_kind { WORK_LOAD, WORK_STORE, WORK_MMA, WORK_COMPUTE };

struct work {
	enum work_kind kind;
	enum dtype type;		/* of the elements moved; MMA: of the operands, the wider one of two */
	bool mixed;			/* MMA: the operands are of different types, */
	enum dtype operand[2];		/* ... these */
	int64_t m, n, k;		/* MMA: extents of the product */
	bool a_in_registers;		/* MMA: the first operand is in registers */
	bool sparse;			/* MMA: half of the first operand's elements are multiplied, as the others are 0 */
	int parts;			/* MMA: of the lane, which divide columns: each reads the first operand; 0: one */
	double flops;
	double global_bytes;		/* to or from global memory */
	double unique_share;		/* share of them that is not in L2 */
	double times;			/* LOAD: factor on their time because other EUs request them, too; 0: 1 */
	bool apart;			/* LOAD: in a loop that EUs of a cluster divide */
	bool by_threads;		/* LOAD: by threads, not by an engine */
	double reached;			/* STORE: share of the tiles of which something is inside of the tensor; 0: all */
	bool adds;			/* STORE: adds to what is there, */
	double region;			/* ... and so many bytes all EUs add to at the same time; 0: each to others */
	double sharers;			/* LOAD: EUs of a cluster that load these bytes for each other; else 0 */
	double shared_bytes;		/* read or written in shared memory */
	double boxes;			/* boxes that a copy engine is given, */
	double row_bytes;		/* ... of rows of so many neighbours in memory; 0: of many */
	double ops[CLASS_COUNT];	/* operations on elements, by cost class */
};

/* In cycles. */
struct cost {
	double issue;			/* of the lane, before it continues (asynchronous units) */
	double busy;			/* of the sEU at its full rate */
	double alone;			/* if only this lane uses it; >= busy */
	double shared;			/* the part of `busy` that waits for shared memory */
	double l2, global;		/* of the EU's share of L2, and of device memory */
	double memory;			/* ... the larger of them */
	double latency;			/* from the end of the work to completion */
};

/* The sEU that executes this work by default; NONE if none can. */
int device_seu_for(const struct vdevice *d, const struct work *w);
/* Can sEU number `seu` execute the work? A matrix unit multiplies operands of one type, and of those of different types
 * only the two floats of 8 bits. */
bool device_can(const struct vdevice *d, int seu, const struct work *w);
/* The sEU of that name; NONE. */
int device_find_seu(const struct vdevice *d, const char *name);
/* The number of EUs at work, and their clock. L2 and device memory have clocks of their own: at a lower clock of the
 * EUs they take fewer cycles. */
struct pace {
	int active;
	double clock_hz;
	double regained;		/* by which share device memory is faster, as EUs take tiles by a counter (global_uneven) */
	double written;			/* which share of the bytes that device memory moves is written */
};

/* How much longer device memory takes for bytes of which the share `written` is written than for reads alone. */
double device_switching(const struct vdevice *d, double written);

/* The cost of the work on sEU `seu`, which must be able to execute it, for a lane of `warps` warps. */
struct cost device_cost(const struct vdevice *d, int seu, const struct work *w, int warps, struct pace pace);

/* Registers that a launch of so many threads gives each: equally many, a multiple of the step. Each quarter of an EU has a
 * quarter of the registers and of the warps, so incomplete fours of warps take as many registers as complete ones. */
int64_t device_launched_registers(const struct vdevice *d, int64_t threads);

/* The effort of the work on sEU `seu`. */
struct effort device_effort(const struct vdevice *d, int seu, const struct work *w);

/* The clock for that effort if power does not limit it, Hz: matrix units at work have one of their own. */
double device_full_clock(const struct vdevice *d, const struct effort *e);
/* The clock, Hz, at which the device executes work again and again that takes so many cycles and additional
 * `waits` seconds; *watts: its power then, 0 if no limit is known. */
double device_clock(const struct vdevice *d, const struct effort *e, double cycles, double waits, double *watts);

/* Joules of each kind at that clock. */
struct effort device_energy(const struct vdevice *d, const struct effort *e, double clock_hz);

/* The cost of operations on elements, by class, on a vector sEU for a lane of so many warps: busy and alone. */
struct cost device_vector(const struct seu *s, const double *ops, int warps);

/* Building a device from named fields, as a file gives them. Paths are those of the file: "clock_ghz",
 * "memory.l2.rate", "seu.tensor.flops.bf16"; deprecated names are accepted; true and false are 1 and 0. sEUs are
 * in the order in which their names first appear.
 *
 * Setters: ERR_INPUT for an unknown name (the message suggests the nearest one) or an impossible value, and the
 * device is unchanged; ERR_LIMIT for too many sEUs. device_finish names the first missing or impossible field;
 * fields that the kind of an sEU does not have become 0. After it has succeeded fields may be changed, and the
 * device finished again. Texts are copied. Free with device_free (NULL is allowed). */
struct vdevice *device_new(struct mem *mem, const char *name);
void device_free(struct vdevice *d);
NODISCARD enum err_code device_set_number(struct vdevice *d, const char *path, double v,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code device_set_text(struct vdevice *d, const char *path, const char *v,
	struct srcloc loc, struct err *e);
/* The number of a field, in the unit of the file. */
NODISCARD enum err_code device_number(const struct vdevice *d, const char *path, double *v,
	struct srcloc loc, struct err *e);
NODISCARD enum err_code device_finish(struct vdevice *d, struct srcloc loc, struct err *e);
/* Append all fields, with units, as text. */
void device_print(const struct vdevice *d, struct buf *out);

#endif
