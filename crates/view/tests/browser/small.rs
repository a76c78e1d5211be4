//! The harness itself, on small pages of the test.

use crate::page::{Page, element};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

/// Serves pages from a thread. `answer` gives the headers and the body of a path. Returns the origin.
pub(crate) fn serve(answer: impl Fn(&str) -> (String, String) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
            let (headers, body) = answer(&path);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    origin
}

/// Returns a document with an icon, so that the browser does not ask for one.
fn document(body: &str) -> String {
    format!("<!doctype html><html lang=en><title>t</title><link rel=icon href=\"data:,\"><body>{body}")
}

fn page_of(body: &'static str) -> String {
    serve(move |_| (String::new(), document(body)))
}

/// Opens a page on a document, runs `act`, and returns the errors that `finish` reports.
fn troubles(name: &str, body: &'static str, act: impl FnOnce(&Page)) -> Option<String> {
    let page = Page::open(name)?;
    page.navigate(&page_of(body));
    act(&page);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page.finish()));
    Some(ended.err().map_or_else(String::new, |error| *error.downcast::<String>().unwrap()))
}

#[test]
fn clicks_keys_and_text_reach_the_page() {
    let Some(page) = Page::open("small") else { return };
    page.navigate(&page_of(
        "<button data-test=one onclick=\"this.textContent = 'clicked'\">click</button>\
         <input data-test=two value=old onchange=\"window.changed = this.value\">\
         <p id=keys></p><script>onkeydown = e => keys.textContent += `${e.shiftKey ? 'S-' : ''}${e.key} `</script>",
    ));
    page.click("one");
    page.wait(&format!("{}.textContent == 'clicked'", element("one")), "the click");
    page.fill("two", "new text");
    page.key("Enter");
    page.wait("window.changed == 'new text'", "the change");
    page.eval("document.activeElement.blur()");
    page.eval("keys.textContent = ''");
    for key in ["j", "?", "/", "Escape", "ArrowDown", "Shift+Tab", "7", "+"] {
        page.key(key);
    }
    assert_eq!(page.text("keys.textContent"), "j ? / Escape ArrowDown S-Tab 7 + ");
    assert_eq!(page.copied(|| drop(page.eval("navigator.clipboard.writeText('4112')"))), "4112");
    let accessible = page.accessible();
    assert!(
        accessible.iter().any(|(role, name, focus)| role == "button" && name == "clicked" && *focus),
        "{accessible:?}"
    );
    page.screenshot("harness");
    page.finish();
}

#[test]
fn the_colour_scheme_the_viewport_and_the_history_are_those_asked_for() {
    let Some(page) = Page::open("scheme") else { return };
    let origin = page_of("<a href=#two>two</a>");
    page.navigate(&origin);
    for scheme in ["dark", "light"] {
        page.scheme(scheme);
        page.check(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"), scheme);
    }
    page.viewport(360, 640);
    assert_eq!(page.number("innerWidth"), 360.0);
    page.click_on("document.querySelector('a')", "a link");
    page.wait("location.hash == '#two'", "the link");
    page.back();
    page.wait("location.hash == ''", "the way back");
    page.reload();
    assert_eq!(page.requests().iter().filter(|url| url.starts_with(&origin)).count(), 2);
    page.finish();
}

#[test]
fn the_wheel_and_drags_reach_the_page_and_scripts_run_before_its_own() {
    let Some(page) = Page::open("wheel") else { return };
    page.before_documents("window.first = 1");
    page.navigate(&page_of(
        "<script>window.seen = first + 1; window.moves = []; onwheel = e => window.wheel = e.deltaY;\
         for (const kind of ['pointerdown', 'pointermove', 'pointerup']) addEventListener(kind, e => moves.push(`${kind} ${e.x},${e.y}`))</script>",
    ));
    page.check("seen == 2", "the script to run first");
    page.wheel(100.0, 100.0, 240.0);
    page.wait("window.wheel == 240", "the wheel");
    page.drag((10.0, 10.0), (50.0, 90.0));
    page.wait("moves.at(-1) == 'pointerup 50,90'", "the drag");
    page.check(
        "moves.includes('pointerdown 10,10') && moves.includes('pointermove 30,50')",
        "the path of the drag",
    );
    page.no_trouble();
    page.finish();
}

#[test]
fn two_pages_have_their_own_cookies() {
    let (Some(first), Some(second)) = (Page::open("first"), Page::open("second")) else { return };
    let origin = page_of("");
    first.navigate(&origin);
    second.navigate(&origin);
    first.eval("document.cookie = 'a=1'");
    assert_eq!(first.text("document.cookie"), "a=1");
    assert_eq!(second.text("document.cookie"), "");
    let third = first.beside("third");
    third.navigate(&origin);
    assert_eq!(third.text("document.cookie"), "a=1");
    first.finish();
    second.finish();
    third.finish();
}

#[test]
fn finish_reports_each_kind_of_trouble() {
    const CASES: [(&str, &str, &str); 5] = [
        ("exception", "<script>setTimeout(() => missing())</script>", "missing is not defined"),
        ("rejection", "<script>Promise.reject(new Error('lost'))</script>", "lost"),
        ("console", "<script>console.error('bad', 7)</script>", "console error"),
        ("foreign", "<img alt='' src=http://127.0.0.2:9/x.png>", "foreign request: http://127.0.0.2:9/x.png"),
        ("dialog", "<script>setTimeout(() => alert('hello'))</script>", "dialog: \"hello\""),
    ];
    for (name, body, expected) in CASES {
        let Some(found) = troubles(name, body, |_| ()) else { return };
        assert!(found.contains(expected), "{name}: {found:?}");
    }
    assert_eq!(troubles("fine", "<p>fine", |_| ()).unwrap(), "");
    let forgiven = |page: &Page| page.expect("bad");
    assert_eq!(troubles("expected", "<script>console.error('bad')</script>", forgiven).unwrap(), "");
}

#[test]
fn finish_reports_what_the_policy_forbids() {
    let Some(page) = Page::open("policy") else { return };
    let policy = "Content-Security-Policy: default-src 'none'; connect-src 'self'\r\n";
    page.navigate(&serve(|_| (policy.to_owned(), document("<p style='color: red' onclick=x()>"))));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page.finish()));
    let error = ended.unwrap_err().downcast::<String>().unwrap();
    assert!(error.contains("CSP: ") && error.contains("style-src"), "{error}");
}

#[test]
fn a_covered_element_cannot_be_clicked_and_a_missing_one_is_named() {
    let Some(page) = Page::open("covered") else { return };
    page.navigate(&page_of("<button data-test=under>b</button>"));
    page.check("document.elementFromPoint(1, 1) != null", "an element");
    let missing =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page.check("1 == 2", "one to be two")));
    let error = missing.unwrap_err().downcast::<String>().unwrap();
    assert!(error.starts_with("covered: expected one to be two, found false for 1 == 2\npage: {"), "{error}");
    page.finish();
}
