/* SPDX-License-Identifier: BSD-3-Clause */

/* The command line. Every value is checked here; what depends on the device is in perf_setup.c. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define MAX_SIZE (1ull << 31)
#define DEFAULT_SIZE 65536
#define DEFAULT_DURATION 1.0
#define REMOTE_ACK_TIMEOUT 16 /* 0.27 s: daemons share their CPUs with others */
#define SHARED_ACK_TIMEOUT 17 /* 0.54 s: more workers than CPUs wait for each other */

const char *const perf_op_names[PERF_OP_COUNT] = {
#define X(name, id, wr, wc) [PERF_OP_##id] = name,
	PERF_OP_LIST(X)
#undef X
};
const char *const perf_service_names[PERF_SERVICE_COUNT] = {
#define X(name, id, type) [PERF_SERVICE_##id] = name,
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
static const char *const idle_names[] = {
	[SOFTHCA_IDLE_AUTO] = "auto",
	[SOFTHCA_IDLE_SPIN] = "spin",
};

const char *
perf_test_name(enum perf_test test)
{
	return test_names[test];
}

/* X(long name, short identifier, argument or NULL, help) */
#define OPTION_LIST(X) \
	X("op", OP, "OP", "write, read, send, atomic-fa or atomic-cas [write; ud: send]") \
	X("service", SERVICE, "S", "rc, uc, ud or xrc [rc]") \
	X("srq", SRQ, NULL, \
	  "receives from one shared receive queue per side (rc, ud; xrc always)") \
	X("ip", IP, "V", "4 or 6 [4]") \
	X("vlan", VLAN, "ID", "send on this VLAN, 1..4094") \
	X("events", EVENTS, NULL, "wait for completion events instead of polling") \
	X("memory-poll", MEMORY_POLL, NULL, \
	  "watch the memory, calling nothing, as ib_write_lat does (write, lat)") \
	X("test", TEST, "TEST", "bw: many outstanding; lat: one at a time, ping-pong [bw]") \
	X("size", SIZE, "BYTES", "message size, suffix K or M allowed [64K; atomics always 8]") \
	X("all-sizes", ALL_SIZES, NULL, "a row for every power of two from 2 B to 8 MiB") \
	X("qps", QPS, "N", "connected pairs of QPs [1]") \
	X("depth", DEPTH, "N", "messages outstanding per QP [128; lat: 1]") \
	X("mtu", MTU, "BYTES", "256, 512, 1024, 2048 or 4096 [4096]") \
	X("post-list", POST_LIST, "N", "requests per doorbell [32]") \
	X("signal-every", SIGNAL_EVERY, "N", "a completion every N requests [1]") \
	X("inline", INLINE, "N", "messages up to N bytes in the WQE (write, send) [0]") \
	X("duration", DURATION, "S", "seconds per size, 0.5 is fine [1]") \
	X("iters", ITERS, "N", "messages per size instead (bw: whole post lists)") \
	X("stride", STRIDE, "BYTES", "distance of slots in memory [4096 or the size, 2^k]") \
	X("slots", SLOTS, "N", "slots per QP [depth, at most 32 MiB in all]") \
	X("layout", LAYOUT, "L", "rtc, txrx or full: stages per lcore [rtc]") \
	X("executor", EXECUTOR, "E", "manual (this thread) or threads [rtc: manual]") \
	X("idle", IDLE, "I", "auto or spin: threads without work [auto]") \
	X("verify", VERIFY, NULL, "check every byte and completion in a pass of its own") \
	X("seed", SEED, "N", "of data, link and engine [of the system]") \
	X("report-every", REPORT_EVERY, "S", \
	  "a line about the pass that runs every S seconds (bw)") \
	X("json", JSON, "FILE", "write all results and the host to FILE") \
	X("pcap", PCAP, "FILE", "write every frame on the link to FILE") \
	X("list-counters", COUNTERS, NULL, "print the counters each row has moved") \
	X("telemetry", TELEMETRY, NULL, "answer dpdk-telemetry.py -f softhca while running") \
	X("impair", IMPAIR, "LIST", "drop=P,dup=P,reorder=P,corrupt=P,delay=US,jitter=US") \
	X("ack-timeout", ACK_TIMEOUT, "T", \
	  "4.096 us * 2^T [14; daemons 16; threads 17; manual, impaired 11; link-down: more]") \
	X("edges", EDGES, "N", "entries per edge between stages") \
	X("mbufs", MBUFS, "N", "mbufs per pool") \
	X("records", RECORDS, "N", "request records per HCA") \
	X("port-burst", PORT_BURST, "N", "the port takes 0..N frames per burst, at random") \
	X("link-down", LINK_DOWN, "AFTER:FOR", "ms: link down after the first frame, for so long") \
	X("stall-discard", STALL_DISCARD, "US", \
	  "discard when the port takes nothing for so long [1000000]") \
	X("huge", HUGE, NULL, "fail without hugepages [use them if there are enough]") \
	X("no-huge", NO_HUGE, NULL, "no hugepages, runs as any user") \
	X("server", SERVER, NULL, \
	  "serve clients on TCP port PORT, the word behind the options [18515]") \
	X("client", CLIENT, "HOST", "run the test with the server at HOST[:PORT]") \
	X("device", DEVICE, "NAME", "of a daemon: name or path of its socket [the first]") \
	X("gids", GIDS, NULL, "print the GID table of the device") \
	X("gid-index", GID_INDEX, "N", "own GID [of a pair that can reach each other]") \
	X("bidir", BIDIR, NULL, "both ends make requests at a time (bw)") \
	X("once", ONCE, NULL, "server: end after one client") \
	X("timeout", TIMEOUT, "S", \
	  "seconds the other end may be silent, or not be there yet (10 at most) [20]") \
	X("version", VERSION, NULL, "print the version") \
	X("help", HELP, NULL, "this text")

enum option_id {
	OPT_BASE = 256,
#define X(name, id, arg, help) OPT_##id,
	OPTION_LIST(X)
#undef X
};

static const struct option options[] = {
#define X(name, id, arg, help) \
	{name, (arg) != NULL ? required_argument : no_argument, NULL, OPT_##id},
	OPTION_LIST(X)
#undef X
		{NULL, 0, NULL, 0},
};

_Static_assert(sizeof(options) / sizeof(options[0]) <= 64, "bits of perf_options.given");

bool
perf_option_given(const struct perf_options *opt, const char *name)
{
	for (unsigned int i = 0; options[i].name != NULL; i++)
		if (strcmp(options[i].name, name) == 0)
			return (opt->given >> i & 1) != 0;
	return false;
}

static void
usage(void)
{
	printf("usage: softhca-perf [OPTION]...\n"
	       "       softhca-perf [--device NAME] --server [PORT] [OPTION]...\n"
	       "       softhca-perf [--device NAME] --client HOST[:PORT] [OPTION]...\n"
	       "Bandwidth, message rate and latency of two HCAs: back to back in this process, or "
	       "behind\nthe daemons of two hosts.\n\n");
#define X(name, id, arg, help) \
	printf("  --%s%s%-*s %s\n", name, (arg) != NULL ? " " : "", \
	       24 - (int)strlen(name) - ((arg) != NULL), (arg) != NULL ? (arg) : "", help);
	OPTION_LIST(X)
#undef X
	printf("\nbw:  Gb/s and messages per second; peak is the best 10 ms.\n"
	       "lat: us; write and send: half a round trip; read and atomics: post to completion.\n"
	       "Exit status: 0 all well, 1 a run failed or data was wrong, 2 a bad option.\n");
}

static char reason[256]; /* of the last complaint */
static bool quiet;

static int __attribute__((format(printf, 1, 2))) bad(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (!quiet)
		fprintf(stderr, "softhca-perf: %s; see --help\n", reason);
	return -EINVAL;
}

static int
parse_name(const char *option, const char *text, const char *const names[], unsigned int n,
	   unsigned int *out)
{
	char choices[128] = "";

	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(text, names[i]) == 0) {
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
	return bad("--%s: there is no \"%.40s\": %s", option, text, choices);
}

/* A number with K, M or G behind it, within [min, max]. */
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
		return bad("--%s: not a number: %s", option, text);
	suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
	if (suffix != NULL && value <= UINT64_MAX >> 30) {
		value <<= 10 * (suffix - suffixes + 1);
		end++;
	}
	if (*end != '\0')
		return bad("--%s: not a number: %s", option, text);
	if (value < min || value > max)
		return bad("--%s: %s is not in %" PRIu64 "..%" PRIu64, option, text, min, max);
	*out = value;
	return 0;
}

static int
parse_u32(const char *option, const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t value;
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
		return bad("--%s: not a number: %s", option, text);
	if (!(value >= min && value <= max))
		return bad("--%s: %s is not in %g..%g", option, text, min, max);
	*out = value;
	return 0;
}

static int
parse_impairment(char *text, struct softhca_impairment *impair)
{
	static char *const keys[] = {"drop", "dup", "reorder", "corrupt", "delay", "jitter", NULL};
	double *const rates[] = {&impair->drop, &impair->dup, &impair->reorder, &impair->corrupt};
	char *value, *here;
	int key, rc;

	while (*text != '\0') {
		here = text;
		key = getsubopt(&text, keys, &value);
		if (key < 0)
			return bad(
				"--impair: no such fault: %s: drop, dup, reorder, corrupt, delay or "
				"jitter",
				here);
		if (value == NULL)
			return bad("--impair: %s needs a value", keys[key]);
		if (key < 4)
			rc = parse_real("impair", value, 0, 1, rates[key]);
		else
			rc = parse_u32("impair", value, 0, 10000000,
				       key == 4 ? &impair->delay_us : &impair->jitter_us);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
parse_link_down(char *text, struct softhca_port_stall *stall)
{
	char *colon = strchr(text, ':');
	int rc;

	if (colon == NULL)
		return bad("--link-down: AFTER_MS:FOR_MS expected, not %s", text);
	*colon = '\0';
	rc = parse_u32("link-down", text, 0, 3600000, &stall->down_after_ms);
	if (rc != 0)
		return rc;
	return parse_u32("link-down", colon + 1, 1, 3600000, &stall->down_for_ms);
}

/* Options that say what is measured */
static int
parse_measure_option(int id, char *arg, struct perf_options *opt)
{
	unsigned int choice = 0;
	int rc;

	switch (id) {
	case OPT_OP:
		rc = parse_name("op", arg, perf_op_names, PERF_OP_COUNT, &choice);
		opt->op = choice;
		return rc;
	case OPT_SERVICE:
		rc = parse_name("service", arg, perf_service_names, PERF_SERVICE_COUNT, &choice);
		opt->service = choice;
		return rc;
	case OPT_SRQ:
		opt->srq = true;
		return 0;
	case OPT_IP:
		return parse_u32("ip", arg, 4, 6, &opt->ip);
	case OPT_VLAN:
		return parse_u32("vlan", arg, 1, 4094, &opt->embed.vlan);
	case OPT_MEMORY_POLL:
		opt->memory_poll = true;
		return 0;
	case OPT_EVENTS:
		opt->events = true;
		return 0;
	case OPT_TEST:
		rc = parse_name("test", arg, test_names, 2, &choice);
		opt->test = choice;
		return rc;
	case OPT_SIZE:
		return parse_number("size", arg, 1, MAX_SIZE, &opt->size);
	case OPT_ALL_SIZES:
		opt->all_sizes = true;
		return 0;
	case OPT_QPS:
		return parse_u32("qps", arg, 1, 16380, &opt->qps);
	case OPT_DEPTH:
		return parse_u32("depth", arg, 1, 32768, &opt->depth);
	case OPT_MTU:
		return parse_u32("mtu", arg, 256, 4096, &opt->mtu);
	case OPT_POST_LIST:
		return parse_u32("post-list", arg, 1, 32768, &opt->post_list);
	case OPT_SIGNAL_EVERY:
		return parse_u32("signal-every", arg, 1, 32768, &opt->signal_every);
	case OPT_INLINE:
		return parse_u32("inline", arg, 0, 1024, &opt->inline_max);
	case OPT_DURATION:
		return parse_real("duration", arg, 0.001, 86400, &opt->duration);
	case OPT_ITERS:
		return parse_number("iters", arg, 1, 1ull << 48, &opt->iters);
	case OPT_STRIDE:
		return parse_number("stride", arg, 1, MAX_SIZE, &opt->stride);
	case OPT_SLOTS:
		return parse_u32("slots", arg, 1, 1u << 20, &opt->slots);
	default:
		return 1;
	}
}

/* Options of the engine and its link */
static int
parse_engine_option(int id, char *arg, struct softhca_embed_config *embed)
{
	switch (id) {
	case OPT_LAYOUT:
		return parse_name("layout", arg, perf_layout_names, 3, &embed->layout);
	case OPT_EXECUTOR:
		return parse_name("executor", arg, perf_executor_names, 2, &embed->executor);
	case OPT_IDLE:
		return parse_name("idle", arg, idle_names, 2, &embed->idle);
	case OPT_IMPAIR:
		return parse_impairment(arg, &embed->impair);
	case OPT_EDGES:
		return parse_u32("edges", arg, 2, 1u << 20, &embed->edge_size);
	case OPT_MBUFS:
		return parse_u32("mbufs", arg, 1, 1u << 24, &embed->mbufs);
	case OPT_RECORDS:
		return parse_u32("records", arg, 1, 1u << 24, &embed->records);
	case OPT_PORT_BURST:
		return parse_u32("port-burst", arg, 1, 1u << 20, &embed->stall.tx_burst_max);
	case OPT_LINK_DOWN:
		return parse_link_down(arg, &embed->stall);
	case OPT_STALL_DISCARD:
		return parse_u32("stall-discard", arg, 1, 100000000,
				 &embed->stall.discard_after_us);
	case OPT_TELEMETRY:
		embed->telemetry = 1;
		return 0;
	case OPT_HUGE:
		embed->hugepages = 1;
		return 0;
	case OPT_NO_HUGE:
		embed->hugepages = 2;
		return 0;
	default:
		return 1;
	}
}

static int
parse_other_option(int id, char *arg, struct perf_options *opt)
{
	uint32_t number;

	switch (id) {
	case OPT_VERIFY:
		opt->verify = true;
		return 0;
	case OPT_SEED:
		if (parse_number("seed", arg, 0, UINT64_MAX, &opt->seed) != 0)
			return -EINVAL;
		opt->embed.seed = opt->seed;
		return 0;
	case OPT_REPORT_EVERY:
		return parse_real("report-every", arg, 0.01, 86400, &opt->report_every);
	case OPT_JSON:
		opt->json = arg;
		return 0;
	case OPT_PCAP:
		opt->pcap = arg;
		return 0;
	case OPT_COUNTERS:
		opt->list_counters = true;
		return 0;
	case OPT_ACK_TIMEOUT:
		return parse_u32("ack-timeout", arg, 1, 31, &opt->ack_timeout);
	case OPT_SERVER:
		opt->remote.server = true;
		return 0;
	case OPT_CLIENT:
		opt->remote.client = arg;
		return 0;
	case OPT_DEVICE:
		opt->remote.device = arg;
		return 0;
	case OPT_GIDS:
		opt->remote.gids = true;
		return 0;
	case OPT_GID_INDEX:
		if (parse_u32("gid-index", arg, 0, 255, &number) != 0)
			return -EINVAL;
		opt->remote.gid_index = (int32_t)number;
		return 0;
	case OPT_BIDIR:
		opt->remote.bidir = true;
		return 0;
	case OPT_ONCE:
		opt->remote.once = true;
		return 0;
	case OPT_TIMEOUT:
		return parse_u32("timeout", arg, 1, 86400, &opt->remote.timeout);
	case OPT_VERSION:
		puts("softhca-perf " PERF_VERSION);
		return 1;
	case OPT_HELP:
		usage();
		return 1;
	default:
		fputs("softhca-perf: see --help\n", stderr); /* getopt has said what */
		return -EINVAL;
	}
}

static uint32_t
mtu_code(uint32_t bytes)
{
	for (uint32_t code = SOFTHCA_MTU_256; code <= SOFTHCA_MTU_4096; code++) {
		if (bytes == 128u << code)
			return code;
	}
	return 0;
}

static bool
is_impaired(const struct softhca_impairment *impair)
{
	return impair->drop + impair->dup + impair->reorder + impair->corrupt > 0;
}

/*
 * Long enough that a busy machine does not repeat anything on a clean link; short on a link that
 * loses; and long enough that seven retries outlast a link that is down.
 */
static uint32_t
choose_ack_timeout(const struct perf_options *opt)
{
	const struct softhca_embed_config *embed = &opt->embed;
	bool alone = embed->executor == SOFTHCA_EXECUTOR_MANUAL;
	bool impaired = is_impaired(&embed->impair);
	uint32_t code = 14;

	if (perf_is_remote(opt))
		code = REMOTE_ACK_TIMEOUT;
	else if (alone && impaired)
		code = 11;
	else if (!alone && !impaired)
		code = SHARED_ACK_TIMEOUT;

	while (code < 31 && 4096ull << code < 4000ull * embed->impair.delay_us)
		code++;
	while (code < 31 && 7 * (4096ull << code) < 2000000ull * embed->stall.down_for_ms)
		code++;
	return code;
}

static int
check_sizes(struct perf_options *opt)
{
	if (perf_is_atomic(opt->op)) {
		if (opt->size != 0 && opt->size != PERF_ATOMIC_SIZE)
			return bad("--size: atomics have 8 bytes");
		opt->size = PERF_ATOMIC_SIZE;
		opt->all_sizes = false;
	}
	if (opt->all_sizes && opt->size != 0)
		return bad("--size and --all-sizes exclude each other");
	if (opt->size == 0 && !opt->all_sizes)
		opt->size = opt->service == PERF_SERVICE_UD ? opt->mtu : DEFAULT_SIZE;
	if (opt->stride != 0 && (opt->all_sizes || opt->stride < opt->size))
		return bad("--stride: smaller than a message");
	if (perf_is_atomic(opt->op) && opt->stride % PERF_ATOMIC_SIZE != 0)
		return bad("--stride: atomics need a multiple of 8");
	return 0;
}

static int
check_queues(struct perf_options *opt)
{
	if (opt->depth == 0)
		opt->depth = opt->test == PERF_TEST_LAT ? 1 : 128;
	if (opt->test == PERF_TEST_LAT && opt->depth != 1)
		return bad("--depth: the latency test has one message under way");
	if (opt->test == PERF_TEST_LAT && opt->qps != 1)
		return bad("--qps: the latency test has one connection");
	if (opt->post_list > opt->depth)
		opt->post_list = opt->depth;
	if (opt->signal_every > opt->depth / opt->post_list * opt->post_list)
		return bad("--signal-every: %u is more than the %u messages outstanding",
			   opt->signal_every, opt->depth / opt->post_list * opt->post_list);
	return 0;
}

/* Operations and sizes each service has */
static int
check_service(const struct perf_options *opt)
{
	bool reliable = opt->service == PERF_SERVICE_RC || opt->service == PERF_SERVICE_XRC;

	if (opt->service == PERF_SERVICE_UD && opt->op != PERF_OP_SEND)
		return bad("--service ud: datagrams have --op send only");
	if (opt->service == PERF_SERVICE_UC && opt->op != PERF_OP_SEND && opt->op != PERF_OP_WRITE)
		return bad("--service uc: --op send or write only");
	if (opt->service == PERF_SERVICE_UD && (opt->all_sizes || opt->size > opt->mtu))
		return bad("--service ud: a datagram has at most the MTU, %u bytes", opt->mtu);
	if (!reliable && is_impaired(&opt->embed.impair))
		return bad("--impair: what is lost with --service %s is not sent again",
			   perf_service_names[opt->service]);
	if (opt->srq && opt->service == PERF_SERVICE_UC)
		return bad("--srq: not with --service uc");
	if ((opt->srq || opt->service == PERF_SERVICE_XRC) && opt->verify && opt->qps > 1 &&
	    opt->op == PERF_OP_SEND)
		return bad("--verify: with several QPs on one SRQ a message may be in any slot");
	if (opt->events && opt->test == PERF_TEST_LAT && opt->op == PERF_OP_WRITE)
		return bad("--events: the arrival of a WRITE is seen in memory");
	if (opt->memory_poll && (opt->test != PERF_TEST_LAT || opt->op != PERF_OP_WRITE))
		return bad("--memory-poll: with --test lat and --op write only");
	if (opt->service == PERF_SERVICE_XRC && opt->qps > 8190)
		return bad("--qps: XRC needs two QPs for each");
	return 0;
}

/* Each form has options of its own. */
static int
check_form(const struct perf_options *opt)
{
	static const char *const back_to_back[] = {
		"layout",    "executor",      "idle",  "pcap",	  "telemetry",
		"impair",    "edges",	      "mbufs", "records", "port-burst",
		"link-down", "stall-discard", "huge",  "no-huge",
	};
	static const char *const between[] = {"gid-index", "bidir", "timeout"};
	static const char *const of_client[] = {"all-sizes", "json", "list-counters", "duration"};

	if (opt->remote.server && opt->remote.client != NULL)
		return bad("--server and --client exclude each other");
	for (unsigned int i = 0; i < sizeof(back_to_back) / sizeof(back_to_back[0]); i++)
		if (perf_is_remote(opt) && perf_option_given(opt, back_to_back[i]))
			return bad("--%s: of HCAs back to back; a daemon has its configuration",
				   back_to_back[i]);
	for (unsigned int i = 0; i < sizeof(between) / sizeof(between[0]); i++)
		if (!perf_is_remote(opt) && perf_option_given(opt, between[i]))
			return bad("--%s: with --server or --client only", between[i]);
	for (unsigned int i = 0; i < sizeof(of_client) / sizeof(of_client[0]); i++)
		if (opt->remote.server && perf_option_given(opt, of_client[i]))
			return bad("--%s: the client says it", of_client[i]);
	if (perf_option_given(opt, "device") && !perf_is_remote(opt) && !opt->remote.gids)
		return bad("--device: with --server, --client or --gids only");
	if (opt->report_every != 0 && opt->test != PERF_TEST_BW)
		return bad("--report-every: with --test bw only");
	if (opt->inline_max != 0 && opt->op != PERF_OP_WRITE && opt->op != PERF_OP_SEND)
		return bad("--inline: with --op write or send only");
	if (opt->remote.once && !opt->remote.server)
		return bad("--once: with --server only");
	if (opt->remote.bidir && (opt->test != PERF_TEST_BW || perf_is_atomic(opt->op)))
		return bad("--bidir: with --test bw and --op write, read or send only");
	return 0;
}

static int
check(struct perf_options *opt, bool executor_given)
{
	int rc;

	if (opt->op == PERF_OP_COUNT)
		opt->op = opt->service == PERF_SERVICE_UD ? PERF_OP_SEND : PERF_OP_WRITE;
	rc = check_sizes(opt);
	if (rc == 0)
		rc = check_queues(opt);
	if (rc == 0)
		rc = check_service(opt);
	if (rc == 0)
		rc = check_form(opt);
	if (rc != 0)
		return rc;
	if (opt->ip == 5)
		return bad("--ip: 4 or 6");
	if (mtu_code(opt->mtu) == 0)
		return bad("--mtu: %u is none of 256, 512, 1024, 2048, 4096", opt->mtu);
	if (opt->duration != 0 && opt->iters != 0)
		return bad("--duration and --iters exclude each other");
	if (opt->duration == 0 && opt->iters == 0)
		opt->duration = DEFAULT_DURATION;
	if (!executor_given)
		opt->embed.executor = opt->embed.layout == SOFTHCA_LAYOUT_RTC
					      ? SOFTHCA_EXECUTOR_MANUAL
					      : SOFTHCA_EXECUTOR_THREADS;
	if (opt->memory_poll && !perf_is_remote(opt) &&
	    opt->embed.executor != SOFTHCA_EXECUTOR_THREADS)
		return bad("--memory-poll: the engine runs in this thread; --executor threads");
	if (opt->ack_timeout == 0)
		opt->ack_timeout = choose_ack_timeout(opt);
	return 0;
}

const char *
perf_options_check(struct perf_options *opt)
{
	int rc;

	quiet = true;
	rc = check(opt, true);
	quiet = false;
	return rc == 0 ? NULL : reason;
}

/* Behind --server there may be a port. */
static int
parse_words(int n, char **word, struct perf_options *opt)
{
	if (n > 0 && opt->remote.server) {
		if (parse_u32("server", word[0], 1, 65535, &opt->remote.port) != 0)
			return -EINVAL;
		n--;
		word++;
	}
	return n > 0 ? bad("what is this: %s", word[0]) : 0;
}

/* getopt_long() takes a beginning for the whole: "--port" for "--port-burst". */
static int
check_names(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + 2;
		size_t len = strcspn(argv[i], "=") - 2;
		unsigned int k = 0;

		if (strncmp(argv[i], "--", 2) != 0 || *name == '\0')
			continue;
		while (options[k].name != NULL &&
		       (strncmp(options[k].name, name, len) != 0 || options[k].name[len] != '\0'))
			k++;
		if (options[k].name == NULL)
			return bad("there is no option --%.*s; --help lists them", (int)len, name);
	}
	return 0;
}

static void
note_given(int id, struct perf_options *opt)
{
	for (unsigned int i = 0; options[i].name != NULL; i++)
		if (options[i].val == id)
			opt->given |= 1ull << i;
}

int
perf_options_parse(int argc, char **argv, struct perf_options *opt)
{
	bool executor_given = false;
	int id, rc;

	*opt = (struct perf_options){
		.op = PERF_OP_COUNT, /* not named */
		.qps = 1,
		.ip = 4,
		.mtu = 4096,
		.post_list = 32,
		.signal_every = 1,
		.remote = {.port = 18515, .gid_index = -1, .timeout = 20},
	};
	softhca_embed_config_init(&opt->embed);
	if (check_names(argc, argv) != 0)
		return -EINVAL;
	while ((id = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (id == 'h')
			id = OPT_HELP;
		note_given(id, opt);
		executor_given |= id == OPT_EXECUTOR;
		rc = parse_measure_option(id, optarg, opt);
		if (rc > 0)
			rc = parse_engine_option(id, optarg, &opt->embed);
		if (rc > 0)
			rc = parse_other_option(id, optarg, opt);
		if (rc != 0)
			return rc;
	}
	if (parse_words(argc - optind, argv + optind, opt) != 0)
		return -EINVAL;
	return check(opt, executor_given);
}
