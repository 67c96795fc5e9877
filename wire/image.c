/* SPDX-License-Identifier: Apache-2.0 */
/* The length of an image by its own headers, none of which is believed further than the bytes that are there.
 *
 * Thread rule: none, no state. */
#include "wire/image.h"
#include <stdint.h>
#include <string.h>
#include "wire/limits.h"

#define ENTRY_SIZES 16 /* of a fatbin's entry: up to the end of its two sizes */

size_t image_fatbin_size(const void *p, size_t max)
{
	if (max < IMAGE_FATBIN_HEADER || u32(p) != IMAGE_FATBIN_MAGIC ||
		u16((const uint8_t *)p + 6) != IMAGE_FATBIN_HEADER)
		return 0;
	uint64_t body = u64((const uint8_t *)p + 8);

	return body > LIMIT_IMAGE || body > max - IMAGE_FATBIN_HEADER ? 0 : IMAGE_FATBIN_HEADER + body;
}

size_t image_elf_size(const void *image, size_t max)
{
	const uint8_t *p = image;
	uint64_t end = 64, phoff, shoff, last;

	if (max < 64 || p[4] != 2 || p[5] != 1)
		return 0;
	phoff = u64(p + 32);
	shoff = u64(p + 40);
	unsigned phsize = u16(p + 54), ph = u16(p + 56), shsize = u16(p + 58), sh = u16(p + 60);

	if (phoff > LIMIT_IMAGE || shoff > LIMIT_IMAGE || (ph && phsize < 56) || (sh && shsize < 64))
		return 0;
	last = phoff + (uint64_t)phsize * ph;
	end = ph && last > end ? last : end;
	last = shoff + (uint64_t)shsize * sh;
	end = sh && last > end ? last : end;
	if (end > max)
		return 0;
	for (unsigned k = 0; k < ph; k++) {
		const uint8_t *s = p + phoff + (size_t)k * phsize;
		uint64_t off = u64(s + 8), n = u64(s + 32);

		if (off > LIMIT_IMAGE || n > LIMIT_IMAGE)
			return 0;
		end = off + n > end ? off + n : end;
	}
	for (unsigned k = 0; k < sh; k++) {
		const uint8_t *s = p + shoff + (size_t)k * shsize;
		uint64_t off = u64(s + 24), n = u64(s + 32);

		if (u32(s + 4) == 8) /* SHT_NOBITS */
			continue;
		if (off > LIMIT_IMAGE || n > LIMIT_IMAGE)
			return 0;
		end = off + n > end ? off + n : end;
	}
	return end <= max && end <= LIMIT_IMAGE ? end : 0;
}

bool image_fatbin_whole(const void *image, size_t n)
{
	size_t left = image_fatbin_size(image, n);
	const uint8_t *p = image;

	if (!left)
		return false;
	for (left -= IMAGE_FATBIN_HEADER, p += IMAGE_FATBIN_HEADER; left >= ENTRY_SIZES;) {
		uint64_t header = u32(p + 4), payload = u64(p + 8);

		if (header > left || payload > left - header)
			return false;
		if (!header && !payload) /* no entry: nothing leads further */
			return true;
		p += header + payload;
		left -= header + payload;
	}
	return true;
}

bool image_whole(const void *p, size_t n)
{
	uint32_t magic = n >= sizeof magic ? u32(p) : 0;

	if (magic == IMAGE_WRAPPER_MAGIC)
		return false;
	if (magic == IMAGE_FATBIN_MAGIC)
		return image_fatbin_whole(p, n);
	if (n >= 4 && !memcmp(p, "\x7f" "ELF", 4))
		return image_elf_size(p, n) != 0;
	return true;
}
