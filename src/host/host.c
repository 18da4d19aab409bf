/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>

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

struct hca_hw
hca_host_hw(struct hca *h)
{
	return (struct hca_hw){
		.bar0 = hca_bar0(h),
		.bar2 = hca_bar2(h),
		.dma_attach = dma_attach,
		.dma_detach = dma_detach,
		.dma_arg = h,
	};
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
