/* SPDX-License-Identifier: BSD-3-Clause */

/* softhca-ctl: inspects running HCAs and changes their settings. A table of commands. */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi_release.h"
#include "ctl.h"

enum {
	OPT_PREFIX = 1,
	OPT_HCA,
	OPT_JSON,
	OPT_HELP
};

static const struct command {
	const char *name, *arguments, *help;
	ctl_run_fn run; /* NULL: a view */
} commands[] = {
	{"status", "", "port, layout, resources in use", NULL},
	{"qps", "", "QPs: state, peer, PSNs, counters", NULL},
	{"jettys", "", "Jettys of UB: state, requests under way, answers", NULL},
	{"tps", "", "transport channels of UB: state, peer, PSNs, what was sent again", NULL},
	{"mrs", "", "memory regions and windows", NULL},
	{"gids", "", "addresses", NULL},
	{"clients", "", "attached processes", NULL},
	{"cm", "", "connections and listeners of connection management, by address and port", NULL},
	{"stages", "", "stages of the engine and their waiting work", NULL},
	{"usage", "", "objects, records and buffers in use", NULL},
	{"counters", "[--nonzero] [--watch] [--interval S] [--count N]", "all counters",
	 ctl_run_counters},
	{"metrics", "[--listen ADDRESS:PORT]",
	 "all counters as OpenMetrics text; or serve it to Prometheus", ctl_run_metrics},
	{"top", "[--interval S] [--once] [--qps N]", "rates, stages and the busiest QPs, live",
	 ctl_run_top},
	{"capture",
	 "FILE [--seconds S] [--dir in|out|both] [--qp QPN] [--tp TPN] [--snaplen BYTES]",
	 "write the frames that a daemon sends and receives as pcapng", ctl_run_capture},
	{"ping", "HOST|GID [--size N] [--count N] [--interval S]",
	 "ask the daemon of a peer: round trips, path MTU, CE marks", ctl_run_ping},
	{"set", "[congestion=NAME] [swift_base_delay_us=N] [cnp_interval_us=N] [cnp_dscp=N]",
	 "change a setting of a daemon while its clients run; or print the present ones",
	 ctl_run_set},
	{"impair",
	 "[--show | off | --check FAULTS | FAULTS\n"
	 "        | --drop [P] --dup [P] --reorder [P] --corrupt [P] --truncate [P]\n"
	 "         --ecn [P] --corrupt_payload --corrupt_header --corrupt_icrc --delay US --jitter US]\n"
	 "        [--opcode NAME] [--nth N] [--count N] [--psn N[=FAULT]] [--arg N]\n"
	 "        [--dir in|out|both] [--qp QPN] [--tp TPN]\n"
	 "        [--port-down MS] [--gid-change] [--after MS]",
	 "inject faults into frames of a daemon, by chance (P, 0 to 1) or those named; FAULTS as in\n"
	 "        softhca-run --impair: drop,opcode=read-response,nth=3",
	 ctl_run_impair},
	{"devices", "[--tree DIR [--follow LOCK]]",
	 "what programs find, and whether they can open it; as files like those of /sys/class",
	 ctl_run_devices},
	{"doctor", "[--config FILE] [--device PCI] [--root DIR]",
	 "find what keeps softhcad from running here, and print commands that fix it",
	 ctl_run_doctor},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

void
ctl_error(const char *format, ...)
{
	va_list ap;

	fputs("softhca-ctl: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void
usage(void)
{
	printf("usage: softhca-ctl COMMAND [OPTION]...\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %s%s%s\n        %s\n", commands[i].name,
		       commands[i].arguments[0] != '\0' ? " " : "", commands[i].arguments,
		       commands[i].help);
	printf("\noptions of every command:\n"
	       "  --prefix P  the process with that DPDK file prefix: the name of a daemon's HCA\n"
	       "  --hca NAME  the HCA of that name in the process\n"
	       "  --json      print JSON, for programs\n"
	       "  --help      print this text\n"
	       "  --version   print the version\n"
	       "\nExit status: 0 success, 1 failure, 2 an invalid command line.\n");
}

int
ctl_number(const char *option, const char *text, double min, double max, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (errno == 0 && end != text && *end == '\0' && *out >= min && *out <= max)
		return 0;
	ctl_error("--%s: expected a number from %g to %g, found \"%s\"", option, min, max, text);
	return -1;
}

int
ctl_direction(const char *text)
{
	if (strcmp(text, "in") == 0 || strcmp(text, "out") == 0 || strcmp(text, "both") == 0)
		return 0;
	ctl_error("--dir: expected in, out or both, found \"%s\"", text);
	return -1;
}

double
ctl_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void
ctl_wait(double s)
{
	struct timespec ts = {.tv_sec = (time_t)s,
			      .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};

	nanosleep(&ts, NULL);
}

static volatile sig_atomic_t stopped;

static void
on_signal(int number)
{
	(void)number;
	stopped = 1;
}

void
ctl_catch_signals(void)
{
	const struct sigaction a = {.sa_handler = on_signal};

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
}

bool
ctl_stopped(void)
{
	return stopped != 0;
}

#define OPTIONS_MAX 40u

int
ctl_options(struct ctl *c, int argc, char **argv, const struct option *own,
	    int (*take)(void *arg, int code, const char *value), void *arg)
{
	struct option all[OPTIONS_MAX] = {
		{"prefix", required_argument, NULL, OPT_PREFIX},
		{"hca", required_argument, NULL, OPT_HCA},
		{"json", no_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, OPT_HELP},
	};
	int code, index;

	for (size_t i = 0; own != NULL && own[i].name != NULL && i + 5 < OPTIONS_MAX; i++)
		all[4 + i] = own[i];
	while ((code = getopt_long(argc, argv, "", all, &index)) != -1) {
		/* a number may stand in a word of its own, as after other options */
		if (code >= 256 && all[index].has_arg == optional_argument && optarg == NULL &&
		    optind < argc && strchr("0123456789.", argv[optind][0]) != NULL &&
		    argv[optind][0] != '\0')
			optarg = argv[optind++];
		if (code == OPT_PREFIX)
			c->prefix = optarg;
		else if (code == OPT_HCA)
			c->hca = optarg;
		else if (code == OPT_JSON)
			c->json = true;
		else if (code == OPT_HELP) {
			usage();
			exit(0);
		} else if (code == '?' || take(arg, code, optarg) != 0)
			return CTL_EXIT_USAGE;
	}
	c->words = (const char *const *)argv + optind;
	c->num_words = argc - optind;
	if (own == NULL && c->num_words != 0) {
		ctl_error("unexpected argument \"%s\"", c->words[0]);
		return CTL_EXIT_USAGE;
	}
	return 0;
}

static int
run(const struct command *command, int argc, char **argv)
{
	static char name[] = "softhca-ctl"; /* in front of the messages of getopt_long() */
	struct ctl c = {0};

	argv[0] = name;
	if (command->run != NULL)
		return command->run(&c, argc, argv);
	for (unsigned int i = 0; i < ctl_views_count; i++)
		if (strcmp(ctl_views[i].name, command->name) == 0)
			return ctl_run_view(&c, &ctl_views[i], argc, argv);
	return CTL_EXIT_FAILED;
}

int
main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
		puts("softhca-ctl " HCA_RELEASE);
		return 0;
	}
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		usage();
		return argc < 2 ? CTL_EXIT_USAGE : 0;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return run(&commands[i], argc - 1, argv + 1);
	ctl_error("there is no command \"%s\"; see --help", argv[1]);
	return CTL_EXIT_USAGE;
}
