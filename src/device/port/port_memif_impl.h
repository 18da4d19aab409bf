/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_MEMIF_IMPL_H
#define PORT_PORT_MEMIF_IMPL_H

/*
 * Life of a connection: the port's thread builds and publishes it, rx and tx use it, and the thread
 * withdraws and frees it. rx and tx each set a word of their own while they are in a burst, before
 * they read the pointer to the connection. The thread withdraws the pointer, executes a memory
 * barrier in all threads (membarrier), and waits until both words are clear. So a burst costs two
 * stores instead of a fence.
 *
 * Frames are copied by the C library's memcpy, which selects its code for the CPU at run time.
 * rte_memcpy() is compiled for -march: with 16-byte registers in distributions' packages.
 */

#include <pthread.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "port/port_memif.h"
#include "port/port_memif_proto.h"

#define REGIONS_MAX 256u
#define RINGS_MAX (HCA_PORT_MEMIF_QUEUES * HCA_PORT_MEMIF_QUEUES) /* each way */
#define RING_LOG_MAX 14u
#define SESSIONS_MAX 8u
#define RETRY_MS 50u	  /* interval of a client's attempts to connect */
#define PUNISHED_MS 1000u /* interval after its server misbehaved */
#define TICK_MS 50u
#define QUIET_MS 250u	   /* of a tick while the connection is the only one and nothing is due */
#define HANDSHAKE_MS 5000u /* time without a message after which a handshake fails */

enum memif_side {
	MEMIF_RX,
	MEMIF_TX,
	MEMIF_SIDES
};

/* Reasons why a worker declares a connection broken; the peer gets the text. */
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

struct memif_lane { /* one ring; its worker writes all but ring, size and fd */
	struct memif_ring *ring;
	uint32_t size;	    /* number of descriptors */
	uint16_t next;	    /* next descriptor to receive or fill */
	uint16_t given;	    /* client's receive side: buffers are offered up to here */
	uint16_t kicked_at; /* the peer's index at the last kick */
	bool kicked;
	bool unmasked;	  /* the peer may raise interrupts */
	int fd;		  /* eventfd */
	uint8_t *buffers; /* client: the buffer of slot 0 */
	uint32_t taken;	  /* conn.shared: a queue is sending */
} __rte_cache_aligned;

/* The rings that a queue receives from: n from index `first` on, `step` apart. */
struct memif_rings {
	uint16_t first, step, n;
};

struct port_memif;

struct memif_conn {
	bool client;	 /* the memory, and so the offsets, are ours */
	bool fenced;	 /* the peer has the barrier: its name begins with HCA_PORT_MEMIF_OURS */
	uint32_t broken; /* [pub] enum memif_broken */
	uint32_t num_regions;
	uint32_t buffer; /* bytes per buffer (client) */
	/* a ring's index is receiving queue * sender's queues + sending queue; else a queue */
	bool steered;
	bool shared;	    /* several queues send by one ring */
	uint16_t peer_mask; /* the peer's queues - 1; 0 if not steered */
	uint16_t rings[MEMIF_SIDES];
	struct memif_rings from[HCA_PORT_MEMIF_QUEUES];
	struct memif_lane lane[MEMIF_SIDES][RINGS_MAX];
	uint64_t mapped; /* total size of the regions */
	struct memif_region region[REGIONS_MAX];
	struct port_memif *guarded_by; /* memif_guard_add() */
};

/* One per lcore, each on its own cache lines. */
struct memif_worker {
	uint32_t busy;	 /* [pub] inside a burst */
	uint32_t kicks;	 /* [pub] odd: inside a write to the peer's eventfd */
	int32_t kicker;	 /* [pub] thread id of the writer */
	uint64_t settle; /* rx: time at which the ring was first seen unmasked; 0: not yet */
	struct hca_port_memif_stats stats;
} __rte_cache_aligned;

/* Of one queue. */
struct memif_queue {
	struct rte_mempool *pool;
	int wait_fd;	/* epoll set whose events wake the worker */
	bool armed;	/* rx: the worker is going to sleep */
	bool napped;	/* [pub] interrupts may be missed: check after a short time */
	uint16_t next;	/* rx: number of the ring to take from first */
	uint32_t kicks; /* the thread's: memif_worker.kicks of tx at the last tick */
} __rte_cache_aligned;

struct memif_session;

struct port_memif {
	struct hca_port port;
	struct memif_conn *conn; /* [pub] NULL: the link is down */
	bool fences;		 /* membarrier is not available: use fences */
	int event_fd;		 /* member of the sets: the link changed */
	struct memif_queue queue[HCA_PORT_MEMIF_QUEUES];
	struct memif_worker worker[MEMIF_SIDES][HCA_PORT_MEMIF_QUEUES];

	/* written by the thread only */
	struct hca_port_memif_config cfg __rte_cache_aligned;
	char name[32];
	pthread_t thread;
	int epoll, listener, stop_fd, broken_fd, timer;
	uint32_t retry_ticks;
	bool quiet; /* the timer's period is QUIET_MS */
	bool stop;  /* [pub] */
	bool bound; /* we created the socket's file */
	struct memif_session *session[SESSIONS_MAX];
	struct memif_session *active; /* the session whose connection is published */
	char told[MEMIF_REASON_SIZE + 64];
	struct hca_port_memif_stats stats;
	pthread_mutex_t lock; /* protects peer */
	char peer[MEMIF_NAME_SIZE + 1];
};

static inline struct port_memif *
memif_of(const struct hca_port *p)
{
	return (struct port_memif *)(uintptr_t)p;
}

/* Period of the timer: QUIET_MS or TICK_MS. 0 or a negative errno. The port's thread. */
int memif_set_timer(struct port_memif *p, bool quiet);

/* Begin to use the connection; NULL: the link is down, and memif_leave() must not be called. */
static inline struct memif_conn *
memif_enter(struct port_memif *p, enum memif_side side, uint16_t q)
{
	struct memif_conn *c;

	__atomic_store_n(&p->worker[side][q].busy, 1, __ATOMIC_RELAXED);
	if (unlikely(p->fences))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	rte_compiler_barrier();
	c = __atomic_load_n(&p->conn, __ATOMIC_ACQUIRE);
	if (likely(c != NULL && __atomic_load_n(&c->broken, __ATOMIC_RELAXED) == 0))
		return c;
	__atomic_store_n(&p->worker[side][q].busy, 0, __ATOMIC_RELEASE);
	return NULL;
}

static inline void
memif_leave(struct port_memif *p, enum memif_side side, uint16_t q)
{
	__atomic_store_n(&p->worker[side][q].busy, 0, __ATOMIC_RELEASE);
}

/* port_memif_rx.c, port_memif_tx.c: called on their lcores. */
uint16_t memif_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now);
bool memif_arm(struct hca_port *port, uint16_t q, bool on);
uint64_t memif_deadline(const struct hca_port *port, uint16_t q, uint64_t now);
uint16_t memif_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now);
/*
 * Called by a worker inside a burst, or by the SIGBUS handler: asks the thread to take the link
 * down.
 */
void memif_break(struct port_memif *p, struct memif_conn *c, enum memif_broken why);
/* The buffer of a descriptor; NULL: not inside a region. */
static inline uint8_t *
memif_buffer(const struct memif_conn *c, uint32_t region, uint32_t offset, uint32_t length)
{
	const struct memif_region *r = &c->region[region & (REGIONS_MAX - 1)];

	if (unlikely(region >= REGIONS_MAX || (uint64_t)offset + length > r->size))
		return NULL;
	return r->base + offset;
}

/* port_memif_region.c, called by the thread. *why: reason of a failure, also sent to the peer. */
struct memif_conn *memif_conn_new(void);
/* Unmap all memory and free the connection, which no worker uses any more. */
void memif_conn_free(struct memif_conn *c);
/*
 * Create a client's memory with rings and buffers. *fd: its memfd, owned by the caller. 0 or a
 * negative errno.
 */
int memif_conn_build(struct memif_conn *c, uint8_t log2_ring, uint16_t buffer, int *fd,
		     const char **why);
/* Number of rings each way that a port with these queues accepts: for any number of a peer. */
static inline uint16_t
memif_rings_max(uint16_t queues)
{
	return (uint16_t)(queues * HCA_PORT_MEMIF_QUEUES);
}
/* Map a region of a peer; the caller keeps fd. */
int memif_conn_add_region(struct port_memif *p, struct memif_conn *c, uint16_t index, uint64_t size,
			  int fd, const char **why);
/* Add a ring of a peer; takes ownership of fd on success. */
int memif_conn_add_ring(struct memif_conn *c, uint16_t queues, const struct memif_add_ring *r,
			int fd, const char **why);
/*
 * Check that the rings exist and are in their initial state, and give them to the queues of the
 * port and of the peer (0: it did not say).
 */
int memif_conn_ready(struct memif_conn *c, uint16_t queues, uint16_t peer, const char **why);

/* port_memif_guard.c: regions that the peer may truncate. */
int memif_guard_add(struct port_memif *p, struct memif_conn *c);
void memif_guard_remove(struct memif_conn *c);

/* port_memif_session.c: used by the thread only. */
struct memif_session {
	struct port_memif *port;
	struct memif_conn *conn;
	int fd;
	uint32_t state;		     /* enumeration in port_memif_session.c */
	uint32_t ticks;		     /* ticks since the last message */
	bool drained;		     /* the peer has disconnected and all its messages are read */
	uint8_t log2_ring;	     /* client: the size both sides agreed on */
	uint16_t peer;		     /* number of queues in the peer's name; 0: none */
	uint16_t rings[MEMIF_SIDES]; /* client */
	uint16_t told;		     /* client: rings of both ways that were described */
	char name[MEMIF_NAME_SIZE + 1];
	char interface[MEMIF_NAME_SIZE + 1];
	char reason[MEMIF_REASON_SIZE + 1]; /* the peer's reason for disconnecting */
};

/*
 * Create a session on a connected socket, which the session owns. NULL: out of memory or
 * descriptors.
 */
struct memif_session *memif_session_new(struct port_memif *p, int fd);
/*
 * Handle a message or the end of the connection. 0, or negative: end the session because of *why.
 */
int memif_session_read(struct memif_session *s, const char **why);
bool memif_session_is_up(const struct memif_session *s);
/*
 * Tell the peer, if why is not NULL, and close the session. Its connection must not be published.
 */
void memif_session_free(struct memif_session *s, const char *why);

/* port_memif_control.c */
void *memif_thread(void *arg);
/* Publish the connection of s; -EBUSY: another one is published. */
int memif_publish(struct port_memif *p, struct memif_session *s);
int memif_listen(struct port_memif *p);
/*
 * Close a descriptor from a peer, or a socket that may contain some. A separate thread does it,
 * because close() may block.
 */
void memif_close_apart(int fd);
/* End all sessions, after the thread has ended. */
void memif_end_sessions(struct port_memif *p);

#endif
