/* SPDX-License-Identifier: BSD-3-Clause */

#include "perf_letters.h"

#include <stddef.h>
#include <string.h>

/* An option of perftest. ours: the option of the same meaning; else why names a replacement. */
static const struct letter {
	char letter; /* 0: it has a name only */
	const char *theirs, *ours, *why;
} letters[] = {
	{'a', "all", "all-sizes", NULL},
	{'b', "bidirectional", "bidir", NULL},
	{'c', "connection", "service", NULL},
	{'d', "ib-dev", "device", NULL},
	{'D', "duration", "duration", NULL},
	{'e', "events", "events", NULL},
	{'h', "help", "help", NULL},
	{'I', "inline_size", "inline", NULL},
	{'l', "post_list", "post-list", NULL},
	{'m', "mtu", "mtu", NULL},
	{'n', "iters", "iters", NULL},
	{'p', "port", "port", NULL},
	{'q', "qp", "qps", NULL},
	{'Q', "cq-mod", "signal-every", NULL},
	{'s', "size", "size", NULL},
	{'t', "tx-depth", "depth", NULL},
	{'u', "qp-timeout", "ack-timeout", NULL},
	{'V', "version", "version", NULL},
	{'x', "gid-index", "gid-index", NULL},
	{'z', "com_rdma_cm", "cm", NULL},
	{'A', "atomic_type", NULL, "--op atomic-fa or --op atomic-cas says which"},
	{'C', "report-cycles", NULL, "times are in microseconds; leave it out"},
	{'F', "CPU-freq", NULL, "nothing is said of the CPU's frequency; leave it out"},
	{'f', "margin", NULL, "all of --duration is measured; leave it out"},
	{'g', "mcg", NULL, "multicast is not measured"},
	{'H', "report-histogram", NULL, "--histogram FILE writes the distribution of latencies"},
	{'i', "ib-port", NULL, "an HCA has one port; leave it out"},
	{'L', "hop_limit", NULL, "the hop limit cannot be chosen"},
	{'M', "MGID", NULL, "multicast is not measured"},
	{'N', "noPeak", NULL, "the peak costs nothing; leave it out"},
	{'o', "outs", NULL, "--depth says how many requests are under way, reads and atomics too"},
	{'O', "dualport", NULL, "an HCA has one port"},
	{'r', "rx-depth", NULL, "there are as many receives as --depth says"},
	{'R', "rdma_cm", NULL,
	 "--cm (-z) connects both ends by address, and agrees on the QPs there"},
	{'S', "sl", NULL, "the service level cannot be chosen"},
	{'T', "tos", NULL, "the traffic class cannot be chosen"},
	{'U', "report-unsorted", NULL, "--histogram FILE writes the distribution of latencies"},
	{'w', "limit_bw", NULL, "--json FILE writes the figures, to be judged there"},
	{'W', "report-counters", NULL, "--list-counters prints every counter that has moved"},
	{'X', "vector", NULL, "completion vectors cannot be chosen"},
	{'y', "limit_msgrate", NULL, "--json FILE writes the figures, to be judged there"},
	{0, "cpu_util", NULL, "a row is followed by a line when CPUs are short; leave it out"},
	{0, "ipv6", NULL, "it is --ip 6 here"},
	{0, "out_json", NULL, "it is --json FILE here"},
	{0, "out_json_file", NULL, "it is --json FILE here"},
	{0, "report_gbits", NULL, "figures are in Gb/s; leave it out"},
	{0, "run_infinitely", NULL, "--duration and --report-every are there for long runs"},
	{0, "tclass", NULL, "the traffic class cannot be chosen"},
	{0, "use-srq", NULL, "it is --srq here"},
	{0, "use_hugepages", NULL, "it is --huge here"},
};
#define LETTERS (sizeof(letters) / sizeof(letters[0]))

static const struct letter *
find_letter(char letter)
{
	for (size_t i = 0; i < LETTERS; i++)
		if (letters[i].letter == letter && letter != 0)
			return &letters[i];
	return NULL;
}

char
perf_letter_of(const char *name)
{
	for (size_t i = 0; i < LETTERS; i++)
		if (letters[i].ours != NULL && strcmp(letters[i].ours, name) == 0)
			return letters[i].letter;
	return 0;
}

const char *
perf_name_of(char letter)
{
	const struct letter *l = find_letter(letter);

	return l != NULL ? l->ours : NULL;
}

const char *
perf_letter_refused(char letter)
{
	const struct letter *l = find_letter(letter);

	return l != NULL ? l->why : NULL;
}

const char *
perf_long_refused(const char *name)
{
	static char text[64];

	for (size_t i = 0; i < LETTERS; i++) {
		if (strcmp(letters[i].theirs, name) != 0)
			continue;
		if (letters[i].why != NULL)
			return letters[i].why;
		strcpy(text, "it is --");
		strncat(text, letters[i].ours, 32);
		strcat(text, " here");
		return text;
	}
	return NULL;
}
