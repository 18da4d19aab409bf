/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PCAP_WRITER_H
#define PORT_PCAP_WRITER_H

/*
 * Bytes into a file, from lcores that must not wait for a disk: they go into a bounded ring, and a
 * thread of the writer's own writes them. What does not fit is refused whole.
 *
 * Owner: a capture file (port_pcap.c). start, stop: one thread; put: one at a time, any; failed:
 * any.
 */

#include <stdbool.h>
#include <stddef.h>

struct pcap_writer;

struct pcap_piece {
	const void *bytes;
	size_t len;
};

/*
 * bytes: of the ring, a power of two. The file stays the caller's. 0, -ENOMEM, -EAGAIN (threads).
 */
int pcap_writer_start(int fd, size_t bytes, struct pcap_writer **out);

/* All of the pieces or none. False: no room, or the file cannot be written any more. */
bool pcap_writer_put(struct pcap_writer *w, const struct pcap_piece *piece, unsigned int n);

/* The file took no more; what was put since is gone. */
bool pcap_writer_failed(const struct pcap_writer *w);

/* Writes what is left and frees the writer. 0, or the errno the file gave, negative. */
int pcap_writer_stop(struct pcap_writer *w);

#endif
