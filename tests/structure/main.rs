//! The repository: layers of modules, import cycles, unsafe code, wording, facts on the pages, promised items,
//! workflows, and limits on what grows.

mod cycles;
mod facts;
mod layering;
mod promises;
mod size;
mod source;
mod words;
mod workflows;
