/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A daemon for tests: two HCAs back to back in this process, each with a control socket.
 *
 * ipcd SOCKET_A SOCKET_B [clients_max [clients_per_uid [memory_max_mb [privileged_uid]]]]
 *
 * 0 selects a default; with a privileged_uid (-1: none) every user may connect. Environment:
 *
 *  IPCD_PIPES             pipelines of each HCA
 *  IPCD_NO_ALARM          workers sleep without the alarm, so a lost wakeup is not repaired
 *  IPCD_LAYOUT            rtc, txrx or full
 *  IPCD_MEMIF             a socket: the HCAs are connected by memif ports
 *  IPCD_NO_SLOW_MEMORY    slow_memory = no
 *  IPCD_TRUST             trust_own = yes: tests are of the daemon's own user
 *  IPCD_SEGMENTS          segments that a client may attach
 *  IPCD_TURN_MS           clients of a user with losses take turns, at most this number of ms apart
 *
 * Prints "ready" when clients can connect. Each line on its standard input is a command and
 * answered by one line: "usage A|B" (objects in use, minus those without clients), "counters A|B"
 * (of the server), "device A|B" (of the HCA), "cleanups A|B" (number, longest and sum in ns),
 * "differs A|B" (how often the log would have a line about another release), "places A|B"
 * (addresses), "lose PID A|B" (that client's memory loses its pages), "quit". It also
 * exits at the end of its input.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "embed_impl.h"
#include "engine/impl.h"
#include "graph/sleep.h"
#include "host.h"
#include "ipc_memory_impl.h"
#include "ipc_server_impl.h"
#include "port/port_memif.h"

static struct softhca_embed *embed;
static struct ipc_server *server[2];
static struct hca_driver_usage base[2];

static void
usage(unsigned int i)
{
	const struct embed_hca *s = &embed->side[i];
	struct hca_driver_usage u;
	struct hca_usage h;

	hca_driver_usage(s->drv, &u);
	hca_usage(s->hca, &h);
	printf("clients=%u pds=%u mrs=%u cqs=%u qps=%u channels=%u mtts=%lu srqs=%u xrcds=%u "
	       "hca_qps=%d hca_cqs=%d hca_srqs=%d hca_mpts=%d records=%d full_records=%d "
	       "tx_mbufs=%d edge_objects=%d\n",
	       u.clients, u.pds, u.mrs - base[i].mrs, u.cqs, u.qps, u.channels,
	       (unsigned long)(u.mtts - base[i].mtts), u.srqs, u.xrcds, (int)(h.qps - s->base.qps),
	       (int)(h.cqs - s->base.cqs), (int)(h.srqs - s->base.srqs),
	       (int)(h.mpts - s->base.mpts), (int)h.records, (int)h.full_records, (int)h.tx_mbufs,
	       (int)h.edge_objects);
}

static void
counters(unsigned int i)
{
	for (unsigned int c = 0; c < ipc_server_counter_count(); c++)
		printf("%s=%lu ", ipc_server_counter_name(c),
		       (unsigned long)ipc_server_counter(server[i], c));
	printf("\n");
}

static void
device(unsigned int i)
{
	const struct hca *h = embed->side[i].hca;

	for (unsigned int c = 0; c < hca_counter_count(); c++)
		printf("%s=%lu ", hca_counter_name(c), (unsigned long)hca_counter_value(h, c));
	printf("\n");
}

static void
cleanups(unsigned int i)
{
	struct ipc_clean_ups c;

	ipc_server_clean_ups(server[i], &c);
	printf("count=%lu longest_ns=%lu sum_ns=%lu\n", (unsigned long)c.count,
	       (unsigned long)c.longest_ns, (unsigned long)c.sum_ns);
}

static unsigned int told;

static void
tell_differs(pid_t pid, uid_t uid, const char *words)
{
	__atomic_fetch_add(&told, 1, __ATOMIC_RELAXED);
}

/* Of both sides */
static void
differs(unsigned int i)
{
	printf("told=%u\n", __atomic_load_n(&told, __ATOMIC_RELAXED));
}

static void
places(unsigned int i)
{
	printf("bar2=%lu\n", (unsigned long)(uintptr_t)hca_bar2(embed->side[i].hca));
}

/*
 * An empty file: accessing a page of its mapping raises SIGBUS, as in a segment that lost its
 * pages.
 */
static int
empty_file(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("empty", MFD_CLOEXEC);
	return fd;
}

/*
 * Remove the pages of all segments of the client with this process id in one call, because the
 * session ends with the first access to a missing page, and its memory's description with it.
 */
static void
lose(unsigned int i, int pid)
{
	unsigned int segments = 0;

	pthread_mutex_lock(&server[i]->lock);
	for (struct ipc_session *s = server[i]->sessions; s != NULL; s = s->next) {
		const struct ipc_memory *m = s->memory;

		if (s->pid != pid || m == NULL)
			continue;
		segments = m->count;
		if (mmap((void *)(uintptr_t)m->base, m->bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, empty_file(), 0) == MAP_FAILED)
			segments = 0;
		break;
	}
	pthread_mutex_unlock(&server[i]->lock);
	printf("segments=%u\n", segments);
}

static const struct {
	const char *name;
	void (*run)(unsigned int i);
} commands[] = {
	{"usage", usage},	{"counters", counters}, {"device", device},
	{"cleanups", cleanups}, {"places", places},	{"differs", differs},
};

static void
serve(void)
{
	char line[64], word[32], which;
	int pid;

	while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "quit\n") != 0) {
		if (sscanf(line, "lose %d %c", &pid, &which) == 2) {
			lose(which == 'B', pid);
			continue;
		}
		if (sscanf(line, "%31s %c", word, &which) != 2)
			continue;
		for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
			if (strcmp(word, commands[i].name) == 0)
				commands[i].run(which == 'B');
	}
}

static enum softhca_layout
layout(void)
{
	const char *name = getenv("IPCD_LAYOUT");

	if (name == NULL || strcmp(name, "rtc") == 0)
		return SOFTHCA_LAYOUT_RTC;
	return strcmp(name, "full") == 0 ? SOFTHCA_LAYOUT_FULL : SOFTHCA_LAYOUT_TXRX;
}

static const char *const *
ports(void)
{
	static char device[2][128];
	static const char *const both[] = {device[0], device[1]};
	const char *socket = getenv("IPCD_MEMIF");

	for (unsigned int i = 0; i < 2 && socket != NULL; i++)
		snprintf(device[i], sizeof(device[i]),
			 "net_memif%u,role=%s,socket=%s,socket-abstract=no", i,
			 i == 0 ? "server" : "client", socket);
	return socket != NULL ? both : NULL;
}

static void
start(void)
{
	const char *pipes = getenv("IPCD_PIPES");
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.executor = SOFTHCA_EXECUTOR_THREADS;
	cfg.layout = layout();
	cfg.ports = ports();
	cfg.hugepages = 2;
	cfg.log_qps = 12;
	cfg.log_cqs = 12;
	if (pipes != NULL)
		cfg.pipelines = (uint32_t)atoi(pipes);
	cfg.memory_mb = 250 + 150 * cfg.pipelines;
	if (softhca_embed_create(&cfg, &embed) != 0) {
		fprintf(stderr, "ipcd: %s\n", softhca_embed_last_error());
		exit(1);
	}
	for (unsigned int i = 0; i < 2 && getenv("IPCD_NO_ALARM") != NULL; i++)
		hca_sleep_prepare(embed->side[i].hca, UINT64_MAX);
	/* a frame that is sent before is lost, and sent again after seconds */
	for (unsigned int i = 0; i < 2 && cfg.ports != NULL; i++)
		while (!hca_port_memif_connected(embed->side[i].wire, NULL))
			usleep(1000);
}

static int
access_foreign(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	struct ipc_server *s = __atomic_load_n((struct ipc_server **)arg, __ATOMIC_ACQUIRE);

	return s == NULL ? -EFAULT : ipc_server_access(s, domain, write, addr, bytes, len);
}

static void
listen_on(unsigned int i, const char *path, int argc, char **argv)
{
	static struct ipc_sleep sleep[2];
	struct embed_hca *side = &embed->side[i];
	const char *turn = getenv("IPCD_TURN_MS"), *segments = getenv("IPCD_SEGMENTS");
	struct ipc_server_config sc = {
		.segments_max = segments != NULL ? (uint32_t)atoi(segments) : 0,
		.turn_ms = turn != NULL ? (uint32_t)atoi(turn) : 0,
		.sleep = &sleep[i],
		.path = path,
		.name = i == 0 ? "test0" : "test1",
		.driver = embed->side[i].drv,
		.clients_max = argc > 3 ? (uint32_t)atoi(argv[3]) : 0,
		.clients_per_uid = argc > 4 ? (uint32_t)atoi(argv[4]) : 0,
		.slow_memory = getenv("IPCD_NO_SLOW_MEMORY") == NULL,
		.trust_own = getenv("IPCD_TRUST") != NULL,
		.memory_max = argc > 5 ? (uint64_t)atoi(argv[5]) << 20 : 0,
		.mode = argc > 6 ? 0666 : 0,
		.privileged = {argc > 6 ? (uid_t)atoi(argv[6]) : (uid_t)-1},
		.num_privileged = 1,
		.differs = tell_differs,
	};

	sleep[i] = (struct ipc_sleep){
		.page_fd = side->sleep_fd,
		.pipes = hca_pipelines(side->hca),
		.add = hca_host_kick_add,
		.remove = hca_host_kick_remove,
		.muted = hca_host_kick_muted,
		.arg = side->hca,
	};
	for (uint32_t n = 0; n < sleep[i].pipes; n++)
		sleep[i].offset[n] = hca_sleep_offset(side->hca, n);
	hca_driver_usage(embed->side[i].drv, &base[i]);
	/* As the daemon's composition does at creation: no client is there yet. */
	embed->side[i].hca->core->cfg.foreign_arg = &server[i];
	embed->side[i].hca->core->cfg.foreign = access_foreign;
	if (ipc_server_create(&sc, &server[i]) != 0) {
		fprintf(stderr, "ipcd: %s\n", ipc_server_reason());
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: ipcd SOCKET_A SOCKET_B [clients_max [clients_per_uid "
				"[memory_max_mb [privileged_uid]]]]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* a client may disconnect before it is notified */
	setvbuf(stdout, NULL, _IOLBF, 0);
	start();
	for (unsigned int i = 0; i < 2; i++)
		listen_on(i, argv[1 + i], argc, argv);
	printf("ready\n");
	serve();
	for (unsigned int i = 0; i < 2; i++)
		ipc_server_destroy(server[i]);
	softhca_embed_destroy(embed);
	return 0;
}
