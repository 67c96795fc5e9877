/* SPDX-License-Identifier: Apache-2.0 */
/* Finding sections in ELF files. The files may be hostile: every offset is checked against the file's length
 * before it is used, and nothing larger than a named limit is read.
 *
 * Thread rule: no shared state. */
#include "server/soft/softcheck/sections.h"
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 64 /* of a section's name that is looked at */
#define MACHINE_CUDA 190

static int read_at(int fd, void *to, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = pread(fd, (char *)to + done, n - done, (off_t)(at + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r ? -errno : -ENOEXEC; /* a file that ends early */
		done += (size_t)r;
	}
	return 0;
}

static int read_part(int fd, uint64_t at, uint64_t n, void **data, size_t *size)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (at > (uint64_t)st.st_size || n > (uint64_t)st.st_size - at)
		return -ENOEXEC;
	if (n > SECTION_BYTES)
		return -EFBIG;
	char *p = malloc(n + 1);
	if (!p)
		return -ENOMEM;
	p[n] = 0;
	int e = read_at(fd, p, n, at);
	if (e) {
		free(p);
		return e;
	}
	*data = p;
	*size = n;
	return 0;
}

static bool header(int fd, Elf64_Ehdr *h)
{
	return !read_at(fd, h, sizeof *h, 0) && !memcmp(h->e_ident, ELFMAG, SELFMAG) &&
	       h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB;
}

bool is_host_elf(int fd)
{
	Elf64_Ehdr h;
	return header(fd, &h) && h.e_machine != MACHINE_CUDA;
}

static int section_header(int fd, const Elf64_Ehdr *h, uint64_t i, Elf64_Shdr *s)
{
	if (h->e_shoff > INT64_MAX - (UINT16_MAX + 1ull) * sizeof *s)
		return -ENOEXEC;
	return read_at(fd, s, sizeof *s, h->e_shoff + i * sizeof *s);
}

int section_read(int fd, const char *name, void **data, size_t *size)
{
	Elf64_Ehdr h;
	Elf64_Shdr names, s;
	char have[NAME_BYTES];
	size_t length = strlen(name) + 1;
	*data = NULL;
	*size = 0;
	if (!header(fd, &h))
		return -ENOEXEC;
	if (!h.e_shoff || !h.e_shnum)
		return 0;
	if (h.e_shentsize != sizeof s || h.e_shstrndx >= h.e_shnum || length > sizeof have)
		return -ENOEXEC;
	int e = section_header(fd, &h, h.e_shstrndx, &names);
	for (uint64_t i = 0; !e && i < h.e_shnum; i++) {
		e = section_header(fd, &h, i, &s);
		if (e || names.sh_size < length || s.sh_name > names.sh_size - length)
			continue; /* its name is another */
		if (names.sh_offset > INT64_MAX - names.sh_size)
			return -ENOEXEC;
		e = read_at(fd, have, length, names.sh_offset + s.sh_name);
		if (!e && !memcmp(have, name, length) && s.sh_type != SHT_NOBITS)
			return read_part(fd, s.sh_offset, s.sh_size, data, size);
	}
	return e;
}

int file_read(int fd, void **data, size_t *size)
{
	struct stat st;
	*data = NULL;
	*size = 0;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	return read_part(fd, 0, (uint64_t)st.st_size, data, size);
}
