/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver API as scudafs speaks it: every export of libcuda 13.0, each with how its arguments travel
 * and how it is answered. This is the only place that says so: stubs, dispatch, driver table,
 * cuGetProcAddress and docs/support.md are generated from it (wire/gen.py). The words are explained in
 * annotate.h and docs/api.md. Prototypes are the ABI's; `make check` compiles them after NVIDIA's cuda.h
 * where there is one. */
#pragma once
#include "wire/annotate.h"
#include "wire/cuda_types.h"

#pragma GCC visibility push(default)

API(cuda, CUresult, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED,
		CUDA_ERROR_NOT_PERMITTED, VERSIONED)

CUresult cuGetErrorString(CUresult error, const char **pStr) LOCAL SINCE(6000);
CUresult cuGetErrorName(CUresult error, const char **pStr) LOCAL SINCE(6000);
CUresult cuInit(unsigned int Flags) LOCAL SINCE(2000);
CUresult cuDriverGetVersion(int *driverVersion) LOCAL SINCE(2020);
CUresult cuDeviceGet(CUdevice *device, int ordinal) LOCAL SINCE(2000);
CUresult cuDeviceGetCount(int *count) LOCAL SINCE(2000);
CUresult cuDeviceGetName(char *name, int len, CUdevice dev) LOCAL SINCE(2000);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) LOCAL SINCE(11040);
CUresult cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev) LOCAL SINCE(10000);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) LOCAL SINCE(3020);
CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
		unsigned numChannels, CUdevice dev) CACHED("never") ANYTIME SINCE(11010);
CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) LOCAL SINCE(2000);
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities COUNT(count),
		const CUatomicOperation *operations COUNT(count),
		unsigned int count, CUdevice dev) ANYTIME SINCE(13000);
CUresult cuDeviceGetNvSciSyncAttributes(void *nvSciSyncAttrList, CUdevice dev, int flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(10020);
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) SHIM ANYTIME SINCE(11020);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) SHIM ANYTIME SINCE(11020);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) SHIM ANYTIME SINCE(11020);
CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
		CACHED("never") ANYTIME SINCE(11040);
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
		CUflushGPUDirectRDMAWritesScope scope) SINCE(11030);
CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev) LOCAL SINCE(2000);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) LOCAL SINCE(2000);
CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) HAND ANYTIME SINCE(7000);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) SHIM FREES ANYTIME SINCE(11000);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) SHIM ANYTIME SINCE(11000);
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) LOCAL SINCE(7000);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) LOCAL SINCE(11000);
CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
		CUdevice dev) LOCAL SINCE(12050);
CUresult cuCtxDestroy_v2(CUcontext ctx DROP) SHIM FREES UNLOST SINCE(4000);
CUresult cuCtxPushCurrent_v2(CUcontext ctx) LOCAL SINCE(4000);
CUresult cuCtxPopCurrent_v2(CUcontext *pctx) LOCAL SINCE(4000);
CUresult cuCtxSetCurrent(CUcontext ctx) LOCAL SINCE(4000);
CUresult cuCtxGetCurrent(CUcontext *pctx) LOCAL SINCE(4000);
CUresult cuCtxGetDevice(CUdevice *device) LOCAL SINCE(2000);
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) LOCAL SINCE(13000);
CUresult cuCtxGetFlags(unsigned int *flags) LOCAL SINCE(7000);
CUresult cuCtxSetFlags(unsigned int flags) SHIM SINCE(12010);
CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) CACHED("the context dies") SINCE(12000);
CUresult cuCtxSynchronize(void) SHIM SYNCS SINCE(2000);
CUresult cuCtxSynchronize_v2(CUcontext ctx) SHIM SYNCS SINCE(13000);
CUresult cuCtxSetLimit(CUlimit limit, size_t value) SHIM SINCE(3010);
CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit) CACHED("cuCtxSetLimit") SINCE(3010);
CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig) CACHED("cuCtxSetCacheConfig") SINCE(3020);
CUresult cuCtxSetCacheConfig(CUfunc_cache config) SHIM CONFIGURES SINCE(3020);
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) LOCAL SINCE(3020);
CUresult cuCtxGetStreamPriorityRange(int *leastPriority OPTIONAL, int *greatestPriority OPTIONAL)
		CACHED("never") SINCE(5050);
CUresult cuCtxResetPersistingL2Cache(void) POST SINCE(11000);
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type) SINCE(11040);
CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) SHIM SINCE(12050);
CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) SINCE(12050);
CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) LOCAL SINCE(2000);
CUresult cuCtxDetach(CUcontext ctx) LOCAL SINCE(2000);
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig) LOCAL SINCE(4020);
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) LOCAL SINCE(4020);
CUresult cuModuleLoad(CUmodule *module, const char *fname) HAND SINCE(2000);
CUresult cuModuleLoadData(CUmodule *module, const void *image) HAND SINCE(2000);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
		CUjit_option *options, void **optionValues) HAND SINCE(2010);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) HAND SINCE(2000);
CUresult cuModuleUnload(CUmodule hmod DROP) SHIM SERVE FREES SINCE(2000);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) LOCAL SINCE(11070);
CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name STRING) HAND SINCE(2000);
CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
		CACHED("the module is unloaded") SINCE(12040);
CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
		HAND SINCE(12040);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr OPTIONAL, size_t *bytes OPTIONAL, CUmodule hmod,
		const char *name STRING) SHIM SINCE(3020);
CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
		CUlinkState *stateOut) HAND ANYTIME SINCE(6050);
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
		const char *name STRING, unsigned int numOptions, CUjit_option *options,
		void **optionValues) HAND ANYTIME SINCE(6050);
CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
		unsigned int numOptions, CUjit_option *options, void **optionValues) LOCAL SINCE(6050);
CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) HAND ANYTIME SINCE(5050);
CUresult cuLinkDestroy(CUlinkState state DROP) HAND ANYTIME SINCE(5050);
CUresult cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name STRING) SINCE(2000);
CUresult cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name STRING) SINCE(3000);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
		void **jitOptionsValues, unsigned int numJitOptions,
		CUlibraryOption *libraryOptions, void **libraryOptionValues,
		unsigned int numLibraryOptions) HAND ANYTIME SINCE(12000);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
		void **jitOptionsValues, unsigned int numJitOptions,
		CUlibraryOption *libraryOptions, void **libraryOptionValues,
		unsigned int numLibraryOptions) HAND ANYTIME SINCE(12000);
CUresult cuLibraryUnload(CUlibrary library DROP) SHIM SERVE FREES ANYTIME SINCE(12000);
CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name STRING) HAND
		ANYTIME SINCE(12000);
CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
		CACHED("the library is unloaded") ANYTIME SINCE(12040);
CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) HAND
		ANYTIME SINCE(12040);
CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) CACHED("the library is unloaded")
		ANYTIME SINCE(12000);
CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) HAND ANYTIME SINCE(12000);
CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel) LOCAL SINCE(12050);
CUresult cuLibraryGetGlobal(CUdeviceptr *dptr OPTIONAL, size_t *bytes OPTIONAL, CUlibrary library,
		const char *name STRING) SHIM ANYTIME SINCE(12000);
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name STRING)
		SHIM SERVE ANYTIME SINCE(12000);
CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
		UNSUPPORTED("its code would have to run on both machines") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(12000);
CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
		CACHED("cuKernelSetAttribute") ANYTIME SINCE(12000);
CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel ALTER, CUdevice dev)
		SHIM ANYTIME SINCE(12000);
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
	SHIM CONFIGURES ANYTIME SINCE(12000);
CUresult cuKernelGetName(const char **name, CUkernel hfunc) HAND ANYTIME SINCE(12030);
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
		LOCAL SINCE(12040);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) SHIM SINCE(3020);
CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) SHIM SINCE(3020);
CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
		unsigned int ElementSizeBytes) SHIM SINCE(3020);
CUresult cuMemFree_v2(CUdeviceptr dptr) SHIM FREES UNLOST SINCE(3020);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase OPTIONAL, size_t *psize OPTIONAL, CUdeviceptr dptr)
		SHIM SINCE(3020);
CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) LOCAL SINCE(3020);
CUresult cuMemFreeHost(void *p) LOCAL SINCE(2000);
CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) LOCAL SINCE(2020);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) HAND SINCE(3020);
CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) LOCAL SINCE(2030);
CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) HAND SINCE(6000);
CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void *userData,
		CUasyncCallbackHandle *callback) HAND ANYTIME SINCE(12040);
CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback) HAND
		ANYTIME SINCE(12040);
CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId STRING) LOCAL SINCE(4010);
CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) LOCAL SINCE(4010);
CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event) HAND SINCE(4010);
CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle) HAND SINCE(4010);
CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) HAND SINCE(4010);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
		HAND SINCE(11000);
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) SHIM SINCE(4010);
CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) LOCAL SINCE(6050);
CUresult cuMemHostUnregister(void *p) LOCAL SINCE(4000);
CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) SINCE(3020);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray) SINCE(3020);
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
		SINCE(11010);
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
		CUmipmappedArray mipmap) SINCE(11010);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
		CUdevice device) SINCE(11060);
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
		CUmipmappedArray mipmap, CUdevice device) SINCE(11060);
CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx) SINCE(11020);
CUresult cuArrayDestroy(CUarray hArray DROP) SHIM SINCE(2000);
CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) SINCE(3020);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray) SINCE(3020);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
		const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
		unsigned int numMipmapLevels) SINCE(5000);
CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
		unsigned int level) SINCE(5000);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray DROP) SINCE(5000);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
		CUmemRangeHandleType handleType, unsigned long long flags)
		UNSUPPORTED("a dma-buf is of the GPU host") SINCE(11070);
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
		unsigned long long flags) SHIM SINCE(10020);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) SHIM SINCE(10020);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		const CUmemAllocationProp *prop RAW, unsigned long long flags) SHIM SINCE(10020);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) FREES ANYTIME SINCE(10020);
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		unsigned long long flags) SHIM SINCE(10020);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) SHIM ANYTIME SINCE(10020);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc COUNT(count),
		size_t count) ANYTIME SINCE(10020);
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
		SINCE(10020);
CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
		CUmemAllocationHandleType handleType, unsigned long long flags) HAND SINCE(10020);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
		CUmemAllocationHandleType shHandleType) HAND SINCE(10020);
CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop RAW,
		CUmemAllocationGranularity_flags option) CACHED("never") SINCE(10020);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop RAW,
		CUmemGenericAllocationHandle handle) SINCE(10020);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr OPAQUE) SINCE(11000);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) ANYTIME SINCE(11020);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) HAND
		ANYTIME SINCE(11020);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) HAND
		ANYTIME SINCE(11020);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map COUNT(count), size_t count)
		ANYTIME SINCE(11020);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location IN)
		ANYTIME SINCE(11020);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps RAW) ANYTIME SHIM SINCE(11020);
CUresult cuMemPoolDestroy(CUmemoryPool pool DROP) FREES ANYTIME SINCE(11020);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location IN,
		CUmemAllocationType type) SINCE(13000);
CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location IN, CUmemAllocationType type)
		SINCE(13000);
CUresult cuMemSetMemPool(CUmemLocation *location IN, CUmemAllocationType type, CUmemoryPool pool)
		SINCE(13000);
CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
		CUmemAllocationHandleType handleType, unsigned long long flags) HAND ANYTIME SINCE(11020);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
		CUmemAllocationHandleType handleType, unsigned long long flags) HAND ANYTIME SINCE(11020);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
		SERVE ANYTIME SINCE(11020);
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
		HAND ANYTIME SINCE(11020);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
		UNSUPPORTED("multicast objects would put a shared machine at risk") SINCE(12010);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)
		UNSUPPORTED("multicast objects would put a shared machine at risk") SINCE(12010);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
		CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
		unsigned long long flags) UNSUPPORTED("multicast objects would put a shared machine at risk")
		SINCE(12010);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr,
		size_t size, unsigned long long flags)
		UNSUPPORTED("multicast objects would put a shared machine at risk") SINCE(12010);
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
		size_t size) UNSUPPORTED("multicast objects would put a shared machine at risk") SINCE(12010);
CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
		CUmulticastGranularity_flags option)
		UNSUPPORTED("multicast objects would put a shared machine at risk") SINCE(12010);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) LOCAL SINCE(4000);
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
		CUmemLocation location ORDINAL()) SHIM SINCE(12020);
CUresult cuMemRangeGetAttribute(void *data BYTES(dataSize), size_t dataSize, CUmem_range_attribute attribute,
		CUdeviceptr devPtr, size_t count) SHIM SINCE(8000);
CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
		size_t numAttributes, CUdeviceptr devPtr, size_t count) LOCAL SINCE(8000);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
		LOCAL SINCE(6000);
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
		CUdeviceptr ptr) LOCAL SINCE(7000);
CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags) NEW SHIM SINCE(2000);
CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
		NEW SHIM SINCE(5050);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode INOUT) SHIM ANYTIME SINCE(10010);
CUresult cuStreamDestroy_v2(CUstream hStream DROP) SHIM UNLOST SINCE(4000);
CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) NEW SHIM SINCE(2000);
CUresult cuEventQuery(CUevent hEvent) SHIM SYNCS SINCE(2000);
CUresult cuEventSynchronize(CUevent hEvent) SHIM SYNCS SINCE(2000);
CUresult cuEventDestroy_v2(CUevent hEvent DROP) SHIM UNLOST SINCE(4000);
CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) SHIM SINCE(12080);
CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
		const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
		UNSUPPORTED("graphics and video interoperability") SINCE(10000);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
		const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		SINCE(10000);
CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
		const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		SINCE(10000);
CUresult cuDestroyExternalMemory(CUexternalMemory extMem)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		SINCE(10000);
CUresult cuImportExternalSemaphore(CUexternalSemaphore *extSem_out,
		const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc)
		UNSUPPORTED("graphics and video interoperability") SINCE(10000);
CUresult cuDestroyExternalSemaphore(CUexternalSemaphore extSem)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		SINCE(10000);
CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
		CACHED("cuFuncSetAttribute") SINCE(2020);
CUresult cuFuncSetAttribute(CUfunction hfunc ALTER, CUfunction_attribute attrib, int value) SHIM SINCE(9000);
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) SHIM CONFIGURES SINCE(3000);
CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) LOCAL SINCE(11000);
CUresult cuFuncGetName(const char **name, CUfunction hfunc) HAND SINCE(12030);
CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
		LOCAL SINCE(12040);
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
		CACHED("never: what is loaded stays so") SINCE(12040);
CUresult cuFuncLoad(CUfunction function) SHIM SINCE(12040);
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int
		numDevices, unsigned int flags) HAND SINCE(9000);
CUresult cuFuncSetBlockShape(CUfunction hfunc, int width, int height, int depth) SINCE(2000);
CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) SINCE(2000);
CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes) SINCE(2000);
CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value) LOCAL SINCE(2000);
CUresult cuParamSetf(CUfunction hfunc, int offset, float value) LOCAL SINCE(2000);
CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr BYTES(numbytes) IN, unsigned int numbytes)
		SHIM SINCE(2000);
CUresult cuLaunch(CUfunction f) SHIM SINCE(2000);
CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) SHIM SINCE(2000);
CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) SHIM
		SINCE(2000);
CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef) SINCE(2000);
CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) LOCAL SINCE(4020);
CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) ANYTIME SINCE(10000);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
		HAND ANYTIME SINCE(12000);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
		HAND ANYTIME SINCE(12000);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
		HAND ANYTIME SINCE(12000);
CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
		HAND ANYTIME SINCE(10000);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
		HAND ANYTIME SINCE(10000);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
		HAND ANYTIME SINCE(10000);
CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
		CUcontext ctx) ANYTIME SINCE(10000);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
		ANYTIME SINCE(10000);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
		ANYTIME SINCE(10000);
CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams VIA(host_node))
		SHIM ANYTIME SINCE(10000);
CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams VIA(host_node))
		SHIM ANYTIME SINCE(10000);
CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
		HAND ANYTIME SINCE(10000);
CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, CUgraph childGraph) ANYTIME SINCE(10000);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) ANYTIME SINCE(10000);
CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies) ANYTIME SINCE(10000);
CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, CUevent event VALUE) ANYTIME SINCE(11010);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out) ANYTIME SINCE(11010);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event VALUE) ANYTIME SINCE(11010);
CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, CUevent event VALUE) SHIM ANYTIME SINCE(11010);
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out) ANYTIME SINCE(11010);
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event VALUE) ANYTIME SINCE(11010);
CUresult cuGraphAddExternalSemaphoresSignalNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies, size_t numDependencies,
		const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(11020);
CUresult cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode hNode,
		CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params_out)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(11020);
CUresult cuGraphExternalSemaphoresSignalNodeSetParams(CUgraphNode hNode,
		const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(11020);
CUresult cuGraphAddExternalSemaphoresWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies, size_t numDependencies,
		const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(11020);
CUresult cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode hNode,
		CUDA_EXT_SEM_WAIT_NODE_PARAMS *params_out)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(11020);
CUresult cuGraphExternalSemaphoresWaitNodeSetParams(CUgraphNode hNode,
		const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(11020);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL, size_t numDependencies,
		const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams VIA(memop_node)) SHIM ANYTIME SINCE(11070);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
		CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out VIA(memop_node)) SHIM ANYTIME SINCE(11070);
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
		const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams VIA(memop_node)) SHIM ANYTIME SINCE(11070);
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams VIA(memop_node)) SHIM ANYTIME SINCE(11070);
CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) HAND ANYTIME SINCE(11040);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
		CUDA_MEM_ALLOC_NODE_PARAMS *params_out VIA(alloc_node)) SHIM ANYTIME SINCE(11040);
CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
		const CUgraphNode *dependencies COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, CUdeviceptr dptr) ANYTIME SINCE(11040);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) ANYTIME SINCE(11040);
CUresult cuDeviceGraphMemTrim(CUdevice device) ANYTIME SINCE(11040);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value BYTES(8))
		ANYTIME SINCE(11040);
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value BYTES(8) IN)
		ANYTIME SINCE(11040);
CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) ANYTIME SINCE(10000);
CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
		ANYTIME SINCE(10000);
CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) SHIM ANYTIME SINCE(10000);
CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
		HAND ANYTIME SINCE(10000);
CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
		HAND ANYTIME SINCE(10000);
CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
		size_t *numEdges) HAND ANYTIME SINCE(12030);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
		CUgraphEdgeData *edgeData, size_t *numDependencies)
		HAND ANYTIME SINCE(12030);
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
		CUgraphEdgeData *edgeData, size_t *numDependentNodes)
		HAND ANYTIME SINCE(12030);
CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from COUNT(numDependencies),
		const CUgraphNode *to COUNT(numDependencies),
		const CUgraphEdgeData *edgeData COUNT(numDependencies) OPTIONAL, size_t numDependencies)
		ANYTIME SINCE(12030);
CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from COUNT(numDependencies),
		const CUgraphNode *to COUNT(numDependencies),
		const CUgraphEdgeData *edgeData COUNT(numDependencies) OPTIONAL, size_t numDependencies)
		ANYTIME SINCE(12030);
CUresult cuGraphDestroyNode(CUgraphNode hNode DROP) ANYTIME SINCE(10000);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
		SHIM ANYTIME SINCE(11040);
CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) ANYTIME SINCE(12000);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_KERNEL_NODE_PARAMS *nodeParams)
		HAND ANYTIME SINCE(12000);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
		HAND ANYTIME SINCE(10020);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) ANYTIME SINCE(10020);
CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_HOST_NODE_PARAMS *nodeParams VIA(host_node))
		SHIM ANYTIME SINCE(10020);
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
		ANYTIME SINCE(11010);
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event VALUE)
		ANYTIME SINCE(11010);
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event VALUE)
		ANYTIME SINCE(11010);
CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(11020);
CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		ANYTIME SINCE(11020);
CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
		ANYTIME SINCE(11060);
CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
		ANYTIME SINCE(11060);
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec DROP) SHIM ANYTIME SINCE(10000);
CUresult cuGraphDestroy(CUgraph hGraph DROP) ANYTIME SINCE(10000);
CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
		CUgraphExecUpdateResultInfo *resultInfo)
		HAND ANYTIME SINCE(12000);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) ANYTIME SINCE(11000);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
		CUkernelNodeAttrValue *value_out RAW) ANYTIME SINCE(11000);
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
		const CUkernelNodeAttrValue *value RAW) ANYTIME SINCE(11000);
CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags) HAND ANYTIME SINCE(11030);
CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int
		initialRefcount, unsigned int flags) HAND ANYTIME SINCE(11030);
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) ANYTIME SINCE(11030);
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) ANYTIME SINCE(11030);
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int
		flags) ANYTIME SINCE(11030);
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
		ANYTIME SINCE(11030);
CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		const CUgraphEdgeData *dependencyData, size_t numDependencies,
		CUgraphNodeParams *nodeParams) HAND ANYTIME SINCE(12030);
CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
		LOCAL SINCE(12020);
CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
		LOCAL SINCE(12020);
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
		CUcontext ctx, unsigned int defaultLaunchValue, unsigned int flags) ANYTIME SINCE(12030);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
		size_t dynamicSMemSize) LOCAL SINCE(6050);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
		int blockSize, size_t dynamicSMemSize,
		unsigned int flags) CACHED("cuFuncSetAttribute") SERVE SINCE(7000);
CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
		CUoccupancyB2DSize blockSizeToDynamicSMemSize,
		size_t dynamicSMemSize, int blockSizeLimit) LOCAL SINCE(6050);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
		CUoccupancyB2DSize blockSizeToDynamicSMemSize,
		size_t dynamicSMemSize, int blockSizeLimit,
		unsigned int flags) LOCAL SINCE(7000);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
		int blockSize) CACHED("cuFuncSetAttribute") SERVE SINCE(10020);
CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
		HAND SINCE(11070);
CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
		HAND SINCE(11070);
CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) SINCE(2000);
CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
		SINCE(5000);
CUresult cuTexRefSetAddress_v2(size_t *ByteOffset OPTIONAL, CUtexref hTexRef, CUdeviceptr dptr, size_t
		bytes) SINCE(3020);
CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr,
		size_t Pitch) SINCE(4010);
CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) SINCE(2000);
CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) SINCE(2000);
CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm) SINCE(2000);
CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm) SINCE(5000);
CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias) SINCE(5000);
CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float
		maxMipmapLevelClamp) SINCE(5000);
CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso) SINCE(5000);
CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor COUNT(4) IN) SINCE(8000);
CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) SINCE(2000);
CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef) SINCE(3020);
CUresult cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef) SINCE(2000);
CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef) SINCE(5000);
CUresult cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim) SINCE(2000);
CUresult cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef) SINCE(2000);
CUresult cuTexRefGetFormat(CUarray_format *pFormat OPTIONAL, int *pNumChannels OPTIONAL, CUtexref hTexRef)
		SINCE(2000);
CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef) SINCE(5000);
CUresult cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef) SINCE(5000);
CUresult cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref
		hTexRef) SINCE(5000);
CUresult cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef) SINCE(5000);
CUresult cuTexRefGetBorderColor(float *pBorderColor COUNT(4), CUtexref hTexRef) SINCE(8000);
CUresult cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef) SINCE(2000);
CUresult cuTexRefCreate(CUtexref *pTexRef) SINCE(2000);
CUresult cuTexRefDestroy(CUtexref hTexRef DROP) SINCE(2000);
CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) SINCE(3000);
CUresult cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef) SINCE(3000);
CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
		const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
		HAND SINCE(5000);
CUresult cuTexObjectDestroy(CUtexObject texObject) SINCE(5000);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
		HAND SINCE(5000);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject) SINCE(5000);
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
		SINCE(5000);
CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc) HAND SINCE(5000);
CUresult cuSurfObjectDestroy(CUsurfObject surfObject) SINCE(5000);
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
		HAND SINCE(5000);
CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
		cuuint32_t tensorRank, void *globalAddress OPAQUE,
		const cuuint64_t *globalDim COUNT(tensorRank > 5 ? 0 : tensorRank),
		const cuuint64_t *globalStrides COUNT(tensorRank > 5 ? 0 : tensorRank - !!tensorRank),
		const cuuint32_t *boxDim COUNT(tensorRank > 5 ? 0 : tensorRank),
		const cuuint32_t *elementStrides COUNT(tensorRank > 5 ? 0 : tensorRank),
		CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
		CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) SINCE(12000);
CUresult cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t
		tensorRank, void *globalAddress OPAQUE, const cuuint64_t *globalDim COUNT(tensorRank > 5 ?
		0 : tensorRank), const cuuint64_t *globalStrides COUNT(tensorRank > 5 ? 0 : tensorRank -
		!!tensorRank), const int *pixelBoxLowerCorner COUNT(tensorRank > 5 || tensorRank < 2 ? 0 :
		tensorRank - 2), const int *pixelBoxUpperCorner COUNT(tensorRank > 5 || tensorRank < 2 ? 0
		: tensorRank - 2), cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn, const
		cuuint32_t *elementStrides COUNT(tensorRank > 5 ? 0 : tensorRank), CUtensorMapInterleave
		interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
		CUtensorMapFloatOOBfill oobFill) SINCE(12000);
CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
		cuuint32_t tensorRank, void *globalAddress OPAQUE, const cuuint64_t *globalDim
		COUNT(tensorRank > 5 ? 0 : tensorRank), const cuuint64_t *globalStrides COUNT(tensorRank >
		5 ? 0 : tensorRank - !!tensorRank), int pixelBoxLowerCornerWidth, int
		pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn, const
		cuuint32_t *elementStrides COUNT(tensorRank > 5 ? 0 : tensorRank), CUtensorMapInterleave
		interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
		CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) SINCE(12080);
CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap INOUT, void *globalAddress OPAQUE) SINCE(12000);
CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) CACHED("never")
		ANYTIME SINCE(4000);
CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) SINCE(4000);
CUresult cuCtxDisablePeerAccess(CUcontext peerContext) SINCE(4000);
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
		CUdevice dstDevice) CACHED("never") ANYTIME SINCE(8000);
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities COUNT(count),
		const CUatomicOperation *operations COUNT(count), unsigned int count, CUdevice srcDevice,
		CUdevice dstDevice) ANYTIME SINCE(13000);
CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3000);
CUresult cuGraphicsSubResourceGetMappedArray(CUarray *pArray, CUgraphicsResource resource,
		unsigned int arrayIndex, unsigned int mipLevel)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3000);
CUresult cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray *pMipmappedArray,
		CUgraphicsResource resource)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(5000);
CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *pDevPtr, size_t *pSize,
		CUgraphicsResource resource)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3020);
CUresult cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource resource, unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(6050);
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
		CUdriverProcAddressQueryResult *symbolStatus) LOCAL SINCE(12000);
CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size) HAND SINCE(12010);
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size) HAND
		ANYTIME SINCE(12010);
CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size) LOCAL SINCE(12010);
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size) LOCAL
		SINCE(12010);
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) LOCAL SINCE(3000);
CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
		SHIM ANYTIME SINCE(12040);
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx DROP) SHIM FREES ANYTIME SINCE(12040);
CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) HAND ANYTIME SINCE(12040);
CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
		ANYTIME SINCE(12040);
CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
		SINCE(12040);
CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
		ANYTIME SINCE(12040);
CUresult cuDevSmResourceSplitByCount(CUdevResource *result COUNT(nbGroups) OPTIONAL,
		unsigned int *nbGroups INOUT, const CUdevResource *input, CUdevResource *remaining OPTIONAL,
		unsigned int useFlags, unsigned int minCount) ANYTIME SINCE(12040);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources COUNT(nbResources)
		IN, unsigned int nbResources) ANYTIME SINCE(12040);
CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) SHIM ANYTIME SINCE(12040);
CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) ANYTIME SINCE(12040);
CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx) SINCE(12040);
CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
		SHIM ANYTIME SINCE(12050);
CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId) ANYTIME SINCE(12090);
CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle
		*callback_out) HAND ANYTIME SINCE(12090);
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) HAND ANYTIME SINCE(12090);
CUresult cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags) ANYTIME SINCE(12090);
CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags) LOCAL
		SINCE(12090);
CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags) HAND
		ANYTIME SINCE(12090);
CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
		SAME(cuMemHostRegister_v2) SINCE(4000);
CUresult cuGraphicsResourceSetMapFlags(CUgraphicsResource resource, unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3000);
CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
		CUlinkState *stateOut) SAME(cuLinkCreate_v2) SINCE(5050);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
		const char *name STRING, unsigned int numOptions, CUjit_option *options,
		void **optionValues) SAME(cuLinkAddData_v2) SINCE(5050);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
		CUjit_option *options, void **optionValues) SAME(cuLinkAddFile_v2) SINCE(5050);
CUresult cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr,
		size_t Pitch) SINCE(3020);
CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) ANYTIME SINCE(2000);
CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) LOCAL SINCE(2000);
CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) SHIM SINCE(3020);
CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
		unsigned int flags, CUdevice dev) LOCAL SINCE(11040);
CUresult cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod,
		const char *name STRING)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) SINCE(2000);
CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
		unsigned int Height, unsigned int ElementSizeBytes)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT)
		SINCE(2000);
CUresult cuMemFree(CUdeviceptr_v1 dptr)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemAllocHost(void **pp, unsigned int bytesize) SAME(cuMemAllocHost_v2) SINCE(2000);
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2020);
CUresult cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyDtoA(CUarray dstArray, unsigned int dstOffset, CUdeviceptr_v1 srcDevice,
		unsigned int ByteCount)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned int srcOffset,
		unsigned int ByteCount)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int
		ByteCount) SAME(cuMemcpyHtoA_v2) SINCE(2000);
CUresult cuMemcpyAtoH(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
		SAME(cuMemcpyAtoH_v2) SINCE(2000);
CUresult cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset,
		unsigned int ByteCount) SAME(cuMemcpyAtoA_v2) SINCE(2000);
CUresult cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int
		ByteCount, CUstream hStream) SAME(cuMemcpyHtoAAsync_v2) SINCE(2000);
CUresult cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int
		ByteCount, CUstream hStream) SAME(cuMemcpyAtoHAsync_v2) SINCE(2000);
CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT)
		SINCE(2000);
CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount,
		CUstream hStream)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount,
		CUstream hStream)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount,
		CUstream hStream)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(3000);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc,
		unsigned int Width, unsigned int Height)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us,
		unsigned int Width, unsigned int Height)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui,
		unsigned int Width, unsigned int Height)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
		LOCAL SINCE(2000);
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
		LOCAL SINCE(2000);
CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
		LOCAL SINCE(2000);
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
		LOCAL SINCE(2000);
CUresult cuTexRefSetAddress(unsigned int *ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr,
		unsigned int bytes)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1 *desc, CUdeviceptr_v1 dptr,
		unsigned int Pitch)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2020);
CUresult cuTexRefGetAddress(CUdeviceptr_v1 *pdptr, CUtexref hTexRef)
		UNSUPPORTED("32-bit device addresses") GIVES(CUDA_ERROR_INVALID_CONTEXT) SINCE(2000);
CUresult cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1 *pDevPtr, unsigned int *pSize,
		CUgraphicsResource resource)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3000);
CUresult cuCtxDestroy(CUcontext ctx) LOCAL SINCE(2000);
CUresult cuCtxPopCurrent(CUcontext *pctx) LOCAL SINCE(2000);
CUresult cuCtxPushCurrent(CUcontext ctx) LOCAL SINCE(2000);
CUresult cuStreamDestroy(CUstream hStream) SAME(cuStreamDestroy_v2) SINCE(2000);
CUresult cuEventDestroy(CUevent hEvent) SAME(cuEventDestroy_v2) SINCE(2000);
CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
		SAME(cuEventElapsedTime_v2) SINCE(2000);
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) LOCAL SINCE(7000);
CUresult cuDevicePrimaryCtxReset(CUdevice dev) LOCAL SINCE(7000);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) LOCAL SINCE(7000);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) SAME(cuDeviceGetUuid_v2) SINCE(9020);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
		HAND SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
		HAND SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
		HAND SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
		LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
		LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
		LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
		LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
		size_t ByteCount) LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
		CUstream hStream) LOCAL SINCE(3020) PTSZ(7000);
CUresult cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
		CUstream hStream) LOCAL SINCE(3020) PTSZ(7000);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) LOCAL SINCE(3020) PTDS(7000);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) HAND SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
		CUstream hStream) HAND SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
		HAND SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
		CUstream hStream) HAND SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) LOCAL SINCE(3020) PTSZ(7000);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) HAND SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) SHIM SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) SHIM SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) SHIM SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
		size_t Height) SHIM SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
		size_t Height) SHIM SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
		size_t Height) SHIM SYNCS SINCE(3020) PTDS(7000);
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) LOCAL SINCE(4000) PTDS(7000);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
		LOCAL SINCE(4000) PTSZ(7000);
CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
		CUcontext srcContext, size_t ByteCount) SHIM SYNCS SINCE(4000) PTDS(7000);
CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
		CUcontext srcContext, size_t ByteCount, CUstream hStream) SHIM SYNCS SINCE(4000) PTSZ(7000);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) LOCAL SINCE(4000) PTDS(7000);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) LOCAL SINCE(4000) PTSZ(7000);
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
		CUstream hStream) LOCAL SINCE(12080) PTSZ(12080);
CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
		unsigned long long flags, CUstream hStream)
		LOCAL SINCE(12080) PTSZ(12080);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
		CUstream hStream) LOCAL SINCE(13000) PTSZ(13000);
CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
		CUstream hStream) LOCAL SINCE(13000) PTSZ(13000);
CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
		SHIM SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
		SHIM SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
		SHIM SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
		size_t Height, CUstream hStream) SHIM SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
		size_t Height, CUstream hStream) SHIM SYNCS SINCE(3020) PTSZ(7000);
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
		size_t Height, CUstream hStream) SHIM SYNCS SINCE(3020) PTSZ(7000);
CUresult cuStreamGetPriority(CUstream hStream, int *priority) SHIM SINCE(5050) PTSZ(7000);
CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
		CACHED("the stream dies") SINCE(12000) PTSZ(12000);
CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags) SHIM SINCE(5050) PTSZ(7000);
CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device) LOCAL SINCE(12080) PTSZ(12080);
CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx) SHIM SINCE(9020) PTSZ(9020);
CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx OPTIONAL, CUgreenCtx *pGreenCtx OPTIONAL)
		SHIM SINCE(12050) PTSZ(12050);
CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) SHIM SINCE(3020) PTSZ(7000);
CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
		unsigned int flags) LOCAL SINCE(5000) PTSZ(7000);
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
		SHIM SINCE(6000) PTSZ(7000);
CUresult cuStreamQuery(CUstream hStream) SHIM SYNCS SINCE(2000) PTSZ(7000);
CUresult cuStreamSynchronize(CUstream hStream) SHIM SYNCS SINCE(2000) PTSZ(7000);
CUresult cuEventRecord(CUevent hEvent, CUstream hStream) SHIM SINCE(2000) PTSZ(7000);
CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
		SHIM SINCE(11010) PTSZ(11010);
CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
		unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
		unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
		HAND SINCE(4000) PTSZ(7000);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
		HAND SINCE(11060) PTSZ(11060);
CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) HAND SINCE(10000) PTSZ(10000);
CUresult cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3000) PTSZ(7000);
CUresult cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_HANDLE)
		ANYTIME SINCE(3000) PTSZ(7000);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
		SINCE(8000) PTSZ(8000);
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
		SINCE(8000) PTSZ(8000);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
		SINCE(9000) PTSZ(9000);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
		SINCE(9000) PTSZ(9000);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
		CUstreamBatchMemOpParams *paramArray COUNT(count) IN RAW,
		unsigned int flags) SINCE(8000) PTSZ(8000);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
		SHIM SINCE(11070) PTSZ(11070);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
		SHIM SINCE(11070) PTSZ(11070);
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
		SHIM SINCE(11070) PTSZ(11070);
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
		SHIM SINCE(11070) PTSZ(11070);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
		CUstreamBatchMemOpParams *paramArray COUNT(count) IN RAW,
		unsigned int flags) SHIM SINCE(11070) PTSZ(11070);
CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
		LOCAL SINCE(8000) PTSZ(8000);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location ORDINAL(),
		unsigned int flags, CUstream hStream) SHIM SINCE(12020) PTSZ(12020);
CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
		LOCAL SINCE(8000);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs COUNT(count) IN, size_t *sizes COUNT(count) IN,
		size_t count,
		CUmemLocation *prefetchLocs COUNT(numPrefetchLocs) IN,
		size_t *prefetchLocIdxs COUNT(numPrefetchLocs) IN,
		size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
		SHIM SINCE(13000) PTSZ(13000);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs COUNT(count) IN, size_t *sizes COUNT(count) IN,
		size_t count,
		unsigned long long flags, CUstream hStream) SHIM SINCE(13000) PTSZ(13000);
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs COUNT(count) IN, size_t *sizes COUNT(count) IN,
		size_t count, CUmemLocation *prefetchLocs COUNT(numPrefetchLocs) IN,
		size_t *prefetchLocIdxs COUNT(numPrefetchLocs) IN, size_t numPrefetchLocs,
		unsigned long long flags, CUstream hStream) SHIM SINCE(13000) PTSZ(13000);
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
		unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
		unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
		void **kernelParams) HAND SINCE(9000) PTSZ(9000);
CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
		const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
		unsigned int numExtSems, CUstream stream)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		SINCE(10000) PTSZ(10000);
CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
		const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
		unsigned int numExtSems, CUstream stream)
		UNSUPPORTED("graphics and video interoperability") GIVES(CUDA_ERROR_INVALID_VALUE)
		SINCE(10000) PTSZ(10000);
CUresult cuStreamBeginCapture(CUstream hStream) SHIM SINCE(10000) PTSZ(10000);
CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) SHIM SINCE(10010) PTSZ(10010);
CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies
		COUNT(numDependencies) OPTIONAL,
		const CUgraphEdgeData *dependencyData COUNT(numDependencies) OPTIONAL, size_t numDependencies,
		CUstreamCaptureMode mode) SHIM SINCE(12030) PTSZ(12030);
CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) SHIM SINCE(10000) PTSZ(10000);
CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
		SHIM SINCE(10000) PTSZ(10000);
CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
		cuuint64_t *id_out OPTIONAL) SHIM SINCE(10010) PTSZ(10010);
CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
		cuuint64_t *id_out, CUgraph *graph_out,
		const CUgraphNode **dependencies_out, size_t *numDependencies_out)
		LOCAL SINCE(11030) PTSZ(11030);
CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
		cuuint64_t *id_out, CUgraph *graph_out,
		const CUgraphNode **dependencies_out,
		const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
		HAND SINCE(12030) PTSZ(12030);
CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
		LOCAL SINCE(10000);
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
		LOCAL SINCE(10000);
CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
		LOCAL SINCE(10000);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
		LOCAL SINCE(10010);
CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
		CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
		HAND ANYTIME SINCE(12000) PTSZ(12000);
CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
		CUgraphExecUpdateResult *updateResult_out) ANYTIME SINCE(10020);
CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream) POST SHIM SINCE(11010) PTSZ(11010);
CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) SHIM SINCE(10000) PTSZ(10000);
CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
		LOCAL SINCE(10000);
CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
		LOCAL SINCE(10000);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
		size_t *numDependentNodes) LOCAL SINCE(10000);
CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from COUNT(numDependencies),
		const CUgraphNode *to COUNT(numDependencies), size_t numDependencies) ANYTIME SINCE(10000);
CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from COUNT(numDependencies),
		const CUgraphNode *to COUNT(numDependencies), size_t numDependencies) ANYTIME SINCE(10000);
CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, CUgraphNodeParams *nodeParams)
		LOCAL SINCE(12020);
CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream) POST SINCE(11000) PTSZ(11000);
CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value RAW)
		SINCE(11000) PTSZ(11000);
CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param RAW)
		SINCE(11000) PTSZ(11000);
CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
		SAME(cuIpcOpenMemHandle_v2) SINCE(4010);
CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
		char *logBuffer, size_t bufferSize) SAME(cuGraphInstantiate_v2) SINCE(10000);
CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode OPTIONAL,
		char *logBuffer TEXT(bufferSize) OPTIONAL, size_t bufferSize) ANYTIME SINCE(11000);
CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) HAND
		SINCE(11010) PTSZ(11010);
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) SHIM FREES SINCE(11020) PTSZ(11020);
CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) SHIM SINCE(11020) PTSZ(11020);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
		SHIM SINCE(11020) PTSZ(11020);
CUresult cuStreamUpdateCaptureDependencies(CUstream hStream,
		CUgraphNode *dependencies COUNT(numDependencies) IN OPTIONAL,
		size_t numDependencies, unsigned int flags) SINCE(11030) PTSZ(11030);
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream,
		CUgraphNode *dependencies COUNT(numDependencies) IN OPTIONAL,
		const CUgraphEdgeData *dependencyData COUNT(numDependencies) OPTIONAL,
		size_t numDependencies, unsigned int flags) SINCE(12030) PTSZ(12030);
CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count, unsigned int flags,
		size_t *errorIndex, CUstream stream)
		UNSUPPORTED("needs a decompression engine") SINCE(12060) PTSZ(12060);
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
		LOCAL SINCE(11030);
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
		UNSUPPORTED("process checkpointing is of the GPU host") SINCE(12080);
CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state)
		UNSUPPORTED("process checkpointing is of the GPU host") SINCE(12080);
CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
		UNSUPPORTED("process checkpointing is of the GPU host") SINCE(12080);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
		UNSUPPORTED("process checkpointing is of the GPU host") SINCE(12080);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
		UNSUPPORTED("process checkpointing is of the GPU host") SINCE(12080);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
		UNSUPPORTED("process checkpointing is of the GPU host") SINCE(12080);
CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode)
		LOCAL SINCE(4000);
CUresult cuProfilerStart(void) LOCAL SINCE(4000);
CUresult cuProfilerStop(void) LOCAL SINCE(4000);

/* What cudaGL.h, cudaEGL.h and cudaVDPAU.h declare. Programs look these up, or are linked with them, and need
 * not call them. */
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *pCudaResource, GLuint buffer, unsigned int Flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3000);
CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *pCudaResource, GLuint image, GLenum target,
		unsigned int Flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3000);
CUresult cuGLGetDevices(unsigned int *pCudaDeviceCount, CUdevice *pCudaDevices,
		unsigned int cudaDeviceCount, CUGLDeviceList deviceList)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(4010);
CUresult cuGLGetDevices_v2(unsigned int *pCudaDeviceCount, CUdevice *pCudaDevices,
		unsigned int cudaDeviceCount, CUGLDeviceList deviceList)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(6050);
CUresult cuGLCtxCreate(CUcontext *pCtx, unsigned int Flags, CUdevice device)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2000);
CUresult cuGLCtxCreate_v2(CUcontext *pCtx, unsigned int Flags, CUdevice device)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3020);
CUresult cuGLInit(void)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2000);
CUresult cuGLRegisterBufferObject(GLuint buffer)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2000);
CUresult cuGLMapBufferObject(CUdeviceptr_v1 *dptr, unsigned int *size, GLuint buffer)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2000);
CUresult cuGLMapBufferObject_v2(CUdeviceptr *dptr, size_t *size, GLuint buffer)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3020) PTDS(7000);
CUresult cuGLUnmapBufferObject(GLuint buffer)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2000);
CUresult cuGLUnregisterBufferObject(GLuint buffer)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2000);
CUresult cuGLSetBufferObjectMapFlags(GLuint buffer, unsigned int Flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2030);
CUresult cuGLMapBufferObjectAsync(CUdeviceptr_v1 *dptr, unsigned int *size, GLuint buffer,
		CUstream hStream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2030);
CUresult cuGLMapBufferObjectAsync_v2(CUdeviceptr *dptr, size_t *size, GLuint buffer, CUstream hStream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3020) PTSZ(7000);
CUresult cuGLUnmapBufferObjectAsync(GLuint buffer, CUstream hStream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(2030);
CUresult cuGraphicsEGLRegisterImage(CUgraphicsResource *pCudaResource, EGLImageKHR image,
		unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamConsumerConnect(CUeglStreamConnection *conn, EGLStreamKHR stream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamConsumerConnectWithFlags(CUeglStreamConnection *conn, EGLStreamKHR stream,
		unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(8000);
CUresult cuEGLStreamConsumerDisconnect(CUeglStreamConnection *conn)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamConsumerAcquireFrame(CUeglStreamConnection *conn, CUgraphicsResource *pCudaResource,
		CUstream *pStream, unsigned int timeout)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamConsumerReleaseFrame(CUeglStreamConnection *conn, CUgraphicsResource pCudaResource,
		CUstream *pStream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamProducerConnect(CUeglStreamConnection *conn, EGLStreamKHR stream, EGLint width,
		EGLint height)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamProducerDisconnect(CUeglStreamConnection *conn)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamProducerPresentFrame(CUeglStreamConnection *conn, CUeglFrame eglframe,
		CUstream *pStream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEGLStreamProducerReturnFrame(CUeglStreamConnection *conn, CUeglFrame *eglframe,
		CUstream *pStream)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuGraphicsResourceGetMappedEglFrame(CUeglFrame *eglFrame, CUgraphicsResource resource,
		unsigned int index, unsigned int mipLevel)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(7000);
CUresult cuEventCreateFromEGLSync(CUevent *phEvent, EGLSyncKHR eglSync, unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(9000);
CUresult cuVDPAUGetDevice(CUdevice *pDevice, VdpDevice vdpDevice, VdpGetProcAddress *vdpGetProcAddress)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3010);
CUresult cuVDPAUCtxCreate(CUcontext *pCtx, unsigned int flags, CUdevice device, VdpDevice vdpDevice,
		VdpGetProcAddress *vdpGetProcAddress)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3010);
CUresult cuVDPAUCtxCreate_v2(CUcontext *pCtx, unsigned int flags, CUdevice device, VdpDevice vdpDevice,
		VdpGetProcAddress *vdpGetProcAddress)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3020);
CUresult cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource *pCudaResource, VdpVideoSurface vdpSurface,
		unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3010);
CUresult cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource *pCudaResource,
		VdpOutputSurface vdpSurface, unsigned int flags)
		UNSUPPORTED("graphics and video interoperability") ANYTIME SINCE(3010);

#pragma GCC visibility pop
