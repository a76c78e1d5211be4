//! The repository itself: which module may use which.

mod layering;
