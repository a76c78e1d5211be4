//! Filters.

use super::filter_twin::{Condition, NAMES, Row, SCALARS, rows};
use super::script::Script;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::example::MessageKind;
use tfseek::filter::RecordFilter;
use tfseek::frame::put_record;
use tfseek::{Dataset, ErrorKind, Example, Filter, Mapped};

/// Tests filters. After an even first byte the rest is the text. After 1 (of four) the rest describes a
/// condition, its text, and edits; after 3 the rest is a payload.
///
/// A condition selects the records that a naive evaluation selects, by columns and by the records themselves.
/// A text that is accepted selects the complement after `not`, and the same records in parentheses.
pub fn filter(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    match mode % 4 {
        1 => {}
        3 => return check_payload(rest),
        _ => return check_text(rest),
    }
    let mut script = Script(rest);
    let condition = Condition::new(&mut script, 0);
    let mut text = String::new();
    condition.write(&mut text, &mut script);
    let parsed: Filter = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut features = BTreeSet::new();
    condition.features(&mut features);
    assert_eq!(parsed.features(), features.into_iter().collect::<Vec<_>>());
    let records = records();
    let outcomes: Vec<Option<bool>> =
        records.rows.iter().zip(0..).map(|(row, number)| condition.outcome(row, number)).collect();
    assert_eq!(records.accepted(&parsed), outcomes, "{text}");
    records.check_selection(&parsed, &outcomes, &text);
    let mut text = text.into_bytes();
    script.edit(&mut text);
    check_text(&text);
}

/// Checks any text: an error has an offset in the text, and a filter has its complement.
fn check_text(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(e) => {
            let ErrorKind::Filter(e) = tfseek::Error::kind(&e) else { panic!("{e:?}") };
            assert!(text.is_char_boundary(e.offset), "{e}");
            return assert_eq!((&*e.text, e.excerpt().lines().count()), (text, 2));
        }
    };
    let features = filter.features();
    assert!(features.is_sorted_by(|a, b| a < b));
    let records = records();
    // In parentheses a filter is nested one level deeper, which may be too deep.
    let (Ok(same), Ok(not)) =
        (format!("({text})").parse::<Filter>(), format!("not({text})").parse::<Filter>())
    else {
        return;
    };
    // Filters with NaN are not equal.
    assert_eq!(format!("{same:?}"), format!("{filter:?}"));
    let outcomes = records.accepted(&filter);
    let inverted: Vec<Option<bool>> = outcomes.iter().map(|one| one.map(|one| !one)).collect();
    assert_eq!(records.accepted(&not), inverted, "{text}");
    if let Ok(twice) = format!("({text}) and ({text}) or ({text})").parse() {
        assert_eq!(records.accepted(&twice), outcomes, "{text}");
    }
    let mut seen = filter.for_records();
    records.rows.iter().for_each(|row| drop(seen.accepts(0, &row.payload, MessageKind::SequenceExample)));
    if seen.unseen().any(|name| !NAMES.contains(&name)) {
        let columns = filter.column_features().iter().all(|feature| SCALARS.contains(feature));
        return assert!(!columns || records.select(&filter).is_none(), "{text}");
    }
    records.check_selection(&filter, &outcomes, text);
}

/// Checks the evaluation on any payload: it agrees with a lookup, and `not` selects the complement.
fn check_payload(payload: &[u8]) {
    const TESTS: [&str; 10] = [
        "len(steps(a)) == 1",
        "any(steps(a)) in ..0, 0..",
        "present(a)",
        "len(a) > 0",
        "any(a) in ..0, 0..",
        "any(a) is nan or any(a) is not nan",
        "any(a) contains ''",
        "any(width(a)) >= 0",
        "split(0.5)",
        "a == 1 and b == 1 and c == 1 and d == 1 and e == 1 and f == 1 and g == 1 and h == 1 and i == 1 and j == 1",
    ];
    let feature = Example::new(payload).get("a");
    let evaluate = |text: &str| {
        let filter: Filter = text.parse().unwrap();
        filter.for_records().accepts(7, payload, MessageKind::Example)
    };
    for text in TESTS {
        match (evaluate(text), evaluate(&format!("not ({text})"))) {
            (Ok(one), Ok(other)) => assert_ne!(one, other, "{text}"),
            (Err(one), Err(other)) => assert_eq!(
                std::mem::discriminant(one.kind()),
                std::mem::discriminant(other.kind()),
                "{text}: {one}, {other}"
            ),
            (one, other) => panic!("{text}: {one:?}, {other:?}"),
        }
    }
    for text in ["present(a)", "len(a) > 0"] {
        match (&feature, evaluate(text)) {
            (Ok(feature), Ok(found)) => assert_eq!(found, feature.is_some_and(|feature| !feature.is_empty())),
            (Err(_), Err(_)) => {}
            (one, other) => panic!("{one:?}, {other:?}"),
        }
    }
}

/// Records with values of all kinds, and the columns of those with at most one value.
struct SampleRecords {
    dataset: Dataset,
    columns: Vec<DatasetColumn>,
    rows: Vec<Row>,
}

fn records() -> &'static SampleRecords {
    static RECORDS: OnceLock<SampleRecords> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let rows = rows();
        let mut file = Vec::new();
        for row in &rows {
            put_record(&mut file, &row.payload).unwrap();
        }
        let dataset = Mapped::from_bytes(file).unwrap().dataset().clone();
        let columns = dataset.columns(&SCALARS, &ColumnOptions::default()).unwrap();
        SampleRecords { dataset, columns, rows }
    })
}

impl SampleRecords {
    /// Returns for each record whether it is accepted. `None` is an error: a value of another kind, or
    /// several values.
    fn accepted(&self, filter: &Filter) -> Vec<Option<bool>> {
        let mut records: RecordFilter = filter.for_records();
        let accepts =
            |(row, number): (&Row, u64)| match records.accepts(number, &row.payload, MessageKind::Example) {
                Ok(accepted) => Some(accepted),
                Err(e) => {
                    assert!(matches!(e.kind(), ErrorKind::Filter(_)), "{e:?}");
                    None
                }
            };
        self.rows.iter().zip(0..).map(accepts).collect()
    }

    /// Checks that the selection has the records of these outcomes, or is an error if one of them is.
    fn check_selection(&self, filter: &Filter, outcomes: &[Option<bool>], text: &str) {
        let expected: Option<Vec<bool>> = outcomes.iter().copied().collect();
        assert_eq!(self.select(filter), expected, "{text}: {outcomes:?}");
    }

    /// Returns the selected records. `None` if the filter does not fit the values, or names a feature that no
    /// record has.
    fn select(&self, filter: &Filter) -> Option<Vec<bool>> {
        let given = filter.column_features().iter().all(|feature| SCALARS.contains(feature));
        let selected = if given {
            self.dataset.select_from(filter, &self.columns, &ColumnOptions::default())
        } else {
            self.dataset.select(filter, &ColumnOptions::default())
        };
        match selected {
            Ok((found, _)) => Some((0..self.rows.len() as u64).map(|i| found.rank(i).is_some()).collect()),
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Filter(_) | ErrorKind::UnknownFeature { .. }), "{e:?}");
                None
            }
        }
    }
}
