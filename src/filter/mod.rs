//! The filter language: conditions on records, and their text form.
//!
//! A [`Filter`] is evaluated on records by a [`RecordFilter`], and on the columns of a dataset by
//! [`Dataset::select`](crate::Dataset::select).

mod condition;
mod expression;
mod lex;
mod named;
mod names;
mod parse;
mod record;
pub(crate) mod value;

pub use crate::image::{image_format, image_size};
pub(crate) use condition::{Node, Test};
pub use expression::Filter;
pub(crate) use expression::list_key;
pub(crate) use names::FirstNames;
pub use names::nearest;
pub use record::RecordFilter;
pub(crate) use record::number_meets;
