//! The repository: layers of modules, import cycles, unsafe code, wording, facts on the pages, and limits on
//! what grows.

mod cycles;
mod facts;
mod layering;
mod size;
mod source;
mod words;
