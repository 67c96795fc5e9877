// SPDX-License-Identifier: Apache-2.0
/* Which devices CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER leave, and in which order. */
#include "devshim/visible.c"
#include "tests/unit/unit.h"

static struct device all[4];

static void setup(void)
{
	static const char *const bus[4] = {"0000:41:00.0", "0000:01:00.0", "0001:01:00.0", "0000:01:00.1"};
	for (unsigned i = 0; i < 4; i++) {
		all[i].ordinal = (int)i;
		strcpy(all[i].pci_bus_id, bus[i]);
		for (unsigned j = 0; j < 16; j++)
			all[i].uuid[j] = (uint8_t)(0x10 * (i < 2 ? 1 : i) + j);
	}
	/* Devices 0 and 1 differ in the last byte only. */
	all[1].uuid[15] = 0xee;
}

static const struct { const char *order, *visible, *want; } cases[] = {
	{NULL, NULL, "0123"},
	{"FASTEST_FIRST", NULL, "0123"},
	{"PCI_BUS_ID", NULL, "1302"},
	{NULL, "", ""},
	{NULL, "2", "2"},
	{NULL, "3,0,1", "301"},
	{NULL, " 1 , 2 ", "12"},
	{NULL, "0,7,1", "0"},
	{NULL, "-1", ""},
	{NULL, "1,-1,2", "1"},
	{NULL, "0,0,1", "0"},
	{NULL, "0,x", "0"},
	{NULL, "0,", "0"},
	{NULL, "1x", ""},
	{NULL, "none", ""},
	{NULL, "99999999999999999999", ""},
	{"PCI_BUS_ID", "0", "1"},
	{"PCI_BUS_ID", "3,0", "21"},
	{NULL, "GPU-20212223", "2"},
	{NULL, "gpu-30", "3"},
	{NULL, "GPU-20212223-2425-2627-2829-2a2b2c2d2e2f,0", "20"},
	{NULL, "GPU-20212223-2425-2627-2829-2a2b2c2d2e2f0", ""},
	{NULL, "GPU-10111213", ""},
	{NULL, "GPU-10111213-1415-1617-1819-1a1b1c1d1eee", "1"},
	{NULL, "GPU-", ""},
	{NULL, "GPU-77", ""},
	{NULL, "MIG-0", ""},
};

START_TEST(selects)
{
	unsigned out[LIMIT_DEVICES];
	char got[8] = "";
	setup();
	unsigned n = visible_select(all, 4, cases[_i].order, cases[_i].visible, out);
	for (unsigned i = 0; i < n; i++)
		got[i] = (char)('0' + out[i]);
	ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: %s, not %s", cases[_i].visible ?
			cases[_i].visible : "unset", got, cases[_i].want);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("visible");
	TCase *t = tcase_create("select");
	tcase_add_loop_test(t, selects, 0, sizeof cases / sizeof *cases);
	suite_add_tcase(s, t);
	return unit_run(s);
}
