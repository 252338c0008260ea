/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a configuration file.
 *
 * The file is read into memory once, split in place, and every line parsed by the same grammar
 * as a command of xvsctl. What is applied is exactly what was checked, even if somebody edits
 * the file between the two.
 *
 * config_check() plays the commands against a list of requests instead of a switch, with the
 * functions that port_admin uses, so that a file which passes fails later only for reasons that
 * lie outside it: a missing device, a directory that cannot be written.
 *
 * The first wrong line ends it: later ones often are consequences.
 *
 * Rejected: a format with sections or JSON. Operators know the commands already, and
 * a line that was tried with xvsctl can be pasted.
 */
#include "control/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/port_kind.h"

struct config_line {
	unsigned int number;
	struct command_line command;
	const char *word[COMMAND_WORDS_MAX];
};

struct config {
	char *file;
	char *text;
	struct config_line **line;
	unsigned int count;
};

/* ---- words ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/*
 * Ends the word at *pos, taking quotes away, and advances behind it. Returns the word, NULL at
 * the end of the line or for an open quote (*open_quote).
 */
static char *next_word(char **pos, bool *open_quote)
{
	char *read = *pos, *word, *write;
	char quote = '\0';

	while (is_blank(*read))
		read++;
	*pos = read;
	if (*read == '\0' || *read == '#')
		return NULL;
	word = write = read;
	for (; *read && (quote || !is_blank(*read)); read++) {
		if (quote ? *read == quote : *read == '"' || *read == '\'')
			quote = quote ? '\0' : *read;
		else
			*write++ = *read;
	}
	*pos = *read ? read + 1 : read;
	*write = '\0';
	*open_quote = quote != '\0';
	return quote ? NULL : word;
}

static int split_line(char *text, struct config_line *line, unsigned int *nwords,
		      struct refusal *why)
{
	bool open_quote = false;
	char *word;

	*nwords = 0;
	while ((word = next_word(&text, &open_quote))) {
		if (*nwords == COMMAND_WORDS_MAX)
			return refuse(why, -EINVAL, "too many words: a command has at most %u",
				      COMMAND_WORDS_MAX);
		line->word[(*nwords)++] = word;
	}
	return open_quote ? refuse(why, -EINVAL, "a quote is not closed") : 0;
}

/* ---- reading ---- */

/* Puts "FILE:LINE: " before the reason. */
static int refuse_line(const struct config *config, unsigned int number, int error,
		       struct refusal *why)
{
	const struct refusal inner = *why;

	refuse(why, error, "%.200s:%u: %s", config->file, number, inner.text);
	why->placed = true;
	return error;
}

static int parse_line(const struct config_line *line, unsigned int nwords, struct command_line *out,
		      struct refusal *why)
{
	const int error = command_parse(line->word, nwords, out, why);

	if (error)
		return error;
	if (out->command->effect != COMMAND_CHANGES)
		return refuse(why, -EINVAL, "\"%s\" changes nothing: remove it from the file",
			      out->command->pattern);
	return 0;
}

/* Takes one line of text; empty ones and comments leave nothing. */
static int add_line(struct config *config, char *text, unsigned int number, struct refusal *why)
{
	struct config_line *line = calloc(1, sizeof(*line)), **grown;
	unsigned int nwords;
	int error;

	if (!line)
		return refuse(why, -ENOMEM, "out of memory");
	line->number = number;
	error = split_line(text, line, &nwords, why);
	if (!error && nwords > 0)
		error = parse_line(line, nwords, &line->command, why);
	if (error || nwords == 0)
		goto drop;
	grown = reallocarray(config->line, config->count + 1, sizeof(*grown));
	if (!grown) {
		error = refuse(why, -ENOMEM, "out of memory");
		goto drop;
	}
	config->line = grown;
	config->line[config->count++] = line;
	return 0;

drop:
	free(line);
	return error;
}

static int read_text(FILE *f, char **out, size_t *len)
{
	char *text = malloc(CONFIG_FILE_MAX + 1);
	size_t n;

	if (!text)
		return -ENOMEM;
	errno = 0;
	n = fread(text, 1, CONFIG_FILE_MAX + 1, f);
	if (ferror(f) || n > CONFIG_FILE_MAX) {
		const int error = n > CONFIG_FILE_MAX ? -EFBIG : -(errno ? errno : EIO);

		free(text);
		return error;
	}
	text[n] = '\0';
	*out = text;
	*len = n;
	return 0;
}

static int read_file(struct config *config, size_t *len, struct refusal *why)
{
	FILE *f = fopen(config->file, "re");
	int error;

	if (!f)
		return refuse(why, -errno, "cannot read configuration file %.200s: %s",
			      config->file, strerror(errno));
	error = read_text(f, &config->text, len);
	fclose(f);
	if (error == -EFBIG)
		return refuse(why, error, "configuration file %.200s has more than %u bytes",
			      config->file, CONFIG_FILE_MAX);
	if (error)
		return refuse(why, error, "cannot read configuration file %.200s: %s", config->file,
			      strerror(-error));
	return 0;
}

static int split_text(struct config *config, size_t len, struct refusal *why)
{
	char *const end = config->text + len;
	unsigned int number = 1;

	for (char *text = config->text; text < end; number++) {
		char *stop = memchr(text, '\n', (size_t)(end - text));
		int error = 0;

		if (!stop)
			stop = end;
		*stop = '\0';
		if (strlen(text) != (size_t)(stop - text))
			error = refuse(why, -EINVAL, "this is not text: it contains a NUL byte");
		if (!error)
			error = add_line(config, text, number, why);
		if (error)
			return refuse_line(config, number, error, why);
		text = stop + 1;
	}
	return 0;
}

int config_load(struct config **out, const char *file, struct refusal *why)
{
	struct config *config = calloc(1, sizeof(*config));
	size_t len = 0;
	int error;

	if (!config)
		return refuse(why, -ENOMEM, "out of memory");
	config->file = strdup(file);
	if (!config->file) {
		error = refuse(why, -ENOMEM, "out of memory");
		goto fail;
	}
	error = read_file(config, &len, why);
	if (!error)
		error = split_text(config, len, why);
	if (error)
		goto fail;
	*out = config;
	return 0;

fail:
	config_destroy(config);
	return error;
}

void config_destroy(struct config *config)
{
	if (!config)
		return;
	for (unsigned int i = 0; i < config->count; i++)
		free(config->line[i]);
	free(config->line);
	free(config->text);
	free(config->file);
	free(config);
}

unsigned int config_count(const struct config *config)
{
	return config->count;
}

int config_for_each(const struct config *config,
		    int (*fn)(void *ctx, const struct command_line *line, struct refusal *why),
		    void *ctx, struct refusal *why)
{
	for (unsigned int i = 0; i < config->count; i++) {
		const int error = fn(ctx, &config->line[i]->command, why);

		if (error)
			return refuse_line(config, config->line[i]->number, error, why);
	}
	return 0;
}

/* ---- checking ---- */

/* The ports that the lines so far would have made. */
struct plan {
	const char *run_dir;
	struct port_request *port;
	unsigned int count;
	unsigned int size;
};

static struct port_request *plan_find(const struct plan *plan, const char *name)
{
	for (unsigned int i = 0; i < plan->count; i++)
		if (strcmp(plan->port[i].name, name) == 0)
			return &plan->port[i];
	return NULL;
}

static int plan_add(struct plan *plan, const struct command_line *line, struct refusal *why)
{
	struct port_request req;
	int error = port_request_parse(line, plan->run_dir, &req, why);

	for (unsigned int i = 0; i < plan->count && !error; i++)
		error = port_request_conflict(&req, &plan->port[i], why);
	if (error)
		return error;
	if (plan->count == PORT_ID_MAX)
		return refuse(why, -ENOSPC, "more than %d ports", PORT_ID_MAX);
	if (plan->count == plan->size) {
		const unsigned int size = plan->size ? 2 * plan->size : 16;
		struct port_request *grown = reallocarray(plan->port, size, sizeof(*grown));

		if (!grown)
			return refuse(why, -ENOMEM, "out of memory");
		plan->port = grown;
		plan->size = size;
	}
	plan->port[plan->count++] = req;
	return 0;
}

/* A line that names a port needs an earlier one that adds it; "port del" takes it away. */
static int plan_name(struct plan *plan, const struct command_line *line, struct refusal *why)
{
	const char *name = command_arg(line, "NAME");
	struct port_request *req = name ? plan_find(plan, name) : NULL;

	if (name && !req)
		return refuse(why, -ENOENT, "no port \"%.100s\" has been added before this line",
			      name);
	if (req && line->command->id == CMD_PORT_DEL)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): req lies in plan->port */
		*req = plan->port[--plan->count];
	return 0;
}

static bool adds_port(enum command_id id)
{
#define X(kind, symbol, word, args, summary, details) || id == CMD_PORT_ADD_##kind
	return false PORT_KINDS(X);
#undef X
}

static int plan_line(void *ctx, const struct command_line *line, struct refusal *why)
{
	if (adds_port(line->command->id))
		return plan_add(ctx, line, why);
	return plan_name(ctx, line, why);
}

int config_check(const struct config *config, const char *run_dir, struct refusal *why)
{
	struct plan plan = {.run_dir = run_dir};
	const int error = config_for_each(config, plan_line, &plan, why);

	free(plan.port);
	return error;
}
