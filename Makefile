# SPDX-License-Identifier: Apache-2.0
# scudafs: `make help` lists what can be made. One file, two halves: what each thing is made of (edit this),
# how things are made (rarely).

B       ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0
HANDSHAKE ?= yes
SAN     ?=

bin := $(addprefix $(B)/bin/,scudafs scuda-server scuda-softcheck)
lib := $(addprefix $(B)/lib/,libcuda.so.1 libnvidia-ml.so.1 libscuda-soft.so soft/libcuda.so.1)
links := $(addprefix $(B)/lib/,libcuda.so libnvidia-ml.so soft/libcuda.so)
all: $(bin) $(lib) $(links) ## build everything (programs in build/bin, libraries in build/lib)

# ---- what each thing is made of ----------------------------------------------------------------------------

objects  = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(1))))
gen      = $(addprefix $(B)/obj/gen/cuda.,$(addsuffix .o,$(1)))
gen_nvml = $(addprefix $(B)/obj/gen/nvml.,$(addsuffix .o,$(1)))
codec   := $(addprefix $(B)/obj/wire/,msg.o frame.o log.o)
wire    := $(call objects,wire)
# What the shim and the software device share: the runtime's private tables, error texts, cuGetProcAddress,
# CUDA_VISIBLE_DEVICES.
tables  := $(addprefix $(B)/obj/devshim/,tables.o compiled.o errors.o procs.o visible.o \
	$(if $(filter no,$(HANDSHAKE)),,handshake.o))
simd    := $(addprefix $(B)/obj/server/soft/handlers.,sse2.o avx2.o avx512.o)
shim    := $(filter-out $(addprefix $(B)/obj/devshim/,handshake.o tables.o),$(call objects,devshim))

$(B)/bin/scudafs: $(call objects,mount scudafs) $(wire) $(call gen,names) $(call gen_nvml,names)
$(B)/bin/scudafs: LIBS = $(shell pkg-config --libs fuse3 openssl jansson) -llz4 -lpthread
$(B)/bin/scuda-server: $(call objects,server) $(wire) \
	$(call gen,serve driver calls) $(call gen_nvml,serve driver calls)
$(B)/bin/scuda-server: LIBS = $(shell pkg-config --libs openssl) -llz4 -ldl -lpthread
$(B)/obj/shim.cuda.o: $(sort $(shim) $(filter-out %/tables.o,$(tables))) $(call gen,stubs)
$(B)/obj/shim.nvml.o: $(call objects,devshim/nvml) $(call gen_nvml,stubs)
$(B)/lib/libcuda.so.1: $(B)/obj/shim.cuda.o $(B)/obj/shim.tables.o $(codec) \
	$(addprefix $(B)/obj/wire/,fds.o image.o digest.o kept.o hops.o look.o) \
	$(call gen,entry procs calls names)
$(B)/lib/libcuda.so.1: LIBS = -lpthread
$(B)/lib/libnvidia-ml.so.1: $(B)/obj/shim.nvml.o $(B)/obj/devshim/count.o $(codec) \
	$(call gen_nvml,entry calls names)
soft    := $(filter-out $(B)/obj/server/soft/handlers.o,$(call objects,server/soft)) $(simd) $(tables) \
	$(addprefix $(B)/obj/wire/,log.o digest.o kept.o) \
	$(call gen,soft procs)
$(B)/lib/libscuda-soft.so: $(soft)
$(B)/bin/scuda-softcheck: $(call objects,server/soft/softcheck) $(soft)
$(B)/lib/libscuda-soft.so $(B)/bin/scuda-softcheck: LIBS = -llz4 -lzstd -lm -lpthread

# ---- how things are made -----------------------------------------------------------------------------------

CC      ?= gcc
OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra $(if $(CI),-Werror)
sanitize := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
COMPILE  = $(CC) -std=gnu11 $(CFLAGS) $(WARN) $(sanitize) -fPIC -fvisibility=hidden -D_GNU_SOURCE \
	-DVERSION='"$(VERSION)"' \
	-DPREFIX='"$(PREFIX)"' -I. -I$(B)/gen $(INC) -MMD -MP -c -o $@ $<
LINK     = $(CC) $(CFLAGS) $(sanitize) -o $@ $(filter %.o,$^) $(LIBS)
generator := wire/gen.py $(wildcard wire/generator/*.py)
artefacts := calls.h calls.c driver.h driver.c remote.h stubs.c serve.c procs.c soft.c flavours.h entry.c \
	names.c inner
artefacts_nvml := $(filter-out procs.c soft.c flavours.h,$(artefacts))
headers  := $(addprefix $(B)/gen/cuda.,calls.h driver.h remote.h flavours.h) \
	$(addprefix $(B)/gen/nvml.,calls.h driver.h remote.h)

$(B)/obj/scudafs/%.o $(B)/obj/mount/%.o: INC = $(shell pkg-config --cflags fuse3)
$(B)/obj/server/soft/%.o: INC = -ffp-contract=off -fno-math-errno -fno-trapping-math

$(B)/obj/gen/%.o: $(B)/gen/%.c | $(headers)
	@mkdir -p $(@D)
	$(COMPILE)
$(B)/obj/server/soft/handlers.sse2.o: SIMD = -DSIMD=sse2 -msse2
$(B)/obj/server/soft/handlers.avx2.o: SIMD = -DSIMD=avx2 -mavx2 -mfma
$(B)/obj/server/soft/handlers.avx512.o: SIMD = -DSIMD=avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma
# The vector handlers check every address themselves, and take a sanitizer ten minutes each.
$(simd): sanitize =
$(simd): $(B)/obj/server/soft/handlers.%.o: server/soft/handlers.c | $(headers)
	@mkdir -p $(@D)
	$(COMPILE) -O3 $(SIMD)
$(B)/obj/%.o: %.c | $(headers)
	@mkdir -p $(@D)
	$(COMPILE)
$(addprefix $(B)/gen/cuda.,$(artefacts)): $(B)/gen/cuda.%: wire/cuda.h wire/cuda_types.h $(generator)
	@mkdir -p $(@D)
	python3 wire/gen.py wire/cuda_types.h wire/cuda.h $* > $@.new && mv $@.new $@
$(addprefix $(B)/gen/nvml.,$(artefacts_nvml)): $(B)/gen/nvml.%: wire/nvml.h wire/nvml_types.h $(generator)
	@mkdir -p $(@D)
	python3 wire/gen.py wire/nvml_types.h wire/nvml.h $* > $@.new && mv $@.new $@
# The shims' functions get out of the way of the exports, which are the generated wrappers around them
# (devshim/count.h). The functions of the private tables, which programs call past those, use the exports.
$(B)/obj/shim.%.o: $(B)/gen/%.inner
	$(CC) -r -nostdlib -o $@ $(filter %.o,$^)
	$(OBJCOPY) --redefine-syms=$< $@
$(B)/obj/shim.tables.o: $(B)/obj/devshim/tables.o
	$(OBJCOPY) --redefine-sym cuGetExportTable=inner_cuGetExportTable $< $@
$(bin):
	@mkdir -p $(@D)
	$(LINK)
$(filter-out %/soft/libcuda.so.1,$(lib)):
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,--exclude-libs,ALL \
		$(if $(SAN),,-Wl,-z,defs) -Wl,-z,nodelete
$(B)/lib/soft/libcuda.so.1: $(B)/lib/libscuda-soft.so
	@mkdir -p $(@D)
	ln -sf ../libscuda-soft.so $@
# Some programs (numba-cuda) open the libraries by their names without a version first, and would find the
# system's.
$(links): %: %.1
	ln -sf $(<F) $@

# ---- tests, and what else people ask for -------------------------------------------------------------------

# A unit test is linked with the wire, the daemon and the server, and with what several of them use.
unit  := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/check_*.c))
progs := $(patsubst tests/e2e/progs/%.c,$(B)/tests/e2e/%,$(wildcard tests/e2e/progs/*.c))
tested := $(call objects,wire scudafs) $(filter-out %/main.o,$(call objects,server)) \
	$(call gen,serve driver calls) \
	$(call gen_nvml,serve driver calls)

tested += $(patsubst %.c,$(B)/obj/%.o,$(filter-out tests/unit/check_%,$(wildcard tests/unit/*.c)))

$(B)/tests/tested.a: $(tested)
	@mkdir -p $(@D)
	rm -f $@ && $(AR) qcs $@ $^
$(unit): $(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(B)/tests/tested.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(sanitize) -o $@ $^ $(shell pkg-config --libs check fuse3 openssl jansson) \
		-llz4 -ldl -lpthread
$(progs): $(B)/tests/e2e/%: tests/e2e/progs/%.c tests/e2e/progs/prog.h $(B)/lib/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g $(WARN) $(sanitize) -D_GNU_SOURCE -I. -o $@ $< \
		$(or $(LINKED),-L$(B)/lib -l:libcuda.so.1) -lpthread
$(B)/tests/e2e/opened: LINKED = -no-pie

unit: $(unit)
# A driver for tests/bench/trips.sh.
hollow := $(B)/tests/bench/libhollow.so
$(hollow): tests/bench/hollow.c $(B)/lib/libscuda-soft.so
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g $(WARN) -fPIC -fvisibility=hidden -I. -shared -o $@ $< \
		-Wl,--no-as-needed -L$(B)/lib \
		-l:libscuda-soft.so -Wl,-rpath,'$$ORIGIN/../../lib' -llz4 -lzstd
tests: all $(unit) $(progs) $(hollow) ## build the tests, too
# With all processors: the CUDA programs alone take nvcc ten minutes on one.
build_tests = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) tests
check: ## run all tests (tests/run.sh NAME runs those that you name)
	$(build_tests)
	@B=$(B) tests/run.sh $(CHECK)
# Hours: FUZZ_MINUTES, SOAK_MINUTES, MUTATE_COUNT and SESSIONS say how much of it (tests/long).
check-long: ## run all tests and the long ones
	$(build_tests)
	@B=$(B) SCUDAFS_TEST_LONG=1 MINUTES=$(or $(MINUTES),600) tests/run.sh $(CHECK)
# Under a sanitizer time limits are stretched by SLOW, and a report goes into a file, which fails the run. The
# CUDA programs themselves are built once; our library in them brings the sanitizer.
preload = $(shell $(CC) -print-file-name=$(1))
report  = log_path=$(CURDIR)/$(B)-$(1)/tests/reports/$(1)
check-asan: ## run all tests under the address and undefined-behaviour sanitizers
	@ASAN_OPTIONS="$(call report,asan):$$ASAN_OPTIONS" \
		UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:$(call report,asan)" \
		LSAN_OPTIONS=print_suppressions=0:suppressions=$(CURDIR)/tests/lsan.supp \
		SCUDAFS_TEST_APPS=$(CURDIR)/$(B)/tests/apps SCUDAFS_TEST_PRELOAD=$(call preload,libasan.so) \
		$(MAKE) --no-print-directory B=$(B)-asan A=$(B)/tests/apps SAN=address,undefined \
		CFLAGS='-O1 -g' \
		SCUDAFS_TEST_SANITIZER=asan SLOW=$(or $(SLOW),4) check
# Without the option each of the many sessions waits a second at its end.
tsan    = atexit_sleep_ms=0:suppressions=$(CURDIR)/tests/tsan.supp
check-tsan: ## run the unit and end-to-end tests under the thread sanitizer
	@TSAN_OPTIONS="$(call report,tsan):$(tsan):$$TSAN_OPTIONS" \
		$(MAKE) --no-print-directory B=$(B)-tsan SAN=thread CFLAGS='-O1 -g' NVCC= \
		SCUDAFS_TEST_SANITIZER=tsan SLOW=$(or $(SLOW),4) CHECK='$(or $(CHECK),unit e2e)' check
demo: ## from nothing to a CUDA program that computes through a mount
	@B=$(B) MAKE="$(MAKE)" tests/demo/demo.sh
deps: ## install what building, testing and mounting need (Debian, Ubuntu)
	@tests/deps.sh
lint: ## check the style: this tree's own rules, and shellcheck where it is installed
	@tests/lint.sh

man   := $(patsubst docs/man/%.scd,$(B)/man/%,$(wildcard docs/man/*.scd))
$(B)/man/%: docs/man/%.scd
	@mkdir -p $(@D)
	scdoc < $< > $@
to     = $(DESTDIR)$(PREFIX)
install: all $(man) ## install below PREFIX (/usr/local), staged in DESTDIR
	install -d $(to)/bin $(to)/sbin $(to)/lib/scudafs/soft
	install -d $(to)/share/man/man1 $(to)/share/man/man8 $(to)/share/doc/scudafs
	install $(bin) $(to)/bin
	install $(filter-out %/soft/libcuda.so.1,$(lib)) $(to)/lib/scudafs
	ln -sf ../libscuda-soft.so $(to)/lib/scudafs/soft/libcuda.so.1
	for l in $(links:$(B)/lib/%=%); do ln -sf $$(basename $$l).1 $(to)/lib/scudafs/$$l; done
	install server/soft/ptxas $(to)/lib/scudafs/soft
	ln -sf ../bin/scudafs $(to)/sbin/mount.scudafs
	ln -sf ../bin/scudafs $(to)/sbin/mount.fuse.scudafs
	install -m 644 $(filter %.1,$(man)) $(to)/share/man/man1
	install -m 644 $(filter %.8,$(man)) $(to)/share/man/man8
	install -m 644 LICENSE README.md $(wildcard docs/*.md) $(to)/share/doc/scudafs

docs: $(B)/docs/support.md $(B)/docs/support-nvml.md ## write the tables of what is supported (build/docs)
named := $(wildcard server/soft/*.c tests/*/*.c tests/*/*.cu tests/*/*/*.c tests/*/*.sh)
$(B)/docs/support.md: wire/cuda.h wire/cuda_types.h $(generator) $(named)
	@mkdir -p $(@D)
	python3 wire/gen.py wire/cuda_types.h wire/cuda.h support.md > $@
$(B)/docs/support-nvml.md: wire/nvml.h wire/nvml_types.h $(generator) $(named)
	@mkdir -p $(@D)
	python3 wire/gen.py wire/nvml_types.h wire/nvml.h support.md > $@
clean: ## remove all that was built
	rm -rf $(B) $(B)-asan $(B)-tsan
help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16
.PHONY: docs all unit tests check check-long check-asan check-tsan demo deps lint install clean help
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
-include tests/apps/apps.mk
