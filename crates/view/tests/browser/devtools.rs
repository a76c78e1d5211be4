//! A browser process and its DevTools protocol: JSON messages over descriptors 3 and 4, each ended by a zero
//! byte. This takes 700 lines, and no driver, no WebSocket and no npm.

use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// The longest wait for anything. It is reached only by failures, and by machines with much else to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// Events of one page, in the order of their arrival.
pub(crate) type Events = Arc<Mutex<Vec<(String, Value)>>>;

/// A running browser. All tests of the process use one.
///
/// It ends when the pipe is closed, which the end of this process does, even by a signal. Then its shell
/// removes its folder.
pub(crate) struct Browser {
    requests: Mutex<PipeWriter>,
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, Sender<Value>>>,
    pages: Mutex<HashMap<String, Events>>,
    complaints: PathBuf,
    /// Not waited for: it ends after this process.
    _process: Child,
}

/// Returns the browser of this process. Starts it at the first call. Without one, says that the test is
/// skipped.
pub(crate) fn browser() -> Option<&'static Browser> {
    static BROWSER: OnceLock<Option<&'static Browser>> = OnceLock::new();
    let browser = *BROWSER.get_or_init(|| find().map(|program| Browser::start(&program)));
    if browser.is_none() {
        tfseek_testkit::skipped("a Chromium (apt-get install chromium-headless-shell, or TFSEEK_BROWSER)");
    }
    browser
}

fn find() -> Option<OsString> {
    if let Some(program) = env::var_os("TFSEEK_BROWSER").filter(|program| !program.is_empty()) {
        return Some(program);
    }
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let names = ["chromium-headless-shell", "chromium", "google-chrome"];
    let found = |name: &&str| folders.iter().any(|folder| folder.join(name).is_file());
    names.iter().find(|name| found(name)).map(OsString::from)
}

impl Browser {
    fn start(program: &OsString) -> &'static Browser {
        let folder = tempfile::Builder::new().prefix("tfseek-browser-").tempdir().unwrap().keep();
        let complaints = folder.join("stderr");
        let (their_requests, requests) = pipe().unwrap();
        let (answers, their_answers) = pipe().unwrap();
        // The shell outlives this process and removes the folder.
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                "trap : INT TERM HUP; \"$@\"; rm -rf \"$FOLDER\" || { sleep 1; rm -rf \"$FOLDER\"; }",
                "sh",
            ])
            .env("FOLDER", &folder)
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                "--hide-scrollbars",
            ])
            .args(["--no-first-run", "--no-default-browser-check", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--mute-audio"])
            .args(["--disable-renderer-backgrounding", "--disable-background-timer-throttling"])
            .args(["--disable-backgrounding-occluded-windows", "--force-color-profile=srgb", "--lang=en-US"])
            .args(["--autoplay-policy=no-user-gesture-required"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&complaints).unwrap())
            .fd_mappings(vec![
                FdMapping { parent_fd: their_requests.into(), child_fd: 3 },
                FdMapping { parent_fd: their_answers.into(), child_fd: 4 },
            ])
            .unwrap();
        let process = command.spawn().unwrap_or_else(|error| panic!("sh for {}: {error}", program.display()));
        drop(command);
        let browser: &'static Browser = Box::leak(Box::new(Browser {
            requests: Mutex::new(requests),
            last: AtomicU64::new(0),
            waiting: Mutex::default(),
            pages: Mutex::default(),
            complaints,
            _process: process,
        }));
        thread::spawn(move || browser.read(answers));
        let version = browser.command(None, "Browser.getVersion", json!({}));
        println!("browser: {} ({})", program.display(), version["product"].as_str().unwrap_or("?"));
        browser
    }

    /// Passes answers and events on until the browser ends.
    fn read(&self, answers: PipeReader) {
        let mut answers = BufReader::with_capacity(1 << 20, answers);
        let mut message = Vec::new();
        while answers.read_until(0, &mut message).is_ok_and(|n| n > 0) {
            message.pop();
            let value: Value = serde_json::from_slice(&message).unwrap_or_default();
            message.clear();
            if let Some(id) = value["id"].as_u64() {
                if let Some(to) = self.waiting.lock().unwrap().remove(&id) {
                    let _ = to.send(value);
                }
                continue;
            }
            let (Some(page), Some(method)) = (value["sessionId"].as_str(), value["method"].as_str()) else {
                continue;
            };
            // A dialog stops the page, so it is closed here. The test fails by its event.
            if method == "Page.javascriptDialogOpening" {
                self.send(Some(page), "Page.handleJavaScriptDialog", json!({"accept": false}));
            }
            if let Some(events) = self.pages.lock().unwrap().get(page) {
                events.lock().unwrap().push((method.to_owned(), value["params"].clone()));
            }
        }
        // Callers that wait for an answer see that there is none.
        self.waiting.lock().unwrap().clear();
    }

    /// Sends a command without waiting for its answer. Returns its number, or none if the browser has ended.
    pub(crate) fn send(&self, page: Option<&str>, method: &str, params: Value) -> Option<u64> {
        let id = self.last.fetch_add(1, Relaxed) + 1;
        self.send_as(id, page, method, params).then_some(id)
    }

    fn send_as(&self, id: u64, page: Option<&str>, method: &str, params: Value) -> bool {
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(page) = page {
            message["sessionId"] = page.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.requests.lock().unwrap().write_all(&bytes).is_ok()
    }

    /// Sends a command to a page, or to the browser, and returns its result or its error.
    pub(crate) fn try_command(
        &self,
        page: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        let id = self.last.fetch_add(1, Relaxed) + 1;
        let (to, answer) = channel();
        self.waiting.lock().unwrap().insert(id, to);
        if !self.send_as(id, page, method, params) {
            return Err(format!("{method}: the browser has ended{}", self.complaints()));
        }
        match answer.recv_timeout(LIMIT) {
            Ok(mut answer) if answer["error"].is_null() => Ok(answer["result"].take()),
            Ok(answer) => Err(format!("{method}: {}", answer["error"])),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("{method}: no answer in {LIMIT:?}{}", self.complaints()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(format!("{method}: the browser has ended{}", self.complaints()))
            }
        }
    }

    /// Sends a command and returns its result.
    pub(crate) fn command(&self, page: Option<&str>, method: &str, params: Value) -> Value {
        self.try_command(page, method, params).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Collects the events of a page from now on.
    pub(crate) fn listen(&self, page: &str) -> Events {
        let events = Events::default();
        self.pages.lock().unwrap().insert(page.to_owned(), Arc::clone(&events));
        events
    }

    pub(crate) fn forget(&self, page: &str) {
        self.pages.lock().unwrap().remove(page);
    }

    /// Returns the last lines that the browser printed.
    fn complaints(&self) -> String {
        let text = fs::read_to_string(&self.complaints).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        if last.is_empty() { last } else { format!(". It printed:\n{last}") }
    }
}

/// Returns the folder of the screenshots.
pub(crate) fn screenshots() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        |folder| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder),
    );
    let folder = target.join("view");
    fs::create_dir_all(&folder).unwrap();
    folder
}
