/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_addr.h"
#include "abi_bar.h"
#include "cmagent_mail.h"

#define PAGE 4096u
#define LOG_RECEIVE_STRIDE 6u
#define FAREWELL_POLLS 1000u
#define FAREWELL_US 20u

struct receive_wqe {
	struct hca_next_unit next;
	struct hca_data_unit data, end;
};
_Static_assert(sizeof(struct receive_wqe) <= 1u << LOG_RECEIVE_STRIDE, "a receive");

/* The parts of the arena, each from a page on: X(member, bytes) */
#define PART_LIST(X) \
	X(cq, (cqe_bytes(m) << m->log_cq) + sizeof(struct hca_cq_record)) \
	X(sq, sends_of(m) << m->log_send_stride) \
	X(rq, (receives_of(m) << LOG_RECEIVE_STRIDE) + sizeof(struct hca_rq_record)) \
	X(sends, (size_t)sends_of(m) * m->cfg.send_bytes) \
	X(receives, (size_t)receives_of(m) * m->cfg.receive_bytes)

static uint32_t
sends_of(const struct cmagent_mail *m)
{
	return 1u << m->cfg.log_sends;
}

static uint32_t
receives_of(const struct cmagent_mail *m)
{
	return 1u << m->cfg.log_receives;
}

static uint32_t
cqe_bytes(const struct cmagent_mail *m)
{
	return HCA_CTL_CQE_SIZE(m->cfg.form->cq_flags);
}

static uint32_t
send_wqe_bytes(const struct cmagent_mail *m)
{
	return (uint32_t)sizeof(struct hca_next_unit) + m->cfg.form->to_bytes +
	       (uint32_t)sizeof(struct hca_data_unit);
}

static uint32_t
log2_up(uint32_t n)
{
	return n <= 1 ? 0 : 32u - (uint32_t)__builtin_clz(n - 1);
}

static size_t
paged(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static int
map_arena(struct cmagent_mail *m)
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
	m->member = m->arena + at; \
	at += paged(size);
	PART_LIST(X)
#undef X
	m->cq_record = (void *)(m->cq + ((size_t)cqe_bytes(m) << m->log_cq));
	m->rq_record = (void *)(m->rq + ((size_t)receives_of(m) << LOG_RECEIVE_STRIDE));
	return 0;
}

/* The owner byte is the same in all forms of a CQE. */
static struct hca_cqe *
cqe_at(const struct cmagent_mail *m, uint32_t n)
{
	return (void *)(m->cq + (size_t)(n & ((1u << m->log_cq) - 1)) * cqe_bytes(m));
}

/* ---- objects of the driver ---- */

static int
open_memory(struct cmagent_mail *m, uint32_t *pdn)
{
	struct hca_ctl_mr mr = {.va = (uintptr_t)m->sends,
				.length = (uint64_t)(m->arena + m->bytes - m->sends),
				.access = HCA_ACCESS_LOCAL_WRITE};
	struct hca_ctl_extra extra = {.pages = NULL};
	struct hca_ctl_keys keys;
	int err = CMAGENT_MAIL_CALL(m, ALLOC_PD, NULL, pdn, NULL);

	mr.pdn = *pdn;
	if (err == 0)
		err = CMAGENT_MAIL_CALL(m, REG_MR, &mr, &keys, &extra);
	if (err == 0)
		m->lkey = keys.lkey;
	return err;
}

static int
open_cq(struct cmagent_mail *m)
{
	struct hca_ctl_cq cq = {.addr = (uintptr_t)m->cq,
				.log_size = m->log_cq,
				.flags = m->cfg.form->cq_flags,
				.channel = HCA_CTL_NO_CHANNEL};
	struct hca_ctl_extra extra = {.fds = {-1, -1, -1, -1}};
	int err =
		m->cfg.events ? CMAGENT_MAIL_CALL(m, CREATE_CHANNEL, NULL, &cq.channel, &extra) : 0;

	if (err != 0)
		return err;
	m->channel_fd = extra.fds[0];
	if (m->channel_fd >= 0)
		(void)fcntl(m->channel_fd, F_SETFL, O_NONBLOCK);
	for (uint32_t i = 0; i < 1u << m->log_cq; i++)
		cqe_at(m, i)->owner = HCA_OWNER_HW;
	return CMAGENT_MAIL_CALL(m, CREATE_CQ, &cq, &m->cqn, NULL);
}

struct hca_ctl_qp
cmagent_mail_queues(const struct cmagent_mail *m, uint32_t service, uint32_t pdn)
{
	return (struct hca_ctl_qp){.sq_addr = (uintptr_t)m->sq,
				   .rq_addr = (uintptr_t)m->rq,
				   .pdn = pdn,
				   .service = service,
				   .send_cqn = m->cqn,
				   .recv_cqn = m->cqn,
				   .log_sq = m->cfg.log_sends,
				   .log_sq_stride = (uint8_t)m->log_send_stride,
				   .log_rq = m->cfg.log_receives,
				   .log_rq_stride = LOG_RECEIVE_STRIDE};
}

static void
build_receive(struct cmagent_mail *m, uint32_t slot)
{
	struct receive_wqe *w = (void *)(m->rq + ((size_t)slot << LOG_RECEIVE_STRIDE));

	memset(w, 0, sizeof(*w));
	w->data.byte_cnt = hca_cpu_to_le32(m->cfg.receive_bytes);
	w->data.lkey = hca_cpu_to_le32(m->lkey);
	w->data.addr =
		hca_cpu_to_le64((uintptr_t)m->receives + (uint64_t)slot * m->cfg.receive_bytes);
}

/*
 * Each WQE keeps its place for a message. They may complete in any order (a peer of UB with a
 * channel can send to number 0 over it), but are posted again in the order of the ring.
 */
void
cmagent_mail_give_back(struct cmagent_mail *m, uint32_t slot)
{
	uint32_t mask = receives_of(m) - 1;

	m->returned[slot] = true;
	while (m->returned[m->rq_posted & mask]) {
		m->returned[m->rq_posted & mask] = false;
		m->rq_posted++;
	}
	__atomic_store_n(&m->rq_record->producer, hca_cpu_to_le32(m->rq_posted), __ATOMIC_RELEASE);
}

static int
open_objects(struct cmagent_mail *m)
{
	const struct hca_client_who who = {.privileged = true, .host = m->cfg.form->host};
	struct hca_ctl_info info;
	uint32_t pdn = 0;
	int err = hca_client_open(m->cfg.drv, &who, &m->client);

	if (err != 0) {
		m->client = NULL;
		return err;
	}
	err = hca_client_attach(m->client, (uintptr_t)m->arena, m->bytes);
	if (err == 0)
		err = CMAGENT_MAIL_CALL(m, INFO, NULL, &info, NULL);
	if (err == 0)
		err = open_memory(m, &pdn);
	if (err == 0)
		err = open_cq(m);
	if (err != 0)
		return err;
	m->doorbell = HCA_UAR_FIFO_FIRST(info.uar_page);
	m->pipes = info.num_pipes;
	m->uar_page = info.uar_page;
	for (uint32_t i = 0; i < receives_of(m); i++)
		build_receive(m, i);
	for (uint32_t i = 0; i < receives_of(m); i++)
		cmagent_mail_give_back(m, i);
	return m->cfg.form->open(m, pdn);
}

int
cmagent_mail_open(struct cmagent_mail *m, const struct cmagent_mail_config *config)
{
	int err;

	memset(m, 0, sizeof(*m));
	m->cfg = *config;
	m->channel_fd = -1;
	m->log_send_stride = log2_up(send_wqe_bytes(m));
	/* the CQ cannot overrun: it has room for all sends and receives */
	m->log_cq = log2_up(sends_of(m) + receives_of(m));
	err = map_arena(m);
	if (err == 0)
		err = open_objects(m);
	if (err != 0)
		cmagent_mail_close(m);
	return err;
}

void
cmagent_mail_close(struct cmagent_mail *m)
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
ring(struct cmagent_mail *m, uint32_t index)
{
	struct hca_uar_page *page = (void *)(uintptr_t)hca_client_uar(m->client);
	hca_le64 *slot = &page->fifo[HCA_UAR_FIFO_SLOT(m->pipes, m->qpn % m->pipes, m->doorbell)];

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) != HCA_DB_EMPTY)
		return false;
	__atomic_store_n(slot,
			 hca_cpu_to_le64(HCA_DB_MAKE(index, 0, HCA_OP_SEND, m->qpn,
						     send_wqe_bytes(m) / HCA_WQE_UNIT)),
			 __ATOMIC_RELEASE);
	m->doorbell++;
	return true;
}

void
cmagent_mail_ud(struct hca_ud_unit *unit, const struct cmagent_mail_to *to)
{
	uint64_t dmac = hca_mac_number(to->ah.dmac), smac = hca_mac_number(to->ah.smac);
	uint32_t hops = to->hop_limit != 0 ? to->hop_limit : CMAGENT_MAIL_HOP_LIMIT;

	unit->port =
		hca_cpu_to_le32(HCA_UD_MAKE_PORT(1, to->ah.sgid_index, hops, to->traffic_class));
	unit->mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(dmac, smac));
	unit->smac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(smac));
	unit->dmac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(dmac));
	memcpy(unit->dgid, to->ah.dgid, sizeof(unit->dgid));
	unit->flow = hca_cpu_to_le32(HCA_UD_MAKE_FLOW(1, 0, 0, 0));
}

static void
build_send(const struct cmagent_mail *m, uint8_t *wqe, const struct cmagent_mail_to *to,
	   const uint8_t *place, size_t len)
{
	struct hca_next_unit *next = (void *)wqe;
	uint8_t *units = wqe + sizeof(*next);
	struct hca_data_unit *data = (void *)(units + m->cfg.form->to_bytes);

	memset(wqe, 0, send_wqe_bytes(m));
	next->flags = hca_cpu_to_le32(HCA_WQE_FLAG_SIGNALED);
	m->cfg.form->address(units, to);
	data->byte_cnt = hca_cpu_to_le32((uint32_t)len);
	data->lkey = hca_cpu_to_le32(m->lkey);
	data->addr = hca_cpu_to_le64((uintptr_t)place);
}

bool
cmagent_mail_send(struct cmagent_mail *m, const struct cmagent_mail_to *to, const uint8_t *bytes,
		  size_t len)
{
	uint32_t index = m->sq_head & (sends_of(m) - 1);
	uint8_t *place = m->sends + (size_t)index * m->cfg.send_bytes;

	if (m->sq_head - m->sq_tail == sends_of(m) || len > m->cfg.send_bytes)
		return false;
	memcpy(place, bytes, len);
	build_send(m, m->sq + ((size_t)index << m->log_send_stride), to, place, len);
	if (!ring(m, index))
		return false;
	m->sq_head++;
	return true;
}

/* ---- completions ---- */

bool
cmagent_mail_due(const struct cmagent_mail *m)
{
	return (__atomic_load_n(&cqe_at(m, m->cq_ci)->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW) == 0;
}

void
cmagent_mail_arm(struct cmagent_mail *m)
{
	m->cq_arm++;
	__atomic_store_n(&m->cq_record->arm,
			 hca_cpu_to_le32(HCA_CQ_ARM_MAKE(m->cq_arm, HCA_CQ_ARM_NEXT)),
			 __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* From the headers in front; false: they are of no known form. */
static bool
read_addresses(const uint8_t *p, struct cmagent_mail_letter *l)
{
	if (p[0] >> 4 == 6) {
		memcpy(l->peer, p + 8, 16);
		memcpy(l->own, p + 24, 16);
		l->traffic_class = (uint8_t)(hca_get_be16(p) >> 4);
		return true;
	}
	hca_gid_from_ip4(l->peer, p + 32);
	hca_gid_from_ip4(l->own, p + 36);
	l->traffic_class = p[21];
	return p[20] >> 4 == 4;
}

static enum cmagent_mail_kind
read_receive(struct cmagent_mail *m, const struct hca_cqe *cqe, struct cmagent_mail_letter *l)
{
	uint32_t wqe = 0, bytes = 0;
	const uint8_t *at;
	bool good;

	memset(l, 0, sizeof(*l));
	good = m->cfg.form->receive(cqe, &wqe, &bytes, l);
	l->slot = (wqe >> LOG_RECEIVE_STRIDE) & (receives_of(m) - 1);
	at = m->receives + (size_t)l->slot * m->cfg.receive_bytes;
	if (!good || bytes < CMAGENT_MAIL_ADDRESSES || bytes > m->cfg.receive_bytes ||
	    !read_addresses(at, l)) {
		cmagent_mail_give_back(m, l->slot);
		return CMAGENT_MAIL_BAD;
	}
	l->bytes = at + CMAGENT_MAIL_ADDRESSES;
	l->len = bytes - CMAGENT_MAIL_ADDRESSES;
	return CMAGENT_MAIL_LETTER;
}

enum cmagent_mail_kind
cmagent_mail_take(struct cmagent_mail *m, struct cmagent_mail_letter *letter)
{
	struct hca_cqe *cqe = cqe_at(m, m->cq_ci);
	enum cmagent_mail_kind what = CMAGENT_MAIL_SENT;

	if (!cmagent_mail_due(m))
		return CMAGENT_MAIL_NONE;
	if ((cqe->is_send & 1) != 0) {
		m->sq_tail++;
		m->refused |= m->cfg.form->refused(cqe);
	} else {
		what = read_receive(m, cqe, letter);
	}
	cqe->owner = HCA_OWNER_HW;
	m->cq_ci++;
	__atomic_store_n(&m->cq_record->consumer, hca_cpu_to_le32(m->cq_ci), __ATOMIC_RELEASE);
	return what;
}

void
cmagent_mail_farewell(struct cmagent_mail *m, void (*progress)(void *arg), void *arg)
{
	struct cmagent_mail_letter l;

	for (uint32_t i = 0; i < FAREWELL_POLLS && m->sq_head != m->sq_tail; i++) {
		if (progress != NULL)
			progress(arg);
		else
			usleep(FAREWELL_US);
		while (cmagent_mail_take(m, &l) != CMAGENT_MAIL_NONE)
			;
	}
}
