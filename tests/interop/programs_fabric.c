/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RMA of libfabric with the data checked:
 *
 *	programs_fabric PROVIDER PORT [ADDRESS]
 *
 * Without ADDRESS it is the server. The client sends its name and gets the server's region, writes
 * to it, reads it back, compares, and says so; the server compares the bytes as well.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#define BYTES (1u << 20)
#define PIECE 65536u
#define ROUNDS 20u
#define NAME_ROOM 128u

struct message {
	uint8_t name[NAME_ROOM];
	uint64_t name_len, addr, key;
};

struct fabric {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_mr *mr;
	void *desc;
	fi_addr_t peer;
	struct {
		uint8_t data[BYTES], back[BYTES];
		struct message out, in;
	} * mem;
};

static void
fabric_die(const char *what, int rc)
{
	printf("%s: %s\n", what, fi_strerror(-rc));
	exit(1);
}

static void
fabric_good(const char *what, long rc)
{
	if (rc != 0)
		fabric_die(what, (int)rc);
}

#define GOOD(call) fabric_good(#call, call)

/* One completion; reading the queue drives the provider's progress. */
static void
fabric_wait(struct fabric *f)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry entry;
	ssize_t n;

	do
		n = fi_cq_read(f->cq, &entry, 1);
	while (n == -FI_EAGAIN);
	if (n == 1)
		return;
	if (n == -FI_EAVAIL && fi_cq_readerr(f->cq, &error, 0) == 1)
		fabric_die("completion", -error.err);
	fabric_die("fi_cq_read", (int)n);
}

/* A call that may find no room yet. */
#define POSTED(f, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			fi_cq_read((f)->cq, NULL, 0); \
		fabric_good(#call, rc_); \
	} while (0)

static void
fabric_open(struct fabric *f, const char *provider, const char *node, const char *port)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 256};
	struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	GOOD(fi_getinfo(FI_VERSION(1, 17), node, port, node == NULL ? FI_SOURCE : 0, hints,
			&f->info));
	GOOD(fi_fabric(f->info->fabric_attr, &f->fabric, NULL));
	GOOD(fi_domain(f->fabric, f->info, &f->domain, NULL));
	GOOD(fi_endpoint(f->domain, f->info, &f->ep, NULL));
	GOOD(fi_cq_open(f->domain, &cq, &f->cq, NULL));
	GOOD(fi_av_open(f->domain, &av, &f->av, NULL));
	GOOD(fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV));
	GOOD(fi_ep_bind(f->ep, &f->av->fid, 0));
	GOOD(fi_enable(f->ep));
	f->mem = aligned_alloc(4096, (sizeof(*f->mem) + 4095) / 4096 * 4096);
	if (f->mem == NULL)
		fabric_die("memory", -FI_ENOMEM);
	memset(f->mem, 0, sizeof(*f->mem));
	GOOD(fi_mr_reg(f->domain, f->mem, sizeof(*f->mem),
		       FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		       1, 0, &f->mr, NULL));
	f->desc = fi_mr_desc(f->mr);
}

static void
fabric_send(struct fabric *f)
{
	POSTED(f, fi_send(f->ep, &f->mem->out, sizeof(f->mem->out), f->desc, f->peer, NULL));
}

static void
fabric_recv(struct fabric *f)
{
	POSTED(f, fi_recv(f->ep, &f->mem->in, sizeof(f->mem->in), f->desc, FI_ADDR_UNSPEC, NULL));
}

static void
fabric_fill(uint8_t *bytes, uint32_t round)
{
	for (uint32_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)((i * 2654435761u + round * 40503u) >> 13);
}

static void
fabric_compare(const uint8_t *bytes, uint32_t round)
{
	static uint8_t expected[BYTES];

	fabric_fill(expected, round);
	for (uint32_t i = 0; i < BYTES; i++) {
		if (bytes[i] != expected[i]) {
			printf("byte %u of round %u differs\n", i, round);
			exit(1);
		}
	}
}

/* All pieces to the server's region, or from it. */
static void
client_move(struct fabric *f, int write)
{
	uint64_t addr = f->mem->in.addr, key = f->mem->in.key;

	for (uint32_t at = 0; at < BYTES; at += PIECE) {
		if (write)
			POSTED(f, fi_write(f->ep, f->mem->data + at, PIECE, f->desc, f->peer,
					   addr + at, key, NULL));
		else
			POSTED(f, fi_read(f->ep, f->mem->back + at, PIECE, f->desc, f->peer,
					  addr + at, key, NULL));
	}
	for (uint32_t at = 0; at < BYTES; at += PIECE)
		fabric_wait(f);
}

static void
client_run(struct fabric *f)
{
	size_t len = NAME_ROOM;

	if (fi_av_insert(f->av, f->info->dest_addr, 1, &f->peer, 0, NULL) != 1)
		fabric_die("fi_av_insert", -FI_EINVAL);
	GOOD(fi_getname(&f->ep->fid, f->mem->out.name, &len));
	f->mem->out.name_len = len;
	fabric_recv(f);
	fabric_send(f);
	fabric_wait(f);
	fabric_wait(f);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		fabric_fill(f->mem->data, round);
		client_move(f, 1);
		memset(f->mem->back, 0, BYTES);
		client_move(f, 0);
		fabric_compare(f->mem->back, round);
	}
	fabric_recv(f);
	fabric_send(f);
	fabric_wait(f);
	fabric_wait(f);
}

static void
server_run(struct fabric *f)
{
	fabric_recv(f);
	fabric_wait(f);
	if (fi_av_insert(f->av, f->mem->in.name, 1, &f->peer, 0, NULL) != 1)
		fabric_die("fi_av_insert", -FI_EINVAL);
	f->mem->out.addr =
		f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)f->mem->data : 0;
	f->mem->out.key = fi_mr_key(f->mr);
	fabric_recv(f);
	fabric_send(f);
	fabric_wait(f);
	fabric_wait(f);
	fabric_compare(f->mem->data, ROUNDS - 1);
	fabric_send(f);
	fabric_wait(f);
}

int
main(int argc, char **argv)
{
	static struct fabric f;

	if (argc < 3) {
		printf("usage: programs_fabric PROVIDER PORT [ADDRESS]\n");
		return 1;
	}
	fabric_open(&f, argv[1], argc > 3 ? argv[3] : NULL, argv[2]);
	if (argc > 3)
		client_run(&f);
	else
		server_run(&f);
	printf("%u MB compared\n", ROUNDS);
	fi_close(&f.ep->fid);
	return 0;
}
