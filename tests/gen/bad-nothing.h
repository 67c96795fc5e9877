/* expect: bad-nothing.h:1: error: nothing described */
#include "wire/annotate.h"
#include "wire/cuda_types.h"


