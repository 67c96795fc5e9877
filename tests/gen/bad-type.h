/* expect: bad-type.h:5: error: cuX: parameter 'x': 'CUnothing' needs a word */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(CUnothing x) SINCE(2000);
