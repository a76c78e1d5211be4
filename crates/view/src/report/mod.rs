//! A report of a set: one page with statistics, schema and samples, without scripts and without requests.

mod html;
mod notebook;
mod page;
mod samples;
mod tables;

pub use notebook::{font, stats_html};
pub use page::report;
