/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet addresses: text and number forms.
 *
 * Parsing accepts exactly six groups of one or two hex digits with one kind of separator, so
 * that a typing error never turns into another valid address. Rejected: ether_aton(), which stops
 * at the first strange character and calls the rest a success.
 *
 * Pure functions, any thread.
 */
#include "base/mac.h"

#include <errno.h>
#include <stdio.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool parse_octet(const char **text, uint8_t *out)
{
	int value = hex_digit(**text);

	if (value < 0)
		return false;
	(*text)++;
	const int low = hex_digit(**text);

	if (low >= 0) {
		value = value << 4 | low;
		(*text)++;
	}
	*out = (uint8_t)value;
	return true;
}

int mac_parse(const char *text, struct mac *out)
{
	struct mac mac;
	char separator = '\0';

	for (unsigned int i = 0; i < MAC_LEN; i++) {
		if (i == 1)
			separator = *text;
		if (i > 0 && ((separator != ':' && separator != '-') || *text++ != separator))
			return -EINVAL;
		if (!parse_octet(&text, &mac.octet[i]))
			return -EINVAL;
	}
	if (*text)
		return -EINVAL;
	*out = mac;
	return 0;
}

char *mac_format(const struct mac *mac, char out[MAC_TEXT_SIZE])
{
	const uint8_t *o = mac->octet;

	snprintf(out, MAC_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3], o[4],
		 o[5]);
	return out;
}

uint64_t mac_to_u64(const struct mac *mac)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < MAC_LEN; i++)
		value = value << 8 | mac->octet[i];
	return value;
}

struct mac mac_from_u64(uint64_t value)
{
	struct mac mac;

	for (unsigned int i = MAC_LEN; i-- > 0; value >>= 8)
		mac.octet[i] = (uint8_t)value;
	return mac;
}
