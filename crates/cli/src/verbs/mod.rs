//! The verbs of the command, one file per verb. A verb calls the library and prints the result.

pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod digest;
pub(crate) mod epoch;
#[cfg(feature = "remote")]
pub(crate) mod fetch;
mod follow;
pub(crate) mod get;
pub(crate) mod grep;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod order;
pub(crate) mod parse;
pub(crate) mod reshard;
pub(crate) mod salvage;
pub(crate) mod sample;
pub(crate) mod schema;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod unpack;
pub(crate) mod validate;
pub(crate) mod verify;
#[cfg(feature = "view")]
pub(crate) mod view;
