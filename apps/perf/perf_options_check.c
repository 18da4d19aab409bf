/* SPDX-License-Identifier: BSD-3-Clause */

/* Whether options go together, and the defaults that depend on others. */

#include <inttypes.h>

#include "perf_options.h"

#define DEFAULT_SIZE 65536
#define DEFAULT_DURATION 1.0
#define SIMULATED_DURATION 0.1 /* takes seconds */
#define FLUSH_DEPTH_MAX 16384  /* a queue holds 32768 */
#define LOAD_DEPTH 1024	       /* with --load: more than a round trip has */
#define REMOTE_ACK_TIMEOUT 16  /* 0.27 s: daemons share their CPUs with others */
#define UB_TIMEOUT 20	       /* 4.3 s, of a request with all its repetitions */
#define SHARED_ACK_TIMEOUT 17  /* 0.54 s: more workers than CPUs wait for each other */

/* Or not given */
static bool
is_power(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

static bool
is_impaired(const struct perf_options *opt)
{
	const struct softhca_impairment *impair = &opt->embed.impair;

	return opt->faults[0] != '\0' ||
	       impair->drop + impair->dup + impair->reorder + impair->corrupt + impair->truncate >
		       0;
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
	bool impaired = is_impaired(opt);
	uint32_t code = 14;

	if (perf_is_remote(opt))
		code = REMOTE_ACK_TIMEOUT;
	else if (alone && impaired)
		code = 11;
	else if (!alone && !impaired)
		code = SHARED_ACK_TIMEOUT;

	if (perf_is_simulated(opt)) /* eight round trips */
		for (code = 7;
		     code < 31 && (double)(4096ull << code) <
					  16e3 * (embed->fabric.delay_us + embed->fabric.skew_us);)
			code++;
	while (code < 31 && 4096ull << code < 4000ull * embed->impair.delay_us)
		code++;
	while (code < 31 && 7 * (4096ull << code) < 2000000ull * embed->stall.down_for_ms)
		code++;
	return code;
}

static int
check_sizes(struct perf_options *opt)
{
	if (perf_has_word(opt->op)) {
		if (opt->size != 0 && opt->size != PERF_ATOMIC_SIZE)
			return perf_options_bad("--size: %" PRIu64
						"; atomics have 8 bytes, leave --size out",
						opt->size);
		opt->size = PERF_ATOMIC_SIZE;
		opt->all_sizes = false;
	}
	if (opt->all_sizes && opt->size != 0)
		return perf_options_bad("--size and --all-sizes exclude each other");
	if (opt->size == 0 && !opt->all_sizes)
		opt->size = opt->service == PERF_SERVICE_UD ? opt->mtu : DEFAULT_SIZE;
	if (opt->stride != 0 && (opt->all_sizes || opt->stride < opt->size))
		return perf_options_bad("--stride: %" PRIu64
					" is smaller than a message: --size %" PRIu64
					" or less, without --all-sizes",
					opt->stride, opt->stride);
	if (perf_has_word(opt->op) && opt->stride % PERF_ATOMIC_SIZE != 0)
		return perf_options_bad("--stride: atomics need a multiple of 8");
	return 0;
}

static int
check_queues(struct perf_options *opt)
{
	if (opt->depth == 0)
		opt->depth = opt->load != 0 ? LOAD_DEPTH : opt->test == PERF_TEST_LAT ? 1 : 128;
	if (opt->test == PERF_TEST_LAT && opt->load == 0 && opt->depth != 1)
		return perf_options_bad(
			"--depth: %u; --test lat has one message under way, --test bw more",
			opt->depth);
	if (opt->test == PERF_TEST_LAT && opt->qps != 1)
		return perf_options_bad("--qps: %u; --test lat has one connection, --test bw more",
					opt->qps);
	if (opt->op == PERF_OP_FLUSH && opt->depth > FLUSH_DEPTH_MAX)
		return perf_options_bad(
			"--depth: %u; --op flush has two requests per message: at most %u",
			opt->depth, FLUSH_DEPTH_MAX);
	if (opt->post_list > opt->depth)
		opt->post_list = opt->depth;
	if (opt->signal_every > opt->depth / opt->post_list * opt->post_list)
		return perf_options_bad(
			"--signal-every: %u is more than the %u messages outstanding",
			opt->signal_every, opt->depth / opt->post_list * opt->post_list);
	return 0;
}

/* Operations and sizes each service has */
static int
check_service(const struct perf_options *opt)
{
	bool reliable = opt->service == PERF_SERVICE_RC || opt->service == PERF_SERVICE_XRC;

	if (opt->service == PERF_SERVICE_UD && opt->op != PERF_OP_SEND)
		return perf_options_bad("--service ud: datagrams have --op send only, not %s",
					perf_op_names[opt->op]);
	if (opt->service == PERF_SERVICE_UC && opt->op != PERF_OP_SEND && opt->op != PERF_OP_WRITE)
		return perf_options_bad("--service uc: --op send or write only, not %s",
					perf_op_names[opt->op]);
	if (opt->service == PERF_SERVICE_UD && (opt->all_sizes || opt->size > opt->mtu))
		return perf_options_bad("--service ud: a datagram has at most the MTU, %u bytes",
					opt->mtu);
	if (!reliable && is_impaired(opt))
		return perf_options_bad(
			"--impair: what is lost with --service %s is not sent again",
			perf_service_names[opt->service]);
	if (opt->srq && opt->service == PERF_SERVICE_UC)
		return perf_options_bad("--srq: not with --service uc");
	if ((opt->srq || opt->service == PERF_SERVICE_XRC) && opt->verify && opt->qps > 1 &&
	    opt->op == PERF_OP_SEND)
		return perf_options_bad(
			"--verify: with several queues on one SRQ a message may be in any slot");
	if (opt->events && opt->test == PERF_TEST_LAT && opt->op == PERF_OP_WRITE)
		return perf_options_bad("--events: the arrival of a WRITE is seen in memory");
	if (opt->memory_poll && (opt->test != PERF_TEST_LAT || opt->op != PERF_OP_WRITE))
		return perf_options_bad("--memory-poll: with --test lat and --op write only");
	if (opt->service == PERF_SERVICE_XRC && opt->qps > 8190)
		return perf_options_bad("--qps: XRC needs two QPs for each");
	return 0;
}

/* Features of one wire that the other lacks */
static int
check_wire(struct perf_options *opt)
{
	static const char *const of_roce[] = {"service", "qps"};
	static const char *const of_ub[] = {"jettys", "tps",	    "window", "rule",
					    "spray",  "reorder-us", "segment"};
	bool ub = opt->wire == PERF_WIRE_UB;

	for (unsigned int i = 0; i < sizeof(of_roce) / sizeof(of_roce[0]); i++)
		if (ub && perf_option_given(opt, of_roce[i]))
			return perf_options_bad("--%s: not with --wire ub%s", of_roce[i],
						i == 1 ? ", which has --jettys" : "");
	for (unsigned int i = 0; i < sizeof(of_ub) / sizeof(of_ub[0]); i++)
		if (!ub && perf_option_given(opt, of_ub[i]))
			return perf_options_bad("--%s: with --wire ub only", of_ub[i]);
	if (!ub && (perf_op_codes[opt->op] & PERF_UB_ONLY) != 0)
		return perf_options_bad("--op %s: with --wire ub only", perf_op_names[opt->op]);
	if (!ub)
		return 0;
	if (perf_is_of_roce(opt->op))
		return perf_options_bad("--op %s: with --wire roce only, --service rc or xrc",
					perf_op_names[opt->op]);
	if (opt->mtu != 1024 && opt->mtu != 4096)
		return perf_options_bad("--mtu: %u; UB has 1024 and 4096", opt->mtu);
	if (opt->op == PERF_OP_SEND && opt->size > 16u << 20)
		return perf_options_bad("--size: a Send of UB has at most 16 MiB");
	if (!is_power(opt->embed.ub_window) || !is_power(opt->embed.ub_spray) ||
	    opt->embed.ub_segment % 4096 != 0)
		return perf_options_bad(
			"--window and --spray: powers of two; --segment: a multiple of 4096");
	if (opt->jettys != 0)
		opt->qps = opt->jettys;
	return 0;
}

/* A file of flows says all of these. */
static int
check_flows(const struct perf_options *opt)
{
	static const char *const of_file[] = {
		"op",	     "service",	     "srq",	  "events",	   "memory-poll",
		"test",	     "size",	     "all-sizes", "qps",	   "depth",
		"post-list", "signal-every", "inline",	  "duration",	   "iters",
		"stride",    "slots",	     "verify",	  "report-every",  "json",
		"histogram", "plot",	     "load",	  "list-counters", "pause-before-traffic",
		"bidir",     "server",	     "client",
	};

	if (opt->flows == NULL)
		return 0;
	for (unsigned int i = 0; i < sizeof(of_file) / sizeof(of_file[0]); i++)
		if (perf_option_given(opt, of_file[i]))
			return perf_options_bad("--%s: not with --flows, whose file describes the "
						"traffic and names peers",
						of_file[i]);
	if (opt->wire == PERF_WIRE_UB)
		return perf_options_bad("--wire ub: --flows has RoCE only");
	return 0;
}

/* Each form has options of its own. */
static int
check_form(const struct perf_options *opt)
{
	static const char *const back_to_back[] = {
		"layout",    "pipelines",     "executor",   "idle",    "pcap",	  "telemetry",
		"impair",    "fabric",	      "edges",	    "mbufs",   "records", "port-burst",
		"link-down", "stall-discard", "huge",	    "no-huge", "tps",	  "window",
		"rule",	     "spray",	      "reorder-us", "segment", "load",
	};
	static const char *const between[] = {"port", "cm", "gid-index", "bidir", "timeout"};
	static const char *const of_client[] = {"all-sizes",	       "json",
						"histogram",	       "plot",
						"list-counters",       "duration",
						"pause-before-traffic"};

	if (opt->remote.server && opt->remote.client != NULL)
		return perf_options_bad("--server and --client exclude each other");
	for (unsigned int i = 0; i < sizeof(back_to_back) / sizeof(back_to_back[0]); i++)
		if (perf_is_remote(opt) && perf_option_given(opt, back_to_back[i]))
			return perf_options_bad(
				"--%s: only for HCAs in this process; a daemon has its "
				"configuration",
				back_to_back[i]);
	for (unsigned int i = 0; i < sizeof(between) / sizeof(between[0]); i++)
		if (!perf_is_remote(opt) && opt->flows == NULL &&
		    perf_option_given(opt, between[i]))
			return perf_options_bad("--%s: with --server or --client only", between[i]);
	for (unsigned int i = 0; i < sizeof(of_client) / sizeof(of_client[0]); i++)
		if (opt->remote.server && perf_option_given(opt, of_client[i]))
			return perf_options_bad("--%s: an option of the client", of_client[i]);
	if (perf_option_given(opt, "device") && !perf_is_remote(opt) && !opt->remote.gids &&
	    opt->flows == NULL)
		return perf_options_bad("--device: with --server, --client or --gids only");
	if (opt->report_every != 0 && opt->test != PERF_TEST_BW)
		return perf_options_bad("--report-every: with --test bw only");
	if (opt->histogram != NULL && opt->test != PERF_TEST_LAT)
		return perf_options_bad("--histogram: with --test lat only");
	if (opt->inline_max != 0 && opt->op != PERF_OP_WRITE && opt->op != PERF_OP_SEND &&
	    !perf_is_of_roce(opt->op))
		return perf_options_bad(
			"--inline: with --op write, send, atomic-write or flush only");
	if (perf_option_given(opt, "huge") && perf_option_given(opt, "no-huge"))
		return perf_options_bad("--huge and --no-huge exclude each other");
	if (opt->remote.cm && opt->wire == PERF_WIRE_UB)
		return perf_options_bad("--cm: with --wire roce only");
	if (opt->congestion != 0 && perf_is_remote(opt) &&
	    (opt->wire == PERF_WIRE_UB || opt->remote.cm))
		return perf_options_bad("--congestion: between daemons not with --cm and --wire "
					"ub, which have that of the daemon");
	if (opt->congestion != 0 && opt->wire == PERF_WIRE_ROCE &&
	    opt->service != PERF_SERVICE_RC && opt->service != PERF_SERVICE_XRC)
		return perf_options_bad("--congestion: with --service rc or xrc only");
	if (opt->remote.once && !opt->remote.server)
		return perf_options_bad("--once: with --server only");
	if (opt->remote.bidir && (opt->test != PERF_TEST_BW || perf_is_atomic(opt->op)))
		return perf_options_bad(
			"--bidir: with --test bw, and not with --op atomic-fa or atomic-cas");
	return 0;
}

int
perf_options_judge(struct perf_options *opt)
{
	int rc;

	if (opt->op == PERF_OP_COUNT)
		opt->op = opt->service == PERF_SERVICE_UD ? PERF_OP_SEND : PERF_OP_WRITE;
	rc = check_sizes(opt);
	if (rc == 0)
		rc = check_wire(opt);
	if (rc == 0)
		rc = check_queues(opt);
	if (rc == 0)
		rc = check_service(opt);
	if (rc == 0)
		rc = check_form(opt);
	if (rc == 0)
		rc = check_flows(opt);
	if (rc != 0)
		return rc;
	if (opt->ip == 5)
		return perf_options_bad("--ip: expected 4 or 6, found 5");
	if (perf_mtu_code(opt->mtu) == 0)
		return perf_options_bad("--mtu: %u is none of 256, 512, 1024, 2048, 4096",
					opt->mtu);
	if (opt->duration != 0 && opt->iters != 0)
		return perf_options_bad("--duration and --iters exclude each other");
	if (opt->duration == 0 && opt->iters == 0)
		opt->duration = perf_is_simulated(opt) ? SIMULATED_DURATION : DEFAULT_DURATION;
	if (!perf_option_given(opt, "executor"))
		opt->embed.executor =
			opt->embed.layout == SOFTHCA_LAYOUT_RTC && opt->embed.pipelines == 1
				? SOFTHCA_EXECUTOR_MANUAL
				: SOFTHCA_EXECUTOR_THREADS;
	if (perf_is_simulated(opt) && opt->embed.executor != SOFTHCA_EXECUTOR_MANUAL)
		return perf_options_bad("--fabric: time is simulated; --executor manual");
	if (perf_is_simulated(opt) && perf_is_lossy(opt) &&
	    opt->embed.fabric.loss + opt->embed.fabric.first_loss > 0)
		return perf_options_bad(
			"--fabric: what is lost with --service %s is not sent again",
			perf_service_names[opt->service]);
	if (opt->load != 0 && (!perf_is_simulated(opt) || opt->test != PERF_TEST_LAT ||
			       opt->op == PERF_OP_SEND || opt->events))
		return perf_options_bad(
			"--load: with --fabric and --test lat, not with --op send or --events");
	if (opt->memory_poll && !perf_is_remote(opt) &&
	    opt->embed.executor != SOFTHCA_EXECUTOR_THREADS)
		return perf_options_bad(
			"--memory-poll: the engine runs in this thread; --executor threads");
	if (opt->ack_timeout == 0 && opt->wire == PERF_WIRE_ROCE)
		opt->ack_timeout = choose_ack_timeout(opt);
	else if (opt->ack_timeout == 0)
		opt->ack_timeout = UB_TIMEOUT;
	return 0;
}
