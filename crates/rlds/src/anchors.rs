//! The anchors of windows: the steps that have a window, in the order of their episodes.

use std::ops::Range;
use std::sync::Arc;
use tfseek::error::{ErrorKind, Result};

/// Returns the episode and the step in it of step `number` of all. `starts` are the number of the first step
/// of each episode, followed by the number of all steps. O(log n).
#[inline]
pub(crate) fn episode_of(starts: &[u64], number: u64) -> Option<(u64, u64)> {
    // The last episode that starts at or before the step. Episodes without steps start where the next one
    // does.
    let k = starts.partition_point(|start| *start <= number).checked_sub(1)?;
    // After the last step there is no episode.
    let [start, _] = starts.get(k..)?.first_chunk::<2>()?;
    Some((k as u64, number - start))
}

/// Returns the numbers of an episode's steps among all. `starts` are as in [`episode_of`].
///
/// # Errors
/// [`ErrorKind::OutOfRange`].
pub(crate) fn steps_of(starts: &[u64], episode: u64) -> Result<Range<u64>> {
    let ends = usize::try_from(episode).ok().and_then(|k| starts.get(k..)?.first_chunk::<2>());
    let Some([from, to]) = ends else {
        let len = starts.len() as u64 - 1;
        return Err(ErrorKind::OutOfRange { what: "episode", i: episode.into(), len }.into());
    };
    Ok(*from..*to)
}

/// The steps that have a window.
#[derive(Clone, Debug)]
pub(crate) enum Anchors {
    /// All steps. The number of the first step of each episode, followed by the number of all steps.
    All(Arc<[u64]>),
    /// Runs of steps, and the number of all.
    Runs(Arc<[AnchorRun]>, u64),
}

/// Adjacent steps of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnchorRun {
    /// Number of the window of the first step.
    first: u64,
    episode: u64,
    step: u64,
}

impl Anchors {
    /// Returns anchors of ranges of steps of episodes, which ascend. Those outside of an episode are cut off.
    /// `inside` are the least and the greatest offset that must be in the episode of its anchor.
    pub(crate) fn of_ranges(
        starts: &[u64],
        ranges: impl IntoIterator<Item = (u64, Range<u64>)>,
        inside: Option<(i64, i64)>,
    ) -> Result<Anchors> {
        let mut runs = Vec::new();
        let mut all = 0u64;
        for (episode, range) in ranges {
            let steps = steps_of(starts, episode)?;
            let len = steps.end - steps.start;
            let mut from = range.start;
            let mut to = range.end.min(len);
            if let Some((least, greatest)) = inside {
                if least < 0 {
                    from = from.max(least.unsigned_abs());
                }
                if greatest > 0 {
                    to = to.min(len.saturating_sub(greatest.unsigned_abs()));
                }
            }
            if from < to {
                runs.try_reserve(1)?;
                runs.push(AnchorRun { first: all, episode, step: from });
                all += to - from;
            }
        }
        Ok(Anchors::Runs(runs.into(), all))
    }

    /// Returns the number of anchors.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Anchors::All(starts) => starts.last().map_or(0, |steps| *steps),
            Anchors::Runs(_, len) => *len,
        }
    }

    /// Returns the episode and the step of an anchor. O(log n).
    #[inline]
    pub(crate) fn locate(&self, i: u64) -> Result<(u64, u64)> {
        let found = match self {
            Anchors::All(starts) => episode_of(starts, i),
            Anchors::Runs(_, len) if i >= *len => None,
            Anchors::Runs(runs, _) => {
                let k = runs.partition_point(|run| run.first <= i) - 1;
                runs.get(k).map(|run| (run.episode, run.step + (i - run.first)))
            }
        };
        found.ok_or_else(|| ErrorKind::OutOfRange { what: "window", i: i.into(), len: self.len() }.into())
    }

    /// Appends the anchors as bytes, for a digest.
    pub(crate) fn digest(&self, out: &mut Vec<u8>) {
        match self {
            Anchors::All(_) => out.push(0),
            Anchors::Runs(runs, len) => {
                out.push(1);
                out.extend(len.to_le_bytes());
                for AnchorRun { first, episode, step } in &**runs {
                    [first, episode, step].into_iter().for_each(|number| out.extend(number.to_le_bytes()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_a_twin() {
        let starts: [u64; 6] = [0, 3, 3, 8, 9, 20];
        let len = |e: usize| starts[e + 1] - starts[e];
        for inside in
            [None, Some((0, 0)), Some((-2, 0)), Some((0, 3)), Some((-1, 1)), Some((2, 4)), Some((-30, 0))]
        {
            let ranges = [(0, 0..9), (1, 0..4), (2, 1..3), (2, 3..5), (4, 5..u64::MAX)];
            let want: Vec<(u64, u64)> = ranges
                .iter()
                .flat_map(|(e, range)| (0..len(*e as usize)).filter(|t| range.contains(t)).map(|t| (*e, t)))
                .filter(|&(e, t)| {
                    let at = |offset: i64| t.checked_add_signed(offset).is_some_and(|t| t < len(e as usize));
                    // Offsets between the two are inside if both are.
                    inside.is_none_or(|(least, greatest)| at(least.min(0)) && at(greatest.max(0)))
                })
                .collect();
            let anchors = Anchors::of_ranges(&starts, ranges, inside).unwrap();
            let got: Vec<_> = (0..anchors.len()).map(|i| anchors.locate(i).unwrap()).collect();
            assert_eq!(got, want, "{inside:?}");
            assert!(anchors.locate(anchors.len()).is_err());
        }
        let all = Anchors::All(starts.to_vec().into());
        assert_eq!((all.locate(3).unwrap(), all.locate(19).unwrap()), ((2, 0), (4, 10)));
        assert!(all.locate(20).is_err() && Anchors::of_ranges(&starts, [(5, 0..1)], None).is_err());
    }
}
