/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A front-end owns the file behind its guest's memory and can shrink it while we use it. The next
 * touch of the lost part raises SIGBUS in whatever thread touches it, usually a worker in the
 * middle of a copy. Checking the size first cannot help: it may change after the check.
 *
 * So the handler repairs the access: it maps a zero page over the hole and sets the flag of the
 * map it belongs to. The interrupted instruction is run again and succeeds; the worker goes on and
 * notices nothing. The control thread finds the flag and takes that port down. All other ports
 * lose nothing.
 *
 * The handler runs in any thread and may only use async-signal-safe means: it reads a fixed table
 * without a lock, and makes one mmap() system call. An entry becomes visible by the release store
 * of its size and is emptied by the control thread when no worker can touch the mapping. A fault
 * outside all watched mappings is a bug of ours: the default action is restored and the fault
 * repeats, which ends the process with a core dump.
 *
 * Rejected: reading guest memory through process_vm_readv() or copies under sigsetjmp(), which cost
 * every packet instead of only the attacked one.
 */
#include "ring/sigbus.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"

#define WATCH_MAX 16384

struct watch {
	uint8_t *base;
	size_t size; /* 0: entry is free; release by sigbus_watch(), acquire by the handler */
	size_t page_size;
	uint32_t *flag;
};

static struct watch table[WATCH_MAX];
static int table_used; /* entries that were ever used; release/acquire as `size` */

static struct watch *watch_of(const uint8_t *addr)
{
	const int used = load_acquire(&table_used);

	for (int i = 0; i < used; i++) {
		const size_t size = load_acquire(&table[i].size);

		if (size && addr >= table[i].base && (size_t)(addr - table[i].base) < size)
			return &table[i];
	}
	return NULL;
}

static int fill_hole(const struct watch *w, const uint8_t *addr)
{
	const size_t off = (size_t)(addr - w->base) / w->page_size * w->page_size;
	void *page = mmap(w->base + off, w->page_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return page == MAP_FAILED ? -1 : 0;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	const uint8_t *addr = info->si_addr;
	struct watch *w = watch_of(addr);

	(void)context;
	if (w && fill_hole(w, addr) == 0)
		store_relaxed(w->flag, 1);
	else
		signal(sig, SIG_DFL);
	errno = saved_errno;
}

int sigbus_install(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART};

	sa.sa_sigaction = on_sigbus;
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) ? -errno : 0;
}

int sigbus_watch(uint8_t *base, size_t size, size_t page_size, uint32_t *flag)
{
	int i = 0;

	while (i < table_used && table[i].size)
		i++;
	if (i == WATCH_MAX)
		return -ENOSPC;
	table[i].base = base;
	table[i].page_size = page_size;
	table[i].flag = flag;
	store_release(&table[i].size, size); /* pairs with the acquire in watch_of() */
	if (i == table_used)
		store_release(&table_used, table_used + 1); /* likewise */
	return i;
}

void sigbus_unwatch(int handle)
{
	if (handle >= 0)
		store_release(&table[handle].size, 0);
}
