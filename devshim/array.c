/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: their end, and the functions of CUDA 2, whose descriptions have 32-bit sizes.
 *
 * Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/handle.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuArrayDestroy(CUarray hArray)
{
	CUresult r = remote_cuArrayDestroy(hArray);

	if (!r)
		handle_drop(HANDLE_CUarray, hArray);
	return r;
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	CUDA_ARRAY_DESCRIPTOR wide;

	if (d)
		wide = (CUDA_ARRAY_DESCRIPTOR){d->Width, d->Height, d->Format, d->NumChannels};
	return cuArrayCreate_v2(pHandle, d ? &wide : NULL);
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *d, CUarray hArray)
{
	CUDA_ARRAY_DESCRIPTOR wide;
	CUresult r = cuArrayGetDescriptor_v2(d ? &wide : NULL, hArray);

	if (!r)
		*d = (CUDA_ARRAY_DESCRIPTOR_v1){
			(unsigned)wide.Width, (unsigned)wide.Height, wide.Format, wide.NumChannels};
	return r;
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	CUDA_ARRAY3D_DESCRIPTOR wide;

	if (d)
		wide = (CUDA_ARRAY3D_DESCRIPTOR){
			d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags};
	return cuArray3DCreate_v2(pHandle, d ? &wide : NULL);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *d, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR wide;
	CUresult r = cuArray3DGetDescriptor_v2(d ? &wide : NULL, hArray);

	if (!r)
		*d = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)wide.Width, (unsigned)wide.Height,
			(unsigned)wide.Depth, wide.Format, wide.NumChannels, wide.Flags};
	return r;
}
