//! The treatment of files that exist already.

/// The treatment of a regular file that has the name of an [`Output`](super::Output).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    #[default]
    Replace,
    /// It is kept, and the output is an error of the kind
    /// [`AlreadyExists`](std::io::ErrorKind::AlreadyExists), also if the file was made after the output was
    /// opened.
    Keep,
}

impl Existing {
    /// Returns `Replace` if `force` is set, otherwise `Keep`.
    pub fn replace_if(force: bool) -> Existing {
        if force { Existing::Replace } else { Existing::Keep }
    }
}
