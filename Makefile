# SPDX-License-Identifier: Apache-2.0
# The front door; CMake does the work. See README.md.
#
#   make            build/mortise, build/libmortise.so, build/libmortise.a;
#                   OPTIONS="-DMORTISE_REDIS=OFF ..." (doc/packaging.md) and PREFIX stay until changed
#   make run        install what building needs, build, run the demonstration
#   make test       install what testing needs, build, run everything
#   make test-long  MINUTES=60: what takes too long for make test, within a budget (tools/run-long);
#                   PARTS="chaos sim" SEED=x
#   make compat     OLD=b2a6b31: clients of that commit and of this one at one store
#   make install    PREFIX=/usr/local DESTDIR=; make uninstall
#   make check      installs nothing: builds, and tests what needs no server; a packager's test
#   make dist       build/mortise-VERSION.tar.gz from the newest commit; make dist-test builds that
#   make deb        Debian packages in build/deb; make deb-test installs, uses and removes them
#   make rpm-test   RPM packages in build/rpm, as far as Debian can test them; make musl-test builds
#                   by the APKBUILD with musl-gcc
#   make abi        OLD=commit: whether programs built with it run with this library
#   make html       build/html: the manual and the documents, with an index
#   make sim        SEEDS=n runs, or the one SEED=x; STORE=zookeeper, redis, quorum, ...
#   make sched      SEEDS=n orders of threads' steps, or the one SEED=x
#   make interop    with Curator and kazoo on one path, and with redis-py and redlock on one key,
#                   longer than make test does
#   make chaos      MINUTES=10 STORE=zookeeper|etcd|nats: faults of three servers under competing clients
#   make stops      ROUNDS=20: the command, its store and its server stand still at any moment
#   make mutants    which suite finds each fault of test/mutants, and how soon
#   make model      every order of what a few clients can do; the rules' models in Spin
#   make tidy format asan tsan coverage clean
#   make bench      STORE=sqlite|zk|zk3|redis|postgres|mariadb|etcd|nats|agent|python: figures beside
#                   the peers', in build/bench*.json and drawn in build/bench*.svg
#   make plots      draw bench/figures in doc/plots
#   make pictures   record make run, mortise top and the page of mortise serve for README

DESTDIR ?=
BUILD ?= build
RELEASED = 0e491c9# the last state before 0.2.0 that programs were built with
GENERATOR := $(if $(shell command -v ninja),-G Ninja,)
CONFIGURE = cmake -S . -B $(BUILD) $(if $(wildcard $(BUILD)/CMakeCache.txt),,$(GENERATOR)) \
	$(if $(PREFIX),-DCMAKE_INSTALL_PREFIX=$(PREFIX)) $(OPTIONS) >/dev/null
JOBS := $(shell nproc)
COMPILE = cmake --build $(BUILD) --parallel $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all run check test test-long compat abi install uninstall dist dist-test html deb deb-test rpm-test musl-test sim sched bench model mutants interop chaos stops tidy format asan tsan coverage clean

all:
	@$(CONFIGURE)
	@$(COMPILE) --target mortise mortise_shared mortise_static

run:
	@tools/install-deps build
	@$(MAKE) --no-print-directory all
	@$(BUILD)/mortise demo

test:
	@tools/install-deps build test
	@tools/run-tests

test-long:
	@tools/install-deps build test languages package
	@tools/run-long --minutes $(or $(MINUTES),60) --old $(or $(OLD),b2a6b31) $(if $(SEED),--seed $(SEED)) $(PARTS)

compat: all
	@tools/install-deps test
	@$(COMPILE) --target compat_contender
	@test/compat/run $(BUILD) $(or $(OLD),b2a6b31)

check:
	@$(CONFIGURE)
	@$(COMPILE)
	@tools/check-here $(BUILD)

install: all
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)

uninstall:
	@DESTDIR=$(DESTDIR) cmake -D MANIFEST=$(BUILD)/install_manifest.txt -P cmake/uninstall.cmake

dist:
	@tools/dist $(BUILD)

dist-test: dist
	@tools/check-dist $(BUILD)

deb:
	@tools/install-deps build package
	@tools/build-deb $(BUILD)

deb-test: deb
	@tools/check-deb $(BUILD)

rpm-test:
	@tools/install-deps build package
	@tools/check-rpm $(BUILD)

musl-test:
	@tools/install-deps build test package
	@tools/check-musl $(BUILD)

abi:
	@tools/install-deps build package
	@tools/check-abi $(BUILD) $(or $(OLD),$(RELEASED))

html:
	@tools/install-deps html
	@tools/manual html $(BUILD)/html
	@echo $(BUILD)/html/index.html

sim:
	@$(CONFIGURE)
	@$(COMPILE) --target sim
	@$(BUILD)/sim $(if $(STORE),--store $(STORE)) $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),20000))

mutants:
	@tools/install-deps build test
	@tools/run-tests release -s _defects

sched:
	@$(CONFIGURE)
	@$(COMPILE) --target sched
	@$(BUILD)/sched $(if $(SEED),--seed $(SEED) --trace,--seeds $(or $(SEEDS),100000))

chaos:
	@tools/install-deps build test
	@$(CONFIGURE)
	@$(COMPILE) --target chaos
	@test/chaos/run $(BUILD)/chaos $(if $(STORE),--store $(STORE)) --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

stops:
	@tools/install-deps build test
	@$(CONFIGURE)
	@$(COMPILE) --target mortise
	@MORTISE=$(abspath $(BUILD)/mortise) MORTISE_STOP_ROUNDS=$(or $(ROUNDS),20) \
		bats --filter "at any moment" test/cli/stopped*.bats test/cli/zookeeper.bats

bench:
	@$(CONFIGURE)
	@$(COMPILE) --target bench
ifeq ($(filter-out sqlite,$(STORE)),)
	@bench/run $(BUILD)
else ifeq ($(STORE),agent)
	@bench/agent/run $(BUILD)
else ifeq ($(STORE),python)
	@tools/install-deps test
	@bench/python/run $(BUILD)
else ifeq ($(STORE),redis)
	@tools/install-deps test
	@bench/redis/run $(BUILD)
else ifeq ($(STORE),etcd)
	@tools/install-deps test
	@bench/etcd/run $(BUILD)
else ifeq ($(STORE),nats)
	@tools/install-deps test
	@bench/nats/run $(BUILD)
else ifneq ($(filter postgres mariadb,$(STORE)),)
	@tools/install-deps test
	@bench/sql/run $(STORE) $(BUILD)
else
	@tools/install-deps bench
	@bench/zookeeper/run $(STORE) $(BUILD)
endif

.PHONY: plots pictures
plots:
	@bench/plot bench/figures/*.json --into doc/plots

pictures:
	@tools/install-deps build test
	@tools/pictures --build $(BUILD)

model:
	@tools/install-deps test
	@$(CONFIGURE)
	@$(COMPILE) --target explore
	@$(BUILD)/explore --full
	@$(BUILD)/explore --compare "mutex, each fault"
	@$(BUILD)/explore --compare "read/write, each fault"
	@$(BUILD)/explore --compare "mutex, 3 clients, any fault"
	@test/model/run --full

interop:
	@tools/install-deps test
	@$(CONFIGURE)
	@$(COMPILE) --target interop_holder interop_claimer
	@MORTISE_CLAIM_ROUNDS=$(or $(TURNS),20000) test/interop/run-redis $(BUILD)/interop_claimer
	@MORTISE_INTEROP_TURNS=$(or $(TURNS),20000) MORTISE_INTEROP_KILLS=10 \
		test/interop/run $(BUILD)/interop_holder

tidy:
	@tools/tidy

format:
	@tools/tidy --format

asan tsan coverage:
	@tools/run-tests $@

clean:
	rm -rf $(BUILD)
