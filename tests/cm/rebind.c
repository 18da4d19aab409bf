/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that is restarted binds the port of its last process, which was killed with a listener
 * and many QPs a moment ago.
 *
 *   rebind DEVICE ROUNDS
 */

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <softhca/cm.h>

#define QPS 200u

static void
must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, softhca_last_error(NULL));
	exit(1);
}

struct end {
	struct softhca_context *ctx;
	struct softhca_cm_channel *channel;
};

static struct end
open_end(const char *device)
{
	struct end e;

	must(softhca_open(device, &e.ctx) == 0, "open");
	e.channel = softhca_cm_create_channel(e.ctx);
	must(e.channel != NULL, "create_channel");
	return e;
}

static void
listen_at(const struct end *e, uint16_t port)
{
	const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct softhca_cm_id *id =
		softhca_cm_create_id(e->channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);

	must(id != NULL, "create_id");
	must(softhca_cm_bind(id, (const struct sockaddr *)&at, 0) == 0, "bind");
	must(softhca_cm_listen(id, 1) == 0, "listen");
}

static void
create_qps(const struct end *e)
{
	const struct softhca_cq_init_attr cqa = {.cqe = 64};
	struct softhca_qp_init_attr qa = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct softhca_pd *pd = softhca_alloc_pd(e->ctx);

	must(pd != NULL, "alloc_pd");
	qa.send_cq = qa.recv_cq = softhca_create_cq(e->ctx, &cqa);
	must(qa.send_cq != NULL, "create_cq");
	for (unsigned int i = 0; i < QPS; i++)
		must(softhca_create_qp(pd, &qa) != NULL, "create_qp");
}

/* Listens with many QPs, tells the parent and waits for its end. */
static void
live(const char *device, uint16_t port, int ready)
{
	struct end e = open_end(device);

	create_qps(&e);
	listen_at(&e, port);
	must(write(ready, "", 1) == 1, "write");
	pause();
}

static void
restart(const char *device, uint16_t port)
{
	struct end e;
	int ready[2];
	char byte;
	pid_t pid;

	must(pipe(ready) == 0, "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0)
		live(device, port, ready[1]);
	close(ready[1]);
	must(read(ready[0], &byte, 1) == 1, "the listener ended");
	close(ready[0]);
	e = open_end(device);
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
	listen_at(&e, port);
	must(softhca_cm_destroy_channel(e.channel) == 0, "destroy_channel");
	must(softhca_close(e.ctx) == 0, "close");
}

int
main(int argc, char **argv)
{
	unsigned int rounds = argc == 3 ? (unsigned int)atoi(argv[2]) : 0;

	must(rounds > 0, "usage: rebind DEVICE ROUNDS");
	for (unsigned int i = 0; i < rounds; i++)
		restart(argv[1], (uint16_t)(17000 + i));
	return 0;
}
