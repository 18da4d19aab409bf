/* SPDX-License-Identifier: BSD-3-Clause */

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks.h"

#ifdef HOOKS_PRELOAD
#define HOOK(name) name
#else
#define HOOK(name) hook_##name
#endif

volatile uint64_t *hooks_book;

static void
note(void)
{
	if (hooks_book != NULL)
		(*hooks_book)++;
}

void *HOOK(mremap)(void *old, size_t old_bytes, size_t bytes, int flags, ...);
void *HOOK(mmap)(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int HOOK(munmap)(void *at, size_t bytes);
int HOOK(madvise)(void *at, size_t bytes, int advice);
int HOOK(ioctl)(int fd, unsigned long request, void *arg);

void *
HOOK(mremap)(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	note();
	return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, NULL);
}

void *
HOOK(mmap)(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	note();
	return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

int
HOOK(munmap)(void *at, size_t bytes)
{
	note();
	return (int)syscall(SYS_munmap, at, bytes);
}

int
HOOK(madvise)(void *at, size_t bytes, int advice)
{
	note();
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

int
HOOK(ioctl)(int fd, unsigned long request, void *arg)
{
	note();
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

#ifndef HOOKS_PRELOAD

const struct hook hooks[] = {
	{"mremap", (void *)hook_mremap}, {"mmap", (void *)hook_mmap},
	{"munmap", (void *)hook_munmap}, {"madvise", (void *)hook_madvise},
	{"ioctl", (void *)hook_ioctl},
};
const size_t hooks_count = sizeof(hooks) / sizeof(hooks[0]);

/* ---- patched relocations ---- */

struct object {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *names;
	const ElfW(Rela) * rela[2]; /* of data, of calls */
	size_t bytes[2];
};

/* The loader has made addresses of them in most objects, and left offsets in some. */
static uintptr_t
address(const struct object *o, ElfW(Addr) at)
{
	return at < o->base ? o->base + at : at;
}

static void
read_dynamic(struct object *o, const ElfW(Dyn) * d)
{
	for (; d->d_tag != DT_NULL; d++)
		switch (d->d_tag) {
		case DT_SYMTAB:
			o->symbols = (const void *)address(o, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			o->names = (const char *)address(o, d->d_un.d_ptr);
			break;
		case DT_RELA:
			o->rela[0] = (const void *)address(o, d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			o->bytes[0] = d->d_un.d_val;
			break;
		case DT_JMPREL:
			o->rela[1] = (const void *)address(o, d->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			o->bytes[1] = d->d_un.d_val;
			break;
		default:
			break;
		}
}

static void *
hook_named(const char *name)
{
	for (size_t i = 0; i < hooks_count; i++)
		if (strcmp(hooks[i].name, name) == 0)
			return hooks[i].function;
	return NULL;
}

static unsigned int
patch_table(const struct object *o, const ElfW(Rela) * rela, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int patched = 0;

	for (size_t i = 0; i < bytes / sizeof(*rela); i++) {
		const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(rela[i].r_info)];
		void *hook = ELF64_R_SYM(rela[i].r_info) != 0
				     ? hook_named(o->names + symbol->st_name)
				     : NULL;
		uintptr_t place = o->base + rela[i].r_offset;

		if (hook == NULL)
			continue;
		if (syscall(SYS_mprotect, place & ~(page - 1), page, PROT_READ | PROT_WRITE) != 0)
			continue;
		*(void **)place = hook;
		patched++;
	}
	return patched;
}

static int
patch_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object o = {.base = info->dlpi_addr};

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_dynamic(&o, (const void *)(o.base + info->dlpi_phdr[i].p_vaddr));
	for (int i = 0; i < 2 && o.symbols != NULL && o.names != NULL; i++)
		if (o.rela[i] != NULL)
			*(unsigned int *)arg += patch_table(&o, o.rela[i], o.bytes[i]);
	return 0;
}

unsigned int
hooks_patch(void)
{
	unsigned int patched = 0;

	dl_iterate_phdr(patch_object, &patched);
	return patched;
}

#endif
