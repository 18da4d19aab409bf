/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Opens the first device N times, uses each context, and tells the reason where the device refuses
 * one. All of them are open at once.
 *
 * many CONTEXTS
 */

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Each context has several descriptors. */
static void
raise_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* A PD, a CQ and a QP stay until the context ends. */
static int
use(struct ibv_context *context)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_pd *pd = ibv_alloc_pd(context);

	attr.send_cq = attr.recv_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	return pd != NULL && attr.send_cq != NULL && ibv_create_qp(pd, &attr) != NULL ? 0 : -1;
}

int
main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int wanted = argc == 2 ? atoi(argv[1]) : 0, n = 0;

	raise_files();
	if (list == NULL || list[0] == NULL)
		return 1;
	while (n < wanted) {
		struct ibv_context *context = ibv_open_device(list[0]);

		if (context == NULL || use(context) != 0)
			break;
		n++;
	}
	printf("%d contexts: %s\n", n, n == wanted ? "ok" : strerrorname_np(errno));
	return n == wanted ? 0 : 2;
}
