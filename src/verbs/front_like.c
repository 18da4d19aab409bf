/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SOFTHCA_LIKE=mlx5: values that some programs expect of certain devices, and of no others. IDs of
 * a ConnectX-5, and in wc.sl of a datagram its kind, as those devices write it in place of a
 * service level on Ethernet: bit 3 for UDP, below it 1 for an IPv6 header and 2 for IPv4. UCX up to
 * 1.18 finds the address of a datagram by it; where it is 0 it takes an IPv4 header for IPv6, and
 * drops all.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

#define MLX5_VENDOR_ID 0x02c9u
#define MLX5_CONNECTX5 4119u
#define MLX5_SL_UDP 0x8u

_Static_assert(SOFTHCA_NETWORK_IPV6 == 1 && SOFTHCA_NETWORK_IPV4 == 2, "as mlx5 numbers them");

int
front_like(struct front_context *ctx, const char *call)
{
	const char *name = secure_getenv("SOFTHCA_LIKE");

	if (name == NULL || name[0] == '\0')
		return 0;
	if (strcmp(name, "mlx5") != 0)
		return front_refuse(EINVAL, call, "SOFTHCA_LIKE=%s: mlx5 is known", name);
	ctx->like_mlx5 = true;
	ctx->ex.context.ops.poll_cq = front_like_poll_cq;
	return 0;
}

void
front_like_device(const struct front_context *ctx, struct ibv_device_attr *attr)
{
	if (!ctx->like_mlx5)
		return;
	attr->vendor_id = MLX5_VENDOR_ID;
	attr->vendor_part_id = MLX5_CONNECTX5;
}

uint8_t
front_like_read_sl(struct ibv_cq_ex *pub)
{
	const struct softhca_cq *hca = ((struct front_cq *)pub)->hca;
	uint8_t network = softhca_wc_read_network(hca);

	return network != SOFTHCA_NETWORK_NONE ? (uint8_t)(MLX5_SL_UDP | network)
					       : softhca_wc_read_sl(hca);
}

static void
read_wc(struct front_cq *cq, struct ibv_wc *wc)
{
	const struct softhca_cq *hca = cq->hca;

	*wc = (struct ibv_wc){
		.wr_id = hca->wr_id,
		.status = (enum ibv_wc_status)hca->status,
		.opcode = (enum ibv_wc_opcode)softhca_wc_read_opcode(hca),
		.vendor_err = softhca_wc_read_vendor_err(hca),
		.byte_len = softhca_wc_read_byte_len(hca),
		.imm_data = softhca_wc_read_imm_data(hca),
		.qp_num = softhca_wc_read_qp_num(hca),
		.src_qp = softhca_wc_read_src_qp(hca),
		.wc_flags = softhca_wc_read_wc_flags(hca),
		.pkey_index = softhca_wc_read_pkey_index(hca),
		.sl = front_like_read_sl(&cq->pub),
	};
}

/* A completion of softhca_poll_cq() does not tell the kind of a datagram: each is read. */
int
front_like_poll_cq(struct ibv_cq *pub, int num_entries, struct ibv_wc *wc)
{
	struct front_cq *cq = (struct front_cq *)(void *)pub;
	int got = 0, err;

	if (num_entries <= 0)
		return front_poll_cq(pub, num_entries, wc);
	err = softhca_start_poll(cq->hca);
	if (err == -ENOENT)
		return 0;
	if (err != 0)
		return -front_result(err, "ibv_poll_cq");
	do
		read_wc(cq, &wc[got++]);
	while (got < num_entries && softhca_next_poll(cq->hca) == 0);
	softhca_end_poll(cq->hca);
	return got;
}
