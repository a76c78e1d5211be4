//! The end of the viewer with its page: after a goodbye, after a browser that was killed, and not while a
//! machine sleeps.

use crate::data;
use crate::page::Page;
use crate::shown::{WORDS, view_set};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tfseek_view::{ViewOptions, Viewer, ViewerHandle};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(2);
/// Time for a page to come back, also on a busy machine.
const BACK: Duration = Duration::from_secs(10);
const NEVER: Duration = Duration::from_secs(1000);

/// A viewer that ends with its page after these times.
struct Ending {
    link: String,
    handle: ViewerHandle,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Ending {
    fn new(closed: Duration, lost: Duration) -> Ending {
        let folder = tempfile::tempdir().unwrap();
        let (set, _) = view_set(data::many(folder.path(), 100));
        let mut options = ViewOptions::default();
        options.port = Some(0);
        options.end_times = Some([closed, lost]);
        let viewer = Viewer::bind(vec![set], &options).unwrap();
        let (link, handle) = (viewer.url(), viewer.handle());
        let thread = Some(thread::spawn(move || viewer.serve()));
        Ending { link, handle, thread, _folder: folder }
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    fn end(&self) {
        let start = Instant::now();
        while !self.has_ended() {
            assert!(start.elapsed() < Duration::from_secs(600), "the viewer continues");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn page(&self, name: &str) -> Option<Page> {
        let page = Page::open(name)?;
        page.before_documents(WORDS);
        page.navigate(&self.link);
        page.wait("t.ids().includes(0)", "record 0");
        Some(page)
    }

    /// Sends a request with the token, and returns its connection after the head of the response.
    fn ask(&self, path: &str) -> TcpStream {
        let (origin, token) = self.link.split_once("/?t=").unwrap();
        let host = origin.strip_prefix("http://").unwrap();
        let port = host.rsplit_once(':').unwrap().1;
        let mut stream = TcpStream::connect(host).unwrap();
        let cookie = format!("Cookie: tfseek-{port}={token}");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n\r\n").unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&head));
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        stream
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_goodbye_ends_the_viewer_soon() {
    let viewer = Ending::new(SHORT, NEVER);
    let Some(page) = viewer.page("goodbye") else { return };
    page.finish();
    viewer.end();
}

#[test]
fn a_page_that_crashed_has_time_to_come_back() {
    let viewer = Ending::new(NEVER, BACK);
    let Some(page) = viewer.page("crash") else { return };
    page.expect("the page crashed");
    page.crash();
    page.reload_after_crash();
    page.wait("t.ids().includes(0)", "record 0 again");
    thread::sleep(BACK + LONG);
    assert!(!viewer.has_ended(), "the page has come back");
    page.crash();
    viewer.end();
    page.command("Page.navigate", json!({"url": "about:blank"}));
    page.finish();
}

#[test]
fn a_machine_that_sleeps_ends_nothing() {
    let viewer = Ending::new(SHORT, SHORT);
    // A client that holds its connection, and does nothing else.
    let held = viewer.ask("/api/hold?tab=1");
    thread::sleep(LONG);
    assert!(!viewer.has_ended(), "ended by sleep");
    drop(held);
    viewer.end();
}

#[test]
fn a_closed_connection_is_waited_for_unless_there_was_a_goodbye() {
    let viewer = Ending::new(SHORT, NEVER);
    let held = viewer.ask("/api/hold?tab=1");
    drop(held);
    thread::sleep(2 * SHORT);
    assert!(!viewer.has_ended(), "a lost connection counts as a goodbye");
    let held = viewer.ask("/api/hold?tab=1");
    viewer.ask("/api/close?tab=1");
    drop(held);
    viewer.end();
}

#[test]
fn tabs_in_the_background_end_nothing() {
    let viewer = Ending::new(SHORT, SHORT);
    let Some(page) = viewer.page("background") else { return };
    let front = page.beside("front");
    front.navigate("about:blank");
    front.command("Page.bringToFront", json!({}));
    page.command("Page.setWebLifecycleState", json!({"state": "frozen"}));
    thread::sleep(LONG);
    assert!(!viewer.has_ended(), "ended by a tab in the background");
    page.command("Page.setWebLifecycleState", json!({"state": "active"}));
    page.command("Page.bringToFront", json!({}));
    page.wait("t.ids().includes(0)", "record 0");
    front.finish();
    page.finish();
}

/// Browsers open six connections to a server. One tab holds one for all.
#[test]
fn many_tabs_share_one_connection() {
    let viewer = Ending::new(SHORT, BACK);
    let Some(first) = viewer.page("tab 0") else { return };
    let mut tabs: Vec<Page> = (1..9).map(|i| first.beside(&format!("tab {i}"))).collect();
    for tab in &tabs {
        tab.before_documents(WORDS);
        tab.navigate(viewer.link.split_once('?').unwrap().0);
        tab.wait("t.ids().includes(0)", "record 0");
    }
    // The tab with the connection is closed: another one takes over.
    first.finish();
    thread::sleep(BACK + LONG);
    assert!(!viewer.has_ended(), "ended although eight tabs are open");
    let last = tabs.pop().unwrap();
    tabs.into_iter().for_each(Page::finish);
    last.finish();
    viewer.end();
}
