//! A page of the browser, with the manners of a user: it waits for conditions, clicks, types, and looks at
//! what is painted.

use crate::devtools::{Browser, Events, LIMIT, browser, screenshots};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A page with cookies of its own.
///
/// A test ends with [`finish`](Page::finish), which fails if the page had an error or asked another host for
/// something.
pub(crate) struct Page {
    browser: &'static Browser,
    context: String,
    session: String,
    events: Events,
    /// Beginnings of URLs, e.g. `http://127.0.0.1:7717/`.
    hosts: Mutex<Vec<String>>,
    expected: Mutex<Vec<String>>,
    finished: AtomicBool,
    name: String,
}

impl Page {
    /// Opens a page for the test `name`. Returns none if there is no browser.
    pub(crate) fn open(name: &str) -> Option<Page> {
        let browser = browser()?;
        let context = browser.command(None, "Target.createBrowserContext", json!({}));
        Some(Page::open_in(browser, context["browserContextId"].as_str().unwrap(), name))
    }

    /// Opens another page with the cookies of this one.
    pub(crate) fn beside(&self, name: &str) -> Page {
        let page = Page::open_in(self.browser, &self.context, name);
        page.hosts.lock().unwrap().clone_from(&self.hosts.lock().unwrap());
        page
    }

    fn open_in(browser: &'static Browser, context: &str, name: &str) -> Page {
        let target = browser.command(
            None,
            "Target.createTarget",
            json!({"url": "about:blank", "browserContextId": context, "width": 1280, "height": 800, "newWindow": true}),
        );
        let attached = browser.command(
            None,
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let page = Page {
            browser,
            context: context.to_owned(),
            events: browser.listen(&session),
            session,
            hosts: Mutex::default(),
            expected: Mutex::default(),
            finished: AtomicBool::new(false),
            name: name.to_owned(),
        };
        for domain in ["Page", "Runtime", "Log", "Network", "Audits", "Inspector"] {
            page.command(&format!("{domain}.enable"), json!({}));
        }
        page.command("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        page.viewport(1280, 800);
        page
    }

    pub(crate) fn command(&self, method: &str, params: Value) -> Value {
        match self.browser.try_command(Some(&self.session), method, params) {
            Ok(result) => result,
            Err(error) => self.fail(&error),
        }
    }

    /// Ends the test with a message, the state of the page, and a screenshot.
    pub(crate) fn fail(&self, message: &str) -> ! {
        let mut report = format!("{}: {message}", self.name);
        let state = "JSON.stringify({url: location.href, ready: document.body?.dataset.ready, \
                     focus: document.activeElement?.outerHTML.slice(0, 200), text: document.body?.innerText.slice(0, 800)}, null, 1)";
        if let Ok(state) = self.try_eval(state) {
            let _ = write!(report, "\npage: {}", state.as_str().unwrap_or("?"));
        }
        for trouble in self.troubles() {
            let _ = write!(report, "\n{trouble}");
        }
        let shot =
            self.browser.try_command(Some(&self.session), "Page.captureScreenshot", json!({"format": "png"}));
        if let Ok(shot) = shot {
            let path = self.save(&shot, &format!("failed-{}", self.name));
            let _ = write!(report, "\nscreenshot: {path}");
        }
        panic!("{report}")
    }

    /// Names a host that the page may ask, e.g. `http://127.0.0.1:7717`.
    pub(crate) fn host(&self, origin: &str) {
        self.hosts.lock().unwrap().push(format!("{}/", origin.trim_end_matches('/')));
    }

    /// Names words of an error that the test causes.
    pub(crate) fn expect(&self, error: &str) {
        self.expected.lock().unwrap().push(error.to_owned());
    }

    /// Opens a URL, whose host the page may ask from now on, and waits until it is loaded.
    pub(crate) fn navigate(&self, url: &str) {
        let origin: Vec<&str> = url.splitn(4, '/').take(3).collect();
        if url.starts_with("http") && !self.hosts.lock().unwrap().iter().any(|host| url.starts_with(host)) {
            self.host(&origin.join("/"));
        }
        let result = self.command("Page.navigate", json!({"url": url}));
        if let Some(error) = result["errorText"].as_str() {
            self.fail(&format!("{url}: {error}"));
        }
        self.wait("document.readyState == 'complete'", &format!("{url} to load"));
    }

    pub(crate) fn reload(&self) {
        self.eval("window.notReloaded = true");
        self.command("Page.reload", json!({}));
        self.wait("!window.notReloaded && document.readyState == 'complete'", "the reload");
    }

    /// Ends the process of the page, as a browser that is killed does.
    pub(crate) fn crash(&self) {
        self.browser.send(Some(&self.session), "Page.crash", json!({}));
        self.wait_for_trouble("crashed", 1);
    }

    /// Loads the page anew after [`crash`](Page::crash).
    pub(crate) fn reload_after_crash(&self) {
        self.events.lock().unwrap().retain(|(method, _)| method != "Inspector.targetCrashed");
        self.command("Page.reload", json!({}));
        self.wait("document.readyState == 'complete'", "the reload");
    }

    /// Goes back by one entry of the history.
    pub(crate) fn back(&self) {
        self.eval("history.back()");
    }

    fn try_eval(&self, script: &str) -> Result<Value, String> {
        let params =
            json!({"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let mut answer = self.browser.try_command(Some(&self.session), "Runtime.evaluate", params)?;
        if answer["exceptionDetails"].is_null() {
            return Ok(answer["result"]["value"].take());
        }
        let thrown = &answer["exceptionDetails"];
        let text = thrown["exception"]["description"].as_str().or(thrown["text"].as_str());
        Err(text.unwrap_or("an exception").to_owned())
    }

    /// Returns the value of an expression, or of its promise.
    pub(crate) fn eval(&self, script: &str) -> Value {
        self.try_eval(script).unwrap_or_else(|error| self.fail(&format!("{script}: {error}")))
    }

    /// Returns the text of an expression.
    pub(crate) fn text(&self, script: &str) -> String {
        match self.eval(script) {
            Value::String(text) => text,
            other => self.fail(&format!("{script}: expected text, found {other}")),
        }
    }

    /// Returns the number of an expression.
    pub(crate) fn number(&self, script: &str) -> f64 {
        let value = self.eval(script);
        value.as_f64().unwrap_or_else(|| self.fail(&format!("{script}: expected a number, found {value}")))
    }

    /// Fails if an expression is not true.
    pub(crate) fn check(&self, script: &str, what: &str) {
        let value = self.eval(script);
        if value != true {
            self.fail(&format!("expected {what}, found {value} for {script}"));
        }
    }

    /// Waits until an expression, or its promise, is true. While it throws, it is not.
    pub(crate) fn wait(&self, condition: &str, what: &str) {
        let start = Instant::now();
        loop {
            let last = match self.try_eval(&format!("(async () => !!(await ({condition})))()")) {
                Ok(value) if value == true => return,
                Ok(value) => value.to_string(),
                Err(error) => error,
            };
            // After an exception, the rest of a page seldom comes.
            let limit = if self.has_thrown() { LIMIT / 10 } else { LIMIT };
            if start.elapsed() > limit {
                self.fail(&format!("waited {limit:?} for {what}: {condition} is {last}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the element with a hook, and for its being shown.
    pub(crate) fn see(&self, hook: &str) {
        self.wait(
            &format!("{}?.getClientRects().length > 0", element(hook)),
            &format!("`{hook}` to be shown"),
        );
    }

    /// Clicks the first element with a hook.
    pub(crate) fn click(&self, hook: &str) {
        self.see(hook);
        self.click_on(&element(hook), hook);
    }

    /// Clicks the middle of an element, which must not be covered by another.
    pub(crate) fn click_on(&self, element: &str, what: &str) {
        self.wait(
            &format!(
                "(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest', inline: 'nearest'}}); \
                 const r = e.getBoundingClientRect(); \
                 const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2); \
                 return r.width > 0 && !e.disabled && (e == top || e.contains(top) || e.labels && [...e.labels].includes(top)); }})()"
            ),
            &format!("`{what}` to be where a click hits it"),
        );
        let place = self.eval(&format!(
            "(() => {{ const r = {element}.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        self.click_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    }

    /// Clicks a point of the page, in CSS pixels.
    pub(crate) fn click_at(&self, x: f64, y: f64) {
        for (kind, button, count) in
            [("mouseMoved", "none", 0), ("mousePressed", "left", 1), ("mouseReleased", "left", 1)]
        {
            self.mouse(kind, x, y, button, count);
        }
    }

    /// Presses the left button at one point, moves, and releases it at another.
    pub(crate) fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from.0, from.1, "none", 0);
        self.mouse("mousePressed", from.0, from.1, "left", 1);
        for part in [0.25, 0.5, 0.75, 1.0] {
            self.mouse(
                "mouseMoved",
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
                "left",
                0,
            );
        }
        self.mouse("mouseReleased", to.0, to.1, "left", 1);
    }

    fn mouse(&self, kind: &str, x: f64, y: f64, button: &str, count: u32) {
        let buttons = u32::from(button == "left" && kind != "mouseReleased");
        self.command(
            "Input.dispatchMouseEvent",
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": count}),
        );
    }

    /// Turns the wheel by pixels over a point.
    pub(crate) fn wheel(&self, x: f64, y: f64, down: f64) {
        let params = json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": down});
        self.command("Input.dispatchMouseEvent", params);
    }

    /// Presses a key: a character, or a name such as `Enter`, with modifiers such as `Shift+Tab`.
    pub(crate) fn key(&self, key: &str) {
        let (modifiers, key) = match key.rsplit_once('+') {
            Some((modifiers, key)) if !key.is_empty() => (modifiers, key),
            _ => ("", key),
        };
        let mut bits = 0;
        for (bit, name) in [(1, "Alt"), (2, "Control"), (4, "Meta"), (8, "Shift")] {
            bits |= if modifiers.contains(name) { bit } else { 0 };
        }
        let (code, number, text) = match key {
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            "Tab" => ("Tab", 9, ""),
            "Backspace" => ("Backspace", 8, ""),
            "Home" => ("Home", 36, ""),
            "End" => ("End", 35, ""),
            "PageUp" => ("PageUp", 33, ""),
            "PageDown" => ("PageDown", 34, ""),
            "ArrowLeft" => ("ArrowLeft", 37, ""),
            "ArrowUp" => ("ArrowUp", 38, ""),
            "ArrowRight" => ("ArrowRight", 39, ""),
            "ArrowDown" => ("ArrowDown", 40, ""),
            " " => ("Space", 32, " "),
            character => {
                assert_eq!(character.chars().count(), 1, "no key is named {character:?}");
                let upper = character.to_ascii_uppercase().bytes().next().unwrap();
                ("", if upper.is_ascii_alphanumeric() { i32::from(upper) } else { 0 }, character)
            }
        };
        let text = if bits & 7 == 0 { text } else { "" };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for (kind, text) in [(down, text), ("keyUp", "")] {
            self.command(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "code": code, "text": text, "windowsVirtualKeyCode": number,
                       "modifiers": bits}),
            );
        }
    }

    /// Writes text into the element that has the focus.
    pub(crate) fn insert(&self, text: &str) {
        self.command("Input.insertText", json!({"text": text}));
    }

    /// Replaces the text of an input.
    pub(crate) fn fill(&self, hook: &str, text: &str) {
        self.click(hook);
        self.wait(
            &format!("{}.matches(':focus, :focus-within')", element(hook)),
            &format!("the focus on `{hook}`"),
        );
        self.eval("document.activeElement.select?.()");
        self.key("Backspace");
        self.insert(text);
    }

    pub(crate) fn viewport(&self, width: u32, height: u32) {
        self.command(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
    }

    /// Selects the colour scheme of the system: `dark` or `light`.
    pub(crate) fn scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Runs a script before those of each document from now on.
    pub(crate) fn before_documents(&self, script: &str) {
        self.command("Page.addScriptToEvaluateOnNewDocument", json!({"source": script}));
    }

    /// Writes a screenshot to `target/view/NAME.png`.
    pub(crate) fn screenshot(&self, name: &str) {
        let shot = self.command("Page.captureScreenshot", json!({"format": "png"}));
        self.save(&shot, name);
    }

    fn save(&self, shot: &Value, name: &str) -> String {
        let path =
            screenshots().join(format!("{}.png", name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")));
        std::fs::write(&path, base64(shot["data"].as_str().unwrap_or_default())).unwrap();
        path.display().to_string()
    }

    /// Runs `copy`, which copies something, and returns the text of the clipboard.
    pub(crate) fn copied(&self, copy: impl FnOnce()) -> String {
        // The browser has one clipboard for all tests.
        static CLIPBOARD: Mutex<()> = Mutex::new(());
        let _clipboard: MutexGuard<()> = CLIPBOARD.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = self.text("location.origin");
        self.browser.command(
            None,
            "Browser.grantPermissions",
            json!({"origin": origin, "browserContextId": self.context, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}),
        );
        self.eval("navigator.clipboard.writeText('nothing was copied')");
        copy();
        self.wait(
            "navigator.clipboard.readText().then(text => text != 'nothing was copied')",
            "a copied text",
        );
        self.text("navigator.clipboard.readText()")
    }

    /// Returns the elements of the accessibility tree: role, name and whether the focus can reach it.
    pub(crate) fn accessible(&self) -> Vec<(String, String, bool)> {
        let tree = self.command("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true);
        nodes
            .map(|node| {
                let text = |field: &str| node[field]["value"].as_str().unwrap_or_default().to_owned();
                let properties = node["properties"].as_array().into_iter().flatten();
                let focusable =
                    |property: &&Value| property["name"] == "focusable" && property["value"]["value"] == true;
                (text("role"), text("name"), properties.filter(focusable).count() > 0)
            })
            .collect()
    }

    /// Returns the URLs that the page has asked for so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let sent = events.iter().filter(|(method, _)| method == "Network.requestWillBeSent");
        sent.filter_map(|(_, event)| event["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    fn has_thrown(&self) -> bool {
        self.events.lock().unwrap().iter().any(|(method, _)| method == "Runtime.exceptionThrown")
    }

    /// Waits for the `n`-th error with some words, which the test causes.
    pub(crate) fn wait_for_trouble(&self, words: &str, n: usize) {
        let start = Instant::now();
        loop {
            let events = self.events.lock().unwrap();
            let troubles = events.iter().filter_map(|(method, event)| trouble(method, event, &[]));
            if troubles.filter(|trouble| trouble.contains(words)).count() >= n {
                return;
            }
            drop(events);
            if start.elapsed() > LIMIT {
                self.fail(&format!("waited {LIMIT:?} for error {n} with {words:?}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns one line for each error so far that the test does not expect.
    fn troubles(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let (hosts, expected) = (self.hosts.lock().unwrap(), self.expected.lock().unwrap());
        let troubles = events.iter().filter_map(|(method, event)| trouble(method, event, &hosts));
        troubles.filter(|trouble| !expected.iter().any(|words| trouble.contains(words))).collect()
    }

    /// Ends the test: there was no exception, no console error, no CSP report, no dialog and no request to
    /// another host.
    pub(crate) fn finish(self) {
        self.settle();
        let troubles = self.troubles();
        self.finished.store(true, Relaxed);
        assert!(troubles.is_empty(), "{}:\n{}", self.name, troubles.join("\n"));
    }

    /// Fails as [`finish`](Page::finish) does, and continues.
    pub(crate) fn no_trouble(&self) {
        self.settle();
        if !self.troubles().is_empty() {
            self.fail("expected no trouble");
        }
    }

    /// Waits until events of what has happened so far have arrived: the answer to a command comes after them.
    fn settle(&self) {
        self.eval("new Promise(done => setTimeout(done, 20))");
        self.eval("0");
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.browser.forget(&self.session);
        self.browser.send(Some(&self.session), "Page.close", json!({}));
        assert!(
            self.finished.load(Relaxed) || thread::panicking(),
            "{}: the test does not end with `finish`",
            self.name
        );
    }
}

/// Returns an expression for the first element with a hook of the page.
pub(crate) fn element(hook: &str) -> String {
    format!("document.querySelector('[data-test=\"{hook}\"]')")
}

/// Returns the line of an event that no good page causes.
fn trouble(method: &str, event: &Value, hosts: &[String]) -> Option<String> {
    match method {
        "Runtime.exceptionThrown" => {
            let details = &event["exceptionDetails"];
            let text = details["exception"]["description"].as_str().or(details["text"].as_str());
            Some(format!("exception: {}", text.unwrap_or("?")))
        }
        "Runtime.consoleAPICalled" if event["type"] == "error" || event["type"] == "assert" => {
            Some(format!("console error: {}", event["args"]))
        }
        "Log.entryAdded" if event["entry"]["level"] == "error" => Some(format!(
            "log: {} {}",
            event["entry"]["text"],
            event["entry"]["url"].as_str().unwrap_or_default()
        )),
        "Audits.issueAdded" if event["issue"]["code"] == "ContentSecurityPolicyIssue" => {
            Some(format!("CSP: {}", event["issue"]["details"]["contentSecurityPolicyIssueDetails"]))
        }
        "Network.requestWillBeSent" => {
            let url = event["request"]["url"].as_str().unwrap_or_default();
            let own = ["data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme));
            (!own && !hosts.iter().any(|host| url.starts_with(host)))
                .then(|| format!("foreign request: {url}"))
        }
        "Page.javascriptDialogOpening" => Some(format!("dialog: {}", event["message"])),
        "Inspector.targetCrashed" => Some("the page crashed".to_owned()),
        "Page.windowOpen" => Some(format!("window: {}", event["url"])),
        "Page.downloadWillBegin" => Some(format!("download: {}", event["url"])),
        _ => None,
    }
}

/// Decodes base64.
fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in text.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
