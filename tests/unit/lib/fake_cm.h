/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_LIB_FAKE_CM_H
#define TESTS_UNIT_LIB_FAKE_CM_H

/*
 * The connection manager of a fake_ctl: numbers for ids, the last request of each kind, and events
 * that the test raises. Its calls may come from several threads.
 */

#include "fake_ctl.h"
#include "lib_cm.h"

struct fake_cm {
	struct hca_ctl_cm_create create;
	struct hca_ctl_cm_bind bind;
	struct hca_ctl_cm_resolve resolve;
	struct hca_ctl_cm_route route;
	struct hca_ctl_cm_listen listen;
	struct hca_ctl_cm_param connect, accept;
	struct hca_ctl_cm_reject reject;
	struct hca_ctl_cm_notify notify;
	struct hca_ctl_cm_option option;
	struct hca_ctl_cm_join join;
	uint32_t disconnected, left;
	struct hca_ctl_cm_info info;  /* answer to CM_QUERY */
	struct hca_ctl_cm_attr attr;  /* to CM_QP_ATTR */
	uint32_t asked[8], num_asked; /* QP states of CM_QP_ATTR */
	uint32_t ids;		      /* how many there are */
	int fail;		      /* error of all operations */
	uint32_t next_number, stride; /* of the next id */
};

extern struct fake_cm fake_cm;

/* Begin with no ids; the fake answers the operations from now on. */
void fake_cm_begin(struct fake_ctl *fake);
/* An event waits in the channel; the first one is signalled. */
void fake_cm_raise(struct fake_ctl *fake, uint32_t channel, const struct hca_ctl_cm_event *event);
/* A new id that belongs to the client, for a CONNECT_REQUEST */
uint32_t fake_cm_new_id(void);

#endif
