/* Writes pictures to files, and says what went wrong. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "draw/picture.h"

/* ---- metadata of PNG ------------------------------------------------------------ */

static uint32_t crc(const char *s, size_t n)
{
	uint32_t c = 0xffffffffu;

	for (size_t i = 0; i < n; i++) {
		c ^= (unsigned char)s[i];
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
	}
	return ~c;
}

static void put_word(struct buf *out, uint32_t v)
{
	for (int i = 24; i >= 0; i -= 8)
		buf_putc(out, (char)(v >> i & 255));
}

/* An iTXt chunk: a keyword and UTF-8, not compressed. */
static void put_chunk(struct buf *out, const char *key, const char *text)
{
	struct buf b = buf_new(out->arena);

	if (!*text)
		return;
	buf_puts(&b, "iTXt");
	buf_putn(&b, key, strlen(key) + 1);
	buf_putn(&b, "\0\0\0", 4);		/* no compression; no language; the key is not translated */
	buf_puts(&b, text);
	put_word(out, (uint32_t)b.len - 4);
	buf_putn(out, b.text, b.len);
	put_word(out, crc(b.text, b.len));
}

/* ---- files ---------------------------------------------------------------------- */

/* SIGPIPE is blocked while writing, so that a closed pipe is an error instead of the end of the process. */
struct quiet {
	sigset_t before;
	bool pending;
};

static struct quiet quiet_begin(void)
{
	struct quiet q;
	sigset_t pipe, now;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&now);
	q.pending = sigismember(&now, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &q.before);
	return q;
}

static void quiet_end(const struct quiet *q)
{
	const struct timespec none = { 0 };
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (!q->pending)
		sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

/* Write bytes; or, if `p` is given, the picture through cairo, with the bytes as metadata. */
static enum err_code save(const char *bytes, size_t n, const struct picture *p, const struct picture_how *how,
	const char *path, struct err *e)
{
	const char *trouble = NULL;
	struct quiet q;
	struct stat st;
	FILE *f;
	int code = 0;

	if (files_discard)
		return OK;
	f = fopen(path, "wb");
	if (!f)
		return err_set(e, ERR_IO, NOWHERE, "cannot write %s: %s", path, strerror(errno));
	q = quiet_begin();
	errno = 0;
	if (p)
		trouble = cairo_write(p, how, bytes, n, f);
	else
		fwrite(bytes, 1, n, f);
	if (ferror(f))
		code = errno ? errno : EIO;
	if (fclose(f) && !code)
		code = errno ? errno : EIO;
	quiet_end(&q);
	if (!code && !trouble)
		return OK;
	if (!stat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
	return err_set(e, ERR_IO, NOWHERE, "cannot write %s: %s", path, code ? strerror(code) : trouble);
}

enum err_code picture_save_bytes(const char *bytes, size_t n, const char *path, struct err *e)
{
	return save(bytes, n, NULL, NULL, path, e);
}

enum err_code picture_save(const struct picture *p, const struct picture_how *how, const char *path, struct err *e)
{
	struct buf b = buf_new(p->arena);

	if (how->format == PICTURE_SVG) {
		picture_svg(p, how, &b);
		return picture_save_bytes(b.text, b.len, path, e);
	}
	put_chunk(&b, "Title", p->title);
	put_chunk(&b, "Description", p->about);
	put_chunk(&b, "Software", "Millrace");
	put_chunk(&b, "Source", p->script);
	return save(b.text, b.len, p, how, path, e);
}
