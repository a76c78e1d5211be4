//! Answers to the requests of the page.

mod common;
mod damage;
mod episode;
#[cfg(test)]
mod episode_tests;
mod find;
mod order;
mod records;
mod refusal;
mod routes;
mod schema;
mod sets;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use routes::Api;
pub(crate) use schema::inferred as inferred_schema;
