/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_CAPTURE_H
#define ADMIN_CAPTURE_H

/*
 * "dir=in,qp=0x123,snaplen=128,/PATH": what is to be captured of which frames, and where to. The
 * path is the rest of the text from its first slash on, commas and all.
 */

#include <stdint.h>

#include "port/port_pcap.h"

struct admin_capture {
	struct hca_pcap_ng ng; /* without interface, epoch and remote_qpn */
	const char *path;      /* in the text */
};

/* 0 or -EINVAL. */
int admin_capture_parse(const char *text, struct admin_capture *out);

#endif
