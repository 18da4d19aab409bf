/* SPDX-License-Identifier: BSD-3-Clause */

#include "faults/verbs_faults.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <softhca/softhca.h>

#define TEXT_MAX 256u
#define ERRNO_MAX 134
#define ABSENT UINT32_MAX

/* Statuses of completions with an error. X(status of softhca.h, name) */
#define STATUS_LIST(X) \
	X(LOC_LEN_ERR, "loc-len") \
	X(LOC_QP_OP_ERR, "loc-qp-op") \
	X(LOC_PROT_ERR, "loc-prot") \
	X(WR_FLUSH_ERR, "wr-flush") \
	X(MW_BIND_ERR, "mw-bind") \
	X(BAD_RESP_ERR, "bad-resp") \
	X(LOC_ACCESS_ERR, "loc-access") \
	X(REM_INV_REQ_ERR, "rem-inv-req") \
	X(REM_ACCESS_ERR, "rem-access") \
	X(REM_OP_ERR, "rem-op") \
	X(RETRY_EXC_ERR, "retry-exc") \
	X(RNR_RETRY_EXC_ERR, "rnr-retry-exc") \
	X(REM_ABORT_ERR, "rem-abort") \
	X(FATAL_ERR, "fatal") \
	X(RESP_TIMEOUT_ERR, "resp-timeout") \
	X(GENERAL_ERR, "general")

#define NAME_OF_STATUS(status, name) " " name
#define STATUS_NAMES "one of" STATUS_LIST(NAME_OF_STATUS)

static const char *const calls[] = {
#define X(name) #name,
	VERBS_FAULT_CALLS(X)
#undef X
};

static const char *const cm_calls[] = {
#define X(name) "rdma_" #name,
	VERBS_FAULT_CM_CALLS(X)
#undef X
};

const char *
verbs_fault_status_name(uint32_t status)
{
	switch (status) {
#define X(id, name) \
	case SOFTHCA_WC_##id: \
		return name;
		STATUS_LIST(X)
#undef X
	default:
		return "unknown";
	}
}

static bool
begins(const char *text, const char *word)
{
	size_t len = strlen(word);

	return strncmp(text, word, len) == 0 && strchr(",;=", text[len]) != NULL;
}

bool
verbs_fault_is(const char *text)
{
	return begins(text, "call") || begins(text, "completion");
}

/* "IBV_WC_RETRY_EXC_ERR" is "retry-exc". */
static bool
status_is(const char *text, const char *name)
{
	static const char before[] = "IBV_WC_", after[] = "_ERR";
	size_t len = strlen(text);

	if (strncasecmp(text, before, strlen(before)) == 0) {
		text += strlen(before);
		len -= strlen(before);
	}
	if (len > strlen(after) && strcasecmp(text + len - strlen(after), after) == 0)
		len -= strlen(after);
	if (len != strlen(name))
		return false;
	for (size_t i = 0; i < len; i++)
		if (tolower((unsigned char)text[i]) != name[i] &&
		    !(text[i] == '_' && name[i] == '-'))
			return false;
	return true;
}

static const char *
take_status(struct verbs_fault *f, const char *value)
{
#define X(id, name) \
	if (status_is(value, name)) { \
		f->status = SOFTHCA_WC_##id; \
		return NULL; \
	}
	STATUS_LIST(X)
#undef X
	return STATUS_NAMES;
}

static const char *
take_call(struct verbs_fault *f, const char *value)
{
	const char *name = strncmp(value, "ibv_", 4) == 0 ? value + 4 : value;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(name, calls[i]) == 0) {
			f->call = calls[i];
			return NULL;
		}
	}
	for (size_t i = 0; i < sizeof(cm_calls) / sizeof(cm_calls[0]); i++) {
		if (strcmp(value, cm_calls[i]) == 0) {
			f->call = cm_calls[i];
			return NULL;
		}
	}
	return "a call of verbs that can fail, like ibv_reg_mr, ibv_create_qp or ibv_modify_qp, or "
	       "rdma_connect";
}

static const char *
take_errno(struct verbs_fault *f, const char *value)
{
	for (int i = 1; i < ERRNO_MAX; i++) {
		const char *name = strerrorname_np(i);

		if (name != NULL && strcmp(name, value) == 0) {
			f->err = i;
			return NULL;
		}
	}
	return "a name of errno, like ENOMEM";
}

static const char *
take_queue(struct verbs_fault *f, const char *value)
{
	if (strcmp(value, "send") == 0)
		f->of = VERBS_FAULT_SEND;
	else if (strcmp(value, "recv") == 0)
		f->of = VERBS_FAULT_RECV;
	else
		return "send or recv";
	return NULL;
}

static const char *
take_number(uint32_t *to, const char *value, uint32_t min)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)*value) || errno != 0 || *end != '\0' || n < min || n >= ABSENT)
		return min != 0 ? "a number from 1" : "a number";
	*to = (uint32_t)n;
	return NULL;
}

/* The expected text, or NULL. */
static const char *
take_pair(struct verbs_fault *f, const char *key, const char *value)
{
	if (value == NULL)
		return strcmp(key, "completion") == 0 ? NULL : "NAME=VALUE";
	if (strcmp(key, "nth") == 0)
		return take_number(&f->nth, value, 1);
	if (strcmp(key, "count") == 0)
		return take_number(&f->count, value, 0);
	if (f->kind == VERBS_FAULT_CALL) {
		if (strcmp(key, "call") == 0)
			return take_call(f, value);
		return strcmp(key, "errno") == 0 ? take_errno(f, value)
						 : "call, errno, nth or count";
	}
	if (strcmp(key, "status") == 0)
		return take_status(f, value);
	return strcmp(key, "of") == 0 ? take_queue(f, value)
				      : "completion, status, of, nth or count";
}

static const char *
complete(struct verbs_fault *f)
{
	if (f->count == ABSENT)
		f->count = f->nth != 0 ? 1 : 0;
	if (f->nth == 0)
		f->nth = 1;
	if (f->kind == VERBS_FAULT_CALL && f->err == 0)
		return "call= needs errno=NAME";
	if (f->kind == VERBS_FAULT_COMPLETION && f->status == SOFTHCA_WC_SUCCESS)
		return "completion needs status=NAME, " STATUS_NAMES;
	return NULL;
}

int
verbs_fault_parse(const char **rest, struct verbs_fault *f, char *why, size_t size)
{
	size_t len = strcspn(*rest, ";");
	char copy[TEXT_MAX], *words = copy, *key, *value;
	const char *expected;

	*f = (struct verbs_fault){.count = ABSENT};
	if (len >= sizeof(copy)) {
		snprintf(why, size, "a fault has at most %zu characters", sizeof(copy) - 1);
		return -EINVAL;
	}
	memcpy(copy, *rest, len);
	copy[len] = '\0';
	*rest = (*rest)[len] == ';' && (*rest)[len + 1] != '\0' ? *rest + len + 1 : NULL;
	snprintf(f->text, sizeof(f->text), "%.63s", copy);
	f->kind = begins(copy, "call") ? VERBS_FAULT_CALL : VERBS_FAULT_COMPLETION;
	while ((key = strsep(&words, ",")) != NULL) {
		value = strchr(key, '=');
		if (value != NULL)
			*value++ = '\0';
		expected = take_pair(f, key, value);
		if (expected == NULL)
			continue;
		snprintf(why, size, "\"%.24s%s%.40s\": expected %s", key, value != NULL ? "=" : "",
			 value != NULL ? value : "", expected);
		return -EINVAL;
	}
	expected = complete(f);
	if (expected == NULL)
		return 0;
	snprintf(why, size, "%s", expected);
	return -EINVAL;
}
