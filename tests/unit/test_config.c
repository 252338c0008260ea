/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files: comments and quotes, the place named for a wrong line, and the check that
 * plays a whole file without a switch.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/config.h"
#include "unit/unit.h"

static char dir[] = "/tmp/xvs-config-XXXXXX";
static char file[PATH_MAX];

static void write_bytes(const char *data, size_t len)
{
	FILE *f = fopen(file, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(data, 1, len, f), len);
	fclose(f);
}

static int load(struct config **config, const char *text, struct refusal *why)
{
	*config = NULL;
	why->text[0] = '\0';
	write_bytes(text, strlen(text));
	return config_load(config, file, why);
}

/* Loads and checks; the error of whichever fails. */
static int check(const char *text, struct refusal *why)
{
	struct config *config;
	int error = load(&config, text, why);

	if (!error)
		error = config_check(config, dir, why);
	config_destroy(config);
	return error;
}

static void expect_wrong(const char *text, unsigned int number, const char *hint)
{
	struct refusal why;
	char place[PATH_MAX + 16];
	int error = check(text, &why);

	snprintf(place, sizeof(place), "%s:%u: ", file, number);
	if (!error || strncmp(why.text, place, strlen(place)) != 0 || !strstr(why.text, hint))
		printf("\"%s\": %d \"%s\"\n", text, error, why.text);
	CU_ASSERT_TRUE(error < 0);
	CU_ASSERT_EQUAL(strncmp(why.text, place, strlen(place)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, hint));
	CU_ASSERT_TRUE(why.placed);
}

static int collect(void *ctx, const struct command_line *line, struct refusal *why)
{
	char *text = ctx;
	const char *name = command_arg(line, "NAME"), *path = command_arg(line, "PATH");

	(void)why;
	strcat(text, name ? name : "-");
	strcat(text, path ? path : "");
	strcat(text, ";");
	return 0;
}

static void reads_lines(void)
{
	struct config *config;
	struct refusal why;
	char text[256] = "";

	CU_ASSERT_EQUAL_FATAL(load(&config,
				   "# a comment\n"
				   "\n"
				   "port add a vhost-user a.sock   # with a comment\n"
				   "\t port  add\tb vhost-user \"a b#c.sock\" client \r\n"
				   "port add c vhost-user x'y'\"z\".sock#1\n"
				   "   # only blanks before\n"
				   "log level debug",
				   &why),
			      0);
	CU_ASSERT_EQUAL(config_count(config), 4);
	CU_ASSERT_EQUAL(config_for_each(config, collect, text, &why), 0);
	CU_ASSERT_STRING_EQUAL(text, "aa.sock;ba b#c.sock;cxyz.sock#1;-;");
	CU_ASSERT_EQUAL(config_check(config, dir, &why), 0);
	config_destroy(config);
}

static void empty_files_are_fine(void)
{
	struct refusal why;

	CU_ASSERT_EQUAL(check("", &why), 0);
	CU_ASSERT_EQUAL(check("\n\n# nothing\n", &why), 0);
}

static void names_the_wrong_line(void)
{
	expect_wrong("prot add a vhost-user a\n", 1, "did you mean \"port\"");
	expect_wrong("\n# x\nport add a vhost-user\n", 3, "expected PATH");
	expect_wrong("port add a vhost-user a\nport add b vhost-user b queues many", 2, "\"many\"");
	expect_wrong("port add a vhost-user a queues 65\n", 1, "1 to 64");
	expect_wrong("port add ../a vhost-user a\n", 1, "port name");
	expect_wrong("port add a vhost-user \"a\n", 1, "quote");
	expect_wrong("port show\n", 1, "changes nothing");
	expect_wrong("help\n", 1, "changes nothing");
	expect_wrong("port add a vhost-user dir/\n", 1, "directory");
	expect_wrong("port add a vhost-user control.sock\n", 1, "control socket");
	expect_wrong("fdb add 01:00:5e:00:00:01 a\n", 1, "one station");
}

static void finds_duplicates(void)
{
	expect_wrong("port add a vhost-user a\nport add a vhost-user b\n", 2, "exists already");
	expect_wrong("port add a vhost-user s\nport add b vhost-user s client\n", 2,
		     "in use by port \"a\"");
	expect_wrong("port add a vhost-user s\nport add b vhost-user ./s\n", 2, "in use");
	expect_wrong("port add a af-xdp eth1\nport add b af-xdp eth1\n", 2, "device eth1");
}

static void finds_duplicates_through_links(void)
{
	char text[4 * PATH_MAX], link_path[PATH_MAX];

	snprintf(link_path, sizeof(link_path), "%s/way-round", dir);
	CU_ASSERT_EQUAL_FATAL(symlink(dir, link_path), 0);
	snprintf(text, sizeof(text), "port add a vhost-user s\nport add b vhost-user %s/s\n",
		 link_path);
	expect_wrong(text, 2, "in use");
	unlink(link_path);
}

static void socket_and_device_are_different_places(void)
{
	struct refusal why;

	CU_ASSERT_EQUAL(check("port add a vhost-user eth1\nport add b af-xdp eth1\n", &why), 0);
}

static void references_need_a_port(void)
{
	struct refusal why;

	expect_wrong("fdb add 02:00:00:00:00:01 a\nport add a vhost-user a\n", 1, "no port \"a\"");
	expect_wrong("port del a\n", 1, "no port");
	expect_wrong("port add a vhost-user a\nport del a\nfdb flush a\n", 3, "no port");
	CU_ASSERT_EQUAL(check("port add a vhost-user a\nport del a\nport add a vhost-user a\n"
			      "fdb add 02:00:00:00:00:01 a\nfdb flush\n",
			      &why),
			0);
}

static void path_lengths(void)
{
	char name[256], text[512];
	struct refusal why;

	/* dir + '/' + name = 107 characters */
	memset(name, 'n', sizeof(name));
	name[107 - strlen(dir) - 1] = '\0';
	snprintf(text, sizeof(text), "port add a vhost-user %s\n", name);
	CU_ASSERT_EQUAL(check(text, &why), 0);
	snprintf(text, sizeof(text), "port add a vhost-user %sn\n", name);
	expect_wrong(text, 1, "108 characters");
}

static void refuses_what_is_not_text(void)
{
	struct config *config = NULL;
	struct refusal why;
	char *big = malloc(CONFIG_FILE_MAX + 2);

	write_bytes("log level info\nlog\0level info\n", 30);
	CU_ASSERT_EQUAL(config_load(&config, file, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, ":2: "));
	CU_ASSERT_EQUAL(config_load(&config, dir, &why), -EISDIR);
	CU_ASSERT_EQUAL(config_load(&config, "/nonexistent/file", &why), -ENOENT);
	CU_ASSERT_FALSE(why.placed);
	CU_ASSERT_PTR_NOT_NULL_FATAL(big);
	memset(big, '#', CONFIG_FILE_MAX + 1);
	write_bytes(big, CONFIG_FILE_MAX);
	CU_ASSERT_EQUAL(config_load(&config, file, &why), 0);
	config_destroy(config);
	write_bytes(big, CONFIG_FILE_MAX + 1);
	CU_ASSERT_EQUAL(config_load(&config, file, &why), -EFBIG);
	free(big);
}

static int fail_second(void *ctx, const struct command_line *line, struct refusal *why)
{
	unsigned int *calls = ctx;

	(void)line;
	return ++*calls == 2 ? refuse(why, -EIO, "no luck") : 0;
}

static void stops_at_the_first_failure(void)
{
	struct config *config;
	struct refusal why;
	unsigned int calls = 0;

	CU_ASSERT_EQUAL_FATAL(
	    load(&config, "log level info\n\nlog level warn\nlog level debug\n", &why), 0);
	CU_ASSERT_EQUAL(config_for_each(config, fail_second, &calls, &why), -EIO);
	CU_ASSERT_EQUAL(calls, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, ":3: no luck"));
	config_destroy(config);
}

static void makes_directory(void)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/file.conf", dir);
}

static void removes_directory(void)
{
	unlink(file);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static const struct unit_case cases[] = {
    UNIT_CASE(makes_directory),
    UNIT_CASE(reads_lines),
    UNIT_CASE(empty_files_are_fine),
    UNIT_CASE(names_the_wrong_line),
    UNIT_CASE(finds_duplicates),
    UNIT_CASE(finds_duplicates_through_links),
    UNIT_CASE(socket_and_device_are_different_places),
    UNIT_CASE(references_need_a_port),
    UNIT_CASE(path_lengths),
    UNIT_CASE(refuses_what_is_not_text),
    UNIT_CASE(stops_at_the_first_failure),
    UNIT_CASE(removes_directory),
};
UNIT_MAIN("config", cases)
