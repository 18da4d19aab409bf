/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_IMPAIR_H
#define HCA_ABI_IMPAIR_H

/*
 * Names of faults that a port can inject, as operators write them: in softhca-ctl, in
 * softhca-perf and over telemetry.
 */

/* Probabilities 0..1 of each frame. X(name) */
#define HCA_IMPAIR_ODDS_LIST(X) \
	X(drop) \
	X(dup) \
	X(reorder) \
	X(corrupt) \
	X(truncate) \
	X(ecn)

/* Times by which each frame is delayed, in microseconds in text form. X(name) */
#define HCA_IMPAIR_TIME_LIST(X) \
	X(delay) \
	X(jitter)
#define HCA_IMPAIR_TIME_MAX 60000000u

/* Faults of a rule. X(name, text) */
#define HCA_FAULT_LIST(X) \
	X(DROP, "drop") \
	X(DUP, "dup") \
	X(REORDER, "reorder") /* after the next frame, or reorder_ns later when none comes */ \
	X(DELAY, "delay")     /* by arg ns */ \
	X(CORRUPT_PAYLOAD, "corrupt_payload") \
	X(CORRUPT_HEADER, "corrupt_header") \
	X(CORRUPT_ICRC, "corrupt_icrc") \
	X(CORRUPT_RANDOM, "corrupt") \
	X(TRUNCATE, "truncate") /* to arg bytes, 0: random */ \
	X(ECN, "ecn")

#endif
