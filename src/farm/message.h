/* message.h - how a message of the farm looks on its way.
 *
 * A header stands before the body: a word by which a message is recognised, the version of this form, the length of the
 * body and its hash. The numbers have the byte order of the machine; on one of another order the first word is a
 * different one, so its messages are refused, as are those of another version and those that were truncated or altered.
 */
#ifndef FARM_MESSAGE_H
#define FARM_MESSAGE_H

#include "base/err.h"

enum {
	MESSAGE_VERSION = 1,
	MESSAGE_BODY_MAX = 64 << 20,	/* bytes */
	MESSAGE_HEADER = 24,		/* bytes */
};

/* Bytes of a message with a body of n bytes, at most MESSAGE_BODY_MAX. */
static inline size_t message_size(size_t n)
{
	return MESSAGE_HEADER + n;
}

/* Write header and body to `to`, which has space for message_size(n) bytes. */
void message_write(void *to, const void *body, size_t n);

/* Check the n bytes that came from `rank`; *body then points at the body in them. An error names the rank. */
NODISCARD enum err_code message_read(const void *message, size_t n, int rank, const char **body, size_t *len, struct err *e);

/* The error about a message with a longer body than MESSAGE_BODY_MAX; `bytes` is what it has with its header, or 0 if
 * that is not known. */
enum err_code message_too_long(int rank, uint64_t bytes, struct err *e);

#endif
