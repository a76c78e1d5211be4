//! Tests of all parts together.

mod server;
mod world;
