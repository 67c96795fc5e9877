/* SPDX-License-Identifier: Apache-2.0 */
/* Words from elsewhere, made fit for a log line, a value or a file name. No state. */
#include "scudafs/text.h"
#include <string.h>

void text_clean(char *s)
{
	s[strcspn(s, "\n")] = '\0';
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
			*s = '?';
}

void text_name(char out[65], const char *s)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t n = 0;
	while (*s == '.')
		s++;
	for (; *s && n < 64; s++)
		out[n++] = strchr(allowed, *s) ? *s : '_';
	if (!n)
		out[n++] = '_';
	out[n] = '\0';
}
