/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AF_XDP ports on veth pairs, without the switch: the test polls and sends itself, through the
 * port's queues, and plays the other end with packet sockets.
 *
 * Everything happens in a network namespace of this process, which the kernel removes with all
 * its devices when the process ends, however it ends. Every case ends with the same check: the
 * port gone, no XDP program on the device, all chunks free.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/xdp_prog.h"
#include "ports/af_xdp.h"
#include "ports/kicker.h"
#include "ports/umem.h"
#include "ports/xdp_queue.h"
#include "unit/unit.h"

#define CHUNKS      8192u
#define ETHERTYPE   0x88b5 /* for local experiments */
#define MTU         2000u
#define DEADLINE_NS UINT64_C(2000000000)
#define FRAME_BUF   4096u

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

static struct umem *umem;
static struct kicker *kicker;
static struct port_counters counters;

/* ---- the world ---- */

static void sh(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void sh(const char *fmt, ...)
{
	char command[256];
	va_list args;
	int status;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	status = system(command);
	if (status != 0)
		printf("`%s` ended with %d\n", command, status);
	CU_ASSERT_EQUAL_FATAL(status, 0);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("%s: %s\n", path, strerror(errno));
	close(fd);
}

static void enter_namespace(void)
{
	if (geteuid() != 0)
		unit_skip("needs root: network namespaces and XDP");
	if (unshare(CLONE_NEWNET))
		unit_skip("cannot make a network namespace");
	/* Or the kernel would send frames of its own. */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	clock_init();
}

/* near is ours, far the remote host's. */
static void veth_add(const char *near, const char *far)
{
	sh("ip link add %s mtu %u type veth peer name %s mtu %u", near, MTU, far, MTU);
	sh("ip link set %s up && ip link set %s up", near, far);
}

static void veth_del(const char *near)
{
	sh("ip link del %s", near);
}

static int packet_socket(const char *device)
{
	const struct sockaddr_ll address = {.sll_family = AF_PACKET,
					    .sll_protocol = htons(ETHERTYPE),
					    .sll_ifindex = (int)if_nametoindex(device)};
	const int one = 1, buffer = 8 << 20;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETHERTYPE));

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	return fd;
}

/* A frame whose bytes depend on its number and length. */
static void frame_fill(uint8_t *frame, uint32_t len, uint32_t number)
{
	static const uint8_t head[ETH_HDR_LEN] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};

	for (uint32_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
	memcpy(frame, head, sizeof(head));
	if (len >= ETH_HDR_LEN + 4)
		memcpy(frame + ETH_HDR_LEN, &number, 4);
}

/* ---- a port under test ---- */

static int try_create(struct port **out, const char *device, unsigned int nqueues,
		      enum xdp_mode mode, char *why, unsigned int size)
{
	const struct af_xdp_config config = {.name = "p",
					     .device = device,
					     .nqueues = nqueues,
					     .mode = mode,
					     .umem = umem,
					     .kicker = kicker};

	why[0] = '\0';
	return af_xdp_port_create(out, &config, why, size);
}

static struct port *create(const char *device, enum xdp_mode mode)
{
	struct port *p = NULL;
	char why[256];
	int err = try_create(&p, device, 0, mode, why, sizeof(why));

	if (err)
		printf("%s: %s\n", device, why);
	CU_ASSERT_EQUAL_FATAL(err, 0);
	return p;
}

/* The workers' part of the hand-over: there are none, so states take effect at once. */
static bool is_up(const struct port *p)
{
	struct port_info info;

	p->type->info(p, &info);
	return info.state == PORT_UP;
}

struct wanted_stat {
	const char *name;
	uint64_t value;
};

static void match_stat(void *ctx, const char *name, uint64_t value)
{
	struct wanted_stat *w = ctx;

	if (strcmp(name, w->name) == 0)
		w->value = value;
}

static uint64_t stat_of(const struct port *p, const char *name)
{
	struct wanted_stat w = {name, UINT64_MAX};

	p->type->stats(p, match_stat, &w);
	return w.value;
}

/* Polls until there are frames; they are valid until done(). 0: none came in time. */
static unsigned int poll_frames(struct port *p, struct batch *batch, uint64_t patience_ns)
{
	const uint64_t deadline = clock_ns() + patience_ns;
	unsigned int n;

	do {
		for (unsigned int i = 0; i < p->nqueues; i++) {
			n = p->rxq[i]->ops->poll(p->rxq[i], batch, &counters);
			if (n)
				return n;
		}
	} while (clock_ns() < deadline);
	return 0;
}

static void done(struct port *p, struct batch *batch)
{
	p->rxq[0]->ops->done(p->rxq[0], batch, &counters);
}

/* Puts one batch of frames, waiting for room; false when there is none in time. */
static bool put_all(struct port *p, struct pkt *const pkt[], unsigned int n)
{
	const uint64_t deadline = clock_ns() + DEADLINE_NS;
	struct txq *q = p->txq[0];
	unsigned int sent = 0;

	while (sent < n && clock_ns() < deadline) {
		sent += q->ops->put(q, pkt + sent, n - sent, &counters);
		q->ops->flush(q, &counters);
	}
	return sent == n;
}

static bool put_one(struct port *p, const uint8_t *frame, uint32_t len)
{
	struct pkt pkt, *list[1] = {&pkt};

	pkt_set(&pkt, frame, len);
	return put_all(p, list, 1);
}

/* The next frame at the far end; its length, or 0 when none came in time. */
static uint32_t far_receive(int far, uint8_t *buf)
{
	const uint64_t deadline = clock_ns() + DEADLINE_NS;
	ssize_t n;

	do {
		n = recv(far, buf, FRAME_BUF, 0);
	} while (n < 0 && clock_ns() < deadline);
	return n < 0 ? 0 : (uint32_t)n;
}

/* Removes the port and holds it to having left nothing. */
static void destroy(struct port *p, const char *device)
{
	const unsigned int ifindex = if_nametoindex(device);
	const char *mode;
	uint32_t id;

	port_destroy(p);
	CU_ASSERT_EQUAL(umem_free_count(umem), CHUNKS);
	if (ifindex)
		CU_ASSERT_EQUAL(xdp_prog_attached((int)ifindex, &id, &mode), 0);
}

/* ---- frames ---- */

/* Sends a frame from the far end and expects it byte for byte in the port. */
static bool arrives(struct port *p, int far, uint32_t len, uint32_t number)
{
	static struct batch batch;
	uint8_t sent[FRAME_BUF], got[FRAME_BUF];
	bool same;

	frame_fill(sent, len, number);
	if (send(far, sent, len, 0) != (ssize_t)len)
		return false;
	if (poll_frames(p, &batch, DEADLINE_NS) != 1)
		return false;
	pkt_copy_out(&batch.pkt[0], got);
	same = batch.pkt[0].len == len && memcmp(sent, got, len) == 0;
	done(p, &batch);
	return same;
}

static void receive_every_size(enum xdp_mode mode)
{
	struct port *p;
	uint32_t bad = 0;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", mode);
	far = packet_socket("vx1");
	for (uint32_t len = FRAME_MIN; len <= XDPQ_RX_FRAME_MAX && bad < 5; len++) {
		if (arrives(p, far, len, len))
			continue;
		printf("%u bytes did not arrive as sent\n", len);
		bad++;
	}
	CU_ASSERT_EQUAL(bad, 0);
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

static void receives_every_size_native(void)
{
	receive_every_size(XDP_MODE_NATIVE);
}

static void receives_every_size_generic(void)
{
	receive_every_size(XDP_MODE_GENERIC);
}

/* One byte too long and more: dropped, counted, and the neighbours are undamaged. */
static void oversize(enum xdp_mode mode)
{
	static struct batch batch;
	uint8_t frame[FRAME_BUF];
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", mode);
	far = packet_socket("vx1");
	for (uint32_t len = XDPQ_RX_FRAME_MAX + 1; len <= MTU + ETH_HDR_LEN; len++) {
		frame_fill(frame, len, len);
		CU_ASSERT_EQUAL(send(far, frame, len, 0), (ssize_t)len);
	}
	CU_ASSERT_TRUE(arrives(p, far, XDPQ_RX_FRAME_MAX, 1));
	CU_ASSERT_EQUAL(poll_frames(p, &batch, 1000000), 0);
	CU_ASSERT_EQUAL(stat_of(p, "xdp_oversize"), MTU + ETH_HDR_LEN - XDPQ_RX_FRAME_MAX);
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

static void oversize_is_counted_native(void)
{
	oversize(XDP_MODE_NATIVE);
}

static void oversize_is_counted_generic(void)
{
	oversize(XDP_MODE_GENERIC);
}

/* What is sent arrives; below 60 bytes with a padding of zeros, whatever the chunk held before. */
static void sends_every_size(void)
{
	uint8_t frame[FRAME_BUF], got[FRAME_BUF];
	uint32_t bad = 0;
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	CU_ASSERT_EQUAL(p->txq[0]->max_frame, MTU + 18);
	far = packet_socket("vx1");
	for (uint32_t len = FRAME_MIN; len <= MTU + ETH_HDR_LEN && bad < 5; len++) {
		const uint32_t padded = len < 60 ? 60 : len;

		/* A dirty chunk first: the spare stack gives the latest one back. */
		frame_fill(frame, 200, 0xee);
		CU_ASSERT_TRUE(put_one(p, frame, 200));
		CU_ASSERT_EQUAL(far_receive(far, got), 200);
		memset(frame, 0, sizeof(frame));
		frame_fill(frame, len, len);
		CU_ASSERT_TRUE(put_one(p, frame, len));
		if (far_receive(far, got) == padded && memcmp(frame, got, padded) == 0)
			continue;
		printf("%u bytes were not sent as given\n", len);
		bad++;
	}
	CU_ASSERT_EQUAL(bad, 0);
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

/* From device to device by address, with the private header written back; chunks stay exact. */
static void passes_chunks_by_address(void)
{
	static struct batch batch;
	uint8_t frame[FRAME_BUF], got[FRAME_BUF];
	struct pkt *list[1] = {&batch.pkt[0]};
	struct port *in, *out;
	uint32_t bad = 0;
	int source, sink;

	veth_add("vx0", "vx1");
	veth_add("wx0", "wx1");
	in = create("vx0", XDP_MODE_AUTO);
	out = create("wx0", XDP_MODE_AUTO);
	source = packet_socket("vx1");
	sink = packet_socket("wx1");
	for (uint32_t i = 0; i < 5000 && bad < 5; i++) {
		const uint32_t len = FRAME_MIN + i % 1700;

		memset(frame, 0, 60);
		frame_fill(frame, len, i);
		send(source, frame, len, 0);
		if (poll_frames(in, &batch, DEADLINE_NS) != 1) {
			bad++;
			break;
		}
		batch.pkt[0].hdr[5] = 0x77;
		batch.pkt[0].consumed = PKT_MAY_CONSUME;
		bad += !put_all(out, list, 1) || batch.pkt[0].consumed != PKT_CONSUMED;
		done(in, &batch);
		frame[5] = 0x77;
		bad += far_receive(sink, got) != (len < 60 ? 60 : len) ||
		       memcmp(frame, got, len < 60 ? 60 : len) != 0;
	}
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_EQUAL(stat_of(in, "xdp_q0_chunks"), XDPQ_RX_CHUNKS);
	CU_ASSERT_EQUAL(stat_of(in, "xdp_q0_chunks") + stat_of(out, "xdp_q0_chunks") +
			    umem_free_count(umem),
			CHUNKS);
	close(source);
	close(sink);
	port_destroy(in);
	destroy(out, "wx0");
	veth_del("vx0");
	veth_del("wx0");
}

/* A frame without the switch's grant is copied, and its chunk goes back to where it came from. */
static void keeps_chunks_without_a_grant(void)
{
	static struct batch batch;
	uint8_t frame[FRAME_BUF];
	struct pkt *list[1] = {&batch.pkt[0]};
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	far = packet_socket("vx1");
	frame_fill(frame, 100, 1);
	send(far, frame, 100, 0);
	CU_ASSERT_EQUAL_FATAL(poll_frames(p, &batch, DEADLINE_NS), 1);
	CU_ASSERT_TRUE(put_all(p, list, 1));
	CU_ASSERT_EQUAL(batch.pkt[0].consumed, PKT_KEEP);
	done(p, &batch);
	CU_ASSERT_EQUAL(stat_of(p, "xdp_q0_fill"), XDPQ_RX_CHUNKS);
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

/*
 * Full bursts as fast as the ring takes them: every frame once, in order, none overwritten. The
 * kernel frees slots of the TX ring later than it completes frames; a sender that only counts
 * completions sends old slots again.
 */
static void burst(unsigned int frames)
{
	static uint8_t data[BATCH_MAX][128];
	struct pkt pkt[BATCH_MAX], *list[BATCH_MAX];
	uint32_t number = 0, next = 0, wrong = 0;
	uint8_t got[FRAME_BUF];
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	far = packet_socket("vx1");
	while (number < frames) {
		for (unsigned int i = 0; i < BATCH_MAX; i++, number++) {
			frame_fill(data[i], sizeof(data[i]), number);
			pkt_set(&pkt[i], data[i], sizeof(data[i]));
			list[i] = &pkt[i];
		}
		CU_ASSERT_TRUE_FATAL(put_all(p, list, BATCH_MAX));
		if (number % 1024)
			continue;
		while (next < number && !wrong) {
			uint32_t len = far_receive(far, got), seen;

			memcpy(&seen, got + ETH_HDR_LEN, 4);
			wrong += len != sizeof(data[0]) || seen != next++;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(next, frames);
	CU_ASSERT_EQUAL(stat_of(p, "xdp_q0_chunks") + umem_free_count(umem), CHUNKS);
	CU_ASSERT(stat_of(p, "xdp_q0_chunks") <= XDPQ_RX_CHUNKS + XDPQ_TX_RING + XDPQ_TX_SPARE);
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

static void bursts_lose_and_double_nothing(void)
{
	burst(200 * 1024);
}

static void bursts_through_the_kicker(void)
{
	CU_ASSERT_EQUAL_FATAL(kicker_create(&kicker, -1), 0);
	burst(200 * 1024);
	kicker_destroy(kicker);
	kicker = NULL;
}

/* Receives more than all rings hold, without and with a reader. */
static void a_receive_flood_keeps_the_books(void)
{
	static struct batch batch;
	uint8_t frame[FRAME_BUF];
	unsigned int n, total = 0;
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	far = packet_socket("vx1");
	frame_fill(frame, 100, 1);
	for (int i = 0; i < 5000; i++)
		send(far, frame, 100, 0);
	while ((n = poll_frames(p, &batch, 20000000)) != 0) {
		total += n;
		done(p, &batch);
	}
	CU_ASSERT(total >= XDPQ_RX_RING);
	CU_ASSERT_EQUAL(stat_of(p, "xdp_q0_chunks"), XDPQ_RX_CHUNKS);
	CU_ASSERT_TRUE(arrives(p, far, 100, 2));
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

/* ---- modes, refusals ---- */

static void modes_are_chosen_and_shown(void)
{
	static const struct {
		enum xdp_mode mode;
		const char *shown;
	} good[] = {
	    {XDP_MODE_AUTO, "native"}, {XDP_MODE_NATIVE, "native"}, {XDP_MODE_GENERIC, "generic"}};
	struct port_info info;
	struct port *p;
	char why[256];

	veth_add("vx0", "vx1");
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		p = create("vx0", good[i].mode);
		p->type->info(p, &info);
		CU_ASSERT_STRING_EQUAL(info.mode, good[i].shown);
		CU_ASSERT_STRING_EQUAL(info.where, "vx0");
		CU_ASSERT_EQUAL(info.state, PORT_UP);
		destroy(p, "vx0");
	}
	CU_ASSERT_EQUAL(try_create(&p, "vx0", 0, XDP_MODE_ZERO_COPY, why, sizeof(why)),
			-EOPNOTSUPP);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "zero-copy"));
	CU_ASSERT_EQUAL(umem_free_count(umem), CHUNKS);
	veth_del("vx0");
}

static void bad_configurations_are_refused(void)
{
	static const struct {
		const char *device;
		unsigned int nqueues;
		int err;
		const char *says;
	} bad[] = {
	    {"abcdefghijklmnop", 0, -EINVAL, "15"}, {"", 0, -EINVAL, "name"},
	    {"vx0/", 0, -EINVAL, "name"},           {"..", 0, -EINVAL, "name"},
	    {"nosuch", 0, -ENODEV, "nosuch"},       {"vx0", 2, -EINVAL, "1 queue"},
	    {"vx0", 64, -EINVAL, "1 queue"},        {"vx0", 65, -EINVAL, "64"},
	};
	struct port *p = NULL;
	char why[256];

	veth_add("vx0", "vx1");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(
		    try_create(&p, bad[i].device, bad[i].nqueues, XDP_MODE_AUTO, why, sizeof(why)),
		    bad[i].err);
		if (!strstr(why, bad[i].says))
			printf("\"%s\" does not say \"%s\"\n", why, bad[i].says);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, bad[i].says));
	}
	CU_ASSERT_EQUAL(umem_free_count(umem), CHUNKS);
	veth_del("vx0");
}

/* Somebody's program that passes everything; attached by netlink, as `ip` would. */
static int foreign_program(void)
{
	const struct bpf_insn insns[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS},
	    {.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "foreign", "BSD", insns, 2, NULL);
}

static void foreign_program_stays(void)
{
	static const uint32_t flags[] = {XDP_FLAGS_SKB_MODE, XDP_FLAGS_DRV_MODE};
	static const enum xdp_mode modes[] = {XDP_MODE_AUTO, XDP_MODE_NATIVE, XDP_MODE_GENERIC};
	int fd = foreign_program(), ifindex;
	const char *mode;
	uint32_t id, now;
	struct port *p;
	char why[256], text[32];

	CU_ASSERT_FATAL(fd >= 0);
	veth_add("vx0", "vx1");
	ifindex = (int)if_nametoindex("vx0");
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(bpf_xdp_attach(ifindex, fd, flags[i], NULL), 0);
		CU_ASSERT_EQUAL_FATAL(xdp_prog_attached(ifindex, &id, &mode), 1);
		snprintf(text, sizeof(text), "program %u in %s", id, mode);
		for (int j = 0; j < 3; j++) {
			CU_ASSERT_EQUAL(try_create(&p, "vx0", 0, modes[j], why, sizeof(why)),
					-EBUSY);
			CU_ASSERT_PTR_NOT_NULL(strstr(why, text));
			CU_ASSERT_EQUAL(xdp_prog_attached(ifindex, &now, &mode), 1);
			CU_ASSERT_EQUAL(now, id);
		}
		CU_ASSERT_EQUAL(bpf_xdp_detach(ifindex, flags[i], NULL), 0);
	}
	close(fd);
	CU_ASSERT_EQUAL(umem_free_count(umem), CHUNKS);
	veth_del("vx0");
}

static void two_ports_on_one_device_are_refused(void)
{
	struct port *p, *second;
	char why[256];
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	far = packet_socket("vx1");
	CU_ASSERT_EQUAL(try_create(&second, "vx0", 0, XDP_MODE_AUTO, why, sizeof(why)), -EBUSY);
	CU_ASSERT_TRUE(arrives(p, far, 100, 1));
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

/* ---- link ---- */

static void device_deleted_and_made_again(void)
{
	struct port_info info;
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	for (int round = 0; round < 10; round++) {
		far = packet_socket("vx1");
		CU_ASSERT_TRUE(arrives(p, far, 500, (uint32_t)round));
		close(far);
		veth_del("vx0");
		af_xdp_link_changed(p);
		p->type->info(p, &info);
		CU_ASSERT_EQUAL(info.state, PORT_DOWN);
		CU_ASSERT_STRING_EQUAL(info.reason, "device vx0 is gone; waits for it to return");
		CU_ASSERT_EQUAL(umem_free_count(umem), CHUNKS);
		veth_add("vx0", "vx1");
		af_xdp_link_changed(p);
		CU_ASSERT_TRUE(is_up(p));
	}
	destroy(p, "vx0");
	veth_del("vx0");
}

/* Between two looks the device was replaced by another with its name and even its number. */
static void device_replaced_unseen(void)
{
	unsigned int ifindex;
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	ifindex = if_nametoindex("vx0");
	veth_del("vx0");
	sh("ip link add vx0 index %u type veth peer name vx1", ifindex);
	sh("ip link set vx0 up && ip link set vx1 up");
	af_xdp_link_changed(p);
	CU_ASSERT_TRUE(is_up(p));
	far = packet_socket("vx1");
	CU_ASSERT_TRUE(arrives(p, far, 500, 1));
	close(far);
	destroy(p, "vx0");
	veth_del("vx0");
}

static void follows_the_link(void)
{
	struct port_info info;
	struct port *p;
	int far;

	veth_add("vx0", "vx1");
	p = create("vx0", XDP_MODE_AUTO);
	far = packet_socket("vx1");
	for (int round = 0; round < 10; round++) {
		const char *device = round % 2 ? "vx0" : "vx1";

		sh("ip link set %s down", device);
		af_xdp_link_changed(p);
		p->type->info(p, &info);
		CU_ASSERT_EQUAL(info.state, PORT_DOWN);
		CU_ASSERT(info.reason[0] != '\0');
		CU_ASSERT_EQUAL(p->rxq[0]->state, QUEUE_OFF);
		sh("ip link set %s up", device);
		af_xdp_link_changed(p);
		CU_ASSERT_TRUE(is_up(p));
	}
	close(far);
	far = packet_socket("vx1");
	CU_ASSERT_TRUE(arrives(p, far, 500, 1));
	close(far);
	sh("ip link set vx0 mtu 1400");
	af_xdp_link_changed(p);
	CU_ASSERT_TRUE(is_up(p));
	CU_ASSERT_EQUAL(p->txq[0]->max_frame, 1418);
	destroy(p, "vx0");
	veth_del("vx0");
}

/* Removed and added without a pause, while frames arrive and with frames in every ring. */
static void removed_and_added_at_once(void)
{
	uint8_t frame[FRAME_BUF];
	int far;

	veth_add("vx0", "vx1");
	far = packet_socket("vx1");
	frame_fill(frame, 300, 1);
	for (int round = 0; round < 30; round++) {
		struct port *p = create("vx0", round % 2 ? XDP_MODE_NATIVE : XDP_MODE_GENERIC);

		for (int i = 0; i < 50; i++) {
			send(far, frame, 300, 0);
			put_one(p, frame, 300);
		}
		destroy(p, "vx0");
	}
	close(far);
	veth_del("vx0");
}

/* A process that dies with a port leaves no program, and the device can be used at once. */
static void killed_process_leaves_nothing(void)
{
	const char *mode;
	uint32_t id;
	int ifindex, status, tube[2];
	struct port *p;
	pid_t child;
	char byte;

	veth_add("vx0", "vx1");
	ifindex = (int)if_nametoindex("vx0");
	CU_ASSERT_EQUAL_FATAL(pipe(tube), 0);
	child = fork();
	if (child == 0) {
		char why[256];
		struct umem *own;

		/* The parent's area is not inherited. */
		umem = umem_create(&own, CHUNKS) ? NULL : own;
		byte = (char)(try_create(&p, "vx0", 0, XDP_MODE_AUTO, why, sizeof(why)) != 0);
		if (write(tube[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	CU_ASSERT_EQUAL(read(tube[0], &byte, 1), 1);
	CU_ASSERT_EQUAL(byte, 0);
	CU_ASSERT_EQUAL(xdp_prog_attached(ifindex, &id, &mode), 1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(tube[0]);
	close(tube[1]);
	p = create("vx0", XDP_MODE_AUTO);
	destroy(p, "vx0");
	veth_del("vx0");
}

/* ---- several ---- */

static void several_queues(void)
{
	static struct batch batch;
	struct port_info info;
	struct port *p;
	char why[256];

	sh("ip link add vx0 numtxqueues 4 numrxqueues 4 type veth peer name vx1 numtxqueues 4 "
	   "numrxqueues 4");
	sh("ip link set vx0 up && ip link set vx1 up");
	p = create("vx0", XDP_MODE_AUTO);
	CU_ASSERT_EQUAL(p->nqueues, 4);
	for (unsigned int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(p->rxq[i]->ops->poll(p->rxq[i], &batch, &counters), 0);
		CU_ASSERT_EQUAL(p->rxq[i]->state, QUEUE_RUNNING);
	}
	destroy(p, "vx0");
	CU_ASSERT_EQUAL(try_create(&p, "vx0", 2, XDP_MODE_AUTO, why, sizeof(why)), 0);
	p->type->info(p, &info);
	CU_ASSERT_PTR_NOT_NULL(strstr(info.warning, "2 of 4"));
	destroy(p, "vx0");
	veth_del("vx0");
}

/* The promise of the sizes: 32 ports in 32768 chunks, each with full rings. */
static void thirty_two_ports_fit(void)
{
	struct umem *small = umem, *large;
	struct port *p[33];
	char name[16], peer[16], why[256];

	CU_ASSERT_EQUAL_FATAL(umem_create(&large, 32768), 0);
	umem = large;
	for (int i = 0; i < 32; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		snprintf(peer, sizeof(peer), "f%d", i);
		veth_add(name, peer);
		CU_ASSERT_EQUAL_FATAL(try_create(&p[i], name, 0, XDP_MODE_AUTO, why, sizeof(why)),
				      0);
	}
	CU_ASSERT(umem_free_count(umem) >= 32 * (XDPQ_TX_RING + XDPQ_TX_SPARE));
	for (int i = 0; i < 32; i++) {
		port_destroy(p[i]);
		snprintf(name, sizeof(name), "n%d", i);
		veth_del(name);
	}
	CU_ASSERT_EQUAL(umem_free_count(umem), 32768);
	umem_destroy(large);
	umem = small;
}

/* One port too many: refused with the numbers, the others go on. */
static void refused_when_chunks_are_used_up(void)
{
	struct umem *normal = umem, *tiny;
	struct port *first, *second;
	char why[256];

	CU_ASSERT_EQUAL_FATAL(umem_create(&tiny, 1024), 0);
	umem = tiny;
	veth_add("vx0", "vx1");
	veth_add("wx0", "wx1");
	first = create("vx0", XDP_MODE_AUTO);
	CU_ASSERT_EQUAL(try_create(&second, "wx0", 0, XDP_MODE_AUTO, why, sizeof(why)), -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "1024"));
	CU_ASSERT_EQUAL(umem_free_count(umem), 1024 - XDPQ_RX_CHUNKS);
	CU_ASSERT_TRUE(is_up(first));
	port_destroy(first);
	umem_destroy(tiny);
	umem = normal;
	veth_del("vx0");
	veth_del("wx0");
}

static const struct unit_case cases[] = {
    UNIT_CASE(receives_every_size_native),
    UNIT_CASE(receives_every_size_generic),
    UNIT_CASE(oversize_is_counted_native),
    UNIT_CASE(oversize_is_counted_generic),
    UNIT_CASE(sends_every_size),
    UNIT_CASE(passes_chunks_by_address),
    UNIT_CASE(keeps_chunks_without_a_grant),
    UNIT_CASE(bursts_lose_and_double_nothing),
    UNIT_CASE(bursts_through_the_kicker),
    UNIT_CASE(a_receive_flood_keeps_the_books),
    UNIT_CASE(modes_are_chosen_and_shown),
    UNIT_CASE(bad_configurations_are_refused),
    UNIT_CASE(foreign_program_stays),
    UNIT_CASE(two_ports_on_one_device_are_refused),
    UNIT_CASE(device_deleted_and_made_again),
    UNIT_CASE(device_replaced_unseen),
    UNIT_CASE(follows_the_link),
    UNIT_CASE(removed_and_added_at_once),
    UNIT_CASE(killed_process_leaves_nothing),
    UNIT_CASE(several_queues),
    UNIT_CASE(thirty_two_ports_fit),
    UNIT_CASE(refused_when_chunks_are_used_up),
};

int main(int argc, char **argv)
{
	int status;

	enter_namespace();
	if (umem_create(&umem, CHUNKS))
		return 1;
	status = unit_main("af_xdp", cases, ARRAY_LEN(cases), argc, argv);
	umem_destroy(umem);
	return status;
}
