/* expect: bad-twice.h:6: error: cuX described twice */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int x) SINCE(2000);
CUresult cuX(int x) SINCE(2000);
