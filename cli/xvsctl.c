/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xvsctl: the operator's command line. Checks the command by the grammar that the daemon uses,
 * sends its words, prints the answer.
 *
 * Options end where the command begins, so that no word of a command is taken for one. Wrong
 * usage is found without a daemon and exits with 2; everything else that goes wrong exits with
 * 1. Standard output holds nothing but the answer.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/format.h"
#include "cli/help.h"
#include "control/protocol.h"

#define EXIT_USAGE 2

struct settings {
	const char *run_dir;
	bool json;
};

static void complain(const char *text)
{
	char escaped[4 * sizeof(((struct refusal *)0)->text)];

	fprintf(stderr, "xvsctl: %s\n", text_escape(text, escaped, sizeof(escaped)));
}

/* Wrong usage, and the usage of the command if it is known. */
static int complain_usage(const struct refusal *why, const struct command *known)
{
	complain(why->text);
	if (known)
		fprintf(stderr, "usage: xvsctl %s\n", known->pattern);
	else
		fprintf(stderr, "\"xvsctl help\" lists the commands\n");
	return EXIT_USAGE;
}

static int print_json(const json_t *result)
{
	if (json_dumpf(result, stdout, JSON_INDENT(2)) != 0)
		return -EIO;
	putchar('\n');
	return 0;
}

/* Output that did not arrive (a full disk) must not look like success. */
static int finish_output(int error)
{
	if (fflush(stdout) != 0 || ferror(stdout) || error) {
		complain("cannot write the answer to standard output");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

static int refuse_help(const struct command_line *line)
{
	char words[100] = "";
	struct refusal why;
	size_t len = 0;

	for (unsigned int i = 0; i < line->nrest && len < sizeof(words); i++)
		len += (size_t)snprintf(words + len, sizeof(words) - len, "%s%s", i > 0 ? " " : "",
					line->rest[i]);
	refuse(&why, 0, "no command begins with \"%s\"%s", words,
	       line->nrest > 1 ? "; leave out names and other values" : "");
	return complain_usage(&why, NULL);
}

static int run_help(const struct command_line *line)
{
	if (line->nrest == 0)
		help_overview();
	else if (!help_commands(line->rest, line->nrest))
		return refuse_help(line);
	return finish_output(0);
}

static int run(const struct settings *s, const char *const word[], unsigned int n)
{
	struct command_line line;
	struct refusal why;
	json_t *result;
	int error = 0;

	if (command_parse(word, n, &line, &why))
		return complain_usage(&why, line.command);
	if (line.command->effect == COMMAND_LOCAL)
		return run_help(&line);
	if (client_command(s->run_dir, word, n, &result, &why)) {
		if (line.command->id == CMD_VERSION && !s->json)
			printf("xvsctl %s\n", XVS_VERSION);
		complain(why.text);
		return EXIT_FAILURE;
	}
	if (s->json)
		error = print_json(result);
	else
		format_result(line.command->id, result);
	json_decref(result);
	return finish_output(error);
}

static int usage_option(const char *text, const char *what)
{
	struct refusal why;

	refuse(&why, 0, "%s: %s", text, what);
	return complain_usage(&why, NULL);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
	    {"run-dir", required_argument, NULL, 'r'},
	    {"json", no_argument, NULL, 'j'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	struct settings s = {.run_dir = PROTOCOL_RUN_DIR};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:jVh", longs, NULL)) != -1) {
		switch (c) {
		case 'r':
			s.run_dir = optarg;
			break;
		case 'j':
			s.json = true;
			break;
		case 'V':
			puts("xvsctl " XVS_VERSION);
			return finish_output(0);
		case 'h':
			help_overview();
			return finish_output(0);
		case ':':
			return usage_option(argv[optind - 1], "this option needs a value");
		default:
			return usage_option(argv[optind - 1], "there is no such option");
		}
	}
	return run(&s, (const char *const *)(argv + optind), (unsigned int)(argc - optind));
}
