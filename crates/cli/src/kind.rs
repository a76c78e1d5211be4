//! The kind of records that the user named.

use crate::args::KindChoice;
use tfseek::example::MessageKind;

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
