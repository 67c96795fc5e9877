/* expect: bad-post.h:5: error: cuX: a returned value on a POST call: 'out' */
#include "wire/annotate.h"
#include "wire/cuda_types.h"

CUresult cuX(int *out) POST SINCE(2000);
