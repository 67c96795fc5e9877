/* SPDX-License-Identifier: Apache-2.0 */
/* How an image is sent: its kind and the sizes of its parts in the head, the parts one behind the other in
 * the bulk. */
#pragma once

enum image_kind {
	IMAGE_WRAPPER1 = 1, /* a wrapper of version 1 around one fatbin */
	IMAGE_WRAPPER2, /* version 2: a linked fatbin, then the relocatable ones */
	IMAGE_FATBIN, /* a bare fatbin */
	IMAGE_ELF,
	IMAGE_PTX, /* text without its NUL */
	IMAGE_ARCHIVE, /* for the linker only */
};
