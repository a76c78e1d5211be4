# Prints the ten slowest test binaries and files, and as the last line how many tests passed and what the skipped ones need:
# `awk -f tests.awk target/tested/rust target/tested/python target/tested/skipped`.
#
# The first file is what `cargo test` printed. The second has a file of tests, its seconds and its passed tests a line, and the third
# `skipped: needs SOMETHING` for each test, part of a test, or step.

/^ *Running / {
    name = $NF
    gsub(/^\(.*\/|-[0-9a-f]+\)$/, "", name)
    if ($2 == "unittests") name = name " (unit tests)"
}

/^ *Doc-tests / { name = $2 " (documentation)" }

/^test result: / {
    passed += $4
    ignored += $8
    seconds[name] += $NF
}

FILENAME ~ /python$/ {
    seconds[$1] += $2
    passed += $3
}

/^skipped: needs / && FILENAME ~ /skipped$/ {
    sub(/^skipped: needs /, "")
    needs[$0]++
    skipped++
}

function slowest(of,    key, found) {
    found = ""
    for (key in of) if (found == "" || of[key] > of[found]) found = key
    return found
}

END {
    print "The ten slowest:"
    for (k = 0; k < 10 && (name = slowest(seconds)) != ""; k++) {
        printf "%8.1f s  %s\n", seconds[name], name
        delete seconds[name]
    }
    printf "%d tests passed, %d are for make test-slow, %d tests or parts of them were skipped", passed, ignored, skipped
    for (separator = ": "; (name = slowest(needs)) != ""; separator = ", ") {
        printf "%s%d need %s", separator, needs[name], name
        delete needs[name]
    }
    print "."
}
