/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

/*
 * Counters. Every drop, retry and error is explained by exactly one of them. Each stage counts into
 * its own cache lines (hca_count()); hca_counter_value() sums. Names follow rxe and mlx5.
 *
 * While nothing is in progress these sums hold exactly (the simulator checks them).
 *   rcvd_pkts - rx_mcast_pkts + rx_mcast_members
 *	= HCA_RX_DROP_LIST + rcvd_requests + rcvd_responses
 *	  + ub_rx_tp_packets + ub_rx_acks + ub_rx_utp
 *   rcvd_requests = requests executed + HCA_REQUEST_DROP_LIST
 *   rcvd_responses = responses used + HCA_RESPONSE_DROP_LIST
 *   np_ecn_marked_roce_packets = np_cnp_sent + np_cnp_suppressed + np_ecn_marked_unanswered
 *   req_packets + resp_packets + acks_sent + naks_sent + np_cnp_sent
 *	+ ub_packets + HCA_UB_AGAIN_LIST + ub_utp_packets + ub_answers + ub_cnp_sent
 *	= sent_pkts + HCA_DESCRIPTOR_DROP_LIST
 *   req_packets = first transmissions + retransmissions; retransmissions = HCA_AGAIN_LIST
 *   sent_pkts + loopback_copies
 *	= loopback_pkts + loopback_drops + HCA_TX_DROP_LIST + frames the port took
 *   doorbells + db_read_on = chains begun + db_kicks + HCA_DOORBELL_DROP_LIST
 *   sq_wqes = req_completions + req_cqe_error + req_cqe_flush_error + sq_purged
 *   CQEs wanted = CQEs written + cqe_overrun + cqe_dead_cq
 *   events_raised = comp_events + async_events + events_coalesced + events_unmapped + events_dead
 * UB:
 *   ub_rx_tp_packets = ub_tp_passed + HCA_UB_TP_DROP_LIST
 *   ub_rx_acks = HCA_UB_HEARD_LIST
 *   ub_rx_ecn_marked = ub_cnp_sent + ub_cnp_suppressed + ub_ecn_marked_unanswered
 *   ub_tp_passed + ub_rx_utp = ub_responses + ub_ta_used + HCA_UB_RESPONSE_DROP_LIST
 *	+ HCA_UB_REQUEST_DROP_LIST
 *   ub_ops_sent = ub_ops_acked + ub_ops_given_up
 *   ub_segments = ub_segments_done + ub_segments_failed + ub_segments_not_ready
 *   ub_requests = those done, not ready, late and refused + ub_requests_abandoned
 *	= ub_requests_abandoned + ub_answers_abandoned + ub_taacks + ub_taacks_merged
 *	+ ub_read_responses + ub_atomic_responses
 * gsi_no_receive: datagrams to QPN 1 for which the connection manager of the host had no receive.
 * "late": memory of another process did not answer in time; the packet counts as lost.
 * Refused to QPs without privilege: qp_qkey_refused, Q_Keys with the top bit in commands
 * (hcr_errors also counts these); sq_management_refused, datagrams to QPN 0 or 1 and, of UB, to
 * the driver's well-known numbers (so does sq_bad_wqe). The other names give details of one of
 * these, or count waits: resp_abandoned, answers not sent when the QP was reset or failed;
 * req_no_mbuf and resp_no_mbuf, tries in vain.
 */

/*
 * UB: reasons for which decap drops a packet. The first nine are those of HCA_UB_DROP_LIST
 * (wire/ub_frame.h); the others are about its TP.
 */
#define HCA_UB_RX_DROP_LIST(X) \
	X(ub_rx_short) \
	X(ub_rx_bad_length) \
	X(ub_rx_bad_version) \
	X(ub_rx_bad_opcode) \
	X(ub_rx_bad_nlp) \
	X(ub_rx_security) \
	X(ub_rx_bad_status) \
	X(ub_rx_bad_sack) \
	X(ub_rx_bad_pad) \
	X(ub_rx_unknown_tpn) \
	X(ub_rx_tp_state) \
	X(ub_rx_bad_source) \
	X(ub_rx_bad_destination) \
	X(ub_rx_bad_peer) \
	X(ub_rx_bad_eid) \
	X(ub_rx_cnp_ignored)

/* TP Packets that TPR does not pass on, by reason; the first four as in tp_core.h. */
#define HCA_UB_TP_DROP_LIST(X) \
	X(ub_tp_fake) \
	X(ub_tp_duplicates) \
	X(ub_tp_out_of_order) \
	X(ub_tp_invalid) \
	X(ub_tp_stale)

/* Acknowledgements and CNPs, by the use that TPS makes of them. */
#define HCA_UB_HEARD_LIST(X) \
	X(ub_acks_used) \
	X(ub_acks_old) \
	X(ub_acks_bad) \
	X(ub_acks_stale) \
	X(ub_cnp_handled)

/* Packets of operations that were sent before, by reason (enum hca_tp_again in tp.h). */
#define HCA_UB_AGAIN_LIST(X) \
	X(ub_resent_nak) \
	X(ub_resent_high) \
	X(ub_resent_mark) \
	X(ub_resent_time) \
	X(ub_resent_timeout)

/* Reasons for which TAI does not use a packet that TPR has passed on. */
#define HCA_UB_RESPONSE_DROP_LIST(X) \
	X(ub_rsp_malformed) \
	X(ub_rsp_stale) \
	X(ub_rsp_unknown_queue) \
	X(ub_rsp_unknown_request) \
	X(ub_rsp_abandoned) \
	X(ub_rsp_late) \
	X(ub_rsp_other_peer) \
	X(ub_rsp_bad) \
	X(ub_rsp_bad_place) \
	X(ub_rsp_poison) \
	X(ub_rsp_scatter_error) \
	X(ub_rsp_scatter_late)

/*
 * Reasons for which a received packet is dropped before a QP accepts it, and packets that are
 * neither request nor response.
 */
#define HCA_RX_DROP_LIST(X) \
	X(rx_short) \
	X(rx_not_ip) \
	X(rx_bad_ip) \
	X(rx_fragment) \
	X(rx_not_udp) \
	X(rx_not_roce) \
	X(rx_bad_length) \
	X(rx_bad_bth) \
	X(rx_bad_opcode) \
	X(rx_bad_pad) \
	X(rx_icrc_encapsulated) \
	X(rx_multi_segment) \
	X(rx_unknown_qpn) \
	X(rx_qp_state) \
	X(rx_bad_source) \
	X(rx_bad_destination) \
	X(rx_bad_pkey) \
	X(rx_bad_migration) \
	X(rx_bad_service) \
	X(rx_bad_qkey) \
	X(rx_mcast_unattached) \
	X(rx_mcast_no_buffer) \
	X(rx_stale_generation) \
	X(rx_handover_full) \
	X(rp_cnp_ignored) \
	X(rp_cnp_handled) \
	HCA_UB_RX_DROP_LIST(X)

/* Reasons for which a QP accepts a request and does not execute it. */
#define HCA_REQUEST_DROP_LIST(X) \
	X(duplicate_request) \
	X(out_of_seq_request) \
	X(out_of_buffer) \
	X(gsi_no_receive) \
	X(resp_invalid_request) \
	X(resp_remote_access_errors) \
	X(resp_remote_operation_errors) \
	X(resp_management_errors) \
	X(resp_uc_dropped) \
	X(resp_ud_dropped) \
	X(resp_scatter_late) \
	X(resp_flush_dropped)

/*
 * Reasons for which a QP accepts an acknowledgement or response and does not use it.
 * req_out_of_order: an earlier response is missing, so an acknowledgement is used at most up to
 * there.
 */
#define HCA_RESPONSE_DROP_LIST(X) \
	X(req_stale_response) \
	X(req_duplicate_ack) \
	X(req_bad_response) \
	X(req_out_of_order) \
	X(req_scatter_error) \
	X(req_scatter_late)

/* Reasons for which no frame is built from a descriptor. */
#define HCA_DESCRIPTOR_DROP_LIST(X) \
	X(stale_descriptors) \
	X(req_dropped_released) \
	X(req_gather_error) \
	X(req_bad_av) \
	X(resp_gather_error) \
	X(req_gather_late) \
	X(resp_gather_late) \
	X(ub_dropped_answered) \
	X(ub_dropped_dead) \
	X(ub_gather_late) \
	X(ub_bad_av)

/* Reasons for retransmissions, in the order of enum hca_again (msg.h). */
#define HCA_AGAIN_LIST(X) \
	X(again_timeout) \
	X(again_seq_nak) \
	X(again_implied_nak) \
	X(again_rnr_nak) \
	X(again_gather) \
	X(again_ask) \
	X(again_late)

/*
 * Reasons for which a doorbell has no effect. db_stale: its QP was destroyed or cannot send;
 * db_dropped: it was accepted, but then the queue was invalid or the QP was reset. If some of its
 * WQEs were executed before, it is counted in db_cut.
 */
#define HCA_DOORBELL_DROP_LIST(X) \
	X(db_bad_opcode) \
	X(db_dead_qpn) \
	X(db_foreign_qpn) \
	X(db_bad_index) \
	X(db_bad_state) \
	X(db_stale) \
	X(db_dropped)

/* Reasons for which a frame is built but does not reach the port. */
#define HCA_TX_DROP_LIST(X) \
	X(tx_discard_link_down) \
	X(tx_discard_stalled)

/* Why a request may not reach a memory: HCA_TOKEN_VERDICT_LIST (ub/token.h). */
#define HCA_UB_TOKEN_LIST(X) \
	X(ub_token_unknown) \
	X(ub_token_not_exported) \
	X(ub_token_range) \
	X(ub_token_right) \
	X(ub_token_mismatch)

/* Reasons of HCA_UB_REFUSE_LIST (wire/ub_frame.h): requests are refused, responses dropped. */
#define HCA_UB_REFUSE_COUNTERS(X) \
	X(ub_ta_bad_version) \
	X(ub_ta_bad_opcode) \
	X(ub_ta_bad_service) \
	X(ub_ta_bad_ee) \
	X(ub_ta_bad_code) \
	X(ub_ta_bad_flags) \
	X(ub_ta_bad_user) \
	X(ub_ta_bad_status) \
	X(ub_ta_short) \
	X(ub_ta_bad_pad) \
	X(ub_ta_bad_last) \
	X(ub_ta_bad_length) \
	X(ub_ta_bad_atomic) \
	X(ub_ta_bad_enables) \
	X(ub_ta_not_offered)

/*
 * Reasons for which TAT does not use a packet that the transport has accepted. One packet of a
 * refused request has the reason, those behind it are ub_ta_after_refusal.
 */
#define HCA_UB_REQUEST_DROP_LIST(X) \
	HCA_UB_REFUSE_COUNTERS(X) \
	X(ub_ta_stale) \
	X(ub_ta_too_many) \
	X(ub_ta_disagree) \
	X(ub_ta_after_refusal) \
	X(ub_ta_sequence) \
	X(ub_ta_group) \
	X(ub_ta_bad_sum) \
	X(ub_ta_bad_alignment) \
	X(ub_ta_poison) \
	X(ub_ta_edge) \
	X(ub_tc_unknown) \
	X(ub_tc_error) \
	X(ub_tc_token) \
	X(ub_tc_alone) \
	X(ub_tc_stranger) \
	X(ub_no_receive) \
	X(ub_no_message) \
	X(ub_no_op) \
	X(ub_bad_receive) \
	X(ub_receive_too_long) \
	X(ub_scatter_late) \
	X(ub_scatter_gone) \
	X(ub_token_suspect) \
	HCA_UB_TOKEN_LIST(X)

#define HCA_COUNTER_LIST(X) \
	/* port */ \
	X(sent_pkts) \
	X(rcvd_pkts) \
	X(port_xmit_data) \
	X(port_rcv_data) \
	HCA_TX_DROP_LIST(X) \
	X(tx_backlog_events) \
	/* drops */ \
	HCA_RX_DROP_LIST(X) \
	/* multicast: packets, members addressed, and members served */ \
	X(rx_mcast_pkts) \
	X(rx_mcast_members) \
	X(rx_mcast_copies) \
	/* frames given to the pipe of their QP, and copies of multicasts that it did not get */ \
	X(rx_handed_over) \
	X(rx_mcast_not_handed) \
	/* loopback_copies: multicasts, which leave as well */ \
	X(loopback_pkts) \
	X(loopback_copies) \
	X(loopback_drops) \
	/* doorbells */ \
	X(doorbells) \
	HCA_DOORBELL_DROP_LIST(X) \
	X(db_kicks) \
	X(db_cut) \
	/* the page was full: marks taken, and chains that were found in their queue */ \
	X(db_marks) \
	X(db_read_on) \
	/* send queue; sq_inline: of sq_wqes, requests with inline data */ \
	X(sq_wqes) \
	X(sq_inline) \
	X(sq_bad_wqe) \
	X(sq_management_refused) \
	X(sq_catas) \
	X(sq_purged) \
	X(sq_parked_window) \
	X(sq_parked_record) \
	/* requester: req_packets also counts repeated ones; retransmissions: packets sent again; \
	 * req_rewinds: times req_tx went back */ \
	X(req_packets) \
	X(retransmissions) \
	HCA_AGAIN_LIST(X) \
	X(req_rewinds) \
	X(rcvd_responses) \
	X(local_ack_timeout_err) \
	X(packet_seq_err) \
	X(implied_nak_seq_err) \
	X(rnr_nak_received) \
	X(rnr_nak_retry_err) \
	X(req_remote_invalid_request) \
	X(req_remote_access_errors) \
	X(req_remote_operation_errors) \
	X(req_transport_retries_exceeded) \
	X(req_rnr_retries_exceeded) \
	X(req_cqe_error) \
	X(req_cqe_flush_error) \
	HCA_RESPONSE_DROP_LIST(X) \
	X(rdma_sends) \
	X(req_completions) \
	X(req_paced) \
	X(req_no_mbuf) \
	X(req_local_ops) \
	X(req_bind_error) \
	X(path_migrations) \
	/* responder */ \
	X(rcvd_requests) \
	HCA_REQUEST_DROP_LIST(X) \
	X(rx_send_requests) \
	X(rx_write_requests) \
	X(rx_read_requests) \
	X(rx_atomic_requests) \
	X(rx_atomic_writes) \
	X(rx_flush_requests) \
	X(out_of_sequence) \
	X(rnr_nak_sent) \
	X(seq_nak_sent) \
	X(resp_local_length_error) \
	X(resp_local_protection_error) \
	X(resp_local_operation_error) \
	X(resp_duplicate_dropped) \
	X(resp_duplicate_refused) \
	X(resp_cqe_error) \
	X(resp_cqe_flush_error) \
	X(resp_completions) \
	X(resp_packets) \
	X(resp_repeated) \
	X(resp_repeats_slowed) \
	X(acks_sent) \
	X(naks_sent) \
	X(resp_abandoned) \
	X(resp_no_mbuf) \
	X(resp_invalidations) \
	X(resp_invalidate_error) \
	X(resp_xrc_srq_error) \
	X(rq_catas) \
	X(srq_limit_events) \
	X(srq_catas) \
	X(rdma_recvs) \
	/* queues */ \
	X(cqe_overrun) \
	X(cqe_dead_cq) \
	/* unmapped: to no event queue; dead: its object or queue was destroyed first */ \
	X(events_raised) \
	X(comp_events) \
	X(async_events) \
	X(events_coalesced) \
	X(events_unmapped) \
	X(events_dead) \
	X(eq_parked) \
	/* descriptors */ \
	HCA_DESCRIPTOR_DROP_LIST(X) \
	/* control */ \
	X(hcr_commands) \
	X(hcr_errors) \
	X(qp_qkey_refused) \
	X(rounds) \
	/*
	 * workers: times they slept; times they were woken by a kick; times the alarm found work
	 * without a kick; kicks of clients without a doorbell; and times a client's kicks were
	 * ignored for MUTE_NS (graph/sleep.c) because of that
	 */ \
	X(worker_sleeps) \
	X(worker_kicked) \
	X(wake_missed) \
	X(kicks_for_nothing) \
	X(kicks_muted) \
	/* \
	 * reliable requests and READ responses in the network (engine/order.h): \
	 * missing when a later one came; of these, came without a repetition, and how many had \
	 * overtaken them, in sum (the others were lost); requests that came twice though the \
	 * peer did not repeat them; answers that did though this side repeated nothing \
	 */ \
	X(rx_missing) \
	X(rx_late) \
	X(rx_late_depth) \
	X(rx_doubled) \
	X(answers_doubled) \
	/* \
	 * path MTU, of samples (requester/rtt.h): acknowledgements of messages with frames of \
	 * the full MTU and without; and all timeouts of a full frame of QPs of which none passed \
	 */ \
	X(full_frames_passed) \
	X(small_frames_passed) \
	X(full_frames_timeouts) \
	/* \
	 * congestion: received with CE; of these, CNPs sent, marks within the interval of a CNP \
	 * or of a QP that ended, and those of UC, UD and packets without data, which need none \
	 */ \
	X(np_ecn_marked_roce_packets) \
	X(np_cnp_sent) \
	X(np_cnp_suppressed) \
	X(np_ecn_marked_unanswered) \
	/* UB, received: packets by kind; those with CE; TPs whose numbers disagreed */ \
	X(ub_rx_tp_packets) \
	X(ub_rx_acks) \
	X(ub_rx_utp) \
	/* \
	 * of these, CNPs sent, marks within the interval of a CNP or of a TP that ended, and \
	 * those that need none: no TP Packets, or of a TP that has not agreed on CNPs \
	 */ \
	X(ub_rx_ecn_marked) \
	X(ub_cnp_sent) \
	X(ub_cnp_suppressed) \
	X(ub_ecn_marked_unanswered) \
	X(ub_tp_passed) \
	HCA_UB_TP_DROP_LIST(X) \
	X(ub_tp_broken) \
	HCA_UB_HEARD_LIST(X) \
	X(ub_acks_status_lost) /* of no operation in flight */ \
	HCA_UB_RESPONSE_DROP_LIST(X) \
	HCA_UB_REQUEST_DROP_LIST(X) \
	/* UB, sent: packets for the first time, again, unreliable ones, acknowledgements; tries \
	 * without a buffer; packets whose payload could not be read */ \
	X(ub_packets) \
	HCA_UB_AGAIN_LIST(X) \
	X(ub_utp_packets) \
	X(ub_answers) \
	X(ub_no_mbuf) \
	X(ub_poisoned) \
	/* UB: operations with PSNs, and their results; timeouts; TPs given up by them */ \
	X(ub_ops_sent) \
	X(ub_ops_acked) \
	X(ub_ops_given_up) \
	X(ub_tp_timeouts) \
	X(ub_tp_timeouts_put_off) /* this worker did not run when the time was up */ \
	X(ub_tp_retries_exceeded) \
	/* UB, initiator: responses used; segments of requests, each sending counted, and its \
	 * result; those sent again, those overdue; requests without an answer; Jettys \
	 * suspended by a failure; times that one had to wait for room */ \
	X(ub_responses) \
	X(ub_segments) \
	X(ub_segments_done) \
	X(ub_segments_failed) \
	X(ub_segments_not_ready) \
	X(ub_segments_reissued) \
	X(ub_segments_overdue) \
	X(ub_segments_told) /* by the status of a TPACK */ \
	X(ub_requests_timed_out) \
	X(ub_requests_put_off) /* this worker did not run when the time was up */ \
	X(ub_suspended) \
	X(ub_parked_room) \
	X(ub_not_for_peer) \
	X(ub_not_imported) \
	X(ub_places_lapsed) \
	/* UB, target: packets used; requests and their results; answers; seconds in which a \
	 * TP brought too many wrong tokens */ \
	X(ub_ta_used) \
	X(ub_requests) \
	X(ub_requests_done) \
	X(ub_requests_not_ready) \
	X(ub_requests_late) \
	X(ub_requests_refused) \
	X(ub_ordered_held)	  /* completions that waited for packets before them */ \
	X(ub_requests_unanswered) /* for queues that are gone, on a TP that does not tell */ \
	X(ub_requests_abandoned) \
	X(ub_taacks) \
	X(ub_taacks_merged) \
	X(ub_read_responses) \
	X(ub_atomic_responses) \
	X(ub_answers_abandoned) \
	X(ub_token_floods)

/*
 * Counters of one QP since it left RESET: frames and payload bytes in both directions, as requester
 * and responder, and errors. Names as above; out_of_sequence includes the device's
 * out_of_seq_request, rx_dropped all of rx_packets that were not executed or used, for any reason,
 * rx_doubled the device's answers_doubled, and errors of completions include flushed ones. Packets
 * dropped before they were assigned to the QP are only in the device's counters, because anyone can
 * send them.
 */
#define HCA_QP_COUNTER_LIST(X) \
	X(tx_packets) \
	X(tx_bytes) \
	X(rx_packets) \
	X(rx_bytes) \
	X(retransmissions) \
	X(local_ack_timeout_err) \
	X(packet_seq_err) \
	X(implied_nak_seq_err) \
	X(rnr_nak_received) \
	X(rx_dropped) \
	X(duplicate_request) \
	X(out_of_sequence) \
	X(rnr_nak_sent) \
	X(seq_nak_sent) \
	X(rx_missing) \
	X(rx_late) \
	X(rx_doubled) \
	X(rp_cnp_handled) \
	X(req_cqe_error) \
	X(resp_cqe_error)

/*
 * Counters of the port: frames and bytes (Ethernet header to ICRC) in both directions, sums of
 * drops, and frames that the port lost because it was not read in time.
 */
#define HCA_PORT_COUNTER_LIST(X) \
	X(port_xmit_packets) \
	X(port_xmit_data) \
	X(port_xmit_discards) \
	X(port_rcv_packets) \
	X(port_rcv_data) \
	X(port_rcv_errors) \
	X(port_rcv_missed)

enum hca_counter {
#define X(n) HCA_CTR_##n,
	HCA_COUNTER_LIST(X)
#undef X
	HCA_CTR_N
};

#endif
