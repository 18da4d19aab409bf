/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * interop-host: leads the interoperation tests with the virtual machine. tests/interop/rxe starts
 * it before the machine: it prints "ready" when the vhost-user socket and the control socket exist,
 * waits for the guest's greeting, runs the tests and sends "bye".
 *
 * With --clock it only prints the frequency of the cycle counter in kHz, for scripts that start the
 * machine with another HCA.
 *
 * Exit status: 0 all passed, 1 some failed, 2 usage, 3 the tests could not be run, 4 the guest's
 * clock is wrong, so that its timeouts prove nothing.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host.h"

#define VLAN 77
#define BOOT_MS 120000
#define STALL_US 2000000 /* an emulated machine may accept no frames for long */

static int
listen_control(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return -1;
	strcpy(a.sun_path, path);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 1) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The machine connects when it is created and sends its greeting when it has booted. */
int
host_wait_guest(struct host *h)
{
	struct pollfd p = {.fd = h->listener, .events = POLLIN};
	char word[PERF_EXCHANGE_WORD] = "";
	struct perf_exchange x;
	uint64_t asked;
	int err;

	if (h->line.fd >= 0)
		close(h->line.fd);
	h->line = (struct ep_line){.fd = -1};
	if (poll(&p, 1, BOOT_MS) != 1)
		return -ETIMEDOUT;
	h->line.fd = accept4(h->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (h->line.fd < 0)
		return -errno;
	h->lost = false;
	asked = ep_now();
	err = host_wait_line(h, BOOT_MS, word, &x);
	if (err == 0 && (strcmp(word, "hello") != 0 || x.version != PERF_EXCHANGE_VERSION))
		err = -EPROTO;
	if (err == 0)
		host_clock_begin(&h->clock, asked, ep_now(), x.clock);
	return err;
}

static int
open_hca(struct host *h, const struct host_options *o)
{
	const char *const ports[] = {o->device};
	struct softhca_embed_config c;

	softhca_embed_config_init(&c);
	c.num_hcas = 1;
	c.ports = ports;
	c.seed = o->seed;
	c.layout = o->layout;
	c.vlan = VLAN;
	c.stall.discard_after_us = STALL_US;
	if (o->layout != SOFTHCA_LAYOUT_RTC)
		c.executor = SOFTHCA_EXECUTOR_THREADS;
	c.memory_mb = 256;
	c.log_qps = 10;
	c.log_cqs = 10;
	c.log_mpts = 12;
	if (softhca_embed_create(&c, &h->embed) != 0 ||
	    softhca_embed_open(h->embed, 0, &h->ctx) != 0 ||
	    softhca_embed_capture(h->embed, o->pcap) != 0) {
		fprintf(stderr, "interop-host: %s\n", softhca_embed_last_error());
		return -EIO;
	}
	return 0;
}

static void
close_hca(struct host *h)
{
	softhca_embed_capture(h->embed, NULL);
	softhca_close(h->ctx);
	softhca_embed_destroy(h->embed);
}

static int
run(struct host *h, const struct host_options *o)
{
	const struct perf_exchange none = {0};
	char clock[128];
	int err, failed;

	h->listener = listen_control(o->control);
	if (h->listener < 0) {
		fprintf(stderr, "interop-host: cannot listen on %s: %s\n", o->control,
			strerror(errno));
		return 3;
	}
	if (open_hca(h, o) != 0)
		return 3;
	printf("tsc %u\nready\n", (unsigned int)host_tsc_khz());
	fflush(stdout);
	err = host_wait_guest(h);
	if (err != 0) {
		fprintf(stderr, "interop-host: the guest does not answer: %s\n", strerror(-err));
		return 3;
	}
	failed = host_matrix(h, o);
	if (failed >= 0 && o->kill)
		failed += host_kill(h, o) != 0;
	ep_line_send(&h->line, "bye", &none);
	close_hca(h);
	if (host_clock_is_wrong(&h->clock, clock, sizeof(clock))) {
		printf("no result: %s\n", clock);
		return 4;
	}
	return failed < 0 ? 3 : failed != 0;
}

static int
usage(void)
{
	fprintf(stderr, "usage: interop-host --control SOCKET --device DPDK-DEVICE [--quick] "
			"[--random N] [--layout rtc|txrx|full] [--filter TEXT] [--pcap FILE] "
			"[--seed N] [--kill] [--list] [--verbose]\n"
			"       interop-host --clock\n");
	return 2;
}

static bool
parse_layout(const char *name, uint32_t *layout)
{
	static const char *const names[] = {"rtc", "txrx", "full"};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*layout = i;
		return true;
	}
	return false;
}

static const struct option options[] = {
	{"control", 1, NULL, 'c'},
	{"device", 1, NULL, 'd'},
	{"pcap", 1, NULL, 'p'},
	{"filter", 1, NULL, 'f'},
	{"seed", 1, NULL, 's'},
	{"quick", 0, NULL, 'q'},
	{"random", 1, NULL, 'r'},
	{"layout", 1, NULL, 'y'},
	{"list", 0, NULL, 'l'},
	{"verbose", 0, NULL, 'v'},
	{"kill", 0, NULL, 'k'},
	{"clock", 0, NULL, 't'},
	{0},
};

static bool
take_option(struct host_options *o, int c, const char *value)
{
	switch (c) {
	case 'c':
		o->control = value;
		return true;
	case 'd':
		o->device = value;
		return true;
	case 'p':
		o->pcap = value;
		return true;
	case 'f':
		o->filter = value;
		return true;
	case 's':
		o->seed = strtoull(value, NULL, 0);
		return true;
	case 'r':
		o->random = (unsigned int)strtoul(value, NULL, 0);
		return true;
	case 'y':
		return parse_layout(value, &o->layout);
	case 'q':
		o->quick = true;
		return true;
	case 'k':
		o->kill = true;
		return true;
	case 'l':
		o->list = true;
		return true;
	case 't':
		o->clock = true;
		return true;
	case 'v':
		o->verbose = true;
		return true;
	default:
		return false;
	}
}

int
main(int argc, char **argv)
{
	static struct host h = {.line = {.fd = -1}};
	struct host_options o = {.seed = 1};
	int c;

	signal(SIGPIPE, SIG_IGN); /* the guest may be gone when something is sent to it */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(&o, c, optarg))
			return usage();
	if (o.list)
		return host_matrix(NULL, &o) < 0;
	if (o.clock)
		return printf("%u\n", (unsigned int)host_tsc_khz()) < 0;
	if (o.control == NULL || o.device == NULL)
		return usage();
	return run(&h, &o);
}
