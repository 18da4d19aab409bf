/* SPDX-License-Identifier: BSD-3-Clause */

#include "all.h"

int
main(void)
{
	struct all all;

	all_open(&all);
	all_objects(&all);
	all_absent(&all);
	all_requests(&all);
	all_pieces(&all);
	all_completions(&all);
	all_xrc(&all);
	all_wrong(&all);
	all_errors(&all);
	all_names();
	all_close(&all);
	puts("every function answers as its page says");
	return 0;
}
