//! What records are taken for: what the user says, else the library's guess.

use crate::args::KindChoice;
use tfseek::example::MessageKind;

/// Records that are looked at before a file is called one thing, and their bytes.
pub(crate) const LOOK: (usize, usize) = (16, 1 << 20);

impl KindChoice {
    /// The kind the user named.
    pub(crate) fn named(self) -> Option<MessageKind> {
        match self {
            KindChoice::Auto => None,
            KindChoice::Example => Some(MessageKind::Example),
            KindChoice::Sequence => Some(MessageKind::SequenceExample),
            KindChoice::Raw => Some(MessageKind::Other),
        }
    }
}
