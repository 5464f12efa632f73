# Makefile - builds, tests and installs Millrace. One file for the whole tree.
#
#   make                 build/millrace
#   make docs            write docs/lessons.md and docs/gallery.md anew
#   make demo            install what is missing (Debian), build, run the main job
#   make check           install what is missing, build, run every test
#   make check-headers   every header compiles alone
#   make check-layers    no #include points upward, third-party headers stay home
#   make check-words     no word of tests/words.txt is used; PATHS=... looks into these alone
#   make bench           build and run tests/perf in release mode
#   make fuzz            build the fuzz targets with clang, run each FUZZ_SECONDS
#   make bundle          build/bundle: a folder that runs without our packages
#   make install         PREFIX=/usr/local DESTDIR=: program, devices, examples, manual page,
#                        completion for bash and zsh; likewise uninstall
#   make setup           only install what is missing; make clean removes build/
#
#   MODE=release|debug|asan|tsan   a tree of objects each, build/$(MODE)
#   CC=gcc|clang   DEV=1 or CI=true: warnings are errors   V=1: show the commands
#   TESTS="tests/cli/repl.t ..."   what check runs beside the unit tests

MAKEFLAGS += -rR
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all docs setup check check-built check-headers check-layers check-words bench bench-built fuzz \
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

# Found by pkg-config, and the Debian packages that bring them and the rest.
PKGS := lua5.4 libedit ncursesw cairo sqlite3
# Only for tests: a terminal that shows nothing to anybody.
TEST_PKGS := vterm
CLANG := $(findstring clang,$(CC))
DEBS = $(if $(CLANG),clang,gcc) libc6-dev make pkg-config liblua5.4-dev libedit-dev libncurses-dev libcairo2-dev \
	libsqlite3-dev libvterm-dev perl python3 tmux zsh coinor-libcbc-dev \
	$(and $(CLANG),$(findstring -fsan,$(FLAGS_$(MODE))),libclang-rt-dev)
# The commands that stand for them where there is no Debian to ask.
TOOLS := $(CC) $(AR) pkg-config prove tmux
# ncurses wants to choose which functions of POSIX there are.
PKG_CFLAGS := $(filter-out -D_XOPEN_SOURCE=% -D_DEFAULT_SOURCE,\
	$(shell pkg-config --cflags $(PKGS) 2>/dev/null))
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)

FLAGS_release := -O2 -g
FLAGS_debug := -Og -g3
FLAGS_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
FLAGS_tsan := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
FLAGS_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
ifeq ($(FLAGS_$(MODE)),)
$(error MODE is release, debug, asan or tsan, not '$(MODE)')
endif

# Overlong strings: text that goes into generated code, which no old compiler sees.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wwrite-strings -Wpointer-arith \
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wformat=2 -Wswitch-enum \
	-Wno-overlength-strings
# Not with a sanitizer, whose code makes gcc see things.
ifneq ($(and $(filter true 1,$(CI) $(DEV)),$(filter release debug,$(MODE))),)
WARN += -Werror
endif
CPPFLAGS := -Isrc -Iui -I. -Itests -D_DEFAULT_SOURCE -D_XOPEN_SOURCE=700 $(PKG_CFLAGS)
# No contraction: the same program gives the same numbers on every machine.
CFLAGS := -std=c11 -ffp-contract=off $(WARN) $(FLAGS_$(MODE)) $(EXTRA_CFLAGS)
LDFLAGS := $(FLAGS_$(MODE)) $(EXTRA_LDFLAGS)
LIBS := $(PKG_LIBS) -lpthread -ldl -lm

CORE_SRC := $(sort $(wildcard src/*/*.c src/lower/*/*.c src/search/*/*.c))
LUA_SRC := $(sort $(wildcard lua/*.c))
UI_SRC := $(sort $(wildcard ui/*.c ui/*/*.c))
STD := $(sort $(wildcard lua/std/*.lua))
RUNTIME := src/host/rt_abi.h src/host/rt_number.h src/host/millrace_host.h
TEMPLATES := $(sort $(wildcard src/run/export/*.* src/host/rt*.[ch])) src/host/millrace_host.h src/tile/fill.h
UNIT_SRC := $(sort $(wildcard tests/unit/*.c))
BENCH_SRC := $(sort $(wildcard tests/perf/bench_*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
HEADERS := $(sort $(wildcard src/*/*.h src/lower/*/*.h src/search/*/*.h lua/*.h ui/*.h ui/*/*.h))
TESTS ?= $(sort $(wildcard tests/lua/*.t.lua tests/*/*.t))

objects = $(patsubst %.c,$(B)/%.o,$(1))
# All that a test may call: everything but main() and the terminal.
LIB_OBJ := $(call objects,$(LUA_SRC) $(filter-out ui/main.c ui/repl.c,$(UI_SRC))) $(B)/std.o
ALL_OBJ := $(call objects,$(LUA_SRC) $(UI_SRC)) $(B)/std.o
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRC))
BENCH := $(patsubst tests/perf/%.c,$(B)/perf/%,$(BENCH_SRC))
FUZZ := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))

# ---- building -------------------------------------------------------------------

# $(call say,VERB): the short form of a command, unless V=1 shows the long one.
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $@)
# $(call keep,TEXT): rewrite the target only if its text changes. What depends on it
# is rebuilt when a flag changes or a source file comes or goes, and not otherwise.
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

# The Lua side travels inside the program: std_chunks[] of lua/lcore.h.
$(B)/std.c: $(STD) $(B)/.files
	$(call say,GEN)
	@{ echo '/* Generated from lua/std. */'; echo '#include "lua/lcore.h"'; \
	for f in $(STD); do \
		echo "static const unsigned char text_$$(basename $$f .lua)[] = {"; \
		od -An -v -tu1 $$f | sed 's/[0-9][0-9]*/&,/g'; echo '0 };'; \
	done; \
	echo 'const struct std_chunk std_chunks[] = {'; \
	for f in $(STD); do n=$$(basename $$f .lua); \
		echo "{ \"$$n\", (const char *)text_$$n, sizeof(text_$$n) - 1 },"; \
	done; \
	echo '{ 0 } };'; } >$@

# Its coroutines would confuse a sanitizer; and all that a kernel does passes through it.
$(B)/src/host/rt.o: private CFLAGS += -O2 -fno-sanitize=all -fno-strict-aliasing -fwrapv

# So does what kernels for the CPU are compiled with: runtime_files[] of host/runtime.h.
$(B)/runtime.c: $(RUNTIME) $(B)/.files
	$(call say,GEN)
	@{ echo '/* Generated from src/host. */'; echo '#include "host/runtime.h"'; \
	for f in $(RUNTIME); do \
		echo "static const unsigned char text_$$(basename $$f .h)[] = {"; \
		od -An -v -tu1 $$f | sed 's/[0-9][0-9]*/&,/g'; echo '0 };'; \
	done; \
	echo 'const struct runtime_file runtime_files[] = {'; \
	for f in $(RUNTIME); do n=$$(basename $$f .h); \
		echo "{ \"$$n.h\", (const char *)text_$$n, sizeof(text_$$n) - 1 },"; \
	done; \
	echo '{ 0 } };'; } >$@

# And the fixed parts of what k:export writes, and of the kernel that fills tensors: export_templates[]
# of run/export_kit.h.
$(B)/templates.c: $(TEMPLATES) $(B)/.files
	$(call say,GEN)
	@{ echo '/* Generated from src/run/export and src/host. */'; echo '#include "run/export_kit.h"'; \
	for f in $(TEMPLATES); do \
		echo "static const unsigned char text_$$(basename $$f | tr . _)[] = {"; \
		od -An -v -tu1 $$f | sed 's/[0-9][0-9]*/&,/g'; echo '0 };'; \
	done; \
	echo 'const struct export_template export_templates[] = {'; \
	for f in $(TEMPLATES); do n=$$(basename $$f); t=text_$$(echo $$n | tr . _); \
		echo "{ \"$$n\", (const char *)$$t, sizeof($$t) - 1 },"; \
	done; \
	echo '{ 0 } };'; } >$@

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
# Drivers that do as they are told, for the tests of what opens them at run time.
$(B)/fake/%.so: tests/fake/%.c $(B)/.cflags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 $(WARN) -O1 -g -fPIC -shared -o $@ $<
FAKES := $(patsubst tests/%.c,$(B)/%.so,$(wildcard tests/fake/fake_*.c))
$(B)/tests/gpu $(B)/tests/race: $(FAKES)
# Those that look at a screen.
SCREENS := $(addprefix $(B)/,tests/term tests/explore tests/monkey tests/starve tests/watch perf/bench_explore)
$(SCREENS): private LIBS += $(shell pkg-config --libs $(TEST_PKGS) 2>/dev/null)
$(B)/fake/fake_nvml_old.so: tests/fake/fake_nvml.c
$(B)/fake/fake_cuda.so $(B)/fake/fake_nvrtc.so: tests/fake/fake_source.h
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

# On Debian: install what is not there, and touch nothing if all is. Elsewhere: say
# what is missing and stop.
setup:
	@lack=; if command -v apt-get >/dev/null; then \
		for p in $(DEBS); do \
			dpkg -s $$p 2>/dev/null | grep -q '^Status: .* installed$$' || \
				lack="$$lack $$p"; \
		done; \
		[ "$$lack" ] || exit 0; \
		echo "installing:$$lack"; \
		[ "$$(id -u)" = 0 ] && sudo= || sudo=sudo; \
		apt="$$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y"; \
		inst="$$apt --no-install-recommends install"; \
		$$inst $$lack || { $$apt update && $$inst $$lack; }; \
	else \
		for t in $(TOOLS); do command -v $$t >/dev/null || lack="$$lack $$t"; done; \
		for p in $(PKGS) $(TEST_PKGS); do \
			pkg-config --exists $$p 2>/dev/null || lack="$$lack $$p"; \
		done; \
		[ "$$lack" ] || exit 0; \
		echo "please install (names of programs and of pkg-config):$$lack"; exit 1; \
	fi

# A second make, because what setup installs changes what pkg-config says above.
again = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j2)

demo: setup
	$(again) all
	@build/millrace examples/demo.lua build/demo

# ---- documents that are made ------------------------------------------------------

docs: all
	$(Q)MILLRACE_HOME='$(CURDIR)' $(B)/millrace lua/tools/docs.lua

# ---- testing --------------------------------------------------------------------

check: setup
	$(again) check-built
# How many random plans a test of tests/lua runs; a sanitizer sees nothing more in many.
MILLRACE_PLANS ?= $(if $(filter release,$(MODE)),500,40)
check-built: all $(UNIT) check-layers
	@MILLRACE_PLANS=$(MILLRACE_PLANS) MILLRACE='$(CURDIR)/$(B)/millrace' MILLRACE_HOME='$(CURDIR)' \
		prove -j2 -e 'bash tests/lib.sh' $(UNIT) $(TESTS)

check-headers:
	@for h in $(HEADERS); do \
		echo "#include \"$${h#src/}\"" | \
			$(CC) $(CPPFLAGS) $(CFLAGS) -fsyntax-only -x c - || exit 1; \
	done; echo '$(words $(HEADERS)) headers compile alone'

# What each folder may include beside itself; and where a library's header may stand.
define LAYERS
BEGIN {
	low["base"] = ""
	low["tile"] = "base"
	low["reference"] = low["device"] = "base tile"
	low["target"] = "base tile device"
	low["graph"] = "base tile device target"
	low["plan"] = low["graph"] " graph"
	low["role"] = "base tile target"
	low["verify"] = low["plan"] " plan role"
	low["lower"] = low["verify"] " verify"
	low["sim"] = low["lower"] " lower"
	low["search"] = low["draw"] = low["store"] = low["sim"] " sim"
	low["emit"] = low["role"] " role"
	low["gpu"] = low["host"] = low["lower"] " lower emit"
	low["run"] = low["gpu"] " gpu host reference sim"
	low["lua"] = low["run"] " run search draw store"
	low["ui"] = low["lua"] " lua explore"
	home["n?curses\\.h"] = "^ui/explore/term_curses\\.c"
	home["histedit\\.h"] = "^ui/repl\\.c"
	home["cairo.*\\.h"] = "^src/draw/cairo\\.c"
	home["sqlite3\\.h"] = "^src/store/"
	home["z3\\.h"] = "^src/search/"
	home["(lua|lauxlib|lualib)\\.h"] = "^(lua|ui)/"
	home["dlfcn\\.h"] = "^src/(gpu|host)/|^src/draw/chafa\\.c|^src/search/loop/cbc\\.c"
}
function bad(why) { print FILENAME ":" FNR ": " why; failed = 1 }
FNR == 1 {
	split(FILENAME, part, "/"); me = part[1] == "src" ? part[2] : part[1]
	if (!(me in low)) bad("folder " me " has no place in the layers")
}
/^[ \t]*#[ \t]*include/ { split($$0, q, /[<">]/) }
/^[ \t]*#[ \t]*include[ \t]*"[^"]*\// {
	split(q[2], dir, "/")
	if (dir[1] != me && !index(" " low[me] " ", " " dir[1] " "))
		bad(me " may not include " q[2])
}
/^[ \t]*#[ \t]*include[ \t]*"[^\/]*"/ && FILENAME ~ /^src/ {
	bad("an include of the core names its folder")
}
/^[ \t]*#[ \t]*include/ {
	for (h in home)
		if (q[2] ~ "^(.*/)?" h "$$" && FILENAME !~ home[h]) bad(q[2] " belongs in " home[h])
}
FILENAME ~ /^src/ && /(^|[^A-Za-z0-9_])(printf|puts|putchar|exit)\(|[(,] *stdout *[,)]/ {
	bad("the core neither prints nor exits")
}
END { if (!failed) print "layers hold"; exit failed }
endef
export LAYERS
# The words of docs/glossary.md, and not those that it replaced.
check-words:
	@perl tests/check_words.pl $(PATHS)

check-layers:
	@awk "$$LAYERS" $(CORE_SRC) $(LUA_SRC) $(UI_SRC) $(HEADERS)

bench:
	$(again) MODE=release bench-built
bench-built: all $(BENCH)
	@for b in $(BENCH); do echo "== $$b"; $$b || exit 1; done
	@for b in $(sort $(wildcard tests/perf/bench_*.sh)); do \
		echo "== $$b"; MILLRACE='$(CURDIR)/$(B)/millrace' bash $$b || exit 1; done

# Each tests/fuzz/fuzz_NAME.c has LLVMFuzzerTestOneInput and its corpus beside it.
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

# ---- taking it elsewhere --------------------------------------------------------

# The program finds hw and examples beside itself, its libraries in lib. What is not
# bundled is glibc, which must be at least as new as ours. (An old-style RPATH,
# because only that one also serves the libraries of our libraries, and those that are
# opened while it runs: OPENED, of which it takes what is here.)
OPENED := libCbcSolver.so.3
LIBS_OF_LDD := awk '$$3 ~ /^\// && $$1 !~ /^lib(c|m|dl|pthread|rt)\.so/ { print $$3 }'
bundle: $(ALL_OBJ) $(B)/libcore.a
	@rm -rf build/bundle; mkdir -p build/bundle/lib
	$(Q)$(CC) $(LDFLAGS) -s -Wl,-rpath,'$$ORIGIN/lib',--disable-new-dtags \
		-o build/bundle/millrace $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
	@ldd build/bundle/millrace | $(LIBS_OF_LDD) | \
		xargs -r cp -L -t build/bundle/lib
	@for l in $(OPENED); do \
		f=$$(/sbin/ldconfig -p 2>/dev/null | awk -v l=$$l '$$1 == l { print $$NF; exit }'); \
		[ "$$f" ] || { echo "not bundled, for it is not here: $$l"; continue; }; \
		{ echo "$$f"; ldd "$$f" | $(LIBS_OF_LDD); } | xargs cp -L -t build/bundle/lib; \
	done
	@cp -R $(wildcard hw examples LICENSE README.md) build/bundle/
	@cd / && env -i '$(CURDIR)/build/bundle/millrace' -v && du -sh '$(CURDIR)/build/bundle'

# The manual page, and completion for other shells, from the texts of help.
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
