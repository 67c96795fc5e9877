/* SPDX-License-Identifier: Apache-2.0 */
/* What a video operation carries beside its slots.
 *
 * Thread rule: constant once decoded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
	VIDEO_ADD,
	VIDEO_SUB,
	VIDEO_AVRG,
	VIDEO_ABSDIFF,
	VIDEO_MIN,
	VIDEO_MAX,
	VIDEO_SHL,
	VIDEO_SHR,
	VIDEO_MAD,
	VIDEO_SET
};
enum { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };
/* What is done with the result and c. */
enum { VIDEO_ALONE, VIDEO_PLUS, VIDEO_LEAST, VIDEO_MOST, VIDEO_MERGE };

struct video_op {
	uint8_t op, compare, second;
	uint8_t lanes; /* 1, 2, 4 */
	uint8_t bits; /* of a lane of the result: 32; 8 or 16, also of the field that a scalar one writes */
	bool a_signed, b_signed, d_signed, saturate;
	bool wrap; /* a shift takes 5 bits of its count; else more than 32 are 32 */
	bool plus_one, minus_product, minus_c; /* VIDEO_MAD */
	uint8_t shift; /* VIDEO_MAD: of the sum */
	uint8_t a_bits, b_bits; /* of a lane of a and b */
	uint8_t a_at[4], b_at[4]; /* which of them; in packed ones those of b follow those of a */
	uint8_t mask; /* lanes that are written; scalar ones: which field of c, with VIDEO_MERGE */
};
