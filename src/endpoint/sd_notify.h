/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SD_NOTIFY_H
#define SD_NOTIFY_H

/*
 * Notifications for systemd (Type=notify): datagrams to the socket named by the environment
 * variable NOTIFY_SOCKET. Without it these calls do nothing.
 */

#include <stdint.h>

/*
 * Send "READY=1", "STOPPING=1", "WATCHDOG=1" or "STATUS=...", several separated by newlines. 0 or a
 * negative errno.
 */
int sd_notify_send(const char *state);

/* Half of systemd's watchdog interval in ns; 0: there is no watchdog. */
uint64_t sd_notify_watchdog_ns(void);

#endif
