/* SPDX-License-Identifier: BSD-3-Clause */

/* Names of events and states of connection management. */

#include <softhca/cm.h>

#include "abi_ctl.h"

#define CM_EVENT_NUMBER(name, number) \
	_Static_assert((int)SOFTHCA_CM_##name == (number), "events have the numbers of verbs");
HCA_CTL_CM_EVENT_LIST(CM_EVENT_NUMBER)
#undef CM_EVENT_NUMBER

const char *
softhca_cm_event_str(uint32_t type)
{
	switch (type) {
#define CM_EVENT_CASE(name, number) \
	case number: \
		return #name;
		HCA_CTL_CM_EVENT_LIST(CM_EVENT_CASE)
#undef CM_EVENT_CASE
	default:
		return "unknown";
	}
}

const char *
softhca_cm_state_str(uint32_t state)
{
	switch (state) {
#define CM_STATE_CASE(name) \
	case HCA_CTL_CM_##name: \
		return #name;
		HCA_CTL_CM_STATE_LIST(CM_STATE_CASE)
#undef CM_STATE_CASE
	default:
		return "unknown";
	}
}
