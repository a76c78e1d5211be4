//! `tfseek digest`: prints one line of JSON per record.
//!
//! `index` is the record's number over all files, or null if it is not known. `record` is its number in its
//! file.
//!
//! All records of a file are decoded as one kind, guessed from the first records or specified by the user.
//! For a payload that does not decode, the digest is `null` if the kind was guessed; if it was specified, the
//! payload is an error.

use crate::args::{PathsArgs, PayloadArgs, WhereArgs};
use crate::condition::Condition;
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::exit::Outcome;
use crate::features;
use crate::output::NumberedRecord;
use crate::records::{self, RecordNumbers, Records};
use crate::split::InputFile;
use clap::Args;
use serde_json::Value;
use tfseek_tools::digest;

#[derive(Debug, Args)]
pub(crate) struct DigestArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

pub(crate) fn run(args: &DigestArgs, console: &mut Console) -> Outcome {
    let paths = records::resolve(&args.paths, args.payload.read, console)?;
    let mut numbers = RecordNumbers::new(args.payload.read);
    let features = features::find(paths.iter().map(InputFile::path), console);
    let mut condition = Condition::new(&args.select, paths.len(), &features)?;
    let mut skipped = SkippedErrors::default();
    for path in &paths {
        let outcome =
            file(path, args, paths.len() > 1, &mut numbers, (&mut condition, &mut skipped), console);
        console.report_and_continue(outcome)?;
    }
    condition.finish(console);
    skipped.report(console)
}

fn file(
    path: &InputFile,
    args: &DigestArgs,
    many_files: bool,
    numbers: &mut RecordNumbers,
    (condition, skipped): (&mut Condition, &mut SkippedErrors),
    console: &mut Console,
) -> Outcome {
    let before = numbers.begin(path);
    let mut records = Records::open(path, args.payload)?.numbered(before);
    let file = if many_files {
        format!("\"file\":{},", Value::from(records::name(path).to_string_lossy()))
    } else {
        String::new()
    };
    condition.compare_names(&mut records)?;
    while let Some(item) = records.next()? {
        let printed = condition.accepts(&item).and_then(|accepted| {
            if accepted {
                console.print(format_args!("{{{file}{}}}\n", line(item)?))?;
                console.end_record()?;
            }
            Ok(())
        });
        skipped.catch(args.payload.read, printed)?;
    }
    numbers.end(records.reader.total());
    Ok(())
}

fn line(item: NumberedRecord<'_>) -> tfseek::Result<String> {
    let digest = match digest::content(&item.content()?) {
        Some(digest) => format!("\"{digest}\""),
        None => "null".to_owned(),
    };
    let payload = item.record.payload();
    let sha256 = digest::sha256(payload);
    let index = Value::from(item.index);
    let record = Value::from(item.record.at().record);
    Ok(format!(
        "\"index\":{index},\"record\":{record},\"length\":{},\"sha256\":\"{sha256}\",\"digest\":{digest}",
        payload.len()
    ))
}
