/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/sleep.h"
#include "host.h"

static int
dma_attach(void *arg, uint32_t domain, uint64_t bus, uint64_t len)
{
	return hca_dma_attach(arg, domain, bus, len);
}

static int
dma_detach(void *arg, uint32_t domain, uint64_t bus, uint64_t len)
{
	return hca_dma_detach(arg, domain, bus, len);
}

static int
uar_undivide(void *arg, uint32_t uar_page, bool undivided)
{
	return hca_uar_undivide(arg, uar_page, undivided);
}

struct hca_hw
hca_host_hw(struct hca *h)
{
	return (struct hca_hw){
		.bar0 = hca_bar0(h),
		.bar2 = hca_bar2(h),
		.dma_attach = dma_attach,
		.dma_detach = dma_detach,
		.dma_arg = h,
		.uar_undivide = uar_undivide,
	};
}

void
hca_host_wait(void *h)
{
	hca_kick_stage(h, HCA_STAGE_CEU);
	sched_yield();
}

/*
 * Sealed after it is mapped here: no descriptor of it allows writing, writable mappings or holes.
 */
int
hca_host_sleep_open(void **words, int *fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	void *page = MAP_FAILED;
	int err;

	*fd = memfd_create("softhca-sleep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && ftruncate(*fd, HCA_SLEEP_BYTES) == 0)
		page = mmap(NULL, HCA_SLEEP_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, *fd, 0);
	if (page != MAP_FAILED && fcntl(*fd, F_ADD_SEALS, seals) == 0) {
		*words = page;
		return 0;
	}
	err = -errno;
	hca_host_sleep_close(page != MAP_FAILED ? page : NULL, *fd);
	return err;
}

void
hca_host_sleep_close(void *words, int fd)
{
	if (words != NULL)
		munmap(words, HCA_SLEEP_BYTES);
	if (fd >= 0)
		close(fd);
}

int
hca_host_kick_add(void *h, uint32_t uar_page, uint32_t pipe, int fd)
{
	return hca_kick_add(h, uar_page, pipe, fd);
}

void
hca_host_kick_remove(void *h, uint32_t uar_page)
{
	hca_kick_remove(h, uar_page);
}

uint64_t
hca_host_kick_muted(void *h, uint32_t uar_page)
{
	return hca_kick_muted(h, uar_page);
}

static uint32_t
number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	uint32_t n = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%u", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

uint32_t
hca_host_free_hugepages(void)
{
	return number_in(HCA_HUGEPAGES "free_hugepages");
}

uint32_t
hca_host_hugepages_for(uint32_t need)
{
	uint32_t all = number_in(HCA_HUGEPAGES "nr_hugepages"), have = hca_host_free_hugepages();

	return need + (all > have ? all - have : 0);
}

int
hca_host_first_cpu(const cpu_set_t *set)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, set))
			return i;
	return 0;
}
