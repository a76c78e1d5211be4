#!/bin/bash -eu
# Builds the fuzz targets of $SRC/tfseek into $OUT, each with its seeds. OSS-Fuzz runs it, and `make oss-fuzz`.

cd "$SRC/tfseek"
cargo fuzz build -O --debug-assertions

for file in fuzz/fuzz_targets/*.rs; do
	target=$(basename "$file" .rs)
	cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
	zip -qj "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"/*
done
