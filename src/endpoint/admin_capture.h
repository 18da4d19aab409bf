/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_CAPTURE_H
#define ADMIN_CAPTURE_H

/*
 * Parameters of the capture command, "dir=in,qp=0x123,snaplen=128,/PATH" (or tp=): which bytes of which
 * frames to write, and the file. The path starts at the first slash and may contain commas.
 */

#include <stdint.h>

#include "port/port_pcap.h"

struct admin_capture {
	struct hca_pcap_ng ng; /* interface, epoch and remote_qpn are left to the caller */
	const char *path;      /* inside the parsed text */
};

/* Parse the parameters; 0 or -EINVAL. */
int admin_capture_parse(const char *text, struct admin_capture *out);

#endif
