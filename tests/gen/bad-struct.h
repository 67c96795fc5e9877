/* expect: bad-struct.h:6: error: cuX: parameter 'c': struct CUDA_MEMCPY2D holds pointers or handles and needs VIA */
#include "wire/annotate.h"
#include "wire/cuda_types.h"
API(cuda, CUresult, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, VERSIONED)

CUresult cuX(const CUDA_MEMCPY2D *c) SINCE(2000);
