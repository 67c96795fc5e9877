/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes to copy: their parts, and the driver's calls that copy them. Only addresses that the program named as
 * device addresses reach the driver, and never as anything else: host addresses are always the server's own.
 *
 * Thread rule: as exec.h; no state. */
#include "server/box.h"
#include "server/serve.h"

bool box_next(const struct box *b, struct part *p, size_t max)
{
	bool first = !p->w;
	size_t x = first ? 0 : p->x + p->w, y = first ? 0 : p->y, z = first ? 0 : p->z;

	if (!first && x == b->w) {
		x = 0;
		y += p->h;
		if (y == b->h) {
			y = 0;
			z += p->d;
		}
	}
	if (z == b->d || !b->w || !b->h)
		return false;
	*p = (struct part){x, y, z, b->w - x, 1, 1};
	if (p->w > max) {
		p->w = max;
		return true;
	}
	if (x)
		return true;
	p->h = max / b->w < b->h - y ? max / b->w : b->h - y;
	if (p->h == b->h && max / b->w / b->h > 1)
		p->d = max / b->w / b->h < b->d - z ? max / b->w / b->h : b->d - z;
	return true;
}

static CUresult issue_3d(const struct box *b, const struct part *p, void *host)
{
	CUDA_MEMCPY3D c = {
		.srcXInBytes = b->src.x + p->x,
		.srcY = b->src.y + p->y,
		.srcZ = b->src.z + p->z,
		.srcLOD = b->src.lod,
		.srcMemoryType = b->src.type,
		.srcDevice = b->src.device,
		.srcArray = b->src.array,
		.srcPitch = b->src.pitch,
		.srcHeight = b->src.height,
		.dstXInBytes = b->dst.x + p->x,
		.dstY = b->dst.y + p->y,
		.dstZ = b->dst.z + p->z,
		.dstLOD = b->dst.lod,
		.dstMemoryType = b->dst.type,
		.dstDevice = b->dst.device,
		.dstArray = b->dst.array,
		.dstPitch = b->dst.pitch,
		.dstHeight = b->dst.height,
		.WidthInBytes = p->w,
		.Height = p->h,
		.Depth = p->d,
	};

	if (b->src.type == CU_MEMORYTYPE_HOST) {
		c.srcHost = host;
		c.srcXInBytes = c.srcY = c.srcZ = 0;
		c.srcPitch = p->w;
		c.srcHeight = p->h;
	}
	if (b->dst.type == CU_MEMORYTYPE_HOST) {
		c.dstHost = host;
		c.dstXInBytes = c.dstY = c.dstZ = 0;
		c.dstPitch = p->w;
		c.dstHeight = p->h;
	}
	return drv.cuMemcpy3DAsync_v2(&c, b->stream);
}

CUresult box_issue(const struct box *b, const struct part *p, void *host)
{
	if (!b->linear)
		return issue_3d(b, p, host);
	if (b->src.type == CU_MEMORYTYPE_HOST)
		return drv.cuMemcpyHtoDAsync_v2(b->dst.device + p->x, host, p->w, b->stream);
	return drv.cuMemcpyDtoHAsync_v2(host, b->src.device + p->x, p->w, b->stream);
}
