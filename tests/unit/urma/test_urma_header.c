/* SPDX-License-Identifier: BSD-3-Clause */

/* The header in a strict C11 program, with the library as it is installed: no device is there. */

#include <softhca/urma.h>

#include <stdio.h>
#include <string.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			printf("line %d: %s: %s\n", __LINE__, #condition, softhca_urma_reason()); \
			return 1; \
		} \
	} while (0)

int
main(void)
{
	char name[] = "no-such-device", long_name[100];
	urma_device_attr_t attr;
	urma_device_t *dev;
	uint32_t n = 7;

	CHECK(urma_uninit() == URMA_FAIL);
	CHECK(urma_init(NULL) == URMA_SUCCESS);
	CHECK(urma_get_device_list(NULL) == NULL && errno == EINVAL);
	dev = urma_get_device_by_name(name);
	CHECK(dev != NULL && strcmp(dev->name, name) == 0 && dev->type == URMA_TRANSPORT_UB);
	CHECK(urma_get_device_by_name(name) == dev);
	memset(long_name, 'x', sizeof(long_name));
	long_name[99] = 0;
	CHECK(urma_get_device_by_name(long_name) == NULL);
	CHECK(urma_create_context(dev, 0) == NULL && softhca_urma_reason()[0] != 0);
	CHECK(urma_get_eid_list(dev, &n) == NULL && n == 0);
	CHECK(urma_query_device(dev, &attr) != URMA_SUCCESS);
	CHECK(softhca_urma_context(NULL) == NULL && errno == EINVAL);
	CHECK(urma_delete_context(NULL) == URMA_EINVAL);
	CHECK(urma_alloc_token_id(NULL) == NULL && errno == EOPNOTSUPP);
	CHECK(urma_poll_jfc(NULL, 1, NULL) == -1);
	CHECK(urma_post_jfs_wr(NULL, NULL, NULL) == URMA_EINVAL);
	CHECK(urma_uninit() == URMA_SUCCESS);
	return 0;
}
