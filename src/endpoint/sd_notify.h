/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SD_NOTIFY_H
#define SD_NOTIFY_H

/*
 * What systemd wants to hear of a service of Type=notify: datagrams to the socket that the variable
 * NOTIFY_SOCKET names. Without it nothing happens.
 */

#include <stdint.h>

/*
 * "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=..."; several, a line each. 0 or negative errno.
 */
int sd_notify_send(const char *state);

/* Half the time within which systemd wants WATCHDOG=1, in ns; 0: it does not. */
uint64_t sd_notify_watchdog_ns(void);

#endif
