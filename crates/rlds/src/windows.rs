//! `Windows`: records that have the values of several steps around an anchor.

use crate::anchors::Anchors;
use crate::encode::{EntryHead, count_strings, features_len, put_features_head, put_string};
use crate::episodes::Episodes;
use crate::format;
use crate::keys::ResolvedValues;
use crate::payload::{PayloadParts, PayloadView, joined};
use crate::rows::StepRows;
use crate::table::EpisodeTable;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tfseek::Warning;
use tfseek::dataset::{Dataset, DerivedRecords, StoredRecord};
use tfseek::error::{At, Error, ErrorKind, FeatureError, Result};
use tfseek::example::DType;
use tfseek::io::Traffic;
use tfseek::policy::Verify;
use tfseek_wire::put_varint;

/// Values in place of those before the first step of an episode and after its last one.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pad {
    /// The first or the last step of the episode.
    #[default]
    Repeat,
    /// Zeros, and empty strings or those that [`PadRow`] names.
    Zero,
    /// Steps whose window is not inside their episode are no anchors.
    None,
}

/// The row of a feature in place of a step that does not exist, with [`Pad::Zero`].
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PadRow {
    /// Zeros, or empty strings. None of divided values.
    #[default]
    Zeros,
    /// This byte string, as many times as a step has values; of divided values, as many times as the first
    /// step has values.
    String(Box<[u8]>),
    /// The row of the first step.
    First,
    /// Zeros or empty strings, as many as the first step has values.
    ZerosOfFirst,
}

/// A feature of a window.
#[derive(Clone, Debug)]
struct WindowFeature {
    name: Box<str>,
    kind: DType,
    values: WindowValues,
}

impl WindowFeature {
    /// Returns the error of a row that the record does not have.
    #[cold]
    fn lost(&self) -> Error {
        let expected = self.kind.list_name();
        Error::from(FeatureError::Missing { expected }).feature(self.name.as_bytes())
    }
}

#[derive(Clone, Debug)]
enum WindowValues {
    /// The rows of a key, at these offsets from the anchor.
    Rows {
        key: usize,
        offsets: Arc<[i64]>,
        /// Number of values of a row, if it is known.
        width: Option<u32>,
        pad: PadRow,
    },
    /// 1 for each of these offsets that is not in the episode.
    Flags { offsets: Arc<[i64]> },
    /// The list of a key of the episode.
    Episode { key: usize },
    /// The number of the episode, or of the step in it.
    Number { step: bool },
}

/// A builder of [`Windows`].
#[must_use]
#[derive(Clone, Debug)]
pub struct WindowsBuilder {
    episodes: Episodes,
    features: Vec<WindowFeature>,
    pad: Pad,
    anchors: Option<Vec<(u64, Range<u64>)>>,
    error: Option<String>,
}

impl WindowsBuilder {
    fn refuse(mut self, reason: String) -> WindowsBuilder {
        self.error.get_or_insert(reason);
        self
    }

    /// Returns the number of a key of steps, or of the episode.
    fn find(&self, key: &str, of_episode: bool) -> Result<(usize, DType), String> {
        let keys = self.episodes.keys();
        let found = keys.find(key.as_bytes()).and_then(|k| Some((k, keys.all().get(k)?)));
        match found {
            Some((k, known)) if (known.values == ResolvedValues::Episode) == of_episode => {
                Ok((k, known.kind))
            }
            _ => {
                let what = if of_episode { "a feature of episodes" } else { "a feature of steps" };
                Err(format!("expected {what}, found {key:?}"))
            }
        }
    }

    fn add(mut self, name: &str, kind: DType, values: WindowValues) -> WindowsBuilder {
        if self.features.iter().any(|known| *known.name == *name) {
            return self.refuse(format!("expected one feature {name:?} of a window, found two"));
        }
        self.features.push(WindowFeature { name: name.into(), kind, values });
        self
    }

    /// Adds the values of a feature at the anchor plus each of these offsets, one after the other, under the
    /// name `to`.
    pub fn rows(self, key: &str, to: &str, offsets: &[i64], pad: PadRow) -> WindowsBuilder {
        let (number, kind) = match self.find(key, false) {
            Ok(found) => found,
            Err(reason) => return self.refuse(reason),
        };
        if offsets.is_empty() {
            return self.refuse(format!("feature {key:?}: expected offsets, found none"));
        }
        let width = match self.episodes.keys().all().get(number).map(|key| &key.values) {
            Some(ResolvedValues::Steps { width }) => Some(*width),
            _ => None,
        };
        // A string is kept as it is encoded.
        let pad = match pad {
            PadRow::String(value) if kind == DType::Bytes => {
                let mut one = Vec::new();
                put_string(&value, &mut one);
                PadRow::String(one.into())
            }
            PadRow::String(_) => PadRow::Zeros,
            pad => pad,
        };
        let offsets = offsets.into();
        self.add(to, kind, WindowValues::Rows { key: number, offsets, width, pad })
    }

    /// Adds an int64 list with 1 for each of these offsets that is not in the episode, and 0 for others.
    pub fn flags(self, to: &str, offsets: &[i64]) -> WindowsBuilder {
        self.add(to, DType::Int64, WindowValues::Flags { offsets: offsets.into() })
    }

    /// Adds the values of a feature of the episode, under the name `to`.
    pub fn episode(self, key: &str, to: &str) -> WindowsBuilder {
        match self.find(key, true) {
            Ok((key, kind)) => self.add(to, kind, WindowValues::Episode { key }),
            Err(reason) => self.refuse(reason),
        }
    }

    /// Adds the number of the episode in the dataset, and the number of the anchor in the episode.
    pub fn numbers(self, episode: &str, step: &str) -> WindowsBuilder {
        let both = self.add(episode, DType::Int64, WindowValues::Number { step: false });
        both.add(step, DType::Int64, WindowValues::Number { step: true })
    }

    /// Sets the values in place of steps that do not exist. Default: [`Pad::Repeat`].
    pub fn pad(mut self, pad: Pad) -> WindowsBuilder {
        self.pad = pad;
        self
    }

    /// Restricts the anchors to these ranges of steps of episodes, in any order. They are cut off at the end
    /// of the episode, and united. By default all steps are anchors.
    pub fn anchors(mut self, ranges: impl IntoIterator<Item = (u64, Range<u64>)>) -> WindowsBuilder {
        self.anchors = Some(united(ranges.into_iter().collect()));
        self
    }

    /// Returns the windows.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] for features that are no keys, for no features or two of one name, and for no
    /// offsets. [`ErrorKind::OutOfRange`] for an episode of the anchors.
    pub fn build(self) -> Result<Windows> {
        let WindowsBuilder { episodes, mut features, pad, anchors, error } = self;
        let error = error
            .or_else(|| features.is_empty().then(|| "expected features of a window, found none".to_owned()));
        if let Some(reason) = error {
            return Err(ErrorKind::Spec(reason.into()).into());
        }
        features.sort_by(|a, b| a.name.cmp(&b.name));
        let offsets = || {
            features.iter().filter_map(|feature| match &feature.values {
                WindowValues::Rows { offsets, .. } => Some(offsets),
                _ => None,
            })
        };
        let all = || offsets().flat_map(|offsets| offsets.iter().copied());
        let inside = (pad == Pad::None).then(|| (all().min().unwrap_or(0), all().max().unwrap_or(0)));
        let starts = episodes.starts();
        let anchors = match anchors {
            Some(ranges) => Anchors::of_ranges(starts, ranges, inside)?,
            None if inside.is_none() => Anchors::All(Arc::clone(&episodes.0.starts)),
            None => {
                Anchors::of_ranges(starts, (0..episodes.dataset().len()).map(|e| (e, 0..u64::MAX)), inside)?
            }
        };
        let mean = mean_bytes(&episodes, &features);
        let records = WindowRecords { episodes, features, pad, anchors, mean, scratch: Mutex::default() };
        let records = Arc::new(records);
        let dataset = Dataset::derived(Arc::<WindowRecords>::clone(&records), records.episodes.dataset())?;
        Ok(Windows { records, dataset })
    }
}

impl Episodes {
    /// Returns a builder of windows over the steps.
    pub fn windows(&self) -> WindowsBuilder {
        let episodes = self.clone();
        WindowsBuilder { episodes, features: Vec::new(), pad: Pad::default(), anchors: None, error: None }
    }
}

/// Sorts ranges by episode and start, and joins those that touch.
fn united(mut ranges: Vec<(u64, Range<u64>)>) -> Vec<(u64, Range<u64>)> {
    ranges.retain(|(_, range)| range.start < range.end);
    ranges.sort_by_key(|(episode, range)| (*episode, range.start));
    let mut all: Vec<(u64, Range<u64>)> = Vec::new();
    for (episode, range) in ranges {
        match all.last_mut() {
            Some((last, known)) if *last == episode && range.start <= known.end => {
                known.end = known.end.max(range.end);
            }
            _ => all.push((episode, range)),
        }
    }
    all
}

/// Returns the estimated number of bytes of a window, from the first episode that has steps.
fn mean_bytes(episodes: &Episodes, features: &[WindowFeature]) -> u64 {
    let first = episodes.starts().windows(2).position(|ends| ends.first() < ends.last());
    let table = first.and_then(|episode| {
        let at = episodes.dataset().stored(episode as u64).ok()?;
        episodes.table(episode as u64, &at).ok()
    });
    let Some(table) = table else { return 1 << 10 };
    let steps = u64::from(table.steps()).max(1);
    let of = |feature: &WindowFeature| {
        let values = match &feature.values {
            WindowValues::Rows { key, offsets, .. } => {
                let row = u64::from(table.place(*key).len).div_ceil(steps);
                row * offsets.len() as u64
            }
            WindowValues::Episode { key } => table.place(*key).len.into(),
            WindowValues::Flags { offsets } => offsets.len() as u64,
            WindowValues::Number { .. } => 4,
        };
        values + feature.name.len() as u64 + 16
    };
    8 + features.iter().map(of).sum::<u64>()
}

/// Windows over the steps of episodes: records that have the values of several steps around an anchor, made
/// when they are read.
///
/// A window is an Example. The values of a feature at all offsets follow each other in one list, so the
/// offsets are the first dimension of its shape.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for steps in [3, 2] {
/// #     let action: Vec<f32> = (0..steps * 2).map(|k| k as f32).collect();
/// #     writer.write(&tfseek::ExampleBuilder::new().float("steps/action", action).encode()?)?;
/// # }
/// # writer.close()?;
/// # use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeValues, Episodes};
/// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
/// # let action = EpisodeKey { name: "steps/action".into(), kind: tfseek::DType::Float32, values: EpisodeValues::Steps { width: 2 } };
/// # let robot = Episodes::open(&ds, &EpisodeKeys::new([action])?, &Default::default())?;
/// use tfseek::{DType, FeatureSpec, Schema, loader::Shuffle};
/// let windows = robot.windows().rows("steps/action", "action", &[0, 1], Default::default()).build()?;
/// assert_eq!((windows.dataset().len(), windows.locate(3)?), (5, (1, 0)));
///
/// let schema = Schema::example().feature("action", FeatureSpec::fixed_len(&[2, 2], DType::Float32)).build()?;
/// let mut loader = windows.dataset().loader(&schema).batch_size(5).shuffle(Shuffle::None).build()?;
/// let step = loader.next().unwrap()?;
/// // The last step of an episode is repeated.
/// assert_eq!(step.batch().unwrap().float32("action")?[4..12], [2.0, 3.0, 4.0, 5.0, 4.0, 5.0, 4.0, 5.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Windows {
    records: Arc<WindowRecords>,
    dataset: Dataset,
}

impl Windows {
    /// Returns the episode and the step in it of the anchor of window `i`. O(log n).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`].
    pub fn locate(&self, i: u64) -> Result<(u64, u64)> {
        self.records.anchors.locate(i)
    }

    /// Appends the window of a step of any payload with the same features, which need not be in the dataset.
    /// `table` is the table of the payload, and `episode` the number that the window has. All bytes of the
    /// payload are taken as they are.
    ///
    /// ```
    /// # use tfseek_rlds::{EpisodeKey, EpisodeKeys, EpisodeTable, EpisodeValues, Episodes};
    /// # let action = EpisodeKey { name: "steps/action".into(), kind: tfseek::DType::Float32, values: EpisodeValues::Steps { width: 2 } };
    /// let none = tfseek::DatasetOptions::new().open_regions([])?;
    /// let robot = Episodes::open(none.dataset(), &EpisodeKeys::new([action])?, &Default::default())?;
    /// let windows = robot.windows().rows("steps/action", "action", &[0], Default::default()).build()?;
    ///
    /// let payload = tfseek::ExampleBuilder::new().float("steps/action", [0.0, 1.0, 2.0, 3.0]).encode()?;
    /// let table = EpisodeTable::of(&payload, robot.keys())?;
    /// let mut step = Vec::new();
    /// windows.append_of(&payload, &table, (0, 1), &mut step)?;
    /// assert_eq!(step, tfseek::ExampleBuilder::new().float("action", [2.0, 3.0]).encode()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a step that the table does not have; errors of values that are not
    /// divided as their lengths say.
    pub fn append_of(
        &self,
        payload: &[u8],
        table: &EpisodeTable,
        (episode, step): (u64, u64),
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        if step >= u64::from(table.steps()) {
            return Err(
                ErrorKind::OutOfRange { what: "step", i: step.into(), len: table.steps().into() }.into()
            );
        }
        let mut rows = StepRows::new(self.records.episodes.keys(), table);
        self.records.encode(&mut rows, PayloadView::Whole(payload), table, (episode, step), buf)
    }

    /// Returns the windows as a dataset of Examples, for loaders, mixes and readers. It has no index and no
    /// columns.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Returns the episodes.
    pub fn episodes(&self) -> &Episodes {
        &self.records.episodes
    }
}

/// The records of windows.
#[derive(Debug)]
struct WindowRecords {
    episodes: Episodes,
    features: Vec<WindowFeature>,
    pad: Pad,
    anchors: Anchors,
    mean: u64,
    scratch: Mutex<Vec<WindowScratch>>,
}

/// Buffers for one window at a time.
#[derive(Debug, Default)]
struct WindowScratch {
    parts: PayloadParts,
    record: Vec<u8>,
}

/// Returns the step at an offset from an anchor, clipped to the episode, and true if it was clipped.
#[inline]
fn clipped(anchor: u64, offset: i64, steps: u32) -> (u32, bool) {
    let last = steps.saturating_sub(1);
    match anchor.checked_add_signed(offset) {
        Some(step) if step < u64::from(steps) => (step as u32, false),
        // An anchor is inside of its episode.
        _ if offset < 0 => (0, true),
        _ => (last, true),
    }
}

/// A part of a list.
enum ListPart<'a> {
    Bytes(&'a [u8]),
    /// This number of the bytes that are not the payload's, which follow the part before.
    Own(usize),
    /// The same bytes this number of times.
    Repeated(&'a [u8], usize),
    /// This number of zero bytes or empty strings.
    Zeros(usize),
}

impl<'a> ListPart<'a> {
    /// Returns the part of a row: of the step `at`, or as `pad` has it for one that does not exist.
    fn of_row(
        kind: DType,
        width: Option<u32>,
        pad: Option<&'a PadRow>,
        at: u32,
        row: impl Fn(u32) -> Result<&'a [u8]>,
    ) -> Result<ListPart<'a>> {
        Ok(match (pad, width) {
            (None, _) => ListPart::Bytes(row(at)?),
            (Some(PadRow::First), _) => ListPart::Bytes(row(0)?),
            (Some(PadRow::ZerosOfFirst), _) => ListPart::Zeros(zeros_like(kind, row(0)?)),
            (Some(PadRow::String(one)), Some(width)) => ListPart::Repeated(one, width as usize),
            (Some(PadRow::String(one)), None) => ListPart::Repeated(one, count_strings(row(0)?)),
            (Some(PadRow::Zeros), _) => ListPart::Zeros(zero_bytes(kind, width.unwrap_or(0))),
        })
    }

    /// Returns the number of bytes.
    fn len(&self, kind: DType) -> usize {
        match self {
            ListPart::Bytes(bytes) => bytes.len(),
            ListPart::Own(n) => *n,
            ListPart::Repeated(bytes, n) => bytes.len().saturating_mul(*n),
            ListPart::Zeros(n) if kind == DType::Bytes => n.saturating_mul(2),
            ListPart::Zeros(n) => *n,
        }
    }

    /// Appends the part. `own` are the bytes that are not the payload's.
    fn put(self, kind: DType, own: &mut impl Iterator<Item = u8>, buf: &mut Vec<u8>) {
        match self {
            ListPart::Bytes(bytes) => buf.extend_from_slice(bytes),
            ListPart::Own(n) => buf.extend(own.take(n)),
            ListPart::Repeated(bytes, n) => (0..n).for_each(|_| buf.extend_from_slice(bytes)),
            ListPart::Zeros(n) if kind == DType::Bytes => {
                buf.extend(std::iter::repeat_n([0x0a, 0], n).flatten());
            }
            ListPart::Zeros(n) => buf.resize(buf.len() + n, 0),
        }
    }
}

impl WindowRecords {
    fn locate(&self, i: u64) -> Result<(u64, u64, StoredRecord<'_>)> {
        let (episode, step) = self.anchors.locate(i)?;
        Ok((episode, step, self.episodes.dataset().stored(episode)?))
    }

    /// Returns the steps whose rows a feature of a window is made of. None if all offsets are outside of the
    /// episode and have other values.
    fn needed(&self, values: &WindowValues, step: u64, steps: u32) -> impl Iterator<Item = u32> {
        let (offsets, of_first): (&[i64], bool) = match values {
            WindowValues::Rows { offsets, pad, width, .. } => match pad {
                PadRow::First | PadRow::ZerosOfFirst => (offsets, true),
                PadRow::String(_) => (offsets, width.is_none()),
                PadRow::Zeros => (offsets, false),
            },
            // Any step has the values of the episode.
            WindowValues::Episode { .. } => (&[0], false),
            WindowValues::Flags { .. } | WindowValues::Number { .. } => (&[], false),
        };
        offsets.iter().filter_map(move |offset| {
            let (at, outside) = clipped(step, *offset, steps);
            if outside && self.pad == Pad::Zero { of_first.then_some(0) } else { Some(at) }
        })
    }

    /// Adds the bytes that a window needs.
    fn need(&self, rows: &StepRows<'_>, table: &EpisodeTable, step: u64, parts: &mut PayloadParts) {
        for WindowFeature { values, .. } in &self.features {
            if let WindowValues::Rows { key, .. } | WindowValues::Episode { key } = values {
                rows.need(parts, *key, self.needed(values, step, table.steps()));
            }
        }
    }

    fn make(
        &self,
        scratch: &mut WindowScratch,
        (episode, step, at): (u64, u64, StoredRecord<'_>),
        verify: Verify,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(whole) = self.episodes.whole(episode, &at)? {
            let mut rows = StepRows::new(self.episodes.keys(), &whole.table);
            let view = PayloadView::Whole(&whole.payload);
            return self.encode(&mut rows, view, &whole.table, (episode, step), buf);
        }
        let table = self.episodes.table(episode, &at)?;
        let keys = self.episodes.keys();
        let mut rows = StepRows::new(keys, &table);
        scratch.parts.clear();
        self.need(&rows, &table, step, &mut scratch.parts);
        let has_objects = self.episodes.0.has_objects;
        let view = scratch.parts.load(&at, keys, has_objects, verify, &mut scratch.record)?;
        self.encode(&mut rows, view, &table, (episode, step), buf)
    }

    /// Appends the window of a step, whose bytes are in the view.
    fn encode(
        &self,
        rows: &mut StepRows<'_>,
        view: PayloadView<'_>,
        table: &EpisodeTable,
        (episode, step): (u64, u64),
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        for WindowFeature { values, .. } in &self.features {
            let (WindowValues::Rows { key, .. } | WindowValues::Episode { key }) = values else { continue };
            // The bytes of a list without a needed row were not read.
            if self.needed(values, step, table.steps()).next().is_some() {
                rows.prepare(view, *key)?;
            }
        }
        // Small lists that are no bytes of the payload.
        let mut own: Vec<u8> = Vec::new();
        let mut parts: Vec<ListPart<'_>> = Vec::with_capacity(self.features.len() * 2);
        let mut heads: Vec<(EntryHead<'_>, usize)> = Vec::with_capacity(self.features.len());
        for feature in &self.features {
            let first = parts.len();
            let start = own.len();
            match &feature.values {
                // A record may lack a feature, which the parser treats as in any record.
                WindowValues::Rows { key, .. } if rows.is_absent(*key) && table.steps() > 0 => continue,
                WindowValues::Rows { key, offsets, width, pad } => {
                    for offset in offsets.iter() {
                        let (at, outside) = clipped(step, *offset, table.steps());
                        let pad = (outside && self.pad == Pad::Zero).then_some(pad);
                        let row = |at| rows.row(view, *key, at).ok_or_else(|| feature.lost());
                        parts.push(ListPart::of_row(feature.kind, *width, pad, at, row)?);
                    }
                }
                WindowValues::Episode { key } => match rows.whole(view, *key) {
                    Some(bytes) => parts.push(ListPart::Bytes(bytes)),
                    None => continue,
                },
                WindowValues::Flags { offsets } => {
                    let outside = |offset: &i64| clipped(step, *offset, table.steps()).1;
                    own.extend(offsets.iter().map(|offset| u8::from(outside(offset))));
                    parts.push(ListPart::Own(own.len() - start));
                }
                WindowValues::Number { step: of_step } => {
                    put_varint(if *of_step { step } else { episode }, &mut own);
                    parts.push(ListPart::Own(own.len() - start));
                }
            }
            let added = parts.get(first..).unwrap_or_default();
            let len = added.iter().fold(0usize, |len, part| len.saturating_add(part.len(feature.kind)));
            heads.push((EntryHead::new(&feature.name, feature.kind, len as u64), added.len()));
        }
        put_features_head(features_len(heads.iter().map(|(head, _)| head)), buf)?;
        let mut own = own.into_iter();
        let mut parts = parts.into_iter();
        for (head, count) in &heads {
            head.put(buf);
            parts.by_ref().take(*count).for_each(|part| part.put(head.kind, &mut own, buf));
        }
        Ok(())
    }

    /// Announces the bytes of windows in a store, or takes the announcement back. The bytes of near windows
    /// of an episode are requested together, and an episode without a table is requested whole, once for all
    /// of its windows.
    fn announce_objects(&self, ids: &[u64], wanted: bool) {
        let pool = self.episodes.0.pool.own();
        let mut places: Vec<_> = ids.iter().filter_map(|id| self.locate(*id).ok()).collect();
        // The windows of an episode follow each other, in the order of the first one.
        let mut first: HashMap<u64, usize> = HashMap::new();
        for (k, (episode, ..)) in places.iter().enumerate() {
            first.entry(*episode).or_insert(k);
        }
        places.sort_by_key(|(episode, ..)| first.get(episode).copied());
        if wanted {
            let mut episodes: Vec<u64> = places.iter().map(|(episode, ..)| *episode).collect();
            episodes.dedup();
            self.episodes.want_tables(&episodes);
        }
        let mut parts = PayloadParts::default();
        for windows in places.chunk_by(|a, b| a.0 == b.0) {
            let Some((episode, _, at)) = windows.first() else { continue };
            let table = self.episodes.known_table(*episode, at).filter(|_| pool.get(*episode).is_none());
            let Some(table) = table else {
                for _ in windows {
                    if wanted {
                        pool.want(*episode, at.payload_len, || at.announce(None, true));
                    } else if pool.forget(*episode) {
                        at.announce(None, false);
                    }
                }
                continue;
            };
            let rows = StepRows::new(self.episodes.keys(), &table);
            let mut all: Vec<Range<u32>> = Vec::new();
            for (_, step, _) in windows {
                parts.clear();
                self.need(&rows, &table, *step, &mut parts);
                match parts.ranges(true) {
                    Some(ranges) => all.extend(ranges),
                    None => at.announce(None, wanted),
                }
            }
            // A source may merge the ranges of one call, so each request has its own.
            for request in joined(all.clone(), 0) {
                let inside = |range: &&Range<u32>| request.start <= range.start && range.end <= request.end;
                let ranges: Vec<Range<u32>> = all.iter().filter(inside).cloned().collect();
                at.announce(Some(&ranges), wanted);
            }
        }
    }
}

/// Returns the number of zero bytes, or of empty strings, that are this number of values.
fn zero_bytes(kind: DType, values: u32) -> usize {
    match kind {
        DType::Float32 => (values as usize).saturating_mul(4),
        DType::Int64 | DType::Bytes => values as usize,
    }
}

/// Returns the number of zero bytes, or of empty strings, that have as many values as a row.
fn zeros_like(kind: DType, row: &[u8]) -> usize {
    match kind {
        DType::Float32 => row.len(),
        DType::Int64 => row.iter().filter(|byte| **byte < 0x80).count(),
        DType::Bytes => count_strings(row),
    }
}

impl DerivedRecords for WindowRecords {
    fn noun(&self) -> &'static str {
        "windows over steps"
    }

    fn count(&self) -> u64 {
        self.anchors.len()
    }

    fn mean_bytes(&self) -> u64 {
        self.mean
    }

    fn location(&self, i: u64) -> At<'_> {
        let dataset = self.episodes.dataset();
        let mut at = At::NOWHERE;
        if let Ok((shard, record)) = self.anchors.locate(i).and_then(|(e, _)| dataset.shard_of(e)) {
            at.path = dataset.shards().nth(shard).map(|shard| shard.path);
            at.record = Some(record);
        }
        at
    }

    fn append(&self, i: u64, verify: Verify, buf: &mut Vec<u8>) -> Result<()> {
        let place = self.locate(i)?;
        // A forked child may have a copy of the lock that is held for ever.
        let free = || self.scratch.try_lock().ok();
        let mut scratch = free().and_then(|mut free| free.pop()).unwrap_or_default();
        let made = self.make(&mut scratch, place, verify, buf);
        if let Some(mut free) = free() {
            free.push(scratch);
        }
        made.map_err(|e| e.at(self.location(i)))
    }

    fn announce(&self, ids: &[u64], wanted: bool) {
        if self.has_objects() {
            return self.announce_objects(ids, wanted);
        }
        let mut parts = PayloadParts::default();
        let episodes: Vec<u64> = ids.iter().filter_map(|id| Some(self.anchors.locate(*id).ok()?.0)).collect();
        self.episodes.want_tables(&episodes);
        for id in ids {
            // Reading it will tell of an error.
            let Ok((episode, step, at)) = self.locate(*id) else { continue };
            let Some(table) = self.episodes.known_table(episode, &at) else {
                at.announce(None, wanted);
                continue;
            };
            parts.clear();
            self.need(&StepRows::new(self.episodes.keys(), &table), &table, step, &mut parts);
            at.announce(parts.ranges(false).as_deref(), wanted);
        }
    }

    fn has_objects(&self) -> bool {
        self.episodes.0.has_objects
    }

    fn traffic(&self) -> Option<Traffic> {
        self.episodes.dataset().traffic()
    }

    fn scattered(&self) -> Option<Warning> {
        self.episodes.0.tables.without().map(format::scattered)
    }

    /// Returns the fingerprint of the dataset, the lengths of all episodes, and the anchors.
    fn identity(&self) -> Result<Vec<u8>> {
        let mut all = self.episodes.dataset().fingerprint()?.into_bytes();
        all.try_reserve(self.episodes.starts().len() * 8)?;
        self.episodes.starts().iter().for_each(|start| all.extend(start.to_le_bytes()));
        self.anchors.digest(&mut all);
        Ok(all)
    }
}
