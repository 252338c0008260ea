/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet addresses as text ("02:00:00:00:00:0a") and as a 48-bit number whose most
 * significant octet is the first on the wire.
 */
#ifndef XVS_BASE_MAC_H
#define XVS_BASE_MAC_H

#include <stdbool.h>
#include <stdint.h>

#define MAC_LEN       6
#define MAC_TEXT_SIZE 18 /* "02:00:00:00:00:0a" with its NUL */

struct mac {
	uint8_t octet[MAC_LEN];
};

/* Accepts six hex octets separated by ':' or '-'. Returns 0 or -EINVAL. */
int mac_parse(const char *text, struct mac *out);

/* Writes the canonical text into out[MAC_TEXT_SIZE] and returns it. */
char *mac_format(const struct mac *mac, char out[MAC_TEXT_SIZE]);

uint64_t mac_to_u64(const struct mac *mac);
struct mac mac_from_u64(uint64_t value);

/* Group bit of the first octet: broadcast or multicast. */
static inline bool mac_is_group(const struct mac *mac)
{
	return mac->octet[0] & 1;
}

#endif
