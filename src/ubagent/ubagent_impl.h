/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UBAGENT_UBAGENT_IMPL_H
#define UBAGENT_UBAGENT_IMPL_H

/* Shared by the files of the agent. */

#include <pthread.h>

#include "abi_cqe.h"
#include "abi_tp.h"
#include "abi_wqe.h"
#include "ubagent.h"

/* ---- messages: ubagent_mail.c ---- */

#define MAIL_LOG_SENDS 6u
#define MAIL_LOG_RECEIVES 7u
#define MAIL_ADDRESSES 40u /* in front of a received datagram */
#define MAIL_RECEIVE_BYTES 1088u

struct mail {
	struct hca_client *client;
	uint8_t *arena;
	size_t bytes;
	uint32_t uar_page, lkey, cqn, qpn;
	struct hca_cqe_ub *cqe;
	struct hca_cq_record *cq_record;
	uint8_t *sq, *rq, *sends, *receives;
	struct hca_rq_record *rq_record;
	uint32_t cq_ci, cq_arm;
	uint32_t sq_head, sq_tail; /* free running */
	uint32_t rq_posted;
	bool returned[1u << MAIL_LOG_RECEIVES];
	uint32_t doorbell; /* free running number of the next one */
	int channel_fd;	   /* -1: nobody waits */
};

int mail_open(struct mail *m, struct hca_driver *drv, bool events);
void mail_close(struct mail *m);
/* A message to a peer; false: there is no room. The worker must be kicked. */
bool mail_send(struct mail *m, const struct hca_ctl_ah *to, const uint8_t *bytes, size_t len);
/* Ask for an event of the next completion; what is there already must be looked for afterwards. */
void mail_arm(struct mail *m);
/* Whether there is a completion. */
bool mail_due(const struct mail *m);

struct mail_letter {
	uint8_t own[16], peer[16]; /* addresses of the datagram */
	const uint8_t *bytes;
	size_t len;
	uint32_t slot;
};

/*
 * Take a completion: 1: a message, to be given back; 0: nothing is there; -1: something else.
 */
int mail_take(struct mail *m, struct mail_letter *letter);
void mail_give_back(struct mail *m, uint32_t slot);

/* ---- who has imported what: ubagent_account.c; under its lock, a leaf ---- */

enum import_state {
	IMPORT_FREE,
	IMPORT_NEW,	/* the agent has not seen it */
	IMPORT_WAITING, /* it is a user of its link */
	IMPORT_UP,
	IMPORT_DOWN,	/* its link is gone; the owner has not given it back */
	IMPORT_LEAVING, /* the owner has given it back; the agent has not seen that */
};

#define NO_GROUP UINT32_MAX

struct import {
	uint8_t state; /* enum import_state */
	bool listed;   /* for the agent */
	uint8_t status;
	bool joined; /* a user of its link */
	uint32_t owner;
	uint32_t generation;
	uint32_t link; /* of ubcm */
	uint32_t group;
	uint32_t next;
	uint8_t own[16], peer[16];
};

#define IMPORT_LOG_MAX 16u

struct account {
	pthread_mutex_t lock;
	struct import *import;
	uint32_t count, used;
	uint32_t free, todo; /* lists by index + 1 */
	uint32_t *dead;	     /* TPNs that have died, by index; 0: none; without the lock */
	uint32_t ntps;
	bool any_dead;
	uint32_t *users; /* imports that name a group */
	bool *gone;	 /* the group has no TPs any more */
};

int account_init(struct account *a, uint32_t ntps);
void account_free(struct account *a);
/* The next import that the agent must look at; NULL: none. */
struct import *account_next(struct account *a);
bool account_due(struct account *a);
/* The import ends and its place is free. Returns the group that may be given back, or NO_GROUP. */
uint32_t account_end(struct account *a, struct import *i);
void account_up(struct account *a, uint32_t link, uint32_t group);
void account_down(struct account *a, uint32_t link, uint32_t status);
/* The TPs of a group are gone. True: nobody names it. */
bool account_group_gone(struct account *a, uint32_t group);

/* ---- the agent ---- */

struct ubagent {
	struct ubagent_config cfg;
	struct mail mail;
	struct account account;
	struct ubcm *cm;
	uint32_t *group; /* by index of the link; NO_GROUP */
	uint32_t log_tps, nlinks;
	uint64_t random; /* state, with a seed */
	uint64_t deadline;
	uint64_t counter[UBAGENT_COUNTERS];
	pthread_t thread;
	bool runs;
	int wake_fd; /* eventfd; -1: no thread */
	int stop;
	int busy;
	uint32_t asked; /* somebody wants the agent to look */
};

/* What the driver calls: ubagent_account.c */
extern const struct hca_driver_agent ubagent_face;
void ubagent_wake(struct ubagent *a);
void ubagent_count(struct ubagent *a, enum ubagent_counter which);

/* ubagent_act.c: what ubcm orders */
extern const struct ubcm_ops ubagent_ops;
void ubagent_give_group(struct ubagent *a, uint32_t group);

#endif
