/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_MACHINE_H
#define ENDPOINT_MACHINE_H

/*
 * The daemon's checks of the machine before it creates anything: file descriptors, CPUs; and the
 * machine's figures of its threads.
 */

#include <stdint.h>

#include "endpoint_config.h"

/*
 * Raise the limit of open files, and divide it among the clients that may connect: if no quota of
 * event channels, which is also that of files of XRC domains, is configured, this prevents one
 * client from using up the descriptors.
 */
void endpoint_machine_files(struct endpoint_config *c);

/* Descriptors that the daemon needs if all its clients are there. */
uint64_t endpoint_machine_files_needed(const struct endpoint_config *c);

/* [memory] hugepages = must: pages that are free, that are needed, that there should be */
#define ENDPOINT_HUGEPAGES_LACK \
	"hugepages: must: %u free pages of 2 MiB, %u are needed; run 'echo %u > " HCA_HUGEPAGES \
	"nr_hugepages'"

/*
 * Check that this process may run on each CPU of [hca] lcores; 0 or a negative errno
 * (endpoint_fail).
 */
int endpoint_machine_cpus(const struct endpoint_config *c);

/*
 * Total time in ns that a thread of this process was runnable without a CPU; 0: the kernel does not
 * tell.
 */
uint64_t endpoint_machine_waited_ns(int tid);

/*
 * Warn if the kernel answers ARP on the device's interface, with another MAC address, for addresses
 * of our TAP interface: peers that accept the answer send to the wrong address.
 */
void endpoint_machine_arp(const struct endpoint_config *c, const char *interface);

#endif
