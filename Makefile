# make run   build, fetch the default model, answer one prompt, serve
# make test  build everything and run the tests (make test-all adds the long ones)
# make bench build the benchmarks of bench/ too
# make deb   a Debian package in build/release
# make build the binary at build/release/bin/kvasir

MODEL  ?= smollm2:135m
PROMPT ?= Name three primary colours.
PORT   ?= 8080
JOBS   ?= $(shell nproc)
BUILD  := build/release
KVASIR := $(BUILD)/bin/kvasir
NO_SKIPS := --output-junit tests.xml --test-output-size-passed 1000000

.PHONY: all configure build tests run test test-all bench deb fuzz format clean

all: build

configure:
	@scripts/bootstrap.sh
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release $(if $(CI),-DKVASIR_WERROR=ON)

build: configure
	@cmake --build $(BUILD) -j $(JOBS) --target kvasir

tests: configure
	@cmake --build $(BUILD) -j $(JOBS)

run: build
	@$(KVASIR) pull $(MODEL)
	@$(KVASIR) run $(MODEL) --temperature 0 --max-tokens 48 "$(PROMPT)"
	@$(KVASIR) serve $(MODEL) --port $(PORT)

test: tests
	@$(KVASIR) pull $(MODEL) || echo "test: no model, the tests that need one will say so"
	@$(KVASIR) pull all-minilm:22m || echo "test: no encoder, the test that needs one will say so"
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS) -LE slow $(if $(CI),$(NO_SKIPS))
	@$(if $(CI),python3 scripts/check_skips.py $(BUILD)/tests.xml)

test-all: tests
	@$(KVASIR) pull $(MODEL) && $(KVASIR) pull gemma3:270m
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

bench: configure
	@cmake --preset release -DKVASIR_BENCH=ON >/dev/null && cmake --build $(BUILD) -j $(JOBS)

deb: configure
	@{ command -v dpkg-shlibdeps && command -v file; } >/dev/null || { echo "deb: needs dpkg-dev and file" >&2; exit 5; }
	@cmake --build $(BUILD) -j $(JOBS) --target kvasir kvasir_system_files
	@cd $(BUILD) && cpack -G DEB

fuzz:
	@cmake --preset fuzz >/dev/null && cmake --build build/fuzz --target fuzzers -j $(JOBS)
	@tests/fuzz/run_all.sh build/fuzz/bin

format:
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	@rm -rf build
