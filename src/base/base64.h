/* base64.h - bytes as text of RFC 4648, with padding. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/base.h"

/* How long the text of n bytes is, without a final NUL. */
static inline size_t base64_length(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* Writes base64_length(n) characters, and no NUL. */
void base64_encode(const void *data, size_t n, char *out);

/* The bytes that a text of n characters means go to `out`, which holds n / 4 * 3; *len of them. False: it
 * is no such text. */
bool base64_decode(const char *text, size_t n, void *out, size_t *len);

#endif
