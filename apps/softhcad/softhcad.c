/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * softhcad: runs an HCA on a port for the processes of this machine, as a configuration file says.
 */

#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "abi_release.h"
#include "endpoint.h"
#include "endpoint_check.h"
#include "endpoint_log.h"

#define DEFAULT_CONFIG "/etc/softhca/softhcad.conf"

static const char usage_text[] =
	"usage: softhcad [-c FILE] [--check] [--version] [--help]\n"
	"\n"
	"  -c, --config FILE  configuration (default: " DEFAULT_CONFIG ")\n"
	"      --check        check the configuration, also against this machine, and exit\n"
	"      --version      print the version and exit\n"
	"      --help         print this and exit\n"
	"\n"
	"Runs in the foreground until SIGTERM or SIGINT. Exit status: 0 after a clean end, 1 when it\n"
	"could not start, 2 for a bad configuration or command line.\n";

enum {
	EXIT_START = 1,
	EXIT_CONFIG = 2
};

struct options {
	const char *config;
	bool check, done;
};

static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static char name[] = "softhcad"; /* in front of the messages of getopt_long() */
	int c;

	argv[0] = name;
	while ((c = getopt_long(argc, argv, "c:h", table, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 'k':
			o->check = true;
			break;
		case 'v':
			puts("softhcad " HCA_RELEASE);
			o->done = true;
			return 0;
		case 'h':
			fputs(usage_text, stdout);
			o->done = true;
			return 0;
		default:
			fputs(usage_text, stderr);
			return EXIT_CONFIG;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "softhcad: unexpected argument \"%s\"\n", argv[optind]);
		return EXIT_CONFIG;
	}
	return 0;
}

/* All threads inherit the mask; endpoint_run() takes the signals. */
static void
block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Descriptors of the daemon must not become 0, 1 or 2, where error messages go. */
static bool
open_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int
run(const struct endpoint_config *config)
{
	struct endpoint *e;
	int err;

	block_signals();
	if (endpoint_create(config, &e) != 0) {
		LOG_ERROR("%s: %s", config->name, endpoint_reason());
		return EXIT_START;
	}
	err = endpoint_run(e);
	endpoint_destroy(e);
	return err == 0 ? 0 : EXIT_START;
}

int
main(int argc, char **argv)
{
	struct options o = {.config = DEFAULT_CONFIG};
	static struct endpoint_config config;
	struct endpoint_cpus cpus;
	int rc = parse(argc, argv, &o);

	if (rc != 0 || o.done)
		return rc;
	if (!open_standard_files())
		return EXIT_START;
	if (endpoint_config_load(&config, o.config, stderr) != 0)
		return EXIT_CONFIG;
	endpoint_cpus_read(&cpus, "", "self");
	endpoint_settle_pipelines(&config, &cpus);
	/* A missing resource may appear later: systemd retries the start. */
	if (endpoint_check(&config, o.config, !o.check, stderr) != 0)
		return o.check ? EXIT_CONFIG : EXIT_START;
	if (o.check) {
		printf("%s: good\n", o.config);
		return 0;
	}
	return run(&config);
}
