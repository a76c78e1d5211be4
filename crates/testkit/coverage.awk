# Sums the line coverage of modules from an lcov file: `awk -f coverage.awk target/coverage.lcov`.
#
# The variable `modules` has the names of folders in src/ or crates/, separated by `|`. Unit tests are not counted: files that end in `tests.rs`, and
# the lines of a file from `mod tests {` on. With `lines` set, the lines that are not covered are printed. With `least` set, a lower
# percentage of all modules together is an error.
#
# `awk -v branches='frame|wire' -f coverage.awk branches.tsv target/coverage.lcov` also prints the lines of these modules with a condition that was
# never true or never false. The first file has those that are accepted, below their reasons: the path, a tab, and the line's text, or `*` for all
# lines. Any other such line is an error.

function first_test_line(path,    line, number, found) {
    while ((getline line < path) > 0) {
        number++
        text[number] = line
        if (!found && line ~ /^(pub )?mod tests \{/) found = number
    }
    close(path)
    return found ? found : number + 1
}

# A path of the first file, or one of its reasons.
/\t/ || /^# / {
    accepted[$0]
    next
}

/^SF:/ {
    path = substr($0, 4)
    counted = match(path, path ~ /\/crates\// ? "/crates/(" modules ")/src/" : "/src/(" modules ")/") && path !~ /tests\.rs$/
    if (counted) {
        short = substr(path, RSTART + 1)
        split(short, parts, "/")
        module = parts[2]
        has_branches = match("|" branches "|", "\\|" module "\\|")
        tests = first_test_line(path)
    }
}

/^DA:/ && counted {
    split(substr($0, 4), at, ",")
    if (at[1] < tests) {
        all[module]++
        if (at[2] > 0) covered[module]++
        else if (lines) print short ":" at[1] ":" text[at[1]]
    }
}

/^BRDA:/ && counted && has_branches {
    split(substr($0, 6), at, ",")
    if (at[1] < tests) {
        line = text[at[1]]
        gsub(/^ +|\t/, "", line)
        conditions++
        if (at[4] > 0) met++
        else missed[short "\t" line] = at[1]
    }
}

END {
    count = split(modules, names, "|")
    for (k = 1; k <= count; k++) {
        name = names[k]
        if (!all[name]) { print "no lines of " name; exit 1 }
        printf "%-10s %6d of %6d lines, %.2f %%\n", name, covered[name], all[name], 100 * covered[name] / all[name]
        sum += all[name]
        hit += covered[name]
    }
    printf "%-10s %6d of %6d lines, %.2f %%\n", "together", hit, sum, 100 * hit / sum
    if (100 * hit < least * sum) { print "expected at least " least " %"; exit 1 }
    if (!branches) exit
    for (key in missed) {
        left++
        split(key, row, "\t")
        if (key in accepted || (row[1] "\t*") in accepted) continue
        print "never true, or never false: " key " (line " missed[key] ")"
        wrong = 1
    }
    for (key in accepted) if (key ~ /\t[^*]/ && !(key in missed)) print "covered, or changed: " key
    printf "%d of %d outcomes of conditions, the others in %d lines\n", met, conditions, left
    exit wrong
}
