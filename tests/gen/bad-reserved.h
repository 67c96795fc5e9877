/* expect: bad-reserved.h:6: error: cuX: parameter 'c': generated code has that name itself */
#include "wire/annotate.h"
#include "wire/cuda_types.h"
API(cuda, CUresult, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, VERSIONED)

CUresult cuX(int c) SINCE(2000);
