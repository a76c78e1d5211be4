//! Records that would run something, pages of other sites, and viewers beside each other.

use crate::data::{self, HOSTILE};
use crate::page::Page;
use crate::shown::{Shown, view_set};
use crate::small::serve;
use tfseek::ExampleBuilder;
use tfseek_view::{ViewOptions, report};

/// A condition: nothing of a record was run or became an element.
const NOTHING_RAN: &str = "window.ran === undefined && ({}).value === undefined && !document.querySelector('main script, main [onerror], main [onload], main [onmouseover], [href^=\"javascript:\"], [src^=\"javascript:\"]')";

#[test]
fn a_hostile_record_runs_nothing() {
    for which in [0, 1] {
        let shown = Shown::new(|folder| vec![data::hostile(folder).remove(which)]);
        let Some(page) = shown.page(&format!("hostile {which}")) else { return };
        page.wait("t.ids().length == 6", "six records");
        page.check(NOTHING_RAN, "nothing to run in the grid");
        page.screenshot(&format!("hostile-{which}"));
        for view in ["table", "data"] {
            page.navigate(&shown.at(&format!("view={view}")));
            page.wait(&format!("t.view() == '{view}'"), view);
            page.eval("new Promise(done => setTimeout(done, 500))");
            page.check(NOTHING_RAN, "nothing to run");
        }
        for id in 0..6 {
            page.navigate(&shown.at(&format!("view=record&id={id}")));
            page.wait(&format!("t.record() == {id}"), "a record");
            page.check(NOTHING_RAN, "nothing to run in a record");
            for tab in ["tab-hex", "tab-tree"] {
                page.click(tab);
                page.eval("new Promise(done => setTimeout(done, 50))");
                page.check(NOTHING_RAN, "nothing to run in a tab");
            }
        }
        if which == 0 {
            for text in HOSTILE {
                let text = serde_json::to_string(text).unwrap();
                page.check(
                    &format!("document.querySelector('main').textContent.includes({text})"),
                    "the text as it is",
                );
            }
        }
        // The address comes from others too.
        for hash in [
            "view=__proto__&id=<img src=x onerror=alert(1)>",
            "view=record&id=1&roles={\"image\":\"javascript:alert(1)\"}",
            "roles={",
        ] {
            page.navigate("about:blank");
            page.navigate(&shown.at(hash));
            page.wait("t.view()", "an answer to a strange address");
            page.check(NOTHING_RAN, "nothing to run");
        }
        page.expect("status of 4");
        page.finish();
    }
}

#[test]
fn a_payload_that_is_a_document_is_not_opened() {
    let shown = Shown::new(|folder| vec![data::hostile(folder).remove(0)]);
    let Some(page) = shown.page("document") else { return };
    page.wait("t.ids().length == 6", "six records");
    let answer = page.eval(
        "fetch('/api/bytes/0?feature=image/encoded').then(a => [a.status, a.headers.get('content-type'), a.headers.get('content-disposition'), a.headers.get('x-content-type-options')])",
    );
    assert_eq!(answer[0], 200, "{answer}");
    assert_eq!(answer[1], "application/octet-stream", "{answer}");
    assert!(answer[2].as_str().unwrap_or_default().starts_with("attachment"), "{answer}");
    assert_eq!(answer[3], "nosniff", "{answer}");
    page.finish();
}

#[test]
fn without_the_token_the_page_asks_for_it() {
    let shown = Shown::new(|folder| data::tfds(folder, 20));
    let Some(page) = Page::open("token") else { return };
    page.expect("status of 403");
    page.before_documents(crate::shown::WORDS);
    page.navigate(&shown.at(""));
    page.wait("/token/i.test(document.body.innerText)", "words about the token");
    page.check("t.all('card').length == 0 && !document.body.innerText.includes('tfds-train')", "no data");
    page.all_manners("token");
    let refused = page.eval("Promise.all(['dataset', 'records?from=0&n=1', 'record/0', 'bytes/0?feature=image', 'json/0', 'nothing'].map(p => fetch('/api/' + p).then(a => a.status)))");
    assert_eq!(refused, serde_json::json!([403, 403, 403, 403, 403, 403]));
    page.navigate(&shown.link);
    page.wait("t.ids().length > 8", "the grid with the link");
    page.check(
        "!location.href.includes('t=') && !document.cookie",
        "no token in the address or a readable cookie",
    );
    page.finish();
}

#[test]
fn two_viewers_do_not_share_cookies() {
    let first = Shown::new(|folder| data::tfds(folder, 20));
    let second = Shown::new(|folder| data::detection(folder, 10));
    let Some(one) = first.page("one") else { return };
    one.wait("t.ids().length == 20", "the first set");
    let two = one.beside("two");
    two.before_documents(crate::shown::WORDS);
    two.navigate(&second.link);
    two.wait("t.ids().length == 20 && t.card(0).innerText.includes('salmon')", "the second set");
    for _ in 0..2 {
        one.reload();
        one.wait(
            "t.ids().length == 20 && !document.body.innerText.includes('salmon')",
            "the first set again",
        );
        two.reload();
        two.wait("t.card(0).innerText.includes('salmon')", "the second set again");
    }
    one.finish();
    two.finish();
}

#[test]
fn pages_of_other_origins_get_nothing() {
    let shown = Shown::new(|folder| data::tfds(folder, 20));
    let Some(page) = shown.page("origins") else { return };
    page.wait("t.ids().length == 20", "the set");
    // The browser has the cookie now. Another port is another origin of the same site, and `localhost` is
    // another site.
    let other = serve(|_| {
        (String::new(), "<!doctype html><title>other</title><link rel=icon href=\"data:,\"><body>".to_owned())
    });
    for words in ["CORS", "Failed to load resource", "frame", "ERR_BLOCKED", "Content Security Policy", "CSP"]
    {
        page.expect(words);
    }
    for (n, origin) in [other.clone(), other.replace("127.0.0.1", "localhost")].into_iter().enumerate() {
        page.navigate(&origin);
        let at = |path: &str| shown.origin.clone() + path;
        let read = page.text(&format!(
            "fetch('{}', {{credentials: 'include'}}).then(a => a.text(), e => 'refused')",
            at("/api/dataset")
        ));
        assert_eq!(read, "refused", "{origin}");
        let image = page.text(&format!(
            "new Promise(done => {{ const i = new Image(); i.onload = () => done('shown'); i.onerror = () => done('refused'); i.src = '{}'; }})",
            at("/api/bytes/0?feature=image")
        ));
        assert_eq!(image, "refused", "{origin}");
        let script = page.text(&format!(
            "new Promise(done => {{ const s = document.createElement('script'); s.onload = () => done('run'); s.onerror = () => done('refused'); s.src = '{}'; document.body.append(s); }})",
            at("/api/dataset")
        ));
        assert_eq!(script, "refused", "{origin}");
        page.eval(&format!(
            "new Promise(done => {{ const f = document.createElement('iframe'); f.onload = done; f.src = '{}'; document.body.append(f); setTimeout(done, 3000); }})",
            at("/")
        ));
        // The browser says that it does not open the page in a frame.
        page.wait_for_trouble("frame-ancestors", n + 1);
    }
    page.finish();
}

#[test]
fn a_link_from_another_site_opens_the_page() {
    let shown = Shown::new(|folder| data::tfds(folder, 20));
    let Some(page) = shown.page("link") else { return };
    page.wait("t.ids().length == 20", "the set");
    let link = shown.at("view=record&id=7");
    let other = serve(move |_| {
        (
            String::new(),
            format!(
                "<!doctype html><title>chat</title><link rel=icon href=\"data:,\"><body><a href='{link}'>record 7</a>"
            ),
        )
    });
    page.navigate(&other.replace("127.0.0.1", "localhost"));
    page.click_on("document.querySelector('a')", "the link");
    page.wait("window.t && t.record() == 7", "record 7");
    page.finish();
}

/// Controls of the direction of text are escaped, in values and in names, and an empty string is seen.
#[test]
fn directions_and_empty_strings_are_shown() {
    let text = "a\u{202e}gpj\u{2066}";
    let record = ExampleBuilder::new().bytes(&format!("n{text}"), [text]).bytes("none", [""]);
    let folder = tempfile::tempdir().unwrap();
    let paths = data::several(folder.path(), vec![record.encode().unwrap(); 9]);
    let shown = Shown::of(paths.clone());
    let Some(page) = shown.page_at("directions", "view=grid") else { return };
    let same = "!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText + [...document.querySelectorAll('*')].map(e => [e.title, e.ariaLabel, e.placeholder].join()).join())";
    for view in ["grid", "table", "record&id=3", "data"] {
        page.navigate(&shown.at(&format!("view={view}")));
        let words = "document.querySelector('main').innerText";
        page.wait(&format!("['a\\\\u{{202e}}gpj\\\\u{{2066}}', 'na\\\\u{{202e}}', '\"\"'].every(w => {words}.includes(w))"), view);
        page.check(same, "no direction");
        page.screenshot(&format!("directions-{view}"));
    }
    let (set, _) = view_set(paths);
    let html = report(set, None, &ViewOptions::default(), &|_| Ok(())).unwrap();
    assert!(html.contains("na\\u{202e}gpj") && html.contains("&quot;&quot;") && !html.contains('\u{202e}'));
    page.finish();
}
