/* expect: bad-same.h:5: error: cuX: SAME names no entry */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int x) SAME(cuY) SINCE(2000);
