/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_IPC_RIG_H
#define TESTS_IPC_RIG_H

/*
 * A test daemon (ipcd) as a child process, queries of it, and peers that use it: two ends, usually
 * in two processes, that execute the same steps and synchronize over a socket pair.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include <softhca/softhca.h>

#define RIG_PATH_MAX 96 /* of a socket, below TMPDIR */
/* Limit of waits for another process: on a busy machine it may have no CPU for seconds. */
#define RIG_TIMEOUT_S 240
#define RIG_TIMEOUT_MS (RIG_TIMEOUT_S * 1000)

struct rig {
	pid_t pid;
	int to, from; /* its standard input and output */
	unsigned int number;
	char path[2][RIG_PATH_MAX];
};

/* extra: more arguments of ipcd, NULL-terminated; or NULL. Asserts. */
void rig_start(struct rig *rig, const char *const *extra);
void rig_stop(struct rig *rig); /* asks it to end, and asserts that it ends well */
void rig_kill(struct rig *rig); /* SIGKILL */
/* SIGSTOP; returns when no thread of it runs any more. kill(rig->pid, SIGCONT) ends it. */
void rig_suspend(struct rig *rig);
/* Clean up after a daemon that has ended and was waited for. */
void rig_forget(struct rig *rig);
/* A daemon shared by all tests of a file, with start() and shut_down() for the group. */
#define RIG_OF_ALL(name) \
	static struct rig name; \
	static int start(void **state) \
	{ \
		rig_start(&name, NULL); \
		return 0; \
	} \
	static int shut_down(void **state) \
	{ \
		rig_stop(&name); \
		return 0; \
	}
/* A number in the daemon's answer to question "usage", "counters", ... for side 0 or 1. */
int64_t rig_ask(struct rig *rig, const char *question, unsigned int side, const char *name);
/*
 * Wait until nothing is in use on that side. Returns the time it took in ns, or -1 after
 * RIG_TIMEOUT_S and after printing the objects in use.
 */
int64_t rig_wait_empty(struct rig *rig, unsigned int side);

/*
 * Teardown of a test: ends the children and detaches the clients that a failed test has left, so
 * that the next test starts clean. Does nothing after a test that passed.
 */
int rig_tidy(void **state);

uint64_t rig_now_ns(void);
/* Entries of /proc/PID/fd: descriptors of a process, and constants. */
int rig_open_files(pid_t pid);

#define PEER_BYTES (256u * 1024)
#define PEER_DEPTH 64u
#define PEER_INLINE 64u

/* Data that peers exchange. */
struct peer_card {
	union softhca_gid gid;
	uint32_t qpn, psn, srqn;
	uint32_t rkey;
	uint64_t addr;
};

struct peer {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_comp_channel *channel;
	struct softhca_cq *cq;
	struct softhca_srq *srq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	struct softhca_ah *ah;
	uint8_t *buf; /* PEER_BYTES */
	bool own_buf;
	bool events; /* sleep for completions */
	uint32_t gid_index;
	uint8_t timeout;
	struct peer_card me, other;
};

struct peer_config {
	uint32_t type; /* enum softhca_qp_type */
	bool srq;
	bool events;
	uint32_t gid_index;
	uint8_t timeout;   /* ACK timeout, 0: 18 */
	uint32_t sges;	   /* of a work request, 0: 1 */
	void *buf;	   /* NULL: from softhca_alloc() */
	uint64_t wc_flags; /* of the CQ */
};

/* Create all objects; the QP is in RESET. 0 or a negative errno */
int peer_open(struct peer *p, const char *device, const struct peer_config *cfg);
/* Exchange cards over sock, connect. */
int peer_connect(struct peer *p, int sock);
/* Both in one process */
int peer_connect_pair(struct peer *a, struct peer *b);
/* Connect another QP of any type with one of the same other end, from RESET to RTS. */
int peer_connect_qp(const struct peer *p, struct softhca_qp *qp, uint32_t dest_qpn, uint32_t rq_psn,
		    uint32_t sq_psn);
void peer_close(struct peer *p);

/* One completion, waiting at most seconds; its status, or negative errno. */
int peer_wait(struct peer *p, struct softhca_wc *wc, double seconds);
int peer_post_recv(struct peer *p, uint64_t wr_id, uint64_t offset, uint32_t length);
int peer_post(struct peer *p, uint32_t opcode, uint64_t wr_id, uint64_t offset, uint32_t length,
	      uint64_t remote_offset);
/* Synchronize with the other end. */
int peer_meet(int sock);

/* byte i of a pattern */
static inline uint8_t
peer_pattern(uint32_t seed, uint64_t i)
{
	return (uint8_t)((i * 2654435761u + seed * 40503u) >> 7);
}
void peer_fill(uint8_t *buf, uint64_t bytes, uint32_t seed);
bool peer_verify(const uint8_t *buf, uint64_t bytes, uint32_t seed);

/*
 * The conversation of a service: sends both ways and, for RC, writes, reads and atomics, all
 * verified. Both ends call it. Returns 0, or a negative errno after printing the reason on standard
 * error.
 */
int peer_talk(struct peer *p, int sock, unsigned int rounds);
/* All of it with a peer of its own: it opens, connects, talks and closes. */
int peer_visit(const char *path, int sock, const struct peer_config *cfg, unsigned int rounds);

/*
 * Two processes that exchange data all the time (ipc_bystander.c); one client, QP and region on
 * each side.
 */
struct bystanders {
	pid_t pid;
	int sock;
};

void bystanders_start(struct bystanders *by, struct rig *rig);
/* Stop them; asserts that everything they received was right. */
void bystanders_stop(struct bystanders *by);

/*
 * Run fn in a child process (before this process has threads or contexts). Asserts that it exits 0.
 */
typedef int (*rig_child_fn)(int sock, void *arg);
pid_t rig_fork(rig_child_fn fn, void *arg, int *sock);
int rig_wait(pid_t pid);  /* its exit status */
void rig_join(pid_t pid); /* which must be 0 */
void rig_keep(pid_t pid); /* Beyond this test: rig_tidy() leaves it alone. */

#endif
