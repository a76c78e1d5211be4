//! Compares tensors with TensorFlow: parsing of thousands of messages, and serialization.
//!
//! Ignored by default, and skipped with a message unless `TFSEEK_TF_PYTHON` names a Python with TensorFlow:
//! `TFSEEK_TF_PYTHON=python3 cargo test --test differential -- --ignored --nocapture`

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tfseek::ErrorKind;
use tfseek::error::{TensorError, WireError};
use tfseek::tensor::{TensorDType, parse_tensor_within};
use tfseek_testkit::hex::hex;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::{tensors, twin};

/// Larger fills are not passed to TensorFlow, which would allocate them.
const LIMIT: u64 = 1 << 22;

/// Returns tfseek's result in the form of the TensorFlow process's answer.
fn our_answer(bytes: &[u8], dtype: TensorDType) -> Result<Value, tfseek::Error> {
    let tensor = parse_tensor_within(bytes, dtype, LIMIT)?;
    let data = match tensor.as_bytes() {
        Some(values) => vec![hex(values)],
        None => tensor.strings()?.map(hex).collect(),
    };
    let again = hex(&tensor.serialize()?);
    Ok(json!({"ok": true, "shape": tensor.shape(), "data": data, "again": again}))
}

/// Returns the name of a documented case (docs/format.md) that tfseek refuses and TensorFlow accepts.
fn departure(e: &tfseek::Error) -> Option<&'static str> {
    match e.kind() {
        // C++ protobuf drops the tag bits beyond 32; upb and tfseek refuse them.
        ErrorKind::Wire { reason: WireError::BadTag, .. } => Some("tag beyond 32 bits"),
        ErrorKind::Tensor(TensorError::UnknownRank) => Some("unknown rank"),
        ErrorKind::Tensor(
            TensorError::ContentLen { expected: 0, .. } | TensorError::StringContent { elements: 0, .. },
        ) => Some("content without elements"),
        _ => None,
    }
}

/// Tests for fields of unsupported dtypes, which tfseek skips without decoding them.
fn has_unread(payload: &[u8]) -> bool {
    let fields = twin::fields(payload, 0).unwrap_or_default();
    fields.iter().any(|field| matches!(field, (14 | 15, twin::Value::Len(_))))
}

#[test]
#[ignore = "needs TensorFlow"]
fn tensorflow_agrees() {
    let Some(python) = std::env::var_os("TFSEEK_TF_PYTHON") else {
        tfseek_testkit::skipped(crate::TENSORFLOW);
        return;
    };
    let mut rng = Rng::new(11);
    let mut cases = Vec::new();
    for k in 0..20_000 {
        let dtype = tensors::dtype(k as u8);
        let payload = match k % 8 {
            0 => tensors::canonical(&mut rng, dtype),
            1 | 2 => tensors::odd(&mut rng, dtype),
            _ => tensors::mutated(&mut rng, dtype),
        };
        let answer = our_answer(&payload, dtype);
        if !matches!(&answer, Err(e) if matches!(e.kind(), ErrorKind::TooLarge { .. })) {
            cases.push((payload, dtype, answer));
        }
    }

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/tensor.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = BufWriter::new(child.stdin.take().unwrap());
    let mut from = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = BTreeMap::<&str, u32>::new();
    let mut differences = Vec::new();
    for (payload, dtype, ours) in &cases {
        writeln!(to, "{}", json!({"payload": hex(payload), "dtype": dtype.to_string()})).unwrap();
        to.flush().unwrap();
        let theirs: Value = from
            .next()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .unwrap_or_else(|| panic!("the TensorFlow process crashed on {} as {dtype}", hex(payload)));
        let what = match (ours, theirs["ok"].as_bool().unwrap()) {
            (Ok(ours), true) if *ours == theirs => "same tensor, same bytes",
            (Err(_), false) => "both refuse",
            (Err(e), true) if departure(e).is_some() => departure(e).unwrap_or_default(),
            (Ok(_), false) if has_unread(payload) => "damage in a resource or variant",
            _ => {
                differences.push(format!("{} {dtype}: {ours:?}\n  {theirs}", hex(payload)));
                "different"
            }
        };
        *seen.entry(what).or_default() += 1;
    }
    drop(to);
    child.wait().unwrap();
    println!("{} messages: {seen:?}", cases.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // tfseek writes the same bytes as TensorFlow for every dtype.
    assert!(seen["same tensor, same bytes"] > 1000);
}
