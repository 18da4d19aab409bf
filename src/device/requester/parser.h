/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PARSER_H
#define REQUESTER_PARSER_H

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
	/* woken from a wait list: may take a record before those still waiting */
	HCA_PF_GRANTED = 1u << 5,
	HCA_PF_CATAS = 1u << 6,	   /* the queue is unusable until the QP is reset */
	HCA_PF_OVERFULL = 1u << 7, /* more WQEs than the queue holds, see OVERFULL_NS */
};

/*
 * Bits of hca_qp.parser.marked: chains announced by their first WQE (HCA_WQE_ANNOUNCED). A mark may
 * overtake the QP's doorbells in slots after an unfilled one, so a QP that was marked once is
 * checked after each chain until it is reset.
 */
enum hca_parser_marked {
	HCA_PM_EVER = 1u << 0, /* the QP was marked since its reset */
	HCA_PM_LOOK = 1u << 1, /* check the queue when no chain is left */
};

#endif
