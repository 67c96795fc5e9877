/* expect: bad-paramword.h:5: error: unknown word 'SOMETIMES' after parameter 'x' */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int x SOMETIMES) SINCE(2000);
