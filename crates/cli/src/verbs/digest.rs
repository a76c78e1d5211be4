//! `tfseek digest`: one line of JSON a record, with `index`, its number over all files, or null where that is not known, and `record`,
//! its number in its file.
//!
//! A file is of one kind, guessed from its first records. A payload that is not of that kind has no digest: `null`, unless the
//! user named the kind; then it is an error.

use crate::args;
use crate::console::Console;
use crate::exit::Outcome;
use crate::output::Item;
use crate::records::{self, Numbers, Records};
use serde_json::Value;
use std::path::Path;
use tfseek_tools::digest;

pub(crate) fn run(args: &args::Digest, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths)?;
    let mut numbers = Numbers::new();
    for path in &paths {
        let outcome = file(path, args, paths.len() > 1, &mut numbers, console);
        console.go_on(outcome)?;
    }
    Ok(())
}

fn file(
    path: &Path,
    args: &args::Digest,
    many: bool,
    numbers: &mut Numbers,
    console: &mut Console,
) -> Outcome {
    let before = numbers.begin(path);
    let mut records = Records::open(path, args.kind)?.numbered(before);
    let file = match many {
        true => format!("\"file\":{},", Value::from(records::name(path).to_string_lossy())),
        false => String::new(),
    };
    while let Some(item) = records.next()? {
        console.print(format_args!("{{{file}{}}}\n", line(item)?))?;
        console.settle()?;
    }
    numbers.end(records.total());
    Ok(())
}

fn line(item: Item<'_>) -> tfseek::Result<String> {
    let digest = match digest::content(&item.content()?) {
        Some(digest) => format!("\"{digest}\""),
        None => "null".to_owned(),
    };
    let payload = item.record.payload();
    let sha256 = digest::sha256(payload);
    let (index, record) = (Value::from(item.index), Value::from(item.record.at().record));
    Ok(format!(
        "\"index\":{index},\"record\":{record},\"length\":{},\"sha256\":\"{sha256}\",\"digest\":{digest}",
        payload.len()
    ))
}
