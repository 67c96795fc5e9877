/* expect: bad-since.h:5: error: cuX has no SINCE */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int x) LOCAL;
