/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request lines of the control socket: whatever comes in, one JSON line goes out, with the id that
 * came in and either a result or an error that has a code and a reason. Commands that need no
 * switch are enough to see that.
 */
#include <errno.h>

#include "base/log.h"
#include "control/commands.h"
#include "unit/unit.h"

/* The answer, parsed; the caller drops it. */
static json_t *ask_bytes(const char *text, size_t len)
{
	struct command_target target = {.sw = NULL};
	char *line = malloc(len + 1), *reply;
	size_t reply_len = 0;
	json_t *root;

	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	memcpy(line, text, len);
	line[len] = '\0';
	reply = command_answer(&target, line, len, &reply_len);
	free(line);
	CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
	CU_ASSERT_EQUAL(reply_len, strlen(reply));
	CU_ASSERT_PTR_EQUAL(strchr(reply, '\n'), reply + reply_len - 1);
	root = json_loads(reply, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(root, "xvswitch")), 1);
	CU_ASSERT_PTR_NOT_NULL(json_object_get(root, "id"));
	free(reply);
	return root;
}

static json_t *ask(const char *text)
{
	return ask_bytes(text, strlen(text));
}

static void expect_error(const char *text, int code)
{
	json_t *root = ask(text);
	const json_t *error = json_object_get(root, "error");
	const char *message = json_string_value(json_object_get(error, "message"));

	if (json_integer_value(json_object_get(error, "code")) != code)
		printf("%.80s: %s\n", text, message ? message : "no error");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(error, "code")), code);
	CU_ASSERT_TRUE(message && message[0]);
	CU_ASSERT_PTR_NULL(json_object_get(root, "result"));
	json_decref(root);
}

static void answers_a_command(void)
{
	json_t *root = ask("{\"xvswitch\":1,\"id\":7,\"method\":\"command\","
			   "\"params\":{\"words\":[\"version\"]}}");
	const json_t *result = json_object_get(root, "result");

	CU_ASSERT_EQUAL(json_integer_value(json_object_get(root, "id")), 7);
	CU_ASSERT_PTR_NULL(json_object_get(root, "error"));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(result, "version")), XVS_VERSION);
	json_decref(root);
}

static void carries_it_out(void)
{
	const enum log_level before = log_get_level();
	json_t *root = ask("{\"xvswitch\":1,\"id\":\"x\",\"method\":\"command\","
			   "\"params\":{\"words\":[\"log\",\"level\",\"error\"]}}\r");

	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(root, "id")), "x");
	CU_ASSERT_EQUAL(log_get_level(), LOG_LEVEL_ERROR);
	log_set_level(before);
	json_decref(root);
}

static void refuses_what_is_not_a_request(void)
{
	expect_error("", -EBADMSG);
	expect_error("port show", -EBADMSG);
	expect_error("{", -EBADMSG);
	expect_error("\xff\xfe", -EBADMSG);
	expect_error("{} {}", -EBADMSG);
	expect_error("{\"id\":1,\"id\":2}", -EBADMSG);
	expect_error("[1,2]", -EBADMSG);
	expect_error("{}", -EPROTO);
	expect_error("{\"xvswitch\":2,\"method\":\"command\"}", -EPROTO);
	expect_error("{\"xvswitch\":\"1\",\"method\":\"command\"}", -EPROTO);
	expect_error("{\"xvswitch\":1}", -EOPNOTSUPP);
	expect_error("{\"xvswitch\":1,\"method\":\"shutdown\"}", -EOPNOTSUPP);
}

#define COMMAND(params) "{\"xvswitch\":1,\"id\":1,\"method\":\"command\",\"params\":" params "}"

static void refuses_bad_words(void)
{
	expect_error(COMMAND("null"), -EINVAL);
	expect_error(COMMAND("{}"), -EINVAL);
	expect_error(COMMAND("{\"words\":\"version\"}"), -EINVAL);
	expect_error(COMMAND("{\"words\":[]}"), -EINVAL);
	expect_error(COMMAND("{\"words\":[1]}"), -EINVAL);
	expect_error(COMMAND("{\"words\":[\"version\",null]}"), -EINVAL);
	expect_error(COMMAND("{\"words\":[\"vers\"]}"), -EINVAL);
	expect_error(COMMAND("{\"words\":[\"version\\u0000\"]}"), -EBADMSG);
	expect_error(COMMAND("{\"words\":[\"help\"]}"), -EOPNOTSUPP);
	expect_error(COMMAND("{\"words\":[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
			     "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
			     "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]}"),
		     -EINVAL);
}

/* Reasons are cut to a fixed size: a character of several bytes may be cut in two. */
static void long_words_give_valid_answers(void)
{
	char text[2048], word[1024];

	for (size_t shift = 0; shift < 3; shift++) {
		size_t n = 0;

		memset(word, 'x', shift);
		for (n = shift; n + 3 < sizeof(word); n += 3)
			memcpy(word + n, "\xe2\x82\xac", 3);
		word[n] = '\0';
		snprintf(text, sizeof(text), COMMAND("{\"words\":[\"port\",\"%s\"]}"), word);
		expect_error(text, -EINVAL);
	}
}

static void survives_deep_nesting(void)
{
	static char deep[60000];

	memset(deep, '[', sizeof(deep) - 1);
	expect_error(deep, -EBADMSG);
}

static void too_long_is_answered(void)
{
	struct command_target target = {.sw = NULL};
	size_t len = 0;
	char *reply = command_answer(&target, NULL, 0, &len);

	CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "65536 bytes"));
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "\"id\":null"));
	free(reply);
}

/* Every line with one byte changed or left out has an answer too. */
static void survives_damaged_requests(void)
{
	static const char good[] = COMMAND("{\"words\":[\"version\"]}");
	static const char damage[] = "\"{}[]:,\\x1 \x80\xff\x01";
	char text[sizeof(good)];

	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		for (size_t d = 0; d < sizeof(damage); d++) {
			memcpy(text, good, sizeof(good));
			text[i] = damage[d];
			json_decref(ask_bytes(text, sizeof(good) - 1));
		}
		json_decref(ask_bytes(good, i));
	}
}

static const struct unit_case cases[] = {
    UNIT_CASE(answers_a_command),
    UNIT_CASE(carries_it_out),
    UNIT_CASE(refuses_what_is_not_a_request),
    UNIT_CASE(refuses_bad_words),
    UNIT_CASE(long_words_give_valid_answers),
    UNIT_CASE(survives_deep_nesting),
    UNIT_CASE(too_long_is_answered),
    UNIT_CASE(survives_damaged_requests),
};
UNIT_MAIN("request", cases)
