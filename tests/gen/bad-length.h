/* expect: bad-length.h:5: error: cuX: parameter 'p': length names no parameter: 'm' */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(const void *p BYTES(m), size_t n) SINCE(2000);
