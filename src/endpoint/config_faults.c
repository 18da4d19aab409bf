/* SPDX-License-Identifier: BSD-3-Clause */

#include "config_faults.h"

#include "port/impair_text.h"

int
endpoint_faults_judge_next(const char **rest, char *why, size_t size)
{
	struct hca_impair_text t;

	return hca_impair_parse_next(rest, &t, why, size);
}
