//! Internal crate of tfseek: a viewer of TFRecord datasets, which is a server on this machine and its page.

// No request and no file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod api;
mod assets;
mod connections;
mod conversation;
mod declared;
mod fed;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod http;
mod jobs;
mod media;
mod options;
mod report;
mod roles;
mod server;
mod set;
mod tabs;
#[cfg(test)]
mod tests;
mod values;
mod viewer;

pub use media::shown_image;
pub use options::ViewOptions;
pub use report::{font, report, stats_html};
pub use server::ViewerHandle;
pub use set::{CommandWords, ViewSet};
pub use viewer::{ViewError, Viewer};
