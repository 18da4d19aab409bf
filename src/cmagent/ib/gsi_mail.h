/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_IB_GSI_MAIL_H
#define CMAGENT_IB_GSI_MAIL_H

/*
 * Management datagrams on QP 1 (the general services interface): a UD QP of a privileged client,
 * whose datagrams leave with source QPN 1 and the Q_Key of the GSI, to QPN 1 of peers. The owner
 * makes it the QP that gets the packets to QPN 1: command CONF_SPECIAL_QP with m->qpn.
 *
 * A receive has room for the largest datagram of a path, so that a padded one is received, and its
 * length is the letter's.
 */

#include "cmagent_mail.h"

#define GSI_MAIL_BYTES 4096u /* of a datagram, sent or received */

/**
 * @param events
 *   The agent has a thread, which waits for completions.
 * @return
 *   0 or a negative errno with hca_driver_reason().
 */
int gsi_mail_open(struct cmagent_mail *m, struct hca_driver *drv, bool events);

/*
 * A send that the device refuses (its GID entry has gone) stops the queue of sends. Make it ready
 * again, as soon as all sends have completed; no effect if no send was refused. Calls the driver:
 * not with a lock that is taken below the driver's.
 */
void gsi_mail_recover(struct cmagent_mail *m);

#endif
