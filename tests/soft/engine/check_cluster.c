/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters, bulk copies and tensor copies: kernels written out in PTX, each compared with what plain C says.
 *
 * `check_cluster text` prints the kernels.
 *
 * Thread rule: one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/exec_bulk.h"
#include "server/soft/memory.h"
#include "server/soft/ptx.h"

static const char text[] =
	".version 8.6\n.target sm_90a\n.address_size 64\n"
	/* every special register of clusters, one row of 16 words per block, by thread 0 */
	".visible .entry names(.param .u64 out)\n{\n .reg .b32 %r<40>; .reg .b64 %d<4>; .reg .pred %p<2>;\n"
	" ld.param.u64 %d0,[out]; mov.u32 %r0,%ctaid.x; mov.u32 %r1,%ctaid.y; mov.u32 %r2,%nctaid.x;\n"
	" mad.lo.u32 %r3,%r1,%r2,%r0; mul.wide.u32 %d1,%r3,64; add.u64 %d0,%d0,%d1;\n"
	" mov.u32 %r10,%cluster_ctarank; mov.u32 %r11,%cluster_nctarank; mov.u32 %r12,%clusterid.x; "
	"mov.u32 %r13,%clusterid.y;\n"
	" mov.u32 %r14,%cluster_ctaid.x; mov.u32 %r15,%cluster_ctaid.y; mov.u32 %r16,%cluster_nctaid.x; "
	"mov.u32 "
	"%r17,%cluster_nctaid.y;\n mov.u32 %r18,%nclusterid.x; mov.u32 %r19,%nclusterid.y;\n"
	" mov.pred %p0,%is_explicit_cluster; selp.u32 %r20,1,0,%p0;\n"
	" st.global.v4.u32 [%d0],{%r10,%r11,%r12,%r13}; st.global.v4.u32 [%d0+16],{%r14,%r15,%r16,%r17};\n"
	" st.global.v2.u32 [%d0+32],{%r18,%r19}; st.global.u32 [%d0+40],%r20; ret;\n}\n"
	/* each block puts its number + thread into its tile, reads the next block's two ways and asks whose
	 * it is */
	".visible .entry neighbours(.param .u64 out)\n{\n .reg .b32 %r<40>; .reg .b64 %d<16>; "
	".reg .pred %p<4>;\n"
	" .shared .align 16 .b8 tile[256];\n"
	" ld.param.u64 %d0,[out]; mov.u32 %r0,%ctaid.x; mov.u32 %r1,%tid.x; mad.lo.u32 %r2,%r0,1000,%r1;\n"
	" shl.b32 %r3,%r1,2; mov.u32 %r4,tile; add.u32 %r4,%r4,%r3; st.shared.u32 [%r4],%r2;\n"
	" barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	" mov.u32 %r5,%cluster_ctarank; mov.u32 %r6,%cluster_nctarank; add.u32 %r7,%r5,1; "
	"rem.u32 %r7,%r7,%r6;\n"
	" mapa.shared::cluster.u32 %r8,%r4,%r7; ld.shared::cluster.u32 %r9,[%r8];\n"
	" cvt.u64.u32 %d1,%r4; cvta.shared.u64 %d1,%d1; mapa.u64 %d2,%d1,%r7; ld.u32 %r10,[%d2];\n"
	" getctarank.u64 %r11,%d2; getctarank.shared::cluster.u32 %r12,%r8;\n"
	" cvt.u64.u32 %d3,%r8; cvta.shared::cluster.u64 %d4,%d3; sub.u64 %d5,%d4,%d2; cvt.u32.u64 %r13,%d5;\n"
	" cvta.to.shared::cluster.u64 %d6,%d2; cvt.u32.u64 %r14,%d6; sub.u32 %r14,%r14,%r8;\n"
	" isspacep.shared::cluster %p0,%d2; isspacep.shared::cta %p1,%d2; selp.u32 %r15,1,0,%p0; "
	"selp.u32 %r16,2,0,%p1; "
	"add.u32 %r15,%r15,%r16;\n"
	" atom.shared::cluster.add.u32 %r17,[%r8],7;\n"
	" barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u32 %r18,[%r4];\n"
	" mov.u32 %r20,%ntid.x; mad.lo.u32 %r21,%r0,%r20,%r1; mul.wide.u32 %d7,%r21,32; add.u64 %d0,%d0,%d7;"
	"\n"
	" st.global.v4.u32 [%d0],{%r9,%r10,%r11,%r12}; st.global.v4.u32 [%d0+16],{%r13,%r14,%r15,%r18}; ret;"
	"\n}\n"
	/* rank 0 brings 256 bytes into the tiles of all; each block adds its rank and takes them out again */
	".visible .entry bulk(.param .u64 in, .param .u64 out)\n{\n .reg .b32 %r<40>; .reg .b64 %d<16>; "
	".reg .b16 %h<4>; .reg .pred "
	"%p<4>;\n .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;\n"
	" ld.param.u64 %d0,[in]; ld.param.u64 %d1,[out]; mov.u32 %r1,%tid.x; setp.ne.u32 %p0,%r1,0; "
	"mov.u32 %r2,bar; mov.u32 "
	"%r3,tile;\n @%p0 bra READY; mbarrier.init.shared::cta.b64 [%r2],1; "
	"mbarrier.arrive.expect_tx.shared::cta.b64 %d2,[%r2],256; "
	"fence.mbarrier_init.release.cluster;\nREADY: barrier.cluster.arrive; barrier.cluster.wait;\n"
	" mov.u32 %r4,%cluster_ctarank; setp.ne.or.u32 %p1,%r4,0,%p0; @%p1 bra WAIT; mov.u16 %h1,15;\n"
	" cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
	"[%r3],[%d0],256,[%r2],%h1;\n"
	"WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2,[%r2],0; @!%p2 bra WAIT;\n"
	" shl.b32 %r5,%r1,2; add.u32 %r6,%r3,%r5; ld.shared.u32 %r7,[%r6]; add.u32 %r7,%r7,%r4; "
	"st.shared.u32 [%r6],%r7;\n"
	" fence.proxy.async.shared::cta; bar.sync 0; @%p0 bra END; mov.u32 %r8,%ctaid.x; "
	"mul.wide.u32 %d3,%r8,256; add.u64 "
	"%d4,%d1,%d3;\n cp.async.bulk.global.shared::cta.bulk_group [%d4],[%r3],256; "
	"cp.async.bulk.commit_group;\n"
	" add.u64 %d5,%d1,4096; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d5],[%r3],256;\n"
	" cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;\n"
	"END: ret;\n}\n"
	/* each block sends its number to the next one, by st.async, and adds to it by red.async */
	".visible .entry send(.param .u64 out)\n{\n .reg .b32 %r<40>; .reg .b64 %d<16>; .reg .pred %p<4>;\n"
	" .shared .align 16 .b32 box[4]; .shared .align 8 .b64 bar;\n"
	" ld.param.u64 %d0,[out]; mov.u32 %r1,%ctaid.x; mov.u32 %r2,bar; mov.u32 %r3,box;\n"
	" mbarrier.init.shared.b64 [%r2],1; mbarrier.arrive.expect_tx.shared.b64 %d2,[%r2],20; "
	"barrier.cluster.arrive; "
	"barrier.cluster.wait;\n"
	" mov.u32 %r5,%cluster_ctarank; mov.u32 %r6,%cluster_nctarank; add.u32 %r7,%r5,1; "
	"rem.u32 %r7,%r7,%r6;\n"
	" mapa.shared::cluster.u32 %r8,%r3,%r7; mapa.shared::cluster.u32 %r9,%r2,%r7; add.u32 %r10,%r1,100;\n"
	" st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r8],{%r10,%r1,%r5,%r7},[%r9];\n"
	" red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8],5,[%r9];\n"
	"W: mbarrier.try_wait.parity.shared.b64 %p2,[%r2],0; @!%p2 bra W;\n"
	" ld.shared.v4.u32 {%r11,%r12,%r13,%r14},[%r3]; mul.wide.u32 %d3,%r1,16; add.u64 %d0,%d0,%d3;\n"
	" st.global.v4.u32 [%d0],{%r11,%r12,%r13,%r14}; barrier.cluster.arrive; barrier.cluster.wait; ret;\n"
	"}\n"
	/* a box of a tensor in, and out again at another place; the tile as it lies is copied, too */
	".visible .entry tensor(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 "
	"y)\n{\n .reg .b32 %r<40>; "
	".reg .b64 %d<16>; .reg .pred %p<4>;\n .shared .align 1024 .b8 tile[2048]; "
	".shared .align 8 .b64 bar;\n"
	" ld.param.u64 %d0,[out]; ld.param.u32 %r1,[x]; ld.param.u32 %r2,[y]; mov.b64 %d1,map; "
	"cvta.param.u64 %d1,%d1;\n"
	" mbarrier.init.shared.b64 [bar],1; mbarrier.arrive.expect_tx.shared.b64 %d2,[bar],2048;\n"
	" cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
	"[tile],[%d1,{%r1,%r2}],[bar];\n"
	"W: mbarrier.try_wait.parity.shared.b64 %p2,[bar],0; @!%p2 bra W;\n"
	" cp.async.bulk.global.shared::cta.bulk_group [%d0],[tile],2048;\n add.s32 %r1,%r1,40; "
	"add.s32 %r2,%r2,20;\n"
	" cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1,{%r1,%r2}],[tile]; "
	"cp.async.bulk.commit_group;\n"
	" cp.async.bulk.wait_group 0; ret;\n}\n"
	/* the same box in, by a map that the kernel makes of 128 zeros */
	".visible .entry made(.param .u64 map, .param .u64 in, .param .u64 out, .param .u32 x, .param .u32 "
	"y)\n{\n .reg .b32 %r<40>; "
	".reg .b64 %d<16>; .reg .pred %p<4>;\n .shared .align 1024 .b8 tile[2048]; .shared .align 128 .b8 "
	"m[128]; .shared .align 8 "
	".b64 bar;\n ld.param.u64 %d1,[map]; ld.param.u64 %d3,[in]; ld.param.u64 %d0,[out]; "
	"ld.param.u32 %r1,[x]; ld.param.u32 "
	"%r2,[y];\n mov.u32 %r4,%tid.x; shl.b32 %r5,%r4,2; mov.u32 %r6,m; add.u32 %r5,%r5,%r6; "
	"st.shared.u32 [%r5],0; bar.warp.sync "
	"-1; setp.ne.u32 %p0,%r4,0; @%p0 bra READY;\n mov.u32 %r10,90; mov.u32 %r11,50; mov.u32 %r12,32; "
	"mov.u32 %r13,16; mov.u32 "
	"%r14,1; mov.u64 %d4,400; cvt.u64.u32 %d5,%r6;\n"
	" tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%d5+0],%d3;\n"
	" tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r6],1;\n"
	" tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [m],0,%r12;\n"
	" tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [m],1,%r13;\n"
	" tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [m],0,%r10;\n"
	" tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [m],1,%r11;\n"
	" tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [m],0,%d4;\n"
	" tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [m],0,%r14;\n"
	" tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [m],1,%r14;\n"
	" tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [m],7;\n"
	" tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [m],0;\n"
	" tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [m],3;\n"
	" tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [m],1;\nREADY: bar.warp.sync -1;\n"
	" tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
	"[%d1],[%r6],128;\n"
	" fence.proxy.tensormap::generic.acquire.gpu [%d1],128; @%p0 bra END;\n"
	" mbarrier.init.shared.b64 [bar],1; mbarrier.arrive.expect_tx.shared.b64 %d2,[bar],2048;\n"
	" cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
	"[tile],[%d1,{%r1,%r2}],[bar];\n"
	"W: mbarrier.try_wait.parity.shared.b64 %p2,[bar],0; @!%p2 bra W;\n"
	" cp.async.bulk.global.shared::cta.bulk_group "
	"[%d0],[tile],2048; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND: ret;\n}\n"
	/* 24 pixels of 8 channels of images, from a pixel on, moved by an offset; and out again into other
	 * images */
	".visible .entry pixels(.param .align 64 .b8 map[128], .param .align 64 .b8 other[128], .param .u64 "
	"out, .param .u32 c, .param "
	".u32 x, .param .u32 y, .param .u32 n, .param .u16 dx, .param .u16 dy)\n{\n .reg .b32 %r<16>; "
	".reg .b16 %h<4>; .reg .b64 "
	"%d<16>; .reg .pred %p<4>;\n .shared .align 1024 .b8 tile[768]; .shared .align 8 .b64 bar;\n"
	" ld.param.u64 %d0,[out]; ld.param.u32 %r1,[c]; ld.param.u32 %r2,[x]; ld.param.u32 %r3,[y]; "
	"ld.param.u32 %r4,[n];\n"
	" ld.param.u16 %h1,[dx]; ld.param.u16 %h2,[dy]; mov.b64 %d1,map; cvta.param.u64 %d1,%d1; "
	"mov.b64 %d3,other; cvta.param.u64 "
	"%d3,%d3;\n mbarrier.init.shared.b64 [bar],1; mbarrier.arrive.expect_tx.shared.b64 %d2,[bar],768;\n"
	" cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
	"[tile],[%d1,{%r1,%r2,%r3,%r4}],[bar],{%h1,%h2};\n"
	"W: mbarrier.try_wait.parity.shared.b64 %p2,[bar],0; @!%p2 bra W;\n"
	" cp.async.bulk.global.shared::cta.bulk_group [%d0],[tile],768;\n"
	" cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
	"[%d3,{%r1,%r2,%r3,%r4}],[tile];\n"
	" cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;\n}\n"
	/* rows y, y + 3, y + 6 and y + 9 from column x on, and back to rows 20 further */
	".visible .entry rows(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 "
	"y)\n{\n .reg .b32 %r<40>; "
	".reg .b64 %d<16>; .reg .pred %p<4>;\n .shared .align 1024 .b8 tile[512]; .shared .align 8 .b64 bar;"
	"\n"
	" ld.param.u64 %d0,[out]; ld.param.u32 %r1,[x]; ld.param.u32 %r2,[y]; mov.b64 %d1,map; "
	"cvta.param.u64 %d1,%d1;\n"
	" add.s32 %r3,%r2,3; add.s32 %r4,%r2,6; add.s32 %r5,%r2,9;\n"
	" mbarrier.init.shared.b64 [bar],1; mbarrier.arrive.expect_tx.shared.b64 %d2,[bar],512;\n"
	" cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes "
	"[tile],[%d1,{%r1,%r2,%r3,%r4,%r5}],[bar];\n"
	"W: mbarrier.try_wait.parity.shared.b64 %p2,[bar],0; @!%p2 bra W;\n"
	" cp.async.bulk.global.shared::cta.bulk_group [%d0],[tile],512;\n add.s32 %r2,%r2,20; "
	"add.s32 %r3,%r3,20; add.s32 %r4,%r4,20; "
	"add.s32 %r5,%r5,20;\n"
	" cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
	"[%d1,{%r1,%r2,%r3,%r4,%r5}],[tile]; "
	"cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0; ret;\n}\n";

static unsigned failures, checks;
static struct engine_module *module;

static void expect(const char *what, unsigned i, uint32_t got, uint32_t want)
{
	checks++;
	if (got == want)
		return;
	failures++;
	printf("FAILED %s, %u: %#x, want %#x\n", what, i, got, want);
}

static int launch(const char *name, unsigned gx, unsigned gy, unsigned threads, unsigned cx, unsigned cy,
		const void *params)
{
	struct engine_launch l = {.function = engine_function_find(module, name),
		.grid = {gx, gy, 1},
		.block = {threads, 1, 1},
		.cluster = {cx, cy, 1},
		.params = params,
		.time_limit_s = 10};
	struct engine_error error;
	int r = engine_launch(&l, &error);
	if (r) {
		printf("%s: %d %s\n", name, r, error.text);
	}
	return r;
}

static void names(uint32_t *out)
{
	uint64_t p = (uint64_t)out;
	expect("names", 0, (uint32_t)launch("names", 6, 4, 1, 3, 2, &p), 0);
	for (unsigned y = 0; y < 4; y++)
		for (unsigned x = 0; x < 6; x++) {
			const uint32_t *o = out + (y * 6 + x) * 16,
				       want[11] = {x % 3 + y % 2 * 3, 6, x / 3, y / 2, x % 3, y % 2, 3, 2, 2,
				       2, 1};
			for (unsigned k = 0; k < 11; k++)
				expect("special registers", (y * 6 + x) * 16 + k, o[k], want[k]);
		}
	expect("a grid that clusters do not divide", 0, (uint32_t)launch("names", 7, 4, 1, 3, 2, &p), 912);
	expect("a cluster too large", 0, (uint32_t)launch("names", 17, 1, 1, 17, 1, &p), 912);
	expect("no cluster", 0, (uint32_t)launch("names", 2, 1, 1, 1, 1, &p), 0);
	expect("rank without a cluster", 0, out[16], 0);
	expect("ranks without a cluster", 0, out[17], 1);
	expect("clusters without a cluster", 0, out[18], 1);
}

static void neighbours(uint32_t *out)
{
	enum { THREADS = 48, BLOCKS = 8, CLUSTER = 4 };
	uint64_t p = (uint64_t)out;
	expect("neighbours", 0, (uint32_t)launch("neighbours", BLOCKS, 1, THREADS, CLUSTER, 1, &p), 0);
	for (unsigned b = 0; b < BLOCKS; b++)
		for (unsigned t = 0; t < THREADS; t++) {
			unsigned rank = (b + 1) % CLUSTER, next = b / CLUSTER * CLUSTER + rank;
			const uint32_t *o = out + (b * THREADS + t) * 8,
				       want[8] = {next * 1000 + t, next * 1000 + t, rank, rank, 0, 0, 1,
					       b * 1000 + t + 7};
			for (unsigned k = 0; k < 8; k++)
				expect("neighbours", b * 100 + k, o[k], want[k]);
		}
}

static void bulk(uint32_t *in, uint32_t *out)
{
	struct {
		uint64_t in, out;
	} p = {(uint64_t)in, (uint64_t)out};
	memset(out, 0, 8192);
	for (unsigned i = 0; i < 64; i++)
		in[i] = i * 3 + 1;
	expect("bulk", 0, (uint32_t)launch("bulk", 8, 1, 64, 4, 1, &p), 0);
	for (unsigned i = 0; i < 64; i++) {
		for (unsigned b = 0; b < 8; b++)
			expect("bulk copy", b * 64 + i, out[b * 64 + i], in[i] + b % 4);
		expect("bulk reduction", i, out[1024 + i], 8 * in[i] + 12);
	}
	p.out += 4;
	expect("a bulk copy to a place between", 0, (uint32_t)launch("bulk", 4, 1, 64, 4, 1, &p), 716);
	p = (typeof(p)){4096, (uint64_t)out};
	expect("a bulk copy from nowhere", 0, (uint32_t)launch("bulk", 4, 1, 64, 4, 1, &p), 700);
}

static void send(uint32_t *out)
{
	uint64_t p = (uint64_t)out;
	expect("send", 0, (uint32_t)launch("send", 6, 1, 1, 3, 1, &p), 0);
	for (unsigned b = 0; b < 6; b++) {
		unsigned from = b / 3 * 3 + (b + 2) % 3;
		const uint32_t want[4] = {from + 105, from, from % 3, b % 3};
		for (unsigned k = 0; k < 4; k++)
			expect("what was sent", b * 4 + k, out[b * 4 + k], want[k]);
	}
}

/* A tensor of 90 by 50 words in rows of 400 bytes; boxes of 32 by 16. */
static void tensor(uint32_t *in, uint32_t *out, unsigned swizzle, unsigned fill, int x, int y)
{
	enum { ROW = 100, WIDTH = 90, HEIGHT = 50, BOX = 32, ROWS = 16 };
	static uint32_t before[ROW * HEIGHT];
	struct {
		_Alignas(64) struct tensor_map map;
		char rest[128 - sizeof(struct tensor_map)];
		uint64_t out;
		int32_t x, y;
	} p = {.map = {.magic = TENSOR_MAP_MAGIC,
		       .dimensions = 2,
		       .element = 4,
		       .swizzle = (uint8_t)swizzle,
		       .fill = (uint8_t)fill,
		       .type = T_F32,
		       .address = (uint64_t)in,
		       .stride = {ROW * 4},
		       .size = {WIDTH - 1, HEIGHT - 1},
		       .box = {BOX, ROWS, 1, 1, 1},
		       .step = {1, 1, 1, 1, 1}},
		.out = (uint64_t)out,
		.x = x,
		.y = y};
	for (unsigned i = 0; i < ROW * HEIGHT; i++)
		before[i] = in[i] = i * 7 + 3;
	struct {
		void *map, *in, *out;
		int32_t x, y;
	} made = {out + 4096, in, out + 8192, x, y};
	bool same = swizzle == 7 && fill; /* the map that a kernel makes */
	if (same)
		expect("a map made", 0, (uint32_t)launch("made", 1, 1, 32, 1, 1, &made), 0);
	expect("tensor", swizzle, (uint32_t)launch("tensor", 1, 1, 1, 1, 1, &p), 0);
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < BOX; c++) {
			bool inside = x + c >= 0 && x + c < WIDTH && y + r >= 0 && y + r < HEIGHT;
			uint32_t want = inside ? before[(y + r) * ROW + x + c] : fill ? 0x7fffffff : 0;
			/* rows of 128 bytes: their units of 16 bytes change places */
			unsigned unit = (unsigned)c / 4, row = (unsigned)r;
			if (swizzle == 7)
				unit ^= row % 8;
			else if (swizzle == 6)
				unit ^= row % 4;
			else if (swizzle == 5)
				unit ^= row % 2;
			if (same)
				expect("a box of a map made", row * BOX + (unsigned)c,
						out[8192 + row * BOX + unit * 4 + (unsigned)c % 4],
					want);
			expect("a box", row * BOX + (unsigned)c, out[row * BOX + unit * 4 + (unsigned)c % 4],
					want);
			int tx = x + c + 40, ty = y + r + 20;
			if (tx >= 0 && tx < WIDTH && ty >= 0 && ty < HEIGHT) {
				expect("a box put back", row * BOX + (unsigned)c, in[ty * ROW + tx], want);
				in[ty * ROW + tx] = before[ty * ROW + tx];
			}
		}
	for (unsigned i = 0; i < ROW * HEIGHT; i++)
		expect("what no box covers", i, in[i], before[i]);
}

/* Images of 5 lines of 7 pixels of 16 channels. The pixels that a copy goes through are listed line by line
 * first. */
static void pixels(uint32_t *in, uint32_t *out, unsigned step_x, unsigned step_y, unsigned from, unsigned dx,
		unsigned dy)
{
	enum { CHANNELS = 16, WIDTH = 7, HEIGHT = 5, IMAGES = 3, TAKEN = 8, COUNT = 24, FIRST = 4, LX = -1,
			LY = 0, UX = -2, UY = -1 };
	enum { WORDS = CHANNELS * WIDTH * HEIGHT * IMAGES };
	static int place[1024][3];
	uint32_t *other = out + 4096;
	struct {
		_Alignas(64) struct tensor_map map;
		char rest[128 - sizeof(struct tensor_map)];
		struct tensor_map other;
		char more[128 - sizeof(struct tensor_map)];
		uint64_t out;
		int32_t c, x, y, n;
		uint16_t dx, dy;
	} p = {.map = {.magic = TENSOR_MAP_MAGIC,
		       .dimensions = 4,
		       .element = 4,
		       .type = T_U32,
		       .address = (uint64_t)in,
		       .stride = {CHANNELS * 4, CHANNELS * WIDTH * 4, CHANNELS * WIDTH * HEIGHT * 4},
		       .size = {CHANNELS - 1, WIDTH - 1, HEIGHT - 1, IMAGES - 1},
		       .step = {1, (uint8_t)step_x, (uint8_t)step_y, 1, 1},
		       .pixels = true,
		       .lower = {LX, LY},
		       .upper = {UX, UY},
		       .channels = TAKEN,
		       .count = COUNT},
		.out = (uint64_t)out,
		.c = FIRST,
		.dx = (uint16_t)dx,
		.dy = (uint16_t)dy};
	unsigned n = 0;
	for (int image = 0; image < 2 * IMAGES; image++)
		for (int y = LY; y <= HEIGHT - 1 + UY; y += (int)step_y)
			for (int x = LX; x <= WIDTH - 1 + UX; x += (int)step_x, n++) {
				place[n][0] = x;
				place[n][1] = y;
				place[n][2] = image;
			}
	p.other = p.map;
	p.other.address = (uint64_t)other;
	p.x = place[from][0];
	p.y = place[from][1];
	p.n = place[from][2];
	for (unsigned i = 0; i < WORDS; i++) {
		in[i] = i * 3 + 1;
		other[i] = 0;
	}
	expect("pixels", from, (uint32_t)launch("pixels", 1, 1, 1, 1, 1, &p), 0);
	static uint32_t want[WORDS];
	memset(want, 0, sizeof want);
	for (unsigned i = 0; i < COUNT * TAKEN; i++) {
		const int *at = place[from + i / TAKEN];
		int x = at[0] + (int)dx, y = at[1] + (int)dy, c = FIRST + (int)(i % TAKEN);
		bool inside = x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT && at[2] < IMAGES;
		uint32_t v = inside ? in[((at[2] * HEIGHT + y) * WIDTH + x) * CHANNELS + c] : 0;
		expect("pixels", i, out[i], v);
		if (at[0] >= 0 && at[0] < WIDTH && at[2] < IMAGES)
			want[((at[2] * HEIGHT + at[1]) * WIDTH + at[0]) * CHANNELS + c] = v;
	}
	for (unsigned i = 0; i < WORDS; i++)
		expect("pixels put back", i, other[i], want[i]);
}

/* Four rows of 32 words of a tensor of 90 by 50. */
static void rows(uint32_t *in, uint32_t *out)
{
	enum { ROW = 100, WIDTH = 90, HEIGHT = 50, BOX = 32, X = 70, Y = 4 };
	struct {
		_Alignas(64) struct tensor_map map;
		char rest[128 - sizeof(struct tensor_map)];
		uint64_t out;
		int32_t x, y;
	} p = {.map = {.magic = TENSOR_MAP_MAGIC,
		       .dimensions = 2,
		       .element = 4,
		       .type = T_F32,
		       .address = (uint64_t)in,
		       .stride = {ROW * 4},
		       .size = {WIDTH - 1, HEIGHT - 1},
		       .box = {BOX, 1, 1, 1, 1},
		       .step = {1, 1, 1, 1, 1}},
		.out = (uint64_t)out,
		.x = X,
		.y = Y};
	for (unsigned i = 0; i < ROW * HEIGHT; i++)
		in[i] = i * 7 + 3;
	expect("rows", 0, (uint32_t)launch("rows", 1, 1, 1, 1, 1, &p), 0);
	for (unsigned r = 0; r < HEIGHT; r++)
		for (unsigned c = 0; c < ROW; c++) {
			unsigned from = r - 20;
			bool put = r >= 20 + Y && (from - Y) % 3 == 0 && from <= Y + 9 && c >= X && c < WIDTH;
			expect("a row put back", r * ROW + c, in[r * ROW + c],
					((put ? from : r) * ROW + c) * 7 + 3);
		}
	for (unsigned i = 0; i < 4 * BOX; i++) {
		unsigned c = X + i % BOX;
		expect("a row", i, out[i], c < WIDTH ? ((Y + i / BOX * 3) * ROW + c) * 7 + 3 : 0);
	}
	p.map.box[1] = 2;
	expect("rows of a map with boxes of two", 0, (uint32_t)launch("rows", 1, 1, 1, 1, 1, &p), 715);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "text"))
		return fwrite(text, 1, sizeof text - 1, stdout) != sizeof text - 1;
	if (soft_mem_init((size_t)1 << 30))
		return 1;
	engine_init(2);
	struct engine_error error;
	if (engine_module_load((const char *const[]){text}, (const size_t[]){sizeof text}, 1, &module,
			&error)) {
		printf("FAILED load: line %u: %s\n", error.line, error.text);
		return 1;
	}
	for (unsigned i = 0; engine_function_at(module, i); i++) {
		const struct engine_function_info *info = engine_function_info(engine_function_at(module, i));
		if (info->uncovered) {
			printf("FAILED %s: %s\n", info->name, info->uncovered);
			return 1;
		}
	}
	uint32_t *in = (uint32_t *)soft_alloc(1 << 16, 256), *out = (uint32_t *)soft_alloc(1 << 16, 256);
	names(out);
	neighbours(out);
	bulk(in, out);
	send(out);
	static const int at[][2] = {{0, 0}, {10, 5}, {70, 40}, {-8, -3}, {-40, 0}};
	for (unsigned swizzle = 0; swizzle < 8; swizzle = swizzle ? swizzle + 1 : 5)
		for (unsigned k = 0; k < 5; k++)
			tensor(in, out, swizzle, k & 1, at[k][0], at[k][1]);
	rows(in, out);
	for (unsigned k = 0; k < 24; k++)
		pixels(in, out, 1 + k % 2, 1 + k / 2 % 2, k * 2, k % 3, k % 4);
	printf("clusters and bulk copies: %u of %u checks as they should be\n", checks - failures, checks);
	engine_module_unload(module);
	return failures != 0;
}
