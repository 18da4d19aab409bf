/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "fake_ibcm.h"

#define SECOND UINT64_C(1000000000)

struct ibcm cm;
sem_t ticked;

struct ibcm *
ibcm_create(const struct ibcm_config *config)
{
	cm = (struct ibcm){.cfg = *config, .deadline = IBCM_NEVER};
	return &cm;
}

static void
cm_send(uint32_t n)
{
	uint8_t mad[IBCM_MAD_BYTES];

	for (uint32_t i = 0; i < n; i++) {
		memset(mad, (int)(1 + i), sizeof(mad));
		cm.cfg.ops->send(cm.cfg.arg, &cm.to, mad);
	}
}

void
ibcm_destroy(struct ibcm *c, uint64_t now)
{
	cm_send(c->sends);
}

int
ibcm_call(struct ibcm *c, const struct ibcm_client *client, enum hca_ctl_op op, const void *request,
	  void *answer, uint64_t now, const char **why)
{
	c->op = op;
	c->owner = client->owner;
	c->user = client->user;
	cm_send(c->sends);
	if (c->wishes)
		c->cfg.ops->resolve(c->cfg.arg, 99, &c->wish);
	if (op == HCA_CTL_CM_CREATE) {
		c->cfg.ops->event(c->cfg.arg, client->owner,
				  ((const struct hca_ctl_cm_create *)request)->channel);
		*(uint32_t *)answer = 5;
		return 0;
	}
	*why = c->refusal != 0 ? c->why : "the test refuses it";
	return c->refusal != 0 ? c->refusal : -EADDRINUSE;
}

void
ibcm_forget(struct ibcm *c, uint32_t owner, uint64_t now)
{
	c->forgotten++;
	c->owner = owner;
}

void
ibcm_forget_channel(struct ibcm *c, uint32_t owner, uint32_t channel, uint64_t now)
{
	c->owner = owner;
	c->channel = channel;
}

void
ibcm_set_gid(struct ibcm *c, uint32_t index, const struct hca_ctl_gid *gid, uint64_t now)
{
	c->gids += gid->valid;
}

void
ibcm_resolved(struct ibcm *c, uint64_t ticket, int err, const struct ibcm_way *way, uint64_t now)
{
	c->resolved++;
	c->ticket = ticket;
	c->err = err;
	c->way = *way;
}

void
ibcm_input(struct ibcm *c, const struct ibcm_way *from, const uint8_t *mad, size_t len,
	   uint64_t now)
{
	assert_int_equal(len, IBCM_MAD_BYTES);
	c->from[c->inputs++ % INPUTS] = *from;
}

void
ibcm_dead(struct ibcm *c, uint64_t now)
{
	c->deaths++;
}

void
ibcm_tick(struct ibcm *c, uint64_t now)
{
	assert_true(now >= c->deadline);
	c->ticks++;
	c->deadline = IBCM_NEVER;
	sem_post(&ticked);
}

uint64_t
ibcm_deadline(const struct ibcm *c)
{
	return c->deadline;
}

const char *
ibcm_counter(const struct ibcm *c, uint32_t i, uint64_t *value)
{
	*value = 77;
	return i == 0 ? "req_received" : NULL;
}

unsigned int
ibcm_list(const struct ibcm *c, uint32_t from, struct ibcm_entry *out, unsigned int max)
{
	out[0] = (struct ibcm_entry){.index = 3, .since = SECOND / 2};
	return from <= 3 && max > 0;
}
