/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Help from the command table: the overview has one line per command, `help WORD...` the whole
 * text of those that begin with the words.
 *
 * There is no second place where a command is described, so that none can be forgotten; the text
 * in the table is what the manual says. Lines in it are shown as they are, indented by four, and a
 * unit test keeps them short enough for a terminal of 80 columns. Nothing here needs the daemon:
 * help must work when the daemon does not.
 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#define PATTERN_WIDTH 28

static void print_summary(const struct command *c)
{
	if (strlen(c->pattern) < PATTERN_WIDTH)
		printf("  %-*s %s\n", PATTERN_WIDTH, c->pattern, c->summary);
	else
		printf("  %s\n  %-*s %s\n", c->pattern, PATTERN_WIDTH, "", c->summary);
}

void help_overview(void)
{
	puts("xvsctl: controls a running xvswitchd\n"
	     "\n"
	     "usage: xvsctl [--run-dir DIR] [-j] COMMAND\n"
	     "\n"
	     "      --run-dir DIR            run directory of the daemon [" PROTOCOL_RUN_DIR "]\n"
	     "  -j, --json                   print the answer as JSON\n"
	     "  -V, --version                print the version of xvsctl and exit\n"
	     "  -h, --help                   print this text and exit\n"
	     "\n"
	     "commands (capitals stand for values; what is in brackets may be left out):");
	for (unsigned int i = 0; i < CMD_COUNT; i++)
		print_summary(command_get((enum command_id)i));
	puts("\n\"xvsctl help COMMAND\" explains one, for example \"xvsctl help port add\".\n"
	     "Exit status: 0 done, 1 the daemon refused or cannot be reached, 2 wrong usage;\n"
	     "reasons go to standard error.");
}

/* Whole lines, indented. */
static void print_details(const char *details)
{
	while (*details) {
		const size_t len = strcspn(details, "\n");

		printf("    %.*s\n", (int)len, details);
		details += len + (details[len] == '\n');
	}
}

bool help_commands(const char *const word[], unsigned int n)
{
	unsigned int shown = 0;

	for (unsigned int i = 0; i < CMD_COUNT; i++) {
		const struct command *c = command_get((enum command_id)i);

		if (!command_begins_with(c, word, n))
			continue;
		if (shown++ > 0)
			putchar('\n');
		printf("xvsctl %s\n    %c%s.\n", c->pattern, c->summary[0] - 'a' + 'A',
		       c->summary + 1);
		print_details(c->details);
	}
	return shown > 0;
}
