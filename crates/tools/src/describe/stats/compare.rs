//! Comparison of two sets of records, feature by feature, on the same bars.
//!
//! Numbers are counted in the same parts on both sides: by value where both sets have few values, else in
//! parts with about equal shares of both sets. So a distance does not depend on the kind of the numbers, nor
//! on the ranges of the sets. Each comes with the distance that chance makes. Parts of equal width would hide
//! differences of distributions with long tails. Values of one record may depend on each other, so a record
//! counts once.

use super::bytes::ByteStats;
use super::chart::{BARS, Bars, LINEAR, NumberAxis};
use super::counters::Cell;
use super::divergence::{divergence, of_chance};
use super::feature::FeatureStats;
use super::report::{TOP, name_of, text_value};
use super::sizes::SizeCounters;
use super::statistics::Statistics;
use crate::value::NamedValues;
use crate::value::ReportValue::{self, Fields};
use std::collections::BTreeMap;

/// Largest number of values of both sets that have a bar each.
const VALUES: usize = 24;
/// Number of groups of the byte strings that have no bar. A string is in the group of its hash.
const GROUPS: u64 = 12;
/// Byte strings are compared by their lengths if most of them differ, or if those with bars are fewer than
/// this part of both sets.
const FREQUENT: f64 = 0.1;

/// A side of a comparison: cells on the axis of both, in order, and the number of values.
type Side<T> = (Vec<Cell<T>>, u64);

/// Counters of byte strings in both sets, by hash and length, with the bytes of short ones.
type Pooled<'a> = BTreeMap<(u64, u64), (Option<&'a [u8]>, [u64; 2])>;

/// A feature of two sets.
struct Compared<'s> {
    /// The values that name the bars, with their numbers in both sets.
    bars: Vec<(NamedValues<'s>, [u64; 2])>,
    /// The bars are values, ranges, or ranges of lengths.
    by: &'static str,
    scale: &'static str,
    /// Numbers of values in the same parts of both sets.
    parts: Vec<(f64, f64)>,
}

impl Statistics {
    /// Compares the features that both sets have with one kind, and with values on both sides: `{"features":[..]}`, those that
    /// differ most first. Integers beyond 2^53 are texts.
    ///
    /// `distance` is the Jensen-Shannon distance of the values, and `chance` the one that two draws of the
    /// same distribution stay below in 19 of 20 cases. Features are ordered by the part of the distance that
    /// is above it.
    pub fn compare<'s>(&'s self, other: &'s Statistics) -> ReportValue<'s> {
        let own = self.unit.sorted(&self.unit.all);
        let others = other.unit.sorted(&other.unit.all);
        let mut found = Vec::new();
        for (is_list, (own, others)) in [false, true].into_iter().zip(own.into_iter().zip(others)) {
            let others: BTreeMap<_, _> = others.into_iter().collect();
            for (name, one) in own {
                let names = self.names(name).filter(|_| !is_list);
                if let Some(two) = others.get(name)
                    && let Some(compared) = feature(one, two, names)
                    && let Some(divergence) = divergence(&compared.parts)
                {
                    let distance = divergence.sqrt();
                    let filled = compared.parts.iter().filter(|(n, m)| n + m > 0.0).count();
                    let [n, m] = [one, two].map(independent);
                    let chance = of_chance(filled, n, m).sqrt();
                    found.push((name, is_list, compared, [distance, chance]));
                }
            }
        }
        let rank = |[distance, chance]: [f64; 2]| {
            let above = (distance * distance - chance * chance).max(0.0);
            // Features within chance follow in the order of their distances.
            (above, distance)
        };
        found.sort_by(|a, b| {
            let x = rank(a.3);
            let y = rank(b.3);
            y.0.total_cmp(&x.0).then(y.1.total_cmp(&x.1)).then((a.0, a.1).cmp(&(b.0, b.1)))
        });
        let features = found.into_iter().map(|(name, is_list, compared, [distance, chance])| {
            let bars = compared.bars.into_iter().map(|(mut bar, [n, m])| {
                bar.extend([("a", n.into()), ("b", m.into())]);
                Fields(bar)
            });
            Fields(vec![
                ("name", name.into()),
                ("list", is_list.into()),
                ("distance", distance.into()),
                ("chance", chance.into()),
                ("by", compared.by.into()),
                ("scale", compared.scale.into()),
                ("bars", bars.collect()),
            ])
        });
        Fields(vec![("features", features.collect())]).for_browser()
    }
}

/// Returns the number of values of a feature that do not depend on each other: values of one record may.
fn independent(stats: &FeatureStats) -> u64 {
    let values = stats
        .ints
        .as_ref()
        .map_or(0, |ints| ints.all_moments().n)
        .max(stats.floats.as_ref().map_or(0, |floats| floats.moments.n))
        .max(stats.bytes.as_ref().map_or(0, |bytes| bytes.lengths.n));
    values.min(stats.present())
}

fn feature<'s>(
    one: &'s FeatureStats,
    two: &'s FeatureStats,
    names: Option<&'s [Box<str>]>,
) -> Option<Compared<'s>> {
    let kind = one.kind().filter(|kind| two.kind() == Some(kind))?;
    match kind {
        "int64" => {
            let x = one.ints.as_deref()?;
            let y = two.ints.as_deref()?;
            let exact = x.distinct().1 && y.distinct().1;
            let side = |ints: &super::numbers::IntStats| {
                let cells = if exact { ints.cells() } else { ints.key_cells() };
                (cells, ints.all_moments().n)
            };
            let names = names.unwrap_or_default();
            let one =
                |value| vec![("value", ReportValue::Int(value)), ("name", name_of(value, names).into())];
            numbers(side(x), side(y), exact, one)
        }
        "float" => {
            let x = one.floats.as_deref()?;
            let y = two.floats.as_deref()?;
            let exact = x.distinct().1 && y.distinct().1;
            let side = |floats: &super::numbers::FloatStats| {
                (if exact { floats.cells() } else { floats.key_cells() }, floats.moments.n)
            };
            numbers(side(x), side(y), exact, |value| vec![("value", ReportValue::from(value))])
        }
        _ => texts(one.bytes.as_deref()?, two.bytes.as_deref()?),
    }
}

/// Returns the cells of both sides on one axis, with their counters.
fn pooled<T: NumberAxis>(a: &[Cell<T>], b: &[Cell<T>]) -> Vec<(Cell<T>, [u64; 2])> {
    let own = a.iter().map(|cell| (*cell, [cell.count, 0]));
    let others = b.iter().map(|cell| (*cell, [0, cell.count]));
    let mut all: Vec<_> = own.chain(others).collect();
    let order = |x: &Cell<T>, y: &Cell<T>| (x.low, x.high).partial_cmp(&(y.low, y.high));
    all.sort_by(|(x, _), (y, _)| order(x, y).unwrap_or(std::cmp::Ordering::Equal));
    all.dedup_by(|(next, n), (first, m)| {
        let equal = order(next, first).is_some_and(std::cmp::Ordering::is_eq);
        if equal {
            m.iter_mut().zip(*n).for_each(|(sum, n)| *sum += n);
        }
        equal
    });
    all
}

/// Compares numbers. `one` returns the values that name the bar of a number.
fn numbers<'s, T: NumberAxis + Into<ReportValue<'s>>>(
    (a, n): Side<T>,
    (b, m): Side<T>,
    exact: bool,
    one: impl Fn(T) -> NamedValues<'s>,
) -> Option<Compared<'s>> {
    let all = pooled(&a, &b);
    let low = all.first()?.0.low;
    let high = all.last()?.0.high;
    let numbers = |counts: [u64; 2]| -> (f64, f64) { (counts[0] as f64, counts[1] as f64) };
    if exact && all.len() <= VALUES {
        let parts = all.iter().map(|(_, counts)| numbers(*counts)).collect();
        let bars = all.into_iter().map(|(cell, counts)| (one(cell.low), counts));
        return Some(Compared { bars: bars.collect(), by: "value", scale: LINEAR, parts });
    }
    let share = |counts: [u64; 2]| counts[0] as f64 / n.max(1) as f64 + counts[1] as f64 / m.max(1) as f64;
    let weights: Vec<_> =
        all.iter().map(|(cell, counts)| (T::middle(cell).float(), share(*counts))).collect();
    let empty = Bars::empty(weights.iter().copied(), (low, high));
    let fill = |cells: &[Cell<T>]| {
        let mut bars = empty.clone();
        cells.iter().for_each(|cell| bars.add(cell));
        bars.bars
    };
    let bars = fill(&a)
        .into_iter()
        .zip(fill(&b))
        .map(|(x, y)| (vec![("low", x.low.into()), ("high", x.high.into())], [x.count, y.count]));
    // Parts of about equal shares. A value with more than that is a part of its own.
    let wanted = 2.0 / BARS as f64;
    let mut parts = Vec::new();
    let mut sum = [0u64; 2];
    for (_, counts) in &all {
        if share(*counts) >= wanted && sum != [0; 2] {
            parts.push(numbers(std::mem::take(&mut sum)));
        }
        sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        if share(sum) >= wanted {
            parts.push(numbers(std::mem::take(&mut sum)));
        }
    }
    if sum != [0; 2] {
        parts.push(numbers(sum));
    }
    let scale = empty.scale();
    Some(Compared { bars: bars.collect(), by: "range", scale, parts })
}

/// Compares byte strings: the most frequent ones of both sets have bars, the others are one bar and some
/// parts. Where hardly any string is frequent, the lengths are compared.
fn texts<'s>(x: &'s ByteStats, y: &'s ByteStats) -> Option<Compared<'s>> {
    let n = x.lengths.n;
    let m = y.lengths.n;
    let mut all = Pooled::new();
    for (side, bytes) in [x, y].into_iter().enumerate() {
        for (counter, text) in bytes.frequencies.iter() {
            let entry = all.entry((counter.hash, counter.len)).or_insert((text, [0; 2]));
            if let Some(count) = entry.1.get_mut(side) {
                *count += counter.count;
            }
        }
    }
    let share = |counts: [u64; 2]| counts[0] as f64 / n.max(1) as f64 + counts[1] as f64 / m.max(1) as f64;
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|(p, (s, a)), (q, (t, b))| share(*b).total_cmp(&share(*a)).then((s, p).cmp(&(t, q))));
    let rest = all.split_off(all.len().min(TOP));
    let frequent: f64 = all.iter().map(|(_, (_, counts))| share(*counts)).sum();
    let differ = |bytes: &ByteStats| bytes.distinct().0 > bytes.lengths.n / 2;
    if !rest.is_empty() && (frequent < 2.0 * FREQUENT || differ(x) && differ(y)) {
        let side = |sizes: &SizeCounters| (sizes.cells(), sizes.n);
        let one = |value| vec![("value", ReportValue::Int(value))];
        let lengths = numbers(side(&x.lengths), side(&y.lengths), true, one)?;
        return Some(Compared { by: "length", ..lengths });
    }
    let mut others = [n, m];
    let mut bars = Vec::new();
    let mut parts = Vec::new();
    for ((hash, len), (text, counts)) in all {
        others.iter_mut().zip(counts).for_each(|(left, n)| *left = left.saturating_sub(n));
        parts.push((counts[0] as f64, counts[1] as f64));
        bars.push((text_value(hash, len, text), counts));
    }
    if others != [0; 2] {
        bars.push((vec![("others", true.into())], others));
        if x.distinct().1 && y.distinct().1 {
            let mut groups = [(0.0, 0.0); GROUPS as usize];
            for ((hash, _), (_, counts)) in rest {
                if let Some(group) = groups.get_mut((hash % GROUPS) as usize) {
                    *group = (group.0 + counts[0] as f64, group.1 + counts[1] as f64);
                }
            }
            parts.extend(groups);
        } else {
            parts.push((others[0] as f64, others[1] as f64));
        }
    }
    Some(Compared { bars, by: "value", scale: LINEAR, parts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::stats::StatsOptions;
    use serde_json::Value;
    use tfseek::ExampleBuilder;
    use tfseek::frame::put_record;
    use tfseek::stream::StreamOptions;
    use tfseek_testkit::rng::Rng;

    fn stats(n: u64, example: impl Fn(u64) -> ExampleBuilder) -> Statistics {
        let mut file = Vec::new();
        (0..n).for_each(|i| put_record(&mut file, &example(i).encode().unwrap()).unwrap());
        let open = |name: &&str| StreamOptions::default().read(std::io::Cursor::new(file.clone()), *name);
        StatsOptions::default().run(&["memory"], &open).unwrap()
    }

    fn compared(a: &Statistics, b: &Statistics) -> Vec<Value> {
        let all: Value = serde_json::from_str(&a.compare(b).to_string()).unwrap();
        all["features"].as_array().unwrap().clone()
    }

    fn of<'v>(found: &'v [Value], name: &str) -> &'v Value {
        found.iter().find(|feature| feature["name"] == name).unwrap()
    }

    /// A few values have one distance as integers, as floats and as strings: their counters' distance.
    #[test]
    fn the_distance_does_not_depend_on_the_kind() {
        let draw = |seed: u64| {
            stats(1000, |i| {
                let k = Rng::new(seed * 1000 + i).below(17);
                let names = [format!("v{k}")];
                ExampleBuilder::new()
                    .int64("int", [k as i64])
                    .float("float", [k as f32 / 4.0])
                    .bytes("text", names)
            })
        };
        let found = compared(&draw(1), &draw(2));
        let distances: Vec<_> =
            ["int", "float", "text"].map(|name| of(&found, name)["distance"].as_f64().unwrap()).into();
        assert!(distances.iter().all(|d| (d - distances[0]).abs() < 1e-12), "{distances:?}");
        assert!(distances[0] < of(&found, "float")["chance"].as_f64().unwrap(), "{found:?}");
        assert_eq!(
            (of(&found, "float")["by"].as_str(), of(&found, "float")["bars"].as_array().unwrap().len()),
            (Some("value"), 17)
        );
    }

    /// Noise does not win: features that are drawn alike come after one that moved by a little, also those
    /// with few values, with long tails, with values that are all different, and with values that repeat in
    /// their record.
    #[test]
    fn chance_does_not_win() {
        let mut first = 0;
        for round in 0..10 {
            let draw = |side: u64| {
                stats(2000, |i| {
                    let mut rng = Rng::new((round * 2 + side) * 10_000 + i);
                    let unit = |rng: &mut Rng| rng.below(1 << 20) as f32 / (1 << 20) as f32;
                    let moved = unit(&mut rng) + if side == 1 { 0.15 } else { 0.0 };
                    let tail = (unit(&mut rng) * 20.0).exp();
                    let word = rng.below(300);
                    let alike = unit(&mut rng);
                    let example = ExampleBuilder::new()
                        .float("moved", [moved])
                        .float("tail", [tail])
                        .float("alike", [alike; 50])
                        .bytes("word", [format!("word {word}")])
                        .bytes("id", [format!("{side} {i} {}", "x".repeat(rng.below(40)))])
                        .int64("wide", [rng.u64() as i64]);
                    if i % 100 == 0 { example.int64("rare", [rng.below(9) as i64]) } else { example }
                })
            };
            let a = draw(0);
            let b = draw(1);
            let found = compared(&a, &b);
            first += usize::from(found[0]["name"] == "moved");
            assert_eq!(of(&found, "id")["by"], "length");
            assert_eq!(of(&found, "tail")["scale"], "log");
            assert!(of(&found, "moved")["distance"].as_f64() > of(&found, "moved")["chance"].as_f64());
            let zero = compared(&a, &a);
            assert!(zero.iter().all(|feature| feature["distance"] == 0), "{zero:?}");
        }
        assert_eq!(first, 10);
    }

    /// Bars hold all values of both sides, also where one side is counted exactly and the other is not.
    #[test]
    fn bars_hold_all_values() {
        let small = stats(500, |i| ExampleBuilder::new().int64("x", [i as i64 * 7]).float("y", [i as f32]));
        let large =
            stats(70_000, |i| ExampleBuilder::new().int64("x", [i as i64 * 65_536]).float("y", [i as f32]));
        for (a, b, n, m) in [(&small, &large, 500, 70_000), (&large, &small, 70_000, 500)] {
            for feature in compared(a, b) {
                let sum = |side| {
                    feature["bars"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|bar| bar[side].as_u64().unwrap())
                        .sum::<u64>()
                };
                assert_eq!((sum("a"), sum("b")), (n, m), "{feature}");
            }
        }
        let names = |n| stats(n, |i| ExampleBuilder::new().bytes("file", [format!("photo {i}.png")]));
        assert_eq!(of(&compared(&names(60), &names(80)), "file")["by"], "length");
        let nothing = stats(3, |_| ExampleBuilder::new().bytes("x", ["a"]).float("y", [0.0; 0]));
        assert_eq!(compared(&small, &nothing), Vec::<Value>::new());
        assert_eq!(
            compared(&nothing, &stats(3, |_| ExampleBuilder::new().float("y", [1.0]))),
            Vec::<Value>::new()
        );
    }
}
