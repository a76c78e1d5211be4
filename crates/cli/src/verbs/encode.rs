//! `tfseek encode`: makes records from JSON, or from payloads that each follow their length.
//!
//! A new file gets its name when it is complete. On standard output the records before an error remain.

use crate::args::{self, EncodeFormat, GlobalArgs};
use crate::bytes::Size;
use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::records::{self, STDIN};
use crate::{outputs, progress, text};
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use tfseek::Writer;
use tfseek::frame::{OVERHEAD, put_record};
use tfseek::io::Existing;
use tfseek::writer::WriterOptions;
use tfseek_tools::bare::{BareError, BareReader};
use tfseek_tools::encode::{FeatureKinds, JsonError, JsonForm, JsonRecords};
use tfseek_tools::salvage::MAX_RECORD;

pub(crate) fn run(args: &args::EncodeArgs, global: &GlobalArgs, console: &mut Console) -> Outcome {
    let input = args.input.as_path();
    let kinds = match &args.spec {
        Some(spec) => Some(FeatureKinds::of(&super::parse::schema(spec)?)),
        None if args.format == EncodeFormat::Plain => {
            return Err(Failure::usage("--spec: expected a schema for --format plain, found none"));
        }
        None => None,
    };
    let mut output = if args.output == Path::new(STDIN) {
        RecordOutput::Stdout(console)
    } else {
        let out = args.output.as_path();
        let inputs = [Some(input).filter(|input| *input != Path::new(STDIN)), args.spec.as_deref()];
        outputs::check_distinct([(out, input)], inputs.into_iter().flatten())?;
        outputs::check_replace(out, args.force)?;
        let compression = tfseek_tools::outputs::compression(&out.to_string_lossy());
        RecordOutput::File(
            Box::new(
                WriterOptions::new()
                    .compression(compression)
                    .existing(Existing::replace_if(args.force))
                    .create(out)?,
            ),
            0,
        )
    };
    let (reader, size): (Box<dyn BufRead>, u64) = if input == Path::new(STDIN) {
        (Box::new(BufReader::with_capacity(BUFFER, io::stdin().lock())), 0)
    } else {
        let file = File::open(input).map_err(|e| Failure::io(input, e))?;
        let size = file.metadata().map_or(0, |meta| meta.len());
        (Box::new(BufReader::with_capacity(BUFFER, file)), size)
    };
    let bar = match size {
        0 => progress::byte_count(global, "encoding"),
        size => progress::bytes(global, "encoding", size),
    };
    let max_record = args.max_record.unwrap_or(MAX_RECORD);
    let copied = if args.bare {
        bare(BareReader::new(reader, max_record), input, &mut output, &bar)
    } else {
        let form = match args.format {
            EncodeFormat::Auto => JsonForm::Auto,
            EncodeFormat::Plain => JsonForm::Plain,
            EncodeFormat::Json => JsonForm::Json,
            EncodeFormat::ProtoJson => JsonForm::ProtoJson,
        };
        json(JsonRecords::new(reader, kinds, form, max_record), input, &mut output, &bar)
    };
    bar.finish_and_clear();
    copied?;
    match output {
        RecordOutput::Stdout(_) => Ok(()),
        RecordOutput::File(mut writer, bytes) => {
            writer.close()?;
            let size = Size { bytes, exact: global.bytes };
            let (out, n) = (args.output.display(), text::count(writer.records_written(), "record"));
            console.note(format_args!("{out}: {n}, {size}"));
            Ok(())
        }
    }
}

const BUFFER: usize = 256 << 10;

/// Destination of the records.
enum RecordOutput<'a> {
    Stdout(&'a mut Console),
    /// A file, and the bytes of its records before compression.
    File(Box<Writer>, u64),
}

impl RecordOutput<'_> {
    fn write(&mut self, payload: &[u8]) -> Outcome {
        match self {
            RecordOutput::Stdout(console) => {
                put_record(console.out(), payload).map_err(Failure::Stdout)?;
                console.end_record()
            }
            RecordOutput::File(writer, bytes) => {
                *bytes = bytes.saturating_add((payload.len() + OVERHEAD) as u64);
                Ok(writer.write(payload)?)
            }
        }
    }
}

fn json<R: Read>(
    mut reader: JsonRecords<R>,
    input: &Path,
    output: &mut RecordOutput<'_>,
    bar: &ProgressBar,
) -> Outcome {
    let mut payload = Vec::new();
    let failed = |e| match e {
        JsonError::Io(e) => Failure::io(&records::name(input), e),
        e => Failure::Message(DATA, format!("{}: {e}", records::name(input).display())),
    };
    while reader.next(&mut payload).map_err(failed)? {
        output.write(&payload)?;
        bar.set_position(reader.offset());
    }
    Ok(())
}

fn bare<R: BufRead>(
    mut reader: BareReader<R>,
    input: &Path,
    output: &mut RecordOutput<'_>,
    bar: &ProgressBar,
) -> Outcome {
    let failed = |e| match e {
        BareError::Io(e) => Failure::io(&records::name(input), e),
        BareError::TooLong { len, .. } => Failure::Message(
            DATA,
            format!("{}: {e} (`--max-record {len}` reads it)", records::name(input).display()),
        ),
        e => Failure::Message(DATA, format!("{}: {e}", records::name(input).display())),
    };
    while let Some(payload) = reader.next().map_err(failed)? {
        output.write(payload)?;
        bar.set_position(reader.offset());
    }
    Ok(())
}
