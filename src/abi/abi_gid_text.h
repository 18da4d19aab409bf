/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_GID_TEXT_H
#define HCA_ABI_GID_TEXT_H

/* GIDs as text, for messages; apart from abi_addr.h, because the device uses no sockets. */

#include <arpa/inet.h>

#include "abi_addr.h"

/* Writes "10.0.0.1" or "2001:db8::1" to `text` of at least INET6_ADDRSTRLEN bytes; returns it. */
static inline const char *
hca_gid_text(const uint8_t gid[16], char *text, uint32_t size)
{
	return hca_gid_is_mapped(gid) ? inet_ntop(AF_INET, gid + 12, text, size)
				      : inet_ntop(AF_INET6, gid, text, size);
}

#endif
