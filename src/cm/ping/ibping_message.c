/* SPDX-License-Identifier: BSD-3-Clause */

/* The bytes of pings. */

#include <string.h>

#include "abi_bits.h"
#include "ibping_impl.h"

/*
 * The header of a MAD (IBTA volume 1, section 13.4.3), then that of a vendor's class of range 2:
 * 12 bytes of RMPP, which is not used, a reserved one and the OUI. All in network order.
 */
struct mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint8_t status[2];
	uint8_t class_specific[2];
	uint8_t tid[8];
	uint8_t attribute[2];
	uint8_t reserved[2];
	uint8_t modifier[4]; /* a ping: bytes of the datagram that asks */
	uint8_t rmpp[12];
	uint8_t reserved2;
	uint8_t oui[3];
	uint8_t version;
	uint8_t traffic_class; /* an answer: of the question */
	uint8_t data[22];
};

_Static_assert(sizeof(struct mad) == IBPING_SHORT, "as on the wire");

#define BASE_VERSION 1u
#define CLASS_VENDOR 0x4fu
#define CLASS_VENDOR_VERSION 1u
#define CLASS_CM 7u
#define CLASS_CM_VERSION 2u
#define METHOD_GET 0x01u
#define METHOD_SEND 0x03u
#define METHOD_GET_RESP 0x81u
#define ATTRIBUTE_PING 0x5348u
#define ATTRIBUTE_DREQ 0x15u
#define VERSION 1u
#define HEADER 24u /* bytes that all classes have */

/* Not assigned by IEEE: locally administered. */
static const uint8_t oui[3] = {0x02, 0x53, 0x48};

/* A MAD of the vendor's class; len is at least that of a short answer. */
static enum ibping_kind
kind_of(const struct mad *h, size_t len)
{
	uint32_t question = hca_get_be32(h->modifier);

	if (h->class_version != CLASS_VENDOR_VERSION ||
	    hca_get_be16(h->attribute) != ATTRIBUTE_PING || memcmp(h->oui, oui, sizeof(oui)) != 0)
		return IBPING_BAD;
	if (h->method == METHOD_GET)
		return len >= IBPING_BYTES_MIN && len <= IBPING_BYTES_MAX && question == len &&
				       h->version != 0
			       ? IBPING_QUESTION
			       : IBPING_BAD;
	if (h->method != METHOD_GET_RESP)
		return IBPING_BAD;
	if (hca_get_be16(h->status) != 0)
		return IBPING_REFUSAL;
	return len == (question > IBCM_MAD_BYTES ? IBPING_SHORT : IBCM_MAD_BYTES) ? IBPING_ANSWER
										  : IBPING_BAD;
}

void
ibping_parse(const uint8_t *bytes, size_t len, struct ibping_message *m)
{
	struct mad h;

	memset(m, 0, sizeof(*m));
	m->kind = IBPING_OTHER;
	if (len < HEADER || bytes[0] != BASE_VERSION)
		return;
	memset(&h, 0, sizeof(h));
	memcpy(&h, bytes, len < sizeof(h) ? len : sizeof(h));
	m->tid = hca_get_be64(h.tid);
	if (h.mgmt_class == CLASS_CM && hca_get_be16(h.attribute) != ATTRIBUTE_DREQ) {
		m->kind = IBPING_OF_CM;
	} else if (h.mgmt_class == CLASS_VENDOR) {
		m->kind = len >= sizeof(h) ? kind_of(&h, len) : IBPING_BAD;
		m->len = hca_get_be32(h.modifier);
		m->traffic_class = h.traffic_class;
	}
}

static void
begin(struct mad *h, uint8_t method, uint64_t tid, uint32_t question)
{
	*h = (struct mad){
		.base_version = BASE_VERSION,
		.mgmt_class = CLASS_VENDOR,
		.class_version = CLASS_VENDOR_VERSION,
		.method = method,
		.version = VERSION,
	};
	hca_put_be64(h->tid, tid);
	hca_put_be16(h->attribute, ATTRIBUTE_PING);
	hca_put_be32(h->modifier, question);
	memcpy(h->oui, oui, sizeof(oui));
}

static size_t
finish(uint8_t *bytes, const struct mad *h, size_t len)
{
	memset(bytes, 0, len);
	memcpy(bytes, h, sizeof(*h));
	return len;
}

size_t
ibping_question(uint8_t *bytes, uint64_t tid, uint32_t len)
{
	struct mad h;

	begin(&h, METHOD_GET, tid, len);
	return finish(bytes, &h, len);
}

size_t
ibping_answer(uint8_t *bytes, const struct ibping_message *question)
{
	struct mad h;

	begin(&h, METHOD_GET_RESP, question->tid, question->len);
	h.traffic_class = question->traffic_class;
	return finish(bytes, &h, question->len > IBCM_MAD_BYTES ? IBPING_SHORT : IBCM_MAD_BYTES);
}

size_t
ibping_dreq(uint8_t *bytes, uint64_t tid, uint64_t ids)
{
	struct mad h = {
		.base_version = BASE_VERSION,
		.mgmt_class = CLASS_CM,
		.class_version = CLASS_CM_VERSION,
		.method = METHOD_SEND,
	};

	hca_put_be64(h.tid, tid);
	hca_put_be16(h.attribute, ATTRIBUTE_DREQ);
	hca_put_be64(h.rmpp, ids); /* local and remote communication ID */
	return finish(bytes, &h, IBCM_MAD_BYTES);
}
