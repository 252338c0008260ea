/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command table and the parser that is driven by it.
 *
 * A pattern is a list of tokens: first the ones that must be there, then bracketed groups of one
 * or two. Parsing has two steps. select_command() walks the words and, in step, the required
 * tokens of all commands at once, keeping a set of those that still fit. The word at which the
 * set becomes empty is the wrong one, and the tokens that were possible there are what to
 * suggest. bind_words() then takes the one command left and binds words to its tokens, checking
 * each value by its type.
 *
 * No pattern's required tokens may be the beginning of another's (a unit test holds the table to
 * this), so that the set never has to be decided by what follows.
 *
 * Rejected: a tree of nodes built at start (needs memory and a builder, and the usage lines
 * would be a second place to keep); abbreviations as ip(8) has them (a script written today must
 * mean the same when a command is added tomorrow); getopt-style options for arguments.
 *
 * No allocation and no state: everything points into the caller's words or into the table.
 */
#include "control/protocol.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mac.h"

_Static_assert(CMD_COUNT <= 64, "sets of commands are 64-bit masks");

#define KIND_ROW(kind, symbol, word, args, text, more)                                             \
	[CMD_PORT_ADD_##kind] = {                                                                  \
	    .id = CMD_PORT_ADD_##kind,                                                             \
	    .effect = COMMAND_CHANGES,                                                             \
	    .pattern = "port add NAME " word " " args,                                             \
	    .summary = text,                                                                       \
	    .details = more,                                                                       \
	},
#define COMMAND_ROW(id_, handler, effect_, pattern_, text, more)                                   \
	[CMD_##id_] = {                                                                            \
	    .id = CMD_##id_,                                                                       \
	    .effect = COMMAND_##effect_,                                                           \
	    .pattern = pattern_,                                                                   \
	    .summary = text,                                                                       \
	    .details = more,                                                                       \
	},

static const struct command commands[] = {PORT_KINDS(KIND_ROW) COMMANDS(COMMAND_ROW)};

/* ---- values ---- */

#define DEVICE_NAME_MAX 15

static bool value_any(const char *text)
{
	return text[0] != '\0';
}

static bool value_device(const char *text)
{
	const size_t len = strlen(text);

	if (len == 0 || len > DEVICE_NAME_MAX || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return false;
	for (const char *c = text; *c; c++)
		if (*c == '/' || *c == ':' || isspace((unsigned char)*c))
			return false;
	return true;
}

static bool value_number(const char *text)
{
	uint64_t n;

	return number_parse(text, 1, UINT32_MAX, &n) == 0;
}

static bool value_mac(const char *text)
{
	struct mac mac;

	return mac_parse(text, &mac) == 0 && !mac_is_group(&mac) && mac_to_u64(&mac) != 0;
}

static bool value_level(const char *text)
{
	enum log_level level;

	return log_level_parse(text, &level) == 0;
}

/*      word in patterns, check, what it must be */
#define VALUE_TYPES(X)                                                                             \
	X("NAME", value_any, "the name of a port")                                                 \
	X("PATH", value_any, "the path of a socket")                                               \
	X("DEV", value_device, "the name of a network device, at most 15 characters")              \
	X("N", value_number, "a decimal number from 1 on")                                         \
	X("MAC", value_mac, "the Ethernet address of one station, like 02:00:00:00:00:0a")         \
	X("LEVEL", value_level, "error, warn, info or debug")                                      \
	X("WORD", value_any, "a word")

struct value_type {
	const char *word;
	bool (*ok)(const char *text);
	const char *must_be;
};

static const struct value_type value_types[] = {
#define X(word, ok, must_be) {word, ok, must_be},
    VALUE_TYPES(X)
#undef X
};

/* ---- patterns ---- */

struct token {
	const char *text; /* NULL: no more */
	size_t len;
	bool opens;  /* first of a bracketed group */
	bool closes; /* last of it */
	bool rest;   /* takes all words to the end */
};

/* Takes the token at *pos and advances behind it. */
static struct token token_next(const char **pos)
{
	struct token t = {.opens = false};
	const char *p = *pos;

	while (*p == ' ')
		p++;
	if (*p == '[') {
		t.opens = true;
		p++;
	}
	if (*p) {
		t.text = p;
		t.len = strcspn(p, " ]");
		p += t.len;
	}
	if (*p == ']') {
		t.closes = true;
		p++;
	}
	if (t.len > 3 && memcmp(t.text + t.len - 3, "...", 3) == 0) {
		t.rest = true;
		t.len -= 3;
	}
	*pos = p;
	return t;
}

/* The n-th token that must be there; .text is NULL when there are not that many. */
static struct token token_required(const struct command *c, unsigned int n)
{
	const char *pos = c->pattern;
	struct token t = token_next(&pos);

	for (; n > 0 && t.text && !t.opens; n--)
		t = token_next(&pos);
	if (t.opens)
		t.text = NULL;
	return t;
}

static bool token_is_value(const struct token *t)
{
	return isupper((unsigned char)t->text[0]);
}

/* The token as a name of an argument. */
static bool token_named(const char *name, size_t len, const char *wanted)
{
	return strlen(wanted) == len && memcmp(name, wanted, len) == 0;
}

/* `word` is the token's word or one of its a|b|c. */
static bool token_has_word(const struct token *t, const char *word)
{
	const size_t len = strlen(word);
	const char *end = t->text + t->len;

	for (const char *p = t->text; p <= end;) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		const char *stop = bar ? bar : end;

		if ((size_t)(stop - p) == len && memcmp(p, word, len) == 0)
			return true;
		p = stop + 1;
	}
	return false;
}

static bool token_fits(const struct token *t, const char *word)
{
	return token_is_value(t) || token_has_word(t, word);
}

/* Checks a word against a token that names a type or lists choices. */
static int token_check(const struct token *t, const char *word, struct refusal *why)
{
	if (!token_is_value(t)) {
		if (token_has_word(t, word))
			return 0;
		return refuse(why, -EINVAL, "\"%s\" is not one of %.*s", word, (int)t->len,
			      t->text);
	}
	for (unsigned int i = 0; i < ARRAY_LEN(value_types); i++) {
		const struct value_type *type = &value_types[i];

		if (!token_named(t->text, t->len, type->word))
			continue;
		if (type->ok(word))
			return 0;
		return refuse(why, -EINVAL, "\"%s\" is not %s", word, type->must_be);
	}
	return refuse(why, -EINVAL, "\"%.*s\" is not a type of value", (int)t->len, t->text);
}

/* ---- step 1: which command ---- */

struct choice {
	const char *word[CMD_COUNT];
	char copy[CMD_COUNT][16];
	unsigned int n;
};

/* The words (not values) that the commands of the set allow at `pos`, each once. */
static void choices_at(uint64_t set, unsigned int pos, struct choice *out)
{
	out->n = 0;
	for (unsigned int id = 0; id < CMD_COUNT; id++) {
		const struct token t = token_required(&commands[id], pos);
		char *copy = out->copy[out->n];
		unsigned int i = 0;

		if (!(set & UINT64_C(1) << id) || !t.text || token_is_value(&t))
			continue;
		snprintf(copy, sizeof(out->copy[0]), "%.*s", (int)t.len, t.text);
		while (i < out->n && strcmp(out->word[i], copy) != 0)
			i++;
		if (i == out->n)
			out->word[out->n++] = copy;
	}
}

static void join_choices(const struct choice *c, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned int i = 0; i < c->n && used < size; i++) {
		const char *between = i == 0 ? "" : i + 1 < c->n ? ", " : " or ";
		const int n = snprintf(out + used, size - used, "%s%s", between, c->word[i]);

		used += n > 0 ? (size_t)n : 0;
	}
}

static int refuse_word(uint64_t set, const char *const word[], unsigned int pos,
		       struct refusal *why)
{
	struct choice choice;
	const char *nearest;
	char list[200];

	choices_at(set, pos, &choice);
	nearest = nearest_word(word[pos], choice.word, choice.n);
	if (nearest)
		return refuse(why, -EINVAL, "unknown word \"%s\": did you mean \"%s\"?", word[pos],
			      nearest);
	join_choices(&choice, list, sizeof(list));
	return refuse(why, -EINVAL, "unknown word \"%s\": expected %s", word[pos], list);
}

static int refuse_short(uint64_t set, const char *const word[], unsigned int n, struct refusal *why)
{
	struct choice choice;
	char list[200];

	choices_at(set, n, &choice);
	if (choice.n > 0) {
		join_choices(&choice, list, sizeof(list));
	} else {
		const struct command *c = &commands[__builtin_ctzll(set)];
		const struct token t = token_required(c, n);

		snprintf(list, sizeof(list), "%.*s", (int)t.len, t.text);
	}
	if (n == 0)
		return refuse(why, -EINVAL, "no command: expected %s", list);
	return refuse(why, -EINVAL, "incomplete command: expected %s after \"%s\"", list,
		      word[n - 1]);
}

/*
 * Returns the command, or NULL with the reason. *known: the command that is meant although
 * something is missing, or NULL.
 */
static const struct command *select_command(const char *const word[], unsigned int n,
					    const struct command **known, struct refusal *why)
{
	uint64_t set = (UINT64_C(1) << CMD_COUNT) - 1;

	for (unsigned int pos = 0;; pos++) {
		uint64_t fitting = 0;

		*known = (set & (set - 1)) ? NULL : &commands[__builtin_ctzll(set)];
		for (unsigned int id = 0; id < CMD_COUNT; id++) {
			if (!(set & UINT64_C(1) << id))
				continue;
			const struct token t = token_required(&commands[id], pos);

			if (!t.text)
				return &commands[id];
			if (pos < n && token_fits(&t, word[pos]))
				fitting |= UINT64_C(1) << id;
		}
		if (pos == n) {
			refuse_short(set, word, n, why);
			return NULL;
		}
		if (!fitting) {
			refuse_word(set, word, pos, why);
			return NULL;
		}
		set = fitting;
	}
}

/* ---- step 2: its arguments ---- */

struct group {
	struct token first;
	struct token value; /* .text NULL: a group of one token */
	bool used;
};

static int bind_arg(struct command_line *line, const struct token *name, const struct token *type,
		    const char *word, struct refusal *why)
{
	const int error = token_check(type, word, why);

	if (error)
		return error;
	if (line->nargs == COMMAND_ARGS_MAX)
		return refuse(why, -EINVAL, "too many arguments");
	line->arg[line->nargs++] = (struct command_arg){
	    .name = name->text,
	    .name_len = name->len,
	    .value = word,
	};
	return 0;
}

static unsigned int read_groups(const char *pos, struct group group[COMMAND_ARGS_MAX])
{
	unsigned int n = 0;

	while (n < COMMAND_ARGS_MAX) {
		struct token t = token_next(&pos);

		if (!t.text)
			break;
		group[n] = (struct group){.first = t};
		if (!t.closes)
			group[n].value = token_next(&pos);
		n++;
	}
	return n;
}

/* The group that takes the word. Words come before values: a value would take anything. */
static struct group *find_group(struct group *group, unsigned int n, const char *word)
{
	for (unsigned int i = 0; i < n; i++)
		if (!token_is_value(&group[i].first) && token_has_word(&group[i].first, word))
			return &group[i];
	for (unsigned int i = 0; i < n; i++)
		if (token_is_value(&group[i].first) && !group[i].used)
			return &group[i];
	return NULL;
}

static int refuse_extra(const struct group *group, unsigned int n, const char *word,
			struct refusal *why)
{
	const char *possible[COMMAND_ARGS_MAX * 4];
	char copy[COMMAND_ARGS_MAX * 4][16];
	const char *nearest;
	unsigned int count = 0;

	for (unsigned int i = 0; i < n; i++) {
		const char *p = group[i].first.text, *end = p + group[i].first.len;

		while (!token_is_value(&group[i].first) && p < end && count < ARRAY_LEN(copy)) {
			const char *bar = memchr(p, '|', (size_t)(end - p));
			const char *stop = bar ? bar : end;

			snprintf(copy[count], sizeof(copy[0]), "%.*s", (int)(stop - p), p);
			possible[count] = copy[count];
			count++;
			p = stop + 1;
		}
	}
	nearest = nearest_word(word, possible, count);
	if (nearest)
		return refuse(why, -EINVAL, "unexpected word \"%s\": did you mean \"%s\"?", word,
			      nearest);
	return refuse(why, -EINVAL, "unexpected word \"%s\" at the end of the command", word);
}

/* Binds the group that starts at word[0]; returns how many words it took, or negative. */
static int bind_group(struct command_line *line, struct group *g, const char *const word[],
		      unsigned int n, struct refusal *why)
{
	int error;

	if (g->used)
		return refuse(why, -EINVAL, "\"%s\": %.*s can be given only once", word[0],
			      (int)g->first.len, g->first.text);
	g->used = true;
	if (g->first.rest) {
		line->rest = word;
		line->nrest = n;
		return (int)n;
	}
	if (!g->value.text) {
		error = bind_arg(line, &g->first, &g->first, word[0], why);
		return error ? error : 1;
	}
	if (n < 2)
		return refuse(why, -EINVAL, "\"%s\" needs a value: %.*s", word[0],
			      (int)g->value.len, g->value.text);
	error = bind_arg(line, &g->first, &g->value, word[1], why);
	return error ? error : 2;
}

static int bind_words(struct command_line *line, const char *const word[], unsigned int n,
		      struct refusal *why)
{
	const char *pos = line->command->pattern, *before = pos;
	struct group group[COMMAND_ARGS_MAX];
	unsigned int i = 0, ngroups;

	for (struct token t = token_next(&pos); t.text && !t.opens; t = token_next(&pos)) {
		if (token_is_value(&t)) {
			const int error = bind_arg(line, &t, &t, word[i], why);

			if (error)
				return error;
		}
		i++;
		before = pos;
	}
	ngroups = read_groups(before, group);
	while (i < n) {
		struct group *g = find_group(group, ngroups, word[i]);
		int taken;

		if (!g)
			return refuse_extra(group, ngroups, word[i], why);
		taken = bind_group(line, g, word + i, n - i, why);
		if (taken < 0)
			return taken;
		i += (unsigned int)taken;
	}
	return 0;
}

/* ---- contract ---- */

const struct command *command_get(enum command_id id)
{
	return &commands[id];
}

bool command_begins_with(const struct command *c, const char *const word[], unsigned int n)
{
	unsigned int pos = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct token t = token_required(c, pos++);

		/* "port add vhost-user": the name between may be left out. */
		while (t.text && token_is_value(&t))
			t = token_required(c, pos++);
		if (!t.text || !token_has_word(&t, word[i]))
			return false;
	}
	return true;
}

int command_parse(const char *const word[], unsigned int n, struct command_line *out,
		  struct refusal *why)
{
	const struct command *known, *selected;

	*out = (struct command_line){.command = NULL};
	if (n > COMMAND_WORDS_MAX)
		return refuse(why, -EINVAL, "too many words: a command has at most %u",
			      COMMAND_WORDS_MAX);
	selected = select_command(word, n, &known, why);
	out->command = selected ? selected : known;
	return selected ? bind_words(out, word, n, why) : -EINVAL;
}

const char *command_arg(const struct command_line *line, const char *name)
{
	for (unsigned int i = 0; i < line->nargs; i++) {
		const struct command_arg *arg = &line->arg[i];

		if (token_named(arg->name, arg->name_len, name))
			return arg->value;
	}
	return NULL;
}

uint64_t command_number(const struct command_line *line, const char *name, uint64_t fallback)
{
	const char *text = command_arg(line, name);
	uint64_t value;

	return text && number_parse(text, 0, UINT64_MAX, &value) == 0 ? value : fallback;
}

/* ---- texts ---- */

int refuse(struct refusal *why, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
	why->placed = false;
	return error;
}

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
			return -ERANGE;
	}
	if (value < min || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

#define NEAREST_LEN_MAX 31u

/* Edits (insert, delete, replace, swap neighbours) that turn a into b. */
static unsigned int edit_distance(const char *a, size_t la, const char *b, size_t lb)
{
	unsigned int d[NEAREST_LEN_MAX + 1][NEAREST_LEN_MAX + 1];

	for (unsigned int i = 0; i <= la; i++)
		d[i][0] = i;
	for (unsigned int j = 0; j <= lb; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			const unsigned int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = MIN(replace, MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[la][lb];
}

const char *nearest_word(const char *text, const char *const word[], unsigned int n)
{
	const size_t len = strlen(text);
	const char *best = NULL;
	unsigned int best_distance = UINT32_MAX;

	if (len == 0 || len > NEAREST_LEN_MAX)
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		const size_t word_len = strlen(word[i]);
		unsigned int distance;

		if (word_len > NEAREST_LEN_MAX)
			continue;
		if (len < word_len && strncmp(text, word[i], len) == 0)
			return word[i];
		distance = edit_distance(text, len, word[i], word_len);
		if (distance <= word_len / 3 && distance < word_len && distance < best_distance) {
			best_distance = distance;
			best = word[i];
		}
	}
	return best;
}

/* Bytes of the well-formed, printable UTF-8 character at s, or 0. */
static size_t printable_len(const unsigned char *s)
{
	size_t len;

	if (s[0] < 0x80)
		return s[0] >= ' ' && s[0] != 0x7f;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* U+0080..U+009F are control characters. */
	return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : len;
}

char *text_escape(const char *text, char *out, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t used = 0;

	while (*s && used + 5 <= size) {
		const size_t len = printable_len(s);

		if (len) {
			memcpy(out + used, s, len);
			used += len;
			s += len;
		} else {
			snprintf(out + used, size - used, "\\x%02x", *s++);
			used += 4;
		}
	}
	out[used] = '\0';
	return out;
}
