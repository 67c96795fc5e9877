/* expect: bad-word.h:5: error: unknown word 'LATER' after cuX */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int x) LATER SINCE(2000);
