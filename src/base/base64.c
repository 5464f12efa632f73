#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *data, size_t n, char *out)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t x = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);

		*out++ = digits[x >> 18];
		*out++ = digits[x >> 12 & 63];
		*out++ = i + 1 < n ? digits[x >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digits[x & 63] : '=';
	}
}

/* The digit's value; 64: it is none. */
static uint32_t value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool base64_decode(const char *text, size_t n, void *out, size_t *len)
{
	size_t padding = n && text[n - 1] == '=' ? n > 1 && text[n - 2] == '=' ? 2 : 1 : 0, at = 0, bytes;
	unsigned char *to = out;
	uint32_t x = 0;

	if (n % 4)
		return false;
	bytes = n / 4 * 3 - padding;
	for (size_t i = 0; i < n; i++) {
		uint32_t v = i < n - padding ? value_of(text[i]) : 0;

		if (v > 63)
			return false;
		x = x << 6 | v;
		for (int k = 16; i % 4 == 3 && k >= 0; k -= 8)
			if (at < bytes)
				to[at++] = (unsigned char)(x >> k);
	}
	*len = at;
	return true;
}
