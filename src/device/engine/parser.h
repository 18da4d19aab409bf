/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_PARSER_H
#define ENGINE_PARSER_H

/*
 * Bits of hca_qp.parser.flags, of wqe_parser.c. A QP is on at most one list: READY or one of the
 * two record wait lists. Parked otherwise, until the message named here.
 */
enum hca_parser_flag {
	HCA_PF_READY = 1u << 0,	      /* on the ready list */
	HCA_PF_WAIT_REC = 1u << 1,    /* on the wait list of one-line records */
	HCA_PF_WAIT_FULL = 1u << 2,   /* on the wait list of full records */
	HCA_PF_PARK_WINDOW = 1u << 3, /* window full, until FREED */
	HCA_PF_PARK_STATE = 1u << 4,  /* SQD, until STATE */
	HCA_PF_GRANTED = 1u << 5,     /* woken from a wait list: may pass those who still wait */
	HCA_PF_CATAS = 1u << 6,	      /* queue is beyond repair until the QP is reset */
	HCA_PF_OVERFULL = 1u << 7,    /* more than the queue announced, see OVERFULL_NS */
};

/*
 * Bits of hca_qp.parser.marked: chains that their first WQE announces (HCA_WQE_ANNOUNCED). A mark
 * may overtake doorbells of the QP that lie behind an unfilled slot, so a QP that was marked once
 * is looked at behind each chain until it is reset.
 */
enum hca_parser_marked {
	HCA_PM_EVER = 1u << 0, /* a mark of the QP was seen in this life */
	HCA_PM_LOOK = 1u << 1, /* the queue is to be looked at when no chain is left */
};

#endif
