/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 after the UDP header: BTH, extension headers, payload, pad and ICRC. Functions as those of
 * wire_view.h and udp_template.h.
 */
#ifndef DEVICE_WIRE_ROCE_FRAME_H
#define DEVICE_WIRE_ROCE_FRAME_H

#include "wire/icrc.h"
#include "wire/roce_opcode.h"
#include "wire/udp_template.h"

struct hca_roce_path {
	struct hca_udp_path udp;
	uint16_t pkey;
	uint32_t qpn; /* destination; UD frames set it each time */
	bool migreq;
};

/*
 * Everything to the end of the BTH but its opcode, its flags other than MigReq, and the PSN.
 * Returns 0, or -EINVAL as hca_udp_template_fill() does or for a QPN that does not fit.
 */
int hca_roce_template_fill(const struct hca_roce_path *path, struct hca_udp_template *t);

/*
 * Source port of a QP pair, so that paths spread over ECMP: 0xC000 and 14 bits. They are the flow
 * label's lower 14 and upper 6 of 20 bits, folded as Linux and RNICs do it: programs choose a path
 * with it. Label 0 chooses none, and a hash of the QPNs does.
 */
static inline uint16_t
hca_roce_udp_sport(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn)
{
	uint64_t v = (uint64_t)(local_qpn & 0xffffff) << 24 | (remote_qpn & 0xffffff);

	if (flow_label != 0)
		return (uint16_t)(HCA_ROCE_SPORT_BASE |
				  (((flow_label & 0x3fff) ^ flow_label >> 14) & 0x3fff));
	return HCA_ROCE_SPORT_BASE | (v * 0x9e3779b97f4a7c15ULL) >> 50;
}

#endif
