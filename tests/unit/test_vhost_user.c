/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost-user over a real socket, with a front-end that does everything wrong. The device runs in
 * its own thread; the port has no workers, so that the hand-off is immediate.
 *
 * Each case ends with the number of open descriptors and of mappings back where it was: device and
 * front-end live in one process, and whatever the device forgets shows up there.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "control/vhost_user.h"
#include "guest/guest.h"
#include "unit.h"

#define PAIRS              2
#define F_PROTOCOL         FEATURE(VHOST_USER_F_PROTOCOL_FEATURES)
#define P_ALL              (FEATURE(0) | FEATURE(3) | FEATURE(13))
#define PARTIAL_TIMEOUT_MS 150
#define RETRY_TEST_MS      20

#define F_BASIC (FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_NET_F_MRG_RXBUF) | F_PROTOCOL)

struct device {
	struct loop *loop;
	struct loop_source *stop;
	struct port *port;
	struct vhost_user *vu;
	pthread_t thread;
	int stop_fd;
	char path[64];
	int fds; /* when idle */
	int maps;
};

static char dir[32];

/* ---- the device ---- */

static void stop_event(void *ctx, uint32_t events)
{
	(void)events;
	loop_stop(ctx);
}

static void *device_run(void *arg)
{
	struct device *d = arg;

	CU_ASSERT_EQUAL(loop_run(d->loop), 0);
	return NULL;
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Mappings of guest memory: those of memfds. */
static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:") != NULL;
	if (f)
		fclose(f);
	return n;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool idle_again(const struct device *d)
{
	const uint64_t end = clock_ns() + 2000000000;

	while (count_fds() != d->fds || count_maps() != d->maps) {
		if (clock_ns() > end)
			return false;
		nap();
	}
	return true;
}

static void device_start_mode(struct device *d, enum vhost_user_mode mode)
{
	char why[UNIX_WHY_SIZE] = "";
	struct vhost_user_config config;

	memset(d, 0, sizeof(*d));
	snprintf(d->path, sizeof(d->path), "%s/vu", dir);
	CU_ASSERT_EQUAL_FATAL(loop_create(&d->loop), 0);
	CU_ASSERT_EQUAL_FATAL(
	    vhost_port_create(&d->port, "p1", PAIRS, d->path, vhost_user_mode_name(mode)), 0);
	config = (struct vhost_user_config){.loop = d->loop,
					    .port = vhost_of(d->port),
					    .path = d->path,
					    .mode = mode,
					    .socket_mode = 0600,
					    .socket_group = UNIX_GROUP_NONE,
					    .message_timeout_ms = PARTIAL_TIMEOUT_MS,
					    .retry_ms = RETRY_TEST_MS};
	CU_ASSERT_EQUAL_FATAL(vhost_user_create(&d->vu, &config, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(why, "");
	d->stop_fd = eventfd(0, EFD_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(
	    loop_add_fd(d->loop, &d->stop, d->stop_fd, EPOLLIN, stop_event, d->loop), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&d->thread, NULL, device_run, d), 0);
	d->fds = count_fds();
	d->maps = count_maps();
}

static void device_start(struct device *d)
{
	device_start_mode(d, VHOST_USER_SERVER);
}

static void device_halt(struct device *d)
{
	CU_ASSERT_EQUAL(write(d->stop_fd, &(uint64_t){1}, 8), 8);
	pthread_join(d->thread, NULL);
}

static void device_stop(struct device *d)
{
	CU_ASSERT(idle_again(d));
	device_halt(d);
	vhost_user_destroy(d->vu);
	CU_ASSERT_NOT_EQUAL(access(d->path, F_OK), 0);
	port_destroy(d->port);
	loop_destroy(d->loop);
	close(d->stop_fd);
}

/* ---- the front-end ---- */

static void attach_with(const struct device *d, struct frontend *fe, uint64_t protocol)
{
	memset(fe, 0, sizeof(*fe));
	fe->timeout_ms = 2000;
	CU_ASSERT_EQUAL_FATAL(frontend_connect(fe, d->path), 0);
	if (protocol)
		CU_ASSERT_EQUAL(frontend_negotiate(fe, F_BASIC, protocol), 0);
}

/* With REPLY_ACK: the result of each message is seen. */
static void attach(const struct device *d, struct frontend *fe)
{
	attach_with(d, fe, P_ALL);
	fe->reply_ack = true;
	CU_ASSERT_EQUAL(frontend_sync(fe), 0);
}

static int set(struct frontend *fe, uint32_t request, const void *payload, uint32_t size)
{
	return frontend_set(fe, request, payload, size, NULL, 0);
}

static void send_u64(struct frontend *fe, uint32_t request, uint32_t flags, uint64_t value)
{
	CU_ASSERT_EQUAL(frontend_send(fe, request, flags, &value, 8, NULL, 0), 0);
}

static void done(struct device *d, struct frontend *fe)
{
	frontend_close(fe);
	device_stop(d);
}

/* ---- cases ---- */

static void negotiation(void)
{
	struct frontend fe;
	struct device d;
	uint64_t value;

	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL(fe.offered, VHOST_FEATURES);
	CU_ASSERT_EQUAL(frontend_get_u64(&fe, VU_GET_PROTOCOL_FEATURES, &value), 0);
	CU_ASSERT_EQUAL(value, P_ALL);
	CU_ASSERT_EQUAL(frontend_get_u64(&fe, VU_GET_QUEUE_NUM, &value), 0);
	CU_ASSERT_EQUAL(value, PAIRS);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(set(&fe, VU_SET_OWNER, NULL, 0), 0);
	CU_ASSERT_EQUAL(set(&fe, VU_RESET_OWNER, NULL, 0), 0);
	CU_ASSERT_EQUAL(set(&fe, VU_RESET_DEVICE, NULL, 0), 0);
	done(&d, &fe);
}

/* A whole guest comes and goes, again and again. */
static void guest_attaches_and_leaves(void)
{
	struct guest_config config = guest_config_default();
	struct port_info info;
	struct guest g;
	struct device d;

	config.npairs = PAIRS;
	device_start(&d);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL_FATAL(guest_create(&g, &config), 0);
		CU_ASSERT_EQUAL_FATAL(guest_attach(&g, d.path), 0);
		if (i % 2)
			CU_ASSERT_EQUAL(guest_stop(&g), 0);
		guest_destroy(&g);
		CU_ASSERT(idle_again(&d));
	}
	CU_ASSERT_EQUAL_FATAL(guest_create(&g, &config), 0);
	CU_ASSERT_EQUAL_FATAL(guest_attach(&g, d.path), 0);
	CU_ASSERT_EQUAL(frontend_sync(&g.fe), 0);
	device_halt(&d);
	d.port->type->info(d.port, &info);
	CU_ASSERT_EQUAL(info.state, PORT_UP);
	CU_ASSERT_EQUAL(info.rx_ring[1], 256);
	CU_ASSERT_EQUAL(read(d.stop_fd, &(uint64_t){0}, 8), 8);
	CU_ASSERT_EQUAL(pthread_create(&d.thread, NULL, device_run, &d), 0);
	guest_destroy(&g);
	device_stop(&d);
}

/* Every message of a set-up cut into single bytes, descriptors with the first. */

static void send_slowly(struct frontend *fe, uint32_t request, uint32_t flags, const void *payload,
			uint32_t size, const int *fds, unsigned int nfds)
{
	const struct vu_header h = {request, flags, size};
	uint8_t bytes[512];

	memcpy(bytes, &h, sizeof(h));
	if (size)
		memcpy(bytes + sizeof(h), payload, size);
	for (uint32_t i = 0; i < sizeof(h) + size; i++) {
		CU_ASSERT_EQUAL(frontend_send_raw(fe, bytes + i, 1, i ? NULL : fds, i ? 0 : nfds),
				0);
		if (i % 16 == 0)
			nap();
	}
}

static void expect_ack(struct frontend *fe, uint32_t request, uint64_t value)
{
	struct vu_msg m;

	CU_ASSERT_EQUAL(frontend_recv(fe, &m), 0);
	CU_ASSERT_EQUAL(m.header.request, request);
	CU_ASSERT_EQUAL(m.header.flags, VU_FLAG_VERSION | VU_FLAG_REPLY);
	CU_ASSERT_EQUAL(m.header.size, 8);
	CU_ASSERT_EQUAL(m.payload.u64 != 0, value != 0);
}

static uint32_t mem_payload(const struct guest_ram *ram, struct vu_mem_table *t, int fds[8])
{
	memset(t, 0, sizeof(*t));
	t->n = ram->n;
	for (unsigned int i = 0; i < ram->n; i++) {
		const struct guest_ram_region *r = &ram->region[i];

		t->region[i] = (struct vu_region){r->gpa, r->size, r->uva, r->offset};
		fds[i] = r->fd;
	}
	return 8 + ram->n * (uint32_t)sizeof(struct vu_region);
}

static void one_byte_at_a_time(void)
{
	const uint32_t ack = VU_FLAG_VERSION | VU_FLAG_NEED_REPLY;
	struct vu_mem_table table;
	struct guest_ram ram;
	struct frontend fe;
	struct device d;
	int fds[8], event;
	uint32_t size;

	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL_FATAL(guest_ram_create_h0(&ram, false), 0);
	event = eventfd(0, EFD_CLOEXEC);
	size = mem_payload(&ram, &table, fds);
	send_slowly(&fe, VU_GET_FEATURES, VU_FLAG_VERSION, NULL, 0, NULL, 0);
	expect_ack(&fe, VU_GET_FEATURES, 1);
	send_slowly(&fe, VU_SET_MEM_TABLE, ack, &table, size, fds, ram.n);
	expect_ack(&fe, VU_SET_MEM_TABLE, 0);
	for (uint32_t ring = 0; ring < 2 * PAIRS; ring++) {
		const struct vu_ring_state num = {ring, 256};
		const uint64_t uva = ram.region[0].uva + ring * 0x10000u;
		const struct vu_ring_addr addr = {
		    .ring = ring, .desc = uva, .avail = uva + 0x2000, .used = uva + 0x3000};
		const uint64_t index = ring;

		send_slowly(&fe, VU_SET_VRING_NUM, ack, &num, 8, NULL, 0);
		expect_ack(&fe, VU_SET_VRING_NUM, 0);
		send_slowly(&fe, VU_SET_VRING_ADDR, ack, &addr, sizeof(addr), NULL, 0);
		expect_ack(&fe, VU_SET_VRING_ADDR, 0);
		send_slowly(&fe, VU_SET_VRING_CALL, ack, &index, 8, &event, 1);
		expect_ack(&fe, VU_SET_VRING_CALL, 0);
		send_slowly(&fe, VU_SET_VRING_KICK, ack, &index, 8, &event, 1);
		expect_ack(&fe, VU_SET_VRING_KICK, 0);
	}
	CU_ASSERT_EQUAL(count_maps() - d.maps, 4);
	guest_ram_destroy(&ram);
	close(event);
	done(&d, &fe);
}

static void many_messages_in_one_write(void)
{
	struct {
		struct vu_header h;
		uint8_t payload[8];
	} __attribute__((packed)) burst[64];
	struct frontend fe;
	struct device d;

	device_start(&d);
	attach(&d, &fe);
	for (size_t i = 0; i < 64; i++) {
		const struct vu_ring_state state = {i % 4, 256};

		burst[i].h = (struct vu_header){VU_SET_VRING_NUM, 9, 8};
		memcpy(burst[i].payload, &state, 8);
	}
	CU_ASSERT_EQUAL(frontend_send_raw(&fe, burst, sizeof(burst), NULL, 0), 0);
	for (size_t i = 0; i < 64; i++)
		expect_ack(&fe, VU_SET_VRING_NUM, 0);
	done(&d, &fe);
}

static void absurd_headers(void)
{
	static const struct vu_header h[] = {
	    {5, 1, 0xffffffff}, {5, 1, 0x7fffffff}, {5, 1, 1000}, {5, 1, 0},   {2, 1, 4},
	    {8, 1, 7},          {8, 1, 9},          {1, 0, 0},    {1, 2, 0},   {1, 3, 0},
	    {1, 5, 0},          {0, 1, 0},          {41, 1, 0},   {200, 1, 0}, {0x7fffffff, 1, 0},
	    {0xffffffff, 1, 0}, {28, 1, 0},         {6, 1, 16},   {0, 9, 0},   {37, 1, 40},
	    {34, 1, 0},         {17, 1, 0},         {11, 1, 8},   {11, 9, 8},
	};
	struct frontend fe;
	struct device d;

	device_start(&d);
	for (size_t i = 0; i < sizeof(h) / sizeof(h[0]); i++) {
		uint8_t bytes[sizeof(h[i]) + 64];

		memset(bytes, 0xff, sizeof(bytes));
		memcpy(bytes, &h[i], sizeof(h[i]));
		attach_with(&d, &fe, 0);
		CU_ASSERT_EQUAL(frontend_send_raw(&fe, bytes, sizeof(bytes), NULL, 0), 0);
		CU_ASSERT(frontend_closed_by_peer(&fe));
		frontend_close(&fe);
	}
	CU_ASSERT(idle_again(&d));
	attach(&d, &fe);
	done(&d, &fe);
}

/* In step and with REPLY_ACK: refused with an answer, and the connection goes on. */
static void refusals_are_answered(void)
{
	const uint8_t zero[512] = {0};
	static const uint32_t unknown[] = {0, 6, 19, 28, 36, 37, 41, 200, 0x7fffffff};
	struct frontend fe;
	struct device d;

	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL(set(&fe, VU_SET_VRING_NUM, zero, 7), -EREMOTEIO);
	CU_ASSERT_EQUAL(set(&fe, VU_SET_VRING_NUM, zero, 9), -EREMOTEIO);
	CU_ASSERT_EQUAL(set(&fe, VU_SET_FEATURES, zero, 4), -EREMOTEIO);
	CU_ASSERT_EQUAL(set(&fe, VU_SET_MEM_TABLE, zero, 0), -EREMOTEIO);
	CU_ASSERT_EQUAL(set(&fe, VU_SET_OWNER, zero, 512), -EREMOTEIO);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		CU_ASSERT_EQUAL(set(&fe, unknown[i], zero, 16), -EREMOTEIO);
	send_u64(&fe, VU_SET_FEATURES, 0xd, F_BASIC); /* says it is a reply */
	expect_ack(&fe, VU_SET_FEATURES, 1);
	for (unsigned int bit = 0; bit < 64; bit++) {
		const bool offered = VHOST_FEATURES >> bit & 1;

		CU_ASSERT_EQUAL(frontend_set_u64(&fe, VU_SET_FEATURES, F_BASIC | FEATURE(bit)),
				offered ? 0 : -EREMOTEIO);
	}
	CU_ASSERT_EQUAL(frontend_set_u64(&fe, VU_SET_PROTOCOL_FEATURES, UINT64_MAX), -EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_ENABLE, 0, 2), -EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_BASE, 0, 70000), -EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_NUM, 0, 3), -EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_sync(&fe), 0);
	done(&d, &fe);
}

static void refusals_close_without_reply_ack(void)
{
	struct frontend fe;
	struct device d;

	device_start(&d);
	attach_with(&d, &fe, FEATURE(0));
	send_u64(&fe, VU_SET_FEATURES, 9, FEATURE(34)); /* need_reply without REPLY_ACK */
	CU_ASSERT(frontend_closed_by_peer(&fe));
	frontend_close(&fe);
	attach_with(&d, &fe, P_ALL);
	send_u64(&fe, VU_SET_FEATURES, 1, FEATURE(34)); /* REPLY_ACK without need_reply */
	CU_ASSERT(frontend_closed_by_peer(&fe));
	frontend_close(&fe);
	attach_with(&d, &fe, FEATURE(0));
	send_u64(&fe, VU_SET_FEATURES, 9, F_BASIC); /* fine, and not answered */
	CU_ASSERT_EQUAL(frontend_sync(&fe), 0);
	done(&d, &fe);
}

static void ring_numbers(void)
{
	static const uint32_t bad[] = {2 * PAIRS, 255, 256, 0x10000, 0x80000000, 0xffffffff};
	static const uint64_t bad_fd[] = {0xff, 0x1ff, 0x10000, 0xffffffffffffff00, 0x100000000};
	struct vu_ring_addr addr = {.desc = 0};
	int event = eventfd(0, EFD_CLOEXEC);
	struct frontend fe;
	struct device d;
	uint32_t base;

	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_BASE, 0, 7), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		addr.ring = bad[i];
		CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_NUM, bad[i], 256), -EREMOTEIO);
		CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_BASE, bad[i], 9), -EREMOTEIO);
		CU_ASSERT_EQUAL(frontend_set_ring(&fe, VU_SET_VRING_ENABLE, bad[i], 1), -EREMOTEIO);
		CU_ASSERT_EQUAL(set(&fe, VU_SET_VRING_ADDR, &addr, sizeof(addr)), -EREMOTEIO);
	}
	for (size_t i = 0; i < sizeof(bad_fd) / sizeof(bad_fd[0]); i++)
		for (uint32_t request = VU_SET_VRING_KICK; request <= VU_SET_VRING_ERR; request++)
			CU_ASSERT_EQUAL(frontend_set(&fe, request, &bad_fd[i], 8, &event, 1),
					-EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_get_base(&fe, 0, &base), 0);
	CU_ASSERT_EQUAL(base, 7);
	CU_ASSERT_EQUAL(frontend_get_base(&fe, 0, &base), 0);
	CU_ASSERT_EQUAL(base, 7);
	frontend_close(&fe);
	close(event);
	d.fds--;
	device_stop(&d);
}

static void missing_and_marked_descriptors(void)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct vu_mem_table table;
	struct guest_ram ram;
	struct frontend fe;
	struct device d;
	uint32_t size;
	int fds[8];

	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL_FATAL(guest_ram_create_h0(&ram, false), 0);
	size = mem_payload(&ram, &table, fds);
	for (uint32_t request = VU_SET_VRING_KICK; request <= VU_SET_VRING_ERR; request++) {
		const uint64_t none = VU_NO_FD | 1, one = 1;

		CU_ASSERT_EQUAL(frontend_set(&fe, request, &none, 8, NULL, 0), 0);
		CU_ASSERT_EQUAL(frontend_set(&fe, request, &none, 8, &event, 1), 0);
		CU_ASSERT_EQUAL(frontend_set(&fe, request, &one, 8, NULL, 0), -EREMOTEIO);
		CU_ASSERT_EQUAL(frontend_set(&fe, request, &one, 8, &event, 1), 0);
		CU_ASSERT_EQUAL(frontend_set(&fe, request, &one, 8, fds, 2), -EREMOTEIO);
	}
	CU_ASSERT_EQUAL(frontend_set(&fe, VU_SET_MEM_TABLE, &table, size, NULL, 0), -EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_set(&fe, VU_SET_MEM_TABLE, &table, size, fds, 1), -EREMOTEIO);
	CU_ASSERT_EQUAL(frontend_set(&fe, VU_SET_OWNER, NULL, 0, &event, 1), -EREMOTEIO);
	for (int fd = 0; fd < 3; fd++)
		CU_ASSERT(fcntl(fd, F_GETFD) >= 0);
	guest_ram_destroy(&ram);
	close(event);
	d.fds--;
	done(&d, &fe);
}

static void bad_memory_tables(void)
{
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct vu_mem_table good, bad;
	struct guest_ram ram;
	struct frontend fe;
	struct device d;
	uint32_t size;
	int fds[8], maps;

	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL_FATAL(guest_ram_create_h0(&ram, false), 0);
	size = mem_payload(&ram, &good, fds);
	CU_ASSERT_EQUAL(frontend_set(&fe, VU_SET_MEM_TABLE, &good, size, fds, 2), 0);
	maps = count_maps();
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		bad = good;                                                                        \
		change;                                                                            \
		CU_ASSERT_EQUAL(frontend_set(&fe, VU_SET_MEM_TABLE, &bad, size, fds, 2),           \
				-EREMOTEIO);                                                       \
		CU_ASSERT_EQUAL(count_maps(), maps);                                               \
	} while (0)
	REFUSED(bad.n = 0);
	REFUSED(bad.n = 9);
	REFUSED(bad.n = 0xffffffff);
	REFUSED(bad.padding = 1);
	REFUSED(bad.region[1].gpa = 0);
	REFUSED(bad.region[1].gpa = 0x100000);
	REFUSED(bad.region[1].uva = bad.region[0].uva);
	REFUSED(bad.region[1].size = 0);
	REFUSED(bad.region[1].size = UINT64_C(1) << 63);
	REFUSED(bad.region[1].size = 0xfffffffffffff000; bad.region[1].offset = 0x2000);
	REFUSED(bad.region[1].gpa = 0xfffffffffffff000; bad.region[1].size = 0x2000);
	REFUSED(bad.region[1].uva = 0xfffffffffffff000; bad.region[1].size = 0x2000);
	REFUSED(bad.region[1].offset = UINT64_C(1) << 63);
	REFUSED(bad.region[1].size = 0x400000);
	fds[1] = null_fd;
	REFUSED(bad.n = 2);
	guest_ram_destroy(&ram);
	close(null_fd);
	d.fds--;
	done(&d, &fe);
}

static void disconnect_in_the_middle(void)
{
	struct vu_mem_table table = {.n = 8};
	const struct vu_header h = {VU_SET_MEM_TABLE, 1, sizeof(table)};
	uint8_t bytes[sizeof(h) + sizeof(table)];
	struct guest_ram ram;
	struct frontend fe;
	struct device d;
	int fds[8];

	CU_ASSERT_EQUAL_FATAL(guest_ram_create_h0(&ram, false), 0);
	for (int i = 0; i < 8; i++)
		fds[i] = ram.region[0].fd;
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &table, sizeof(table));
	device_start(&d);
	for (size_t i = 0; i < 300; i++) {
		attach_with(&d, &fe, 0);
		CU_ASSERT_EQUAL(frontend_send_raw(&fe, bytes, 1 + i % sizeof(bytes), fds, 8), 0);
		frontend_close(&fe);
	}
	CU_ASSERT(idle_again(&d));
	attach(&d, &fe);
	CU_ASSERT_EQUAL(frontend_set_mem(&fe, &ram), 0);
	frontend_close(&fe);
	CU_ASSERT(idle_again(&d));
	guest_ram_destroy(&ram);
	d.fds = count_fds();
	d.maps = count_maps();
	device_stop(&d);
}

static void too_many_descriptors(void)
{
	const struct vu_header h = {VU_SET_MEM_TABLE, 1, 264};
	struct frontend fe;
	struct device d;
	int fds[16];

	device_start(&d);
	for (int i = 0; i < 16; i++)
		fds[i] = 0;
	attach_with(&d, &fe, 0);
	CU_ASSERT_EQUAL(frontend_send_raw(&fe, &h, sizeof(h), fds, 9), 0);
	CU_ASSERT(frontend_closed_by_peer(&fe));
	frontend_close(&fe);
	attach_with(&d, &fe, 0);
	CU_ASSERT_EQUAL(frontend_send_raw(&fe, &h, sizeof(h), fds, 6), 0);
	CU_ASSERT_EQUAL(frontend_send_raw(&fe, &h, sizeof(h), fds, 6), 0);
	CU_ASSERT(frontend_closed_by_peer(&fe));
	done(&d, &fe);
}

static void slow_front_ends_are_cut_off(void)
{
	const struct vu_header h = {VU_GET_FEATURES, 1, 0};
	struct frontend fe;
	struct device d;
	ssize_t n = 1;

	device_start(&d);
	attach_with(&d, &fe, 0);
	CU_ASSERT_EQUAL(frontend_send_raw(&fe, &h, 5, NULL, 0), 0);
	CU_ASSERT(frontend_closed_by_peer(&fe));
	frontend_close(&fe);
	/* Asks for ever and reads nothing. */
	attach_with(&d, &fe, 0);
	for (int i = 0; i < 100000 && n > 0; i++)
		n = send(fe.fd, &h, sizeof(h), MSG_NOSIGNAL);
	CU_ASSERT(n < 0 && (errno == EPIPE || errno == ECONNRESET));
	frontend_close(&fe);
	/* An idle one may stay. */
	attach_with(&d, &fe, 0);
	nanosleep(&(struct timespec){.tv_nsec = 2 * PARTIAL_TIMEOUT_MS * 1000000L}, NULL);
	CU_ASSERT_EQUAL(frontend_sync(&fe), 0);
	done(&d, &fe);
}

static void second_front_end(void)
{
	struct frontend fe, other;
	struct device d;

	device_start(&d);
	attach(&d, &fe);
	for (int i = 0; i < 10; i++) {
		attach_with(&d, &other, 0);
		CU_ASSERT(frontend_closed_by_peer(&other));
		frontend_close(&other);
	}
	CU_ASSERT_EQUAL(frontend_sync(&fe), 0);
	/* The next one may come the moment the first has gone. */
	for (int i = 0; i < 100; i++) {
		frontend_close(&fe);
		attach(&d, &fe);
	}
	done(&d, &fe);
}

static void client_mode(void)
{
	struct frontend fe = {.timeout_ms = 2000};
	struct device d;
	int listener;

	device_start_mode(&d, VHOST_USER_CLIENT);
	nanosleep(&(struct timespec){.tv_nsec = 3 * RETRY_TEST_MS * 1000000L}, NULL);
	listener = frontend_listen(d.path);
	CU_ASSERT_FATAL(listener >= 0);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL_FATAL(frontend_accept(&fe, listener), 0);
		CU_ASSERT_EQUAL(frontend_negotiate(&fe, F_BASIC, P_ALL), 0);
		CU_ASSERT_EQUAL(frontend_sync(&fe), 0);
		frontend_close(&fe);
	}
	close(listener);
	unlink(d.path);
	device_stop(&d);
}

static void live_socket_is_refused(void)
{
	char why[UNIX_WHY_SIZE] = "";
	struct vhost_user_config config;
	struct vhost_user *vu = NULL;
	struct port *port;
	struct loop *loop;
	struct device d;

	device_start(&d);
	CU_ASSERT_EQUAL(loop_create(&loop), 0);
	CU_ASSERT_EQUAL(vhost_port_create(&port, "p2", 1, d.path, "server"), 0);
	config = (struct vhost_user_config){.loop = loop,
					    .port = vhost_of(port),
					    .path = d.path,
					    .socket_mode = 0600,
					    .socket_group = UNIX_GROUP_NONE};
	CU_ASSERT_EQUAL(vhost_user_create(&vu, &config, why, sizeof(why)), -EADDRINUSE);
	CU_ASSERT_PTR_NULL(vu);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, d.path));
	CU_ASSERT_EQUAL(access(d.path, F_OK), 0);
	port_destroy(port);
	loop_destroy(loop);
	device_stop(&d);
}

/* Front-ends connected, half-way and idle when the port goes. */
static void destroyed_while_connected(void)
{
	const uint8_t half[5] = {1};
	struct frontend fe, waiting[4];
	struct device d;
	int fds;

	fds = count_fds();
	device_start(&d);
	attach(&d, &fe);
	CU_ASSERT_EQUAL(frontend_send_raw(&fe, half, sizeof(half), NULL, 0), 0);
	for (int i = 0; i < 4; i++)
		attach_with(&d, &waiting[i], 0);
	device_halt(&d);
	vhost_user_destroy(d.vu);
	CU_ASSERT(frontend_closed_by_peer(&fe));
	frontend_close(&fe);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT(frontend_closed_by_peer(&waiting[i]));
		frontend_close(&waiting[i]);
	}
	port_destroy(d.port);
	loop_destroy(d.loop);
	close(d.stop_fd);
	CU_ASSERT_EQUAL(count_fds(), fds);
}

/* Sessions of random messages, mostly well-formed, with a fixed seed. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void random_message(struct frontend *fe, uint64_t *seed, const int *fds)
{
	const uint64_t r = next_random(seed);
	struct vu_header h = {(uint32_t)(r % 42), 1 | (uint32_t)(r >> 8 & 8), 8};
	uint8_t bytes[sizeof(h) + 300];

	for (size_t i = sizeof(h); i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(next_random(seed) % 7 ? 0 : next_random(seed));
	if (r >> 16 & 1)
		h.size = h.request == VU_SET_VRING_ADDR  ? 40
			 : h.request == VU_SET_MEM_TABLE ? 72
							 : 0;
	if ((r >> 20 & 63) == 0)
		h.size = (uint32_t)next_random(seed);
	memcpy(bytes, &h, sizeof(h));
	frontend_send_raw(fe, bytes, sizeof(h) + h.size % 300, fds, (unsigned int)(r >> 32) % 3);
}

static void random_sessions(void)
{
	const int fds[3] = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC), 0};
	uint64_t seed = 0x9e3779b97f4a7c15;
	struct frontend fe;
	struct device d;

	device_start(&d);
	for (int i = 0; i < 2000; i++) {
		attach_with(&d, &fe, i % 2 ? P_ALL : 0);
		for (int k = 0; k < 20; k++)
			random_message(&fe, &seed, fds);
		frontend_close(&fe);
	}
	CU_ASSERT(idle_again(&d));
	attach(&d, &fe);
	frontend_close(&fe);
	CU_ASSERT(idle_again(&d));
	close(fds[0]);
	close(fds[1]);
	d.fds -= 2;
	device_stop(&d);
}

static const struct unit_case cases[] = {
    UNIT_CASE(negotiation),
    UNIT_CASE(guest_attaches_and_leaves),
    UNIT_CASE(one_byte_at_a_time),
    UNIT_CASE(many_messages_in_one_write),
    UNIT_CASE(absurd_headers),
    UNIT_CASE(refusals_are_answered),
    UNIT_CASE(refusals_close_without_reply_ack),
    UNIT_CASE(ring_numbers),
    UNIT_CASE(missing_and_marked_descriptors),
    UNIT_CASE(bad_memory_tables),
    UNIT_CASE(disconnect_in_the_middle),
    UNIT_CASE(too_many_descriptors),
    UNIT_CASE(slow_front_ends_are_cut_off),
    UNIT_CASE(second_front_end),
    UNIT_CASE(client_mode),
    UNIT_CASE(live_socket_is_refused),
    UNIT_CASE(destroyed_while_connected),
    UNIT_CASE(random_sessions),
};

int main(int argc, char **argv)
{
	int result;

	if (guest_mem_catch_sigbus())
		return 1;
	copy_init();
	log_set_level(LOG_LEVEL_ERROR); /* hundreds of refusals are the point of this test */
	snprintf(dir, sizeof(dir), "/tmp/xvs-vu-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	result = unit_main("vhost_user", cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
	if (rmdir(dir)) {
		printf("left files behind in %s\n", dir);
		return 1;
	}
	return result;
}
