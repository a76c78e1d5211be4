//! A report of a set: one page with statistics, schema and samples, without scripts and without requests.

mod html;
mod page;
mod samples;
mod tables;

pub use page::report;
