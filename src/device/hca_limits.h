/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_HCA_LIMITS_H
#define DEVICE_HCA_LIMITS_H

/*
 * Sizes of an HCA that its composition may choose, and the vendor and versions that it reports:
 * ranges and defaults, shared by the device, embedded HCAs (softhca_embed_config) and the daemon
 * (keys of its configuration).
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_release.h"

#define HCA_FW_VER_DEFAULT HCA_RELEASE_NUMBER

/*
 * X(section, name, min, max, def): a uint32_t with that name in every configuration, and a
 * key of that section in the daemon's. 0 stands for the default; default 0: the device chooses.
 *
 * A vendor_id is an OUI of the IEEE. This project has no OUI: the default ("SH") has the bit for
 * locally administered addresses set, so the IEEE does not assign it.
 * cnp_interval_us: of a QP at most one CNP in it.
 * swift_base_delay_us: round trip at which a flow with a large share is held by swift.
 */
#define HCA_LIMIT_LIST(X) \
	X(hca, vendor_id, 1, 0xffffff, 0x025348) \
	X(hca, vendor_part_id, 1, 65535, 1) \
	X(hca, hw_ver, 1, 65535, 1) \
	X(hca, cnp_interval_us, 1, 1000000, 50) \
	X(hca, cnp_dscp, 1, 63, 48) \
	X(hca, swift_base_delay_us, 5, 100000, 25) \
	X(limits, log_qps, 2, 14, 14)	      /* log2 of QPs */ \
	X(limits, log_cqs, 1, 14, 14)	      /* log2 of CQs */ \
	X(limits, log_srqs, 2, 14, 12)	      /* log2 of SRQs */ \
	X(limits, log_mpts, 3, 17, 17)	      /* log2 of memory regions and windows */ \
	X(limits, log_mtts, 3, 26, 20)	      /* log2 of pages of regions */ \
	X(limits, log_tps, 1, 13, 8)	      /* UB: log2 of transport channels (TP) */ \
	X(pools, mbufs, 32, 1048576, 4096)    /* mbufs for requests, and as many for responses */ \
	X(pools, records, 2, 1048576, 0)      /* of requests; 0: two per QP and a shared pool */ \
	X(pools, records_per_qp, 1, 256, 256) /* window of a QP */ \
	X(pools, edge_size, 2, 1048576, 256)  /* objects per edge between two workers */ \
	X(pools, ub_ops, 2, 1048576, 16384)   /* UB: requests of TPs, and as many responses */ \
	X(pools, ub_records, 2, 1048576, 0)   /* UB: as records */

/*
 * X(name): those that SET_CONGESTION changes while the HCA works. Their numbers are their places,
 * from 1 on, and part of the command: a new one is the last.
 */
#define HCA_CC_PARAMETER_LIST(X) \
	X(cnp_interval_us) \
	X(cnp_dscp) \
	X(swift_base_delay_us)

enum hca_cc_parameter {
	HCA_CC_ALGORITHM, /* 0 stands for none of them */
#define X(name) HCA_CC_##name,
	HCA_CC_PARAMETER_LIST(X)
#undef X
};
_Static_assert(HCA_CC_ALGORITHM == 0 && HCA_CC_cnp_interval_us == 1 && HCA_CC_cnp_dscp == 2 &&
		       HCA_CC_swift_base_delay_us == 3,
	       "numbers of SET_CONGESTION");

static inline bool
hca_limit_holds(uint32_t value, uint32_t min, uint32_t max, uint32_t def)
{
	return (value >= min && value <= max) || (value == 0 && def == 0);
}

#endif
