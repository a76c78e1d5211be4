//! Ways through the page: values as conditions, roles, training steps, the token, sounds, and a server that
//! has ended.

use crate::data;
use crate::page::Page;
use crate::shown::{Shown, WORDS, view_set};
use std::thread;
use tfseek::example::ExampleBuilder;
use tfseek_view::{ViewOptions, Viewer};

#[test]
fn a_value_leads_to_the_records_that_have_it() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page_at("value", "view=record&id=6") else { return };
    page.wait("t.record() == 6", "record 6");
    page.click_on(
        "document.querySelector('[data-feature=\"image/class/text\"] a.value')",
        "the class of the record",
    );
    page.wait("t.ids().length > 8 && t.ids().every(id => id % 4 == 2)", "the records of that class");
    page.wait("/^30 matches/.test(t.text('hits'))", "30 matches");
    page.key("Enter");
    page.wait("t.record() == 2", "the first match");
    page.key("j");
    page.wait("t.record() == 6", "the next match");
    page.key("j");
    page.wait("t.record() == 10 && t.text('nth') == '3 of 30'", "the match after it");
    page.key("Escape");
    page.wait("t.ids()[0] == 2 && t.card(10).ariaSelected == 'true'", "its card among the matches");
    page.navigate(&shown.at("view=record&id=7&where=image/class/label==1"));
    page.wait("t.text('nth') == 'not one of the 30'", "words about another record");
    page.finish();
}

#[test]
fn other_roles_are_chosen_in_a_dialog_and_kept_in_the_address() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page("roles") else { return };
    page.wait("t.card(0)?.innerText.includes('salmon roll')", "captions with classes");
    page.click("roles");
    page.wait("document.querySelector('dialog[open]')", "the dialog");
    page.all_manners("roles");
    page.screenshot("roles");
    let choose = |label: &str, value: &str| {
        page.eval(&format!(
            "(() => {{ const field = [...document.querySelectorAll('dialog label')].find(l => l.textContent.startsWith('{label}')).querySelector('select'); \
             field.value = [...field.options].find(o => o.text == '{value}').value; field.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        ));
    };
    choose("Label", "image/filename");
    choose("Encoded image", "image/segmentation/class/encoded");
    choose("Boxes", "none");
    let use_them =
        || page.click_on("document.querySelector('dialog button.primary')", "the button of the dialog");
    for (typed, words) in [
        ("{", "Expected JSON"),
        ("[1]", "Expected an object of roles, found [1]"),
        (r#"{"picture": "x"}"#, r#"found "picture""#),
        (r#"{"mask": "x"}"#, "mask: expected a list of names of features, found"),
        (r#"{"rate": "nothing"}"#, r#"rate: expected the name of a feature, found "nothing""#),
    ] {
        page.fill("roles-json", typed);
        use_them();
        page.wait(&format!("t.text('roles-error').includes({})", serde_json::json!(words)), words);
    }
    page.check("!t.state('roles')", "no roles yet");
    page.screenshot("roles-error");
    page.fill("roles-json", r#"{"rate": 8000, "mask": []}"#);
    use_them();
    page.wait("t.state('roles')?.includes('image/filename')", "the roles in the address");
    page.check("(({ rate, mask, boxes }) => rate === 8000 && mask.length === 0 && boxes === null)(JSON.parse(t.state('roles')))", "the other roles, and no boxes");
    page.wait(
        "t.card(0)?.querySelector('.card-label, [data-test=caption]').innerText.includes('photo 0.png')",
        "other captions",
    );
    page.wait(
        "t.all('card-image').every(t.painted) && t.card(0).querySelector('img').src.includes('segmentation')",
        "other images",
    );
    page.reload();
    page.wait("t.card(0)?.innerText.includes('photo 0.png') && t.card(0).querySelector('img').src.includes('segmentation')", "the same after a reload");
    page.finish();
}

#[test]
fn a_training_step_shows_the_records_of_its_batch() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page_at("batch", "view=step&seed=7&batch=16") else { return };
    let expected = |step: u32| {
        page.eval(&format!("fetch('/api/step?batch=16&seed=7&epoch=0&step={step}').then(a => a.json()).then(a => a.ids.join())"))
    };
    let cards =
        "[...document.querySelectorAll('[data-test=grid] [data-test=card]')].map(c => c.dataset.id).join()";
    let first = expected(0).as_str().unwrap().to_owned();
    page.wait(&format!("{cards} == '{first}'"), "the records of step 0");
    page.click("next");
    let second = expected(1).as_str().unwrap().to_owned();
    assert_ne!(first, second);
    page.wait(&format!("{cards} == '{second}' && t.state('step') == '1'"), "the records of step 1");
    page.wait("t.all('card').every(t.painted)", "their images");
    let command = page.copied(|| page.click("copy-command"));
    assert!(
        command.starts_with("tfseek order ") && command.contains('7') && command.contains("16"),
        "{command}"
    );
    page.back();
    page.wait(&format!("{cards} == '{first}'"), "step 0 after the way back");
    page.click("card");
    page.wait(&format!("t.record() == {}", first.split(',').next().unwrap()), "its first record");
    page.key("j");
    page.key("Escape");
    page.wait(&format!("t.view() == 'step' && {cards} == '{first}'"), "the step after Escape");
    page.finish();
}

#[test]
fn a_training_step_shows_its_pictures_as_they_are_fed_or_why_it_cannot() {
    let record = |i: u32| {
        let picture = data::image(i, 40, 40);
        // Cut short, no picture, and absent.
        let bytes = [&picture[..], &picture[..60], b"no picture"];
        let record = ExampleBuilder::new().int64("label", [i]);
        let record =
            if i < 8 { record.bytes("image", [bytes[i.saturating_sub(5) as usize]]) } else { record };
        record.encode().unwrap()
    };
    let schema = r#"{"features": {"image": {"type": "image", "size": [30, 20], "channels": 3, "crop": "random_resized", "flip": 0.5,
        "jitter": [["hue", 0.2]], "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2], "dtype": "float32", "layout": "chw"}}}"#;
    let shown = Shown::fed((0..9).map(record), schema);
    let Some(page) = shown.page_at("fed", "view=step&batch=9&shuffle=none&last=short") else { return };
    page.expect("status of 422");
    let sizes = "t.all('fed').map(i => [i.naturalWidth, i.naturalHeight].join('x')).join()";
    page.wait(
        &format!("{sizes} == '{}' && t.all('fed').every(t.painted)", ["20x30"; 6].join(",")),
        "six pictures",
    );
    let whys = ["the data end before all pixels", "found a text", "found no such feature"];
    let listed = "[...document.querySelectorAll('.batch li > .error')].map(e => e.innerText)";
    page.wait(&format!("{listed}.length == 3"), "three reasons");
    for (i, why) in whys.into_iter().enumerate() {
        assert_eq!(page.eval(&format!("{listed}[{i}].includes('{why}')")).as_bool(), Some(true), "{why}");
    }
    page.screenshot("fed");
    page.all_manners("fed");
    // The next epoch draws others.
    let drawn = page.eval("t.one('fed').src");
    page.navigate(&shown.at("view=step&batch=9&shuffle=none&last=short&epoch=1"));
    page.wait(&format!("t.one('fed') && t.one('fed').src != {drawn}"), "other draws");
    page.finish();
}

#[test]
fn the_token_can_be_typed_and_the_page_that_was_asked_for_opens() {
    let shown = Shown::new(|folder| data::tfds(folder, 20));
    let Some(page) = Page::open("typed") else { return };
    page.expect("status of 403");
    page.before_documents(WORDS);
    page.navigate(&shown.at("view=record&id=7"));
    page.see("token");
    page.fill("token", "not the token");
    page.key("Enter");
    page.wait("t.input('token')?.value == ''", "the prompt for the token again");
    page.fill("token", shown.link.split_once("t=").unwrap().1);
    page.key("Enter");
    page.wait("t.record() == 7", "record 7");
    page.check("!location.search && !document.cookie", "no token in the address or a readable cookie");
    page.finish();
}

#[test]
fn sounds_are_played() {
    let samples = Shown::new(|folder| vec![data::audio(folder).remove(1)]);
    let half = "t.sound()?.readyState >= 1 && Math.abs(t.sound().duration - 0.5) < 0.01";
    let Some(page) = samples.page_at("samples", "view=record&id=1") else { return };
    page.wait(half, "half a second of samples with a rate");
    page.finish();
    let shown = Shown::new(data::audio);
    let Some(page) = shown.page_at("played", "view=record&id=1") else { return };
    page.wait(half, "half a second of sound");
    page.screenshot("audio");
    page.check("t.sound().getBoundingClientRect().width >= 200", "a player of some width");
    page.eval("t.sound().currentTime = 0.3");
    page.wait("!t.sound().seeking && Math.abs(t.sound().currentTime - 0.3) < 0.05", "a place in the sound");
    page.eval("t.sound().play()");
    page.wait("t.sound().currentTime > 0.35 || t.sound().ended", "the sound to play");
    page.finish();
}

#[test]
fn a_later_viewer_on_the_same_port_shows_its_own_images() {
    let folder = tempfile::tempdir().unwrap();
    let image = |name: &str, width: u32| {
        let inner = folder.path().join(name);
        std::fs::create_dir(&inner).unwrap();
        let record = ExampleBuilder::new().bytes("image", [data::image(1, width, 40)]).encode().unwrap();
        view_set(data::one(&inner, record)).0
    };
    let (mut port, mut page): (u16, Option<Page>) = (0, None);
    for (name, width) in [("a", 64), ("b", 96)] {
        let mut options = ViewOptions::default();
        options.port = Some(port);
        let viewer = Viewer::bind(vec![image(name, width)], &options).unwrap();
        port = viewer.address().port();
        let (link, handle) = (viewer.url(), viewer.handle());
        let serving = thread::spawn(move || viewer.serve());
        let open = page.take().or_else(|| Page::open("same port"));
        let Some(open) = open else { return handle.stop() };
        open.before_documents(WORDS);
        open.navigate(&link);
        open.wait(
            &format!("t.all('card-image').some(image => image.naturalWidth == {width})"),
            "the image of this set",
        );
        open.navigate("about:blank");
        page = Some(open);
        handle.stop();
        serving.join().unwrap();
    }
    page.unwrap().finish();
}

/// The browser makes the video, so it has a decoder for it.
const RECORDER: &str = "(async () => { const canvas = document.createElement('canvas'); canvas.width = 160; canvas.height = 120; \
    const pen = canvas.getContext('2d'); const type = 'video/webm;codecs=vp8'; \
    if (!window.MediaRecorder || !MediaRecorder.isTypeSupported(type)) return ''; \
    const parts = []; const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: type }); \
    recorder.ondataavailable = event => parts.push(event.data); const end = new Promise(done => recorder.onstop = done); \
    recorder.start(); \
    for (let k = 0; k < 20; k++) { pen.fillStyle = `rgb(${k * 12}, 80, 160)`; pen.fillRect(0, 0, 160, 120); \
        await new Promise(done => setTimeout(done, 40)); } \
    recorder.stop(); await end; const bytes = new Uint8Array(await new Blob(parts).arrayBuffer()); \
    return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join(''); })()";

#[test]
fn videos_are_played() {
    let shown = Shown::new(|folder| data::many(folder, 1));
    let Some(page) = shown.page("recorder") else { return };
    let hex = page.text(RECORDER);
    page.finish();
    if hex.is_empty() {
        tfseek_testkit::skipped("a browser that makes videos");
        return;
    }
    let byte = |k: usize| u8::from_str_radix(&hex[k..k + 2], 16).unwrap();
    let video: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let record = ExampleBuilder::new().bytes("clip", [video]).encode().unwrap();
    let shown = Shown::new(|folder| data::one(folder, record));
    let Some(page) = shown.page_at("video", "view=record&id=0") else { return };
    page.see("video");
    page.wait("document.querySelector('video').videoWidth == 160", "the first frame");
    page.eval("document.querySelector('video').play()");
    page.wait("document.querySelector('video').currentTime > 0.2", "the video to play");
    page.screenshot("video");
    page.finish();
}

#[test]
fn a_server_that_has_ended_is_an_error_in_words() {
    let shown = Shown::new(|folder| data::many(folder, 10_000));
    let Some(page) = shown.page_at("ended", "view=grid") else { return };
    page.wait("t.ids().includes(0)", "record 0");
    page.expect("ERR_CONNECTION_REFUSED");
    drop(shown);
    page.eval("location.hash = 'view=record&id=9000'");
    page.wait("/does not answer/.test(document.body.innerText)", "words about the server");
    page.screenshot("ended");
    page.finish();
}

#[test]
fn escape_leads_back_to_the_place_in_the_list() {
    let shown = Shown::new(|folder| data::many(folder, 10_000));
    let Some(page) = shown.page_at("back", "view=table&at=5000") else { return };
    page.wait("t.ids().includes(5003)", "record 5003");
    page.click_on("t.card(5003).querySelector('a')", "record 5003");
    for id in [5003, 5004] {
        page.wait(&format!("t.record() == {id} && t.text('nth') == ''"), "a record of all");
        page.key("j");
    }
    page.wait("t.record() == 5005", "record 5005");
    page.key("Escape");
    page.wait("t.ids()[0] == 5000 && t.card(5005).ariaSelected == 'true'", "the rows, and the record");
    for _ in 0..60 {
        page.key("j");
    }
    page.key("Enter");
    page.wait("t.record() == 5065", "a record below");
    page.key("Escape");
    page.wait("t.card(5065)?.ariaSelected == 'true'", "its row");
    // From an address without a place.
    page.navigate("about:blank");
    page.navigate(&shown.at("view=record&id=777"));
    page.wait("t.record() == 777", "record 777");
    page.key("Escape");
    page.wait("t.card(777)?.ariaSelected == 'true'", "the list around it");
    page.finish();
}

#[test]
fn a_condition_that_cannot_be_is_no_command() {
    let shown = Shown::new(|folder| data::many(folder, 20));
    let Some(page) = shown.page_at("no-command", "view=table&where=label==3") else { return };
    page.wait("/^2 matches/.test(t.text('hits')) && t.one('copy-command')", "a command");
    for view in ["table", "data"] {
        page.expect("status of 400");
        page.navigate(&shown.at(&format!("view={view}&where=label == ")));
        let words = if view == "table" { "t.one('where-error')" } else { "t.one('error')" };
        page.wait(&format!("t.view() == '{view}' && {words} && !t.one('copy-command')"), "no command");
    }
    page.finish();
}
