/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_PCAP_H
#define PORT_PORT_PCAP_H

/*
 * A port that writes every frame it transmits to a classic pcap file (nanosecond times, Ethernet)
 * and passes it on; on request also every frame it receives (for a link in memory, both ends would
 * write it). Several ports may share one file: a frame stands in front of its answers.
 *
 * Classic files are for debugging and for the decoders of the tests: the lcores of encap and decap
 * make system calls. A pcapng file is written by a separate thread (pcap_writer.h): a slow or full
 * disk loses frames of the capture, which are counted, but no traffic.
 *
 * hca_port.close() also closes the inner port, but not the file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"
#include "port/port_fired.h"

struct hca_pcap;

/* Open a file for at most max_frames frames, 0: no limit. 0 or a negative errno. */
int hca_pcap_open(const char *path, uint64_t max_frames, struct hca_pcap **out);
/*
 * The same as pcapng, which names the interface and tells received frames from sent ones, with a
 * selection of frames. -EEXIST: the file exists.
 */
struct hca_pcap_ng {
	const char *interface; /* at most 60 characters are used */
	uint64_t epoch;	       /* ns to add to the engine's time to get the time of day */
	uint32_t snaplen;      /* bytes per frame, 0: all */
	size_t ring;	       /* bytes buffered for the disk, a power of two; 0: 32 MiB */
	bool no_received, no_sent;
	bool replace; /* a file that exists */
	/*
	 * Only packets of one QP: received for qpn, sent to remote_qpn of its peer, or from qpn if
	 * the packet has a source (UD). For UB: of one TP.
	 */
	bool one_qp;
	uint8_t wire; /* of one_qp: enum hca_wire; HCA_WIRE_NONE: any */
	uint32_t qpn, remote_qpn;
};

int hca_pcap_open_ng(const char *path, const struct hca_pcap_ng *ng, struct hca_pcap **out);
/*
 * Close the file; 0, or -EIO: not everything could be written. Ports must be detached before. A
 * pcapng file ends with the numbers of frames and of lost frames.
 */
int hca_pcap_close(struct hca_pcap *file);
/* Number of frames in the file when it is closed. */
uint64_t hca_pcap_frames(const struct hca_pcap *file);
/* pcapng: selected frames that were lost because the disk is too slow. */
uint64_t hca_pcap_lost(const struct hca_pcap *file);
/* pcapng: writing has failed; the capture should be ended. */
bool hca_pcap_failed(const struct hca_pcap *file);

/*
 * Create the port; 0 or -ENOMEM. file may be NULL: nothing is written until hca_port_pcap_attach().
 */
int hca_port_pcap_open(struct hca_pcap *file, struct hca_port *inner, int socket_id,
		       struct hca_port **out);

/* Also capture received frames; before the port is used. */
void hca_port_pcap_both_ways(struct hca_port *p);

/*
 * hca_port_impair_watch_fn of an impairment in front of this port or behind it: a frame with a
 * fault gets a comment in pcapng files ("drop by rule 2"). Also writes frames that are dropped in
 * front of this port. On the lcore that transmits in d->queue.
 */
void hca_port_pcap_mark(void *port, const struct rte_mbuf *m, const struct hca_fired *d);

/* Use another file, or none (NULL). After it returns the previous file is not used any more. */
void hca_port_pcap_attach(struct hca_port *p, struct hca_pcap *file);

#endif
