/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_MACHINE_H
#define ENDPOINT_MACHINE_H

/* What the daemon takes from the machine before it builds anything: open files, CPUs. */

#include "endpoint_config.h"

/*
 * As many open files as the machine allows this process, and a share of them for each client that
 * may come: where no quota of event channels is set, one client cannot take the files of the
 * others.
 */
void endpoint_machine_files(struct endpoint_config *c);

/* Each CPU of [hca] lcores is one this process may run on: 0 or negative errno (endpoint_fail). */
int endpoint_machine_cpus(const struct endpoint_config *c);

/*
 * Warn where the kernel itself answers ARP on the device's interface, with another MAC address, for
 * addresses of our TAP: peers that believe it send to nobody.
 */
void endpoint_machine_arp(const struct endpoint_config *c, const char *interface);

#endif
