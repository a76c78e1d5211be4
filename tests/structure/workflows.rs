//! Workflows run targets of `make` and nothing else, and every check of the `Makefile` is in one of them.

use crate::source::root;
use std::collections::BTreeSet;
use std::fs;

/// Targets that measure, show or make something for a reader, and parts of `make test`.
const BY_HAND: [&str; 8] =
    ["bench", "bench-cold", "bench-peers", "demo", "gallery", "public-api", "python", "sdist-test"];

#[test]
fn each_step_is_one_target_and_each_check_is_in_a_workflow() {
    let Ok(workflows) = fs::read_dir(root().join(".github/workflows")) else {
        return tfseek_testkit::skipped(".github");
    };
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let phony = makefile.split_once("\n.PHONY:").unwrap().1.replace("\\\n", " ");
    let targets: BTreeSet<&str> = phony.lines().next().unwrap().split_whitespace().collect();
    let texts: Vec<String> =
        workflows.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let mut run = BTreeSet::new();
    for text in &texts {
        let steps = text.lines().filter_map(|line| line.trim_start().strip_prefix("run: "));
        let named = steps.map(|command| command.strip_prefix("make ").unwrap_or(command));
        run.extend(named.filter(|command| *command != "${{ matrix.target }}"));
        // The lists that the callers of check.yml give.
        let lists = text.split("targets: >-\n").skip(1);
        run.extend(lists.flat_map(|list| list.split(']').next().unwrap().split('"').skip(1).step_by(2)));
    }
    let unknown: Vec<_> = run.difference(&targets).collect();
    assert!(unknown.is_empty(), "no targets: {unknown:?}");
    let missing: Vec<_> = targets.difference(&run).copied().collect();
    assert_eq!(missing, BY_HAND, "in no workflow");
}

#[test]
fn instructions_are_counted_with_the_compiler_of_the_record() {
    let Ok(workflow) = fs::read_to_string(root().join(".github/workflows/check.yml")) else {
        return tfseek_testkit::skipped(".github");
    };
    let record = fs::read_to_string(root().join("benches/gate/counts.tsv")).unwrap();
    let release = record.strip_prefix("# rustc ").and_then(|rest| rest.split(',').next()).unwrap();
    assert!(workflow.contains(&format!("'bench-gate' && '{release}'")), "{release}");
}
