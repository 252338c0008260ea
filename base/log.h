/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines on stderr: "LEVEL area: text". Called by the control thread, and by libraries'
 * message callbacks; never by a worker (workers send events, control words them).
 *
 * A peer can provoke messages, so each log_limited() site passes at most 10 lines per second
 * and says how many it left out.
 */
#ifndef XVS_BASE_LOG_H
#define XVS_BASE_LOG_H

#include <stdint.h>

#include "base/compiler.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* One per log_limited() site, zero-initialised, static. Owner: the control thread. */
struct log_limit {
	uint64_t second; /* the second that `passed` counts for */
	unsigned int passed;
	unsigned int left_out;
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* "error", "warn", "info", "debug" <-> level; log_level_parse() returns 0 or -EINVAL. */
int log_level_parse(const char *word, enum log_level *out);
const char *log_level_name(enum log_level level);

void log_write(enum log_level level, const char *area, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* As log_write(), for messages that a guest, front-end or peer can cause. */
void log_write_limited(struct log_limit *limit, enum log_level level, const char *area,
		       const char *fmt, ...) PRINTF_LIKE(4, 5);

#define log_error(area, ...) log_write(LOG_LEVEL_ERROR, area, __VA_ARGS__)
#define log_warn(area, ...)  log_write(LOG_LEVEL_WARN, area, __VA_ARGS__)
#define log_info(area, ...)  log_write(LOG_LEVEL_INFO, area, __VA_ARGS__)
#define log_debug(area, ...) log_write(LOG_LEVEL_DEBUG, area, __VA_ARGS__)

#define log_limited(level, area, ...)                                                              \
	do {                                                                                       \
		static struct log_limit limit_;                                                    \
		log_write_limited(&limit_, level, area, __VA_ARGS__);                              \
	} while (0)

#endif
