/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_EXCHANGE_H
#define APPS_PERF_PERF_EXCHANGE_H

/*
 * The exchange of two ends before and after a test, over any byte stream: one line of text per
 * message, "word key=value key=value ...\n". Numbers are decimal, a GID is 32 hex digits. Keys that
 * are 0 may be left out, unknown keys are skipped, so that versions can differ.
 *
 * Needs the C library only: the same file is compiled into programs on libibverbs.
 */

#include <stddef.h>
#include <stdint.h>

#define PERF_EXCHANGE_VERSION 1u
#define PERF_EXCHANGE_LINE 2048u /* longest line, with its end and a NUL */
#define PERF_EXCHANGE_WORD 16u

/* Of the test, then of the end that speaks. X(field) */
#define PERF_EXCHANGE_FIELDS(X) \
	X(version) \
	X(service)  /* enum ibv_qp_type */ \
	X(op)	    /* enum ibv_wr_opcode, 16: WRITE and FLUSH; of URMA: 256 + urma_opcode_t */ \
	X(wire)	    /* 0 RoCE, 1 UB */ \
	X(size)	    /* bytes of the largest message */ \
	X(count)    /* messages */ \
	X(mtu)	    /* bytes */ \
	X(ip)	    /* 4 or 6 */ \
	X(net)	    /* which of the addresses of that version */ \
	X(tclass)   /* traffic class */ \
	X(depth)    /* messages outstanding */ \
	X(sge)	    /* elements per list */ \
	X(flags)    /* of the test at hand */ \
	X(delay_us) /* receives are posted so long after the start */ \
	X(expect)   /* status of the completion that ends it */ \
	X(seed)	    /* of the data */ \
	X(rnr_retry) \
	X(retry_cnt) \
	X(rd_atomic) /* READs and atomics at once, either role */ \
	X(timeout) \
	X(test) /* measurement: 0 bandwidth, 1 latency */ \
	X(pass) /* 0: time is taken, 1: data is checked */ \
	X(duration_us) \
	X(qps)	     /* in all; each is described in a line of its own */ \
	X(post_list) /* requests per doorbell */ \
	X(signal)    /* number of requests per completion */ \
	X(stride)    /* bytes from slot to slot */ \
	X(slots)     /* per QP; those of QP 0 come first */ \
	X(srq) \
	X(events) \
	X(memory_poll) /* nothing is called while memory is watched */ \
	X(bidir)       /* both ends request */ \
	X(verify)      /* a checking pass will follow */ \
	X(vlan) \
	X(sgid)	    /* index in a GID table: of the end that speaks, in "case": of the other */ \
	X(executes) /* XRC: QPN that takes requests */ \
	X(srqn) \
	X(elapsed_us) \
	X(lost)	     /* messages sent and not arrived */ \
	X(requester) /* 1: the end that is told makes the requests */ \
	X(qpn) \
	X(psn) \
	X(qkey) \
	X(vaddr) \
	X(rkey) \
	X(status) /* of the report, 0 = no error */ \
	X(value) \
	X(clock) /* of the end that speaks, ns since it was switched on */

struct perf_exchange {
#define X(f) uint64_t f;
	PERF_EXCHANGE_FIELDS(X)
#undef X
	uint8_t gid[16];
	char text[256]; /* of a report: reaches to the end of the line, last */
};

/* Length of the line with its '\n', or -ENOSPC. */
int perf_exchange_format(char *line, size_t room, const char *word, const struct perf_exchange *x);

/*
 * line is one line, with or without its end. Fields it does not name become 0. 0 or -EPROTO: no
 * word, a key without value, a value that is no number of 64 bits or no GID.
 */
int perf_exchange_parse(const char *line, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x);

#endif
