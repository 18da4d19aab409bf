/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_HW_H
#define DRIVER_HW_H

/*
 * The driver's interface of a device: its two BARs, a way to let it run, and the DMA windows (an
 * IOMMU in silicon). Filled in by the composition (src/embed, src/endpoint) or by a fake device in
 * tests; copied by hca_driver_create().
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct hca_hw {
	volatile void *bar0; /* 1 MiB, T3-1-2 */
	volatile void *bar2; /* 8 MiB, 2048 UAR pages */

	/*
	 * Called repeatedly while a command is executed. Manual progress: runs the engine. Engine
	 * in threads: may yield or sleep. It must not issue commands of the driver, but may call
	 * hca_driver_poll(). NULL: the driver yields.
	 */
	void (*progress)(void *arg);
	void *progress_arg;

	/*
	 * Open and close a window: the device may access [bus, bus + len) on behalf of `domain` (0
	 * = driver, otherwise a UAR page number). Page aligned. 0 or a negative errno.
	 */
	int (*dma_attach)(void *arg, uint32_t domain, uint64_t bus, uint64_t len);
	int (*dma_detach)(void *arg, uint32_t domain, uint64_t bus, uint64_t len);
	void *dma_arg;

	/*
	 * Select whether the owner of a doorbell page rings in the whole page, and has QPs of
	 * pipeline 0 only, or in the parts of the pipelines (abi_bar.h). Before its first window. 0
	 * or a negative errno. NULL: the device has one pipeline.
	 */
	int (*uar_undivide)(void *arg, uint32_t uar_page, bool undivided);

	/*
	 * Allocate zeroed memory for ICM, EQs and mailboxes, aligned to 4 KiB, and return its bus
	 * address. Both NULL: anonymous memory of the process; bus address = virtual address.
	 */
	void *(*alloc_mem)(void *arg, size_t len, uint64_t *bus);
	void (*free_mem)(void *arg, void *mem, size_t len);
	void *mem_arg;
};

#endif
