# SPDX-License-Identifier: Apache-2.0
# The test programs of tests/apps and the measuring programs of tests/bench, included at the end of the
# Makefile. They are built where NVIDIA's compiler is found (NVCC, the search path, the usual place); without
# it there is nothing to build and the scripts skip. APP_ARCH is what nvcc makes code for: PTX by default,
# which every device of ours runs.

NVCC     ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc) \
	$(lastword $(sort $(wildcard /usr/local/cuda-*/bin/nvcc))))
APP_ARCH ?= compute_75
CUDA     ?= $(if $(NVCC),$(patsubst %/bin/nvcc,%,$(realpath $(NVCC))))

ifneq ($(CUDA),)
A         := $(B)/tests/apps
apps_of    = $(shell sed -n 's/^\([a-z0-9_]*\)  *[a-z,]*$(1)[a-z,]* .*/\1/p' tests/apps/list)
runtime   := $(addprefix $(A)/,$(call apps_of,static) $(addsuffix .shared,$(call apps_of,shared)) \
	$(addsuffix .fat,$(call apps_of,fat)) $(addsuffix .plain,$(call apps_of,plain)))
apidriven := $(addprefix $(A)/,$(call apps_of,driver)) \
	$(patsubst tests/apps/conformance/%.c,$(A)/conformance/%,$(wildcard tests/apps/conformance/*.c))
benches   := $(addprefix $(B)/tests/bench/,micro cost bulk tcp ways proxy)
NVFLAGS    = -O2 -std=c++17 --extended-lambda -Xcompiler -Wall,-D_GNU_SOURCE $(NVEXTRA)
# Not those whose libraries are not here.
missing   := $(shell bash tests/apps/libs.sh $(CUDA) missing)
apps      := $(filter-out $(foreach n,$(missing),$(A)/$(n) $(A)/$(n).%),$(runtime) $(apidriven))

# The inputs of links, in every form: text, machine code, both in a fat binary or an object, and code that is
# optimised when it is linked.
linkables := $(foreach n,caller callee,$(addprefix $(A)/link/$(n),.ptx .cubin .fatbin .o .lto.o .ltoir)) \
	$(A)/link/both.a $(A)/link/both.lto.a
LINK_TEXT  = -gencode arch=compute_75,code=compute_75
LINK_CODE  = -gencode arch=compute_90,code=sm_90

apps: $(apps) $(linkables) $(benches) ## build the CUDA programs of tests/apps and tests/bench (needs nvcc)
tests: $(apps) $(linkables) $(benches)

library_flags = $(shell bash tests/apps/libs.sh $(CUDA) flags $*)
# One object, linked twice: the runtime inside, and as a library.
$(A)/obj/%.o: tests/apps/%.cu tests/apps/app.h
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) $(or $(CODE_FOR),-arch=$(APP_ARCH)) -c -o $@ $< $(filter -I%,$(library_flags))
of_libs    = $(shell grep -l libs.h tests/apps/*.cu | xargs -n 1 basename -s .cu)
$(addprefix $(A)/obj/,$(addsuffix .o,$(of_libs))): tests/apps/libs.h
$(A)/obj/wgmma.o: CODE_FOR = -gencode arch=compute_90a,code=compute_90a
$(A)/obj/im2col.o: CODE_FOR = -gencode arch=compute_90,code=compute_90
$(A)/obj/ptds.o: NVEXTRA = --default-stream per-thread
$(A)/devicequery: STATIC_LIBS = -L$(CUDA)/lib64/stubs -lcuda
static    := $(filter-out $(A)/rdc $(A)/cdp $(A)/cdpgraphs %.shared %.fat %.plain,$(runtime))
$(static): $(A)/%: $(A)/obj/%.o
	$(NVCC) -cudart static -o $@ $< $(STATIC_LIBS) -lpthread
$(filter %.shared,$(runtime)): $(A)/%.shared: $(A)/obj/%.o
	$(NVCC) -cudart shared -Xlinker -rpath,$(CUDA)/lib64 -o $@ $< $(library_flags) -lpthread
$(filter %.fat,$(runtime)): $(A)/%.fat: tests/apps/%.cu tests/apps/app.h
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) -arch=all-major -o $@ $<
$(filter %.plain,$(runtime)): $(A)/%.plain: tests/apps/%.cu tests/apps/app.h
	@mkdir -p $(@D)
	$(NVCC) -Xcompiler -D_GNU_SOURCE -o $@ $<
$(A)/rdc: $(wildcard tests/apps/rdc/*.cu) tests/apps/app.h
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) -rdc=true -arch=all-major -o $@ $(filter %.cu,$^)
$(A)/cdp $(A)/cdpgraphs: $(A)/%: tests/apps/%/main.cu tests/apps/app.h
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) -rdc=true -arch=all-major -o $@ $< -lcudadevrt

$(A)/link/%.ptx: tests/apps/link/%.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -rdc=true -arch=compute_75 -ptx -o $@ $<
$(A)/link/%.cubin: tests/apps/link/%.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -rdc=true -arch=sm_90 -cubin -o $@ $<
$(A)/link/%.fatbin: tests/apps/link/%.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -rdc=true $(LINK_TEXT) $(LINK_CODE) -fatbin -o $@ $<
$(A)/link/%.lto.o: tests/apps/link/%.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -rdc=true -gencode arch=compute_80,code=lto_80 -c -o $@ $<
$(A)/link/%.o: tests/apps/link/%.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -rdc=true $(LINK_TEXT) $(LINK_CODE) -c -o $@ $<
$(A)/link/%.ltoir: tests/apps/link/%.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 -rdc=true -gencode arch=compute_80,code=lto_80 -ltoir -o $@ $<
$(A)/link/both.a: $(A)/link/caller.o $(A)/link/callee.o
	rm -f $@ && ar crs $@ $^
$(A)/link/both.lto.a: $(A)/link/caller.lto.o $(A)/link/callee.lto.o
	rm -f $@ && ar crs $@ $^

driver_build = $(CC) -std=gnu11 -O1 -g -Wall -Wextra -D_GNU_SOURCE -isystem $(CUDA)/include -o $@ $< \
	-L$(CUDA)/lib64/stubs -lcuda $(DRIVER_LIBS) -lpthread -lm
$(filter-out $(A)/conformance/%,$(apidriven)): $(A)/%: tests/apps/%.c tests/apps/app.h
	@mkdir -p $(@D)
	$(driver_build)
$(A)/nvjitlink: DRIVER_LIBS = -L$(CUDA)/lib64 -lnvrtc -lnvJitLink -Wl,--disable-new-dtags,-rpath,$(CUDA)/lib64
$(A)/nvrtc: DRIVER_LIBS = -L$(CUDA)/lib64 -lnvrtc -Wl,--disable-new-dtags,-rpath,$(CUDA)/lib64
common    := $(addprefix tests/apps/conformance/,check.h first.h nodes.h objects.h pair.h parts.h pointer.h)
$(filter $(A)/conformance/%,$(apidriven)): $(A)/conformance/%: tests/apps/conformance/%.c $(common)
	@mkdir -p $(@D)
	$(driver_build)
$(addprefix $(B)/tests/bench/,micro cost bulk): $(B)/tests/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(driver_build)
$(addprefix $(B)/tests/bench/,tcp ways proxy): $(B)/tests/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -D_GNU_SOURCE -o $@ $< -lpthread
.PHONY: apps
endif
