/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "port/pcap_writer.h"
#include "port/port_pcap.h"
#include "port/port_wrap.h"
#include "wire/wire_view.h"

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_SNAPLEN 65535u
#define PCAP_ETHERNET 1u
#define COPY_FRAMES 32u
#define COPY_BYTES 9216u /* per frame; longer frames are cut, as by snaplen */
#define MARK_MAX 40u	 /* a comment, with a zero at its end */

#define NG_SECTION 0x0a0d0d0au
#define NG_MAGIC 0x1a2b3c4du
#define NG_INTERFACE 1u
#define NG_STATISTICS 5u
#define NG_PACKET 6u
#define NG_OPTION(code, len) ((uint32_t)(len) << 16 | (code))
#define NG_COMMENT 1u
#define NG_FLAGS 2u
#define NG_IF_NAME 2u
#define NG_IF_TSRESOL 9u
#define NG_ISB_IFDROP 5u
#define NG_ISB_USRDELIV 8u
#define NG_RING (32u << 20) /* bytes buffered for the disk */
#define NG_NAME_MAX 60u
#define NG_HEAD_WORDS 40u

/* epb_flags */
enum direction {
	RECEIVED = 1,
	SENT = 2
};

struct pcap_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, link;
};

struct pcap_frame {
	uint32_t sec, nsec, caplen, len;
};

struct hca_pcap {
	FILE *f; /* pcapng: used by the writer only */
	pthread_mutex_t lock;
	uint64_t frames, max, lost;
	uint64_t last; /* time of day of the last frame */
	bool failed;
	bool is_ng;
	struct pcap_writer *writer; /* pcapng */
	struct hca_pcap_ng ng;
};

struct copied {
	const struct rte_mbuf *m;
	uint32_t len, caplen;
	char mark[MARK_MAX]; /* "" or the fault of the frame */
	uint8_t data[COPY_BYTES];
};

/* State of one queue for hca_port_pcap_mark(), on the lcore of tx. */
struct pcap_lane {
	uint16_t passing;	       /* frames of copy[] that the inner port takes just now */
	const struct rte_mbuf *marked; /* the next frame to come has next_mark */
	char next_mark[MARK_MAX];
} __rte_cache_aligned;

struct port_pcap {
	struct hca_port_wrap wrap;
	pthread_mutex_t lock; /* protects file */
	struct hca_pcap *file;
	bool both_ways;
	struct copied copy[COPY_FRAMES]; /* of the queue that holds lock */
	struct pcap_lane lane[];	 /* wrap.port.queues */
};

static int
open_file(const char *path, int flags, uint64_t max_frames, const void *head, size_t bytes,
	  struct hca_pcap **out)
{
	struct hca_pcap *c = calloc(1, sizeof(*c));
	int fd, rc;

	if (c == NULL)
		return -ENOMEM;
	/* never follow a symbolic link */
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
	c->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
	if (c->f == NULL) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		goto err_free;
	}
	if (fwrite(head, bytes, 1, c->f) != 1) {
		rc = -EIO;
		goto err_file;
	}
	c->max = max_frames ? max_frames : UINT64_MAX;
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return 0;

err_file:
	fclose(c->f);
err_free:
	free(c);
	return rc;
}

int
hca_pcap_open(const char *path, uint64_t max_frames, struct hca_pcap **out)
{
	const struct pcap_head head = {.magic = PCAP_MAGIC_NS,
				       .major = 2,
				       .minor = 4,
				       .snaplen = PCAP_SNAPLEN,
				       .link = PCAP_ETHERNET};

	return open_file(path, O_TRUNC, max_frames, &head, sizeof(head), out);
}

/* One section and one interface: its name, and times in ns. Returns the length. */
static size_t
ng_head(const char *interface, uint32_t snaplen, uint32_t head[NG_HEAD_WORDS])
{
	uint32_t name = (uint32_t)strnlen(interface, NG_NAME_MAX), words = (name + 3) / 4;
	uint32_t bytes = 32 + 4 + 4 * words, n = 0;

	memset(head, 0, NG_HEAD_WORDS * sizeof(head[0]));
	head[n++] = NG_SECTION;
	head[n++] = 28;
	head[n++] = NG_MAGIC;
	head[n++] = 1;
	head[n++] = UINT32_MAX;
	head[n++] = UINT32_MAX;
	head[n++] = 28;
	head[n++] = NG_INTERFACE;
	head[n++] = bytes;
	head[n++] = PCAP_ETHERNET;
	head[n++] = snaplen;
	head[n++] = NG_OPTION(NG_IF_NAME, name);
	memcpy(&head[n], interface, name);
	n += words;
	head[n++] = NG_OPTION(NG_IF_TSRESOL, 1);
	head[n++] = 9;
	head[n++] = NG_OPTION(0, 0);
	head[n++] = bytes;
	return n * sizeof(head[0]);
}

int
hca_pcap_open_ng(const char *path, const struct hca_pcap_ng *ng, struct hca_pcap **out)
{
	uint32_t snaplen = ng->snaplen != 0 ? ng->snaplen : PCAP_SNAPLEN;
	size_t ring = ng->ring != 0 ? ng->ring : NG_RING, bytes;
	uint32_t head[NG_HEAD_WORDS];
	struct hca_pcap *c = NULL;
	int rc;

	bytes = ng_head(ng->interface, snaplen, head);
	rc = open_file(path, ng->replace ? O_TRUNC : O_EXCL, 0, head, bytes, &c);
	if (rc != 0)
		return rc;
	c->is_ng = true;
	c->ng = *ng;
	c->ng.snaplen = snaplen;
	rc = fflush(c->f) == 0 ? pcap_writer_start(fileno(c->f), ring, &c->writer) : -errno;
	if (rc != 0) {
		hca_pcap_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

/* Writes the number of frames in the file, and of frames that were lost. */
static void
put_statistics(struct hca_pcap *c)
{
	const uint32_t total = 24 + 2 * 12 + 4;
	const uint32_t block[] = {
		NG_STATISTICS,
		total,
		0,
		(uint32_t)(c->last >> 32),
		(uint32_t)c->last,
		NG_OPTION(NG_ISB_IFDROP, 8),
		(uint32_t)c->lost,
		(uint32_t)(c->lost >> 32),
		NG_OPTION(NG_ISB_USRDELIV, 8),
		(uint32_t)c->frames,
		(uint32_t)(c->frames >> 32),
		NG_OPTION(0, 0),
		total,
	};

	_Static_assert(sizeof(block) == 24 + 2 * 12 + 4, "its length");
	if (fwrite(block, sizeof(block), 1, c->f) != 1)
		c->failed = true;
}

static void
end_writer(struct hca_pcap *c)
{
	if (c->writer == NULL)
		return;
	if (pcap_writer_stop(c->writer) != 0)
		c->failed = true;
	else
		put_statistics(c);
}

int
hca_pcap_close(struct hca_pcap *file)
{
	bool failed;

	if (file == NULL)
		return 0;
	end_writer(file);
	failed = file->failed;
	if (fclose(file->f) != 0)
		failed = true;
	pthread_mutex_destroy(&file->lock);
	free(file);
	return failed ? -EIO : 0;
}

uint64_t
hca_pcap_frames(const struct hca_pcap *file)
{
	return __atomic_load_n(&file->frames, __ATOMIC_RELAXED);
}

uint64_t
hca_pcap_lost(const struct hca_pcap *file)
{
	return __atomic_load_n(&file->lost, __ATOMIC_RELAXED);
}

bool
hca_pcap_failed(const struct hca_pcap *file)
{
	return file->writer != NULL && pcap_writer_failed(file->writer);
}

static void
put(struct hca_pcap *c, const void *bytes, size_t n)
{
	if (n != 0 && fwrite(bytes, n, 1, c->f) != 1)
		c->failed = true;
}

static bool
put_classic(struct hca_pcap *c, const uint8_t *data, uint32_t caplen, uint32_t len, uint64_t now)
{
	const struct pcap_frame head = {.sec = (uint32_t)(now / 1000000000u),
					.nsec = (uint32_t)(now % 1000000000u),
					.caplen = caplen,
					.len = len};

	put(c, &head, sizeof(head));
	put(c, data, caplen);
	return true;
}

/* False: no room. mark: a comment, or "". */
static bool
put_ng(struct hca_pcap *c, const uint8_t *data, uint32_t caplen, uint32_t len, uint64_t now,
       enum direction way, const char *mark)
{
	uint32_t pad = -caplen & 3, chars = (uint32_t)strlen(mark), mark_pad = -chars & 3;
	uint32_t comment[1] = {NG_OPTION(NG_COMMENT, chars)};
	uint32_t comment_bytes = chars != 0 ? 4 + chars + mark_pad : 0;
	uint32_t total = 32 + caplen + pad + comment_bytes + 12;
	uint64_t at = now + c->ng.epoch;
	const uint32_t head[] = {NG_PACKET,    total,  0,  (uint32_t)(at >> 32),
				 (uint32_t)at, caplen, len};
	const uint32_t tail[] = {NG_OPTION(NG_FLAGS, 4), way, NG_OPTION(0, 0), total};

	const struct pcap_piece pieces[] = {
		{head, sizeof(head)}, {data, caplen},
		{"\0\0\0", pad},      {comment, chars != 0 ? sizeof(comment) : 0},
		{mark, chars},	      {"\0\0\0", mark_pad},
		{tail, sizeof(tail)}};

	c->last = at;
	return pcap_writer_put(c->writer, pieces, RTE_DIM(pieces));
}

static bool
wanted(const struct hca_pcap_ng *ng, const uint8_t *data, uint32_t len, enum direction way)
{
	struct hca_wire_view v;

	if (way == RECEIVED ? ng->no_received : ng->no_sent)
		return false;
	if (!ng->one_qp)
		return true;
	if (hca_wire_parse(data, len, &v) != 0)
		return false;
	if (ng->wire != HCA_WIRE_NONE && v.wire != ng->wire)
		return false;
	if (way == RECEIVED)
		return v.dst == ng->qpn;
	return v.dst == ng->remote_qpn || v.src == ng->qpn;
}

/* The caller holds the file's lock. */
static void
write_frame(struct hca_pcap *c, const uint8_t *data, uint32_t caplen, uint32_t len, uint64_t now,
	    enum direction way, const char *mark)
{
	bool there;

	if ((c->is_ng && !wanted(&c->ng, data, caplen, way)) || c->frames >= c->max)
		return;
	there = c->is_ng ? put_ng(c, data, RTE_MIN(caplen, c->ng.snaplen), len, now, way, mark)
			 : put_classic(c, data, caplen, len, now);
	hca_port_count(&c->frames, there);
	hca_port_count(&c->lost, !there);
}

static void
copy_frame(struct pcap_lane *l, struct copied *c, const struct rte_mbuf *m)
{
	c->m = m;
	c->len = m->data_len;
	c->caplen = RTE_MIN(m->data_len, COPY_BYTES);
	memcpy(c->data, rte_pktmbuf_mtod(m, void *), c->caplen);
	c->mark[0] = '\0';
	if (l->marked == m)
		memcpy(c->mark, l->next_mark, sizeof(c->mark));
	l->marked = NULL;
}

/*
 * The receiver may change a frame that the inner port has accepted: copy it first. It may also
 * answer before the frame is in the file: the answer, which goes to the same file, waits.
 */
static uint16_t
write_and_pass(struct port_pcap *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct pcap_lane *l = &p->lane[q];
	uint16_t took;

	for (uint16_t i = 0; i < n; i++)
		copy_frame(l, &p->copy[i], m[i]);
	pthread_mutex_lock(&p->file->lock);
	l->passing = n;
	took = p->wrap.inner->ops->tx(p->wrap.inner, q, m, n, now);
	l->passing = 0;
	for (uint16_t i = 0; i < took; i++)
		write_frame(p->file, p->copy[i].data, p->copy[i].caplen, p->copy[i].len, now, SENT,
			    p->copy[i].mark);
	pthread_mutex_unlock(&p->file->lock);
	return took;
}

static uint16_t
pcap_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_pcap *p = (struct port_pcap *)port;
	uint16_t done = 0;

	if (__atomic_load_n(&p->file, __ATOMIC_RELAXED) == NULL)
		return p->wrap.inner->ops->tx(p->wrap.inner, q, m, n, now);
	pthread_mutex_lock(&p->lock);
	if (p->file == NULL)
		done = p->wrap.inner->ops->tx(p->wrap.inner, q, m, n, now);
	while (p->file != NULL && done < n) {
		uint16_t want = (uint16_t)RTE_MIN((unsigned int)n - done, COPY_FRAMES);
		uint16_t took = write_and_pass(p, q, m + done, want, now);

		done += took;
		if (took < want)
			break;
	}
	pthread_mutex_unlock(&p->lock);
	return done;
}

static uint16_t
pcap_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_pcap *p = (struct port_pcap *)port;
	uint16_t got = p->wrap.inner->ops->rx(p->wrap.inner, q, m, n, now);

	if (!p->both_ways || got == 0 || __atomic_load_n(&p->file, __ATOMIC_RELAXED) == NULL)
		return got;
	pthread_mutex_lock(&p->lock);
	if (p->file != NULL) {
		pthread_mutex_lock(&p->file->lock);
		for (uint16_t i = 0; i < got; i++)
			write_frame(p->file, rte_pktmbuf_mtod(m[i], const uint8_t *),
				    m[i]->data_len, m[i]->data_len, now, RECEIVED, "");
		pthread_mutex_unlock(&p->file->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return got;
}

static void
pcap_close(struct hca_port *port)
{
	struct port_pcap *p = (struct port_pcap *)port;

	p->wrap.inner->ops->close(p->wrap.inner);
	pthread_mutex_destroy(&p->lock);
	rte_free(p);
}

static const struct hca_port_ops pcap_ops = {
	.rx = pcap_rx,
	.tx = pcap_tx,
	.link_up = hca_port_wrap_link_up,
	.poll = hca_port_wrap_poll,
	.missed = hca_port_wrap_missed,
	.wait_fd = hca_port_wrap_wait_fd,
	.arm = hca_port_wrap_arm,
	.deadline = hca_port_wrap_deadline,
	.close = pcap_close,
};

int
hca_port_pcap_open(struct hca_pcap *file, struct hca_port *inner, int socket_id,
		   struct hca_port **out)
{
	uint16_t queues = hca_port_queues(inner);
	struct port_pcap *p;

	p = rte_zmalloc_socket("hca_pcap", sizeof(*p) + queues * sizeof(p->lane[0]),
			       RTE_CACHE_LINE_SIZE, socket_id);
	if (p == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&p->wrap, &pcap_ops, inner);
	p->file = file;
	pthread_mutex_init(&p->lock, NULL);
	*out = &p->wrap.port;
	return 0;
}

void
hca_port_pcap_attach(struct hca_port *port, struct hca_pcap *file)
{
	struct port_pcap *p = (struct port_pcap *)port;

	pthread_mutex_lock(&p->lock);
	__atomic_store_n(&p->file, file, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&p->lock);
}

void
hca_port_pcap_both_ways(struct hca_port *port)
{
	((struct port_pcap *)port)->both_ways = true;
}

/* The inner port drops or damages a frame that is being passed to it. */
static void
mark_passing(struct port_pcap *p, const struct rte_mbuf *m, const struct hca_fired *d)
{
	for (uint16_t i = 0; i < p->lane[d->queue].passing; i++)
		if (p->copy[i].m == m)
			hca_fired_text(d, p->copy[i].mark, sizeof(p->copy[i].mark));
}

/* Writes a frame that an impairment in front of this port drops. */
static void
write_dropped(struct port_pcap *p, const struct rte_mbuf *m, const struct hca_fired *d)
{
	char mark[MARK_MAX];

	hca_fired_text(d, mark, sizeof(mark));
	pthread_mutex_lock(&p->lock);
	if (p->file != NULL) {
		pthread_mutex_lock(&p->file->lock);
		write_frame(p->file, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, m->data_len,
			    d->at, SENT, mark);
		pthread_mutex_unlock(&p->file->lock);
	}
	pthread_mutex_unlock(&p->lock);
}

void
hca_port_pcap_mark(void *port, const struct rte_mbuf *m, const struct hca_fired *d)
{
	struct port_pcap *p = port;
	struct pcap_lane *l = &p->lane[d->queue];

	if (__atomic_load_n(&p->file, __ATOMIC_RELAXED) == NULL)
		return;
	if (l->passing != 0) {
		mark_passing(p, m, d);
	} else if (d->fault == HCA_FAULT_DROP) {
		write_dropped(p, m, d);
	} else if (d->fault != HCA_FAULT_DELAY && d->fault != HCA_FAULT_REORDER) {
		/* the frame comes next; a held frame comes later, as a copy, and gets no mark */
		l->marked = m;
		hca_fired_text(d, l->next_mark, sizeof(l->next_mark));
	}
}
