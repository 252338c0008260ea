/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command grammar: what parses to what, what is refused and with which words, and that the
 * table of commands is sound.
 */
#include <ctype.h>
#include <errno.h>

#include "control/protocol.h"
#include "unit/unit.h"

#define WORDS_MAX 40

/* A command line in one text, split at blanks. */
struct words {
	char text[2048];
	const char *word[WORDS_MAX];
	unsigned int n;
};

static void split(struct words *w, const char *text)
{
	char *save;

	snprintf(w->text, sizeof(w->text), "%s", text);
	w->n = 0;
	for (char *p = strtok_r(w->text, " ", &save); p && w->n < WORDS_MAX;
	     p = strtok_r(NULL, " ", &save))
		w->word[w->n++] = p;
}

static int parse(struct words *w, const char *text, struct command_line *line, struct refusal *why)
{
	int error;

	split(w, text);
	why->text[0] = '\0';
	error = command_parse(w->word, w->n, line, why);
	if (error)
		CU_ASSERT_NOT_EQUAL(why->text[0], '\0');
	return error;
}

static void finds_commands(void)
{
	static const struct {
		const char *text;
		enum command_id id;
	} good[] = {
	    {"port add p1 vhost-user /run/a.sock", CMD_PORT_ADD_VHOST_USER},
	    {"port add p1 vhost-user a.sock client queues 4", CMD_PORT_ADD_VHOST_USER},
	    {"port add p1 vhost-user a.sock queues 4 server", CMD_PORT_ADD_VHOST_USER},
	    {"port add port vhost-user queues queues 2", CMD_PORT_ADD_VHOST_USER},
	    {"port add x af-xdp eth1", CMD_PORT_ADD_AF_XDP},
	    {"port add x af-xdp eth1 mode zero-copy queues 2", CMD_PORT_ADD_AF_XDP},
	    {"port del p1", CMD_PORT_DEL},
	    {"port show", CMD_PORT_SHOW},
	    {"port show show", CMD_PORT_SHOW},
	    {"fdb show", CMD_FDB_SHOW},
	    {"fdb add 02:00:00:00:00:0a p1", CMD_FDB_ADD},
	    {"fdb del 02-00-00-00-00-0A", CMD_FDB_DEL},
	    {"fdb flush", CMD_FDB_FLUSH},
	    {"fdb flush p1", CMD_FDB_FLUSH},
	    {"fdb stats", CMD_FDB_STATS},
	    {"stats", CMD_STATS},
	    {"stats p1", CMD_STATS},
	    {"worker show", CMD_WORKER_SHOW},
	    {"log level debug", CMD_LOG_LEVEL},
	    {"version", CMD_VERSION},
	    {"help", CMD_HELP},
	    {"help port add and anything", CMD_HELP},
	};
	struct command_line line;
	struct refusal why;
	struct words w;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		const int error = parse(&w, good[i].text, &line, &why);

		if (error)
			printf("%s: %s\n", good[i].text, why.text);
		CU_ASSERT_EQUAL_FATAL(error, 0);
		CU_ASSERT_EQUAL(line.command->id, good[i].id);
	}
}

static void binds_arguments(void)
{
	struct command_line line;
	struct refusal why;
	struct words w;

	CU_ASSERT_EQUAL_FATAL(parse(&w, "port add p1 vhost-user a.sock", &line, &why), 0);
	CU_ASSERT_STRING_EQUAL(command_arg(&line, "NAME"), "p1");
	CU_ASSERT_STRING_EQUAL(command_arg(&line, "PATH"), "a.sock");
	CU_ASSERT_PTR_NULL(command_arg(&line, "server|client"));
	CU_ASSERT_PTR_NULL(command_arg(&line, "queues"));
	CU_ASSERT_EQUAL(command_number(&line, "queues", 7), 7);

	CU_ASSERT_EQUAL_FATAL(
	    parse(&w, "port add p1 vhost-user b.sock queues 16 client", &line, &why), 0);
	CU_ASSERT_STRING_EQUAL(command_arg(&line, "server|client"), "client");
	CU_ASSERT_EQUAL(command_number(&line, "queues", 7), 16);

	CU_ASSERT_EQUAL_FATAL(parse(&w, "port add x af-xdp eth1 mode native", &line, &why), 0);
	CU_ASSERT_STRING_EQUAL(command_arg(&line, "DEV"), "eth1");
	CU_ASSERT_STRING_EQUAL(command_arg(&line, "mode"), "native");

	CU_ASSERT_EQUAL_FATAL(parse(&w, "help port add", &line, &why), 0);
	CU_ASSERT_EQUAL_FATAL(line.nrest, 2);
	CU_ASSERT_STRING_EQUAL(line.rest[0], "port");
	CU_ASSERT_STRING_EQUAL(line.rest[1], "add");
}

static void refuses_with_a_hint(void)
{
	static const struct {
		const char *text;
		const char *hint;
	} bad[] = {
	    {"", "expected port, fdb"},
	    {"prot show", "did you mean \"port\""},
	    {"stast", "did you mean \"stats\""},
	    {"ver", "did you mean \"version\""},
	    {"port", "add, del or show"},
	    {"port shwo", "did you mean \"show\""},
	    {"port remove p1", "expected add, del or show"},
	    {"port add", "expected NAME"},
	    {"port add p1", "vhost-user or af-xdp"},
	    {"port add p1 vhost", "did you mean \"vhost-user\""},
	    {"port add p1 afxdp e", "did you mean \"af-xdp\""},
	    {"port add p1 tap t0", "expected vhost-user or af-xdp"},
	    {"port add p1 vhost-user", "expected PATH"},
	    {"port add p1 vhost-user a clinet", "did you mean \"client\""},
	    {"port add p1 vhost-user a b c", "unexpected word \"b\""},
	    {"port add p1 vhost-user a queues", "needs a value"},
	    {"port add p1 vhost-user a queues 0", "\"0\""},
	    {"port add p1 vhost-user a queues 1k", "\"1k\""},
	    {"port add p1 vhost-user a queues -1", "\"-1\""},
	    {"port add p1 vhost-user a queues 0x2", "\"0x2\""},
	    {"port add p1 vhost-user a queues 99999999999999999999999", "decimal number"},
	    {"port add p1 vhost-user a queues 2 queues 2", "only once"},
	    {"port add p1 vhost-user a server client", "only once"},
	    {"port add x af-xdp eth1 mode", "needs a value"},
	    {"port add x af-xdp eth1 mode fast", "not one of auto"},
	    {"port add x af-xdp eth123456789012345", "network device"},
	    {"port add x af-xdp ../eth1", "network device"},
	    {"port show a b", "unexpected word \"b\""},
	    {"fdb add 02:00:00:00:00 p1", "Ethernet address"},
	    {"fdb add ff:ff:ff:ff:ff:ff p1", "one station"},
	    {"fdb add 00:00:00:00:00:00 p1", "one station"},
	    {"fdb del p1", "Ethernet address"},
	    {"log level loud", "error, warn, info or debug"},
	    {"version now", "unexpected word"},
	};
	struct command_line line;
	struct refusal why;
	struct words w;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const int error = parse(&w, bad[i].text, &line, &why);

		if (error != -EINVAL || !strstr(why.text, bad[i].hint))
			printf("%s: %d %s\n", bad[i].text, error, why.text);
		CU_ASSERT_EQUAL(error, -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, bad[i].hint));
	}
}

static void says_which_command_was_meant(void)
{
	struct command_line line;
	struct refusal why;
	struct words w;

	CU_ASSERT_NOT_EQUAL(parse(&w, "port add p vhost-user", &line, &why), 0);
	CU_ASSERT_PTR_EQUAL(line.command, command_get(CMD_PORT_ADD_VHOST_USER));
	CU_ASSERT_NOT_EQUAL(parse(&w, "log level x", &line, &why), 0);
	CU_ASSERT_PTR_EQUAL(line.command, command_get(CMD_LOG_LEVEL));
	CU_ASSERT_NOT_EQUAL(parse(&w, "port", &line, &why), 0);
	CU_ASSERT_PTR_NULL(line.command);
}

static void refuses_too_many_and_empty_words(void)
{
	const char *word[COMMAND_WORDS_MAX + 1] = {"port", "show", ""};
	struct command_line line;
	struct refusal why;

	CU_ASSERT_EQUAL(command_parse(word, 3, &line, &why), -EINVAL);
	word[0] = "";
	CU_ASSERT_EQUAL(command_parse(word, 1, &line, &why), -EINVAL);
	for (unsigned int i = 0; i <= COMMAND_WORDS_MAX; i++)
		word[i] = "help";
	CU_ASSERT_EQUAL(command_parse(word, COMMAND_WORDS_MAX, &line, &why), 0);
	CU_ASSERT_EQUAL(command_parse(word, COMMAND_WORDS_MAX + 1, &line, &why), -EINVAL);
}

static void survives_long_words(void)
{
	char text[2000];
	const char *word[4] = {"port", text, "x", text};
	struct command_line line;
	struct refusal why;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_EQUAL(command_parse(word, 2, &line, &why), -EINVAL);
	word[1] = "show";
	CU_ASSERT_EQUAL(command_parse(word, 4, &line, &why), -EINVAL);
	CU_ASSERT_TRUE(strlen(why.text) < sizeof(why.text));
}

/* A word that fits the pattern's token: the first choice, or a sample of the type. */
static const char *sample(const char *token, char out[32])
{
	static const char *const samples[][2] = {
	    {"NAME", "p1"}, {"PATH", "a.sock"}, {"DEV", "eth1"},         {"N", "2"},
	    {"WORD", "w"},  {"LEVEL", "info"},  {"MAC", "02:0:0:0:0:1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		if (strcmp(token, samples[i][0]) == 0)
			return strcmp(token, "MAC") == 0 ? "02:00:00:00:00:01" : samples[i][1];
	CU_ASSERT_FALSE(isupper((unsigned char)token[0]));
	snprintf(out, 32, "%.*s", (int)strcspn(token, "|"), token);
	return out;
}

/* Every pattern, with all its optional parts, is parsed as itself: no type is unknown. */
static void every_pattern_parses_as_itself(void)
{
	for (unsigned int id = 0; id < CMD_COUNT; id++) {
		const struct command *c = command_get((enum command_id)id);
		char pattern[256], word[WORDS_MAX][32], *save;
		const char *pointer[WORDS_MAX];
		struct command_line line;
		struct refusal why;
		unsigned int n = 0;

		CU_ASSERT_EQUAL(c->id, id);
		snprintf(pattern, sizeof(pattern), "%s", c->pattern);
		for (char *t = strtok_r(pattern, " []", &save); t && n < WORDS_MAX;
		     t = strtok_r(NULL, " []", &save)) {
			t[strcspn(t, ".")] = '\0';
			pointer[n] = sample(t, word[n]);
			n++;
		}
		CU_ASSERT_EQUAL(command_parse(pointer, n, &line, &why), 0);
		CU_ASSERT_PTR_EQUAL(line.command, c);
	}
}

static void every_command_is_described(void)
{
	for (unsigned int id = 0; id < CMD_COUNT; id++) {
		const struct command *c = command_get((enum command_id)id);
		const size_t len = strlen(c->details);

		CU_ASSERT_TRUE(islower((unsigned char)c->summary[0]));
		CU_ASSERT_TRUE(len == 0 || c->details[len - 1] == '\n');
		for (const char *p = c->details; *p; p += strcspn(p, "\n") + 1)
			CU_ASSERT_TRUE(strcspn(p, "\n") <= 78);
	}
}

static void begins_with(void)
{
	const char *const port_add[] = {"port", "add"};
	const char *const kind[] = {"port", "add", "af-xdp"};
	const char *const wrong[] = {"port", "sub"};
	const struct command *c = command_get(CMD_PORT_ADD_AF_XDP);

	CU_ASSERT_TRUE(command_begins_with(c, NULL, 0));
	CU_ASSERT_TRUE(command_begins_with(c, port_add, 2));
	CU_ASSERT_TRUE(command_begins_with(c, kind, 3));
	CU_ASSERT_FALSE(command_begins_with(c, wrong, 2));
	CU_ASSERT_FALSE(command_begins_with(command_get(CMD_PORT_ADD_VHOST_USER), kind, 3));
	CU_ASSERT_FALSE(command_begins_with(command_get(CMD_STATS), port_add, 1));
}

static void numbers_are_strict(void)
{
	static const char *const bad[] = {"",    " 1",  "1 ",  "+1",       "-1", "1k",
					  "0x1", "1.0", "1e3", "\xd9\xa1", "1\n"};
	uint64_t n = 42;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CU_ASSERT_EQUAL(number_parse(bad[i], 0, UINT64_MAX, &n), -EINVAL);
	CU_ASSERT_EQUAL(number_parse("18446744073709551616", 0, UINT64_MAX, &n), -ERANGE);
	CU_ASSERT_EQUAL(number_parse("99999999999999999999999", 0, UINT64_MAX, &n), -ERANGE);
	CU_ASSERT_EQUAL(number_parse("9", 10, 20, &n), -ERANGE);
	CU_ASSERT_EQUAL(number_parse("21", 10, 20, &n), -ERANGE);
	CU_ASSERT_EQUAL(n, 42);
	CU_ASSERT_EQUAL(number_parse("18446744073709551615", 0, UINT64_MAX, &n), 0);
	CU_ASSERT_EQUAL(n, UINT64_MAX);
	CU_ASSERT_EQUAL(number_parse("0010", 10, 20, &n), 0);
	CU_ASSERT_EQUAL(n, 10);
}

static void suggests_the_nearest(void)
{
	static const char *const word[] = {"port", "fdb", "stats", "worker", "p1"};
	const unsigned int n = ARRAY_LEN(word);

	CU_ASSERT_STRING_EQUAL(nearest_word("prot", word, n), "port");
	CU_ASSERT_STRING_EQUAL(nearest_word("stat", word, n), "stats");
	CU_ASSERT_STRING_EQUAL(nearest_word("wroker", word, n), "worker");
	CU_ASSERT_STRING_EQUAL(nearest_word("w", word, n), "worker");
	CU_ASSERT_STRING_EQUAL(nearest_word("fbd", word, n), "fdb");
	CU_ASSERT_PTR_NULL(nearest_word("xyzzy", word, n));
	CU_ASSERT_PTR_NULL(nearest_word("p2", word, n));
	CU_ASSERT_PTR_NULL(nearest_word("", word, n));
	CU_ASSERT_PTR_NULL(
	    nearest_word("a word that is much longer than any of the list is", word, n));
	CU_ASSERT_PTR_NULL(nearest_word("port", NULL, 0));
}

static void escapes_for_terminals(void)
{
	static const char *const pairs[][2] = {
	    {"plain", "plain"},
	    {"a\x1b[31m", "a\\x1b[31m"},
	    {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
	    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	    {"\xe2\x82\xac", "\xe2\x82\xac"},
	    {"\xc2\x9b"
	     "31m",
	     "\\xc2\\x9b31m"},
	    {"\xff\xc3", "\\xff\\xc3"},
	    {"\xc0\xaf", "\\xc0\\xaf"},
	};
	char out[64], small[8];

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		CU_ASSERT_STRING_EQUAL(text_escape(pairs[i][0], out, sizeof(out)), pairs[i][1]);
	CU_ASSERT_STRING_EQUAL(text_escape("abcdefgh", small, sizeof(small)), "abcd");
	CU_ASSERT_STRING_EQUAL(text_escape("\x01\x01", small, sizeof(small)), "\\x01");
}

static const struct unit_case cases[] = {
    UNIT_CASE(finds_commands),
    UNIT_CASE(binds_arguments),
    UNIT_CASE(refuses_with_a_hint),
    UNIT_CASE(says_which_command_was_meant),
    UNIT_CASE(refuses_too_many_and_empty_words),
    UNIT_CASE(survives_long_words),
    UNIT_CASE(every_pattern_parses_as_itself),
    UNIT_CASE(every_command_is_described),
    UNIT_CASE(begins_with),
    UNIT_CASE(numbers_are_strict),
    UNIT_CASE(suggests_the_nearest),
    UNIT_CASE(escapes_for_terminals),
};
UNIT_MAIN("command", cases)
