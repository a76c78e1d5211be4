//! The bars of a distribution, as the table, the page and reports draw it: at most 20, with whole borders for
//! integers, and on a logarithmic axis where most values would share one bar.

use super::counters::Cell;

/// Largest number of bars.
pub(crate) const BARS: usize = 20;
/// An axis is logarithmic if three quarters of the values are in the first of equal bars, and the largest
/// value is this many times the one above the first hundredth of the positive values.
const DECADES: f64 = 100.0;
/// The names of the axes in JSON.
pub(crate) const LINEAR: &str = "linear";
const LOG: &str = "log";

/// Bars of numbers, in their order. Both bounds of an integer's bar belong to it; a bar of floats ends below
/// the next one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bars<T> {
    pub(crate) is_log: bool,
    pub(crate) bars: Vec<Cell<T>>,
}

/// The numbers of an axis.
pub(crate) trait NumberAxis: Copy + PartialOrd {
    fn float(self) -> f64;
    /// Returns the value that stands for a cell's values.
    fn middle(cell: &Cell<Self>) -> Self;
    /// Returns empty bars of equal width. `gap` is the smallest distance of values.
    fn equal(low: Self, high: Self, gap: f64) -> Vec<Cell<Self>>;
    /// Returns empty bars whose borders grow by a factor from `start` on.
    fn growing(low: Self, high: Self, start: f64) -> Vec<Cell<Self>>;
}

/// Returns the borders that grow by a factor, from `start` to `high`.
fn borders(start: f64, high: f64) -> impl Iterator<Item = f64> {
    let last = (BARS - 1) as f64;
    (0..BARS - 1).map(move |k| start * (high / start).powf(k as f64 / last))
}

impl NumberAxis for i64 {
    fn float(self) -> f64 {
        self as f64
    }

    fn middle(cell: &Cell<i64>) -> i64 {
        // The middle of two numbers of 64 bits is one.
        ((i128::from(cell.low) + i128::from(cell.high)) / 2) as i64
    }

    fn equal(low: i64, high: i64, _: f64) -> Vec<Cell<i64>> {
        let span = i128::from(high) - i128::from(low) + 1;
        // The bars are 10 to 20. Their width is the one that leaves the least room in the last bar.
        let least = (span + BARS as i128 - 1) / BARS as i128;
        let left = |width: i128| (width - 1 - (span - 1) % width) * 1000 / width;
        let width =
            (least..=least.max(span / 10)).take(BARS).min_by_key(|width| left(*width)).unwrap_or(least);
        let starts = (0..BARS as i128).map(|k| i128::from(low) + k * width);
        let starts = starts.take_while(|start| *start <= high.into()).map(|start| start as i64);
        between(starts, high, |next| next - 1)
    }

    fn growing(low: i64, high: i64, start: f64) -> Vec<Cell<i64>> {
        let mut starts = vec![low];
        for border in borders(start, high as f64) {
            let border = border.round() as i64;
            if starts.last().is_some_and(|last| *last < border) && border <= high {
                starts.push(border);
            }
        }
        between(starts.into_iter(), high, |next| next - 1)
    }
}

impl NumberAxis for f64 {
    fn float(self) -> f64 {
        self
    }

    fn middle(cell: &Cell) -> f64 {
        cell.middle()
    }

    fn equal(low: f64, high: f64, gap: f64) -> Vec<Cell> {
        // Steps of one width have a bar each. Other numbers of bars would leave gaps between them.
        let steps = (high / gap - low / gap).round();
        let n = if steps < BARS as f64 { steps as usize + 1 } else { BARS };
        // The width of the widest range does not overflow.
        let width = high / n as f64 - low / n as f64;
        between((0..n).map(|k| low + width * k as f64), high, |next| next)
    }

    fn growing(low: f64, high: f64, start: f64) -> Vec<Cell> {
        let first = (low < start).then_some(low);
        between(first.into_iter().chain(borders(start, high)), high, |next| next)
    }
}

/// Returns empty bars that begin at `starts`. A bar ends at `end` of the next one's start, and the last at
/// `high`.
fn between<T: Copy>(starts: impl Iterator<Item = T>, high: T, end: impl Fn(T) -> T) -> Vec<Cell<T>> {
    let starts: Vec<T> = starts.collect();
    let ends = starts.iter().skip(1).map(|next| end(*next)).chain([high]);
    starts.iter().zip(ends).map(|(&low, high)| Cell { low, high, count: 0 }).collect()
}

impl<T: NumberAxis> Bars<T> {
    /// Returns the bars of the values of cells, which are in order. `None` without values.
    pub(crate) fn of(cells: &[Cell<T>], bounds: Option<(T, T)>) -> Option<Bars<T>> {
        let (low, high) = bounds.filter(|_| !cells.is_empty())?;
        let mut bars =
            Bars::empty(cells.iter().map(|cell| (T::middle(cell).float(), cell.count as f64)), (low, high));
        cells.iter().for_each(|cell| bars.add(cell));
        Some(bars)
    }

    /// Returns empty bars for values with these weights, in ascending order.
    pub(crate) fn empty(values: impl Iterator<Item = (f64, f64)> + Clone, (low, high): (T, T)) -> Bars<T> {
        let neighbours = values.clone().zip(values.clone().skip(1));
        let gap = neighbours.map(|((a, _), (b, _))| b - a).fold(f64::INFINITY, f64::min);
        let start = log_start(values, (low.float(), high.float()));
        let bars = match start {
            _ if low >= high => vec![Cell::of(low, 0)],
            Some(start) => T::growing(low, high, start),
            None => T::equal(low, high, gap),
        };
        Bars { is_log: start.is_some(), bars }
    }

    /// Returns the name of the axis.
    pub(crate) fn scale(&self) -> &'static str {
        if self.is_log { LOG } else { LINEAR }
    }

    /// Adds the values of a cell to the bar of its middle.
    pub(crate) fn add(&mut self, cell: &Cell<T>) {
        let middle = T::middle(cell);
        let k = self.bars.partition_point(|bar| bar.low <= middle).saturating_sub(1);
        if let Some(bar) = self.bars.get_mut(k) {
            bar.count += cell.count;
        }
    }
}

/// Returns the first border of a logarithmic axis, if the values ask for one. Smaller values share a bar
/// before it.
fn log_start(values: impl Iterator<Item = (f64, f64)> + Clone, (low, high): (f64, f64)) -> Option<f64> {
    if low < 0.0 || low >= high {
        return None;
    }
    let upper = at_part(values.clone(), 0.75)?;
    let start = at_part(values.filter(|(value, _)| *value > 0.0), 0.01)?.max(low);
    (upper < low + (high - low) / BARS as f64 && high / start >= DECADES).then_some(start)
}

/// Returns the value at a part of the weights.
fn at_part(mut values: impl Iterator<Item = (f64, f64)> + Clone, part: f64) -> Option<f64> {
    let wanted = part * values.clone().map(|(_, weight)| weight).sum::<f64>();
    let mut sum = 0.0;
    let found = values.find(|(_, weight)| {
        sum += weight;
        sum >= wanted
    });
    found.map(|(value, _)| value)
}

/// Returns a character for each counter, as high as its part of the largest one. Without values it is a
/// space, so a few values are seen.
pub(crate) fn line(counts: impl Iterator<Item = u64> + Clone) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.clone().max().unwrap_or(0);
    let height = |n: u64| (n as f64 / most as f64 * 7.0).round() as usize;
    counts.filter_map(|n| if n == 0 { Some(' ') } else { HEIGHTS.get(height(n).min(7)).copied() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    fn ints(values: &[i64]) -> Bars<i64> {
        let mut values = values.to_vec();
        values.sort_unstable();
        let cells: Vec<_> = values.iter().map(|value| Cell::of(*value, 1)).collect();
        Bars::of(&cells, values.first().copied().zip(values.last().copied())).unwrap()
    }

    /// Integers have bars of one whole width, without gaps, up to the ends of their range.
    #[test]
    fn bars_of_integers_have_whole_borders() {
        let all: Vec<i64> = (0..=30).collect();
        let found = ints(&all);
        let bars: Vec<_> = found.bars.iter().map(|bar| (bar.low, bar.high, bar.count)).collect();
        assert_eq!(
            (bars[0], bars[1], bars.last(), bars.len()),
            ((0, 1, 2), (2, 3, 2), Some(&(30, 30, 1)), 16)
        );
        let pixels: Vec<i64> = (0..=255).collect();
        assert_eq!(ints(&pixels).bars.iter().map(|bar| bar.count).collect::<Vec<_>>(), [16; 16]);
        assert_eq!(ints(&[7, 7]).bars, [Cell { low: 7, high: 7, count: 2 }]);
        let wide = ints(&[i64::MIN, 0, i64::MAX]);
        assert_eq!((wide.bars.len(), wide.bars[0].count, wide.bars[19].count), (20, 1, 1));
        assert_eq!(wide.bars[19].high, i64::MAX);
    }

    /// Floats in steps of one width have a bar each.
    #[test]
    fn steps_of_floats_have_a_bar_each() {
        let cells: Vec<_> = (0..17).map(|k| Cell::of(f64::from(k) / 8.0, 5)).collect();
        let found = Bars::of(&cells, Some((0.0, 2.0))).unwrap();
        assert_eq!(found.bars.iter().map(|bar| bar.count).collect::<Vec<_>>(), [5; 17]);
        let cells = [0.0, 0.25, 0.9, 4.0].map(|value| Cell::of(value, 1));
        assert_eq!(Bars::of(&cells, Some((0.0, 4.0))).unwrap().bars.len(), 17);
    }

    #[test]
    fn every_value_is_in_its_bar() {
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let scale = rng.below(63);
            let sign = i64::from(rng.chance(128)) - 1;
            let values: Vec<i64> =
                (0..1 + rng.below(300)).map(|_| (rng.u64() >> 1 >> scale) as i64 ^ sign).collect();
            let found = ints(&values);
            assert!(
                found.bars.len() <= BARS && found.bars.windows(2).all(|pair| pair[0].high + 1 == pair[1].low)
            );
            for bar in &found.bars {
                let inside = values.iter().filter(|value| bar.low <= **value && **value <= bar.high).count();
                assert_eq!(inside as u64, bar.count, "{bar:?}");
            }
            let floats: Vec<_> =
                found.bars.iter().map(|bar| Cell::of(bar.low as f64 * 1.5, bar.count)).collect();
            let bounds = floats.first().zip(floats.last()).map(|(first, last)| (first.low, last.high));
            let found = Bars::of(&floats, bounds).unwrap();
            assert_eq!(found.bars.iter().map(|bar| bar.count).sum::<u64>(), values.len() as u64);
        }
    }

    /// Values over many powers of ten have a logarithmic axis, others have not: not those around zero, and
    /// not a few outliers in a normal range.
    #[test]
    fn axes_are_logarithmic_where_the_range_asks_for_it() {
        let grown: Vec<i64> = (0..1000).map(|k| 1.02f64.powi(k) as i64).collect();
        let found = ints(&grown);
        assert!(found.is_log && found.bars.iter().filter(|bar| bar.count > 10).count() > 12, "{found:?}");
        assert!(!ints(&(0..1000).collect::<Vec<_>>()).is_log);
        assert!(!ints(&grown.iter().flat_map(|x| [*x, -x]).collect::<Vec<_>>()).is_log);
        assert!(!ints(&[5, 5, 5, 5, 90]).is_log);
        assert!(ints(&[0, 0, 0, 0, 1, 1, 3, 9000]).is_log);
    }

    #[test]
    fn lines_show_rare_values() {
        assert_eq!(line([0, 1, 7].into_iter()), " ▂█");
        assert_eq!(line([1_000_000, 1, 0, 1_000_000].into_iter()), "█▁ █");
        assert_eq!(line([].into_iter()), "");
    }
}
