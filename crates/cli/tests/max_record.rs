//! A record of 60 GiB in a sparse file: every verb that reads it reports an error and allocates no memory for
//! it.

use crate::common::{Folder, Ran, label};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use tfseek::frame::put_record;

const LEN: u64 = 60 << 30;

/// Writes three records. The middle one is a hole.
fn sparse(folder: &Folder) {
    let mut file = File::create(folder.path("sparse")).unwrap();
    let mut bytes = Vec::new();
    put_record(&mut bytes, &label(0)).unwrap();
    bytes.extend(LEN.to_le_bytes());
    bytes.extend(tfseek::crc::masked(&LEN.to_le_bytes()).to_le_bytes());
    file.write_all(&bytes).unwrap();
    let end = bytes.len() as u64 + LEN + 4;
    file.set_len(end).unwrap();
    file.seek(SeekFrom::Start(end)).unwrap();
    put_record(&mut file, &label(2)).unwrap();
}

/// Runs the command with 4 GiB of address space, if the shell can limit it.
fn run(folder: &Folder, words: &str) -> Ran {
    let limited = format!("ulimit -v 4194304 2>/dev/null; exec {} {words}", env!("CARGO_BIN_EXE_tfseek"));
    let mut command = folder.command(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &limited]).current_dir(folder.path(""));
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output =
        if cfg!(target_os = "linux") { shell.output() } else { command.args(words.split(' ')).output() };
    Ran::of(output.unwrap())
}

#[test]
fn a_record_of_60_gib_is_an_error() {
    let folder = Folder::new();
    sparse(&folder);
    std::fs::write(
        folder.path("schema"),
        r#"{"features": {"label": {"type": "fixed", "dtype": "int64", "shape": []}}}"#,
    )
    .unwrap();
    let indexed = run(&folder, "index sparse");
    assert_eq!(indexed.code, 0, "{indexed:?}");
    for words in [
        "get --io pread sparse 1",
        "get --io pread sparse 0..",
        "sample --io pread -n 3 sparse",
        "epoch --io pread --batch-size 3 --shuffle none sparse",
        "epoch --io pread --batch-size 1 --schema schema sparse",
        "epoch --io pread --batch-size 1 --where label==0 sparse",
        "index --column label sparse",
        "head sparse",
        "cat -f raw sparse",
        "tail -n 2 sparse",
        "digest sparse",
        "verify sparse",
        "parse --schema schema sparse",
    ] {
        let ran = run(&folder, words);
        assert_ne!(ran.code, 0, "{words}: {ran:?}");
        assert!(ran.code < 100, "{words}: {ran:?}");
        let text = format!("found {LEN} ");
        assert!(ran.err.contains(&text) && ran.err.contains("--max-record"), "{words}: {ran:?}");
    }
    // The other records can be read.
    let ran = run(&folder, "get --io pread sparse 0 2");
    assert!(ran.code == 0 && ran.out.contains("record 2"), "{ran:?}");
}

#[test]
fn max_record_is_an_option() {
    let folder = Folder::new();
    folder.shard("x", [label(0), label(1)]);
    for words in [["head", "x"], ["cat", "x"], ["digest", "x"], ["verify", "x"], ["schema", "x"]] {
        let ran = folder.run(&[&words[..], &["--max-record", "3"]].concat());
        assert!(
            ran.code == 1 && ran.err.contains("expected a payload of at most 3 bytes"),
            "{words:?}: {ran:?}"
        );
        assert_eq!(folder.run(&[&words[..], &["--max-record", "3000"]].concat()).code, 0);
    }
    let ran = folder.run(&["get", "x", "0", "--max-record", "3"]);
    assert!(ran.code == 1 && ran.err.contains("--max-record"), "{ran:?}");
}
