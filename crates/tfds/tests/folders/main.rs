//! Folders of data sets: which version is opened, what is checked, and which records a split specification
//! selects.

mod cases;
mod made;
mod opening;
mod selecting;
mod windows;
