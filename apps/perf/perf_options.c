/* SPDX-License-Identifier: BSD-3-Clause */

/* The command line. Every value is checked here; checks against the device are in perf_setup.c. */

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi_release.h"
#include "perf.h"
#include "perf_letters.h"
#include "perf_options.h"
#include "remote.h"

#define MAX_SIZE (1ull << 31)
#define REAL_MAX 86400.0 /* s */

const char *const perf_op_names[PERF_OP_COUNT] = {
#define X(name, id, wr) [PERF_OP_##id] = name,
	PERF_OP_LIST(X)
#undef X
};
const uint32_t perf_op_codes[PERF_OP_COUNT] = {
#define X(name, id, wr) [PERF_OP_##id] = wr,
	PERF_OP_LIST(X)
#undef X
};
const char *const perf_service_names[PERF_SERVICE_COUNT] = {
#define X(name, id, type) [PERF_SERVICE_##id] = name,
	PERF_SERVICE_LIST(X)
#undef X
};
const uint32_t perf_service_types[PERF_SERVICE_COUNT] = {
#define X(name, id, type) [PERF_SERVICE_##id] = type,
	PERF_SERVICE_LIST(X)
#undef X
};
const char *const perf_layout_names[3] = {
	[SOFTHCA_LAYOUT_RTC] = "rtc",
	[SOFTHCA_LAYOUT_TXRX] = "txrx",
	[SOFTHCA_LAYOUT_FULL] = "full",
};
const char *const perf_executor_names[2] = {
	[SOFTHCA_EXECUTOR_MANUAL] = "manual",
	[SOFTHCA_EXECUTOR_THREADS] = "threads",
};
static const char *const test_names[] = {[PERF_TEST_BW] = "bw", [PERF_TEST_LAT] = "lat"};
const char *const perf_wire_names[2] = {
#define X(name, id) [PERF_WIRE_##id] = name,
	PERF_WIRE_LIST(X)
#undef X
};
const char *const perf_congestion_names[] = {
#define X(name, number, text) [number] = (text),
	SOFTHCA_CONGESTION_LIST(X)
#undef X
};
/* enum softhca_ub_rule */
static const char *const rule_names[] = {"default", "nak", "none", "high", "mark", "time"};
static const char *const idle_names[] = {
	[SOFTHCA_IDLE_AUTO] = "auto",
	[SOFTHCA_IDLE_SPIN] = "spin",
};

const char *
perf_test_name(enum perf_test test)
{
	return test_names[test];
}

/* Use of the argument of an option */
struct option_row {
	const char *name, *arg, *help;
	enum {
		KIND_FLAG, /* bool */
		KIND_SET,  /* uint32_t: min */
		KIND_U32,  /* min..max */
		KIND_U64,
		KIND_REAL, /* real_min..REAL_MAX */
		KIND_TEXT,
		KIND_NAME, /* uint32_t: index in names, of which there are max */
		KIND_CALL, /* 0, 1 = done, -EINVAL */
	} kind;
	size_t at; /* offset of the member of perf_options */
	uint64_t min, max;
	double real_min;
	const char *const *names;
	int (*call)(char *text, struct perf_options *opt);
};

static int parse_impairment(char *text, struct perf_options *opt);
static int parse_fabric(char *text, struct perf_options *opt);
static int parse_link_down(char *text, struct perf_options *opt);
static int print_version(char *text, struct perf_options *opt);
static int print_usage(char *text, struct perf_options *opt);

#define AT(member) .at = offsetof(struct perf_options, member)
#define FLAG(member) .kind = KIND_FLAG, AT(member)
#define SET(member, number) .kind = KIND_SET, AT(member), .min = (number)
#define U32(member, low, high) .kind = KIND_U32, AT(member), .min = (low), .max = (high)
#define U64(member, low, high) .kind = KIND_U64, AT(member), .min = (low), .max = (high)
#define REAL(member, low) .kind = KIND_REAL, AT(member), .real_min = (low)
#define TEXT(member) .kind = KIND_TEXT, AT(member)
#define NAME(member, list) \
	.kind = KIND_NAME, AT(member), .names = (list), .max = sizeof(list) / sizeof((list)[0])
#define CALL(fn) .kind = KIND_CALL, .call = (fn)

static const struct option_row rows[] = {
	{"op", "OP",
	 "write, read, send, atomic-fa, atomic-cas; roce also atomic-write, flush; ub also swap, "
	 "notify [write; ud: send]",
	 NAME(op, perf_op_names)},
	{"wire", "W", "roce or ub [roce]", NAME(wire, perf_wire_names)},
	{"service", "S", "rc, uc, ud or xrc [rc]", NAME(service, perf_service_names)},
	{"srq", NULL, "receives from one shared queue per side (rc, ud; xrc always; ub: a JFR)",
	 FLAG(srq)},
	{"ip", "V", "4 or 6 [4]", U32(ip, 4, 6)},
	{"vlan", "ID", "send on this VLAN, 1..4094", U32(embed.vlan, 1, 4094)},
	{"events", NULL, "wait for completion events instead of polling", FLAG(events)},
	{"memory-poll", NULL,
	 "watch the memory, calling nothing, as ib_write_lat does (write, lat)", FLAG(memory_poll)},
	{"test", "TEST", "bw: many outstanding; lat: one at a time, ping-pong [bw]",
	 NAME(test, test_names)},
	{"size", "BYTES", "message size, suffix K or M allowed [64K; atomics, atomic-write: 8]",
	 U64(size, 1, MAX_SIZE)},
	{"all-sizes", NULL, "a row for every power of two from 2 B to 8 MiB", FLAG(all_sizes)},
	{"qps", "N", "connected pairs of QPs [1]", U32(qps, 1, 16380)},
	{"jettys", "N", "ub: pairs of Jettys [1]", U32(jettys, 1, 16380)},
	{"tps", "N", "ub: channels that all Jettys share [4]", U32(embed.ub_tps, 1, 16)},
	{"window", "N", "ub: packets under way in a channel, 128..2048, 2^k [1024]",
	 U32(embed.ub_window, 128, 2048)},
	{"rule", "RULE", "ub: nak, none, high, mark or time: what is sent again when [time]",
	 NAME(embed.ub_rule, rule_names)},
	{"spray", "N", "ub: source ports of a channel, 2^k, up to 256 [1]",
	 U32(embed.ub_spray, 1, 256)},
	{"reorder-us", "US", "ub: what is late by less is not lost [0; with --spray 25]",
	 U32(embed.ub_reorder_us, 0, 1000000)},
	{"segment", "BYTES", "ub: where requests are cut, 4K..64K [64K]",
	 U32(embed.ub_segment, 4096, 65536)},
	{"depth", "N", "messages outstanding per QP or Jetty [128; lat: 1]", U32(depth, 1, 32768)},
	{"mtu", "BYTES", "256, 512, 1024, 2048 or 4096 [4096]", U32(mtu, 256, 4096)},
	{"post-list", "N", "requests per doorbell [32]", U32(post_list, 1, 32768)},
	{"signal-every", "N", "a completion every N requests [1]", U32(signal_every, 1, 32768)},
	{"inline", "N", "messages up to N bytes in the WQE (write, send, atomic-write, flush) [0]",
	 U32(inline_max, 0, 1024)},
	{"duration", "S", "seconds per size, 0.5 is fine [1; fabric: 0.1 simulated]",
	 REAL(duration, 0.001)},
	{"iters", "N", "messages per size instead (bw: whole post lists; -n: of each QP)",
	 U64(iters, 1, 1ull << 48)},
	{"stride", "BYTES", "distance of slots in memory [4096 or the size, 2^k]",
	 U64(stride, 1, MAX_SIZE)},
	{"slots", "N", "slots per QP [depth, at most 32 MiB in all]", U32(slots, 1, 1u << 20)},
	{"layout", "L", "rtc, txrx or full: stages per lcore [rtc]",
	 NAME(embed.layout, perf_layout_names)},
	{"pipelines", "N", "pipelines of each HCA: 1, 2, 4, 8 or 16 [1]",
	 U32(embed.pipelines, 1, 16)},
	{"executor", "E", "manual (this thread) or threads [rtc: manual]",
	 NAME(embed.executor, perf_executor_names)},
	{"idle", "I", "auto or spin: threads without work [auto]", NAME(embed.idle, idle_names)},
	{"verify", NULL, "check every byte and completion in a pass of its own", FLAG(verify)},
	{"congestion", "NAME",
	 "none, dcqcn or swift: congestion control of both HCAs, or of this end's QPs (rc, xrc) "
	 "[none; that of the daemon]",
	 NAME(congestion, perf_congestion_names)},
	{"seed", "N", "of data, link and engine [of the system]", U64(seed, 0, UINT64_MAX)},
	{"report-every", "S", "a line about the pass that runs every S seconds (bw)",
	 REAL(report_every, 0.01)},
	{"json", "FILE", "write all results and the host to FILE", TEXT(json)},
	{"histogram", "FILE", "write the distribution of latencies as HdrHistogram does (lat)",
	 TEXT(histogram)},
	{"plot", "FILE", "draw the results: FILE ends with .svg, .png or .pdf", TEXT(plot)},
	{"pcap", "FILE", "write every frame that is sent to FILE, lost ones too", TEXT(pcap)},
	{"list-counters", NULL, "print the counters each row has moved", FLAG(list_counters)},
	{"telemetry", NULL, "answer dpdk-telemetry.py -f softhca while running",
	 SET(embed.telemetry, 1)},
	{"impair", "FAULTS",
	 "drop=P,dup=P,reorder=P,corrupt=P,truncate=P,ecn=P,delay=US,jitter=US; or of named "
	 "frames: "
	 "drop,opcode=read-response,nth=3",
	 CALL(parse_impairment)},
	{"pause-before-traffic", NULL,
	 "print the QPs and wait for a line (of faults: they are added) or SIGUSR1", FLAG(pause)},
	{"fixed-addresses", NULL,
	 "memory at the same addresses in each run, as they are in captures",
	 FLAG(fixed_addresses)},
	{"fabric", "LIST",
	 "rate=GBPS,delay=US,paths=N,skew=US,loss=P,loss0=P,queue=B,ecn=B: a network in between; "
	 "simulated time",
	 CALL(parse_fabric)},
	{"flows", "FILE",
	 "the flows of a file at once (start, size, rate, DSCP, ECN, peer), a JSON line for each",
	 TEXT(flows)},
	{"load", "GBPS",
	 "fabric, lat: messages are due at this rate; the latency is from then to completion",
	 REAL(load, 0.001)},
	{"ack-timeout", "T",
	 "4.096 us * 2^T [14; ub, of a request: 20; daemons 16; threads 17; manual, impaired 11; "
	 "fabric: 8 round trips; link-down: more]",
	 U32(ack_timeout, 1, 31)},
	{"edges", "N", "entries per edge between stages", U32(embed.edge_size, 2, 1u << 20)},
	{"mbufs", "N", "mbufs per pool", U32(embed.mbufs, 1, 1u << 24)},
	{"records", "N", "request records per HCA", U32(embed.records, 1, 1u << 24)},
	{"port-burst", "N", "the port takes 0..N frames per burst, at random",
	 U32(embed.stall.tx_burst_max, 1, 1u << 20)},
	{"link-down", "AFTER:FOR", "ms: link down after the first frame, for so long",
	 CALL(parse_link_down)},
	{"stall-discard", "US", "discard when the port takes nothing for so long [1000000]",
	 U32(embed.stall.discard_after_us, 1, 100000000)},
	{"huge", NULL, "fail without hugepages [use them if there are enough]",
	 SET(embed.hugepages, 1)},
	{"no-huge", NULL, "no hugepages, runs as any user", SET(embed.hugepages, 2)},
	{"server", NULL, "serve clients on TCP port PORT, the word after the options [18515]",
	 FLAG(remote.server)},
	{"client", "HOST", "run the test with the server at HOST[:PORT]", TEXT(remote.client)},
	{"device", "NAME", "of a daemon: name or path of its socket [the first]",
	 TEXT(remote.device)},
	{"port", "PORT", "TCP port, where --server and --client name none [18515]",
	 U32(remote.port, 1, 65535)},
	{"cm", NULL, "meet at an address of the device, by RDMA's connections, not over TCP",
	 FLAG(remote.cm)},
	{"gids", NULL, "print the GID table of the device", FLAG(remote.gids)},
	{"gid-index", "N", "own GID [of a pair that can reach each other]",
	 U32(remote.gid_index, 0, 255)},
	{"bidir", NULL, "both ends make requests at a time (bw)", FLAG(remote.bidir)},
	{"once", NULL, "server: end after one client", FLAG(remote.once)},
	{"timeout", "S",
	 "seconds the other end may be silent, or not be there yet (10 at most) [20]",
	 U32(remote.timeout, 1, 86400)},
	{"version", NULL, "print the version", CALL(print_version)},
	{"help", NULL, "this text", CALL(print_usage)},
};

#define NUM_ROWS (sizeof(rows) / sizeof(rows[0]))
#define OPT_BASE 256 /* val of the first row for getopt_long() */

_Static_assert(NUM_ROWS <= PERF_OPTIONS_MAX, "entries of perf_options.given");

/* Index of the row of a name of len bytes, or NUM_ROWS. */
static unsigned int
find_row(const char *name, size_t len)
{
	unsigned int i = 0;

	while (i < NUM_ROWS && (strncmp(rows[i].name, name, len) != 0 || rows[i].name[len] != '\0'))
		i++;
	return i;
}

bool
perf_option_given(const struct perf_options *opt, const char *name)
{
	return opt->given[find_row(name, strlen(name))] != 0;
}

static int
print_version(char *text, struct perf_options *opt)
{
	puts("softhca-perf " HCA_RELEASE);
	return 1;
}

static int
print_usage(char *text, struct perf_options *opt)
{
	printf("usage: softhca-perf [OPTION]...\n"
	       "       softhca-perf [--device NAME] --server [PORT] [OPTION]...\n"
	       "       softhca-perf [--device NAME] --client HOST[:PORT] [OPTION]...\n"
	       "Bandwidth, message rate and latency of two HCAs: back to back in this process, or "
	       "with\nthe daemons of two hosts.\n\n");
	for (unsigned int i = 0; i < NUM_ROWS; i++) {
		const char *arg = rows[i].arg;
		char letter = perf_letter_of(rows[i].name);

		printf("  %c%c%c --%s%s%-*s %s\n", letter != '\0' ? '-' : ' ',
		       letter != '\0' ? letter : ' ', letter != '\0' ? ',' : ' ', rows[i].name,
		       arg != NULL ? " " : "", 24 - (int)strlen(rows[i].name) - (arg != NULL),
		       arg != NULL ? arg : "", rows[i].help);
	}
	printf("\nbw:  Gb/s and messages per second; peak is the best 10 ms.\n"
	       "lat: us; write and send: half a round trip; others: post to completion.\n"
	       "flush: a message is a WRITE and the FLUSH of its bytes, which completes.\n"
	       "Exit status: 0 success, 1 a run failed or data was wrong, 2 an invalid option, "
	       "130 interrupted.\n");
	return 1;
}

/* For the build, which makes the manual page and completions: tabs between name, letter, ... */
static int
print_list(void)
{
	for (unsigned int i = 0; i < NUM_ROWS; i++) {
		const struct option_row *row = &rows[i];
		char letter = perf_letter_of(row->name);

		printf("%s\t%.1s\t%s\t", row->name, &letter, row->arg != NULL ? row->arg : "");
		for (uint64_t k = 0; row->kind == KIND_NAME && k < row->max; k++)
			printf("%s%s", k == 0 ? "" : " ", row->names[k]);
		printf("\t%s\n", row->help);
	}
	return 1;
}

static char reason[256]; /* of the last complaint */
static bool quiet;
static char spelled[NUM_ROWS]; /* the letter each option was given by, or 0 */

/* Names in the text become the letters that the user has written. */
static void
spell_as_given(char *text)
{
	for (unsigned int i = 0; i < NUM_ROWS; i++) {
		size_t len = strlen(rows[i].name) + 2;
		char name[32];

		snprintf(name, sizeof(name), "--%s", rows[i].name);
		for (char *at = text; spelled[i] != 0 && (at = strstr(at, name)) != NULL; at++) {
			if (isalnum((unsigned char)at[len]) || at[len] == '-')
				continue;
			at[1] = spelled[i];
			memmove(at + 2, at + len, strlen(at + len) + 1);
		}
	}
}

int
perf_options_bad(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (!quiet) {
		spell_as_given(reason);
		fprintf(stderr, "softhca-perf: %s; see --help\n", reason);
	}
	return -EINVAL;
}

static int
parse_name(const char *option, const char *text, const char *const names[], unsigned int n,
	   unsigned int *out)
{
	char choices[128] = "";

	for (unsigned int i = 0; i < n; i++) {
		if (strcasecmp(text, names[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		snprintf(choices + strlen(choices), sizeof(choices) - strlen(choices), "%s%s",
			 i == 0	      ? ""
			 : i + 1 == n ? " or "
				      : ", ",
			 names[i]);
	return perf_options_bad("--%s: there is no \"%.40s\": %s", option, text, choices);
}

/* Parses a number within [min, max], which K, M or G may follow. */
static int
parse_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	const char *suffix;
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (end == text || text[0] == '-' || errno != 0)
		return perf_options_bad("--%s: not a number: %s", option, text);
	suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
	if (suffix != NULL && value <= UINT64_MAX >> 30) {
		value <<= 10 * (suffix - suffixes + 1);
		end++;
	}
	if (*end != '\0')
		return perf_options_bad("--%s: not a number: %s", option, text);
	if (value < min || value > max)
		return perf_options_bad("--%s: %s is not in %" PRIu64 "..%" PRIu64, option, text,
					min, max);
	*out = value;
	return 0;
}

static int
parse_u32(const char *option, const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t value = 0;
	int rc = parse_number(option, text, min, max, &value);

	if (rc == 0)
		*out = (uint32_t)value;
	return rc;
}

static int
parse_real(const char *option, const char *text, double min, double max, double *out)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0')
		return perf_options_bad("--%s: not a number: %s", option, text);
	if (!(value >= min && value <= max))
		return perf_options_bad("--%s: %s is not in %g..%g", option, text, min, max);
	*out = value;
	return 0;
}

/* A part of --impair: probabilities of all frames, or another kind */
static int
take_fault(const char *text, struct perf_options *opt)
{
	size_t used = strlen(opt->faults);

	if (softhca_embed_impair(NULL, text) != 0)
		return perf_options_bad("--impair: %s", softhca_embed_last_error());
	if (softhca_embed_parse_impairment(text, &opt->embed.impair) == 0)
		return 0;
	if (used + strlen(text) + 2 > sizeof(opt->faults))
		return perf_options_bad("--impair: more than %zu characters",
					sizeof(opt->faults) - 2);
	sprintf(opt->faults + used, "%s%s", used != 0 ? ";" : "", text);
	return 0;
}

static int
parse_impairment(char *text, struct perf_options *opt)
{
	char *each;
	int rc = 0;

	while (rc == 0 && (each = strsep(&text, ";")) != NULL)
		rc = take_fault(each, opt);
	return rc;
}

static int
parse_fabric(char *text, struct perf_options *opt)
{
	opt->fabric = text;
	if (softhca_embed_parse_fabric(text, &opt->embed.fabric) == 0)
		return 0;
	return perf_options_bad("--fabric: %s", softhca_embed_last_error());
}

static int
parse_link_down(char *text, struct perf_options *opt)
{
	struct softhca_port_stall *stall = &opt->embed.stall;
	char *colon = strchr(text, ':');
	int rc;

	if (colon == NULL)
		return perf_options_bad("--link-down: AFTER_MS:FOR_MS expected, not %s", text);
	*colon = '\0';
	rc = parse_u32("link-down", text, 0, 3600000, &stall->down_after_ms);
	if (rc != 0)
		return rc;
	return parse_u32("link-down", colon + 1, 1, 3600000, &stall->down_for_ms);
}

static int
parse_option(const struct option_row *row, char *text, struct perf_options *opt)
{
	void *member = (char *)opt + row->at;

	switch (row->kind) {
	case KIND_FLAG:
		*(bool *)member = true;
		return 0;
	case KIND_SET:
		*(uint32_t *)member = (uint32_t)row->min;
		return 0;
	case KIND_U32:
		return parse_u32(row->name, text, row->min, row->max, member);
	case KIND_U64:
		return parse_number(row->name, text, row->min, row->max, member);
	case KIND_REAL:
		return parse_real(row->name, text, row->real_min, REAL_MAX, member);
	case KIND_TEXT:
		*(const char **)member = text;
		return 0;
	case KIND_NAME:
		return parse_name(row->name, text, row->names, (unsigned int)row->max, member);
	default:
		return row->call(text, opt);
	}
}

uint32_t
perf_mtu_code(uint32_t bytes)
{
	for (uint32_t code = SOFTHCA_MTU_256; code <= SOFTHCA_MTU_4096; code++) {
		if (bytes == 128u << code)
			return code;
	}
	return 0;
}

const char *
perf_options_check(struct perf_options *opt)
{
	int rc;

	quiet = true;
	rc = perf_options_judge(opt);
	quiet = false;
	return rc == 0 ? NULL : reason;
}

/* A port may follow --server. */
static int
parse_words(int n, char **word, struct perf_options *opt)
{
	if (n > 0 && opt->remote.server) {
		if (parse_u32("server", word[0], 1, 65535, &opt->remote.port) != 0)
			return -EINVAL;
		n--;
		word++;
	} else if (n > 0 && opt->remote.client == NULL) {
		return perf_options_bad("unexpected argument: %s; a server is named by --client %s",
					word[0], word[0]);
	}
	return n > 0 ? perf_options_bad("unexpected argument: %s", word[0]) : 0;
}

/* getopt_long() takes a beginning for the whole: "--mem" for "--memory-poll". */
static int
check_names(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + 2;
		size_t len = strcspn(argv[i], "=") - 2;
		char theirs[32] = "";

		if (strncmp(argv[i], "--", 2) != 0 || *name == '\0' ||
		    find_row(name, len) != NUM_ROWS)
			continue;
		snprintf(theirs, sizeof(theirs), "%.*s", (int)len, name);
		if (perf_long_refused(theirs) != NULL)
			return perf_options_bad("--%s is not taken: %s", theirs,
						perf_long_refused(theirs));
		return perf_options_bad("there is no option --%.*s", (int)len, name);
	}
	return 0;
}

/* What getopt_long() could not take: id is ':' or '?', optopt a letter or OPT_BASE + row. */
static int
bad_option(int id)
{
	const char *why = optopt < OPT_BASE ? perf_letter_refused((char)optopt) : NULL;

	if (optopt >= OPT_BASE)
		return perf_options_bad(id == ':' ? "--%s needs a value" : "--%s takes no value",
					rows[optopt - OPT_BASE].name);
	if (id == ':')
		return perf_options_bad("-%c needs a value", optopt);
	if (why != NULL)
		return perf_options_bad("-%c is not taken: %s", optopt, why);
	return perf_options_bad("there is no option -%c", optopt);
}

/* The letters of rows for getopt_long(), which reports each problem by its result. */
static void
make_letters(char *out)
{
	*out++ = ':';
	for (unsigned int i = 0; i < NUM_ROWS; i++) {
		char letter = perf_letter_of(rows[i].name);

		if (letter == '\0')
			continue;
		*out++ = letter;
		if (rows[i].arg != NULL)
			*out++ = ':';
	}
	*out = '\0';
}

/* Each option, then the word after the options. */
static int
parse_all(int argc, char **argv, struct perf_options *opt)
{
	struct option options[NUM_ROWS + 1] = {0};
	char letters[2 * NUM_ROWS + 2];
	int id, rc;

	for (unsigned int i = 0; i < NUM_ROWS; i++)
		options[i] = (struct option){rows[i].name,
					     rows[i].arg != NULL ? required_argument : no_argument,
					     NULL, (int)i + OPT_BASE};
	make_letters(letters);
	while ((id = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		unsigned int row = (unsigned int)id - OPT_BASE;

		if (id == ':' || id == '?')
			return bad_option(id);
		if (id < OPT_BASE) {
			const char *name = perf_name_of((char)id);

			row = find_row(name, strlen(name));
			spelled[row] = (char)id;
		}
		opt->given[row] = id < OPT_BASE ? (char)id : 1;
		rc = parse_option(&rows[row], optarg, opt);
		if (rc != 0)
			return rc;
	}
	return parse_words(argc - optind, argv + optind, opt);
}

int
perf_options_parse(int argc, char **argv, struct perf_options *opt)
{
	int rc;

	*opt = (struct perf_options){
		.op = PERF_OP_COUNT, /* not named */
		.qps = 1,
		.ip = 4,
		.mtu = 4096,
		.post_list = 32,
		.signal_every = 1,
		.remote = {.port = REMOTE_PORT, .gid_index = -1, .timeout = 20},
	};
	softhca_embed_config_init(&opt->embed);
	if (argc == 2 && strcmp(argv[1], "--list-options") == 0)
		return print_list();
	rc = check_names(argc, argv);
	if (rc == 0)
		rc = parse_all(argc, argv, opt);
	opt->embed.seed = opt->seed;
	if (spelled[find_row("iters", strlen("iters"))] != 0)
		opt->iters *= opt->qps;
	return rc != 0 ? rc : perf_options_judge(opt);
}
