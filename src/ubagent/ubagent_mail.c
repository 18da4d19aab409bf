/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Jetty 0: a queue of sends, one of receives and a CQ in memory of the agent, used as the device's
 * ABI says. Each send and each receive has a place for one message.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_addr.h"
#include "abi_bar.h"
#include "abi_service.h"
#include "abi_tp.h"
#include "abi_ub.h"
#include "ubagent_impl.h"

#define PAGE 4096u
#define LOG_CQ 8u
#define LOG_SEND_STRIDE 7u
#define LOG_RECEIVE_STRIDE 6u
#define SENDS (1u << MAIL_LOG_SENDS)
#define RECEIVES (1u << MAIL_LOG_RECEIVES)
#define HOPS 64u
#define JETTY_0 0u

struct send_wqe {
	struct hca_next_unit next;
	struct hca_ub_unit ub;
	struct hca_ud_unit ud;
	struct hca_data_unit data;
};
_Static_assert(sizeof(struct send_wqe) <= 1u << LOG_SEND_STRIDE, "a send");
_Static_assert(SENDS + RECEIVES <= 1u << LOG_CQ, "the CQ cannot overrun");

struct receive_wqe {
	struct hca_next_unit next;
	struct hca_data_unit data, end;
};
_Static_assert(sizeof(struct receive_wqe) <= 1u << LOG_RECEIVE_STRIDE, "a receive");

/* The parts of the arena, each from a page on: X(member, bytes) */
#define PART_LIST(X) \
	X(cqe, (HCA_CQE_SIZE << LOG_CQ) + sizeof(struct hca_cq_record)) \
	X(sq, SENDS << LOG_SEND_STRIDE) \
	X(rq, (RECEIVES << LOG_RECEIVE_STRIDE) + sizeof(struct hca_rq_record)) \
	X(sends, SENDS *UBCM_MSG_MAX) \
	X(receives, RECEIVES *MAIL_RECEIVE_BYTES)

static size_t
paged(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static int
map_arena(struct mail *m)
{
	size_t at = 0;

#define X(member, size) m->bytes += paged(size);
	PART_LIST(X)
#undef X
	m->arena = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (m->arena == MAP_FAILED) {
		m->arena = NULL;
		return -ENOMEM;
	}
#define X(member, size) \
	m->member = (void *)(m->arena + at); \
	at += paged(size);
	PART_LIST(X)
#undef X
	m->cq_record = (void *)(m->cqe + (1u << LOG_CQ));
	m->rq_record = (void *)(m->rq + (RECEIVES << LOG_RECEIVE_STRIDE));
	for (uint32_t i = 0; i < 1u << LOG_CQ; i++)
		m->cqe[i].owner = HCA_OWNER_HW;
	return 0;
}

/* ---- objects of the driver ---- */

#define CALL(m, NAME, request, answer, extra) \
	hca_client_call((m)->client, HCA_CTL_##NAME, HCA_CTL_REQUEST(NAME, request), \
			HCA_CTL_ANSWER(NAME, answer), extra)

static int
open_memory(struct mail *m, uint32_t *pdn)
{
	struct hca_ctl_mr mr = {.va = (uintptr_t)m->sends,
				.length = (uint64_t)(m->arena + m->bytes - m->sends),
				.access = HCA_ACCESS_LOCAL_WRITE};
	struct hca_ctl_extra extra = {.pages = NULL};
	struct hca_ctl_keys keys;
	int err = CALL(m, ALLOC_PD, NULL, pdn, NULL);

	mr.pdn = *pdn;
	if (err == 0)
		err = CALL(m, REG_MR, &mr, &keys, &extra);
	if (err == 0)
		m->lkey = keys.lkey;
	return err;
}

static int
open_cq(struct mail *m, bool events)
{
	struct hca_ctl_cq cq = {.addr = (uintptr_t)m->cqe,
				.log_size = LOG_CQ,
				.channel = HCA_CTL_NO_CHANNEL};
	struct hca_ctl_extra extra = {.fds = {-1, -1, -1, -1}};
	int err = events ? CALL(m, CREATE_CHANNEL, NULL, &cq.channel, &extra) : 0;

	if (err != 0)
		return err;
	m->channel_fd = extra.fds[0];
	if (m->channel_fd >= 0)
		(void)fcntl(m->channel_fd, F_SETFL, O_NONBLOCK);
	return CALL(m, CREATE_CQ, &cq, &m->cqn, NULL);
}

static int
open_jetty(struct mail *m, uint32_t pdn)
{
	struct hca_ctl_jetty jetty = {.qp = {.sq_addr = (uintptr_t)m->sq,
					     .rq_addr = (uintptr_t)m->rq,
					     .pdn = pdn,
					     .service = HCA_ST_JETTY,
					     .send_cqn = m->cqn,
					     .recv_cqn = m->cqn,
					     .log_sq = MAIL_LOG_SENDS,
					     .log_sq_stride = LOG_SEND_STRIDE,
					     .log_rq = MAIL_LOG_RECEIVES,
					     .log_rq_stride = LOG_RECEIVE_STRIDE}};
	struct hca_ctl_known known = {.id = JETTY_0};
	int err = CALL(m, CREATE_JETTY, &jetty, &m->qpn, NULL);

	known.tc = m->qpn;
	return err != 0 ? err : CALL(m, NAME_TC, &known, NULL, NULL);
}

static void
build_receive(struct mail *m, uint32_t slot)
{
	struct receive_wqe *w = (void *)(m->rq + (slot << LOG_RECEIVE_STRIDE));

	memset(w, 0, sizeof(*w));
	w->data.byte_cnt = hca_cpu_to_le32(MAIL_RECEIVE_BYTES);
	w->data.lkey = hca_cpu_to_le32(m->lkey);
	w->data.addr = hca_cpu_to_le64((uintptr_t)m->receives + slot * MAIL_RECEIVE_BYTES);
}

/*
 * Each WQE keeps its place for a message. They may complete in any order (a peer with a channel can
 * send to number 0 over it), but are posted again in the order of the ring.
 */
void
mail_give_back(struct mail *m, uint32_t slot)
{
	m->returned[slot] = true;
	while (m->returned[m->rq_posted % RECEIVES]) {
		m->returned[m->rq_posted % RECEIVES] = false;
		m->rq_posted++;
	}
	__atomic_store_n(&m->rq_record->producer, hca_cpu_to_le32(m->rq_posted), __ATOMIC_RELEASE);
}

static int
open_objects(struct mail *m, struct hca_driver *drv, bool events)
{
	const struct hca_client_who who = {.privileged = true};
	struct hca_ctl_info info;
	uint32_t pdn = 0;
	int err = hca_client_open(drv, &who, &m->client);

	if (err != 0) {
		m->client = NULL;
		return err;
	}
	err = hca_client_attach(m->client, (uintptr_t)m->arena, m->bytes);
	if (err == 0)
		err = CALL(m, INFO, NULL, &info, NULL);
	if (err == 0)
		err = open_memory(m, &pdn);
	if (err == 0)
		err = open_cq(m, events);
	if (err != 0)
		return err;
	m->doorbell = HCA_UAR_FIFO_FIRST(info.uar_page);
	m->uar_page = info.uar_page;
	for (uint32_t i = 0; i < RECEIVES; i++)
		build_receive(m, i);
	for (uint32_t i = 0; i < RECEIVES; i++)
		mail_give_back(m, i);
	return open_jetty(m, pdn);
}

int
mail_open(struct mail *m, struct hca_driver *drv, bool events)
{
	int err;

	memset(m, 0, sizeof(*m));
	m->channel_fd = -1;
	err = map_arena(m);
	if (err == 0)
		err = open_objects(m, drv, events);
	if (err != 0)
		mail_close(m);
	return err;
}

void
mail_close(struct mail *m)
{
	if (m->client != NULL)
		hca_client_close(m->client);
	if (m->channel_fd >= 0)
		close(m->channel_fd);
	if (m->arena != NULL)
		munmap(m->arena, m->bytes);
	m->client = NULL;
	m->arena = NULL;
	m->channel_fd = -1;
}

/* ---- sending ---- */

static bool
ring(struct mail *m, uint32_t index, uint32_t size)
{
	struct hca_uar_page *page = (void *)(uintptr_t)hca_client_uar(m->client);
	hca_le64 *slot = &page->fifo[m->doorbell % HCA_UAR_FIFO_SLOTS];

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) != HCA_DB_EMPTY)
		return false;
	__atomic_store_n(slot,
			 hca_cpu_to_le64(
				 HCA_DB_MAKE(index, 0, HCA_OP_SEND, m->qpn, size / HCA_WQE_UNIT)),
			 __ATOMIC_RELEASE);
	m->doorbell++;
	return true;
}

static void
build_send(const struct mail *m, struct send_wqe *w, const struct hca_ctl_ah *to, uint64_t from,
	   size_t len)
{
	uint64_t dmac = hca_mac_number(to->dmac), smac = hca_mac_number(to->smac);

	memset(w, 0, sizeof(*w));
	w->next.flags = hca_cpu_to_le32(HCA_WQE_FLAG_SIGNALED);
	w->ub.number = hca_cpu_to_le32(HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0));
	w->ub.tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(JETTY_0, HCA_UB_TC_ONE, 0));
	w->ud.port = hca_cpu_to_le32(HCA_UD_MAKE_PORT(1, to->sgid_index, HOPS, 0));
	w->ud.mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(dmac, smac));
	w->ud.smac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(smac));
	w->ud.dmac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(dmac));
	memcpy(w->ud.dgid, to->dgid, sizeof(w->ud.dgid));
	w->ud.flow = hca_cpu_to_le32(HCA_UD_MAKE_FLOW(1, 0, 0, 0));
	w->data.byte_cnt = hca_cpu_to_le32((uint32_t)len);
	w->data.lkey = hca_cpu_to_le32(m->lkey);
	w->data.addr = hca_cpu_to_le64(from);
}

bool
mail_send(struct mail *m, const struct hca_ctl_ah *to, const uint8_t *bytes, size_t len)
{
	uint32_t index = m->sq_head % SENDS;
	uint8_t *place = m->sends + (size_t)index * UBCM_MSG_MAX;

	if (m->sq_head - m->sq_tail == SENDS)
		return false;
	memcpy(place, bytes, len);
	build_send(m, (void *)(m->sq + (index << LOG_SEND_STRIDE)), to, (uintptr_t)place, len);
	if (!ring(m, index, sizeof(struct send_wqe)))
		return false;
	m->sq_head++;
	return true;
}

/* ---- completions ---- */

static struct hca_cqe_ub *
next_cqe(const struct mail *m)
{
	return &m->cqe[m->cq_ci & ((1u << LOG_CQ) - 1)];
}

bool
mail_due(const struct mail *m)
{
	return (__atomic_load_n(&next_cqe(m)->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW) == 0;
}

void
mail_arm(struct mail *m)
{
	m->cq_arm++;
	__atomic_store_n(&m->cq_record->arm,
			 hca_cpu_to_le32(HCA_CQ_ARM_MAKE(m->cq_arm, HCA_CQ_ARM_NEXT)),
			 __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* From the headers in front; false: they are of no known form. */
static bool
read_addresses(const uint8_t *p, struct mail_letter *l)
{
	if (p[0] >> 4 == 6) {
		memcpy(l->peer, p + 8, 16);
		memcpy(l->own, p + 24, 16);
		return true;
	}
	hca_gid_from_ip4(l->peer, p + 32);
	hca_gid_from_ip4(l->own, p + 36);
	return p[20] >> 4 == 4;
}

/* What came over a channel is no message of the setting up of channels. */
static enum mail_kind
read_receive(struct mail *m, const struct hca_cqe_ub *cqe, struct mail_letter *l)
{
	uint32_t bytes = hca_le32_to_cpu(cqe->bytes);
	const uint8_t *at;

	l->slot = (hca_le32_to_cpu(cqe->wqe) >> LOG_RECEIVE_STRIDE) % RECEIVES;
	at = m->receives + (size_t)l->slot * MAIL_RECEIVE_BYTES;
	if (cqe->status != HCA_UB_STATUS_OK || hca_le32_to_cpu(cqe->tpn) != 0 ||
	    bytes < MAIL_ADDRESSES || bytes > MAIL_RECEIVE_BYTES || !read_addresses(at, l)) {
		mail_give_back(m, l->slot);
		return MAIL_BAD;
	}
	for (uint32_t i = 0; i < sizeof(l->mac); i++)
		l->mac[i] = (uint8_t)(hca_le64_to_cpu(cqe->imm) >> (40 - 8 * i));
	l->bytes = at + MAIL_ADDRESSES;
	l->len = bytes - MAIL_ADDRESSES;
	return MAIL_LETTER;
}

enum mail_kind
mail_take(struct mail *m, struct mail_letter *letter)
{
	struct hca_cqe_ub *cqe = next_cqe(m);
	enum mail_kind what = MAIL_SENT;

	if (!mail_due(m))
		return MAIL_NONE;
	if ((cqe->is_send & 1) != 0) {
		m->sq_tail++;
	} else {
		what = read_receive(m, cqe, letter);
	}
	cqe->owner = HCA_OWNER_HW;
	m->cq_ci++;
	__atomic_store_n(&m->cq_record->consumer, hca_cpu_to_le32(m->cq_ci), __ATOMIC_RELEASE);
	return what;
}
