/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses and address handles. */

#include <errno.h>
#include <string.h>

#include "front.h"

int
front_path(const struct ibv_ah_attr *from, struct softhca_ah_attr *to, const char *call)
{
	const struct ibv_global_route *grh = &from->grh;

	if (from->is_global == 0)
		return front_refuse(
			EINVAL, call,
			"is_global 0: RoCE has no addresses without GRH; set is_global, dgid and "
			"sgid_index");
	*to = (struct softhca_ah_attr){
		.flow_label = grh->flow_label,
		.sgid_index = grh->sgid_index,
		.hop_limit = grh->hop_limit,
		.traffic_class = grh->traffic_class,
		.sl = from->sl,
		.static_rate = from->static_rate,
		.port_num = from->port_num,
		.is_global = 1,
	};
	memcpy(to->dgid.raw, grh->dgid.raw, sizeof(to->dgid.raw));
	return 0;
}

void
front_path_back(const struct softhca_ah_attr *from, struct ibv_ah_attr *to)
{
	*to = (struct ibv_ah_attr){
		.grh =
			{
				.flow_label = from->flow_label,
				.sgid_index = from->sgid_index,
				.hop_limit = from->hop_limit,
				.traffic_class = from->traffic_class,
			},
		.sl = from->sl,
		.static_rate = from->static_rate,
		.is_global = from->is_global,
		.port_num = from->port_num,
	};
	memcpy(to->grh.dgid.raw, from->dgid.raw, sizeof(to->grh.dgid.raw));
}

static int
ah_destroy(void *ah, const char *call)
{
	return front_result(softhca_destroy_ah(ah), call);
}

static const struct front_kind ah_kind = {"address handle", offsetof(struct ibv_ah, handle),
					  ah_destroy, NULL};

/* Address handles are those of libsofthca, with the context and the PD of verbs in them. */
struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	FRONT_FAULT(NULL);
	struct softhca_ah_attr request;
	struct ibv_ah *ah;

	if (front_pd_judge(pd, __func__) != 0 || front_path(attr, &request, __func__) != 0)
		return NULL;
	ah = (struct ibv_ah *)softhca_create_ah(front_pd_hca(pd), &request);
	if (ah == NULL)
		return FRONT_FAILED();
	ah->context = pd->context;
	ah->pd = pd;
	return FRONT_ENTER_PD(ah, &ah_kind, pd);
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	return FRONT_DESTROY(ah, &ah_kind);
}

int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
		    struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	struct softhca_ah_attr answer;
	int err = softhca_init_ah_from_wc(front_hca(context), port_num,
					  (const struct softhca_wc *)wc, grh, &answer);

	if (err != 0) {
		FRONT_RESULT(err);
		return -1;
	}
	front_path_back(&answer, ah_attr);
	return 0;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* The library resolves addresses itself, in address handles and QPs, and does not tell. */
int
ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
			    uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return FRONT_REFUSE(EOPNOTSUPP, "the device resolves addresses in create_ah and modify_qp");
}
