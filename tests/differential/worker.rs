//! TensorFlow in a separate process: `tf_worker.py`, which documents requests and answers.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tfseek_testkit::hex::{hex, unhex};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/differential/tf_worker.py");

pub(crate) struct Worker {
    python: String,
    process: Process,
    pub(crate) versions: Value,
    /// Number of times that TensorFlow crashed and left a request without an answer.
    pub(crate) crashes: u64,
}

struct Process {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Protobuf's result for a payload that it accepts.
pub(crate) struct Decoded {
    pub(crate) canonical: Vec<u8>,
    /// A map entry with an unknown field was dropped (R6).
    pub(crate) dropped: bool,
}

/// TensorFlow's result for a batch: the columns by "features/KEY", "lists/KEY" and "lengths/KEY", or its
/// error.
pub(crate) type Answer = Result<serde_json::Map<String, Value>, String>;

impl Worker {
    /// Returns `None` if this Python cannot import TensorFlow.
    pub(crate) fn start(python: &str) -> Option<Worker> {
        let mut process = Process::start(python)?;
        let versions = process.answer()?;
        Some(Worker { python: python.to_owned(), process, versions, crashes: 0 })
    }

    /// Returns `None` if TensorFlow crashed. It is restarted for the next request.
    fn ask(&mut self, request: &Value) -> Option<Value> {
        let answer = self.process.ask(request);
        if answer.is_none() {
            self.crashes += 1;
            self.process = Process::start(&self.python).expect("TensorFlow restarts");
            self.process.answer().expect("TensorFlow restarts");
        }
        answer
    }

    /// Returns one result per payload: `None` if protobuf refuses it.
    pub(crate) fn decode(&mut self, kind: &str, payloads: &[Vec<u8>]) -> Vec<Option<Decoded>> {
        let payloads: Vec<_> = payloads.iter().map(|p| hex(p)).collect();
        let answer = self.ask(&json!({"op": "decode", "kind": kind, "payloads": payloads}));
        let decoded = |row: &Value| {
            Some(Decoded {
                canonical: unhex(row.get("canonical")?.as_str()?),
                dropped: row["dropped"].as_bool()?,
            })
        };
        answer.expect("protobuf does not crash").as_array().unwrap().iter().map(decoded).collect()
    }

    /// Returns one answer per batch. If TensorFlow crashes, the batches are sent one by one, and only those
    /// that crash are errors.
    pub(crate) fn parse(
        &mut self,
        kind: &str,
        spec: &Value,
        batches: &[Vec<&[u8]>],
        single: bool,
    ) -> Vec<Answer> {
        let hexed: Vec<Vec<String>> =
            batches.iter().map(|batch| batch.iter().map(|p| hex(p)).collect()).collect();
        let request = |batches| json!({"op": "parse", "kind": kind, "spec": spec, "batches": batches, "single": single});
        let answer = self.ask(&request(json!(hexed)));
        match answer {
            Some(Value::Array(rows)) => rows.into_iter().map(columns).collect(),
            _ if batches.len() == 1 => {
                eprintln!("TensorFlow crashed on {}", request(json!(hexed)));
                vec![Err("TensorFlow crashes".to_owned())]
            }
            _ => {
                batches.iter().flat_map(|b| self.parse(kind, spec, std::slice::from_ref(b), single)).collect()
            }
        }
    }
}

fn columns(mut row: Value) -> Answer {
    match row["columns"].take() {
        Value::Object(columns) => Ok(columns),
        _ => Err(format!("{}: {}", row["error"].as_str().unwrap(), row["message"].as_str().unwrap())),
    }
}

impl Process {
    fn start(python: &str) -> Option<Process> {
        let mut child = Command::new(python)
            .arg(SCRIPT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (requests, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Process { child, requests, answers })
    }

    fn ask(&mut self, request: &Value) -> Option<Value> {
        self.requests.write_all(format!("{request}\n").as_bytes()).ok()?;
        self.answer()
    }

    fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
