/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Half of a round trip of 8 bytes over TCP on the loopback interface, between two processes:
 * the latency of a program without RDMA. Both block in read(). Prints JSON, times in us.
 */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES 8
#define TRIPS_MAX 1000000u
#define WARM 100u

static uint32_t half_ns[TRIPS_MAX];

static void
must(int good, const char *call)
{
	if (good)
		return;
	perror(call);
	exit(1);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int
read_all(int fd, char *p)
{
	for (size_t got = 0; got < BYTES;) {
		ssize_t n = read(fd, p + got, BYTES - got);

		if (n <= 0)
			return 0;
		got += (size_t)n;
	}
	return 1;
}

static void
connect_pair(int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	socklen_t len = sizeof(at);

	must(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0, "bind");
	must(listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (struct sockaddr *)&at, &len) == 0, "getsockname");
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(fd[0], (struct sockaddr *)&at, sizeof(at)) == 0, "connect");
	fd[1] = accept(listener, NULL, NULL);
	must(fd[1] >= 0, "accept");
	close(listener);
	for (int i = 0; i < 2; i++)
		must(setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0,
		     "TCP_NODELAY");
}

static int
echo(int fd)
{
	char data[BYTES];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read_all(fd, data))
		if (write(fd, data, BYTES) != BYTES)
			return 1;
	return 0;
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t
measure(int fd, double seconds)
{
	uint64_t end = 0, begin, after;
	char data[BYTES] = {0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < WARM + TRIPS_MAX; i++) {
		begin = now_ns();
		must(write(fd, data, BYTES) == BYTES, "write");
		must(read_all(fd, data), "read");
		after = now_ns();
		if (i < WARM) {
			end = after + (uint64_t)(seconds * 1e9);
			continue;
		}
		half_ns[n++] = (uint32_t)((after - begin) / 2);
		if (after >= end)
			break;
	}
	return n;
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
	int fd[2], status = 0;
	uint32_t n;
	pid_t child;

	if (argc > 2 || !(seconds > 0 && seconds < 60)) {
		fprintf(stderr, "usage: tcp_pingpong [SECONDS]\n");
		return 2;
	}
	connect_pair(fd);
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		close(fd[0]);
		_exit(echo(fd[1]));
	}
	close(fd[1]);
	n = measure(fd[0], seconds);
	close(fd[0]);
	waitpid(child, &status, 0);
	qsort(half_ns, n, sizeof(half_ns[0]), compare);
	printf("{\"program\": \"tcp_pingpong\", \"trips\": %u, \"lat_us\": {\"min\": %.3f, "
	       "\"p50\": %.3f, "
	       "\"p99\": %.3f, \"p999\": %.3f}}\n",
	       n, half_ns[0] / 1e3, half_ns[n / 2] / 1e3, half_ns[(uint64_t)n * 99 / 100] / 1e3,
	       half_ns[(uint64_t)n * 999 / 1000] / 1e3);
	return status != 0;
}
