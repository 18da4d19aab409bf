/* SPDX-License-Identifier: BSD-3-Clause */

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ucma_got.h"

#if defined(__x86_64__)
#define GOT_IS_ADDRESS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define GOT_IS_ADDRESS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define GOT_IS_ADDRESS(type) false /* librdmacm finds no device */
#endif

/* Contents of the dynamic section of a library */
struct got_library {
	ElfW(Addr) base, end;
	ElfW(Addr) relro, relro_bytes;
	const char *strings;
	const ElfW(Sym) * symbols;
	ElfW(Xword) soname; /* offset in strings; 0: none */
	const ElfW(Rela) * tables[2];
	size_t sizes[2]; /* in bytes */
};

struct got_search {
	const char *soname;
	const struct ucma_got_name *names;
	size_t n;
	size_t replaced;
};

/* Addresses in the dynamic section are absolute once the loader has seen it, but the vDSO's. */
static const void *
got_pointer(const struct got_library *library, ElfW(Addr) address)
{
	return (const void *)(address < library->base ? library->base + address : address);
}

static void
got_read(struct got_library *library, const ElfW(Dyn) * dyn)
{
	for (; dyn->d_tag != DT_NULL; dyn++)
		switch (dyn->d_tag) {
		case DT_STRTAB:
			library->strings = got_pointer(library, dyn->d_un.d_ptr);
			break;
		case DT_SYMTAB:
			library->symbols = got_pointer(library, dyn->d_un.d_ptr);
			break;
		case DT_SONAME:
			library->soname = dyn->d_un.d_val;
			break;
		case DT_RELA:
			library->tables[0] = got_pointer(library, dyn->d_un.d_ptr);
			break;
		case DT_RELASZ:
			library->sizes[0] = dyn->d_un.d_val;
			break;
		case DT_JMPREL:
			library->tables[1] = got_pointer(library, dyn->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			library->sizes[1] = dyn->d_un.d_val;
			break;
		default:
			break;
		}
}

static bool
got_is_relro(const struct got_library *library, const void *slot)
{
	ElfW(Addr) address = (ElfW(Addr))slot;

	return address >= library->relro && address - library->relro < library->relro_bytes;
}

/* The page is writable for the moment of the store alone. */
static bool
got_store(const struct got_library *library, void **slot, void *to)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)slot & ~(uintptr_t)(page - 1));
	bool relro = got_is_relro(library, slot);

	if (relro && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(slot, to, __ATOMIC_RELEASE);
	if (relro)
		mprotect(start, page, PROT_READ);
	return true;
}

/*
 * An address inside of the library is that of code that looks for the function when it is called
 * first, and would store it over ours.
 */
static void *
got_target(const struct got_library *library, void *from, const char *name)
{
	ElfW(Addr) address = (ElfW(Addr))from;

	return address >= library->base && address < library->end ? dlsym(RTLD_DEFAULT, name)
								  : from;
}

static bool
got_replace(const struct got_library *library, void **slot, const struct ucma_got_name *name)
{
	void *from = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (from == name->to)
		return false;
	from = got_target(library, from, name->name);
	if (from == NULL)
		return false;
	__atomic_store_n(name->from, from, __ATOMIC_RELEASE);
	return got_store(library, slot, name->to);
}

static void
got_look(const struct got_library *library, const ElfW(Rela) * rela, struct got_search *search)
{
	const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(rela->r_info)];
	const char *name = library->strings + symbol->st_name;
	void **slot = (void **)(library->base + rela->r_offset);

	if (!GOT_IS_ADDRESS(ELF64_R_TYPE(rela->r_info)))
		return;
	for (size_t i = 0; i < search->n; i++)
		if (strcmp(name, search->names[i].name) == 0 &&
		    got_replace(library, slot, &search->names[i]))
			search->replaced++;
}

static void
got_segments(struct got_library *library, const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD) {
			library->end = library->base + segment->p_vaddr + segment->p_memsz;
		} else if (segment->p_type == PT_GNU_RELRO) {
			library->relro = library->base + segment->p_vaddr;
			library->relro_bytes = segment->p_memsz;
		} else if (segment->p_type == PT_DYNAMIC) {
			got_read(library, (const void *)(library->base + segment->p_vaddr));
		}
	}
}

static int
got_visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct got_library library = {.base = info->dlpi_addr};
	struct got_search *search = arg;

	(void)bytes;
	got_segments(&library, info);
	if (library.strings == NULL || library.symbols == NULL || library.soname == 0 ||
	    strcmp(library.strings + library.soname, search->soname) != 0)
		return 0;
	for (int i = 0; i < 2; i++)
		for (size_t at = 0; at < library.sizes[i]; at += sizeof(ElfW(Rela)))
			got_look(&library, &library.tables[i][at / sizeof(ElfW(Rela))], search);
	return 1;
}

size_t
ucma_got_lead(const char *soname, const struct ucma_got_name *names, size_t n)
{
	struct got_search search = {soname, names, n, 0};

	dl_iterate_phdr(got_visit, &search);
	return search.replaced;
}
