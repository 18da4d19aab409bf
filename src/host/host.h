/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_HOST_H
#define HOST_HOST_H

/*
 * Shared by all compositions: src/embed, src/endpoint and the test rigs. Connects a device and its
 * driver, which do not include each other, and reads from the machine the parameters of the EAL.
 * Has no state; any thread may call.
 */

#include <sched.h>
#include <stdint.h>

#include "driver_hw.h"
#include "hca.h"

#define HCA_HUGEPAGES_OF(mb) (((mb) + 1) / 2) /* of 2 MiB */
#define HCA_HUGEPAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"

/* The device as its driver sees it: BARs and DMA windows. The caller fills in the other members. */
struct hca_hw hca_host_hw(struct hca *h);

/*
 * Called by the driver while a command is executed (arg: the HCA). It wakes the worker that serves
 * the command register in each round, because a command may need several polls and the worker may
 * sleep between them.
 */
void hca_host_wait(void *h);

/* For hca_config.wall_clock. */
uint64_t hca_host_wall_clock(void);

/*
 * Allocate HCA_SLEEP_BYTES for hca_config.sleep_words in a file that clients can map for reading
 * but never write. *fd: the file, to be closed by the caller. 0 or a negative errno.
 */
int hca_host_sleep_open(void **words, int *fd);
void hca_host_sleep_close(void *words, int fd);

/* Members of struct ipc_sleep; arg: the HCA. */
int hca_host_kick_add(void *h, uint32_t uar_page, uint32_t pipe, int fd);
void hca_host_kick_remove(void *h, uint32_t uar_page);
uint64_t hca_host_kick_muted(void *h, uint32_t uar_page);

/* Number of free hugepages of 2 MiB; 0: none. */
uint32_t hca_host_free_hugepages(void);

/*
 * The value that nr_hugepages must have so that `need` pages are free, in addition to those in use.
 */
uint32_t hca_host_hugepages_for(uint32_t need);

/* The lowest CPU of a set, for the EAL's main lcore; 0 if the set is empty. */
int hca_host_first_cpu(const cpu_set_t *set);

#endif
