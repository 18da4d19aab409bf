/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_TYPES_H
#define DRIVER_TYPES_H

/*
 * The driver's objects.
 *
 * There are two locks. Every control call holds `lock` from start to end, including its commands;
 * it is handed over in the order of asking (driver_lock.h). `event_lock` protects the data of
 * hca_driver_poll() (channels, owners of CQs and QPs); poll may run inside the progress hook while
 * `lock` is held, so it takes only `event_lock`, and no command is issued while `event_lock` is
 * held.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi_bar.h"
#include "abi_cmd.h"
#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "driver.h"
#include "driver_lock.h"
#include "driver_alloc.h"

#define DRIVER_DOMAIN 0u /* DMA domain of mailboxes, ICM and EQs */
#define DRIVER_MAX_GIDS 256u
#define DRIVER_MAX_PKEYS 128u
#define DRIVER_MAX_NEIGH 1024u
#define DRIVER_MAX_CHANNELS 4096u /* per client */
#define DRIVER_PAGE 4096u
#define DRIVER_PD_BUCKETS 4096u

enum driver_icm_area {
	ICM_QPC,
	ICM_CQC,
	ICM_EQC,
	ICM_SRQC,
	ICM_MPT,
	ICM_MTT,
	ICM_AREAS,
};

/* A table in ICM: entries in chunks, each mapped at its first use and then kept */
struct driver_icm {
	uint64_t virt;	 /* ICM address of entry 0 */
	uint64_t offset; /* of its memory in the arena */
	uint32_t entry_bytes;
	uint32_t log_entries;
	uint32_t chunk_bytes;
	uint32_t chunks;
	uint8_t op_modifier; /* HCA_ICM_CTX or HCA_ICM_TPT */
	uint8_t *mapped;     /* per chunk */
};

/* EQ 0 and those from EQ_MORE on are for completions, EQ 1 for asynchronous events. */
enum driver_eq_number {
	EQ_COMP,
	EQ_ASYNC,
	EQ_MORE,
	EQ_COUNT = EQ_MORE + 3,
};

struct driver_mr {
	/* list of the owner's regions, and the pointer to this one */
	struct driver_mr *next, **link;
	struct hca_client *owner; /* NULL: the driver */
	uint32_t key;
	uint32_t pdn;
	uint32_t mtt;
	uint32_t mtts;	 /* from mtt on */
	uint32_t access; /* HCA_ACCESS_* */
	uint64_t va;
	uint64_t shift; /* address in work requests minus va */
	uint64_t length;
	uint64_t pages;
	uint8_t page_log;
	bool internal; /* memory of a queue: the client cannot deregister it */
	bool window;   /* a memory window: key and PD only */
	bool null;     /* a null region: no memory, any address */
	bool segment;  /* of UB: its token row says that it is exported */
};

struct driver_eq {
	struct hca_eqe *ring;
	uint64_t bus;
	uint32_t log_size;
	uint32_t consumer;
	struct driver_mr *mr;
	bool live;
};

/* A PD of several clients: its number is not used again before the last of them leaves it. */
struct driver_shared_pd {
	struct driver_shared_pd *next;
	uint32_t pdn;
	uint32_t clients;
};

/* A PD as a client has it */
struct driver_pd {
	struct driver_pd *next;
	struct driver_shared_pd *shared; /* NULL: no other client has had it */
	uint32_t pdn;
	uint32_t users; /* number of the client's MRs and QPs */
	uint32_t again; /* further imports of it by the client */
};

struct driver_channel {
	int write_fd;	    /* -1: the slot is free */
	uint32_t users;	    /* number of CQs */
	uint32_t full_pass; /* value of pay_pass when the pipe was last found full */
};

struct driver_cq {
	struct driver_cq *next, **link; /* list of the owner's CQs, and the pointer to this one */
	struct hca_client *owner;
	struct driver_mr *mr;
	uint32_t cqn;
	uint32_t channel;
	uint32_t tag;	/* of its events */
	uint32_t flags; /* HCA_CTL_CQ_* */
	uint32_t users; /* number of QP queues */
	uint32_t owed;	/* bits of event types that are delayed because a pipe was full */
};

/* The XRC domain of a file: it lives while a client has it open. */
struct driver_xrc_file {
	struct driver_xrc_file *next;
	uint32_t number;
	uint32_t clients;
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	int fd; /* only a path: keeps the inode's number from being used again */
};

/* An XRC domain as a client has it open. Domains are numbers of the driver: [23:0], 0 = none. */
struct driver_xrcd {
	struct driver_xrcd *next;
	struct driver_xrc_file *file; /* NULL: no other client has it */
	uint32_t number;
	uint32_t opens; /* how many times the client has it open */
	uint32_t users; /* number of the client's SRQs and QPs */
};

/*
 * A client that has another client's QP open. It pays for the QP as its owner does, and is the next
 * owner when that one gives the QP up.
 */
struct driver_opener {
	struct driver_opener *next;	/* of the QP */
	struct driver_opener *next_own; /* of the client */
	struct hca_client *client;
	struct driver_qp *qp;
	struct driver_xrcd *xrcd; /* the client's */
	uint32_t owed;
	uint32_t again; /* times that the client has opened it once more */
};

struct driver_srq {
	struct driver_srq *next;
	struct hca_client *owner;
	struct driver_pd *pd;
	struct driver_mr *mr;
	struct driver_cq *cq;	  /* XRC, JFR, else NULL */
	struct driver_xrcd *xrcd; /* XRC, else NULL */
	uint32_t srqn;
	bool jfr;	/* a JFR of UB, which has a CQ too */
	uint32_t users; /* number of QPs */
	uint32_t owed;	/* bits of event types that are delayed because a pipe was full */
};

/* pd, CQs and queues are NULL if the service has none. */
/* Parameters with which a Jetty becomes READY, also after each RESET. */
struct driver_jetty {
	uint32_t token;
	uint16_t tassn; /* of its first request */
	uint8_t flags;	/* HCA_CTL_TC_TOKEN .. */
	uint8_t err_timeout, rnr_retry, min_rnr_timer;
};

struct driver_qp {
	struct driver_qp *next, **link; /* list of the owner's QPs, and the pointer to this one */
	struct hca_client *owner;
	struct driver_pd *pd;
	struct driver_cq *send_cq;
	struct driver_cq *recv_cq;
	struct driver_srq *srq;
	struct driver_xrcd *xrcd;
	struct driver_mr *sq_mr;
	struct driver_mr *rq_mr;
	uint32_t qpn;
	uint32_t sq_bytes;
	uint32_t rq_bytes;
	uint32_t owed;
	uint32_t cost;	/* bytes of device memory */
	uint32_t again; /* further opens of it by its owner */
	struct driver_member *groups;
	struct driver_opener *openers; /* written with both locks held */
	uint32_t source_qpn : 24;      /* of its datagrams, 0: its own */
	uint32_t service : 8;
	uint8_t log_sq_stride;
	uint8_t log_rq_stride;
	bool live; /* has a context: it is not in RESET */
	/* of the XRC domain of a file: no client's in the device, so it may change owners */
	bool shared : 1;
	bool no_own_group : 1;	     /* does not receive its own datagrams to its groups */
	struct driver_jetty jetty[]; /* one, if it is a Jetty or Jetty send queue */
};

/* Resources shared among clients (driver_quota.c) */
enum driver_thing {
	DRIVER_QPS,
	DRIVER_CQS,
	DRIVER_SRQS,
	DRIVER_XRCDS,
	DRIVER_MRS,
	DRIVER_MTTS,
	DRIVER_PDS,
	DRIVER_GROUPS,
	DRIVER_PEERS,
	DRIVER_LINKS, /* of imported peers: channels */
	DRIVER_KNOWN, /* well-known numbers of UB for all clients */
	DRIVER_BYTES,
	DRIVER_THINGS,
};

#define DRIVER_PEERS_ALL 65536u	 /* as many as the agent takes */
#define DRIVER_PDS_ALL 65536u	 /* a number needs only memory of the driver */
#define DRIVER_QP_BYTES 4096u	 /* device memory of a QP, approximately */
#define DRIVER_JETTY_BYTES 8192u /* of a Jetty besides: its open segments, at most */
#define DRIVER_QUEUE_BYTES 128u	 /* of a queue, without its pages */

struct driver_segment {
	struct driver_segment *next;
	uint64_t bus;
	uint64_t len;
};

/*
 * Limit of a user's queries about TPNs without TP: a burst, and one more each second. For the users
 * that have queried lately.
 */
#define DRIVER_GUESSERS 32u
#define DRIVER_GUESSES 16u

struct driver_guesses {
	uint32_t user, wrong;
	uint64_t since; /* s */
};

/* A client's import of one peer, by one of its host's addresses */
struct driver_link {
	struct driver_link *next;
	uint8_t own[16], peer[16];
	uint32_t imports;
	bool pays; /* for all clients that have it */
};

struct hca_client {
	struct hca_client *next;
	struct hca_driver *drv;
	uint32_t uar; /* page number = DMA domain */
	uint32_t next_pd;
	/* clients with one token share PDs (driver_pd.c) */
	struct hca_ctl_share share;
	struct driver_pd *pds[DRIVER_PD_BUCKETS]; /* by HCA_PD_NUMBER() */
	struct driver_mr *mrs;
	struct driver_mr *mws; /* memory windows; freed before the regions they may be bound to */
	struct driver_cq *cqs;
	struct driver_qp *qps;
	struct driver_srq *srqs;
	struct driver_xrcd *xrcds;
	struct driver_xrc_file *ended; /* to be closed when the lock is released */
	struct driver_opener *opened;  /* QPs of others */
	struct driver_segment *segments;
	struct driver_channel *channels; /* [0] = asynchronous events */
	uint32_t num_channels;		 /* slots */
	int async_read_fd;		 /* until the client has taken it */
	uint32_t owed_port;		 /* LOCAL_CATAS and PORT_CHANGE, not delivered yet */
	uint32_t count_segments;
	uint32_t count_channels;
	uint32_t count_files; /* whose XRC domains it has open */
	uint64_t count[DRIVER_THINGS];
	char release[32]; /* IDENTIFY */
	struct driver_link *links;
	uint32_t *tpgs; /* UB: its imports that use each group; NULL before the first */
	uint32_t user;
	bool privileged;
	uint32_t pipes; /* parts of its doorbell page: those of the device, or 1 */
	bool host;	/* the composition's own: not in usage and lists */
	bool closed; /* the device has no objects of it any more: they are freed without commands */
};

struct driver_gid {
	uint8_t gid[16];
	uint8_t mac[6];
	uint16_t vlan_id; /* 0xffff: none */
	bool valid;
	uint32_t ifindex;
};

struct driver_neigh {
	uint8_t gid[16];
	uint8_t mac[6];
};

/* An event to be written to a pipe, and where to record it if there is no room. */
struct driver_due {
	struct hca_client *client;
	uint32_t *owed;
	uint32_t channel;
	struct hca_ctl_event event;
};

#define DRIVER_DUE_MAX 64u

struct hca_driver {
	struct hca_hw hw;
	struct hca_driver_config config;
	struct driver_lock lock;
	pthread_mutex_t event_lock;
	bool dead;
	bool told_dead;	  /* the clients have been told that the device is dead */
	bool initialized; /* INIT_HCA done */

	uint8_t *arena; /* mailboxes, EQs, ICM: one DMA window */
	uint64_t arena_bus;
	size_t arena_bytes;
	void *mailbox_in;
	void *mailbox_out;
	uint64_t mailbox_in_bus;
	uint64_t mailbox_out_bus;

	struct hca_mbox_dev_lim lim;
	struct hca_mbox_adapter adapter;
	struct driver_icm icm[ICM_AREAS];
	struct driver_eq eq[EQ_COUNT];
	uint32_t num_eqs;    /* of eq[] in use */
	uint32_t owed;	     /* number of objects with delayed events */
	uint32_t pay_pass;   /* number of passes over them */
	uint32_t busy_polls; /* polls with new events while some were delayed */
	uint32_t num_due;
	struct driver_due due[DRIVER_DUE_MAX];

	struct driver_random random;
	struct driver_ids qp_ids;
	uint32_t pipes;			      /* of the device */
	uint32_t pipe_qps[HCA_UAR_PIPES_MAX]; /* QPs and Jettys in use */
	struct driver_ids srq_ids;
	struct driver_ids xrcd_ids;
	struct driver_ids cq_ids;
	struct driver_ids mpt_ids;
	struct driver_ids uar_ids;
	struct driver_ranges mtt_ranges;
	struct driver_qp **qps; /* by index; written with both locks held */
	struct driver_srq **srqs;
	struct driver_cq **cqs;
	struct driver_mr **mrs; /* by MPT index; `lock` held */
	struct hca_client *clients;
	struct driver_xrc_file *xrc_files;
	struct driver_shared_pd *shared_pds;
	uint32_t *known;	  /* UB: TC of each well-known number; NULL: no UB */
	struct driver_ids tp_ids; /* of UB; index 0 is none */
	uint32_t *tps;		  /* TPNs by index, 0: none */
	struct driver_ids tpg_ids;
	const struct hca_driver_agent *agent; /* of UB; written with both locks held */
	struct driver_guesses guesses[DRIVER_GUESSERS];
	void *agent_arg;
	uint32_t gsi_qpn;		/* 0: none; the QP may be gone */
	const struct hca_driver_cm *cm; /* connection management */
	void *cm_arg;
	struct driver_group *groups; /* groups with members */
	uint32_t num_groups;

	struct driver_gid gids[DRIVER_MAX_GIDS];
	uint16_t pkeys[DRIVER_MAX_PKEYS];
	struct driver_neigh neighs[DRIVER_MAX_NEIGH];
	uint32_t num_neighs;
	struct hca_ctl_port port;
	bool port_told; /* its state is that of the last PORT_CHANGE */
};

/*
 * Lists of a client's objects. An owner may have tens of thousands and destroy them in any order,
 * so each keeps the pointer to it.
 */
#define DRIVER_LIST_ADD(head, object) \
	do { \
		(object)->next = (head); \
		(object)->link = &(head); \
		if ((head) != NULL) \
			(head)->link = &(object)->next; \
		(head) = (object); \
	} while (0)

#define DRIVER_LIST_REMOVE(object) \
	do { \
		*(object)->link = (object)->next; \
		if ((object)->next != NULL) \
			(object)->next->link = (object)->link; \
	} while (0)

/* Record the reason for this thread (hca_driver_reason()) and return err. */
int driver_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* All numbers of a kind are in use: limit: the configuration of a daemon. Returns err. */
int driver_all_used(int err, const char *kind, uint32_t count, const char *limit);
/* An allocation for this object has failed. Returns -ENOMEM. */
int driver_no_memory(const char *object, size_t bytes);

/*
 * The operations of clients (abi_ops.h), called by hca_client_call() with the lock held. Each is in
 * the file of the object that it concerns. 0 or a negative errno, with driver_fail().
 */
#define DRIVER_OP_DRIVER(name, request, answer) \
	int driver_op_##name(struct hca_client *, const request *, answer *);
#define DRIVER_OP_EXTRA(name, request, answer) \
	int driver_op_##name(struct hca_client *, const request *, answer *, \
			     struct hca_ctl_extra *);
#define DRIVER_OP_CHANNEL(name, request, answer)
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) \
	DRIVER_OP_##by(name, request, answer)
HCA_CTL_OPS(X)
#undef X
#undef DRIVER_OP_DRIVER
#undef DRIVER_OP_EXTRA
#undef DRIVER_OP_CHANNEL

/* driver_cmd.c: one HCR command; lock held. */
struct driver_cmd {
	uint32_t op;
	uint32_t op_modifier;
	uint32_t in_modifier;
	uint64_t in_param;
	uint64_t out_param;
};

int driver_command(struct hca_driver *drv, struct driver_cmd *cmd);
int driver_reset(struct hca_driver *drv);
/* The zeroed input mailbox, for a command under the same lock. */
void *driver_mailbox(struct hca_driver *drv);
int driver_command_in(struct hca_driver *drv, uint32_t op, uint32_t in_modifier);
int driver_command_out(struct hca_driver *drv, uint32_t op, uint32_t in_modifier);
int driver_command_bare(struct hca_driver *drv, uint32_t op, uint32_t op_modifier,
			uint32_t in_modifier, uint64_t in_param);

/*
 * Execute a command that takes a client's object from the device; does nothing if the device has no
 * objects of the client any more. owner NULL: the driver.
 */
int driver_take_back(struct hca_driver *drv, const struct hca_client *owner, uint32_t op,
		     uint32_t op_modifier, uint32_t in_modifier);

/* driver_icm.c */
uint64_t driver_icm_layout(struct hca_driver *drv, uint64_t arena_offset);
int driver_icm_alloc(struct hca_driver *drv);
void driver_icm_free(struct hca_driver *drv);
int driver_icm_need(struct hca_driver *drv, enum driver_icm_area area, uint64_t first,
		    uint64_t count);

/* driver_mr.c; lock held. Register a queue's memory: pages of 4 KiB from addr on. */
int driver_mr_queue(struct hca_driver *drv, struct hca_client *owner, uint32_t pdn, uint64_t addr,
		    uint64_t bytes, uint32_t access, struct driver_mr **out);
int driver_mr_destroy(struct hca_driver *drv, struct driver_mr *mr, bool force);
/* Check the owner's quotas of regions (or windows) and translation entries. */
int driver_mr_quota(const struct hca_driver *drv, const struct hca_client *owner, uint32_t mrs,
		    uint64_t mtts);
/* Allocate an MPT index, mapped in ICM, with a new key. */
int driver_mpt_take(struct hca_driver *drv, uint32_t *key);
uint32_t driver_mpt_new_key(struct hca_driver *drv, uint32_t index);
/* DMA domain of the owner in an MPT entry */
hca_be32 driver_mpt_domain(const struct hca_client *owner);

/*
 * driver_quota.c; lock held. Check whether the client (NULL: the driver) may have n more; the
 * largest number it may have at present, UINT64_MAX: unlimited.
 */
int driver_quota(const struct hca_client *client, enum driver_thing thing, uint64_t more);
uint64_t driver_quota_most(const struct hca_client *client, enum driver_thing thing);
/* Whether one more descriptor may stay open for the client. */
int driver_quota_files(const struct hca_client *client);
/* Device memory for a queue of this size in bytes. */
uint64_t driver_queue_cost(uint64_t bytes);

/* driver_mcast.c; lock held. */
int driver_mcast(struct driver_qp *qp, const uint8_t mgid[16], bool attach);
/* Remove the QP from all groups; the device has done so already. */
void driver_mcast_forget(struct driver_qp *qp);
uint64_t driver_groups_left(const struct hca_driver *drv);

/* driver_mw.c; lock held. */
int driver_mw_release(struct hca_driver *drv, struct driver_mr *window, bool force);

/* driver_eq.c */
int driver_eq_create_all(struct hca_driver *drv);
void driver_eq_destroy_all(struct hca_driver *drv);
/* Forward all events in the queues; event_lock held. Returns their number. */
unsigned int driver_eq_drain(struct hca_driver *drv);
/*
 * Remove the events of an object that is destroyed from a pipe of its owner, which may not have
 * read them; types: HCA_EVENT_MASK(); event_lock held. With more than 64 KiB in a pipe, or without
 * /proc, they stay there: the client ignores them, those of CQs by their tag.
 */
void driver_eq_forget(const struct hca_client *client, uint32_t channel, uint64_t types,
		      uint32_t object);
#define DRIVER_CQ_EVENTS HCA_EVENT_MASK(HCA_EVENT_CQ_ERROR)
#define DRIVER_SRQ_EVENTS \
	(HCA_EVENT_MASK(HCA_EVENT_SRQ_CATAS) | HCA_EVENT_MASK(HCA_EVENT_SRQ_LIMIT))
/* of events that have an object, all others */
#define DRIVER_QP_EVENTS \
	(HCA_EVENT_MASK_ALL & ~DRIVER_CQ_EVENTS & ~DRIVER_SRQ_EVENTS & \
	 ~(HCA_EVENT_MASK(HCA_EVENT_COMP) | HCA_EVENT_MASK(HCA_EVENT_LOCAL_CATAS) | \
	   HCA_EVENT_MASK(HCA_EVENT_PORT_CHANGE) | HCA_EVENT_MASK(HCA_EVENT_CMD) | \
	   HCA_EVENT_MASK(HCA_EVENT_TP_ERROR) | HCA_EVENT_MASK(HCA_EVENT_EQ_OVERFLOW)))
/* Tell the clients that the device is dead. Locks as for the next one. */
void driver_dead_event(struct hca_driver *drv);
/* Send an event about the port to every client; of the locks only `lock` may be held. */
void driver_port_event(struct hca_driver *drv, uint32_t type);

/* driver_cq.c, driver_qp.c; lock held; force: release even if the device refuses. */
int driver_cq_release(struct hca_driver *drv, struct driver_cq *cq, bool force);
int driver_qp_release(struct hca_driver *drv, struct driver_qp *qp, bool force);
struct driver_cq *driver_cq_of(struct hca_client *client, uint32_t cqn);
/* A QP that the client owns or has opened. */
struct driver_qp *driver_qp_of(struct hca_client *client, uint32_t qpn);
/* A QP or Jetty that is in RESET. */
int driver_qp_create(struct hca_client *client, const struct hca_ctl_qp *request,
		     struct driver_qp **out);
/* Fill in the words of the context that clients cannot choose: driver_qp_modify.c */
void driver_qp_fill(const struct driver_qp *qp, struct hca_qpc *qpc);
int driver_qp_query(struct hca_driver *drv, const struct driver_qp *qp, void *mailbox);
/* Enter the QP into the list and the account of its owner, and take it out; event_lock held. */
void driver_qp_own(struct driver_qp *qp);
void driver_qp_disown(struct driver_qp *qp);

/* driver_srq.c; lock held. */
int driver_srq_release(struct hca_driver *drv, struct driver_srq *srq, bool force);
struct driver_srq *driver_srq_of(struct hca_client *client, uint32_t srqn);

/* driver_jetty.c; lock held. The TC of the client is gone, and the device's names for it are. */
void driver_known_forget(struct hca_driver *drv, struct hca_client *owner, uint32_t tc);
/*
 * driver_link.c; lock held. The client imports the peer once more: 0, or -ENOMEM with a reason, as
 * its quota of links. Or once less; or not at all any more.
 */
int driver_link_take(struct hca_client *client, const uint8_t own[16], const uint8_t peer[16]);
void driver_link_give(struct hca_client *client, const uint8_t own[16], const uint8_t peer[16]);
void driver_links_forget(struct hca_client *client);
/* driver_tp.c; lock held. Tables of UB, if the device speaks it. */
int driver_ub_init(struct hca_driver *drv);
bool driver_tp_lives(const struct hca_driver *drv, uint32_t tpn);
/* Whether Jettys of a UAR page may use a group; lock held. */
int driver_permit_tpg(struct hca_driver *drv, uint32_t uar, uint32_t group, bool may);
/* driver_peer.c; lock held. The client ends; its domain is closed thereafter. */
void driver_peers_forget(struct hca_client *client);

/* driver_cm.c */
void driver_cm_forget(struct hca_client *client);
void driver_cm_channel(struct hca_client *client, uint32_t channel);
void driver_cm_gid(struct hca_driver *drv, uint32_t index); /* the entry has changed */

/* driver_addr.c; lock held */
int driver_query_gid(const struct hca_driver *drv, uint32_t index, struct hca_ctl_gid *out);
void driver_ub_free(struct hca_driver *drv);

/* driver_xrc.c; lock held. */
bool driver_has_cap(const struct hca_driver *drv, uint32_t cap);
struct driver_xrcd *driver_xrcd_of(struct hca_client *client, uint32_t number);
void driver_xrcd_release(struct hca_driver *drv, struct hca_client *client,
			 struct driver_xrcd *xrcd);
/* Free the files client->ended, which were taken from it; without locks: it may take long. */
void driver_xrc_close(struct driver_xrc_file *ended);
/* The client's entry among those that have opened the QP; NULL: not found. */
struct driver_opener *driver_opener_of(const struct driver_qp *qp, const struct hca_client *client);
void driver_opener_drop(struct hca_driver *drv, struct driver_opener *opener);
/* The client has opened the QP more than once, and closes it: true. */
bool driver_qp_close_again(struct driver_qp *qp, const struct hca_client *client);
/* The owner gives the QP up. True: a client that has opened it is the owner now. */
bool driver_qp_pass_on(struct hca_driver *drv, struct driver_qp *qp);

/* driver_pd.c; lock held. */
struct driver_pd *driver_pd_of(struct hca_client *client, uint32_t pdn);
/* A token of the new client's own */
void driver_share_init(struct hca_client *client);
/* Free the client's PDs, in which it has nothing any more. */
void driver_pd_free_all(struct hca_client *client);

/* driver_client.c; lock held. */
bool driver_client_covers(const struct hca_client *client, uint64_t bus, uint64_t len);

/*
 * driver_addr.c. config.resolve may take seconds: it is called without the lock for addresses that
 * are not in the table, and the answer is used afterwards.
 */
struct driver_answer {
	bool valid;
	int err; /* what config.resolve returned, or 0: it was not asked */
	uint8_t dgid[16];
	uint8_t dmac[6];
};

/* Lock held; it is released while config.resolve is asked. */
void driver_ask_path(struct hca_driver *drv, const struct hca_qpc_path *path,
		     struct driver_answer *told);

/* Fill in the MAC and IPv4 addresses of a path; lock held. */
int driver_resolve_path(struct hca_driver *drv, struct hca_qpc_path *path,
			const struct driver_answer *told);
int driver_addr_init(struct hca_driver *drv);

#endif
