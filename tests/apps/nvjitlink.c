/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC and nvJitLink: two C++ texts are compiled to the form that a linker can optimise, linked, loaded and
 * run, with a device function of one called by the kernel of the other; and an unresolved name is an error
 * with its name in the log. The software device is given the linked PTX, a real one machine code. */
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include "app.h"

static const char kernel_text[] = "extern \"C\" __device__ float twice_and(float, int);\n"
				  "extern \"C\" __global__ void apply(float *x, int n)\n"
				  "{\n"
				  "	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
				  "	if (i < n)\n"
				  "		x[i] = twice_and(x[i], i);\n"
				  "}\n";
static const char function_text[] = "__constant__ float offsets[2] = {10, 20};\n"
				    "extern \"C\" __device__ float twice_and(float v, int i) { return 2 * v "
				    "+ offsets[i & 1]; }\n";

static char *compile(const char *text, const char *name, int capability, size_t *size)
{
	char arch[64], *code, log[4096];
	const char *options[] = {arch, "-dlto", "-rdc=true"};
	nvrtcProgram p;
	size_t n = 0;

	snprintf(arch, sizeof(arch), "-arch=compute_%d", capability);
	if (nvrtcCreateProgram(&p, text, name, 0, NULL, NULL))
		fail("nvrtcCreateProgram");
	if (nvrtcCompileProgram(p, 3, options)) {
		if (!nvrtcGetProgramLogSize(p, &n) && n < sizeof(log))
			nvrtcGetProgramLog(p, log);
		fail("compile %s: %s", name, log);
	}
	if (nvrtcGetLTOIRSize(p, size) || !(code = (char *)malloc(*size)) || nvrtcGetLTOIR(p, code))
		fail("no linkable code of %s", name);
	nvrtcDestroyProgram(&p);
	return code;
}

static void *link_all(char *const *parts, const size_t *sizes, int count, int capability, int ptx, char *log,
		size_t room)
{
	char arch[64];
	const char *options[] = {arch, "-lto", "-ptx"};
	nvJitLinkHandle h;
	nvJitLinkResult r;
	void *image = NULL;
	size_t n = 0;

	snprintf(arch, sizeof(arch), "-arch=sm_%d", capability);
	if (nvJitLinkCreate(&h, ptx ? 3 : 2, options))
		fail("nvJitLinkCreate");
	for (int i = 0; i < count; i++)
		if (nvJitLinkAddData(h, NVJITLINK_INPUT_LTOIR, parts[i], sizes[i], "part"))
			fail("nvJitLinkAddData");
	r = nvJitLinkComplete(h);
	*log = '\0';
	if (!nvJitLinkGetErrorLogSize(h, &n) && n && n < room)
		nvJitLinkGetErrorLog(h, log);
	if (!r) {
		r = ptx ? nvJitLinkGetLinkedPtxSize(h, &n) : nvJitLinkGetLinkedCubinSize(h, &n);
		if (r || !(image = malloc(n)) ||
				(ptx ? nvJitLinkGetLinkedPtx(h, (char *)image) :
				nvJitLinkGetLinkedCubin(h, image)))
			fail("no linked image: %d", (int)r);
	}
	nvJitLinkDestroy(&h);
	return image;
}

int main(void)
{
	enum { N = 1000 };
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUdeviceptr x;
	char name[256], log[8192], *parts[2];
	int major, minor, capability, n = N, ptx;
	size_t sizes[2], bytes;
	float values[N];
	void *image, *arguments[] = {&x, &n};

	DRV(cuInit(0));
	DRV(cuDeviceGet(&device, 0));
	DRV(cuDeviceGetName(name, sizeof(name), device));
	DRV(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	DRV(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
	DRV(cuDevicePrimaryCtxRetain(&context, device));
	DRV(cuCtxSetCurrent(context));
	capability = 10 * major + minor;
	ptx = strstr(name, "software") != NULL;

	parts[0] = compile(kernel_text, "kernel.cu", capability, &sizes[0]);
	parts[1] = compile(function_text, "function.cu", capability, &sizes[1]);
	image = link_all(parts, sizes, 2, capability, ptx, log, sizeof(log));
	if (!image)
		fail("link: %s", log);
	DRV(cuModuleLoadData(&module, image));
	DRV(cuModuleGetFunction(&function, module, "apply"));
	DRV(cuMemAlloc(&x, sizeof(values)));
	for (int i = 0; i < N; i++)
		values[i] = (float)i;
	DRV(cuMemcpyHtoD(x, values, sizeof(values)));
	DRV(cuLaunchKernel(function, (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
	DRV(cuMemcpyDtoH(values, x, sizeof(values)));
	for (int i = 0; i < N; i++)
		if (values[i] != (float)(2 * i + (i & 1 ? 20 : 10)))
			fail("value %d is %g", i, values[i]);
	puts("linked and run");
	DRV(cuModuleGetGlobal(&x, &bytes, module, "offsets") == CUDA_SUCCESS &&
			bytes != 8 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
	free(image);

	image = link_all(parts, sizes, 1, capability, 0, log, sizeof(log));
	if (image || !strstr(log, "twice_and"))
		fail("a missing function: %s, log: %s", image ? "linked" : "refused", log);
	puts("a missing function is told");
	DRV(cuModuleUnload(module));
	free(parts[0]);
	free(parts[1]);
	DRV(cuDevicePrimaryCtxRelease(device));
	return pass();
}
