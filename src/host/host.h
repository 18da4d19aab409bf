/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_HOST_H
#define HOST_HOST_H

/*
 * What the compositions share: src/embed, src/endpoint and the rigs of the tests. Here a device and
 * its driver, which do not know each other, are joined; and what the EAL is to be told of the
 * machine is looked up. No state; any thread.
 */

#include <sched.h>
#include <stdint.h>

#include "driver_hw.h"
#include "hca.h"

#define HCA_HUGEPAGES_OF(mb) (((mb) + 1) / 2) /* of 2 MiB */
#define HCA_HUGEPAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"

/* h as its driver sees it: BARs and DMA windows. The rest is the caller's to fill in. */
struct hca_hw hca_host_hw(struct hca *h);

/*
 * What the driver does while a command is executed, arg: the HCA. The worker of the command
 * register is woken in every round, since a command may need several polls, between which it may
 * sleep.
 */
void hca_host_wait(void *h);

/*
 * HCA_SLEEP_BYTES for hca_config.sleep_words, and a file of them that others may map to read and
 * nobody can write to. 0 or negative errno.
 */
int hca_host_sleep_open(void **words, int *fd);
void hca_host_sleep_close(void *words, int fd);

/* As struct ipc_sleep wants them, arg: the HCA. */
int hca_host_kick_add(void *h, uint32_t uar_page, int fd);
void hca_host_kick_remove(void *h, uint32_t uar_page);
uint64_t hca_host_kick_muted(void *h, uint32_t uar_page);

/* Hugepages of 2 MiB that nobody has; 0 where there are none at all. */
uint32_t hca_host_free_hugepages(void);

/* What nr_hugepages has to be where `need` are to be free: beside those somebody has. */
uint32_t hca_host_hugepages_for(uint32_t need);

/* The first CPU of a set, for the EAL's main lcore; 0: the set is empty. */
int hca_host_first_cpu(const cpu_set_t *set);

#endif
