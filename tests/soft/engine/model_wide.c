/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of what is wider than 64 bits, and of memory taken from the stack: the values go through the
 * instruction under test in the text in front, and come out as one number. The label in front names the case.
 *
 * Thread rule: one thread. */
#include <string.h>
#include "tests/soft/engine/check_insn.h"

static uint64_t m_difference(const struct test *t, const uint64_t *in)
{
	(void)t;
	return in[0] - in[1];
}

static uint64_t m_swapped(const struct test *t, const uint64_t *in)
{
	(void)t;
	return in[1] - in[0];
}

/* What compare-and-swap leaves when {a, b} is there, {a, c} is compared, and {c, a} is stored. */
static uint64_t m_compare(const struct test *t, const uint64_t *in)
{
	bool same = in[1] == in[2];
	uint64_t low = same ? in[2] : in[0], high = same ? in[0] : in[1];
	(void)t;
	return low * 3 + high + in[0];
}

static uint64_t m_alloca(const struct test *t, const uint64_t *in)
{
	uint64_t n = in[0] % 64 + 1, sum = 0;
	(void)t;
	for (uint64_t i = 0; i < n; i++)
		sum += in[1] + i;
	return sum;
}

static uint64_t m_second(const struct test *t, const uint64_t *in)
{
	(void)t;
	return in[1];
}

static uint64_t m_sum(const struct test *t, const uint64_t *in)
{
	(void)t;
	return in[0] + in[1];
}

/* Each lane's place in a tile: %r15. */
#define TILE                                                                                                 \
	".reg .b128 %q<4>; .shared .align 16 .b8 tile[1024]; mul.lo.u32 %r14,%r3,16; mov.u32 %r15,tile; "   \
	"add.u32 %r15,%r15,%r14; mov.b128 %q0,{%d5,%d6}; "

void define_wide(void)
{
	static const char result[] = "u64:!u64,!u64,#%d8,#%d9";
	define_before("copy: .reg .b128 %q<2>; mov.b128 %q0,{%d5,%d6}; mov.b128 %q1,%q0; "
			"mov.b128 {%d8,%d9},%q1;",
		"sub.u64", result, m_difference);
	define_before("swap: .reg .b128 %q<2>; mov.b128 %q0,{%d5,%d6}; mov.b128 {%d6,%d5},%q0;", "sub.u64",
		"u64:!u64,!u64,#%d5,#%d6", m_swapped);
	define_before("shared: " TILE "st.shared.b128 [%r15],%q0; ld.shared.b128 %q1,[%r15]; "
			"mov.b128 {%d8,%d9},%q1;",
		"sub.u64", result, m_difference);
	define_before("local: .reg .b128 %q<2>; .local .align 16 .b8 t[32]; mov.b128 %q0,{%d5,%d6}; "
			"st.local.b128 "
		      "[t+16],%q0; ld.local.b128 %q1,[t+16]; mov.b128 {%d8,%d9},%q1;",
		"sub.u64", result, m_difference);
	define_before("generic: " TILE "mov.u64 %d10,tile; cvta.shared.u64 %d10,%d10; "
			"cvt.u64.u32 %d11,%r14; add.u64 "
			   "%d10,%d10,%d11; st.relaxed.gpu.b128 [%d10],%q0; ld.acquire.sys.b128 %q1,[%d10]; "
			   "mov.b128 {%d8,%d9},%q1;",
		"sub.u64", result, m_difference);
	define_before("exchange: " TILE "mov.b128 %q1,{%d6,%d5}; st.shared.b128 [%r15],%q0; "
			"atom.shared.exch.b128 "
			   "%q2,[%r15],%q1; ld.shared.b128 %q3,[%r15]; mov.b128 {%d8,%d9},%q2; mov.b128 "
			   "{%d10,%d11},%q3; sub.u64 %d8,%d8,%d9; sub.u64 %d9,%d10,%d11; mul.lo.u64 "
			   "%d9,%d9,2; neg.s64 %d9,%d9;",
		"sub.u64", result, m_swapped);
	define_before("compare: " TILE "mov.b128 %q1,{%d5,%d7}; mov.b128 %q2,{%d7,%d5}; "
			"st.shared.b128 [%r15],%q0; "
			   "atom.relaxed.gpu.shared.cas.b128 %q3,[%r15],%q1,%q2; mov.b128 {%d8,%d9},%q3; "
			   "ld.shared.b128 %q3,[%r15]; mov.b128 {%d10,%d11},%q3; "
			   "mad.lo.u64 %d10,%d10,3,%d11;",
		"add.u64", "u64:!u64,!u64,!u64,#%d10,#%d8", m_compare);
	define_before("zeros: " TILE "st.shared.b128 [%r15],%q0; mov.u64 %d10,8; st.bulk.weak.shared::cta "
			"[%r15],%d10,0; "
		      "ld.shared.b128 %q1,[%r15]; mov.b128 {%d8,%d9},%q1;",
		"add.u64", "u64:!u64,!u64,#%d8,#%d9", m_second);
	/* no cluster is left to be taken over: the answer is no, and its barrier is told of 16 bytes */
	define_before("cancel: " TILE ".shared .align 8 .b8 done[512]; mov.u32 %r13,done; "
			"shl.b32 %r12,%r3,3; add.u32 %r13,%r13,%r12; "
		      "mbarrier.init.shared.b64 [%r13],1; mbarrier.arrive.expect_tx.shared.b64 "
		      "%d8,[%r13],16; "
		      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
		      "[%r15],[%r13]; "
		      "W: mbarrier.try_wait.shared.b64 %p1,[%r13],%d8; @!%p1 bra W; "
		      "ld.shared.b128 %q1,[%r15]; "
		      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2,%q1; "
		      "selp.u64 %d9,1,0,%p2; add.u64 %d9,%d9,%d6;",
		"add.u64", "u64:!u64,!u64,#%d5,#%d9", m_sum);
	define_before("async: st.async.mmio.release.gpu.global.u64 [%d1],%d5; fence.sc.gpu; "
			"red.async.mmio.release.gpu.global.add.u64 "
		      "[%d1],%d6; fence.sc.gpu; W: ld.relaxed.gpu.global.u64 %d8,[%d1]; "
		      "add.u64 %d9,%d5,%d6; setp.ne.u64 %p1,%d8,%d9; @%p1 bra W;",
		"mov.u64", "u64:!u64,!u64,#%d8", m_sum);
	define_before("policy: createpolicy.fractional.L2::evict_last.b64 %d8,1.0; "
			"st.global.L2::cache_hint.u64 [%d1],%d5,%d8; "
		      "ld.global.L2::cache_hint.u64 %d9,[%d1],%d8;",
		"add.u64", "u64:!u64,!u64,#%d9,#%d6", m_sum);
	define_before("masked: " TILE "st.shared.b128 [%r15],%q0; st.global.u64 [%d1],%d6; .reg .b64 %w; "
			"and.b64 %w,%d1,-16; "
		      "setp.ne.u64 %p1,%w,%d1; mov.u64 %d8,%d5; @%p1 bra X; "
		      "createpolicy.fractional.L2::evict_first.b64 %d9,1.0; mov.u32 %r13,16; "
		      "mov.u16 %h3,255; cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask "
		      "[%d1],[%r15],%r13,%d9,%h3; "
		      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ld.volatile.global.u64 "
		      "%d8,[%d1]; X:",
		"add.u64", "u64:!u64,!u64,#%d8,#%d6", m_sum);
	define_before("stack: .reg .b64 %t; stacksave.u64 %t; rem.u64 %d8,%d5,64; add.u64 %d8,%d8,1; "
			"shl.b64 %d9,%d8,3; "
		      "alloca.u64 %d10,%d9,16; cvta.local.u64 %d10,%d10; mov.u64 %d11,0; "
		      "F: shl.b64 %d12,%d11,3; add.u64 %d12,%d10,%d12; add.u64 %d13,%d6,%d11; "
		      "st.u64 [%d12],%d13; "
		      "add.u64 %d11,%d11,1; setp.lt.u64 %p1,%d11,%d8; @%p1 bra F; mov.u64 %d14,0; "
		      "G: sub.u64 %d11,%d11,1; shl.b64 %d12,%d11,3; add.u64 %d12,%d10,%d12; "
		      "ld.u64 %d13,[%d12]; "
		      "add.u64 %d14,%d14,%d13; setp.ne.u64 %p1,%d11,0; @%p1 bra G; stackrestore.u64 %t;",
		"mov.u64", "u64:!u64,!u64,#%d14", m_alloca);
}
