/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection management: requests of the calls to the daemon, and its answers. */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cm.h"
#include "lib_rig.h"

const struct rig_wanted rig_wanted = {0}; /* no QP */

static struct softhca_cm_channel *channel;
static struct softhca_cm_id *id;

static int
setup(void **state)
{
	rig_setup(state);
	fake_cm_begin(fake);
	channel = softhca_cm_create_channel(ctx);
	assert_non_null(channel);
	id = softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, &fake);
	assert_non_null(id);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(softhca_cm_destroy_channel(channel), 0);
	assert_int_equal(fake_cm.ids, 0);
	return rig_teardown(state);
}

static struct sockaddr_storage
address(const char *text, uint16_t port)
{
	struct sockaddr_storage addr = {0};
	struct sockaddr_in *ip4 = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&addr;

	if (strchr(text, ':') == NULL) {
		ip4->sin_family = AF_INET;
		ip4->sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, text, &ip4->sin_addr), 1);
	} else {
		ip6->sin6_family = AF_INET6;
		ip6->sin6_port = htons(port);
		ip6->sin6_scope_id = 3;
		assert_int_equal(inet_pton(AF_INET6, text, &ip6->sin6_addr), 1);
	}
	return addr;
}

/* One of the last four that were made */
static const struct sockaddr *
sa(const char *text, uint16_t port)
{
	static struct sockaddr_storage addrs[4];
	static uint32_t n;
	struct sockaddr_storage *addr = &addrs[n++ % 4];

	*addr = address(text, port);
	return (const struct sockaddr *)addr;
}

static void
assert_addr(const struct hca_ctl_cm_addr *addr, const char *gid, uint32_t family, uint32_t port)
{
	uint8_t raw[16];

	assert_int_equal(inet_pton(AF_INET6, gid, raw), 1);
	assert_memory_equal(addr->gid, raw, 16);
	assert_int_equal(addr->family, family);
	assert_int_equal(addr->port, port);
	assert_int_equal(addr->scope, family == HCA_CTL_CM_IP6 ? 3 : 0);
}

/* A daemon, or an HCA, that has no connection management: nothing is left. */
static void
absent(void **state)
{
	struct softhca_cm_channel *second;
	uint32_t objects = fake->objects;

	fake_cm.fail = -EOPNOTSUPP;
	errno = 0;
	second = softhca_cm_create_channel(ctx);
	assert_null(second);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_string_equal(softhca_last_error(ctx), "the fake says no");
	assert_int_equal(fake->objects, objects);
	assert_null(softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	fake_cm.fail = 0;
}

static void
create(void **state)
{
	struct softhca_cm_id *udp =
		softhca_cm_create_id(channel, SOFTHCA_CM_UDP, SOFTHCA_QPT_UD, NULL);

	assert_non_null(udp);
	assert_int_equal(fake_cm.create.channel, 1);
	assert_int_equal(fake_cm.create.space, HCA_CTL_CM_SPACE_UDP);
	assert_int_equal(fake_cm.create.service, HCA_ST_UD);
	assert_int_equal(udp->space, SOFTHCA_CM_UDP);
	assert_ptr_equal(udp->channel, channel);
	assert_ptr_equal(id->user, &fake);
	assert_int_not_equal(udp->number, id->number);
	assert_int_equal(softhca_cm_destroy_id(udp), 0);
	assert_int_equal(fake_cm.ids, 1);
	errno = 0;
	assert_null(softhca_cm_create_id(channel, SOFTHCA_CM_TCP, (enum softhca_qp_type)77, NULL));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "77"));
	assert_int_equal(fake_cm.ids, 1);
}

static void
bind_addresses(void **state)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};

	assert_int_equal(softhca_cm_bind(id, sa("192.0.2.7", 7471), 0), 0);
	assert_addr(&fake_cm.bind.addr, "::ffff:192.0.2.7", HCA_CTL_CM_IP4, 7471);
	assert_int_equal(fake_cm.bind.id, id->number);
	assert_int_equal(fake_cm.bind.flags, 0);
	assert_int_equal(softhca_cm_bind(id, sa("fe80::1", 65535),
					 SOFTHCA_CM_REUSEADDR | SOFTHCA_CM_AFONLY),
			 0);
	assert_addr(&fake_cm.bind.addr, "fe80::1", HCA_CTL_CM_IP6, 65535);
	assert_int_equal(fake_cm.bind.flags, HCA_CTL_CM_REUSE | HCA_CTL_CM_AF_ONLY);
	assert_int_equal(softhca_cm_bind(id, sa("0.0.0.0", 0), 0), 0);
	assert_addr(&fake_cm.bind.addr, "::ffff:0.0.0.0", HCA_CTL_CM_IP4, 0);
	assert_int_equal(softhca_cm_bind(id, sa("::", 1), 0), 0);
	assert_addr(&fake_cm.bind.addr, "::", HCA_CTL_CM_IP6, 1);
	/* a mapped address is one of IPv4 */
	assert_int_equal(softhca_cm_bind(id, sa("::ffff:192.0.2.8", 2), 0), 0);
	assert_addr(&fake_cm.bind.addr, "::ffff:192.0.2.8", HCA_CTL_CM_IP4, 2);

	assert_int_equal(softhca_cm_bind(id, (const struct sockaddr *)&local, 0), -EAFNOSUPPORT);
	assert_non_null(strstr(softhca_last_error(ctx), "family 1"));
	assert_int_equal(softhca_cm_bind(id, NULL, 0), -EINVAL);
	assert_int_equal(softhca_cm_bind(id, sa("::", 1), 4), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "0x4"));
}

static void
resolve(void **state)
{
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, sa("192.0.2.9", 80), 2000), 0);
	assert_int_equal(fake_cm.resolve.src.family, HCA_CTL_CM_NONE);
	assert_addr(&fake_cm.resolve.dst, "::ffff:192.0.2.9", HCA_CTL_CM_IP4, 80);
	assert_int_equal(fake_cm.resolve.id, id->number);
	assert_int_equal(fake_cm.resolve.timeout_ms, 2000);
	assert_int_equal(
		softhca_cm_resolve_addr(id, sa("2001:db8::1", 0), sa("2001:db8::2", 81), 1), 0);
	assert_addr(&fake_cm.resolve.src, "2001:db8::1", HCA_CTL_CM_IP6, 0);
	assert_addr(&fake_cm.resolve.dst, "2001:db8::2", HCA_CTL_CM_IP6, 81);
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, NULL, 1), -EINVAL);
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, sa("::1", 1), -5), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "-5 ms"));
	assert_int_equal(softhca_cm_resolve_route(id, 300), 0);
	assert_int_equal(fake_cm.route.timeout_ms, 300);
	assert_int_equal(softhca_cm_resolve_route(id, -1), -EINVAL);
}

static void
assert_param(const struct hca_ctl_cm_param *p)
{
	assert_int_equal(p->id, id->number);
	assert_int_equal(p->qpn, 0x123456);
	assert_int_equal(p->qkey, 0x11111111);
	assert_int_equal(p->sidr_status, 5);
	assert_int_equal(p->ece_vendor, 6);
	assert_int_equal(p->ece_options, 7);
	assert_int_equal(p->srq, 1);
	assert_int_equal(p->responder_resources, 16);
	assert_int_equal(p->initiator_depth, 8);
	assert_int_equal(p->flow_control, 1);
	assert_int_equal(p->retry_count, 7);
	assert_int_equal(p->rnr_retry_count, 6);
	assert_int_equal(p->private_len, 5);
	assert_int_equal(p->valid, 1);
	assert_memory_equal(p->private, "hello\0\0", 7);
}

static void
connection(void **state)
{
	uint8_t many[255] = {1};
	struct softhca_cm_param param = {
		.private_data = "hello",
		.private_data_len = 5,
		.responder_resources = 16,
		.initiator_depth = 8,
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.srq = 1,
		.qp_num = 0x123456,
		.qkey = 0x11111111,
		.sidr_status = 5,
		.ece_vendor = 6,
		.ece_options = 7,
	};

	assert_int_equal(softhca_cm_listen(id, 9), 0);
	assert_int_equal(fake_cm.listen.backlog, 9);
	assert_int_equal(softhca_cm_listen(id, -1), 0);
	assert_int_equal(fake_cm.listen.backlog, 0);
	assert_int_equal(softhca_cm_connect(id, &param), 0);
	assert_param(&fake_cm.connect);
	assert_int_equal(softhca_cm_accept(id, &param), 0);
	assert_param(&fake_cm.accept);
	assert_int_equal(softhca_cm_establish(id), 0);
	assert_int_equal(fake_cm.accept.id, id->number);
	assert_int_equal(fake_cm.accept.valid, 0);
	assert_int_equal(softhca_cm_reject(id, 28, "no", 2), 0);
	assert_int_equal(fake_cm.reject.reason, 28);
	assert_int_equal(fake_cm.reject.private_len, 2);
	assert_memory_equal(fake_cm.reject.private, "no", 2);
	assert_int_equal(softhca_cm_disconnect(id), 0);
	assert_int_equal(fake_cm.disconnected, id->number);

	param.private_data = many;
	param.private_data_len = sizeof(many);
	assert_int_equal(softhca_cm_connect(id, &param), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "255"));
	param.private_data = NULL;
	param.private_data_len = 1;
	assert_int_equal(softhca_cm_accept(id, &param), -EINVAL);
	param.private_data_len = 0;
	param.retry_count = 8;
	assert_int_equal(softhca_cm_connect(id, &param), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "retry_count 8"));
	param.retry_count = 0;
	param.rnr_retry_count = 9;
	assert_int_equal(softhca_cm_accept(id, &param), -EINVAL);
	assert_int_equal(softhca_cm_reject(id, 28, NULL, 1), -EINVAL);
}

static void
options(void **state)
{
	uint32_t group = 0;

	assert_int_equal(softhca_cm_set_option(id, SOFTHCA_CM_OPTION_TOS, 32), 0);
	assert_int_equal(fake_cm.option.option, HCA_CTL_CM_OPTION_TOS);
	assert_int_equal(fake_cm.option.value, 32);
	assert_int_equal(softhca_cm_notify(id, SOFTHCA_EVENT_COMM_EST), 0);
	assert_int_equal(fake_cm.notify.event, HCA_EVENT_COMM_EST);
	assert_int_equal(softhca_cm_notify(id, SOFTHCA_EVENT_PATH_MIG), 0);
	assert_int_equal(fake_cm.notify.event, HCA_EVENT_PATH_MIG);
	assert_int_equal(softhca_cm_notify(id, SOFTHCA_EVENT_CQ_ERR), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "CQ error"));
	assert_int_equal(softhca_cm_join(id, sa("239.1.2.3", 0), SOFTHCA_CM_SEND_ONLY, &group), 0);
	assert_int_equal(group, 77);
	assert_int_equal(fake_cm.join.flags, 1);
	assert_addr(&fake_cm.join.addr, "::ffff:239.1.2.3", HCA_CTL_CM_IP4, 0);
	assert_int_equal(softhca_cm_join(id, sa("239.1.2.3", 0), 2, &group), -EINVAL);
	assert_int_equal(softhca_cm_join(id, NULL, 0, &group), -EINVAL);
	assert_int_equal(softhca_cm_leave(id, group), 0);
	assert_int_equal(fake_cm.left, 77);
}

static void
set_addr(struct hca_ctl_cm_addr *addr, const char *gid, uint16_t family, uint16_t port)
{
	assert_int_equal(inet_pton(AF_INET6, gid, addr->gid), 1);
	addr->family = family;
	addr->port = port;
	addr->scope = family == HCA_CTL_CM_IP6 ? 3 : 0;
}

static void
query(void **state)
{
	struct sockaddr_storage src = address("192.0.2.7", 7471), dst = address("2001:db8::2", 80);
	struct softhca_cm_info info;

	fake_cm.info = (struct hca_ctl_cm_info){
		.service_id = 0x0106000000001d2f,
		.state = HCA_CTL_CM_ESTABLISHED,
		.gid_index = 2,
		.mtu = 5,
		.vlan_id = 100,
		.pkey = 0xffff,
		.dmac = {1, 2, 3, 4, 5, 6},
		.smac = {6, 5, 4, 3, 2, 1},
	};
	set_addr(&fake_cm.info.src, "::ffff:192.0.2.7", HCA_CTL_CM_IP4, 7471);
	set_addr(&fake_cm.info.dst, "2001:db8::2", HCA_CTL_CM_IP6, 80);
	assert_int_equal(softhca_cm_query(id, &info), 0);
	assert_memory_equal(&info.src, &src, sizeof(src));
	assert_memory_equal(&info.dst, &dst, sizeof(dst));
	assert_memory_equal(info.sgid.raw, fake_cm.info.src.gid, 16);
	assert_memory_equal(info.dgid.raw, fake_cm.info.dst.gid, 16);
	assert_memory_equal(info.dmac, fake_cm.info.dmac, 6);
	assert_memory_equal(info.smac, fake_cm.info.smac, 6);
	assert_int_equal(info.service_id, fake_cm.info.service_id);
	assert_int_equal(info.sgid_index, 2);
	assert_int_equal(info.path_mtu, SOFTHCA_MTU_4096);
	assert_int_equal(info.vlan_id, 100);
	assert_int_equal(info.port_num, 1);
	assert_string_equal(softhca_cm_state_str(info.state), "ESTABLISHED");

	fake_cm.info = (struct hca_ctl_cm_info){.gid_index = HCA_CTL_CM_NO_GID};
	assert_int_equal(softhca_cm_query(id, &info), 0);
	assert_int_equal(info.src.ss_family, 0);
	assert_int_equal(info.dst.ss_family, 0);
	assert_int_equal(info.sgid_index, -1);
	assert_string_equal(softhca_cm_state_str(info.state), "IDLE");
	assert_string_equal(softhca_cm_state_str(1000), "unknown");
	assert_string_equal(softhca_cm_event_str(SOFTHCA_CM_TIMEWAIT_EXIT), "TIMEWAIT_EXIT");
	assert_string_equal(softhca_cm_event_str(16), "unknown");
}

/* ---- AF_IB ---- */

static const struct softhca_sockaddr_ib ib_address = {
	.sib_family = AF_IB,
	.sib_pkey = 0xff7f, /* 0x7fff */
	.sib_addr = {0xfe, 0x80, [15] = 9},
	.sib_sid = UINT64_C(0x2f1d060100000000), /* 0x0106_1d2f */
	.sib_sid_mask = UINT64_MAX,
	.sib_scope_id = 4,
};

static void
assert_ib(const struct hca_ctl_cm_addr *addr, const struct hca_ctl_cm_service *service)
{
	assert_memory_equal(addr->gid, ib_address.sib_addr, 16);
	assert_int_equal(addr->family, HCA_CTL_CM_IB);
	assert_int_equal(addr->port, 0x1d2f);
	assert_int_equal(addr->scope, 4);
	assert_int_equal(service->id, 0x01061d2f);
	assert_int_equal(service->mask, UINT64_MAX);
	assert_int_equal(service->pkey, 0x7fff);
}

static void
ib_addresses(void **state)
{
	const struct sockaddr *addr = (const struct sockaddr *)&ib_address;
	struct softhca_sockaddr_ib half = ib_address, told;
	struct softhca_cm_info info;
	uint32_t group;

	assert_int_equal(softhca_cm_bind(id, addr, 0), 0);
	assert_ib(&fake_cm.bind.addr, &fake_cm.bind.service);
	assert_int_equal(softhca_cm_resolve_addr(id, addr, addr, 1), 0);
	assert_ib(&fake_cm.resolve.src, &fake_cm.resolve.src_service);
	assert_ib(&fake_cm.resolve.dst, &fake_cm.resolve.dst_service);
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, addr, 1), 0);
	assert_int_equal(fake_cm.resolve.src.family, HCA_CTL_CM_NONE);
	assert_int_equal(fake_cm.resolve.src_service.id, 0);
	assert_int_equal(softhca_cm_join(id, addr, 0, &group), 0);
	assert_int_equal(fake_cm.join.addr.family, HCA_CTL_CM_IB);
	/* the port is one only where the mask says so */
	half.sib_sid_mask = htobe64(UINT64_C(0xffffffffffff0000));
	assert_int_equal(softhca_cm_bind(id, (const struct sockaddr *)&half, 0), 0);
	assert_int_equal(fake_cm.bind.addr.port, 0);
	fake_cm.info = (struct hca_ctl_cm_info){
		.src = fake_cm.resolve.dst,
		.dst = fake_cm.resolve.dst,
		.src_service_id = 0x01061d2f,
		.pkey = 0x7fff,
	};
	assert_int_equal(softhca_cm_query(id, &info), 0);
	assert_memory_equal(&info.src, &ib_address, sizeof(ib_address));
	memcpy(&told, &info.dst, sizeof(told));
	assert_int_equal(told.sib_family, AF_IB);
	assert_int_equal(told.sib_sid, 0); /* of the peer of a listener it is not known */
	assert_int_equal(told.sib_sid_mask, 0);
}

/* A daemon without the family gets no request; IP addresses go on. */
static void
ib_of_older_daemon(void **state)
{
	const struct sockaddr *addr = (const struct sockaddr *)&ib_address;
	uint32_t *features = &((struct lib_context *)ctx)->features, group = 0;
	uint32_t had = *features;

	*features &= ~(uint32_t)HCA_CTL_FEATURE_CM_IB;
	memset(&fake_cm.bind, 0, sizeof(fake_cm.bind));
	assert_int_equal(softhca_cm_bind(id, addr, 0), -EOPNOTSUPP);
	assert_non_null(strstr(softhca_last_error(ctx), "AF_IB"));
	assert_non_null(strstr(softhca_last_error(ctx), "upgrade the daemon"));
	assert_int_equal(fake_cm.bind.id, 0);
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, addr, 1), -EOPNOTSUPP);
	assert_int_equal(softhca_cm_join(id, addr, 0, &group), -EOPNOTSUPP);
	assert_int_equal(softhca_cm_bind(id, sa("192.0.2.7", 7471), 0), 0);
	*features = had;
}

#define INIT_MASK (SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS)

static void
qp_attributes(void **state)
{
	struct softhca_qp_attr attr;
	uint32_t mask;

	fake_cm.attr = (struct hca_ctl_cm_attr){
		.mask = SOFTHCA_QP_AV | SOFTHCA_QP_DEST_QPN,
		.path_mtu = 4,
		.qkey = 1,
		.rq_psn = 2,
		.sq_psn = 3,
		.dest_qpn = 4,
		.access = SOFTHCA_ACCESS_REMOTE_WRITE,
		.gid_index = 5,
		.flow_label = 6,
		.dgid = {7},
		.hop_limit = 8,
		.traffic_class = 9,
		.sl = 1,
		.max_rd_atomic = 11,
		.max_dest_rd_atomic = 12,
		.min_rnr_timer = 13,
		.timeout = 14,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.pkey_index = 0,
	};
	assert_int_equal(softhca_cm_init_qp_attr(id, SOFTHCA_QPS_RTR, &attr, &mask), 0);
	assert_int_equal(mask, SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_DEST_QPN);
	assert_int_equal(attr.qp_state, SOFTHCA_QPS_RTR);
	assert_int_equal(attr.path_mtu, SOFTHCA_MTU_2048);
	assert_int_equal(attr.qkey, 1);
	assert_int_equal(attr.rq_psn, 2);
	assert_int_equal(attr.sq_psn, 3);
	assert_int_equal(attr.dest_qp_num, 4);
	assert_int_equal(attr.qp_access_flags, SOFTHCA_ACCESS_REMOTE_WRITE);
	assert_int_equal(attr.ah_attr.sgid_index, 5);
	assert_int_equal(attr.ah_attr.flow_label, 6);
	assert_int_equal(attr.ah_attr.dgid.raw[0], 7);
	assert_int_equal(attr.ah_attr.hop_limit, 8);
	assert_int_equal(attr.ah_attr.traffic_class, 9);
	assert_int_equal(attr.ah_attr.sl, 1);
	assert_int_equal(attr.ah_attr.port_num, 1);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.max_rd_atomic, 11);
	assert_int_equal(attr.max_dest_rd_atomic, 12);
	assert_int_equal(attr.min_rnr_timer, 13);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.rnr_retry, 6);
	assert_int_equal(softhca_cm_init_qp_attr(id, SOFTHCA_QPS_SQD, &attr, &mask), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "SQD"));
	assert_int_equal(softhca_cm_init_qp_attr(id, SOFTHCA_QPS_RESET, &attr, &mask), -EINVAL);
}

/* The states between are passed through; those that were asked for are counted. */
static void
modify_qp(void **state)
{
	const struct softhca_qp_cap cap = {.max_send_wr = 1, .max_recv_wr = 1};
	struct fake_qp made = fake_make_qp(ctx, &cap, SOFTHCA_QPS_RESET, 4);

	fake_cm.attr.mask = INIT_MASK;
	assert_int_equal(softhca_cm_modify_qp(id, made.qp, SOFTHCA_QPS_INIT), 0);
	assert_int_equal(fake_cm.num_asked, 1);
	assert_int_equal(fake_cm.asked[0], HCA_QPS_INIT);
	assert_int_equal(made.qp->state, SOFTHCA_QPS_INIT);
	/* the attributes of the fake are not enough for RTR, which the reason says */
	assert_int_equal(softhca_cm_modify_qp(id, made.qp, SOFTHCA_QPS_RTS), -EINVAL);
	assert_int_equal(fake_cm.asked[1], HCA_QPS_RTR);
	assert_int_equal(fake_cm.num_asked, 2);
	assert_int_equal(made.qp->state, SOFTHCA_QPS_INIT);
	assert_int_equal(softhca_cm_modify_qp(id, made.qp, SOFTHCA_QPS_INIT), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "INIT"));
	assert_int_equal(softhca_cm_modify_qp(id, made.qp, SOFTHCA_QPS_SQE), -EINVAL);
	assert_int_equal(fake_cm.num_asked, 2);
	fake_drop_qp(&made);
}

/* A QP of datagrams needs the connection manager for INIT only. */
static void
modify_ud_qp(void **state)
{
	struct softhca_cq_init_attr cq_attr = {.cqe = 4};
	struct softhca_qp_init_attr attr = {.qp_type = SOFTHCA_QPT_UD, .cap = {1, 1, 1, 1, 0}};
	struct fake_qp made = {.pd = softhca_alloc_pd(ctx), .cq = softhca_create_cq(ctx, &cq_attr)};

	attr.send_cq = attr.recv_cq = made.cq;
	made.qp = softhca_create_qp(made.pd, &attr);
	assert_non_null(made.qp);
	fake_cm.attr.mask = SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY;
	fake_cm.attr.qkey = 0x01234567;
	assert_int_equal(softhca_cm_modify_qp(id, made.qp, SOFTHCA_QPS_RTS), 0);
	assert_int_equal(made.qp->state, SOFTHCA_QPS_RTS);
	assert_int_equal(fake_cm.num_asked, 1);
	fake_drop_qp(&made);
}

/* The reason of the daemon reaches the program from each call. */
static void
refused(void **state)
{
	struct softhca_cm_param param = {0};
	struct softhca_qp_attr attr;
	struct softhca_cm_info info;
	uint32_t mask;

	fake_cm.fail = -ENOENT;
	assert_int_equal(softhca_cm_bind(id, sa("::", 1), 0), -ENOENT);
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, sa("::1", 1), 1), -ENOENT);
	assert_int_equal(softhca_cm_resolve_route(id, 1), -ENOENT);
	assert_int_equal(softhca_cm_listen(id, 1), -ENOENT);
	assert_int_equal(softhca_cm_connect(id, &param), -ENOENT);
	assert_int_equal(softhca_cm_accept(id, &param), -ENOENT);
	assert_int_equal(softhca_cm_establish(id), -ENOENT);
	assert_int_equal(softhca_cm_reject(id, 28, NULL, 0), -ENOENT);
	assert_int_equal(softhca_cm_disconnect(id), -ENOENT);
	assert_int_equal(softhca_cm_notify(id, SOFTHCA_EVENT_COMM_EST), -ENOENT);
	assert_int_equal(softhca_cm_init_qp_attr(id, SOFTHCA_QPS_INIT, &attr, &mask), -ENOENT);
	assert_int_equal(softhca_cm_set_option(id, SOFTHCA_CM_OPTION_TOS, 1), -ENOENT);
	assert_int_equal(softhca_cm_query(id, &info), -ENOENT);
	assert_int_equal(softhca_cm_migrate(id, channel), -ENOENT);
	assert_int_equal(softhca_cm_join(id, sa("ff02::1", 0), 0, &mask), -ENOENT);
	assert_int_equal(softhca_cm_leave(id, 1), -ENOENT);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(softhca_last_error(ctx), "the fake says no");
	fake_cm.fail = 0;
}

/* In a child of fork() no call touches the parent's ids. */
static void
forked(void **state)
{
	struct softhca_cm_event event;
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		bool ok = softhca_cm_destroy_id(id) == -EPERM &&
			  softhca_cm_destroy_channel(channel) == -EPERM &&
			  softhca_cm_get_event(channel, &event) == -EPERM;

		_exit(ok ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(fake_cm.ids, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(absent, setup, teardown),
		cmocka_unit_test_setup_teardown(create, setup, teardown),
		cmocka_unit_test_setup_teardown(bind_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(resolve, setup, teardown),
		cmocka_unit_test_setup_teardown(connection, setup, teardown),
		cmocka_unit_test_setup_teardown(options, setup, teardown),
		cmocka_unit_test_setup_teardown(query, setup, teardown),
		cmocka_unit_test_setup_teardown(ib_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(ib_of_older_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(qp_attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_ud_qp, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(forked, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
