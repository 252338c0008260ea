/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completes the partial TCP and UDP checksums that virtual devices leave in frames.
 */
#ifndef XVS_PORTS_CSUM_H
#define XVS_PORTS_CSUM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * If the frame (`len` bytes, hostile) is unfragmented TCP or UDP over IPv4 or IPv6, with at most
 * two VLAN tags, and its checksum field holds exactly the sum of the pseudo-header, writes the
 * complete checksum into it and returns true. Otherwise leaves it alone. Any thread.
 */
bool csum_complete(uint8_t *frame, uint32_t len);

#endif
