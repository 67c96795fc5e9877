/* expect: bad-buffer.h:5: error: cuX: parameter 'p': 'void *' needs a word */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(void *p) SINCE(2000);
