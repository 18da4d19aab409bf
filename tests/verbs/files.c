/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of verbs in processes that may have few files: from none beyond those that are open to as
 * many as all calls need. Each call succeeds or fails with EMFILE.
 *
 * files MOST
 */

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1u << 20)

static int limit;

static void
set_limit(int files)
{
	struct rlimit r = {(rlim_t)files, (rlim_t)files};

	limit = files;
	if (setrlimit(RLIMIT_NOFILE, &r) != 0)
		_exit(3);
}

/* Whether the call has succeeded; another error than EMFILE ends the process. */
static bool
fits(bool ok, const char *call)
{
	int err = errno;

	if (!ok)
		printf("%d files: %s: %s\n", limit, call, strerrorname_np(err));
	if (!ok && err != EMFILE) {
		fflush(stdout);
		_exit(2);
	}
	return ok;
}
#define FITS(call) fits((errno = 0, (call)), #call)

static bool
is_intact(const char *memory)
{
	for (unsigned int i = 0; i < BYTES; i++)
		if (memory[i] != (char)(i >> 12))
			return false;
	return true;
}

/*
 * Objects with descriptors or memory of their own. A failed object does not block the end of
 * others, and keeps no memory of the program.
 */
static bool
use(struct ibv_context *context)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	char *memory = malloc(BYTES);
	struct ibv_comp_channel *channel = NULL;
	struct ibv_cq *cq = NULL;
	struct ibv_mr *mr = NULL;
	struct ibv_context *again = NULL;
	struct ibv_pd *pd = NULL;
	struct ibv_qp *qp = NULL;
	bool all;

	for (unsigned int i = 0; i < BYTES; i++)
		memory[i] = (char)(i >> 12);
	all = FITS((pd = ibv_alloc_pd(context)) != NULL);
	all = all && FITS((mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	all = FITS((channel = ibv_create_comp_channel(context)) != NULL) && all;
	all = FITS((cq = ibv_create_cq(context, 16, NULL, channel, 0)) != NULL) && all;
	attr.send_cq = attr.recv_cq = cq;
	all = all && FITS((qp = ibv_create_qp(pd, &attr)) != NULL);
	all = FITS((again = ibv_import_device(context->cmd_fd)) != NULL) && all;

	if ((qp != NULL && ibv_destroy_qp(qp) != 0) || (cq != NULL && ibv_destroy_cq(cq) != 0) ||
	    (channel != NULL && ibv_destroy_comp_channel(channel) != 0) ||
	    (mr != NULL && ibv_dereg_mr(mr) != 0) || (pd != NULL && ibv_dealloc_pd(pd) != 0) ||
	    (again != NULL && ibv_close_device(again) != 0) || !is_intact(memory))
		_exit(4);
	free(memory);
	return all;
}

/* 0: all calls have succeeded; 1: one has failed with EMFILE. */
static int
calls(void)
{
	struct ibv_device **list = NULL;
	struct ibv_context *context;
	bool all = false;

	if (!FITS((list = ibv_get_device_list(NULL)) != NULL))
		return 1;
	if (list[0] == NULL)
		return 5;
	context = ibv_open_device(list[0]);
	if (fits(context != NULL, "ibv_open_device")) {
		all = use(context);
		if (ibv_close_device(context) != 0)
			return 6;
	}
	ibv_free_device_list(list);
	return all ? 0 : 1;
}

int
main(int argc, char **argv)
{
	int most = argc == 2 ? atoi(argv[1]) : 0, status = 1 << 8, failed = 0;

	for (int files = 3; files <= most && status != 0; files++) {
		pid_t pid = fork();

		if (pid == 0) {
			set_limit(files);
			exit(calls());
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		    WEXITSTATUS(status) > 1) {
			printf("%d files: status %#x\n", files, (unsigned int)status);
			return 1;
		}
		failed += status != 0;
	}
	printf("%d limits are too low\n", failed);
	return status == 0 && failed > 3 ? 0 : 1;
}
