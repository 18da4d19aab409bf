/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls of connection management that name an id: the daemon carries them out. */

#include <errno.h>
#include <string.h>

#include "abi_roce.h"
#include "lib_cm.h"

int
softhca_cm_bind(struct softhca_cm_id *pub, const struct sockaddr *addr, unsigned int flags)
{
	struct hca_ctl_cm_bind request = {.id = lib_cm_id(pub)->number, .flags = flags};
	struct hca_ctl_cm_bound bound;
	int err;

	_Static_assert(SOFTHCA_CM_REUSEADDR == HCA_CTL_CM_REUSE &&
			       SOFTHCA_CM_AFONLY == HCA_CTL_CM_AF_ONLY,
		       "flags");
	if (addr == NULL)
		return lib_fail(
			-EINVAL,
			"addr of id %u is NULL: bind to an address of the HCA, or to the wildcard "
			"of a family",
			request.id);
	if ((flags & ~(SOFTHCA_CM_REUSEADDR | SOFTHCA_CM_AFONLY)) != 0)
		return lib_fail(-EINVAL, "bind flags %#x: expected a set of %#x", flags,
				SOFTHCA_CM_REUSEADDR | SOFTHCA_CM_AFONLY);
	err = lib_cm_from_sockaddr(lib_cm_ctx(pub), addr, &request.addr, &request.service);
	return err != 0 ? err : LIB_CALL(lib_cm_ctx(pub), CM_BIND, &request, &bound);
}

static int
cm_judge_timeout(int timeout_ms)
{
	return timeout_ms >= 0
		       ? 0
		       : lib_fail(-EINVAL, "timeout of %d ms: expected 0 or more", timeout_ms);
}

int
softhca_cm_resolve_addr(struct softhca_cm_id *pub, const struct sockaddr *src,
			const struct sockaddr *dst, int timeout_ms)
{
	struct hca_ctl_cm_resolve request = {
		.id = lib_cm_id(pub)->number,
		.timeout_ms = (uint32_t)timeout_ms,
	};
	struct lib_context *ctx = lib_cm_ctx(pub);
	int err = cm_judge_timeout(timeout_ms);

	if (err == 0 && dst == NULL)
		err = lib_fail(-EINVAL, "dst of id %u is NULL: expected the address of the peer",
			       request.id);
	if (err == 0)
		err = lib_cm_from_sockaddr(ctx, src, &request.src, &request.src_service);
	if (err == 0)
		err = lib_cm_from_sockaddr(ctx, dst, &request.dst, &request.dst_service);
	return err != 0 ? err : LIB_CALL(ctx, CM_RESOLVE, &request, NULL);
}

int
softhca_cm_resolve_route(struct softhca_cm_id *pub, int timeout_ms)
{
	struct hca_ctl_cm_route request = {
		.id = lib_cm_id(pub)->number,
		.timeout_ms = (uint32_t)timeout_ms,
	};
	int err = cm_judge_timeout(timeout_ms);

	return err != 0 ? err : LIB_CALL(lib_cm_ctx(pub), CM_ROUTE, &request, NULL);
}

int
softhca_cm_listen(struct softhca_cm_id *pub, int backlog)
{
	struct hca_ctl_cm_listen request = {
		.id = lib_cm_id(pub)->number,
		.backlog = backlog > 0 ? (uint32_t)backlog : 0,
	};

	return LIB_CALL(lib_cm_ctx(pub), CM_LISTEN, &request, NULL);
}

/* Copy private data into a request. */
static int
cm_private(const void *data, uint32_t len, uint8_t to[HCA_CTL_CM_PRIVATE_MAX])
{
	if (len > HCA_CTL_CM_PRIVATE_MAX)
		return lib_fail(-EINVAL, "%u bytes of private data: there are at most %u", len,
				HCA_CTL_CM_PRIVATE_MAX);
	if (len != 0 && data == NULL)
		return lib_fail(
			-EINVAL,
			"%u bytes of private data at NULL: expected 0 bytes, or their address",
			len);
	if (len != 0)
		memcpy(to, data, len);
	return 0;
}

static int
cm_fill_param(struct softhca_cm_id *pub, const struct softhca_cm_param *from,
	      struct hca_ctl_cm_param *to)
{
	if (from->retry_count > HCA_RETRY_MAX)
		return lib_fail(-EINVAL, "retry_count %u: at most %u", from->retry_count,
				HCA_RETRY_MAX);
	if (from->rnr_retry_count > HCA_RNR_RETRY_FOREVER)
		return lib_fail(-EINVAL, "rnr_retry_count %u: at most %u", from->rnr_retry_count,
				HCA_RNR_RETRY_FOREVER);
	*to = (struct hca_ctl_cm_param){
		.id = lib_cm_id(pub)->number,
		.qpn = from->qp_num,
		.qkey = from->qkey,
		.sidr_status = from->sidr_status,
		.ece_vendor = from->ece_vendor,
		.ece_options = from->ece_options,
		.srq = from->srq,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = from->retry_count,
		.rnr_retry_count = from->rnr_retry_count,
		.private_len = from->private_data_len,
		.valid = 1,
	};
	return cm_private(from->private_data, from->private_data_len, to->private);
}

int
softhca_cm_connect(struct softhca_cm_id *pub, const struct softhca_cm_param *param)
{
	struct hca_ctl_cm_param request;
	int err = cm_fill_param(pub, param, &request);

	return err != 0 ? err : LIB_CALL(lib_cm_ctx(pub), CM_CONNECT, &request, NULL);
}

int
softhca_cm_accept(struct softhca_cm_id *pub, const struct softhca_cm_param *param)
{
	struct hca_ctl_cm_param request;
	int err = cm_fill_param(pub, param, &request);

	return err != 0 ? err : LIB_CALL(lib_cm_ctx(pub), CM_ACCEPT, &request, NULL);
}

int
softhca_cm_establish(struct softhca_cm_id *pub)
{
	struct hca_ctl_cm_param request = {.id = lib_cm_id(pub)->number};

	return LIB_CALL(lib_cm_ctx(pub), CM_ACCEPT, &request, NULL);
}

int
softhca_cm_reject(struct softhca_cm_id *pub, uint8_t reason, const void *data, uint8_t len)
{
	struct hca_ctl_cm_reject request = {
		.id = lib_cm_id(pub)->number,
		.reason = reason,
		.private_len = len,
	};
	int err = cm_private(data, len, request.private);

	return err != 0 ? err : LIB_CALL(lib_cm_ctx(pub), CM_REJECT, &request, NULL);
}

int
softhca_cm_disconnect(struct softhca_cm_id *pub)
{
	return LIB_CALL(lib_cm_ctx(pub), CM_DISCONNECT, &lib_cm_id(pub)->number, NULL);
}

int
softhca_cm_notify(struct softhca_cm_id *pub, uint32_t event)
{
	struct hca_ctl_cm_notify request = {.id = lib_cm_id(pub)->number};

	switch (event) {
	case SOFTHCA_EVENT_COMM_EST:
		request.event = HCA_EVENT_COMM_EST;
		break;
	case SOFTHCA_EVENT_PATH_MIG:
		request.event = HCA_EVENT_PATH_MIG;
		break;
	default:
		return lib_fail(-EINVAL,
				"event %u (%s) is not an event of connections: expected COMM_EST",
				event, softhca_event_type_str(event));
	}
	return LIB_CALL(lib_cm_ctx(pub), CM_NOTIFY, &request, NULL);
}

int
softhca_cm_set_option(struct softhca_cm_id *pub, enum softhca_cm_option option, uint32_t value)
{
	struct hca_ctl_cm_option request = {
		.id = lib_cm_id(pub)->number,
		.option = option,
		.value = value,
	};

	_Static_assert((int)SOFTHCA_CM_OPTION_TOS == (int)HCA_CTL_CM_OPTION_TOS &&
			       (int)SOFTHCA_CM_OPTION_REUSEADDR == (int)HCA_CTL_CM_OPTION_REUSE &&
			       (int)SOFTHCA_CM_OPTION_AFONLY == (int)HCA_CTL_CM_OPTION_AF_ONLY &&
			       (int)SOFTHCA_CM_OPTION_ACK_TIMEOUT ==
				       (int)HCA_CTL_CM_OPTION_ACK_TIMEOUT,
		       "options");
	return LIB_CALL(lib_cm_ctx(pub), CM_OPTION, &request, NULL);
}

int
softhca_cm_join(struct softhca_cm_id *pub, const struct sockaddr *addr, unsigned int flags,
		uint32_t *group)
{
	struct hca_ctl_cm_join request = {.id = lib_cm_id(pub)->number, .flags = flags};
	struct hca_ctl_cm_service none;
	int err;

	if (addr == NULL)
		return lib_fail(-EINVAL,
				"addr of id %u is NULL: expected the address of a multicast group",
				request.id);
	if ((flags & ~SOFTHCA_CM_SEND_ONLY) != 0)
		return lib_fail(-EINVAL, "join flags %#x: expected 0 or %#x", flags,
				SOFTHCA_CM_SEND_ONLY);
	err = lib_cm_from_sockaddr(lib_cm_ctx(pub), addr, &request.addr, &none);
	return err != 0 ? err : LIB_CALL(lib_cm_ctx(pub), CM_JOIN, &request, group);
}

int
softhca_cm_leave(struct softhca_cm_id *pub, uint32_t group)
{
	return LIB_CALL(lib_cm_ctx(pub), CM_LEAVE, &group, NULL);
}

/* The GID of the address of a host; the wildcard of a listener has none */
static void
cm_fill_gid(const struct hca_ctl_cm_addr *addr, bool is, union softhca_gid *gid)
{
	if (is && addr->family != HCA_CTL_CM_NONE)
		memcpy(gid->raw, addr->gid, sizeof(gid->raw));
}

static void
cm_fill_addr(const struct hca_ctl_cm_info *answer, const struct hca_ctl_cm_addr *from,
	     uint64_t service_id, struct sockaddr_storage *to)
{
	const struct hca_ctl_cm_service service = {
		.id = service_id,
		.mask = service_id != 0 ? UINT64_MAX : 0,
		.pkey = answer->pkey,
	};

	lib_cm_to_sockaddr(from, &service, to);
}

int
softhca_cm_query(struct softhca_cm_id *pub, struct softhca_cm_info *info)
{
	struct hca_ctl_cm_info answer;
	int err = LIB_CALL(lib_cm_ctx(pub), CM_QUERY, &lib_cm_id(pub)->number, &answer);

	if (err != 0)
		return err;
	*info = (struct softhca_cm_info){
		.service_id = answer.service_id,
		.state = answer.state,
		.sgid_index = -1,
		.path_mtu = answer.mtu,
		.vlan_id = answer.vlan_id,
		.pkey = answer.pkey,
		.port_num = 1,
	};
	if (answer.gid_index != HCA_CTL_CM_NO_GID)
		info->sgid_index = (int32_t)answer.gid_index;
	cm_fill_addr(&answer, &answer.src, answer.src_service_id, &info->src);
	cm_fill_addr(&answer, &answer.dst, answer.dst_service_id, &info->dst);
	cm_fill_gid(&answer.src, info->sgid_index >= 0, &info->sgid);
	cm_fill_gid(&answer.dst, true, &info->dgid);
	memcpy(info->smac, answer.smac, sizeof(info->smac));
	memcpy(info->dmac, answer.dmac, sizeof(info->dmac));
	return 0;
}
