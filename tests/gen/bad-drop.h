/* expect: bad-drop.h:6: error: cuX: DROP is for the first handle: 'event' */
#include "wire/annotate.h"
#include "wire/cuda_types.h"
API(cuda, CUresult, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, VERSIONED)

CUresult cuX(CUstream stream, CUevent event DROP) SINCE(2000);
