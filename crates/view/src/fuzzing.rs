//! The entry of the fuzz target `request`. It is no part of the public interface.

use crate::guard::names_server;
use crate::http::{BadRequest, Parsed, Request};
use crate::media;
use std::ops::Range;

/// A request, and decisions about it.
#[derive(Debug, PartialEq)]
pub struct Head {
    /// Bytes of the head.
    pub len: usize,
    /// HEAD instead of GET.
    pub is_head: bool,
    /// The decoded path.
    pub path: String,
    /// The decoded query.
    pub query: Vec<(String, String)>,
    /// The header `Host`.
    pub host: Option<String>,
    /// The host is this machine.
    pub is_local: bool,
    /// The range of a body of 1,000 bytes, as for `Request::range`.
    pub range: Option<Option<Range<u64>>>,
}

/// Parses the first bytes of a connection. Returns `None` if the end of the head has not arrived.
///
/// # Errors
/// The status of a request that is refused.
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, u16> {
    let head = |parsed: Parsed| Head {
        len: parsed.len,
        is_head: parsed.request.is_head,
        range: parsed.request.range(1_000),
        is_local: parsed.host.as_deref().is_some_and(|host| names_server(host, &[])),
        path: parsed.request.path,
        query: parsed.request.query,
        host: parsed.host,
    };
    let parsed = Request::parse(bytes).map_err(|BadRequest { status, .. }| status)?;
    Ok(parsed.map(head))
}

/// Returns the type of a payload that browsers may show.
pub fn payload_type(bytes: &[u8]) -> Option<&'static str> {
    media::payload_type(bytes)
}
