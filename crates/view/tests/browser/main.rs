//! The page in a real browser: a headless Chromium, driven by its DevTools protocol over a pipe.
//!
//! The browser is `TFSEEK_BROWSER`, or the first of `chromium-headless-shell`, `chromium` and `google-chrome`
//! on the path. Without one, each test says that it is skipped, and passes. Screenshots are written to
//! `target/view/`.

#![cfg(unix)]

mod charts;
mod closing;
mod data;
mod devtools;
mod episode;
mod gallery;
mod goals;
mod grid;
mod looks;
mod manners;
mod page;
mod png;
mod real;
mod record;
mod report;
mod safety;
mod shapes;
mod shown;
mod small;
mod ways;
mod whole;
