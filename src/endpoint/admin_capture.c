/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin_capture.h"
#include "wire/wire_view.h"

#define WORD_MAX 32u
#define QPN_MAX 0xffffffu
#define SNAPLEN_MIN 14u
#define SNAPLEN_MAX 65535u

static int
take_number(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno != 0 || *end != '\0' || v < min || v > max)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

/* Frames of one QP or TP. */
static int
take_one(const char *text, enum hca_wire wire, struct hca_pcap_ng *ng)
{
	if (ng->one_qp && ng->wire != wire)
		return -EINVAL;
	ng->one_qp = true;
	ng->wire = (uint8_t)wire;
	return take_number(text, 1, QPN_MAX, &ng->qpn);
}

static int
take_word(const char *word, struct hca_pcap_ng *ng)
{
	if (strncmp(word, "snaplen=", 8) == 0)
		return take_number(word + 8, SNAPLEN_MIN, SNAPLEN_MAX, &ng->snaplen);
	if (strncmp(word, "qp=", 3) == 0)
		return take_one(word + 3, HCA_WIRE_ROCE, ng);
	if (strncmp(word, "tp=", 3) == 0)
		return take_one(word + 3, HCA_WIRE_UB, ng);
	if (strcmp(word, "dir=in") == 0)
		ng->no_sent = true;
	else if (strcmp(word, "dir=out") == 0)
		ng->no_received = true;
	else if (strcmp(word, "dir=both") != 0)
		return -EINVAL;
	return 0;
}

int
admin_capture_parse(const char *text, struct admin_capture *out)
{
	char word[WORD_MAX];

	memset(out, 0, sizeof(*out));
	while (*text != '/') {
		size_t len = strcspn(text, ",");

		if (len >= sizeof(word) || text[len] != ',')
			return -EINVAL;
		memcpy(word, text, len);
		word[len] = '\0';
		if (take_word(word, &out->ng) != 0)
			return -EINVAL;
		text += len + 1;
	}
	out->path = text;
	return out->ng.no_sent && out->ng.no_received ? -EINVAL : 0;
}
