/* expect: bad-struct.h:5: error: cuX: parameter 'c': struct CUDA_MEMCPY2D holds pointers or handles and needs VIA */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(const CUDA_MEMCPY2D *c) SINCE(2000);
