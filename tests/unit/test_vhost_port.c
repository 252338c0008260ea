/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vhost-user port without socket and workers: this thread is control, worker and driver in
 * turn. The republish hook records the queue states that workers would see during an exchange.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/copy.h"
#include "guest/guest.h"
#include "ports/vhost.h"
#include "unit.h"

#define F_PROTOCOL FEATURE(VHOST_USER_F_PROTOCOL_FEATURES)
#define F_BASIC    (FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_NET_F_MRG_RXBUF))
#define RX         0 /* ring numbers: the guest receives */
#define TX         1 /* the guest transmits */
#define FRAME_LEN  60
#define SECOND     UINT64_C(1000000000)

struct seen {
	enum queue_state rxq, txq;
};

struct fixture {
	struct port *port;
	struct vhost_port *v;
	struct guest_ram ram;
	struct guest_ring ring[2];
	unsigned int republished;
	struct seen seen[16]; /* at each republication, modulo 16 */
	struct port_counters counters;
	int fds_before;
};

static struct batch batch;

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void republish(void *ctx)
{
	struct fixture *f = ctx;

	f->seen[f->republished++ % 16] =
	    (struct seen){f->port->rxq[0]->state, f->port->txq[0]->state};
}

static void open_port(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->fds_before = count_fds();
	CU_ASSERT_EQUAL_FATAL(vhost_port_create(&f->port, "p1", 1, "/run/p1.sock", "server"), 0);
	f->v = vhost_of(f->port);
	f->port->republish = republish;
	f->port->republish_ctx = f;
	CU_ASSERT_EQUAL_FATAL(guest_ram_create_h0(&f->ram, false), 0);
	for (unsigned int i = 0; i < 2; i++) {
		const struct guest_ring_config c = guest_ring_h0(i);

		CU_ASSERT_EQUAL_FATAL(guest_ring_init(&f->ring[i], &f->ram, &c), 0);
		guest_ring_interrupts(&f->ring[i], true);
	}
}

static void close_port(struct fixture *f)
{
	port_destroy(f->port);
	guest_ring_fini(&f->ring[0]);
	guest_ring_fini(&f->ring[1]);
	guest_ram_destroy(&f->ram);
	CU_ASSERT_EQUAL(count_fds(), f->fds_before);
}

static int set_mem(struct fixture *f, unsigned int first, unsigned int n)
{
	struct guest_mem_slot slot[GUEST_RAM_MAX];
	const char *why;

	for (unsigned int i = 0; i < n; i++) {
		const struct guest_ram_region *r = &f->ram.region[first + i];

		slot[i] = (struct guest_mem_slot){.gpa = r->gpa,
						  .uva = r->uva,
						  .size = r->size,
						  .offset = r->offset,
						  .fd = r->fd};
	}
	return vhost_set_mem(f->v, slot, n, &why);
}

static struct vhost_ring_addr ring_addr(const struct fixture *f, unsigned int ring)
{
	const struct guest_ring_config *c = &f->ring[ring].config;

	return (struct vhost_ring_addr){.desc = guest_ram_uva(&f->ram, c->desc),
					.avail = guest_ram_uva(&f->ram, c->avail),
					.used = guest_ram_uva(&f->ram, c->used)};
}

static void setup_ring(struct fixture *f, unsigned int ring, uint32_t base)
{
	const struct vhost_ring_addr addr = ring_addr(f, ring);

	CU_ASSERT_EQUAL(vhost_ring_set_size(f->v, ring, H0_RING_SIZE), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_base(f->v, ring, base), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_addr(f->v, ring, &addr), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_call(f->v, ring, dup(f->ring[ring].call_fd)), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_err(f->v, ring, dup(f->ring[ring].err_fd)), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_kick(f->v, ring, dup(f->ring[ring].kick_fd)), 0);
}

static void bring_up(struct fixture *f, uint64_t features)
{
	vhost_connected(f->v);
	CU_ASSERT_EQUAL(vhost_set_features(f->v, features), 0);
	CU_ASSERT_EQUAL(set_mem(f, 0, f->ram.n), 0);
	setup_ring(f, RX, 0);
	setup_ring(f, TX, 0);
}

/* ---- worker and driver ---- */

static unsigned int poll_queue(struct fixture *f)
{
	struct rxq *q = f->port->rxq[0];
	unsigned int n;

	if (q->state != QUEUE_RUNNING)
		return 0;
	batch_reset(&batch);
	n = q->ops->poll(q, &batch, &f->counters);
	if (n)
		q->ops->done(q, &batch, &f->counters);
	return n;
}

static void driver_sends(struct fixture *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t frame[12 + FRAME_LEN] = {[12] = 2, [18] = 2, [23] = (uint8_t)i};
		const struct guest_seg seg = {H0_BUFFER(i % 64), sizeof(frame)};

		CU_ASSERT_EQUAL(guest_ram_write(&f->ram, seg.gpa, frame, sizeof(frame)), 0);
		CU_ASSERT(guest_ring_add(&f->ring[TX], &seg, 1, 0) >= 0);
	}
	guest_ring_publish(&f->ring[TX]);
}

static unsigned int driver_reaps(struct fixture *f, unsigned int ring)
{
	struct vring_used_elem e;
	unsigned int n = 0;

	while (guest_ring_take(&f->ring[ring], &e) == 1)
		n++;
	return n;
}

static void driver_posts(struct fixture *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct guest_seg seg = {H0_BUFFER(64 + i), 2048};

		CU_ASSERT(guest_ring_add(&f->ring[RX], &seg, 1, 1) >= 0);
	}
	guest_ring_publish(&f->ring[RX]);
}

static unsigned int put_frames(struct fixture *f, unsigned int n, uint32_t len)
{
	static const uint8_t frame[4096] = {2};
	struct txq *q = f->port->txq[0];
	struct pkt pkt[BATCH_MAX], *list[BATCH_MAX];
	unsigned int dealt;

	for (unsigned int i = 0; i < n; i++) {
		pkt_set(&pkt[i], frame, len);
		list[i] = &pkt[i];
	}
	dealt = q->ops->put(q, list, n, &f->counters);
	q->ops->flush(q, &f->counters);
	return dealt;
}

static uint64_t event_value(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) ? value : 0;
}

static struct port_info info(struct fixture *f)
{
	struct port_info i;

	f->port->type->info(f->port, &i);
	return i;
}

static bool down_because(struct fixture *f, const char *words)
{
	const struct port_info i = info(f);

	return i.state == PORT_DOWN && strstr(i.reason, words);
}

/* ---- cases ---- */

static void states_and_their_reasons(void)
{
	struct port_info i;
	struct fixture f;

	open_port(&f);
	CU_ASSERT(down_because(&f, "no front-end connected"));
	vhost_set_reason(f.v, "trying again");
	CU_ASSERT(down_because(&f, "trying again"));
	vhost_connected(f.v);
	CU_ASSERT(down_because(&f, "memory table"));
	CU_ASSERT_EQUAL(set_mem(&f, 0, 0), -EINVAL);
	CU_ASSERT(down_because(&f, "refused: no memory regions"));
	CU_ASSERT_EQUAL(vhost_set_features(f.v, F_BASIC | F_PROTOCOL), 0);
	CU_ASSERT_EQUAL(set_mem(&f, 0, 2), 0);
	CU_ASSERT(down_because(&f, "no kick yet"));
	setup_ring(&f, TX, 0);
	CU_ASSERT(down_because(&f, "not enabled"));
	CU_ASSERT_EQUAL(f.republished, 0);
	CU_ASSERT_EQUAL(vhost_ring_enable(f.v, TX, true), 0);
	i = info(&f);
	CU_ASSERT_EQUAL(i.state, PORT_UP);
	CU_ASSERT(i.reason[0] == '\0' && i.nfeatures == 3 && i.rx_ring[0] == H0_RING_SIZE);
	CU_ASSERT(i.tx_ring[0] == 0 && strcmp(i.mode, "server") == 0);
	CU_ASSERT_STRING_EQUAL(i.feature[0], "VIRTIO_NET_F_MRG_RXBUF");
	CU_ASSERT(f.port->rxq[0]->state == QUEUE_RUNNING && f.port->txq[0]->state == QUEUE_OFF);
	CU_ASSERT_EQUAL(vhost_ring_enable(f.v, TX, false), 0);
	CU_ASSERT_EQUAL(f.port->rxq[0]->state, QUEUE_OFF);
	vhost_reset(f.v);
	CU_ASSERT(down_because(&f, "no front-end connected"));
	close_port(&f);
}

/* What the switch sees when the front-end maps its memory privately: zeros. */
static void memory_that_is_not_shared(void)
{
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	CU_ASSERT_PTR_NOT_NULL(strstr(info(&f).warning, "not shared"));
	driver_posts(&f, 1);
	CU_ASSERT(info(&f).warning[0] == '\0');
	close_port(&f);
}

static void enabled_without_protocol_features(void)
{
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	CU_ASSERT_EQUAL(info(&f).state, PORT_UP);
	close_port(&f);
}

static void frames_both_ways(void)
{
	uint32_t base;
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	driver_sends(&f, 40);
	CU_ASSERT_EQUAL(poll_queue(&f), 32);
	CU_ASSERT_EQUAL(poll_queue(&f), 8);
	CU_ASSERT_EQUAL(driver_reaps(&f, TX), 40);
	CU_ASSERT(event_value(f.ring[TX].call_fd) >= 1);
	driver_posts(&f, 10);
	CU_ASSERT_EQUAL(put_frames(&f, 12, 1500), 10);
	CU_ASSERT_EQUAL(driver_reaps(&f, RX), 10);
	CU_ASSERT(event_value(f.ring[RX].call_fd) >= 1);
	CU_ASSERT_EQUAL(f.counters.value[CTR_TX_PACKETS], 10);
	CU_ASSERT_EQUAL(f.counters.value[CTR_TX_BYTES], 15000);
	CU_ASSERT_EQUAL(f.counters.value[CTR_NOTIFY_SENT], 3);
	CU_ASSERT_EQUAL(vhost_ring_stop(f.v, TX, &base), 0);
	CU_ASSERT_EQUAL(base, 40);
	CU_ASSERT_EQUAL(guest_ring_raw_used_idx(&f.ring[TX]), 40);
	CU_ASSERT_EQUAL(vhost_ring_stop(f.v, TX, &base), 0);
	CU_ASSERT_EQUAL(base, 40);
	CU_ASSERT_EQUAL(vhost_ring_stop(f.v, RX, &base), 0);
	CU_ASSERT_EQUAL(base, 10);
	close_port(&f);
}

/* A batch of nothing but bad chains must not keep its heads. */
static void bad_chains_come_back(void)
{
	struct guest_seg seg = {0x900000, 100};
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(guest_ring_add(&f.ring[TX], &seg, 1, 0) >= 0);
	seg = (struct guest_seg){H0_BUFFER(0), 20};
	CU_ASSERT(guest_ring_add(&f.ring[TX], &seg, 1, 0) >= 0);
	guest_ring_publish(&f.ring[TX]);
	CU_ASSERT_EQUAL(poll_queue(&f), 0);
	CU_ASSERT_EQUAL(driver_reaps(&f, TX), 4);
	CU_ASSERT_EQUAL(f.counters.drop[DROP_BAD_CHAIN], 3);
	CU_ASSERT_EQUAL(f.counters.drop[DROP_RUNT], 1);
	close_port(&f);
}

static void disabled_ring_keeps_its_frames(void)
{
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC | F_PROTOCOL);
	vhost_ring_enable(f.v, TX, true);
	driver_sends(&f, 5);
	CU_ASSERT_EQUAL(poll_queue(&f), 5);
	vhost_ring_enable(f.v, TX, false);
	driver_sends(&f, 20);
	CU_ASSERT_EQUAL(poll_queue(&f), 0);
	vhost_ring_enable(f.v, TX, true);
	CU_ASSERT_EQUAL(poll_queue(&f), 20);
	CU_ASSERT_EQUAL(driver_reaps(&f, TX), 25);
	close_port(&f);
}

static void memory_exchange_keeps_indices(void)
{
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	driver_sends(&f, 3);
	driver_posts(&f, 8);
	CU_ASSERT_EQUAL(poll_queue(&f), 3);
	CU_ASSERT_EQUAL(put_frames(&f, 2, 60), 2);
	driver_sends(&f, 7);
	f.republished = 0;
	CU_ASSERT_EQUAL(set_mem(&f, 0, 2), 0);
	CU_ASSERT_EQUAL(f.republished, 2);
	CU_ASSERT(f.seen[0].rxq == QUEUE_OFF && f.seen[0].txq == QUEUE_PAUSED);
	CU_ASSERT(f.seen[1].rxq == QUEUE_RUNNING && f.seen[1].txq == QUEUE_RUNNING);
	CU_ASSERT_EQUAL(poll_queue(&f), 7);
	CU_ASSERT_EQUAL(put_frames(&f, 8, 60), 6);
	CU_ASSERT_EQUAL(driver_reaps(&f, TX), 10);
	CU_ASSERT_EQUAL(driver_reaps(&f, RX), 8);
	close_port(&f);
}

/* The table loses the region with the rings, and gets it back. */
static void memory_without_the_rings(void)
{
	struct fixture f;
	const char *why;

	open_port(&f);
	bring_up(&f, F_BASIC);
	driver_sends(&f, 4);
	CU_ASSERT_EQUAL(poll_queue(&f), 4);
	CU_ASSERT_EQUAL(set_mem(&f, 1, 1), 0);
	CU_ASSERT(down_because(&f, "memory table is without it"));
	driver_sends(&f, 4);
	CU_ASSERT_EQUAL(poll_queue(&f), 0);
	CU_ASSERT_EQUAL(vhost_set_mem(f.v, NULL, 0, &why), -EINVAL);
	CU_ASSERT_EQUAL(set_mem(&f, 0, 2), 0);
	CU_ASSERT_EQUAL(info(&f).state, PORT_UP);
	CU_ASSERT_EQUAL(poll_queue(&f), 4);
	CU_ASSERT_EQUAL(driver_reaps(&f, TX), 8);
	close_port(&f);
}

static void order_of_setup_does_not_matter(void)
{
	struct vhost_ring_addr addr;
	struct fixture f;

	open_port(&f);
	vhost_connected(f.v);
	addr = ring_addr(&f, TX);
	CU_ASSERT_EQUAL(vhost_ring_enable(f.v, TX, true), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_kick(f.v, TX, -1), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_addr(f.v, TX, &addr), 0);
	CU_ASSERT_EQUAL(vhost_set_features(f.v, F_BASIC | F_PROTOCOL), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, TX, H0_RING_SIZE), 0);
	CU_ASSERT_EQUAL(info(&f).state, PORT_DOWN);
	CU_ASSERT_EQUAL(set_mem(&f, 0, 2), 0);
	CU_ASSERT_EQUAL(info(&f).state, PORT_UP);
	driver_sends(&f, 2);
	CU_ASSERT_EQUAL(poll_queue(&f), 2);
	close_port(&f);
}

static int try_addr(struct fixture *f, uint64_t desc, uint64_t avail, uint64_t used)
{
	const uint64_t uva = f->ram.region[0].uva;
	const struct vhost_ring_addr addr = {
	    .desc = uva + desc, .avail = uva + avail, .used = uva + used};

	return vhost_ring_set_addr(f->v, TX, &addr);
}

static void rings_at_the_end_of_a_region(void)
{
	struct fixture f;

	open_port(&f);
	vhost_connected(f.v);
	CU_ASSERT_EQUAL(vhost_set_features(f.v, F_BASIC | FEATURE(VIRTIO_F_EVENT_IDX)), 0);
	CU_ASSERT_EQUAL(set_mem(&f, 0, 2), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, TX, 256), 0);
	CU_ASSERT_EQUAL(try_addr(&f, 0x20000, 0x22000, 0x23000), 0);
	CU_ASSERT_EQUAL(try_addr(&f, 0x1ff010, 0x22000, 0x23000), -EFAULT);
	CU_ASSERT_EQUAL(try_addr(&f, 0x20000, 0x1ffdfc, 0x23000), -EFAULT);
	CU_ASSERT_EQUAL(try_addr(&f, 0x20000, 0x22000, 0x1ff7fc), -EFAULT);
	CU_ASSERT_EQUAL(try_addr(&f, 0x20008, 0x22000, 0x23000), -EINVAL);
	CU_ASSERT_EQUAL(try_addr(&f, 0x20000, 0x22001, 0x23000), -EINVAL);
	CU_ASSERT_EQUAL(try_addr(&f, 0x20000, 0x22000, 0x23002), -EINVAL);
	CU_ASSERT_EQUAL(vhost_set_features(f.v, F_BASIC), 0);
	CU_ASSERT_EQUAL(try_addr(&f, 0x1ff000, 0x1ffdfc, 0x1ff7fc), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, TX, 32768), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_kick(f.v, TX, -1), -EFAULT);
	CU_ASSERT_EQUAL(info(&f).state, PORT_DOWN);
	close_port(&f);
}

static void ring_sizes(void)
{
	static const uint32_t bad[] = {0, 3, 255, 257, 32769, 65536, 0xffffffff};
	struct fixture f;

	open_port(&f);
	for (uint32_t size = 1; size <= 32768; size *= 2)
		CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, TX, size), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, TX, bad[i]), -EINVAL);
	bring_up(&f, F_BASIC);
	CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, TX, 128), -EBUSY);
	CU_ASSERT_EQUAL(vhost_ring_set_base(f.v, TX, 1), -EBUSY);
	CU_ASSERT_EQUAL(vhost_ring_set_base(f.v, TX, 65536), -EINVAL);
	close_port(&f);
}

static void ring_numbers_out_of_range(void)
{
	static const uint32_t bad[] = {2, 255, 256, 0x10000, 0x80000000, 0xffffffff};
	struct vhost_ring_addr addr;
	struct fixture f;
	uint32_t base;

	open_port(&f);
	addr = ring_addr(&f, TX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint32_t ring = bad[i];

		CU_ASSERT_EQUAL(vhost_ring_set_size(f.v, ring, 256), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_set_base(f.v, ring, 0), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_set_addr(f.v, ring, &addr), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_enable(f.v, ring, true), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_set_kick(f.v, ring, dup(2)), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, ring, eventfd(0, 0)), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_set_err(f.v, ring, eventfd(0, 0)), -EINVAL);
		CU_ASSERT_EQUAL(vhost_ring_stop(f.v, ring, &base), -EINVAL);
	}
	close_port(&f);
}

/* Where a ring starts: base asked for, indices found in memory, where it begins to take heads. */
static void start_index(void)
{
	static const struct {
		uint16_t base, avail, used;
		uint16_t start;
		bool breaks;
	} t[] = {
	    {0, 0, 0, 0, false}, /* fresh driver */
	    {0, 10, 0, 0, false},
	    {40, 50, 40, 40, false}, /* restart where it stopped */
	    {65530, 4, 65530, 65530, false},
	    {50, 60, 42, 42, false},      /* device died between taking and returning */
	    {0, 5010, 5000, 5000, false}, /* front-end does not know */
	    {0, 120, 100, 100, false},
	    {0, 0, 5000, 0, false},   /* driver reset, used index is rubbish */
	    {1000, 0, 0, 1000, true}, /* nonsense stands, and breaks */
	    {0, 300, 0, 0, true},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fixture f;
		uint32_t base;

		open_port(&f);
		vhost_connected(f.v);
		CU_ASSERT_EQUAL(vhost_set_features(f.v, F_BASIC), 0);
		CU_ASSERT_EQUAL(set_mem(&f, 0, 2), 0);
		f.ring[TX].avail->idx = t[i].avail;
		f.ring[TX].used->idx = t[i].used;
		setup_ring(&f, TX, t[i].base);
		if (t[i].breaks) {
			CU_ASSERT_EQUAL(poll_queue(&f), 0);
			CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f.v, 0));
			CU_ASSERT(down_because(&f, "jumped"));
		}
		CU_ASSERT_EQUAL(vhost_ring_stop(f.v, TX, &base), 0);
		CU_ASSERT_EQUAL(base, t[i].start);
		close_port(&f);
	}
}

static void broken_ring_heals(void)
{
	struct fixture f;
	uint32_t base;

	open_port(&f);
	bring_up(&f, F_BASIC);
	driver_posts(&f, 1);
	driver_sends(&f, 2);
	CU_ASSERT_EQUAL(poll_queue(&f), 2);
	CU_ASSERT_PTR_NULL(vhost_check_faults(f.v, 0));
	guest_ring_raw_avail_idx(&f.ring[TX], 5000);
	CU_ASSERT_EQUAL(poll_queue(&f), 0);
	CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f.v, 0));
	CU_ASSERT_PTR_NULL(vhost_check_faults(f.v, 0));
	CU_ASSERT_EQUAL(event_value(f.ring[TX].err_fd), 1);
	CU_ASSERT_EQUAL(f.port->rxq[0]->state, QUEUE_OFF);
	/* the other ring goes on, and the port says what is wrong */
	CU_ASSERT_EQUAL(f.port->txq[0]->state, QUEUE_RUNNING);
	CU_ASSERT_PTR_NOT_NULL(strstr(info(&f).warning, "ring 1 broke"));
	CU_ASSERT_EQUAL(vhost_ring_stop(f.v, TX, &base), 0);
	CU_ASSERT_EQUAL(base, 2);
	guest_ring_raw_avail_idx(&f.ring[TX], 2);
	setup_ring(&f, TX, base);
	CU_ASSERT(info(&f).warning[0] == '\0');
	driver_sends(&f, 2);
	CU_ASSERT_EQUAL(poll_queue(&f), 2);
	close_port(&f);
}

static void features_offered_and_fixed(void)
{
	struct fixture f;

	open_port(&f);
	for (unsigned int bit = 0; bit < 64; bit++)
		CU_ASSERT_EQUAL(vhost_set_features(f.v, FEATURE(bit)),
				VHOST_FEATURES & FEATURE(bit) ? 0 : -EINVAL);
	bring_up(&f, F_BASIC);
	CU_ASSERT_EQUAL(vhost_set_features(f.v, F_BASIC), 0);
	CU_ASSERT_EQUAL(vhost_set_features(f.v, FEATURE(VIRTIO_F_VERSION_1)), -EBUSY);
	CU_ASSERT_EQUAL(vhost_get_features(f.v), F_BASIC);
	vhost_stop_all(f.v);
	CU_ASSERT_EQUAL(vhost_set_features(f.v, FEATURE(VIRTIO_F_VERSION_1)), 0);
	close_port(&f);
}

static void call_exchange(void)
{
	int fresh = eventfd(0, EFD_CLOEXEC);
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	event_value(f.ring[RX].call_fd);
	f.republished = 0;
	CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, RX, dup(fresh)), 0);
	CU_ASSERT_EQUAL(f.republished, 2);
	CU_ASSERT(f.seen[0].txq == QUEUE_PAUSED && f.seen[0].rxq == QUEUE_RUNNING);
	CU_ASSERT_EQUAL(event_value(fresh), 1);
	driver_posts(&f, 4);
	CU_ASSERT_EQUAL(put_frames(&f, 4, 60), 4);
	CU_ASSERT_EQUAL(event_value(fresh), 1);
	CU_ASSERT_EQUAL(event_value(f.ring[RX].call_fd), 0);
	CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, RX, -1), 0);
	driver_posts(&f, 4);
	CU_ASSERT_EQUAL(put_frames(&f, 4, 60), 4);
	CU_ASSERT_EQUAL(event_value(fresh), 0);
	close_port(&f);
	close(fresh);
}

static void call_must_be_an_eventfd(void)
{
	int pipe_fd[2], full = eventfd(0, EFD_CLOEXEC);
	struct fixture f;

	CU_ASSERT_EQUAL_FATAL(pipe(pipe_fd), 0);
	open_port(&f);
	bring_up(&f, F_BASIC);
	CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, RX, dup(pipe_fd[1])), -EBADF);
	CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, RX, open("/dev/full", O_WRONLY)), -EBADF);
	CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, RX, open("/", O_RDONLY)), -EBADF);
	CU_ASSERT_EQUAL(vhost_ring_set_err(f.v, RX, dup(pipe_fd[0])), -EBADF);
	CU_ASSERT_EQUAL(vhost_ring_set_call(f.v, RX, dup(full)), 0);
	/* at its maximum: the write fails instead of sleeping, the frame is there all the same */
	event_value(full);
	CU_ASSERT_EQUAL(write(full, &(uint64_t){UINT64_MAX - 1}, 8), 8);
	driver_posts(&f, 1);
	CU_ASSERT_EQUAL(put_frames(&f, 1, 60), 1);
	CU_ASSERT_EQUAL(driver_reaps(&f, RX), 1);
	/* made blocking behind our back: found, emptied, ring broken */
	CU_ASSERT_EQUAL(fcntl(full, F_SETFL, fcntl(full, F_GETFL) & ~O_NONBLOCK), 0);
	CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f.v, 0));
	CU_ASSERT(fcntl(full, F_GETFL) & O_NONBLOCK);
	CU_ASSERT_EQUAL(event_value(full), 0);
	CU_ASSERT_EQUAL(f.port->txq[0]->state, QUEUE_OFF);
	close_port(&f);
	close(full);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void make_call_blocking(struct fixture *f, unsigned int ring)
{
	const int fd = f->ring[ring].call_fd;

	CU_ASSERT_EQUAL(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

/* Blocks a worker at `now`: all rings stop, reconnecting does not help, waiting `seconds` does. */
static void refused_for(struct fixture *f, uint64_t now, unsigned int seconds)
{
	const uint64_t end = now + seconds * SECOND;
	char words[40];

	snprintf(words, sizeof(words), "refused for %u s", seconds);
	make_call_blocking(f, RX);
	CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f->v, now));
	CU_ASSERT(f->port->rxq[0]->state == QUEUE_OFF && f->port->txq[0]->state == QUEUE_OFF);
	CU_ASSERT(down_because(f, words));
	vhost_reset(f->v);
	bring_up(f, F_BASIC);
	CU_ASSERT_PTR_NULL(vhost_check_faults(f->v, end - 1));
	CU_ASSERT(down_because(f, words));
	CU_ASSERT(f->port->rxq[0]->state == QUEUE_OFF && f->port->txq[0]->state == QUEUE_OFF);
	CU_ASSERT_PTR_NULL(vhost_check_faults(f->v, end));
	CU_ASSERT_EQUAL(info(f).state, PORT_UP);
	CU_ASSERT(f->port->rxq[0]->state == QUEUE_RUNNING);
	CU_ASSERT(f->port->txq[0]->state == QUEUE_RUNNING);
}

static void blocking_call_is_refused_for_longer_and_longer(void)
{
	static const unsigned int seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
	uint64_t now = 1000 * SECOND;
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		refused_for(&f, now, seconds[i]);
		now += seconds[i] * SECOND + SECOND / 10;
	}
	driver_sends(&f, 4);
	CU_ASSERT_EQUAL(poll_queue(&f), 4);
	/* a minute of peace, and it is forgotten */
	refused_for(&f, now + 60 * SECOND, 1);
	close_port(&f);
}

/* A ring that the front-end stops while it waits does not start by itself. */
static void stopped_while_refused(void)
{
	uint32_t base;
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	make_call_blocking(&f, RX);
	CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f.v, SECOND));
	setup_ring(&f, TX, 0);
	setup_ring(&f, RX, 0);
	CU_ASSERT_EQUAL(vhost_ring_stop(f.v, TX, &base), 0);
	CU_ASSERT_PTR_NULL(vhost_check_faults(f.v, 2 * SECOND));
	CU_ASSERT(f.port->rxq[0]->state == QUEUE_OFF);
	CU_ASSERT(f.port->txq[0]->state == QUEUE_RUNNING);
	close_port(&f);
}

/* A front-end that makes our signal sleep stops nobody: without the mend this test never ends. */
static void signals_never_sleep(void)
{
	const int full = eventfd(0, EFD_CLOEXEC);
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	CU_ASSERT_EQUAL(vhost_ring_set_err(f.v, TX, dup(full)), 0);
	CU_ASSERT_EQUAL(write(full, &(uint64_t){UINT64_MAX - 1}, 8), 8);
	CU_ASSERT_EQUAL(fcntl(full, F_SETFL, fcntl(full, F_GETFL) & ~O_NONBLOCK), 0);
	guest_ring_raw_avail_idx(&f.ring[TX], 5000);
	poll_queue(&f);
	CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f.v, 0));
	CU_ASSERT_PTR_NOT_NULL(strstr(info(&f).warning, "jumped"));
	close_port(&f);
	close(full);
}

static void memory_file_cut(void)
{
	struct fixture f;

	open_port(&f);
	bring_up(&f, F_BASIC);
	driver_sends(&f, 3);
	CU_ASSERT_EQUAL(ftruncate(f.ram.region[0].fd, 0x30000), 0); /* rings stay, buffers go */
	CU_ASSERT_EQUAL(poll_queue(&f), 3);
	CU_ASSERT_PTR_NOT_NULL(vhost_check_faults(f.v, 0));
	CU_ASSERT(down_because(&f, "guest memory"));
	CU_ASSERT_EQUAL(event_value(f.ring[TX].err_fd), 1);
	CU_ASSERT_EQUAL(event_value(f.ring[RX].err_fd), 1);
	CU_ASSERT_PTR_NULL(vhost_check_faults(f.v, 0));
	close_port(&f);
}

static void too_small_buffers_are_counted(void)
{
	const struct guest_seg seg = {H0_BUFFER(0), 100};
	struct fixture f;

	open_port(&f);
	bring_up(&f, FEATURE(VIRTIO_F_VERSION_1));
	for (int i = 0; i < 4; i++)
		CU_ASSERT(guest_ring_add(&f.ring[RX], &seg, 1, 1) >= 0);
	guest_ring_publish(&f.ring[RX]);
	put_frames(&f, 1, 1000);
	CU_ASSERT_EQUAL(f.counters.value[CTR_TX_PACKETS], 0);
	CU_ASSERT_EQUAL(f.counters.drop[DROP_BUFFER_TOO_SMALL], 1);
	close_port(&f);
}

static const struct unit_case cases[] = {
    UNIT_CASE(states_and_their_reasons),
    UNIT_CASE(memory_that_is_not_shared),
    UNIT_CASE(enabled_without_protocol_features),
    UNIT_CASE(frames_both_ways),
    UNIT_CASE(bad_chains_come_back),
    UNIT_CASE(disabled_ring_keeps_its_frames),
    UNIT_CASE(memory_exchange_keeps_indices),
    UNIT_CASE(memory_without_the_rings),
    UNIT_CASE(order_of_setup_does_not_matter),
    UNIT_CASE(rings_at_the_end_of_a_region),
    UNIT_CASE(ring_sizes),
    UNIT_CASE(ring_numbers_out_of_range),
    UNIT_CASE(start_index),
    UNIT_CASE(broken_ring_heals),
    UNIT_CASE(features_offered_and_fixed),
    UNIT_CASE(call_exchange),
    UNIT_CASE(call_must_be_an_eventfd),
    UNIT_CASE(blocking_call_is_refused_for_longer_and_longer),
    UNIT_CASE(stopped_while_refused),
    UNIT_CASE(signals_never_sleep),
    UNIT_CASE(memory_file_cut),
    UNIT_CASE(too_small_buffers_are_counted),
};

int main(int argc, char **argv)
{
	if (guest_mem_catch_sigbus())
		return 1;
	copy_init();
	return unit_main("vhost_port", cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
