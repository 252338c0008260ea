/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames taken apart: the cursor hands a frame out in pieces of any size.
 *
 * Used where a frame is larger than one receive buffer, or a buffer crosses from one memory
 * region into the next. The pieces of a frame (private header, body, further segments) are
 * walked in order; the cursor remembers where it stands. Worker; no state of its own. The
 * common case, one contiguous buffer, does not come here (pkt_copy_out()).
 */
#include "ring/batch.h"

static struct pkt_seg cursor_piece(const struct pkt_cursor *c)
{
	const struct pkt *p = c->pkt;

	if (c->piece == 0)
		return (struct pkt_seg){p->hdr, p->hdr_len};
	if (c->piece == 1)
		return (struct pkt_seg){p->body, p->body_len};
	return p->more[c->piece - 2];
}

uint32_t pkt_cursor_copy(struct pkt_cursor *c, uint8_t *dst, uint32_t len)
{
	uint32_t done = 0;

	while (done < len && c->piece < 2u + c->pkt->nmore) {
		const struct pkt_seg piece = cursor_piece(c);
		const uint32_t n = MIN(piece.len - c->piece_done, len - done);

		copy_frame(dst + done, piece.base + c->piece_done, n);
		done += n;
		c->piece_done += n;
		if (c->piece_done == piece.len) {
			c->piece++;
			c->piece_done = 0;
		}
	}
	return done;
}
