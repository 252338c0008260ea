/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partial checksums from virtual devices (worker, on each frame received from such a device).
 *
 * A sender that offers checksum offload leaves the folded, not inverted sum of the pseudo-header
 * in the checksum field; hardware would add the rest. Through a veth pair nothing does, and an
 * XDP socket gets no hint which frames are meant. So the field itself is the hint: if it holds
 * just that sum, the checksum is computed over the segment, field included, which is what the
 * hardware would have done.
 *
 * A complete checksum equals the pseudo-header's sum by chance once in 65536 frames. Then the
 * rest of the segment sums to such a value that computing it anew gives the same checksum again:
 * with P the pseudo-header's sum, R the rest, the complete field is ~(P + R). If that equals P,
 * the new value is ~(P + R) as well. So a chance hit changes nothing, and a corrupt frame that
 * hits (1 in 65536 of those) is the one thing that can be hidden.
 *
 * Everything is checked against the frame's length: a frame is as hostile as its sender. What is
 * not recognised (fragments, other protocols, SCTP, IPv6 routing headers, where the final
 * destination is not in the IP header) stays as it is.
 *
 * Rejected: switching the peer's offload off by ethtool; it is usually in another namespace.
 */
#include "ports/csum.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define ETH_ADDRESSES       12u
#define VLAN_TAGS_MAX       2
#define IPV6_EXTENSIONS_MAX 4
#define TYPE_IPV4           0x0800u
#define TYPE_IPV6           0x86ddu
#define TYPE_VLAN           0x8100u
#define TYPE_QINQ           0x88a8u
#define IPV4_FRAGMENT       0x3fffu /* more fragments, or an offset */

/* The TCP or UDP part of a frame. */
struct segment {
	uint8_t *base;
	uint32_t len;
	uint8_t protocol;
	const uint8_t *addresses; /* source and destination, for the pseudo-header */
	uint32_t addresses_len;
};

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Sum of 16-bit words in memory order; an odd last byte is padded with zero. */
static uint64_t sum_words(const uint8_t *p, uint32_t n)
{
	uint64_t sum = 0;

	for (; n >= 4; n -= 4, p += 4) {
		uint32_t word;

		memcpy(&word, p, 4);
		sum += word;
	}
	if (n >= 2) {
		uint16_t word;

		memcpy(&word, p, 2);
		sum += word;
		p += 2;
		n -= 2;
	}
	if (n) {
		uint16_t word = 0;

		memcpy(&word, p, 1);
		sum += word;
	}
	return sum;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static bool parse_ipv4(uint8_t *ip, uint32_t len, struct segment *out)
{
	uint32_t header, total;

	if (len < 20 || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 15u) * 4;
	total = get16(ip + 2);
	if (header < 20 || total < header || total > len || get16(ip + 6) & IPV4_FRAGMENT)
		return false;
	out->base = ip + header;
	out->len = total - header;
	out->protocol = ip[9];
	out->addresses = ip + 12;
	out->addresses_len = 8;
	return true;
}

static bool parse_ipv6(uint8_t *ip, uint32_t len, struct segment *out)
{
	uint8_t *p = ip + 40, next;
	uint32_t left;

	if (len < 40 || ip[0] >> 4 != 6)
		return false;
	left = get16(ip + 4);
	if (left > len - 40)
		return false;
	next = ip[6];
	for (int i = 0; next == IPPROTO_HOPOPTS || next == IPPROTO_DSTOPTS; i++) {
		uint32_t size = left < 8 ? UINT32_MAX : (p[1] + 1u) * 8;

		if (i == IPV6_EXTENSIONS_MAX || size > left)
			return false;
		next = p[0];
		p += size;
		left -= size;
	}
	out->base = p;
	out->len = left;
	out->protocol = next;
	out->addresses = ip + 8;
	out->addresses_len = 32;
	return true;
}

static bool parse_frame(uint8_t *frame, uint32_t len, struct segment *out)
{
	uint32_t at = ETH_ADDRESSES, type;

	if (len < at + 2)
		return false;
	type = get16(frame + at);
	for (int i = 0; i < VLAN_TAGS_MAX && (type == TYPE_VLAN || type == TYPE_QINQ); i++) {
		at += 4;
		if (len < at + 2)
			return false;
		type = get16(frame + at);
	}
	at += 2;
	if (type == TYPE_IPV4)
		return parse_ipv4(frame + at, len - at, out);
	if (type == TYPE_IPV6)
		return parse_ipv6(frame + at, len - at, out);
	return false;
}

/* Where the checksum is in the protocol's header, 0 when there is none that fits. */
static uint32_t checksum_at(const struct segment *s)
{
	if (s->protocol == IPPROTO_TCP && s->len >= 20)
		return 16;
	if (s->protocol == IPPROTO_UDP && s->len >= 8)
		return 6;
	return 0;
}

static uint16_t pseudo_header(const struct segment *s)
{
	return fold(sum_words(s->addresses, s->addresses_len) + htonl(s->len) + htons(s->protocol));
}

bool csum_complete(uint8_t *frame, uint32_t len)
{
	struct segment s;
	uint16_t field;
	uint32_t at;

	if (!parse_frame(frame, len, &s))
		return false;
	at = checksum_at(&s);
	if (!at)
		return false;
	memcpy(&field, s.base + at, 2);
	if (field != pseudo_header(&s))
		return false;
	field = (uint16_t)~fold(sum_words(s.base, s.len));
	if (!field && s.protocol == IPPROTO_UDP)
		field = 0xffff; /* 0 would mean "no checksum" (RFC 768, RFC 8200 section 8.1) */
	memcpy(s.base + at, &field, 2);
	return true;
}
