#include "pager.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
