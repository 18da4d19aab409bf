/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_MW_RIG_H
#define SIM_MW_RIG_H

/*
 * Two HCAs for tests of regions, windows and access rights: side 1 owns the memory, side 0 accesses
 * it. Every operation waits for its completion. Failures end the run and print the seed.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "sim_test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES 65536u
#define LW SOFTHCA_ACCESS_LOCAL_WRITE
#define WR SOFTHCA_ACCESS_REMOTE_WRITE
#define RD SOFTHCA_ACCESS_REMOTE_READ
#define AT SOFTHCA_ACCESS_REMOTE_ATOMIC
#define BIND SOFTHCA_ACCESS_MW_BIND
#define ZERO SOFTHCA_ACCESS_ZERO_BASED
#define SIGNAL SOFTHCA_SEND_SIGNALED

/*
 * Side 1 owns the memory and the windows, side 0 accesses them. The rig, not the model, polls the
 * CQs.
 */
struct rig {
	struct sim *s;
	struct sim_pair *p;
	uint8_t *mem, *local;
	struct softhca_mr *mr, *local_mr;
	struct softhca_wc wc;
	unsigned int side; /* the side whose CQ done() polls */
};

uint8_t *memory(struct rig *r, size_t n);

struct softhca_mr *region(struct rig *r, unsigned int side, uint8_t *mem, uint32_t access);

/* Nothing is lost unless a test says so; on a busy machine real threads are slow. */
static const struct sim_pair_attr patient = {.timeout = 18};

void rig_open(struct rig *r, const struct sim_config *cfg, const struct sim_pair_attr *attr);

void rig_close(struct rig *r);

bool done(struct sim *s, void *arg);

uint32_t wait_for(struct rig *r, unsigned int side);

void post_on(struct rig *r, struct softhca_qp *qp, struct softhca_send_wr *wr);

/* Post a request on a side and return the status of its completion. */
uint32_t perform(struct rig *r, unsigned int side, struct softhca_send_wr wr);

uint32_t rdma(struct rig *r, uint32_t opcode, uint64_t va, uint32_t rkey, uint32_t len);

uint32_t put(struct rig *r, uint64_t va, uint32_t rkey, uint32_t len, uint8_t value);

bool holds(const uint8_t *p, uint32_t n, uint8_t value);

uint64_t va_of(const struct rig *r, uint32_t off);

void expect(struct rig *r, uint32_t got, uint32_t status, const char *what);

struct softhca_mw *window(struct rig *r, uint32_t type);

uint32_t bind1(struct rig *r, struct softhca_mw *mw, uint32_t off, uint32_t len, uint32_t access);

struct softhca_send_wr bind_wr(struct rig *r, struct softhca_mw *mw, uint32_t off, uint32_t len,
			       uint32_t access);

uint32_t bind2(struct rig *r, struct softhca_mw *mw, uint32_t off, uint32_t len, uint32_t access);

uint32_t invalidate(struct rig *r, uint32_t key);

void reset(struct rig *r);

#endif
