/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>

#include "port/pcap_writer.h"

#define IDLE_NS 1000000	     /* lcores do not wake the thread, so it polls at this interval */
#define WRITE_MAX (1u << 20) /* limit of a write, so that space in the ring is freed early */

struct pcap_writer {
	uint8_t *ring;
	size_t size;
	int fd;
	pthread_t thread;
	int end;			   /* [pub] the producer adds no more bytes */
	int error;			   /* [pub] errno of the file; 0 */
	uint64_t head;			   /* [pub] free running; written by the producer */
	uint64_t cached_tail;		   /* [pub] as last read by the producer */
	uint64_t tail __rte_cache_aligned; /* [pub] written by the thread */
};

static bool
has_room(struct pcap_writer *w, size_t bytes)
{
	if (w->head + bytes - w->cached_tail <= w->size)
		return true;
	w->cached_tail = __atomic_load_n(&w->tail, __ATOMIC_ACQUIRE);
	return w->head + bytes - w->cached_tail <= w->size;
}

static uint64_t
copy_in(struct pcap_writer *w, uint64_t at, const struct pcap_piece *p)
{
	size_t off = at & (w->size - 1), first = RTE_MIN(p->len, w->size - off);

	memcpy(w->ring + off, p->bytes, first);
	memcpy(w->ring, (const uint8_t *)p->bytes + first, p->len - first);
	return at + p->len;
}

bool
pcap_writer_put(struct pcap_writer *w, const struct pcap_piece *piece, unsigned int n)
{
	uint64_t at = w->head;
	size_t bytes = 0;

	for (unsigned int i = 0; i < n; i++)
		bytes += piece[i].len;
	if (pcap_writer_failed(w) || !has_room(w, bytes))
		return false;
	for (unsigned int i = 0; i < n; i++)
		at = copy_in(w, at, &piece[i]);
	__atomic_store_n(&w->head, at, __ATOMIC_RELEASE);
	return true;
}

bool
pcap_writer_failed(const struct pcap_writer *w)
{
	return __atomic_load_n(&w->error, __ATOMIC_RELAXED) != 0;
}

/* ---- the thread ---- */

/* Bytes that one write() can take, up to the end of the ring. */
static size_t
lies_there(const struct pcap_writer *w)
{
	uint64_t head = __atomic_load_n(&w->head, __ATOMIC_ACQUIRE);
	size_t off = w->tail & (w->size - 1);

	return RTE_MIN(RTE_MIN(head - w->tail, w->size - off), (uint64_t)WRITE_MAX);
}

static void
write_some(struct pcap_writer *w, size_t n)
{
	ssize_t done = write(w->fd, w->ring + (w->tail & (w->size - 1)), n);

	if (done > 0)
		__atomic_store_n(&w->tail, w->tail + (uint64_t)done, __ATOMIC_RELEASE);
	else if (done == 0 || errno != EINTR)
		__atomic_store_n(&w->error, done == 0 ? EIO : errno, __ATOMIC_RELAXED);
}

static void *
writer_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = IDLE_NS};
	struct pcap_writer *w = arg;

	(void)pthread_setname_np(pthread_self(), "hca-capture");
	while (!pcap_writer_failed(w)) {
		/* in this order: the producer adds no bytes after it has set `end` */
		bool end = __atomic_load_n(&w->end, __ATOMIC_ACQUIRE);
		size_t n = lies_there(w);

		if (n != 0)
			write_some(w, n);
		else if (end)
			break;
		else
			nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Block signals in the thread: SIGXFSZ of a file that may not grow would end the process. */
static int
start_thread(struct pcap_writer *w)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, NULL, writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int
pcap_writer_start(int fd, size_t bytes, struct pcap_writer **out)
{
	struct pcap_writer *w = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*w));
	int rc = -ENOMEM;

	if (w == NULL)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->size = bytes;
	w->ring = malloc(bytes);
	if (w->ring == NULL)
		goto err_writer;
	rc = start_thread(w);
	if (rc != 0)
		goto err_ring;
	*out = w;
	return 0;

err_ring:
	free(w->ring);
err_writer:
	free(w);
	return rc;
}

int
pcap_writer_stop(struct pcap_writer *w)
{
	int error;

	__atomic_store_n(&w->end, 1, __ATOMIC_RELEASE);
	pthread_join(w->thread, NULL);
	error = w->error;
	free(w->ring);
	free(w);
	return -error;
}
