/* SPDX-License-Identifier: BSD-3-Clause */

/* Counters: names and values of the device, of a client's QP, of a port. */

#include <errno.h>
#include <string.h>

#include "driver_types.h"

_Static_assert(sizeof(((struct hca_ctl_counter *)0)->name) == HCA_COUNTER_NAME_LEN, "names fit");

/* One mailbox of names or values; the device's own set may need several. */
static int
query(struct hca_driver *drv, uint32_t op_modifier, uint32_t in_modifier)
{
	struct driver_cmd cmd = {
		.op = HCA_CMD_QUERY_COUNTERS,
		.op_modifier = op_modifier,
		.in_modifier = in_modifier,
		.out_param = drv->mailbox_out_bus,
	};

	memset(drv->mailbox_out, 0, HCA_MBOX_SIZE);
	return driver_command(drv, &cmd);
}

/* Header of the device's answer, which the device fills. */
static uint32_t
entries(const struct hca_mbox_counters *m, uint32_t max)
{
	uint32_t n = hca_be32_to_cpu(m->count);

	return n < max ? n : max;
}

static int
read_names(struct hca_driver *drv, uint32_t set, struct hca_ctl_counter *out, uint32_t max,
	   uint32_t *total)
{
	const struct hca_mbox_counters *m = drv->mailbox_out;
	uint32_t got = 0, n;
	int err;

	do {
		err = query(drv, set | HCA_COUNTERS_NAMES, set == HCA_COUNTERS_VALUES ? got : 0);
		if (err != 0)
			return err;
		*total = hca_be32_to_cpu(m->total);
		n = entries(m, HCA_COUNTER_NAMES_MAX);
		for (uint32_t i = 0; i < n && got < max; i++, got++) {
			memcpy(out[got].name, m->name[i], sizeof(out[got].name));
			out[got].name[sizeof(out[got].name) - 1] = '\0';
			out[got].value = 0;
		}
	} while (set == HCA_COUNTERS_VALUES && n != 0 && got < max && got < *total);
	return 0;
}

static int
read_values(struct hca_driver *drv, uint32_t set, uint32_t number, struct hca_ctl_counter *out,
	    uint32_t max)
{
	const struct hca_mbox_counters *m = drv->mailbox_out;
	uint32_t got = 0, n;
	int err;

	do {
		err = query(drv, set, set == HCA_COUNTERS_VALUES ? got : number);
		if (err != 0)
			return err;
		n = entries(m, HCA_COUNTERS_MAX);
		for (uint32_t i = 0; i < n && got < max; i++, got++)
			out[got].value = hca_be64_to_cpu(m->value[i]);
	} while (set == HCA_COUNTERS_VALUES && n != 0 && got < max &&
		 got < hca_be32_to_cpu(m->total));
	return 0;
}

int
driver_op_query_counters(struct hca_client *client, const struct hca_ctl_count *request,
			 struct hca_ctl_counters *answer)
{
	static const uint8_t sets[] = {
		[HCA_CTL_COUNTERS_DEVICE] = HCA_COUNTERS_VALUES,
		[HCA_CTL_COUNTERS_QP] = HCA_COUNTERS_QP,
		[HCA_CTL_COUNTERS_PORT] = HCA_COUNTERS_PORT,
	};
	const uint32_t of = request->of, number = request->number;
	const uint32_t max =
		request->max < HCA_CTL_COUNTERS_MAX ? request->max : HCA_CTL_COUNTERS_MAX;
	struct hca_driver *drv = client->drv;
	bool live = true;
	int err;

	if (of >= sizeof(sets))
		return driver_fail(-EINVAL, "no set of counters has the number %u", of);
	if (of == HCA_CTL_COUNTERS_PORT && number != 1)
		return driver_fail(-EINVAL, "port %u does not exist: the device has port 1",
				   number);
	if (of == HCA_CTL_COUNTERS_QP) {
		const struct driver_qp *qp = driver_qp_of(client, number);

		if (qp == NULL)
			return driver_fail(-EINVAL, "QP %#x does not exist", number);
		live = qp->live;
	}
	err = read_names(drv, sets[of], answer->counter, max, &answer->total);
	if (err != 0 || !live || max == 0)
		return err;
	return read_values(drv, sets[of], number, answer->counter,
			   max < answer->total ? max : answer->total);
}
