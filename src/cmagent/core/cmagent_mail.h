/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_CORE_MAIL_H
#define CMAGENT_CORE_MAIL_H

/*
 * The datagrams of an agent: a client of the driver with one queue of sends, one of receives and a
 * CQ in memory of its own, used as the device's ABI says. Each send and each receive has a place
 * for one message. A form has the parts that depend on the wire (object with the queues, address in
 * a WQE, fields of a CQE): a table of functions.
 *
 * One thread at a time calls these functions: that of the agent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_cqe.h"
#include "abi_ctl.h"
#include "abi_roce.h"
#include "abi_wqe.h"
#include "driver.h"

#define CMAGENT_MAIL_ADDRESSES 40u /* in front of a received datagram */
#define CMAGENT_MAIL_LOG_MAX 10u   /* log2 of sends, of receives */
#define CMAGENT_MAIL_HOP_LIMIT HCA_HOP_LIMIT

struct cmagent_mail;

/* Where a message goes: the address of the peer, its next hop, the entry of the GID table. */
struct cmagent_mail_to {
	struct hca_ctl_ah ah;
	uint8_t hop_limit; /* 0: CMAGENT_MAIL_HOP_LIMIT */
	uint8_t traffic_class;
};

/* A message that was received; valid until it is given back. */
struct cmagent_mail_letter {
	uint8_t own[16], peer[16]; /* addresses of the datagram */
	uint8_t mac[6];		   /* of the frame's sender; 0: not known */
	uint16_t vlan;		   /* tag of the frame; 0: none, or not known */
	uint8_t traffic_class;	   /* of the IP header, with its ECN bits */
	uint32_t from_qpn;	   /* RoCE: its source */
	const uint8_t *bytes;
	size_t len;
	uint32_t slot;
};

/* Kind of a completion. */
enum cmagent_mail_kind {
	CMAGENT_MAIL_NONE, /* no completion */
	CMAGENT_MAIL_SENT,
	CMAGENT_MAIL_BAD,    /* a receive without a datagram, which was given back */
	CMAGENT_MAIL_LETTER, /* to be given back */
};

struct cmagent_mail_form {
	/* A send is a next unit, the units that name the peer, and one data unit. */
	uint32_t to_bytes;
	uint32_t cq_flags; /* HCA_CTL_CQ_* */
	bool host;	   /* its client is not in usage and lists (struct hca_client_who) */
	/* Make the object that has the queues, ready to send and receive; m->qpn. */
	int (*open)(struct cmagent_mail *m, uint32_t pdn);
	/* The units that name the peer; they are zeroed. */
	void (*address)(void *units, const struct cmagent_mail_to *to);
	bool (*refused)(const void *cqe); /* a send: the device has not carried it out */
	/*
	 * The offset of a receive's WQE, the number of bytes received, and the sender in the CQE;
	 * false: it holds no datagram.
	 */
	bool (*receive)(const void *cqe, uint32_t *wqe, uint32_t *bytes,
			struct cmagent_mail_letter *l);
};

struct cmagent_mail_config {
	const struct cmagent_mail_form *form;
	struct hca_driver *drv;
	bool events;			 /* completions can be waited for: channel_fd */
	uint8_t log_sends, log_receives; /* 1 to CMAGENT_MAIL_LOG_MAX */
	uint32_t send_bytes;		 /* of a message */
	uint32_t receive_bytes;		 /* of a datagram, with CMAGENT_MAIL_ADDRESSES */
};

struct cmagent_mail {
	struct cmagent_mail_config cfg;
	struct hca_client *client;
	uint8_t *arena;
	size_t bytes;
	uint32_t uar_page, lkey, cqn, qpn;
	uint32_t log_cq, log_send_stride;
	uint8_t *cq, *sq, *rq, *sends, *receives; /* parts of the arena */
	struct hca_cq_record *cq_record;
	struct hca_rq_record *rq_record;
	uint32_t cq_ci, cq_arm;
	uint32_t sq_head, sq_tail; /* free running */
	bool refused;		   /* a send since the owner of the form has cleared it */
	uint32_t rq_posted;
	bool returned[1u << CMAGENT_MAIL_LOG_MAX];
	uint32_t pipes;	   /* parts of the doorbell page */
	uint32_t doorbell; /* free running number of the next one */
	int channel_fd;	   /* of completions; -1: events are not waited for */
};

/* An operation of the mail's client */
#define CMAGENT_MAIL_CALL(m, NAME, request, answer, extra) \
	hca_client_call((m)->client, HCA_CTL_##NAME, HCA_CTL_REQUEST(NAME, request), \
			HCA_CTL_ANSWER(NAME, answer), extra)

/* The request of a QP or Jetty with the queues of *m. */
struct hca_ctl_qp cmagent_mail_queues(const struct cmagent_mail *m, uint32_t service, uint32_t pdn);

/**
 * Open a client of the driver and its queues, and post all receives.
 *
 * @return
 *   0 or a negative errno with hca_driver_reason(): then nothing is left, and channel_fd is -1.
 */
int cmagent_mail_open(struct cmagent_mail *m, const struct cmagent_mail_config *config);
/* Accepts a zeroed structure with channel_fd -1. */
void cmagent_mail_close(struct cmagent_mail *m);

/**
 * Send a message of at most send_bytes. The worker that checks doorbells must be kicked.
 *
 * @return
 *   False: there is no room.
 */
bool cmagent_mail_send(struct cmagent_mail *m, const struct cmagent_mail_to *to,
		       const uint8_t *bytes, size_t len);

/* Ask for an event of the next completion; poll once more afterwards. */
void cmagent_mail_arm(struct cmagent_mail *m);
/* Whether there is a completion. */
bool cmagent_mail_due(const struct cmagent_mail *m);
/* Take a completion. */
enum cmagent_mail_kind cmagent_mail_take(struct cmagent_mail *m,
					 struct cmagent_mail_letter *letter);
void cmagent_mail_give_back(struct cmagent_mail *m, uint32_t slot);

/*
 * Send the last messages, if the device takes them within 20 ms; received ones are ignored.
 * progress: lets the engine run; NULL: it runs in its own threads.
 */
void cmagent_mail_farewell(struct cmagent_mail *m, void (*progress)(void *arg), void *arg);

/* The UD unit of a send with the GID form of the address */
void cmagent_mail_ud(struct hca_ud_unit *unit, const struct cmagent_mail_to *to);

#endif
