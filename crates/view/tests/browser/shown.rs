//! A viewer in this process, and pages on it.

use crate::data;
use crate::devtools::screenshots;
use crate::page::Page;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tfseek::index::IndexOptions;
use tfseek::policy::Damage;
use tfseek::{DatasetOptions, Schema};
use tfseek_image::DecoderPool;
use tfseek_view::{CommandWords, ViewOptions, ViewSet, Viewer, ViewerHandle};

/// Short words for conditions, in a script that runs before those of the page.
pub(crate) const WORDS: &str = r##"window.t = {
  all: (hook) => [...document.querySelectorAll(`[data-test="${hook}"]`)].filter((e) => e.checkVisibility()),
  one: (hook) => t.all(hook)[0],
  text: (hook) => t.one(hook).innerText,
  input: (hook) => (t.one(hook).matches('input') ? t.one(hook) : t.one(hook).querySelector('input')),
  view: () => document.body.dataset.ready,
  // Cards of the grid, or rows of the table.
  cards: () => [...document.querySelectorAll('[data-test=card], [role=row][data-id]')].filter((e) => e.checkVisibility())
    .sort((a, b) => (a.ariaPosInSet ?? a.ariaRowIndex) - (b.ariaPosInSet ?? b.ariaRowIndex)),
  ids: () => t.cards().map((card) => Number(card.dataset.id)),
  card: (id) => t.cards().find((card) => card.dataset.id == id),
  record: () => (t.view() == 'record' ? Number(t.text('record').replace(/\D/g, '')) : null),
  boxes: (element) => element?.querySelector('[data-test="boxes"]'),
  sound: () => (t.one('audio').matches('audio') ? t.one('audio') : t.one('audio').querySelector('audio')),
  state: (key) => {
    const part = location.hash.slice(1).split('&').find((part) => part.startsWith(key + '='));
    return part ? decodeURIComponent(part.slice(key.length + 1)) : null;
  },
  painted(element) {
    if (!element?.checkVisibility()) return false;
    if (element.tagName == 'IMG') return element.complete && element.naturalWidth > 0;
    if (element.tagName != 'CANVAS') return [...element.querySelectorAll('img, canvas')].some(t.painted);
    if (element.width * element.height == 0) return false;
    const copy = new OffscreenCanvas(element.width, element.height).getContext('2d');
    copy.drawImage(element, 0, 0);
    const pixels = new Uint32Array(copy.getImageData(0, 0, element.width, element.height).data.buffer);
    return pixels.some((pixel) => pixel != pixels[0]);
  },
};
window.m = {
  rect: (e) => e.getBoundingClientRect(),
  // The text of an element.
  text(e) { const range = document.createRange(); range.selectNodeContents(e); return range.getBoundingClientRect(); },
  // The lines of a card that are in sight, or those of all cards.
  facts: (of = document) => [...of.querySelectorAll('.fact')].filter((f) => m.rect(f).left < m.rect(f.closest('.card')).right),
  feature: (name) => document.querySelector(`[data-feature='${name}']`),
  // Pixels from the end of the name of a feature to its first value.
  gap: (name) => m.text(m.feature(name).querySelector('.value')).left - m.text(m.feature(name).querySelector('.feature-name')).right,
};"##;

/// A running viewer of one or two sets. It ends when this is dropped.
pub(crate) struct Shown {
    /// The address with the token.
    pub(crate) link: String,
    /// E.g. `http://127.0.0.1:7717`.
    pub(crate) origin: String,
    /// Time from the paths to the server.
    pub(crate) listening: Duration,
    records: u64,
    server: Option<(ViewerHandle, JoinHandle<()>)>,
    folder: Option<TempDir>,
}

/// Opens files. Returns their set and the number of its records. Indexes of files that are not ours are kept
/// in `target/view/indexes`.
pub(crate) fn view_set(paths: Vec<PathBuf>) -> (ViewSet, u64) {
    let words = words(&paths);
    let name = paths[0].file_name().unwrap().to_string_lossy().into_owned();
    let index =
        IndexOptions::new().default_dirs(None, Some(screenshots().join("indexes"))).damage(Damage::Skip);
    let dataset = DatasetOptions::new().index(index).open(paths).unwrap();
    let records = dataset.len();
    (ViewSet::new(dataset, name).unwrap().words(words), records)
}

/// Returns the command words of paths.
fn words(paths: &[PathBuf]) -> CommandWords {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    CommandWords { paths: paths.join(" "), ..CommandWords::default() }
}

impl Shown {
    /// Shows files that `make` writes to a new folder.
    pub(crate) fn new(make: impl FnOnce(&Path) -> Vec<PathBuf>) -> Shown {
        let folder = tempfile::tempdir().unwrap();
        let paths = make(folder.path());
        let mut shown = Shown::start(vec![paths], ViewOptions::default());
        shown.folder = Some(folder);
        shown
    }

    /// Shows two sets.
    pub(crate) fn against(
        first: impl FnOnce(&Path) -> Vec<PathBuf>,
        second: impl FnOnce(&Path) -> Vec<PathBuf>,
    ) -> Shown {
        let folder = tempfile::tempdir().unwrap();
        let inner = |name: &str| {
            let inner = folder.path().join(name);
            std::fs::create_dir(&inner).unwrap();
            inner
        };
        let sets = vec![first(&inner("a")), second(&inner("b"))];
        let mut shown = Shown::start(sets, ViewOptions::default());
        shown.folder = Some(folder);
        shown
    }

    /// Shows files as they are.
    pub(crate) fn of(paths: Vec<PathBuf>) -> Shown {
        Shown::start(vec![paths], ViewOptions::default())
    }

    /// Shows records with the pictures of a schema as training steps are fed with them.
    pub(crate) fn fed(records: impl IntoIterator<Item = Vec<u8>>, schema: &str) -> Shown {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ViewOptions::default();
        options.fed = Some((Schema::from_json(schema).unwrap(), Arc::new(DecoderPool::default())));
        let mut shown = Shown::start(vec![data::several(folder.path(), records)], options);
        shown.folder = Some(folder);
        shown
    }

    fn start(sets: Vec<Vec<PathBuf>>, mut options: ViewOptions) -> Shown {
        let start = Instant::now();
        let opened: Vec<_> = sets.into_iter().map(view_set).collect();
        let records = opened[0].1;
        let sets = opened.into_iter().map(|(set, _)| set).collect();
        options.port = Some(0);
        let viewer = Viewer::bind(sets, &options).unwrap();
        let listening = start.elapsed();
        let (link, handle) = (viewer.url(), viewer.handle());
        let origin = format!("http://{}", viewer.address());
        assert!(link.starts_with(&origin), "{link} is not of {origin}");
        let thread = thread::spawn(move || viewer.serve());
        Shown { link, origin, listening, records, server: Some((handle, thread)), folder: None }
    }

    /// Returns the number of records of the first set.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the address of a state, without the token.
    pub(crate) fn at(&self, state: &str) -> String {
        format!("{}/#{state}", self.origin)
    }

    /// Opens the page in a browser. Returns none if there is none.
    pub(crate) fn page(&self, name: &str) -> Option<Page> {
        self.page_after(name, "", "")
    }

    /// Opens the page in a state.
    pub(crate) fn page_at(&self, name: &str, state: &str) -> Option<Page> {
        self.page_after(name, "", state)
    }

    /// Opens the page in a state, with a script that runs before those of the page.
    pub(crate) fn page_after(&self, name: &str, script: &str, state: &str) -> Option<Page> {
        let page = Page::open(name)?;
        page.before_documents(WORDS);
        page.before_documents(script);
        let state = if state.is_empty() { String::new() } else { format!("#{state}") };
        page.navigate(&format!("{}{state}", self.link));
        page.wait("t.view()", "the first view");
        Some(page)
    }
}

impl Drop for Shown {
    /// Stops the server before its files are removed.
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.server.take() {
            handle.stop();
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}
