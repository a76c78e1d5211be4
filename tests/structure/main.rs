//! The repository: layers of modules, import cycles, unsafe code, wording, and facts on the pages.

mod cycles;
mod facts;
mod layering;
mod source;
mod words;
