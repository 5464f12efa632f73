#include "farm/message.h"

#include <string.h>

#include "base/hash.h"

enum { MAGIC = 0x4d52464d };

struct header {
	uint32_t magic, version;
	uint64_t length, hash;
};

_Static_assert(sizeof(struct header) == MESSAGE_HEADER, "the header has no gaps");

void message_write(void *to, const void *body, size_t n)
{
	struct header h = { MAGIC, MESSAGE_VERSION, n, hash_bytes(hash_basis(0), body, n) };

	memcpy(to, &h, sizeof(h));
	if (n)
		memcpy((char *)to + sizeof(h), body, n);
}

enum err_code message_too_long(int rank, uint64_t bytes, struct err *e)
{
	if (!bytes)
		return err_set(e, ERR_LIMIT, NOWHERE, "rank %d sent a message of more than 2 GiB; the most are %d MiB", rank,
			MESSAGE_BODY_MAX >> 20);
	return err_set(e, ERR_LIMIT, NOWHERE, "rank %d sent a message of %llu bytes; the most are %d MiB", rank,
		(unsigned long long)bytes, MESSAGE_BODY_MAX >> 20);
}

/* The version is looked at first: what follows it may differ between versions. */
enum err_code message_read(const void *message, size_t n, int rank, const char **body, size_t *len, struct err *e)
{
	const char *text = (const char *)message + MESSAGE_HEADER;
	struct header h;

	if (n < sizeof(h))
		return err_set(e, ERR_IO, NOWHERE, "rank %d sent %zu bytes, which are no message", rank, n);
	memcpy(&h, message, sizeof(h));
	if (h.magic != MAGIC)
		return err_set(e, ERR_IO, NOWHERE, "rank %d sent what is no message of this program", rank);
	if (h.version != MESSAGE_VERSION)
		return err_set(e, ERR_IO, NOWHERE, "rank %d sends messages of version %u, and version %d is expected: "
			"all ranks must run the same version of the program", rank, (unsigned)h.version, MESSAGE_VERSION);
	if (h.length > MESSAGE_BODY_MAX)
		return message_too_long(rank, h.length, e);
	if (h.length != n - sizeof(h))
		return err_set(e, ERR_IO, NOWHERE, "a message of rank %d came with %zu bytes instead of %llu", rank,
			n - sizeof(h), (unsigned long long)h.length);
	if (hash_bytes(hash_basis(0), text, h.length) != h.hash)
		return err_set(e, ERR_IO, NOWHERE, "a message of rank %d was altered on its way: its hash is another one", rank);
	*body = text;
	*len = h.length;
	return OK;
}
