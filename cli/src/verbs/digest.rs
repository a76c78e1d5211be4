//! `tfseek digest`: one line of JSON a record.
//!
//! A file is of one kind, guessed from its first records. A payload that is not of that kind has no digest: `null`, unless the
//! user named the kind; then it is an error.

use crate::args;
use crate::console::Console;
use crate::exit::Outcome;
use crate::records::{self, Records};
use crate::{digest, output::Item};
use std::path::Path;

pub(crate) fn run(args: &args::Digest, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    for path in &paths {
        let outcome = file(path, args, paths.len() > 1, console);
        console.go_on(outcome)?;
    }
    Ok(())
}

fn file(path: &Path, args: &args::Digest, many: bool, console: &mut Console) -> Outcome {
    let mut records = Records::open(path, args.kind.kind)?;
    let file = match many {
        true => format!("\"file\":{},", serde_json::Value::from(records::name(path).to_string_lossy())),
        false => String::new(),
    };
    while let Some(item) = records.next()? {
        console.print(format_args!("{{{file}{}}}\n", line(item)?))?;
        console.settle()?;
    }
    Ok(())
}

fn line(item: Item<'_>) -> tfseek::Result<String> {
    let digest = match digest::content(&item.content()?) {
        Some(digest) => format!("\"{digest}\""),
        None => "null".to_owned(),
    };
    let payload = item.record.payload();
    let sha256 = digest::sha256(payload);
    Ok(format!(
        "\"index\":{},\"length\":{},\"sha256\":\"{sha256}\",\"digest\":{digest}",
        item.index,
        payload.len()
    ))
}
