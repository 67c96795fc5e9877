/* expect: bad-twice.h:7: error: cuX described twice */
#include "wire/annotate.h"
#include "wire/cuda_types.h"
API(cuda, CUresult, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, VERSIONED)

CUresult cuX(int a) SINCE(2000);
CUresult cuX(int a) SINCE(2000);
