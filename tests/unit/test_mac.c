/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet addresses as text and number: what parses, what does not, and the way back.
 */
#include <errno.h>

#include "base/mac.h"
#include "unit/unit.h"

static void parses_both_separators(void)
{
	static const char *const good[] = {
	    "02:00:00:00:00:0a",
	    "02-00-00-00-00-0A",
	    "02:00:00:00:00:0A",
	};
	struct mac mac;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(&mac, 0xee, sizeof(mac));
		CU_ASSERT_EQUAL(mac_parse(good[i], &mac), 0);
		CU_ASSERT_EQUAL(mac_to_u64(&mac), UINT64_C(0x02000000000a));
	}
}

static void refuses_bad_text(void)
{
	static const char *const bad[] = {
	    "",
	    ":",
	    "02",
	    "02:00:00:00:00",
	    "02:00:00:00:00:",
	    "02:00:00:00:00:0a:",
	    "02:00:00:00:00:0a:0b",
	    "02:00:00:00:00:0g",
	    "02:00:00:00:00:-1",
	    "02:00:00:00:00: a",
	    " 02:00:00:00:00:0a",
	    "02:00:00:00:00:0a ",
	    "002:00:00:00:00:0a",
	    "02:00:00:00:00:10a",
	    "02::00:00:00:00:0a",
	    "0x2:00:00:00:00:0a",
	    "0200.0000.000a",
	};
	struct mac mac;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (mac_parse(bad[i], &mac) != -EINVAL)
			printf("accepted: \"%s\"\n", bad[i]);
		CU_ASSERT_EQUAL(mac_parse(bad[i], &mac), -EINVAL);
	}
}

static void number_and_text_round_trip(void)
{
	char text[MAC_TEXT_SIZE];

	for (unsigned int bit = 0; bit < 48; bit++) {
		const uint64_t value = UINT64_C(1) << bit;
		struct mac mac = mac_from_u64(value), again;

		CU_ASSERT_EQUAL(mac_to_u64(&mac), value);
		CU_ASSERT_PTR_EQUAL(mac_format(&mac, text), text);
		CU_ASSERT_EQUAL(strlen(text), MAC_TEXT_SIZE - 1);
		CU_ASSERT_EQUAL(mac_parse(text, &again), 0);
		CU_ASSERT_EQUAL(mac_to_u64(&again), value);
	}
}

static void first_octet_is_most_significant(void)
{
	const struct mac mac = {{1, 2, 3, 4, 5, 6}};
	char text[MAC_TEXT_SIZE];

	CU_ASSERT_EQUAL(mac_to_u64(&mac), UINT64_C(0x010203040506));
	CU_ASSERT_STRING_EQUAL(mac_format(&mac, text), "01:02:03:04:05:06");
}

static void group_bit(void)
{
	const struct mac unicast = {{0x02, 0xff, 0xff, 0xff, 0xff, 0xff}};
	const struct mac multicast = {{0x33, 0x33, 0, 0, 0, 1}};
	const struct mac broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

	CU_ASSERT_FALSE(mac_is_group(&unicast));
	CU_ASSERT_TRUE(mac_is_group(&multicast));
	CU_ASSERT_TRUE(mac_is_group(&broadcast));
}

static const struct unit_case cases[] = {
    UNIT_CASE(parses_both_separators),
    UNIT_CASE(refuses_bad_text),
    UNIT_CASE(number_and_text_round_trip),
    UNIT_CASE(first_octet_is_most_significant),
    UNIT_CASE(group_bit),
};
UNIT_MAIN("mac", cases)
