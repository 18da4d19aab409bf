/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program for checkers of memory: it gives back all objects of each device, and its own memory,
 * except one piece if asked to.
 *
 * leaks [leak]
 */

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 65536
#define LEAK 12345

static int
use(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
	char *memory = malloc(BYTES);
	struct ibv_mr *mr =
		pd != NULL ? ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_cq *cq = mr != NULL ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = cq != NULL ? ibv_create_qp(pd, &attr) : NULL;

	if (qp == NULL || ibv_destroy_qp(qp) != 0 || ibv_destroy_cq(cq) != 0 ||
	    ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0 || ibv_close_device(context) != 0)
		return -1;
	free(memory);
	return 0;
}

static __attribute__((noinline)) void
leak(void)
{
	char *volatile piece = malloc(LEAK);

	memset(piece, 1, LEAK);
	piece = NULL;
}

int
main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list == NULL)
		return 2;
	if (argc == 2 && strcmp(argv[1], "leak") == 0)
		leak();
	for (int i = 0; list[i] != NULL; i++)
		if (use(list[i]) != 0)
			return 3;
	ibv_free_device_list(list);
	puts("all was given back");
	return 0;
}
