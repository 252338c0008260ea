/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xvswitchd: reads options and configuration, then hands over to the daemon.
 *
 * Exit status: 0 stopped by a signal (or -t found nothing wrong), 1 could not start or go on,
 * 2 wrong options. The reason is the last line on standard error, alone and unprefixed except by
 * the program's name or, for a configuration file, by FILE:LINE, so that editors and scripts
 * can use it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "control/config.h"
#include "control/daemon.h"
#include "control/options.h"

static int fail(const struct refusal *why)
{
	char text[2 * sizeof(why->text)];

	fprintf(stderr, "%s%s\n",
		why->placed ? "" : "xvswitchd: ", text_escape(why->text, text, sizeof(text)));
	return EXIT_FAILURE;
}

static int run(const struct options *options, struct config **config, struct refusal *why)
{
	int error = 0;

	if (options->config_file) {
		error = config_load(config, options->config_file, why);
		if (!error)
			error = config_check(*config, options->run_dir, why);
	}
	if (error)
		return error;
	if (options->check_only) {
		error = daemon_check(options, why);
		if (error)
			return error;
		printf("%s: %u command%s, nothing wrong\n", options->config_file,
		       config_count(*config), config_count(*config) == 1 ? "" : "s");
		return 0;
	}
	return daemon_run(options, *config, why);
}

int main(int argc, char **argv)
{
	struct config *config = NULL;
	struct options options;
	struct refusal why;
	int error;

	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_DONE:
		return EXIT_SUCCESS;
	case OPTIONS_WRONG:
		return 2;
	case OPTIONS_RUN:
		break;
	}
	error = run(&options, &config, &why);
	config_destroy(config);
	return error ? fail(&why) : EXIT_SUCCESS;
}
