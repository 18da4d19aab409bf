/* SPDX-License-Identifier: BSD-3-Clause */

/* Objects by number. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucma.h"

#define FIRST_SIZE 64u

static int
table_grow(struct ucma_table *table, uint32_t number)
{
	uint32_t size = table->size != 0 ? table->size : FIRST_SIZE;
	void **slots;

	while (size <= number)
		size *= 2;
	if (size == table->size)
		return 0;
	slots = realloc(table->slots, size * sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	memset(slots + table->size, 0, (size - table->size) * sizeof(*slots));
	table->slots = slots;
	table->size = size;
	return 0;
}

int
ucma_table_set(struct ucma_table *table, uint32_t number, void *object)
{
	if (object == NULL) {
		if (number < table->size)
			table->slots[number] = NULL;
		if (number < table->lowest)
			table->lowest = number;
		return 0;
	}
	if (table_grow(table, number) != 0)
		return -ENOMEM;
	table->slots[number] = object;
	return 0;
}

int
ucma_table_add(struct ucma_table *table, void *object)
{
	uint32_t number = table->lowest;

	while (number < table->size && table->slots[number] != NULL)
		number++;
	if (ucma_table_set(table, number, object) != 0)
		return -ENOMEM;
	table->lowest = number + 1;
	return (int)number;
}

void *
ucma_table_get(const struct ucma_table *table, uint32_t number)
{
	return number < table->size ? table->slots[number] : NULL;
}
