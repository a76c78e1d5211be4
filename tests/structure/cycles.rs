//! Import cycles between the files of a folder: there are none. Shared code is in a third file below both.
//!
//! The nodes of a folder are its files and its subfolders with all their files. A file names another by a
//! path from `crate`, `super` or `self`, and in `mod.rs` (`lib.rs`, `main.rs`) by the module's name. Names
//! that `mod.rs` imports or re-exports count as the files they come from. A type that `mod.rs` defines
//! belongs to `mod.rs`.

use crate::source::{CRATES, code, cycles, files, paths, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Folders with a cycle through `mod.rs`: it defines items that its files use, and uses those files. No other
/// folder may have one.
const OVER_MOD: &[&str] = &[
    "crates/cli/src/output",
    "crates/testkit/src/shaped",
    "crates/testkit/src/twin_parse",
    "src/schema/json",
];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the folder of a file, e.g. `["batch"]` for `batch/mod.rs` and `batch/keys.rs`, and the file's name
/// in it.
fn folder_of(file: &str) -> (Vec<String>, String) {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let name = parts.pop().unwrap();
    (parts, if ["lib", "main"].contains(&name.as_str()) { "mod".to_owned() } else { name })
}

/// Returns the names that a `mod.rs` imports from its own modules, with their modules.
fn imports(code: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in code.split(';') {
        let Some((_, path)) = item.split_once("use ") else { continue };
        let path = path.trim_start().trim_start_matches("self::");
        for module in modules.iter().filter(|module| path.starts_with(&format!("{module}::"))) {
            for names in paths(path, module) {
                if let Some(name) = names.last() {
                    found.insert(name.clone(), module.clone());
                }
            }
        }
    }
    found
}

/// Returns the code of a `mod.rs` without re-exports.
fn without_exports(code: &str) -> String {
    let is_export = |item: &&str| {
        let line = item.rfind("use ").and_then(|at| item[..at].rsplit('\n').next());
        line.is_some_and(|line| line.trim_start().starts_with("pub"))
    };
    code.split(';').filter(|item| !is_export(item)).collect::<Vec<_>>().join(";")
}

/// Returns the import graph of each folder of a crate.
fn graphs(sources: &[(String, String)]) -> BTreeMap<String, Graph> {
    let sources: Vec<_> = sources.iter().map(|(file, source)| (folder_of(file), code(source))).collect();
    let mut modules: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    for ((folder, name), _) in &sources {
        for depth in 0..folder.len() {
            modules.entry(folder[..depth].to_vec()).or_default().insert(folder[depth].clone());
        }
        if name != "mod" {
            modules.entry(folder.clone()).or_default().insert(name.clone());
        }
    }
    let mut taken = BTreeMap::new();
    for ((folder, name), code) in &sources {
        if name == "mod" {
            let inner = modules.get(folder).cloned().unwrap_or_default();
            taken.entry(folder.clone()).or_insert_with(BTreeMap::new).extend(imports(code, &inner));
        }
    }

    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    for ((folder, name), code) in &sources {
        let mut module = folder.clone();
        if name != "mod" {
            module.push(name.clone());
        }
        let code = if name == "mod" { without_exports(code) } else { code.clone() };
        for path in absolute(&code, &module, modules.get(folder).filter(|_| name == "mod")) {
            // For each folder above the file, check whether the path leads to a sibling there.
            for depth in 0..=folder.len() {
                let here = &folder[..depth];
                if path.len() < depth || path[..depth] != *here {
                    break;
                }
                let own = folder.get(depth).unwrap_or(name);
                let Some(next) = path.get(depth) else { continue };
                let other = if modules[here].contains(next) {
                    next.clone()
                } else {
                    match taken.get(here).and_then(|taken| taken.get(next)) {
                        Some(module) => module.clone(),
                        None => "mod".to_owned(),
                    }
                };
                let named = graphs.entry(here.join("/")).or_default().entry(own.clone()).or_default();
                if *own != other {
                    named.insert(other);
                }
            }
        }
    }
    graphs
}

/// Returns the paths in a file, from the crate's root. `inner` are the modules of a `mod.rs`, which it may
/// name without `self::`.
fn absolute(code: &str, module: &[String], inner: Option<&BTreeSet<String>>) -> Vec<Vec<String>> {
    let mut all = paths(code, "crate");
    for up in 1..=module.len() {
        let head = vec!["super"; up].join("::");
        for path in paths(code, &head).into_iter().filter(|path| path[0] != "super") {
            all.push([&module[..module.len() - up], &path].concat());
        }
    }
    for path in paths(code, "self") {
        all.push([module, &path].concat());
    }
    for name in inner.into_iter().flatten() {
        for path in paths(code, name) {
            all.push([module, std::slice::from_ref(name), &path].concat());
        }
    }
    all
}

/// Returns the import graph of the Python files of a folder, without imports under `TYPE_CHECKING`.
fn python(folder: &str) -> Graph {
    let sources = files(&root().join(folder), ".py");
    let names: BTreeSet<String> =
        sources.iter().map(|(file, _)| file.trim_end_matches(".py").to_owned()).collect();
    // Without a leading dot, a package imports other packages, which may have the name of one of its files.
    let is_package = names.contains("__init__");
    let mut graph = Graph::new();
    for (file, source) in &sources {
        let own = file.trim_end_matches(".py");
        let mut typing = false;
        for line in source.lines() {
            if !line.starts_with(' ') && !line.is_empty() {
                typing = line.starts_with("if TYPE_CHECKING");
            }
            let mut words = line.split_whitespace();
            let modules: Vec<&str> = match (words.next(), words.next()) {
                _ if typing => continue,
                (Some("import"), _) if is_package => continue,
                (Some("from"), Some(module)) if is_package && !module.starts_with('.') => continue,
                (Some("from"), Some(".")) | (Some("import"), _) => line
                    .split_once("import ")
                    .map_or("", |(_, list)| list)
                    .split(',')
                    .filter_map(|item| item.trim_matches(|c| "( )".contains(c)).split(" as ").next())
                    .collect(),
                (Some("from"), Some(module)) => vec![module.trim_start_matches('.')],
                _ => continue,
            };
            let named = graph.entry(own.to_owned()).or_default();
            named.extend(modules.into_iter().filter(|m| names.contains(*m) && *m != own).map(str::to_owned));
        }
    }
    graph
}

/// Returns the graph without `mod.rs`.
fn siblings(graph: &Graph) -> Graph {
    let named = |names: &BTreeSet<String>| names.iter().filter(|name| *name != "mod").cloned().collect();
    graph
        .iter()
        .filter(|(name, _)| *name != "mod")
        .map(|(name, names)| (name.clone(), named(names)))
        .collect()
}

/// Fails for cycles that are new, and for known cycles that no longer exist.
fn compare(what: &str, found: &BTreeSet<String>, known: &[&str]) {
    let known: BTreeSet<String> = known.iter().map(|&cycle| cycle.to_owned()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "new {what}: {new:#?}");
    let is_here = |cycle: &&String| root().join(cycle.split(':').next().unwrap()).exists();
    let gone: Vec<_> = known.difference(found).filter(is_here).collect();
    assert!(gone.is_empty(), "no longer there, remove them from the list of {what}: {gone:#?}");
}

#[test]
fn no_cycle_between_the_files_of_a_folder() {
    let (mut found, mut over_mod) = (BTreeSet::new(), BTreeSet::new());
    for folder in CRATES {
        let dir = root().join(folder);
        if !dir.exists() {
            tfseek_testkit::skipped(folder);
            continue;
        }
        for (inner, graph) in graphs(&files(&dir, ".rs")) {
            let folder_name = if inner.is_empty() { folder.to_owned() } else { format!("{folder}/{inner}") };
            let between = cycles(&siblings(&graph));
            found.extend(between.into_iter().map(|cycle| format!("{folder_name}: {}", cycle.join(" "))));
            if cycles(&graph).iter().any(|cycle| cycle.iter().any(|name| name == "mod")) {
                over_mod.insert(folder_name);
            }
        }
    }
    for folder in ["python/tfseek", "benches/peers/python"] {
        if fs::exists(root().join(folder)).unwrap() {
            let cycles = cycles(&python(folder));
            found.extend(cycles.into_iter().map(|cycle| format!("{folder}: {}", cycle.join(" "))));
        }
    }
    assert!(found.is_empty(), "cycles between files: {found:#?}");
    compare("folders with a cycle through mod.rs", &over_mod, OVER_MOD);
}

#[test]
fn a_cycle_is_found() {
    let found = |sources: &[(&str, &str)]| -> Vec<String> {
        let sources: Vec<_> =
            sources.iter().map(|(file, code)| ((*file).to_owned(), (*code).to_owned())).collect();
        let graphs = graphs(&sources);
        graphs
            .iter()
            .flat_map(|(at, graph)| cycles(graph).into_iter().map(move |c| format!("{at}: {}", c.join(" "))))
            .collect()
    };
    let b_names_a = ("x/b.rs", "use super::a::A;");
    for (a, m) in [
        ("use super::b::B;", ""),
        ("use super::{c::C, b};", ""),
        ("use crate::x::{b::{B, D}};", ""),
        ("fn f() { super::b::g() }", ""),
        // Through a name that the folder re-exports.
        ("use super::B;", "mod a;\nmod b;\npub use b::{B, C};"),
        ("use crate::x::B;", "mod a;\npub(crate) use self::b::B;"),
    ] {
        assert_eq!(found(&[("x/a.rs", a), b_names_a, ("x/mod.rs", m)]), ["x: a b"], "{a} {m}");
    }
    // Through `mod.rs`, and through a third file.
    let m = "mod a;\nuse a::f;\npub(crate) struct X;";
    assert_eq!(found(&[("x/a.rs", "use super::X;"), ("x/mod.rs", m)]), ["x: a mod"]);
    assert_eq!(
        found(&[
            ("a.rs", "use crate::b;"),
            ("b/mod.rs", "mod i;"),
            ("b/i.rs", "use super::super::c::C;"),
            ("c.rs", "use super::a;")
        ]),
        [": a b c"]
    );
    for (a, m) in [
        ("use crate::b::x;\n// use super::b;", ""),
        ("use super::C;", "pub use c::C;\npub use a::A;\npub use b::B;"),
        ("use super::X;", "pub use a::A;\npub struct X;"),
        ("#[cfg(test)]\nmod tests {\n    use super::super::b;\n}", ""),
    ] {
        assert_eq!(found(&[("x/a.rs", a), b_names_a, ("x/c.rs", ""), ("x/mod.rs", m)]), [""; 0], "{a} {m}");
    }
}
