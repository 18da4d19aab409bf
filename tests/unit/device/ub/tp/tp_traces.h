/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */

/* The traces of test_tp_trace.c, and the lines that each must have. */

/* ---- go-back-N with TPNAK ---- */
{
	.name = "GBN: packet lost",
	.mode = HCA_TP_MODE_DROP, .rule = HCA_TP_RULE_NAK, .packets = 4,
	.lost = {{1, 1}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 NAK1", "12 P1 again",
		"13 P2 again", "14 P3 again", "17 ACK1", "18 ACK2", "19 ACK3",
	},
},
{
	.name = "GBN: packet lost again",
	.mode = HCA_TP_MODE_DROP, .rule = HCA_TP_RULE_NAK, .packets = 4,
	.lost = {{1, 1}, {1, 2}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 NAK1", "12 P1 again lost",
		"13 P2 again", "14 P3 again", "50 P1 again", "51 P2 again", "52 P3 again",
		"55 ACK1", "56 ACK2", "57 ACK3",
	},
},
{
	.name = "GBN: tail lost",
	.mode = HCA_TP_MODE_DROP, .rule = HCA_TP_RULE_NAK, .packets = 4,
	.lost = {{2, 1}, {3, 1}},
	.lines = {
		"0 P0", "1 P1", "2 P2 lost", "3 P3 lost", "5 ACK0", "6 ACK1", "51 P2 again",
		"52 P3 again", "56 ACK2", "57 ACK3",
	},
},
{
	.name = "GBN: TPACK lost",
	.mode = HCA_TP_MODE_DROP, .rule = HCA_TP_RULE_NAK, .packets = 3,
	.lost_answer = {2},
	.lines = {
		"0 P0", "1 P1", "2 P2", "5 ACK0", "6 ACK1 lost", "7 ACK2",
	},
},
{
	.name = "GBN: last TPACK lost",
	.mode = HCA_TP_MODE_DROP, .rule = HCA_TP_RULE_NAK, .packets = 3,
	.lost_answer = {3},
	.lines = {
		"0 P0", "1 P1", "2 P2", "5 ACK0", "6 ACK1", "7 ACK2 lost", "51 P2 again",
		"56 ACK2",
	},
},
{
	.name = "GBN: TPNAK lost",
	.mode = HCA_TP_MODE_DROP, .rule = HCA_TP_RULE_NAK, .packets = 3,
	.lost = {{1, 1}},
	.lost_answer = {2},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "5 ACK0", "7 NAK1 lost", "50 P1 again",
		"51 P2 again", "55 ACK1", "56 ACK2",
	},
},
/* ---- go-back-N without TPNAK ---- */
{
	.name = "TRACK: packet late",
	.mode = HCA_TP_MODE_TRACK, .rule = HCA_TP_RULE_NONE, .packets = 4,
	.late = {1, 1},
	.lines = {
		"0 P0", "1 P1", "2 P2", "3 P3", "5 ACK0", "10 ACK3",
	},
},
{
	.name = "TRACK: packet lost",
	.mode = HCA_TP_MODE_TRACK, .rule = HCA_TP_RULE_NONE, .packets = 4,
	.lost = {{1, 1}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "50 P1 again", "51 P2 again",
		"52 P3 again", "55 ACK3", "56 ACK3", "57 ACK3",
	},
},
/* ---- selective, at once ---- */
{
	.name = "SACK: packet lost",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_HIGH, .packets = 4,
	.lost = {{1, 1}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101", "8 SACK0 1011",
		"12 P1 again", "17 ACK3",
	},
},
{
	.name = "SACK: packet lost again, without MARK",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_HIGH, .packets = 4,
	.more = 1, .more_at = 13,
	.lost = {{1, 1}, {1, 2}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101", "8 SACK0 1011",
		"12 P1 again lost", "13 P4", "18 SACK0 10111", "50 P1 again", "55 ACK4",
	},
},
{
	.name = "SACK: packet lost again, with MARK",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_MARK, .packets = 4,
	.more = 1, .more_at = 13,
	.lost = {{1, 1}, {1, 2}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101", "8 SACK0 1011",
		"12 P1 again lost", "13 P4", "18 SACK0 10111", "23 P1 again", "28 ACK4",
	},
},
{
	.name = "SACK: packet lost again, by time",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_TIME, .packets = 4,
	.more = 1, .more_at = 13,
	.lost = {{1, 1}, {1, 2}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101", "8 SACK0 1011",
		"12 P1 again lost", "13 P4", "18 SACK0 10111", "23 P1 again", "28 ACK4",
	},
},
{
	.name = "SACK: tail lost",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_HIGH, .packets = 5,
	.lost = {{1, 1}, {4, 1}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "4 P4 lost", "5 ACK0", "7 SACK0 101",
		"8 SACK0 1011", "12 P1 again", "17 ACK3", "62 P4 again", "67 ACK4",
	},
},
{
	.name = "SACK: TPACK lost",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_HIGH, .packets = 3,
	.lost_answer = {2},
	.lines = {
		"0 P0", "1 P1", "2 P2", "5 ACK0", "6 ACK1 lost", "7 ACK2",
	},
},
{
	.name = "SACK: last TPACK lost",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_HIGH, .packets = 3,
	.lost_answer = {3},
	.lines = {
		"0 P0", "1 P1", "2 P2", "5 ACK0", "6 ACK1", "7 ACK2 lost", "51 P2 again",
		"56 ACK2",
	},
},
{
	.name = "SACK: TPSACK lost",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_HIGH, .packets = 4,
	.lost = {{1, 1}},
	.lost_answer = {2},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101 lost",
		"8 SACK0 1011", "13 P1 again", "18 ACK3",
	},
},
/* ---- selective, by timeout ---- */
{
	.name = "SACK, rule NONE: packet late",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_NONE, .packets = 4,
	.late = {1, 1},
	.lines = {
		"0 P0", "1 P1", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101", "8 SACK0 1011",
		"10 ACK3",
	},
},
{
	.name = "SACK, rule NONE: packet lost",
	.mode = HCA_TP_MODE_SACK, .rule = HCA_TP_RULE_NONE, .packets = 4,
	.lost = {{1, 1}},
	.lines = {
		"0 P0", "1 P1 lost", "2 P2", "3 P3", "5 ACK0", "7 SACK0 101", "8 SACK0 1011",
		"50 P1 again", "55 ACK3",
	},
},
