/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire/opcode_set.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/roce_opcode.h"
#include "wire/ub_frame.h"
#include "wire/ub_opcode.h"

#define NAME_MAX_ 64u
#define WORDS_MAX 8u
#define SHORTEST 3u /* characters to which a word may be cut off */
#define TA_OPCODES 64u

/* A name in lower case, in words */
struct words {
	char text[NAME_MAX_];
	const char *word[WORDS_MAX];
	unsigned int n;
};

static bool
is_filler(const char *word)
{
	return strcmp(word, "rdma") == 0 || strcmp(word, "with") == 0;
}

/* False: too long. */
static bool
words_split(struct words *w, const char *name)
{
	char *rest = w->text, *word;

	w->n = 0;
	if (strlen(name) >= sizeof(w->text))
		return false;
	for (size_t i = 0; i <= strlen(name); i++)
		w->text[i] = (char)tolower((unsigned char)name[i]);
	while ((word = strsep(&rest, "-_ ")) != NULL) {
		if (*word == '\0' || is_filler(word))
			continue;
		if (w->n == WORDS_MAX)
			return false;
		w->word[w->n++] = word;
	}
	return w->n != 0;
}

/* Words that the lists cut off, and their whole words. */
static const struct {
	const char *cut, *whole;
} cut_words[] = {
	{"req", "request"},    {"resp", "response"}, {"imm", "immediate"},
	{"inv", "invalidate"}, {"ack", "ack"},
};

/* The whole word; NULL: it is whole. */
static const char *
whole_word(const char *word)
{
	for (size_t i = 0; i < sizeof(cut_words) / sizeof(cut_words[0]); i++)
		if (strcmp(word, cut_words[i].cut) == 0)
			return cut_words[i].whole;
	return NULL;
}

/* wanted may be cut off, or written out where the list is not; "compare" is "cmp" in BTH. */
static bool
word_is(const char *wanted, const char *listed)
{
	size_t m = strlen(wanted), n = strlen(listed);

	if (strcmp(wanted, "compare") == 0 && strcmp(listed, "cmp") == 0)
		return true;
	if (m > n)
		return whole_word(listed) != NULL && strncmp(wanted, listed, n) == 0;
	return (m == n || m >= SHORTEST) && strncmp(wanted, listed, m) == 0;
}

/* The words of `wanted` are those of `name` from word `at` on. */
static bool
words_begin(const struct words *wanted, const struct words *name, unsigned int at)
{
	if (name->n < wanted->n + at)
		return false;
	for (unsigned int i = 0; i < wanted->n; i++)
		if (!word_is(wanted->word[i], name->word[at + i]))
			return false;
	return true;
}

/* skip: the first word of the name may be left out. */
static bool
is_named(const struct words *wanted, const char *name, bool skip)
{
	struct words w;

	if (name == NULL || !words_split(&w, name))
		return false;
	return words_begin(wanted, &w, 0) || (skip && words_begin(wanted, &w, 1));
}

/* CNP is the only opcode of BTH whose name has no transport. */
static void
add_bth(struct hca_opcode_set *set, const struct words *wanted)
{
	for (unsigned int i = 0; i < 256; i++)
		if (hca_roce_opcodes[i].valid && is_named(wanted, hca_roce_opcodes[i].name, true))
			set->bth[i / 64] |= UINT64_C(1) << i % 64;
}

static void
add_ub(struct hca_opcode_set *set, const struct words *wanted)
{
	for (unsigned int i = 0; i < 32; i++)
		if (is_named(wanted, hca_ub_tp_ops[i].name, false))
			set->tp |= 1u << i;
	for (unsigned int i = 0; i < TA_OPCODES; i++) {
		bool atomic = (hca_ub_ta_ops[i].kind == HCA_UB_KIND_ATOMIC);

		if (is_named(wanted, hca_ub_ta_ops[i].name, atomic))
			set->ta |= UINT64_C(1) << i;
	}
}

static int
add_number(struct hca_opcode_set *set, const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (errno != 0 || *end != '\0' || n > 255)
		return -EINVAL;
	set->bth[n / 64] |= UINT64_C(1) << n % 64;
	if (n < 32)
		set->tp |= 1u << n;
	return 0;
}

int
hca_opcode_set_add(struct hca_opcode_set *set, const char *name)
{
	const struct hca_opcode_set before = *set;
	struct words wanted;

	if (isdigit((unsigned char)*name))
		return add_number(set, name);
	if (!words_split(&wanted, name))
		return -EINVAL;
	add_bth(set, &wanted);
	add_ub(set, &wanted);
	return memcmp(set, &before, sizeof(before)) != 0 ? 0 : -EINVAL;
}

/* Opcode of the transaction header of a frame of UB, or -1. */
static int
operation_of(const uint8_t *frame, const struct hca_wire_view *v)
{
	const uint8_t *tph = frame + v->transport;
	struct hca_ub_tp_view tp;

	if (hca_ub_parse_tp(tph, v->icrc - v->transport, &tp) != 0 || tp.ta == 0)
		return -1;
	return tph[tp.ta];
}

bool
hca_opcode_set_has(const struct hca_opcode_set *set, const uint8_t *frame,
		   const struct hca_wire_view *v)
{
	int operation;

	if (v->wire != HCA_WIRE_UB)
		return (set->bth[v->opcode / 64] >> v->opcode % 64 & 1) != 0;
	if (v->opcode < 32 && (set->tp >> v->opcode & 1) != 0)
		return true;
	if (set->ta == 0)
		return false;
	operation = operation_of(frame, v);
	return operation >= 0 && operation < (int)TA_OPCODES && (set->ta >> operation & 1) != 0;
}

/* In words that are whole, with dashes between them */
static void
put_name(const char *name, char *text, size_t size)
{
	struct words w;
	size_t used = 0;

	text[0] = '\0';
	if (!words_split(&w, name))
		return;
	for (unsigned int i = 0; i < w.n && used < size; i++) {
		const char *whole = whole_word(w.word[i]);

		used += (size_t)snprintf(text + used, size - used, "%s%s", i != 0 ? "-" : "",
					 whole != NULL ? whole : w.word[i]);
	}
}

void
hca_opcode_name(const uint8_t *frame, const struct hca_wire_view *v, char *text, size_t size)
{
	const char *name = hca_roce_opcode_name(v->opcode);
	int operation;

	if (v->wire == HCA_WIRE_UB) {
		operation = operation_of(frame, v);
		name = operation >= 0 ? hca_ub_ta_name((uint8_t)operation)
				      : hca_ub_tp_name(v->opcode);
	}
	put_name(name, text, size);
}
