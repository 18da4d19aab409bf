/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WIRE_PCAP_READ_H
#define TESTS_WIRE_PCAP_READ_H

/*
 * Classic pcap files of Ethernet frames, read completely into memory. Both byte orders, micro- and
 * nanoseconds. Lengths in the file are checked, because captures may come from anywhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcap_file {
	uint8_t *data;
	size_t len;
	size_t pos; /* of the next record */
	bool swapped;
};

struct pcap_frame {
	const uint8_t *data;
	uint32_t len;	   /* bytes captured */
	uint32_t wire_len; /* original length in bytes */
};

/* 0, -errno of the system, -EINVAL: not a pcap file, -ENOTSUP: not Ethernet. */
int pcap_open_file(struct pcap_file *f, const char *path);
/* 1: *out is the next frame; 0: end; -EINVAL: the file ends inside a record. */
int pcap_next_frame(struct pcap_file *f, struct pcap_frame *out);
void pcap_close_file(struct pcap_file *f);

#endif
