//! The command as its users run it. Tests of faults, of the pages and of claims that take minutes are
//! binaries of their own.

mod common;

mod comfort;
mod convert;
mod convert_text;
mod damage;
mod epoch;
mod every_verb;
mod folders;
mod follow;
mod grep;
mod man;
mod max_record;
mod odd;
mod one_pass;
mod order;
mod outputs;
mod print;
mod real;
#[cfg(feature = "remote")]
mod remote;
mod salvage;
mod schema;
mod splits;
mod stats;
mod steps;
mod tfds;
mod validate;
mod verbs;
mod view;
