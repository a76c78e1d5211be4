//! Record streams.

use super::script::Script;
use crate::agree;
use tfseek::frame::put_record;

/// Tests record streams. After a first byte 0 the rest is the stream. Because a fuzzer cannot guess a crc,
/// the stream is otherwise built from the rest, which is read as payloads and edits.
pub fn frames(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return agree::frames(data) };
    if mode == 0 {
        return agree::frames(rest);
    }
    let mut script = Script(rest);
    let mut file = Vec::new();
    for _ in 0..mode % 8 {
        let len = script.u16() % 600;
        let payload = script.take(len);
        put_record(&mut file, payload).unwrap();
    }
    agree::frames(&file);
    if mode >= 8 {
        script.edit(&mut file);
        agree::frames(&file);
    }
}
