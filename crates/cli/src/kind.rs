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

    /// Returns the value of `--kind` for payloads of a kind.
    pub(crate) fn word(kind: MessageKind) -> &'static str {
        match kind {
            MessageKind::Example => "example",
            MessageKind::SequenceExample => "sequence-example",
            MessageKind::Other => "bytes",
        }
    }
}
