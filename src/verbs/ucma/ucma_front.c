/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls of the device of connection management into the rest of the library */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "front.h"
#include "ucma.h"

struct ibv_device **
ucma_front_devices(int *n)
{
	return front_device_list(n, "rdma_cm");
}

void
ucma_front_free_devices(struct ibv_device **list)
{
	ibv_free_device_list(list);
}

int
ucma_front_open(struct ibv_device *device, struct softhca_context **ctx)
{
	int err = softhca_open(((struct front_device *)device)->open_name, ctx);

	return -front_result_of_open(err, "rdma_cm");
}

void
ucma_front_take(struct ibv_device *device)
{
	front_device_take((struct front_device *)device);
}

void
ucma_front_drop(struct ibv_device *device)
{
	front_device_drop((struct front_device *)device);
}

int
ucma_front_result(int result, const char *call)
{
	return -front_result(result, call);
}

int
ucma_front_fault(const char *call)
{
	return -front_fault(call);
}

int
ucma_front_refuse(int err, const char *call, const char *format, ...)
{
	char reason[256];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return -front_refuse(err, call, "%s", reason);
}
