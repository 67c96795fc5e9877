// SPDX-License-Identifier: Apache-2.0
/* The runtime's integrity question: MD2 against its RFC, the signature against a published sample, the
 * constants, and the devices that are signed. */
#include "devshim/handshake.c"
#include "tests/unit/unit.h"
#include <stdio.h>

static int device_count = 1;
CUresult cuDriverGetVersion(int *v) { return *v = 13000, CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n)
{
	*n = device_count;
	return device_count < 0 ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *u, CUdevice d) { return memset(u->bytes, 'a' + d, 16), CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	*v = (int)a + d;
	return CUDA_SUCCESS;
}

static const char *hex(const uint8_t b[16])
{
	static char s[33];
	for (unsigned i = 0; i < 16; i++)
		sprintf(s + 2 * i, "%02x", b[i]);
	return s;
}

static const struct { const char *text, *digest; } vectors[] = {
	{"", "8350e5a3e24c153df2275c9f80692773"},
	{"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
	{"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
	{"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
	{"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
	{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
			"d5976f79d83d3a0dc9806c3c66f3efd8"},
};

START_TEST(digests)
{
	struct md2 m;
	uint8_t out[16];
	md2_init(&m);
	md2_add(&m, vectors[_i].text, strlen(vectors[_i].text));
	md2_end(&m, out);
	ck_assert_str_eq(hex(out), vectors[_i].digest);
}
END_TEST

START_TEST(sample)
{
	static const uint8_t uuid[16] = {0x67, 0x22, 0xCB, 0xCF, 0xC6, 0x61, 0xF2, 0x92, 0x74, 0xD6, 0xED,
			0x23, 0x2A, 0x32, 0x13, 0x1C};
	const struct handshake h = {12020, 0x2B4A, 0x4D08, 0x2B78, 0x7FF8C80717F0, 0x7FF8C825E4B0,
			0x7FF8C7DD0AD0, 0x64A365EE};
	struct handshake_device d = {.pci = {0, 4, 0}};
	uint8_t out[16], turned[16];
	memcpy(d.uuid, uuid, sizeof uuid);
	handshake_sign(&h, &d, 1, out);
	for (unsigned i = 0; i < 16; i++)
		turned[i] = out[15 - i];
	ck_assert_str_eq(hex(turned), "eaf1313342bfcd84a7c34628f214707a");
}
END_TEST

START_TEST(constants)
{
	uint8_t out[16];
	ck_assert_int_eq(handshake_answer(13000, 1, NULL, NULL, NULL, out), CUDA_SUCCESS);
	ck_assert_str_eq(hex(out), "5c67cb031c184133e8d14c1faa83d38e");
	ck_assert_int_eq(handshake_answer(13001, 1, NULL, NULL, NULL, out), CUDA_SUCCESS);
	ck_assert_str_eq(hex(out), "5c67cb031c184118e8d14c1faa83d38e");
}
END_TEST

START_TEST(answer_signs_all)
{
	uint8_t out[16], want[16];
	struct handshake h = {13000, 13002, (uint32_t)getpid(), (uint32_t)(uintptr_t)pthread_self(), 1, 2, 3,
			77};
	struct handshake_device d[2];
	device_count = 2;
	for (int i = 0; i < 2; i++) {
		memset(d[i].uuid, 'a' + i, 16);
		d[i].pci[0] = 50 + i, d[i].pci[1] = 33 + i, d[i].pci[2] = 34 + i;
	}
	handshake_sign(&h, d, 2, want);
	ck_assert_int_eq(handshake_answer(13002, 77, (void *)1, (void *)2, (void *)3, out), CUDA_SUCCESS);
	ck_assert_mem_eq(out, want, 16);
	device_count = -1;
	ck_assert_int_eq(handshake_answer(13002, 77, NULL, NULL, NULL, out), CUDA_ERROR_NOT_INITIALIZED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("handshake");
	TCase *t = tcase_create("answers");
	tcase_add_loop_test(t, digests, 0, sizeof vectors / sizeof *vectors);
	tcase_add_test(t, sample);
	tcase_add_test(t, constants);
	tcase_add_test(t, answer_signs_all);
	suite_add_tcase(s, t);
	return unit_run(s);
}
