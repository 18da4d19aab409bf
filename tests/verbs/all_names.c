/* SPDX-License-Identifier: BSD-3-Clause */

/* Functions without an object; test_names.py compares their answers with the system's library. */

#include "all.h"

void
all_names(void)
{
	CHECK(strcmp(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter") == 0);
	CHECK(strcmp(ibv_port_state_str(IBV_PORT_ACTIVE), "active") == 0);
	CHECK(strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success") == 0);
	CHECK(ibv_rate_to_mult(IBV_RATE_5_GBPS) == 2 && mult_to_ibv_rate(2) == IBV_RATE_5_GBPS);
	CHECK(ibv_rate_to_mbps(IBV_RATE_100_GBPS) == 103125);
	CHECK(mbps_to_ibv_rate(103125) == IBV_RATE_100_GBPS);
	CHECK(ibv_is_qpt_supported(1 << IBV_QPT_UD, IBV_QPT_UD));
	CHECK(ibv_flow_label_to_udp_sport(0) == IB_ROCE_UDP_ENCAP_VALID_PORT_MIN);
}
