/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_DOCTOR_H
#define CTL_DOCTOR_H

/*
 * softhca-ctl doctor: checks one by one everything that can keep softhcad from running, and prints
 * the commands that fix it. It reads files below a root, which tests replace.
 */

#include "ctl.h"
#include "endpoint_config.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_WARN, /* works, but not as well as it could */
	DOCTOR_FAIL, /* does not work */
};

/* Point of view. A failure is only what can keep its daemon or programs from running. */
enum doctor_role {
	DOCTOR_SYSTEM, /* the configured daemon */
	DOCTOR_OWN,    /* daemons of this user, such as softhca-run starts: they need no setting */
	DOCTOR_EMBEDDED, /* HCAs inside programs */
};

struct doctor {
	struct ctl *ctl;
	const char *root;   /* "" or a folder: where /sys, /proc, /dev, /run and /etc are */
	const char *file;   /* configuration of the daemon; path below root; NULL: of the system */
	const char *device; /* PCI address to judge alone; or NULL */
	json_t *found;	    /* reported findings */
	unsigned int failed, warned;

	/* Results of earlier checks */
	struct ctl_others others;      /* processes that do not answer */
	unsigned int workers, clients; /* of the daemons that run */
	enum doctor_role role;
	bool configured;	       /* the file is there */
	bool running;		       /* some daemon answers */
	int pid;		       /* of the configured daemon; 0: it does not answer */
	struct endpoint_config config; /* the defaults, where the file does not say */
};

/* check: a short name. fix: a command, or NULL. */
void doctor_report(struct doctor *d, enum doctor_level level, const char *check, const char *fix,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));
#define doctor_ok(d, check, ...) doctor_report(d, DOCTOR_OK, check, NULL, __VA_ARGS__)
#define doctor_warn(d, check, ...) doctor_report(d, DOCTOR_WARN, check, __VA_ARGS__)
#define doctor_fail(d, check, ...) doctor_report(d, DOCTOR_FAIL, check, __VA_ARGS__)

/* Path below the root; a static buffer of this call. */
const char *doctor_path(const struct doctor *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The beginning of a file as text, without the last newline; -1: cannot be read. */
int doctor_read(const char *path, char *text, size_t size);
/* Its number, or -1. */
long doctor_number(const char *path);
/* Name of the target of a symbolic link; "" without one. */
void doctor_link(const char *path, char *name, size_t size);
/* The first entry of a folder whose name begins so, or "". */
void doctor_first_entry(const char *path, const char *begins, char *name, size_t size);

/* doctor_interface.c */
#define DOCTOR_PCI "/sys/bus/pci/devices/%s"
/* The interface of the kernel that a PCI device has, or "". */
void doctor_interface(const struct doctor *d, const char *address, char *net, size_t size);
/* Users of the interface on this machine: another interface or routes; "" without users. */
void doctor_interface_user(const struct doctor *d, const char *net, char *user, size_t size);
/* Value of NAME= in a list "a,NAME=value,b"; false: not there. */
bool doctor_device_arg(const char *device, const char *name, char *value, size_t size);

/* doctor_machine.c */
void doctor_hugepages(struct doctor *d);
void doctor_slow_memory(struct doctor *d);
void doctor_cpu(struct doctor *d);
void doctor_cores(struct doctor *d);
void doctor_limits(struct doctor *d);

/* doctor_port.c */
void doctor_device(struct doctor *d);
void doctor_mtu(struct doctor *d);
void doctor_kernel(struct doctor *d);
void doctor_rxe(struct doctor *d);
void doctor_bridge(struct doctor *d);

/* doctor_nic.c: the PCI device of --device, before a daemon has it */
void doctor_nic(struct doctor *d, const char *address);

/* doctor_daemon.c; first finds out whether one runs */
void doctor_daemon(struct doctor *d);
void doctor_sockets(struct doctor *d);
void doctor_gids(struct doctor *d);

/*
 * doctor_memory.c: each kind of memory of programs, tried on a device, and how it is reached. name,
 * open_name: of the device
 */
void doctor_memory(struct doctor *d, const char *name, const char *open_name);

/* doctor_verbs.c */
void doctor_verbs(struct doctor *d);

#endif
