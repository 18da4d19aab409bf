/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The test in words of the exchange: the client's request, and whether the server accepts it.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "remote.h"

/* X(field of the exchange, option, member of perf_options, min, max) */
#define NUMBERS(X) \
	X(wire, "wire", wire, 0, PERF_WIRE_UB) \
	X(size, "size", size, 1, 1ull << 31) \
	X(qps, "qps", qps, 1, 16380) \
	X(depth, "depth", depth, 1, 32768) \
	X(mtu, "mtu", mtu, 256, 4096) \
	X(ip, "ip", ip, 4, 6) \
	X(vlan, "vlan", embed.vlan, 0, 4094) \
	X(post_list, "post-list", post_list, 1, 32768) \
	X(signal, "signal-every", signal_every, 1, 32768) \
	X(stride, "stride", stride, 1, 1ull << 31) \
	X(slots, "slots", slots, 1, 1u << 20) \
	X(timeout, "ack-timeout", ack_timeout, 0, 31) \
	X(srq, "srq", srq, 0, 1) \
	X(events, "events", events, 0, 1) \
	X(memory_poll, "memory-poll", memory_poll, 0, 1) \
	X(bidir, "bidir", remote.bidir, 0, 1) \
	X(verify, "verify", verify, 0, 1) \
	X(count, "iters", iters, 0, 1ull << 48) \
	X(seed, "seed", seed, 0, UINT64_MAX)

void
remote_case_fill(const struct perf_session *s, enum remote_pass pass, struct perf_exchange *x)
{
	const struct perf_options *opt = s->opt;

	*x = (struct perf_exchange){
		.version = PERF_EXCHANGE_VERSION,
		.service = perf_service_types[opt->service],
		.op = perf_op_codes[opt->op],
		.test = opt->test,
		.pass = pass,
		.duration_us = (uint64_t)(opt->duration * 1e6),
	};
#define X(field, option, member, min, max) x->field = opt->member;
	NUMBERS(X)
#undef X
	x->size = s->size;
	x->stride = s->stride;
	x->slots = s->slots;
}

static int
find(const uint32_t *table, unsigned int n, uint64_t value)
{
	for (unsigned int i = 0; i < n; i++)
		if (table[i] == value)
			return (int)i;
	return -1;
}

static int
take_kind(const struct perf_exchange *x, struct perf_options *opt, char why[256])
{
	int service = find(perf_service_types, PERF_SERVICE_COUNT, x->service);
	int op = find(perf_op_codes, PERF_OP_COUNT, x->op);

	if (x->version != PERF_EXCHANGE_VERSION) {
		snprintf(why, 256,
			 "the client speaks version %" PRIu64 " of the exchange, the server %u",
			 x->version, PERF_EXCHANGE_VERSION);
		return -EINVAL;
	}
	if (service < 0 || op < 0 || x->test > PERF_TEST_LAT || x->pass > REMOTE_PASS_VERIFY ||
	    x->duration_us > 86400000000ull) {
		snprintf(why, 256, "the server knows no such service, operation or test");
		return -EINVAL;
	}
	opt->service = (enum perf_service)service;
	opt->op = (enum perf_op)op;
	opt->test = (enum perf_test)x->test;
	opt->duration = (double)x->duration_us / 1e6;
	return 0;
}

static bool
is_within(uint64_t value, uint64_t min, uint64_t max)
{
	return value >= min && value <= max;
}

static int
take_numbers(const struct perf_exchange *x, struct perf_options *opt, char why[256])
{
#define X(field, option, member, min, max) \
	if (!is_within(x->field, min, max)) { \
		snprintf(why, 256, "--%s: the client's %" PRIu64 " is not allowed", option, \
			 x->field); \
		return -EINVAL; \
	} \
	opt->member = (__typeof__(opt->member))x->field;
	NUMBERS(X)
#undef X
	return 0;
}

static int
differ(char why[256], const char *option, const char *server, const char *client)
{
	snprintf(why, 256, "--%s: the server was started with %s, the client with %s", option,
		 server, client);
	return -EINVAL;
}

static int
compare_number(char why[256], const char *option, uint64_t server, uint64_t client)
{
	char a[24], b[24];

	if (server == client)
		return 0;
	snprintf(a, sizeof(a), "%" PRIu64, server);
	snprintf(b, sizeof(b), "%" PRIu64, client);
	return differ(why, option, a, b);
}

/* Options with words, or with another name on one of the wires */
static int
compare_wire(const struct perf_options *own, const struct perf_options *opt, char why[256])
{
	if (perf_option_given(own, "wire") && own->wire != opt->wire)
		return differ(why, "wire", perf_wire_names[own->wire], perf_wire_names[opt->wire]);
	if (perf_option_given(own, "jettys") && opt->wire == PERF_WIRE_UB)
		return compare_number(why, "jettys", own->qps, opt->qps);
	return 0;
}

/* An option that the server was given must agree with the client's test. */
static int
compare(const struct perf_options *own, const struct perf_options *opt, char why[256])
{
	if (perf_option_given(own, "service") && own->service != opt->service)
		return differ(why, "service", perf_service_names[own->service],
			      perf_service_names[opt->service]);
	if (perf_option_given(own, "op") && own->op != opt->op)
		return differ(why, "op", perf_op_names[own->op], perf_op_names[opt->op]);
	if (perf_option_given(own, "test") && own->test != opt->test)
		return differ(why, "test", perf_test_name(own->test), perf_test_name(opt->test));
	if (compare_wire(own, opt, why) != 0)
		return -EINVAL;
#define X(field, option, member, min, max) \
	if (perf_option_given(own, option) && \
	    compare_number(why, option, own->member, opt->member) != 0) \
		return -EINVAL;
	NUMBERS(X)
#undef X
	return 0;
}

static int
check_memory(const struct perf_options *opt, char why[256])
{
	uint64_t bytes;

	if (!__builtin_mul_overflow(opt->stride, (uint64_t)opt->slots, &bytes) &&
	    !__builtin_mul_overflow(bytes, (uint64_t)opt->qps, &bytes) &&
	    bytes <= REMOTE_MEMORY_MAX)
		return 0;
	snprintf(why, 256, "%u QPs with %u slots of %" PRIu64 " bytes: more than %llu MiB",
		 opt->qps, opt->slots, opt->stride, REMOTE_MEMORY_MAX >> 20);
	return -EINVAL;
}

int
remote_case_take(const struct perf_exchange *x, const struct perf_options *own,
		 struct perf_options *opt, char why[256])
{
	const char *reason;

	*opt = *own;
	opt->all_sizes = false;
	opt->jettys = 0; /* the client's number is in qps */
	if (take_kind(x, opt, why) != 0 || take_numbers(x, opt, why) != 0 ||
	    compare(own, opt, why) != 0 || check_memory(opt, why) != 0)
		return -EINVAL;
	reason = perf_options_check(opt);
	if (reason == NULL)
		return 0;
	snprintf(why, 256, "%s", reason);
	return -EINVAL;
}
