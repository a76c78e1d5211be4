//! Statistics of records and features, computed in one pass by mergeable sketches.
//!
//! The result depends on the records and the options alone, not on threads or compression. Counters, bounds
//! and presence are exact. Quantiles, histograms, distinct and frequent values are exact up to 65,536
//! different values of a feature; `docs/statistics.md` has the bounds beyond. [`Statistics::report`] has all
//! of them, [`Statistics::table`] prints some. Published sketch libraries draw random numbers, and two runs
//! would differ.
//!
//! ```
//! use tfseek::ExampleBuilder;
//! use tfseek::frame::put_record;
//! use tfseek::stream::StreamOptions;
//! use tfseek_tools::stats::StatsOptions;
//!
//! let mut file = Vec::new();
//! for label in 0..10 {
//!     put_record(&mut file, &ExampleBuilder::new().int64("label", [label % 3]).encode()?)?;
//! }
//! let open = |name: &&str| StreamOptions::default().read(std::io::Cursor::new(file.clone()), *name);
//! let stats = StatsOptions::default().run(&["memory"], &open)?;
//! assert_eq!(stats.records(), 10);
//! assert!(stats.report().to_string().contains(r#""distinct":{"count":3,"exact":true}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod bounds;
mod bytes;
mod chart;
mod compare;
pub(crate) mod counters;
mod distinct;
pub(crate) mod divergence;
mod feature;
mod fields;
mod frequent;
mod group;
pub(crate) mod histogram;
mod json;
mod moments;
mod names;
mod numbers;
mod payloads;
mod report;
mod run;
mod saved;
mod sizes;
mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod tfdv;

pub use run::{StatsOptions, StatsProgress};
pub use statistics::Statistics;
pub use table::TableStyle;
