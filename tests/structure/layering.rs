//! The layers of docs/layers.md, checked against the source: a file names only modules below its own. The
//! table of unsafe code of docs/design.md, too.
//!
//! Comments and unit tests are skipped. The rest is searched for `crate::`, and for `super::` where it leads
//! out of a module's folder.

use crate::source::{CRATES, code, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Returns the modules of each layer of a folder in docs/layers.md, lowest first. A module may name those
/// before it. `error`, listed before all layers, counts as layer 0.
fn layers(page: &str, folder: &str) -> Vec<Vec<String>> {
    let section = page.split_once(&format!("\n## `{folder}/`\n")).map_or("", |(_, section)| section);
    let block = section.split("```").nth(1).expect("the section has a list of modules");
    let block = block.strip_prefix("text\n").expect("the list is plain text");
    let mut layers = vec![Vec::new()];
    for line in block.lines().filter(|line| !line.is_empty()) {
        match line.strip_suffix('/').or(line.strip_suffix(".rs")) {
            Some("lib") => {}
            Some(module) => layers.last_mut().unwrap().push(module.to_owned()),
            // Layer 0 includes the modules above the first heading.
            None if line.starts_with("-- layer 0:") => {}
            None if line.starts_with("-- layer ") => layers.push(Vec::new()),
            None => panic!("neither a layer nor a module: {line}"),
        }
    }
    layers
}

/// Returns the forbidden names in a module of a crate.
fn faults(krate: &str, layers: &[Vec<String>], module: &str, names: &BTreeSet<String>) -> Vec<String> {
    let rank = |name: &str| layers.iter().flatten().position(|other| other == name);
    let Some(own) = rank(module) else {
        return vec![format!("{module} has no layer: put it into the list of docs/layers.md")];
    };
    let mut faults = Vec::new();
    for name in names.iter().filter(|name| *name != module) {
        match rank(name) {
            Some(other) if other < own => {}
            Some(_) => faults.push(format!("{module} names {name}, which is above it")),
            None if ["std::fs", "rayon", "tfseek_wire"].contains(&name.as_str()) => {}
            None => faults.push(format!("{module} names {name}, which has no layer")),
        }
    }
    // Rules that the order alone does not imply.
    let layer = layers.iter().position(|layer| layer.iter().any(|other| other == module));
    let rules: &[(&str, bool, &[&str])] = &[
        // Layer 0 is bytes to meaning: no files, no threads.
        ("src", layer == Some(0), &["std::fs", "io", "rayon"]),
        ("src", ["example", "tensor", "schema"].contains(&module), &["index", "dataset"]),
        // An order is arithmetic only.
        ("src", module == "order", &["crc", "frame", "tfseek_wire", "example"]),
        // A batch accepts rows from any source.
        ("src", module == "batch", &["dataset", "index"]),
        // An index knows where records start, not their content.
        ("src", module == "index", &["example", "record"]),
        // Descriptions and files that are written are independent of each other.
        ("crates/tools/src", module == "write", &["describe"]),
    ];
    for (_, _, forbidden) in rules.iter().filter(|(of, applies, _)| *of == krate && *applies) {
        for name in forbidden.iter().filter(|name| names.contains(**name)) {
            faults.push(format!("{module} must not name {name}"));
        }
    }
    faults
}

/// Returns the modules that a file names, including `std::fs`, `rayon` and `tfseek_wire`. `depth` is the number of folders
/// between it and the crate's root. Re-exports of the root count as their modules.
fn names(code: &str, depth: usize, exports: &BTreeMap<String, String>) -> BTreeSet<String> {
    let up = "super::".repeat(depth);
    // A path up to the root is a path from `crate`.
    let code = code.replace(&format!("{up}super::"), "crate::");
    let mut found = BTreeSet::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("crate::") {
        let own = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        rest = &rest[at + "crate::".len()..];
        if own {
            heads(rest, &mut found);
        }
    }
    let mut rest = code.as_str();
    while let Some(at) = rest.find("std::") {
        rest = &rest[at + "std::".len()..];
        let mut std = BTreeSet::new();
        heads(rest, &mut std);
        if std.contains("fs") {
            found.insert("std::fs".to_owned());
        }
    }
    for name in ["rayon", "tfseek_wire"] {
        if code.contains(&format!("{name}::")) {
            found.insert(name.to_owned());
        }
    }
    found.into_iter().map(|name| exports.get(&name).cloned().unwrap_or(name)).collect()
}

/// Collects the first name of the path at the start of `text`, or of each path in a group `{a::x, b}`.
fn heads(text: &str, found: &mut BTreeSet<String>) {
    let ident =
        |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = text.strip_prefix('{') else {
        found.insert(ident(text));
        return;
    };
    let (mut nested, mut start) = (0, true);
    for (k, c) in group.char_indices() {
        match c {
            '{' => nested += 1,
            '}' if nested == 0 => break,
            '}' => nested -= 1,
            ',' if nested == 0 => start = true,
            c if c.is_whitespace() => {}
            _ if start => {
                found.insert(ident(&group[k..]));
                start = false;
            }
            _ => {}
        }
    }
}

/// Maps each re-export of the crate's root to its module: `pub use module::{A, B};` maps A and B to `module`.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for item in code(lib).split(';').filter_map(|item| item.trim().strip_prefix("pub use ")) {
        let Some((module, names)) = item.split_once("::") else { continue };
        let mut found = BTreeSet::new();
        heads(names, &mut found);
        exports.extend(found.into_iter().map(|name| (name, module.to_owned())));
    }
    exports
}

/// Returns the layers of a crate.
fn layers_of(krate: &str) -> Vec<Vec<String>> {
    layers(&fs::read_to_string(root().join("docs/layers.md")).unwrap(), krate)
}

/// Returns a file's module, and the number of folders between the file and the crate's root.
fn module_of(file: &str) -> (&str, usize) {
    let module = file.split(['/', '.']).next().unwrap();
    let depth = file.matches('/').count();
    (module, if file.ends_with("/mod.rs") { depth - 1 } else { depth })
}

#[test]
fn a_file_names_only_modules_below_its_own() {
    let mut all = Vec::new();
    for (krate, _) in WORKSPACE {
        let dir = root().join(krate);
        if !dir.exists() {
            tfseek_testkit::skipped(krate);
            continue;
        }
        let layers = layers_of(krate);
        let exports = exports(&fs::read_to_string(dir.join("lib.rs")).unwrap());
        let mut modules = BTreeSet::new();
        for (file, source) in files(&dir, ".rs") {
            if ["lib.rs", "main.rs"].contains(&file.as_str()) {
                continue;
            }
            if !source.lines().any(|line| line.starts_with("//! ")) {
                all.push(format!("{krate}/{file}: its first line does not say what it is"));
            }
            let (module, depth) = module_of(&file);
            let names = names(&code(&source), depth, &exports);
            let found = faults(krate, &layers, module, &names);
            all.extend(found.into_iter().map(|fault| format!("{krate}/{file}: {fault}")));
            modules.insert(module.to_owned());
        }
        let rows: Vec<&String> = layers.iter().flatten().collect();
        let gone = rows.iter().filter(|row| !modules.contains(**row));
        all.extend(gone.map(|row| format!("{krate}: there is no module {row}")));
        let twice = rows.iter().enumerate().filter(|(k, row)| rows[..*k].contains(row));
        all.extend(twice.map(|(_, row)| format!("{krate}: the list has {row} twice")));
        assert!(modules.len() >= if krate == "src" { 15 } else { 5 }, "{krate}: {modules:?}");
    }
    assert!(layers_of("src").len() >= 5);
    assert!(all.is_empty(), "{all:#?}");
}

/// The crates of the workspace, and the crates of ours that each may name. The compiler checks that only
/// public items are used; `#[path]` and `include!` would bypass it.
const WORKSPACE: [(&str, &[&str]); 12] = [
    ("crates/wire/src", &[]),
    ("src", &["tfseek", "tfseek_wire"]),
    ("crates/image/src", &["tfseek", "tfseek_wire"]),
    ("crates/remote/src", &["tfseek"]),
    ("crates/rlds/src", &["tfseek", "tfseek_wire"]),
    ("crates/tfds/src", &["tfseek", "tfseek_image", "tfseek_rlds"]),
    ("crates/arrow/src", &["tfseek", "tfseek_tfds"]),
    ("crates/tools/src", &["tfseek", "tfseek_image", "tfseek_rlds", "tfseek_tfds", "tfseek_wire"]),
    ("crates/view/src", &["tfseek", "tfseek_tfds", "tfseek_tools"]),
    ("crates/convert/src", &["tfseek", "tfseek_arrow", "tfseek_tfds", "tfseek_tools"]),
    (
        "crates/cli/src",
        &[
            "tfseek",
            "tfseek_cli",
            "tfseek_convert",
            "tfseek_image",
            "tfseek_remote",
            "tfseek_rlds",
            "tfseek_tfds",
            "tfseek_tools",
            "tfseek_view",
        ],
    ),
    (
        "python/src",
        &[
            "tfseek",
            "tfseek_arrow",
            "tfseek_cli",
            "tfseek_image",
            "tfseek_remote",
            "tfseek_rlds",
            "tfseek_tfds",
            "tfseek_tools",
            "tfseek_view",
        ],
    ),
];

/// Returns the crates of ours that a file must not name, and uses of `#[path]` and `include!`.
fn names_beyond(code: &str, allowed: &[&str]) -> Vec<String> {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let crates = words.filter_map(|word| word.trim_start_matches(':').split_once("::").map(|(head, _)| head));
    let crates = crates.filter(|name| *name == "tfseek" || name.starts_with("tfseek_"));
    let mut found: Vec<_> = crates.filter(|name| !allowed.contains(name)).map(str::to_owned).collect();
    found.extend(
        ["#[path", "include!("].iter().filter(|way| code.contains(**way)).map(|way| (*way).to_owned()),
    );
    found
}

#[test]
fn front_ends_use_public_items_only() {
    let mut all = Vec::new();
    for (folder, allowed) in WORKSPACE {
        let dir = root().join(folder);
        if !dir.exists() {
            tfseek_testkit::skipped(folder);
            continue;
        }
        for (file, source) in files(&dir, ".rs") {
            all.extend(
                names_beyond(&code(&source), allowed).iter().map(|name| format!("{folder}/{file}: {name}")),
            );
        }
    }
    assert!(all.is_empty(), "{all:#?}");
    assert_eq!(names_beyond("use tfseek_cli::run; let a = tfseek::io::X;", &["tfseek"]), ["tfseek_cli"]);
    assert_eq!(names_beyond("#[path = \"../../src/frame/mod.rs\"]\nmod frame;", &["tfseek"]), ["#[path"]);
}

/// The native module of the Python package calls one private Python module. It runs the command and takes
/// nothing else of it: what both need is below them.
#[test]
fn the_python_package_names_one_module_and_the_run_of_the_command() {
    let dir = root().join("python/src");
    if !dir.exists() {
        tfseek_testkit::skipped("python/src");
        return;
    }
    let (mut modules, mut of_command) = (BTreeSet::new(), BTreeSet::new());
    for (_, source) in files(&dir, ".rs") {
        let code = code(&source);
        let names = code.split('"').filter(|text| text.starts_with("tfseek._"));
        modules.extend(names.map(str::to_owned));
        code.split("tfseek_cli::").skip(1).for_each(|rest| heads(rest, &mut of_command));
    }
    // The second is the native module, in the names of its classes.
    assert!(modules.iter().eq(["tfseek._rust", "tfseek._tfseek"]), "{modules:?}");
    assert!(of_command.iter().eq(["run"]), "{of_command:?}");
}

/// Returns the files in the table of the section "Unsafe code" of docs/design.md.
fn listed_as_unsafe(design: &str) -> BTreeSet<String> {
    let section = design.split_once("\n## Unsafe code\n").map_or("", |(_, section)| section);
    let table =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}

/// Unsafe code exists exactly in the files that docs/design.md lists.
#[test]
fn unsafe_code_is_where_the_page_lists_it() {
    let design = fs::read_to_string(root().join("docs/design.md")).unwrap();
    let mut found = BTreeSet::new();
    let mut listed = BTreeSet::new();
    // The test kit is test code.
    for folder in CRATES.into_iter().filter(|folder| !folder.starts_with("crates/testkit")) {
        let dir = root().join(folder);
        if !dir.exists() {
            tfseek_testkit::skipped(folder);
            continue;
        }
        listed.extend(listed_as_unsafe(&design).into_iter().filter(|f| f.starts_with(&format!("{folder}/"))));
        for (file, source) in files(&dir, ".rs") {
            let code = code(&source);
            let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.any(|word| word == "unsafe" || word == "unsafe_code") {
                found.insert(format!("{folder}/{file}"));
            }
        }
    }
    assert!(found.len() >= 5, "{found:?}");
    assert_eq!(found, listed, "unsafe files in the source, and in docs/design.md");
    // No row of the table names another folder.
    let rows = listed_as_unsafe(&design);
    assert!(rows.iter().all(|row| CRATES.iter().any(|c| row.starts_with(&format!("{c}/")))), "{rows:?}");
    assert_eq!(
        listed_as_unsafe(
            "# D\n\n## Unsafe code\n\nIt is\n\n| F |\n| - |\n| `src/a.rs` | x |\n\n| `src/b.rs` |"
        )
        .len(),
        1
    );
}

/// The checker finds each kind of fault in a snippet that has it.
#[test]
fn the_checker_finds_faults() {
    let exports = exports("pub use dataset::{Dataset, Mapped};\npub use record::Record;");
    let found_in = |krate: &str, file: &str, source: &str| {
        let (module, depth) = module_of(file);
        faults(krate, &layers_of(krate), module, &names(&code(source), depth, &exports))
    };
    let found = |file: &str, source: &str| found_in("src", file, source);
    for (file, bad) in [
        ("frame.rs", "use crate::io::Region;"),
        ("frame.rs", "use crate::{crc, io::Region};"),
        ("frame.rs", "use super::io;"),
        ("frame.rs", "use std::fs::File;"),
        ("frame.rs", "use std::{io, fs};"),
        ("frame/mod.rs", "use rayon::prelude::*;"),
        ("frame/mod.rs", "use crate::example::Example;"),
        ("frame/mod.rs", "use super::example;"),
        ("example/list.rs", "fn f() { crate::index::Index::new() }"),
        ("example/list.rs", "use super::super::dataset;"),
        ("example/list.rs", "use crate::Mapped;"),
        ("order/prp.rs", "use crate::crc;"),
        ("order/prp.rs", "use tfseek_wire::WireReader;"),
        ("index/mod.rs", "use crate::{error::{At, Error}, dataset::Dataset};"),
        ("record.rs", "use crate::dataset;"),
        ("batch/mod.rs", "use crate::Dataset;"),
        ("schema/mod.rs", "use crate::index;"),
        ("elsewhere.rs", ""),
        ("loader/mod.rs", "use crate::elsewhere;"),
    ] {
        assert!(!found(file, bad).is_empty(), "{file}: {bad}");
    }
    for (file, good) in [
        ("frame.rs", "use crate::crc;\nuse crate::error::{At, Result};\nuse std::io::Write;"),
        ("frame.rs", "/// [`io`](crate::io)\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::io;\n}"),
        ("example/list.rs", "use super::source::Walk;\nuse tfseek_wire::WireReader;"),
        ("order/prp.rs", "use super::mix;\nuse crate::error::Result;"),
        ("index/mod.rs", "use crate::frame::{self, Header};\nuse std::fs::File;\nuse rayon::prelude::*;"),
        ("batch/mod.rs", "use crate::Record;\nuse crate::schema::Schema;"),
    ] {
        assert_eq!(found(file, good), Vec::<String>::new(), "{file}: {good}");
    }
    for (file, bad) in [
        ("forms/digest.rs", "use crate::work::units;"),
        ("forms/encode/value.rs", "use super::super::super::write;"),
        ("work/verify.rs", "use crate::{forms, describe::stats};"),
        ("describe/grep.rs", "use crate::write::outputs;"),
        ("write/unpack.rs", "use crate::describe::grep;"),
        ("memory.rs", "use crate::forms;"),
    ] {
        assert!(!found_in("crates/tools/src", file, bad).is_empty(), "{file}: {bad}");
    }
    let good = "use super::units;\nuse crate::memory::push;\nuse std::fs;\nuse crate::forms::Content;";
    assert_eq!(found_in("crates/tools/src", "work/verify.rs", good), Vec::<String>::new());
}
