/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines on stderr.
 *
 * One line is one write(2), so that lines of different threads do not mix. Control characters in
 * the text are replaced: names and paths in it may come from a front-end, and a terminal must
 * not obey them. A line above LINE_MAX_BYTES is cut.
 *
 * log_write_limited() counts per site and second. The first line of a later second says how
 * many were left out, so that silence is never mistaken for rest. Only the control thread logs
 * in limited sites; the counters need no lock.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"

#define LINE_MAX_BYTES   1024
#define LINES_PER_SECOND 10

static const char *const level_name[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

/* control writes; any thread reads */
static enum log_level threshold = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	store_relaxed(&threshold, level);
}

enum log_level log_get_level(void)
{
	return load_relaxed(&threshold);
}

const char *log_level_name(enum log_level level)
{
	return level_name[level];
}

int log_level_parse(const char *word, enum log_level *out)
{
	for (unsigned int i = 0; i < ARRAY_LEN(level_name); i++) {
		if (strcmp(word, level_name[i]) == 0) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void write_line(enum log_level level, const char *area, const char *fmt, va_list args)
{
	char line[LINE_MAX_BYTES];
	int used = snprintf(line, sizeof(line), "%s %s: ", level_name[level], area);

	if (used < 0)
		return;
	const size_t start = MIN((size_t)used, sizeof(line) - 2);

	if (vsnprintf(line + start, sizeof(line) - 1 - start, fmt, args) < 0)
		return;
	for (char *c = line + start; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	const size_t len = strlen(line);

	line[len] = '\n';
	/* Nobody can be told when stderr itself fails. */
	if (write(STDERR_FILENO, line, len + 1) < 0)
		return;
}

void log_write(enum log_level level, const char *area, const char *fmt, ...)
{
	va_list args;

	if (level > log_get_level())
		return;
	va_start(args, fmt);
	write_line(level, area, fmt, args);
	va_end(args);
}

void log_write_limited(struct log_limit *limit, enum log_level level, const char *area,
		       const char *fmt, ...)
{
	const uint64_t second = clock_ns() / UINT64_C(1000000000);
	va_list args;

	if (level > log_get_level())
		return;
	if (limit->second != second) {
		if (limit->left_out)
			log_write(level, area, "(%u similar messages left out)", limit->left_out);
		*limit = (struct log_limit){.second = second};
	}
	if (limit->passed == LINES_PER_SECOND) {
		limit->left_out++;
		return;
	}
	limit->passed++;
	va_start(args, fmt);
	write_line(level, area, fmt, args);
	va_end(args);
}
