/* expect: bad-buffer.h:6: error: cuX: parameter 'p': 'void *' needs a word */
#include "wire/annotate.h"
#include "wire/cuda_types.h"
API(cuda, CUresult, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, VERSIONED)

CUresult cuX(void *p) SINCE(2000);
