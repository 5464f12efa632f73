#include "pager.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

enum { NO_COMMAND = 127 };		/* exit status of a shell that cannot find a command */

/* The command of the pager; NULL: no paging. */
static const char *pager_command(void)
{
	const char *own = getenv("MILLRACE_PAGER"), *others = getenv("PAGER");

	if (own)
		return *own ? own : NULL;
	if (others && *others)
		return others;
	return "command -v less >/dev/null 2>&1 || exit 127; exec less";
}

static bool is_long(const char *text, size_t len)
{
	size_t rows = 0, column = 0;
	struct winsize w;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || w.ws_row < 2 || w.ws_col < 2)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || column == w.ws_col)
			rows++, column = 0;
		if (text[i] != '\n' && ((unsigned char)text[i] & 0xc0) != 0x80)
			column++;	/* SGR codes are counted too: rather page too early than too late */
	}
	return rows + 1 >= w.ws_row;
}

/* False if the command does not exist; then nothing has been shown. */
static bool page(const char *command, const char *text, size_t len)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, broken;
	FILE *f;
	int status;

	sigemptyset(&ignore.sa_mask);
	setenv("LESS", "FRX", 0);
	fflush(stdout);
	f = popen(command, "w");
	if (!f)
		return false;
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGPIPE, &ignore, &broken);
	fwrite(text, 1, len, f);	/* fails if the user leaves the pager early */
	if (len && text[len - 1] != '\n')
		putc('\n', f);
	status = pclose(f);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGPIPE, &broken, NULL);
	return !(WIFEXITED(status) && WEXITSTATUS(status) == NO_COMMAND);
}

void pager_print(const char *text, size_t len)
{
	const char *command = pager_command();

	if (command && is_long(text, len) && page(command, text, len))
		return;
	fwrite(text, 1, len, stdout);
	if (!len || text[len - 1] != '\n')
		putchar('\n');
}

/* The character at s: its bytes, and through *columns its columns. A change of colour has none. */
static size_t character(const char *s, size_t len, int *columns)
{
	mbstate_t state = { 0 };
	wchar_t c;
	size_t n;

	*columns = 0;
	if (len > 2 && s[0] == '\33' && s[1] == '[') {
		n = 2 + strspn(s + 2, "0123456789;");
		return n < len ? n + 1 : len;
	}
	n = mbrtowc(&c, s, len, &state);
	if (n == 0 || n > len) {
		*columns = 1;
		return 1;
	}
	*columns = wcwidth(c) > 0 ? wcwidth(c) : 0;
	return n;
}

static int columns_of(const char *s, size_t len)
{
	int sum = 0, columns;

	for (size_t i = 0; i < len; sum += columns)
		i += character(s + i, len - i, &columns);
	return sum;
}

static size_t count(const char *s, size_t len, bool spaces)
{
	size_t n = 0;

	while (n < len && (s[n] == ' ') == spaces)
		n++;
	return n;
}

/* Write a line of len bytes. Where it is too long, it goes on below, indented by two columns more than it begins. */
static void wrap_line(FILE *f, const char *line, size_t len, int width)
{
	int indent = (int)count(line, len, true), x = 0;

	if (columns_of(line, len) <= width) {
		fwrite(line, 1, len, f);
		return;
	}
	indent = indent < width / 2 ? indent + 2 : 0;
	for (size_t i = 0, gap, n; i < len; i += gap + n) {
		gap = count(line + i, len - i, true);
		n = count(line + i + gap, len - i - gap, false);
		int w = columns_of(line + i + gap, n);

		if (x > 0 && x + (int)gap + w > width) {
			fprintf(f, "\n%*s", indent, "");
			x = indent + w;
		} else {
			fprintf(f, "%*s", (int)gap, "");
			x += (int)gap + w;
		}
		fwrite(line + i + gap, 1, n, f);
	}
}

void pager_wrap(FILE *f, const char *text, size_t len, int width)
{
	while (len > 0) {
		size_t n = strcspn(text, "\n");

		if (n > len)
			n = len;
		wrap_line(f, text, n, width);
		if (n == len)
			break;
		putc('\n', f);
		text += n + 1;
		len -= n + 1;
	}
}

char *pager_wrapped(const char *text, size_t len, int width, size_t *n)
{
	char *out = NULL;
	FILE *f = open_memstream(&out, n);

	if (!f)
		return NULL;
	pager_wrap(f, text, len, width);
	if (fclose(f) == 0)
		return out;
	free(out);
	return NULL;
}
