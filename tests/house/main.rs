//! The repository itself: which module may use which, and where unsafe code stands.

mod circles;
mod layering;
mod source;
