/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of an RC connection over an endpoint in this process: WRITEs a pattern into the peer's
 * memory and READs it back until it is told to stop. The test starts two of them and passes the
 * output of each to the other:
 *
 *  kernel_peer CONFIGURATION OWN-ADDRESS PEER-ADDRESS
 *  out: "here QPN PSN RKEY ADDRESS"   in: "there QPN PSN RKEY ADDRESS"
 *  out: "connected"                   in: "go"
 *  in: "count"                        out: "rounds N errors M"
 *  in: "stop"                         out: "done N errors M"
 *  in: "end"
 */

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <softhca/softhca.h>

#include "embed_ctl.h"
#include "endpoint_impl.h"

#define BYTES 65536u
#define CQES 16u
#define GIDS 256u

struct peer {
	struct endpoint *endpoint;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	uint8_t *out, *back, *target; /* BYTES each; the peer writes to target */
	uint8_t sgid_index;
	union softhca_gid to;
	uint32_t qpn, psn, rkey; /* of the other end */
	uint64_t address;
	unsigned long rounds, errors;
};

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "kernel_peer: %s: %s\n", what, softhca_last_error(NULL));
	exit(1);
}

static union softhca_gid
gid_of(const char *text)
{
	union softhca_gid g = {0};

	if (strchr(text, ':') != NULL) {
		if (inet_pton(AF_INET6, text, g.raw) != 1)
			die(text);
		return g;
	}
	g.raw[10] = g.raw[11] = 0xff;
	if (inet_pton(AF_INET, text, g.raw + 12) != 1)
		die(text);
	return g;
}

static void
find_own(struct peer *p, const char *text)
{
	union softhca_gid own = gid_of(text), g;

	for (uint32_t i = 0; i < GIDS && softhca_query_gid(p->ctx, 1, (int)i, &g) == 0; i++)
		if (memcmp(&g, &own, sizeof(g)) == 0) {
			p->sgid_index = (uint8_t)i;
			return;
		}
	die("the own address is no GID");
}

static void
make_objects(struct peer *p)
{
	const struct softhca_cq_init_attr ca = {.cqe = CQES};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
		.sq_sig_all = 1,
	};
	const uint32_t all = SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
			     SOFTHCA_ACCESS_REMOTE_READ;

	p->out = aligned_alloc(4096, 3 * BYTES);
	p->back = p->out + BYTES;
	p->target = p->back + BYTES;
	memset(p->out, 0, 3 * BYTES);
	p->pd = softhca_alloc_pd(p->ctx);
	p->cq = softhca_create_cq(p->ctx, &ca);
	if (p->pd == NULL || p->cq == NULL)
		die("objects");
	p->mr = softhca_reg_mr(p->pd, p->out, 3 * BYTES, all);
	qa.send_cq = qa.recv_cq = p->cq;
	p->qp = softhca_create_qp(p->pd, &qa);
	if (p->mr == NULL || p->qp == NULL)
		die("objects");
}

static void
to_init(struct peer *p)
{
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_INIT,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ,
		.port_num = 1,
	};

	if (softhca_modify_qp(p->qp, &a,
			      SOFTHCA_QP_STATE | SOFTHCA_QP_ACCESS_FLAGS | SOFTHCA_QP_PKEY_INDEX |
				      SOFTHCA_QP_PORT) != 0)
		die("INIT");
}

/* Also resolves the peer's MAC address. */
static void
connect_qp(struct peer *p)
{
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_RTR,
		.path_mtu = SOFTHCA_MTU_1024,
		.rq_psn = p->psn,
		.dest_qp_num = p->qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.dgid = p->to, .sgid_index = p->sgid_index, .port_num = 1},
	};

	if (softhca_modify_qp(p->qp, &a,
			      SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
				      SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
				      SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER) !=
	    0)
		die("RTR");
	a = (struct softhca_qp_attr){
		.qp_state = SOFTHCA_QPS_RTS,
		.sq_psn = p->qp->qp_num & 0xffff,
		.timeout = 16,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	if (softhca_modify_qp(p->qp, &a,
			      SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT |
				      SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
				      SOFTHCA_QP_MAX_QP_RD_ATOMIC) != 0)
		die("RTS");
}

static void
post(struct peer *p, uint32_t opcode, uint8_t *local)
{
	struct softhca_sge s = {(uintptr_t)local, BYTES, p->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &s,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = {p->address, p->rkey},
	};
	struct softhca_send_wr *bad;

	if (softhca_post_send(p->qp, &wr, &bad) != 0)
		die("post");
}

/* Write this round's pattern and read it back. */
static void
round_trip(struct peer *p)
{
	struct softhca_wc wc;

	for (uint32_t i = 0; i < BYTES; i += 8)
		memcpy(p->out + i, &(uint64_t){p->rounds * 0x9e3779b97f4a7c15ull + i}, 8);
	memset(p->back, 0, BYTES);
	post(p, SOFTHCA_WR_RDMA_WRITE, p->out);
	post(p, SOFTHCA_WR_RDMA_READ, p->back);
	for (int left = 2; left != 0;) {
		int n = softhca_poll_cq(p->cq, 1, &wc);

		if (n < 0)
			die("poll");
		if (n == 1 && wc.status != SOFTHCA_WC_SUCCESS)
			die(softhca_wc_status_str(wc.status));
		left -= n;
		if (n == 0)
			usleep(20);
	}
	p->errors += memcmp(p->out, p->back, BYTES) != 0;
	p->rounds++;
}

static void
say(const char *word, const struct peer *p)
{
	printf("%s %lu errors %lu\n", word, p->rounds, p->errors);
}

static void
run(struct peer *p)
{
	struct pollfd in = {.events = POLLIN};
	char word[16];

	for (;;) {
		if (poll(&in, 1, 0) > 0) {
			if (fgets(word, sizeof(word), stdin) == NULL || word[0] == 's')
				break;
			if (word[0] == 'c')
				say("rounds", p);
		}
		round_trip(p);
	}
	say("done", p);
}

int
main(int argc, char **argv)
{
	const struct embed_ctl_config cc = {.name = "peer"};
	static struct endpoint_config config;
	char line[128];
	struct peer p = {0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc != 4 || endpoint_config_load(&config, argv[1], stderr) != 0)
		return 2;
	if (endpoint_create(&config, &p.endpoint) != 0) {
		fprintf(stderr, "kernel_peer: %s\n", endpoint_reason());
		return 1;
	}
	if (embed_ctl_open(p.endpoint->drv, &cc, &p.ctx) != 0)
		die("context");
	find_own(&p, argv[2]);
	p.to = gid_of(argv[3]);
	make_objects(&p);
	to_init(&p);
	printf("here %u %u %u %llu\n", p.qp->qp_num, p.qp->qp_num & 0xffff, p.mr->rkey,
	       (unsigned long long)(uintptr_t)p.target);
	if (fgets(line, sizeof(line), stdin) == NULL ||
	    sscanf(line, "there %u %u %u %lu", &p.qpn, &p.psn, &p.rkey, &p.address) != 4)
		die("the other end");
	connect_qp(&p);
	printf("connected\n");
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 1;
	run(&p);
	if (fgets(line, sizeof(line), stdin) == NULL) /* both are done */
		return 1;
	softhca_close(p.ctx);
	endpoint_destroy(p.endpoint);
	free(p.out);
	return 0;
}
