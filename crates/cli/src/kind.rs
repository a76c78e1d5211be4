//! The kind of records that the user specified.

use crate::args::PayloadKind;
use tfseek::example::MessageKind;

impl PayloadKind {
    /// Returns the kind that the user specified, or `None` if it is to be guessed.
    pub(crate) fn specified(self) -> Option<MessageKind> {
        match self {
            PayloadKind::Auto => None,
            PayloadKind::Example => Some(MessageKind::Example),
            PayloadKind::Sequence => Some(MessageKind::SequenceExample),
            PayloadKind::Raw => Some(MessageKind::Other),
        }
    }
}
