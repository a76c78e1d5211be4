//! The page of an episode: its films, curves, flags and texts under one cursor.

use crate::data;
use crate::shown::Shown;
use std::path::Path;

/// The step at the cursor, by the text beside the slider.
const STEP: &str = "Number(t.text('place').match(/step (\\d+) of/)[1])";

#[test]
fn films_curves_and_texts_follow_one_cursor() {
    let shown = Shown::new(data::episodes);
    let Some(page) = shown.page_at("episode", "view=episode&id=0&step=12") else { return };
    page.wait("t.view() == 'episode' && t.text('episode') == 'Episode 0'", "episode 0");
    page.check(&format!("{STEP} == 12"), "the step of the address");
    page.wait(
        "t.all('camera').length == 2 && t.all('camera').every(t.painted)",
        "the pictures at the cursor",
    );
    page.check(
        "t.all('camera')[0].src.endsWith('feature=steps%2Fobservation%2Fimage&value=12')",
        "their steps",
    );
    page.wait("t.one('film').querySelectorAll('.current img').length == 2", "the cursor in both films");
    page.wait(
        "[...t.one('film').querySelectorAll('.current img')].every(t.painted)",
        "pictures of the films",
    );
    // Only the pictures in view are in the page.
    page.check("t.one('film').querySelectorAll('img').length < 2 * 25", "few of 80 pictures");

    // Seven dimensions with their values; what is the same at all steps has no curve, and what is too wide
    // none.
    page.wait("t.all('curve').length == 2", "curves of actions and of rewards");
    page.check(
        "t.all('about').map(p => p.innerText).join() == 'joints <b>, gripper last'",
        "what the data set says of them",
    );
    page.wait("t.one('legend')?.innerText.includes('12.6')", "the values at the cursor");
    page.check("t.all('lines')[0].querySelectorAll('path.line:not(.dots)').length == 7", "seven lines");
    page.check("new Set([...t.all('lines')[0].querySelectorAll('path.line:not(.dots)')].map(p => getComputedStyle(p).stroke + getComputedStyle(p).strokeDasharray)).size == 7", "seven looks");
    page.check(
        "/discount\\s+1/.test(t.text('constants')) && !t.text('constants').includes('reward')",
        "the discount",
    );
    page.check(
        "document.querySelector('main').innerText.includes('embedding')",
        "the name of what is not drawn",
    );
    page.check("t.all('marks').map(m => m.ariaLabel).join() == 'is_first: 1 step,is_last: 1 step'", "flags");
    page.check("t.text('text') == 'open the drawer' && t.text('flags') == ''", "the instruction");
    page.screenshot("episode");

    page.key("ArrowRight");
    page.wait(&format!("{STEP} == 13"), "the next step");
    page.wait("t.state('step') == '13'", "its number in the address");
    page.key("End");
    page.wait(&format!("{STEP} == 39 && t.text('flags') == 'is_last'"), "the last step");
    page.check("t.text('text') == 'close <b>it</b>'", "the later instruction, as text");
    page.wait(
        "[...t.one('film').querySelectorAll('.current img')].filter(t.painted).length == 2",
        "the end of the films",
    );
    page.key("PageUp");
    page.wait(&format!("{STEP} == 29"), "ten steps before");
    page.key("Home");
    page.wait(&format!("{STEP} == 0 && t.text('flags') == 'is_first'"), "the first step");
    page.wait("t.state('step') == null", "an address without a step");
    page.fill("goto-step", "17");
    page.key("Enter");
    page.wait(&format!("{STEP} == 17 && t.state('step') == '17'"), "step 17");
    page.fill("goto-step", "40");
    page.key("Enter");
    page.check("!t.one('goto-step').checkValidity()", "a refused step");
    page.eval("document.activeElement.blur()");

    // A click on a film, and a drag over the curves.
    page.eval("t.one('film').scrollLeft = 0");
    page.wait("t.one('film').querySelector('[data-step=\"2\"] img')", "the beginning of the film");
    page.click_on("t.one('film').querySelector('[data-step=\"2\"]')", "step 2 of the film");
    page.wait(&format!("{STEP} == 2"), "the clicked step");
    let at = |part: f64| {
        let script = format!(
            "(() => {{ t.all('lines')[0].scrollIntoView({{ block: 'center' }}); const b = t.all('lines')[0].getBoundingClientRect(); return [b.left + b.width * {part}, b.top + 20]; }})()"
        );
        let point = page.eval(&script);
        (point[0].as_f64().unwrap(), point[1].as_f64().unwrap())
    };
    page.drag(at(0.1), at(0.5));
    page.wait(&format!("Math.abs({STEP} - 20) <= 1"), "the middle by a drag");
    page.wait(&format!("Number(t.state('step')) == {STEP}"), "its number in the address");
    page.reload();
    page.wait(
        &format!("t.view() == 'episode' && Math.abs({STEP} - 20) <= 1"),
        "the same step after a reload",
    );
    page.all_manners("episode");
    page.viewport(360, 640);
    page.wait(
        "(() => { const [f, c] = [t.one('film'), t.one('film').querySelector('.current')].map(e => e?.getBoundingClientRect()); return c && c.left >= f.left && c.right <= f.right; })()",
        "the cursor in a narrow film",
    );
    page.screenshot("episode-360");
    page.viewport(1280, 800);
    page.scheme("dark");
    page.screenshot("episode-dark");
    page.finish();
}

#[test]
fn episodes_are_reached_by_keys_and_links() {
    let shown = Shown::new(data::episodes);
    let Some(page) = shown.page_at("episodes", "view=record&id=0") else { return };
    page.wait("t.record() == 0", "record 0");
    page.click("to-episode");
    page.wait("t.view() == 'episode' && t.text('episode') == 'Episode 0'", "its episode");
    page.key("j");
    page.wait("t.text('episode') == 'Episode 1'", "the next episode");
    page.wait("t.one('film').innerText.includes('no picture')", "words in place of what is no picture");
    page.wait("t.all('camera').filter(t.painted).length == 1", "the other camera");
    page.check(
        "t.text('problems') == 'reward: expected 50 values for 50 steps, found 49'",
        "words about the missing reward",
    );
    page.key("j");
    page.wait("t.text('empty') == 'This episode has no steps.'", "an empty episode");
    page.check("!t.one('film') && !t.one('slider')", "no film");
    page.key("k");
    page.wait("t.text('episode') == 'Episode 1' && t.one('film')", "the episode before");
    page.click("to-record");
    page.wait("t.record() == 1", "its record");
    page.navigate(&shown.at("view=episode&id=7"));
    page.expect("status of 404");
    page.wait("/7/.test(t.text('error')) && /3/.test(t.text('error'))", "words about episode 7");
    page.navigate(&shown.at("view=grid"));
    page.wait("t.view() == 'grid'", "the grid");
    page.check("!!t.one('view-episode')", "a link to episodes");
    page.finish();
}

#[test]
fn arrows_are_those_of_the_view_after_a_click_on_its_link() {
    let shown = Shown::new(data::episodes);
    let Some(page) = shown.page_at("arrows", "view=grid") else { return };
    page.wait("t.ids().length == 3", "the grid");
    page.key("t");
    page.wait("t.view() == 'table' && document.body.innerText.includes('is_last')", "the table");
    page.click("view-episode");
    page.wait("t.text('episode') == 'Episode 0'", "episode 0");
    for _ in 0..31 {
        page.key("ArrowRight");
    }
    page.wait(&format!("{STEP} == 31"), "31 steps");
    page.key("j");
    page.wait("t.text('episode') == 'Episode 1'", "the next episode");
    page.key("Escape");
    page.wait("t.view() == 'table' && t.card(1).ariaSelected == 'true'", "its row");
    page.finish();
}

#[test]
fn other_sets_have_no_episodes() {
    let shown = Shown::new(|folder| data::tfds(folder, 5));
    let Some(page) = shown.page_at("no-episodes", "view=record&id=1") else { return };
    page.wait("t.record() == 1", "record 1");
    page.check("!t.one('to-episode') && !t.one('view-episode')", "no link to episodes");
    page.expect("status of 404");
    page.navigate(&shown.at("view=episode&id=1"));
    page.wait("t.text('error').includes('no episodes')", "words");
    page.finish();
}

/// The recorded sets of episodes of the folder `TFSEEK_TFDS_CASES`, a real one among them.
#[test]
fn every_recorded_episode_is_shown() {
    let Some(folder) = std::env::var_os("TFSEEK_TFDS_CASES") else {
        tfseek_testkit::skipped("TFSEEK_TFDS_CASES");
        return;
    };
    let folder = Path::new(&folder);
    let sets = std::fs::read_dir(folder.join("sets")).unwrap().map(|entry| entry.unwrap().path());
    let mut sets: Vec<_> =
        sets.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("rlds_")).collect();
    sets.sort();
    sets.push(folder.join("real_bridge/bridge_dataset"));
    assert!(sets.len() > 5, "{sets:?}");
    for set in sets {
        let files = std::fs::read_dir(set.join("1.0.0")).unwrap().map(|entry| entry.unwrap().path());
        let mut shards: Vec<_> = files.filter(|path| path.to_str().unwrap().contains("tfrecord")).collect();
        shards.sort();
        let name = set.file_name().unwrap().to_str().unwrap().to_owned();
        let shown = Shown::of(shards);
        let Some(page) = shown.page_at(&name, "view=episode&id=0&step=1") else { return };
        page.wait("t.view() == 'episode' && /Episode 0/.test(t.text('episode'))", "episode 0");
        page.wait("t.one('slider') || t.one('empty')", "steps");
        page.wait("!document.querySelector('main').innerText.includes('Reading')", "curves");
        page.check("!document.querySelector('main .column .error.small')", "no error");
        page.screenshot(&format!("episode-{name}"));
        if name == "bridge_dataset" {
            page.wait("t.all('camera').length == 4 && t.all('camera').every(t.painted)", "four cameras");
            page.wait("t.all('lines').length >= 2", "curves of actions and states");
            page.eval("t.all('lines')[0].scrollIntoView()");
            page.screenshot("episode-bridge-curves");
        }
        page.finish();
    }
}
