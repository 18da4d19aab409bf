/* SPDX-License-Identifier: BSD-3-Clause */

#include "config_faults.h"

#include "port/impair_text.h"

int
endpoint_faults_judge(const char *text, char *why, size_t size)
{
	struct hca_impair_text t;
	int err = 0;

	while (text != NULL && err == 0)
		err = hca_impair_parse_next(&text, &t, why, size);
	return err;
}
