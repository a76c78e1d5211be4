//! Pieces of objects: which bytes are asked for, which are here, and which are needed still. No request is
//! made here.

mod piece;
mod ranges;
mod requests;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use piece::{PieceBytes, PiecePart};
pub(crate) use requests::{Origin, Request};
pub(crate) use table::{Answer, Pieces};
