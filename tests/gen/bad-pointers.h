/* expect: bad-pointers.h:5: error: cuX: parameter 'p' */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(void **p) SINCE(2000);
