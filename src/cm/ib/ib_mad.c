/* SPDX-License-Identifier: BSD-3-Clause */

#include "ib_mad.h"

#define MAD_VERSION 1u
#define MAD_CLASS_CM 0x07u
#define MAD_CLASS_VERSION 2u
#define MAD_METHOD_SEND 3u

/* Of the common header */
enum {
	AT_BASE_VERSION = 0,
	AT_CLASS = 1,
	AT_CLASS_VERSION = 2,
	AT_METHOD = 3,
	AT_TRANSACTION = 8,
	AT_ATTRIBUTE = 16,
};

struct mad_field {
	uint16_t member; /* offset */
	uint16_t size;	 /* of the member, in bytes */
	uint16_t byte;
	uint8_t bit;
	uint8_t width; /* 0: a string of bytes */
};

struct mad_layout {
	const struct mad_field *field;
	uint32_t fields;
	uint16_t attribute;
};

#define MAD_NUMBER(bits, name, byte, bit, width) \
	{offsetof(struct ib_mad, MAD.name), (bits) / 8, (byte), (bit), (width)},
#define MAD_STRING(name, byte, bytes) {offsetof(struct ib_mad, MAD.name), (bytes), (byte), 0, 0},

#define MAD req
static const struct mad_field req_fields[] = {IB_MAD_REQ_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD mra
static const struct mad_field mra_fields[] = {IB_MAD_MRA_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD rej
static const struct mad_field rej_fields[] = {IB_MAD_REJ_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD rep
static const struct mad_field rep_fields[] = {IB_MAD_REP_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD rtu
static const struct mad_field rtu_fields[] = {IB_MAD_RTU_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD dreq
static const struct mad_field dreq_fields[] = {IB_MAD_DREQ_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD drep
static const struct mad_field drep_fields[] = {IB_MAD_DREP_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD sidr_req
static const struct mad_field sidr_req_fields[] = {IB_MAD_SIDR_REQ_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD sidr_rep
static const struct mad_field sidr_rep_fields[] = {IB_MAD_SIDR_REP_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD lap
static const struct mad_field lap_fields[] = {IB_MAD_LAP_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD
#define MAD apr
static const struct mad_field apr_fields[] = {IB_MAD_APR_FIELDS(MAD_NUMBER, MAD_STRING)};
#undef MAD

static const struct mad_layout layouts[IB_MAD_TYPES] = {
#define X(NAME, name, attribute) \
	{name##_fields, sizeof(name##_fields) / sizeof(name##_fields[0]), (attribute)},
	IB_MAD_LIST(X)
#undef X
};

/* ---- numbers: a field lies within 8 bytes ---- */

static uint64_t
mad_get_bits(const uint8_t *message, const struct mad_field *f)
{
	uint64_t v = 0;
	uint32_t end = f->bit + f->width;

	for (uint32_t i = 0; i < (end + 7) / 8; i++)
		v = v << 8 | message[f->byte + i];
	v >>= (8 - end % 8) % 8;
	return f->width == 64 ? v : v & ((UINT64_C(1) << f->width) - 1);
}

static void
mad_put_bits(uint8_t *message, const struct mad_field *f, uint64_t v)
{
	uint32_t end = f->bit + f->width, bytes = (end + 7) / 8;

	if (f->width < 64)
		v &= (UINT64_C(1) << f->width) - 1;
	v <<= (8 - end % 8) % 8;
	for (uint32_t i = 0; i < bytes; i++)
		message[f->byte + i] |= (uint8_t)(v >> 8 * (bytes - 1 - i));
}

static uint64_t
mad_member(const uint8_t *at, uint32_t size)
{
	uint64_t v = 0;

	/* the members are of 1, 2, 4 or 8 bytes in the order of the processor */
	if (size == 1)
		return *at;
	if (size == 2) {
		uint16_t v16;

		memcpy(&v16, at, sizeof(v16));
		return v16;
	}
	if (size == 4) {
		uint32_t v32;

		memcpy(&v32, at, sizeof(v32));
		return v32;
	}
	memcpy(&v, at, sizeof(v));
	return v;
}

static void
mad_set_member(uint8_t *at, uint32_t size, uint64_t v)
{
	uint8_t v8 = (uint8_t)v;
	uint16_t v16 = (uint16_t)v;
	uint32_t v32 = (uint32_t)v;
	const void *from = size == 1   ? (const void *)&v8
			   : size == 2 ? (const void *)&v16
			   : size == 4 ? (const void *)&v32
				       : (const void *)&v;

	memcpy(at, from, size);
}

/* ---- messages ---- */

static enum ib_mad_fault
mad_judge(const uint8_t *bytes, size_t len)
{
	if (len != IB_MAD_BYTES)
		return IB_MAD_FAULT_length;
	if (bytes[AT_BASE_VERSION] != MAD_VERSION)
		return IB_MAD_FAULT_base_version;
	if (bytes[AT_CLASS] != MAD_CLASS_CM)
		return IB_MAD_FAULT_class;
	if (bytes[AT_CLASS_VERSION] != MAD_CLASS_VERSION)
		return IB_MAD_FAULT_class_version;
	if (bytes[AT_METHOD] != MAD_METHOD_SEND)
		return IB_MAD_FAULT_method;
	return IB_MAD_GOOD;
}

enum ib_mad_fault
ib_mad_parse(const uint8_t *bytes, size_t len, struct ib_mad *mad)
{
	enum ib_mad_fault fault = mad_judge(bytes, len);
	uint32_t type;

	if (fault != IB_MAD_GOOD)
		return fault;
	for (type = 0; type < IB_MAD_TYPES; type++)
		if (layouts[type].attribute == hca_get_be16(bytes + AT_ATTRIBUTE))
			break;
	if (type == IB_MAD_TYPES)
		return IB_MAD_FAULT_attribute;
	memset(mad, 0, sizeof(*mad));
	mad->type = (enum ib_mad_type)type;
	mad->transaction = hca_get_be64(bytes + AT_TRANSACTION);
	for (uint32_t i = 0; i < layouts[type].fields; i++) {
		const struct mad_field *f = &layouts[type].field[i];
		uint8_t *member = (uint8_t *)mad + f->member;

		if (f->width == 0)
			memcpy(member, bytes + IB_MAD_HEADER + f->byte, f->size);
		else
			mad_set_member(member, f->size, mad_get_bits(bytes + IB_MAD_HEADER, f));
	}
	return IB_MAD_GOOD;
}

void
ib_mad_build(const struct ib_mad *mad, uint8_t bytes[IB_MAD_BYTES])
{
	const struct mad_layout *layout = &layouts[mad->type];

	memset(bytes, 0, IB_MAD_BYTES);
	bytes[AT_BASE_VERSION] = MAD_VERSION;
	bytes[AT_CLASS] = MAD_CLASS_CM;
	bytes[AT_CLASS_VERSION] = MAD_CLASS_VERSION;
	bytes[AT_METHOD] = MAD_METHOD_SEND;
	hca_put_be64(bytes + AT_TRANSACTION, mad->transaction);
	hca_put_be16(bytes + AT_ATTRIBUTE, layout->attribute);
	for (uint32_t i = 0; i < layout->fields; i++) {
		const struct mad_field *f = &layout->field[i];
		const uint8_t *member = (const uint8_t *)mad + f->member;

		if (f->width == 0)
			memcpy(bytes + IB_MAD_HEADER + f->byte, member, f->size);
		else
			mad_put_bits(bytes + IB_MAD_HEADER, f, mad_member(member, f->size));
	}
}
