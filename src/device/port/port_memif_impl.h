/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_MEMIF_IMPL_H
#define PORT_PORT_MEMIF_IMPL_H

/*
 * A connection is built by the port's thread, published, used by rx and tx, taken back and freed by
 * the thread. Each of rx and tx says that it is at work in a word of its own before it looks for
 * the connection; the thread takes the connection back, has the kernel put a barrier into every
 * thread (membarrier), and waits for both words. So a burst pays for two stores, not for a fence.
 *
 * Frames are copied by the C library's memcpy: it looks at the CPU it runs on, rte_memcpy() was
 * compiled for that of -march, with registers of 16 bytes in a distribution's packages.
 */

#include <pthread.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "port/port_memif.h"
#include "port/port_memif_proto.h"

#define REGIONS_MAX 256u
#define RING_LOG_MAX 14u
#define SESSIONS_MAX 8u
#define RETRY_MS 50u	  /* a client looks for its server so often */
#define PUNISHED_MS 1000u /* ... but for one that misbehaved */
#define TICK_MS 50u
#define HANDSHAKE_MS 5000u /* no message for so long: it is given up */

enum memif_side {
	MEMIF_RX,
	MEMIF_TX,
	MEMIF_SIDES
};

/* Why a worker found a connection unusable; the text is what the peer is told. */
#define MEMIF_BROKEN(X) \
	X(NO, "") \
	X(RX_INDEX, "the index of your sending ring is beyond its size") \
	X(TX_INDEX, "the index of your receiving ring is beyond its size") \
	X(BUFFER, "you offer a buffer outside of your regions") \
	X(MEMORY, "shared memory was taken away") \
	X(STUCK, "your interrupt descriptor blocks its writer")

enum memif_broken {
#define X(name, text) MEMIF_BROKEN_##name,
	MEMIF_BROKEN(X)
#undef X
};

struct memif_region {
	uint8_t *base;
	uint64_t size;
};

struct memif_lane { /* one direction; the worker's of that side, but ring, log2, fd */
	struct memif_ring *ring;
	uint32_t size;	    /* descriptors */
	uint16_t next;	    /* what is received or filled next */
	uint16_t given;	    /* a client's receiving: buffers are offered up to here */
	uint16_t kicked_at; /* the peer's index when it was kicked last */
	bool kicked;
	bool unmasked;	  /* the peer may interrupt */
	int fd;		  /* eventfd */
	uint8_t *buffers; /* a client's: the buffer of slot 0 */
};

struct port_memif;

struct memif_conn {
	bool client;	 /* the memory is ours, and so are offsets */
	bool fenced;	 /* the peer is one of ours */
	uint32_t broken; /* [pub] enum memif_broken */
	uint32_t num_regions;
	uint32_t buffer; /* bytes each, a client's */
	struct memif_lane lane[MEMIF_SIDES];
	uint64_t mapped; /* bytes of all regions */
	struct memif_region region[REGIONS_MAX];
	struct port_memif *guarded_by; /* memif_guard_add() */
};

/* One per lcore, apart from the other's. */
struct memif_worker {
	uint32_t busy;	 /* [pub] inside a burst */
	uint32_t kicks;	 /* [pub] odd: inside a write to the peer's eventfd */
	int32_t kicker;	 /* [pub] the thread that writes */
	uint64_t settle; /* rx: when the ring was first seen unmasked; 0: not yet */
	struct hca_port_memif_stats stats;
} __rte_cache_aligned;

struct memif_session;

struct port_memif {
	struct hca_port port;
	struct memif_conn *conn; /* [pub] NULL: the link is down */
	bool fences;		 /* there is no membarrier */
	bool armed;		 /* rx's: the worker sleeps */
	bool napped;		 /* [pub] interrupts may be missed: look after a moment */
	struct rte_mempool *rx_pool;
	int wait_fd;  /* an epoll: what wakes the worker */
	int event_fd; /* in it: the link changed */
	struct memif_worker worker[MEMIF_SIDES];

	/* the thread's */
	struct hca_port_memif_config cfg __rte_cache_aligned;
	char name[32];
	pthread_t thread;
	int epoll, listener, stop_fd, broken_fd, timer;
	uint32_t retry_ticks;
	uint32_t last_kicks;
	bool stop;  /* [pub] */
	bool bound; /* the socket's file is ours */
	struct memif_session *session[SESSIONS_MAX];
	struct memif_session *active; /* whose connection is published */
	char told[MEMIF_REASON_SIZE + 64];
	struct hca_port_memif_stats stats;
	pthread_mutex_t lock; /* peer */
	char peer[MEMIF_NAME_SIZE + 1];
};

static inline struct port_memif *
memif_of(const struct hca_port *p)
{
	return (struct port_memif *)(uintptr_t)p;
}

/* The connection, or NULL; then memif_leave() must not be called. */
static inline struct memif_conn *
memif_enter(struct port_memif *p, enum memif_side side)
{
	struct memif_conn *c;

	__atomic_store_n(&p->worker[side].busy, 1, __ATOMIC_RELAXED);
	if (unlikely(p->fences))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	rte_compiler_barrier();
	c = __atomic_load_n(&p->conn, __ATOMIC_ACQUIRE);
	if (likely(c != NULL && __atomic_load_n(&c->broken, __ATOMIC_RELAXED) == 0))
		return c;
	__atomic_store_n(&p->worker[side].busy, 0, __ATOMIC_RELEASE);
	return NULL;
}

static inline void
memif_leave(struct port_memif *p, enum memif_side side)
{
	__atomic_store_n(&p->worker[side].busy, 0, __ATOMIC_RELEASE);
}

/* port_memif_rx.c, port_memif_tx.c: from their lcores */
uint16_t memif_rx(struct hca_port *port, struct rte_mbuf **m, uint16_t n, uint64_t now);
bool memif_arm(struct hca_port *port, bool on);
uint64_t memif_deadline(const struct hca_port *port, uint64_t now);
uint16_t memif_tx(struct hca_port *port, struct rte_mbuf **m, uint16_t n, uint64_t now);
/*
 * From a worker inside of a burst, or the handler of SIGBUS: the thread shall take the link down.
 */
void memif_break(struct port_memif *p, struct memif_conn *c, enum memif_broken why);
/* The buffer of a descriptor, whole inside of one region; NULL: it is not. */
static inline uint8_t *
memif_buffer(const struct memif_conn *c, uint32_t region, uint32_t offset, uint32_t length)
{
	const struct memif_region *r = &c->region[region & (REGIONS_MAX - 1)];

	if (unlikely(region >= REGIONS_MAX || (uint64_t)offset + length > r->size))
		return NULL;
	return r->base + offset;
}

/* port_memif_region.c: the thread's. Sentences of failures in *why, which the peer is told too. */
struct memif_conn *memif_conn_new(void);
/* Unmaps everything, and frees it; nobody uses it. */
void memif_conn_free(struct memif_conn *c);
/* Memory of a client: rings and buffers. *fd: the memfd, the caller's. 0 or negative errno. */
int memif_conn_build(struct memif_conn *c, uint8_t log2_ring, uint16_t buffer, int *fd,
		     const char **why);
/* A region of a peer; takes nothing of fd but a mapping. */
int memif_conn_add_region(struct port_memif *p, struct memif_conn *c, uint16_t index, uint64_t size,
			  int fd, const char **why);
/* A ring of a peer; keeps fd when it succeeds. */
int memif_conn_add_ring(struct memif_conn *c, const struct memif_add_ring *r, int fd,
			const char **why);
/* Rings are there and as after a start. */
int memif_conn_ready(struct memif_conn *c, const char **why);

/* port_memif_guard.c: regions that may shrink. */
int memif_guard_add(struct port_memif *p, struct memif_conn *c);
void memif_guard_remove(struct memif_conn *c);

/* port_memif_session.c: the thread's. */
struct memif_session {
	struct port_memif *port;
	struct memif_conn *conn;
	int fd;
	uint32_t state;	   /* enum in port_memif_session.c */
	uint32_t ticks;	   /* since the last message */
	bool drained;	   /* the peer has left, and nothing it sent is left */
	uint8_t log2_ring; /* a client's, as both want it */
	char name[MEMIF_NAME_SIZE + 1];
	char interface[MEMIF_NAME_SIZE + 1];
	char reason[MEMIF_REASON_SIZE + 1]; /* of the peer, why it ends */
};

/* Over a connected socket, which it owns from now on. NULL: no memory or descriptors. */
struct memif_session *memif_session_new(struct port_memif *p, int fd);
/* A message, or the end. 0, or negative: it is to be ended, for *why. */
int memif_session_read(struct memif_session *s, const char **why);
bool memif_session_is_up(const struct memif_session *s);
/* Tells the peer and closes; its connection is not published any more. why may be NULL. */
void memif_session_free(struct memif_session *s, const char *why);

/* port_memif_control.c */
void *memif_thread(void *arg);
/* Publishes the connection of s; -EBUSY: there is one. */
int memif_publish(struct port_memif *p, struct memif_session *s);
int memif_listen(struct port_memif *p);
/*
 * Closes what a peer gave, or a socket with such things in it: may sleep, so a thread of its own
 * does.
 */
void memif_close_apart(int fd);
/* Ends all sessions; the thread does not run. */
void memif_end_sessions(struct port_memif *p);

#endif
