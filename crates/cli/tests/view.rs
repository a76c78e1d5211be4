//! `view`: the server of the command, its end, its reports and its errors.

#![cfg(all(unix, feature = "view"))]

use crate::common::*;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
#[cfg(target_os = "linux")]
use std::time::Duration;

/// A viewer that runs, and its link.
struct RunningView {
    child: Child,
    port: u16,
    token: String,
    summary: String,
}

impl RunningView {
    fn start(dir: &Folder, args: &[&str]) -> RunningView {
        let mut command = dir.interruptible(&[&["view", "--port", "0"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (summary, link) =
            line.trim_end().split_once(": open http://127.0.0.1:").unwrap_or_else(|| panic!("{line}"));
        let (port, token) = link.split_once("/?t=").unwrap();
        let (port, token, summary) = (port.parse().unwrap(), token.to_owned(), summary.to_owned());
        RunningView { child, port, token, summary }
    }

    /// Returns the head and the body of a response.
    fn get(&self, target: &str, headers: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
        (head.to_owned(), body.to_owned())
    }

    /// Returns the JSON of an answer to a request with the cookie.
    fn ask(&self, target: &str) -> serde_json::Value {
        let cookie = format!("Cookie: tfseek-{}={}\r\n", self.port, self.token);
        let (head, body) = self.get(&format!("/api/{target}"), &cookie);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Returns the memory of the process that no file backs, in MB.
    #[cfg(target_os = "linux")]
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1000
    }

    /// Ends the viewer as Ctrl-C does.
    fn interrupt(mut self) {
        let killed = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        ended(&mut self.child);
        assert!(TcpStream::connect(("127.0.0.1", self.port)).is_err());
    }
}

fn files(dir: &Folder) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_viewer_serves_until_it_is_interrupted() {
    let dir = Folder::new();
    dir.shard("a b.tfrecord", labels(0..100));
    dir.shard("other.tfrecord", labels(50..60));
    dir.run(&["index", "a b.tfrecord", "other.tfrecord"]);
    let before = files(&dir);
    let view =
        RunningView::start(&dir, &["a b.tfrecord", "--baseline", "other.tfrecord", "--where", "label>3"]);
    assert_eq!(view.summary, "100 records, 1 shard");
    assert!(view.get("/", "").1.contains("<html"));
    assert!(view.get("/api/dataset", "").0.starts_with("HTTP/1.1 403 "));
    let dataset = view.ask("dataset");
    assert_eq!(dataset["records"], 100);
    assert_eq!(dataset["where"], "label>3");
    assert_eq!(dataset["against"], "other.tfrecord");
    assert_eq!(dataset["commands"]["get"], serde_json::json!(["tfseek get 'a b.tfrecord'", ""]));
    assert_eq!(view.ask("json/7")["features"]["label"], serde_json::json!([7]));
    assert_eq!(view.ask("dataset?set=1")["records"], 10);
    let kinds = RunningView::start(
        &dir,
        &["other.tfrecord", "--kind", "example", "--tail", "tolerate", "--io", "pread"],
    );
    let get = serde_json::json!(["tfseek get other.tfrecord --tail tolerate", "--io pread --kind example"]);
    assert_eq!(kinds.ask("dataset")["commands"]["get"], get);
    kinds.interrupt();
    // Connections and jobs that are open do not keep it.
    let _open = TcpStream::connect(("127.0.0.1", view.port)).unwrap();
    view.ask("stats");
    view.interrupt();
    assert_eq!(files(&dir), before);
}

#[test]
fn the_demo_begins_with_a_grid_of_pictures() {
    let dir = Folder::new();
    assert_eq!(dir.run(&["demo", "-q", "--out", "data"]).code, 0);
    let view = RunningView::start(&dir, &["data"]);
    let dataset = view.ask("dataset");
    assert_eq!((&dataset["home"], &dataset["roles"]["image"]), (&"grid".into(), &"image".into()));
    let seen = view.ask("records?from=0&n=1&features=feature2,image");
    assert!(seen.to_string().contains(r#""chicken""#), "{seen}");
    view.interrupt();
}

#[test]
fn the_command_ends_after_the_last_tab() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    let mut view = RunningView::start(&dir, &["a.tfrecord"]);
    let staying = RunningView::start(&dir, &["a.tfrecord", "--stay"]);
    for target in ["open?tab=1", "open?tab=2", "close?tab=1", "close?tab=2"] {
        view.ask(target);
        staying.ask(target);
    }
    assert_eq!(ended(&mut view.child).code(), Some(0));
    assert_eq!(staying.ask("dataset")["records"], 100);
    staying.interrupt();
}

#[test]
fn damaged_files_open_and_commands_say_so() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..100));
    let mut bytes = fs::read(&path).unwrap();
    let size = bytes.len() / 100;
    bytes[40 * size] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let view = RunningView::start(&dir, &["a.tfrecord"]);
    let dataset = view.ask("dataset");
    assert_eq!((&dataset["records"], &dataset["damage"]["ranges"]), (&99.into(), &1.into()));
    let [before, after] = ["get", "grep"].map(|verb| dataset["commands"][verb].clone());
    assert_eq!(before, serde_json::json!(["tfseek get a.tfrecord", "--damage skip"]));
    assert_eq!(after, serde_json::json!(["tfseek grep", "a.tfrecord --damage skip"]));
    view.interrupt();
    dir.run(&["view", "--damage", "raise", "a.tfrecord"]).fails(1, &["length crc32c"]);
}

#[test]
fn reports_are_one_file_that_is_not_replaced_without_force() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    let ran = dir.run(&["view", "a.tfrecord", "--html", "report.html", "--where", "label < 10"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = fs::read_to_string(dir.path("report.html")).unwrap();
    assert_eq!(page.matches("<figure>").count(), 10);
    assert!(!page.contains("<script") && !page.contains("http:") && !page.contains("https:"));
    dir.run(&["view", "a.tfrecord", "--html", "report.html"]).fails(2, &["--force replaces it"]);
    dir.run(&["view", "a.tfrecord", "--html", "none/report.html"]).fails(3, &["none"]);
    dir.run(&["view", "a.tfrecord", "--html", "a.tfrecord", "--force"]).fails(2, &["a.tfrecord"]);
    dir.run(&["view", "a.tfrecord", "--html", "x.html", "--where", "label ="]).fails(2, &["expected `==`"]);
    assert!(!dir.path("x.html").exists());
    let ran = dir.run(&["-q", "view", "a.tfrecord", "--html", "x.html"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[test]
fn options_that_do_not_fit_are_named() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..100));
    fs::write(dir.path("roles.json"), r#"{"lable": "y"}"#).unwrap();
    dir.run(&["view", "a.tfrecord", "--roles", "roles.json"]).fails(2, &["found \"lable\""]);
    fs::write(dir.path("roles.json"), "[]").unwrap();
    dir.run(&["view", "a.tfrecord", "--roles", "roles.json"])
        .fails(2, &["roles.json: roles: expected a JSON object"]);
    dir.run(&["view", "a.tfrecord", "--roles", "none.json"]).fails(3, &["none.json"]);
    dir.run(&["view", "a.tfrecord", "--host", "0.0.0.0"]).fails(2, &["--allow-host"]);
    dir.run(&["view", "a.tfrecord", "--host", "x"]).fails(2, &["--host"]);
    dir.run(&["view", "none.tfrecord"]).fails(3, &["none.tfrecord"]);
    let view = RunningView::start(&dir, &["a.tfrecord"]);
    let port = view.port.to_string();
    dir.run(&["view", "a.tfrecord", "--port", &port]).fails(3, &[&port]);
    view.interrupt();
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "ten million records"]
fn the_memory_of_a_viewer_does_not_grow_with_the_records() {
    for (shards, limit) in [(10, 100), (1000, 100)] {
        let dir = Folder::new();
        dir.shard("first", labels(0..1_000_000));
        for k in 0..shards {
            fs::hard_link(dir.path("first"), dir.path(&format!("x-{k:05}-of-{shards:05}"))).unwrap();
        }
        fs::remove_file(dir.path("first")).unwrap();
        assert_eq!(dir.run(&["index", &format!("x@{shards}")]).code, 0);
        let view = RunningView::start(&dir, &[&format!("x@{shards}")]);
        let mut most = 0;
        let mut ask = |target: &str, shown: u64| {
            view.ask(target);
            for _ in 0..shown {
                most = most.max(view.memory());
                std::thread::sleep(Duration::from_millis(100));
            }
            println!("{shards} million records, {target}: at most {most} MB");
        };
        ask("dataset", 1);
        ask("record/9999999", 1);
        ask("find?where=label%3D%3D999999&after=0", 20);
        ask("find?where=label%3E7&after=0", 20);
        ask("stats", 50);
        assert!(most < limit, "{most} MB");
        view.interrupt();
    }
}
