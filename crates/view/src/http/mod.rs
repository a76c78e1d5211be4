//! Requests and responses of HTTP/1.1: GET and HEAD, one range, nothing else.

mod request;
mod response;

pub(crate) use request::{BadRequest, Parsed, Request};
pub(crate) use response::Response;

/// Answers to the requests below `/api`. The caller has checked that the request may be answered.
pub(crate) trait Answers: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Response;
}
