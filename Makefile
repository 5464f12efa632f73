# Makefile - builds, tests and installs Millrace. One file for all folders.
#
#   make                 build/millrace
#   make docs            the generated documents: docs/lessons.md, docs/gallery.md
#   make demo            install what is missing (Debian), build, run the main job
#   make check           install what is missing, build, run every test
#   make check-quick     build, run the tests that find most in a minute
#   make check-headers   every header compiles alone
#   make check-layers    folders include only what is below them (tests/check_layers.awk)
#   make check-words     no retired word of tests/words.txt is used; PATHS=... looks only there
#   make bench           build and run tests/perf in release mode
#   make fuzz            build the fuzz targets with clang, run each FUZZ_SECONDS
#   make bundle          build/bundle: a folder that runs without our packages
#   make install         PREFIX=/usr/local DESTDIR=: program, devices, examples, manual page,
#                        completion for bash and zsh; likewise uninstall
#   make setup           only install what is missing; make clean removes build/
#
#   MODE=release|debug|asan|tsan   a tree of objects each, build/$(MODE)
#   CC=gcc|clang   DEV=1 or CI=true: warnings are errors   V=1: show the commands
#   TESTS="tests/cli/repl.t ..."   the tests that check runs in addition to the unit tests

MAKEFLAGS += -rR
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all docs setup check check-built check-quick check-quick-built check-headers check-layers check-words bench bench-built fuzz \
	fuzz-built demo bundle install uninstall clean FORCE
all: build/millrace

# With -R a sub-make knows no default CC, and make's own default is cc.
ifneq ($(filter default undefined,$(origin CC)),)
CC := gcc
endif
AR := ar
PREFIX ?= /usr/local
MODE ?= release
B := build/$(MODE)
Q := $(if $(V),,@)

# Libraries, as pkg-config names them, and the Debian packages of all that is needed.
PKGS := lua5.4 libedit ncursesw cairo sqlite3 jansson
# Only for tests: a terminal without a screen.
TEST_PKGS := vterm
CLANG := $(findstring clang,$(CC))
DEBS = $(if $(CLANG),clang,gcc) libc6-dev make pkg-config liblua5.4-dev libedit-dev libncurses-dev libcairo2-dev \
	libsqlite3-dev libjansson-dev libvterm-dev perl python3 tcc tmux zsh coinor-libcbc-dev openmpi-bin \
	$(and $(CLANG),$(findstring -fsan,$(FLAGS_$(MODE))),libclang-rt-dev)
# What to look for on other systems.
TOOLS := $(CC) $(AR) pkg-config prove tmux
# Without the feature macros of ncurses: CPPFLAGS sets them.
PKG_CFLAGS := $(filter-out -D_XOPEN_SOURCE=% -D_DEFAULT_SOURCE,\
	$(shell pkg-config --cflags $(PKGS) 2>/dev/null))
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)

FLAGS_release := -O2 -g
FLAGS_debug := -Og -g3 -DCHECK_PASSES=1
# Older versions of clang define no macro for a sanitizer.
FLAGS_asan := -O2 -g -DCHECK_PASSES=1 -DADDRESS_SANITIZER=1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
FLAGS_tsan := -O1 -g -DTHREAD_SANITIZER=1 -fno-omit-frame-pointer -fsanitize=thread
FLAGS_fuzz := -O1 -g -DADDRESS_SANITIZER=1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
ifeq ($(FLAGS_$(MODE)),)
$(error MODE is release, debug, asan or tsan, not '$(MODE)')
endif

# Overlong strings are text for generated code; no old compiler sees them.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wwrite-strings -Wpointer-arith \
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wformat=2 -Wswitch-enum \
	-Wno-overlength-strings
# Not with a sanitizer of gcc: its instrumentation causes false warnings.
ifneq ($(and $(filter true 1,$(CI) $(DEV)),$(or $(CLANG),$(filter release debug,$(MODE)))),)
WARN += -Werror
endif
CPPFLAGS := -Isrc -Iui -I. -Itests -D_DEFAULT_SOURCE -D_XOPEN_SOURCE=700 $(PKG_CFLAGS)
# No contraction to FMA: a program gives the same numbers on every machine.
CFLAGS := -std=c11 -ffp-contract=off $(WARN) $(FLAGS_$(MODE)) $(EXTRA_CFLAGS)
LDFLAGS := $(FLAGS_$(MODE)) $(EXTRA_LDFLAGS)
LIBS := $(PKG_LIBS) -lpthread -ldl -lm

CORE_SRC := $(sort $(wildcard src/*/*.c src/lower/*/*.c src/search/*/*.c))
LUA_SRC := $(sort $(wildcard lua/*.c))
UI_SRC := $(sort $(wildcard ui/*.c ui/*/*.c))
STD := $(sort $(wildcard lua/std/*.lua)) docs/reference.md docs/glossary.md \
	$(sort $(wildcard docs/howto/*.md))
RUNTIME := src/host/rt_abi.h src/host/rt_number.h src/host/millrace_host.h
TEMPLATES := $(sort $(wildcard src/run/export/*.* src/host/rt*.[ch])) src/host/millrace_host.h src/tile/fill.h src/run/hip_names.h
UNIT_SRC := $(sort $(wildcard tests/unit/*.c))
BENCH_SRC := $(sort $(wildcard tests/perf/bench_*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
HEADERS := $(sort $(wildcard src/*/*.h src/lower/*/*.h src/search/*/*.h lua/*.h ui/*.h ui/*/*.h))
TESTS ?= $(sort $(wildcard tests/lua/*.t.lua tests/*/*.t))

# Tests that take 5 s of processor time and more, but for a few that find much; the longest first. `make check` begins with
# them, `make check-quick` leaves them out.
lua_tests = $(patsubst %,tests/lua/%.t.lua,$(1))
SLOW := $(call lua_tests,operators) $(B)/tests/torture $(call lua_tests,$(addprefix plans_,lengths shaped handover chains divided)) $(B)/tests/monkey \
	$(call lua_tests,plans_wild plans_products shipped) tests/cli/searches.t $(call lua_tests,search families lds_dma gfx942 gfx942_machine staged_loads host improve) \
	$(addprefix $(B)/tests/,verify broken mutants modulo) $(call lua_tests,reference trips tile_offsets handover lengths) \
	$(B)/tests/starve $(call lua_tests,errors random_programs waits gather calibrate) $(B)/tests/oracle \
	$(call lua_tests,why targets suggest units) tests/cli/search.t tests/cli/export.t \
	$(call lua_tests,trials lean trace aliases reductions)

objects = $(patsubst %.c,$(B)/%.o,$(1))
# What a unit test is linked with: everything but main() and the terminal.
LIB_OBJ := $(call objects,$(LUA_SRC) $(filter-out ui/main.c ui/repl.c,$(UI_SRC))) $(B)/std.o
ALL_OBJ := $(call objects,$(LUA_SRC) $(UI_SRC)) $(B)/std.o
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRC))
BENCH := $(patsubst tests/perf/%.c,$(B)/perf/%,$(BENCH_SRC))
FUZZ := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))

# ---- building -------------------------------------------------------------------

# $(call say,VERB): the short form of a command, unless V=1 shows the long one.
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $@)
# $(call keep,TEXT): rewrite the target only if its text changes, so that what depends on it is rebuilt
# when a flag changes or a source file is added or removed, and not otherwise.
keep = @mkdir -p $(@D); printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' >$@

build/millrace: $(B)/millrace FORCE
	@[ "$$(readlink $@)" = $(MODE)/millrace ] || ln -sfn $(MODE)/millrace $@

$(B)/.cflags: FORCE
	@[ '$(PKG_LIBS)' ] || { echo 'pkg-config finds no $(PKGS): try "make setup"'; exit 1; }
	$(call keep,$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LIBS))
$(B)/.files: FORCE
	$(call keep,$(CORE_SRC) $(STD) $(RUNTIME) $(TEMPLATES))

$(B)/%.o: %.c $(B)/.cflags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/std.o $(B)/runtime.o $(B)/templates.o: $(B)/%.o: $(B)/%.c $(B)/.cflags
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Files that are embedded in the program as text: the Lua side; the headers that kernels for the CPU are compiled
# with; templates of k:export, and the kernel that fills tensors.
$(B)/std.c: $(STD)
$(B)/runtime.c: $(RUNTIME)
$(B)/templates.c: $(TEMPLATES)
$(B)/std.c: private EMBED := -s .lua lua/lcore.h 'struct std_chunk' std_chunks
$(B)/runtime.c: private EMBED := host/object.h 'struct runtime_file' runtime_files
$(B)/templates.c: private EMBED := run/export_kit.h 'struct export_template' export_templates
$(B)/std.c $(B)/runtime.c $(B)/templates.c: src/embed.sh $(B)/.files
	$(call say,GEN)
	@sh $< $(EMBED) $(filter-out $< %/.files,$^) >$@

# Sanitizers do not understand its coroutines; and kernels on the CPU spend their time here.
$(B)/src/host/rt.o: private CFLAGS += -O3 -fno-sanitize=all -fno-strict-aliasing -fwrapv

$(B)/libcore.a: $(call objects,$(CORE_SRC)) $(B)/runtime.o $(B)/templates.o $(B)/.files
	$(call say,AR)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

link = $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(B)/millrace: $(ALL_OBJ) $(B)/libcore.a
	$(call say,LINK)
	$(Q)$(link)
$(B)/tests/%: $(B)/tests/unit/%.o $(LIB_OBJ) $(B)/libcore.a
	$(call say,LINK)
	$(Q)$(link)
# Stand-ins for the drivers that the program opens at run time.
$(B)/fake/%.so: tests/fake/%.c $(B)/.cflags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 $(WARN) -O1 -g -fPIC -shared -o $@ $<
FAKES := $(patsubst tests/%.c,$(B)/%.so,$(wildcard tests/fake/fake_*.c))
$(patsubst %,$(B)/tests/%,farm_transport gpu_board gpu_compile gpu_failures gpu_hip gpu_run race): $(FAKES)
# Tests that read a screen.
SCREENS := $(addprefix $(B)/,tests/term tests/explore tests/monkey tests/starve tests/watch tests/layer perf/bench_explore)
$(SCREENS): private LIBS += $(shell pkg-config --libs $(TEST_PKGS) 2>/dev/null)
$(B)/fake/fake_mpi.so: tests/fake/fake_mpi.h src/farm/mpi.h
$(B)/fake/fake_nvml_old.so: tests/fake/fake_nvml.c
$(B)/fake/fake_hiprtc.so: tests/fake/fake_nvrtc.c tests/fake/fake_source.h
$(B)/fake/fake_hip.so: tests/fake/fake_cuda.c tests/fake/hip_names.h
$(B)/fake/fake_cuda.so $(B)/fake/fake_hip.so $(B)/fake/fake_nvrtc.so: tests/fake/fake_source.h
$(B)/fake/fake_cuda.so $(B)/fake/fake_hip.so $(B)/fake/fake_nvml.so $(B)/fake/fake_nvml_old.so: tests/fake/fake_bus.h
$(B)/perf/%: $(B)/tests/perf/%.o $(LIB_OBJ) $(B)/libcore.a
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(link)
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(LIB_OBJ) $(B)/libcore.a
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(link) -fsanitize=fuzzer

-include $(patsubst %.o,%.d,$(ALL_OBJ) \
	$(call objects,$(CORE_SRC) $(UNIT_SRC) $(BENCH_SRC) $(FUZZ_SRC)))

# ---- setting up -----------------------------------------------------------------

setup:
	@.ci/setup '$(DEBS)' '$(TOOLS)' '$(PKGS) $(TEST_PKGS)'

# A second make, because setup may install what pkg-config is asked for above.
again = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j2)

demo: setup
	$(again) all
	@build/millrace examples/demo.lua build/demo

# ---- generated documents ---------------------------------------------------------

docs: all
	$(Q)MILLRACE_HOME='$(CURDIR)' $(B)/millrace lua/tools/docs.lua

# ---- testing --------------------------------------------------------------------

check: setup
	$(again) check-built
# How many random plans a test of tests/lua runs. A sanitizer finds nothing more in many.
MILLRACE_PLANS ?= $(if $(filter release,$(MODE)),375,40)
# Which of the operators of tests/operators are tried: every so many.
MILLRACE_OPERATORS ?= $(if $(filter release,$(MODE)),1,8)
# The address sanitizer does not use freed memory again for a while, to find who still does. Here that is 8 MB at most: tests fork often,
# and each fork copies the page tables of all memory.
# CC is empty, so that tests compile kernels for the CPU by tcc, ten times as fast as by $(CC), which make exports if it is given.
prove = @CC= ASAN_OPTIONS="quarantine_size_mb=8:$$ASAN_OPTIONS" \
	MILLRACE_PLANS=$(MILLRACE_PLANS) MILLRACE_OPERATORS=$(MILLRACE_OPERATORS) MILLRACE='$(CURDIR)/$(B)/millrace' MILLRACE_HOME='$(CURDIR)' \
	prove -j2 -e 'bash tests/lib.sh'
# The longest first, so that both cores are busy to the end.
longest_first = $(filter $(1),$(SLOW)) $(filter-out $(SLOW),$(1))
check-built: all $(UNIT) check-layers check-words
	$(prove) $(call longest_first,$(UNIT) $(TESTS))
check-quick:
	$(again) check-quick-built
check-quick-built: MILLRACE_PLANS := 10
check-quick-built: MILLRACE_OPERATORS := 16
check-quick-built: all $(filter-out $(SLOW),$(UNIT)) check-layers
	$(prove) $(filter-out $(SLOW),$(UNIT) $(TESTS))

check-headers:
	@for h in $(HEADERS); do \
		echo "#include \"$${h#src/}\"" | \
			$(CC) $(CPPFLAGS) $(CFLAGS) -fsyntax-only -x c - || exit 1; \
	done; echo '$(words $(HEADERS)) headers compile alone'

check-layers:
	@awk -f tests/check_layers.awk $(CORE_SRC) $(LUA_SRC) $(UI_SRC) $(HEADERS)

check-words:
	@perl tests/check_words.pl $(PATHS)

bench:
	$(again) MODE=release bench-built
bench-built: all $(BENCH)
	@for b in $(BENCH); do echo "== $$b"; $$b || exit 1; done
	@for b in $(sort $(wildcard tests/perf/bench_*.sh)); do \
		echo "== $$b"; MILLRACE='$(CURDIR)/$(B)/millrace' bash $$b || exit 1; done

# Each tests/fuzz/fuzz_NAME.c has LLVMFuzzerTestOneInput; its corpus is tests/fuzz/corpus/NAME.
FUZZ_SECONDS ?= 60
fuzz:
	@$(MAKE) --no-print-directory MODE=fuzz CC=clang setup
	$(again) MODE=fuzz CC=clang fuzz-built
fuzz-built: $(FUZZ)
	@for f in $(FUZZ); do \
		n=$${f##*/fuzz_}; found=$(B)/corpus/$$n kept=tests/fuzz/corpus/$$n; \
		mkdir -p $$found $$kept; \
		$$f -max_total_time=$(FUZZ_SECONDS) $$found $$kept || exit 1; \
	done

# ---- installing -----------------------------------------------------------------

# The program finds hw and examples in its own folder and its libraries in lib. (An RPATH and not a RUNPATH, because it also
# serves the libraries of our libraries, and those that are opened while the program runs: OPENED.)
OPENED := libCbcSolver.so.3
bundle: $(ALL_OBJ) $(B)/libcore.a
	@rm -rf build/bundle; mkdir -p build/bundle
	$(Q)$(CC) $(LDFLAGS) -s -Wl,-rpath,'$$ORIGIN/lib',--disable-new-dtags \
		-o build/bundle/millrace $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
	@.ci/bundle build/bundle/millrace build/bundle $(OPENED)
	@cp -R $(wildcard hw examples LICENSE README.md) build/bundle/
	@cd / && env -i '$(CURDIR)/build/bundle/millrace' -v && du -sh '$(CURDIR)/build/bundle'

# The manual page, and completion for bash and zsh, from the texts of help.
$(B)/page/man $(B)/page/bash $(B)/page/zsh: $(B)/page/%: docs/generate.lua $(B)/millrace
	$(call say,GEN)
	@mkdir -p $(@D)
	@MILLRACE_HOME='$(CURDIR)' $(B)/millrace docs/generate.lua $* >$@

DATA := $(DESTDIR)$(PREFIX)/share
SHARE := $(DATA)/millrace
install: all $(B)/page/man $(B)/page/bash $(B)/page/zsh
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(SHARE)'
	install -m 755 $(B)/millrace '$(DESTDIR)$(PREFIX)/bin/millrace'
	cp -R hw examples '$(SHARE)/'
	install -D -m 644 $(B)/page/man '$(DATA)/man/man1/millrace.1'
	install -D -m 644 $(B)/page/bash '$(DATA)/bash-completion/completions/millrace'
	install -D -m 644 $(B)/page/zsh '$(DATA)/zsh/site-functions/_millrace'
uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/millrace' '$(DATA)/man/man1/millrace.1' \
		'$(DATA)/bash-completion/completions/millrace' '$(DATA)/zsh/site-functions/_millrace'
	rm -rf '$(SHARE)'
clean:
	rm -rf build
FORCE:
