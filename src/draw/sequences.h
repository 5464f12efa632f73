/* sequences.h - timelines and plans of sequences (seq/seqline.h, seq/seqplan.h) as text, as pictures and as traces.
 *
 * All kernels are on one axis of seconds: a row for each stream with a bar for each kernel, rows for how much of the
 * time no kernel runs and how busy the units and memory are, then a table of the kernels. What is inside a kernel is
 * taken from its own timeline, stretched to the time that the kernel takes in the sequence.
 */
#ifndef DRAW_SEQUENCES_H
#define DRAW_SEQUENCES_H

#include "draw/draw.h"
#include "draw/pictures.h"
#include "seq/seqline.h"

void draw_seqline(const struct seqline *l, const struct draw_options *o, struct buf *out);
/* Two of them over one axis, and kernel by kernel: a row for calls with the same name. names: of the timelines. */
void draw_seqline_pair(const struct seqline *const l[2], const char *const names[2], const struct draw_options *o,
	struct buf *out);

/* ---- pictures, as those of pictures.h ---- */

void picture_seqline(struct picture *p, const struct seqline *l, const struct picture_options *o);
/* Calls in the order of their launches, a row for each stream; which tensors they use; where temporaries are. */
void picture_seqplan(struct picture *p, const struct seqplan *plan, const struct picture_options *o);

/* As trace_json: a process whose threads are the streams, and one for each kernel with what is inside it. */
void trace_json_sequence(const struct seqline *l, const char *script, struct buf *out);

/* ---- what the drawings are made of, for pictures and other displays ---- */

/* What a chart shows; NULL: all. */
struct seqline_view {
	double from, to;		/* seconds */
	int marked;			/* a span; NONE */
};

/* Only the rows and the axis, `width` columns wide, in `a`. */
void seqline_cells(const struct seqline *l, const struct seqline_view *v, int width, unsigned flags, struct arena *a,
	struct cells *out);

/* Rows that are no sEU of the device. */
enum { SEQ_ROW_MEMORY = -2, SEQ_ROW_IDLE = -3 };

/* The share of each of n equal parts of [from, to) in which an sEU of the device, or memory, is at work, averaged over
 * all EUs of the device; or no kernel runs. Seconds; in `a`. */
double *seqline_busy(struct arena *a, const struct seqline *l, int row, double from, double to, int n);
/* Rows of the device that any kernel uses: sEUs, then memory; returns how many, at most SEU_MAX + 1. */
int seqline_rows(const struct seqline *l, int rows[SEU_MAX + 1]);
const char *seqline_row_name(const struct seqline *l, int row);

/* A row of a table of kernels: a call, or, of a sequence with too many calls for a table, all calls of one kernel. */
struct seq_row {
	int first, calls;		/* the span of the first call; how many they are */
	double gap, seconds;		/* of a call, in the mean */
	double share;			/* of the sequence's time that all of them take */
};

/* The rows, *n of them, in the order of the first calls. In `a`. */
struct seq_row *seqline_table(struct arena *a, const struct seqline *l, int *n);

/* What binds a kernel: "tensor 84 %" of its time, "recurrence 97 %" of its interval; "": not known. In `a`. */
const char *seq_span_bound(struct arena *a, const struct seq_span *s);
/* The inks (picture.h) of the calls of a sequence: a hue for each program, a shade for each of its calls. In `a`. */
const uint8_t *seq_inks(struct arena *a, const struct sequence *s);
/* Streams that any call is on; returns how many. */
int seqline_streams(const struct seqline *l, int streams[SEQ_STREAMS_MAX]);

/* "mlp on h200, predicted: 3.03 ms", and what is idle, in sentences; in `a`. */
const char *seqline_head(struct arena *a, const struct seqline *l);
const char *seqline_gaps(struct arena *a, const struct seqline *l);

#endif
