/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two processes on the device of a daemon: the child writes into the memory of its parent.
 *
 *   cc two_processes.c -o two_processes $(pkg-config --cflags --libs softhca)
 *   softhcad -c config/examples/user.conf &
 *   ./two_processes /tmp/softhca-try.sock
 *
 * No DPDK in here. On two hosts the addresses travel over TCP instead of a socket pair, and all
 * else is the same.
 */

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"

#define BYTES 4096u

/* The first IPv4 address of the device; without one, entry 0 */
static unsigned int
choose_gid(struct softhca_context *ctx)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct softhca_port_attr port;
	union softhca_gid gid;
	unsigned int i;

	must(softhca_query_port(ctx, 1, &port) == 0, "query_port");
	for (i = 0; i < port.gid_tbl_len; i++)
		if (softhca_query_gid(ctx, 1, i, &gid) == 0 &&
		    memcmp(gid.raw, mapped, sizeof(mapped)) == 0)
			return i;
	return 0;
}

/* Both call it at the same point: it is also where they wait for each other. */
static struct address
exchange(int sock, struct address mine)
{
	struct address theirs;

	must(write(sock, &mine, sizeof(mine)) == sizeof(mine), "write");
	must(read(sock, &theirs, sizeof(theirs)) == sizeof(theirs), "read: the peer has ended");
	return theirs;
}

static void
run(const char *device, int sock, int is_writer)
{
	struct side s;
	struct address peer;
	unsigned int gid;

	must(softhca_open(device, &s.ctx) == 0, "open");
	gid = choose_gid(s.ctx);
	create_objects(&s, BYTES, 0);
	peer = exchange(sock, address_of(&s, gid));
	connect_to(&s, gid, &peer);
	exchange(sock, peer); /* both are connected */
	if (is_writer) {
		strcpy(s.memory, "written by the child");
		post(&s, SOFTHCA_WR_RDMA_WRITE, BYTES, &peer);
		complete(&s);
	}
	exchange(sock, peer); /* it has been written */
	if (!is_writer)
		printf("%s\n", s.memory);
	must(softhca_close(s.ctx) == 0, "close"); /* with all that was created in it */
}

int
main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : NULL; /* NULL: SOFTHCA_DEVICE, or the first */
	int sock[2], status;
	pid_t child;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0, "socketpair");
	child = fork(); /* before a device is opened: a child cannot use its parent's contexts */
	must(child >= 0, "fork");
	if (child == 0) {
		close(sock[0]);
		run(device, sock[1], 1);
		return 0;
	}
	close(sock[1]);
	run(device, sock[0], 0);
	must(waitpid(child, &status, 0) == child, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
