/* expect: bad-new.h:5: error: cuX: NEW needs exactly one returned handle */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int *out) NEW SINCE(2000);
