//! Payloads that each follow their length.

use crate::error::ConvertError;
use crate::input::{Import, ImportInput};
use std::io::BufReader;
use tfseek_tools::ToolsError;
use tfseek_tools::bare::BareReader;
use tfseek_tools::damage::MAX_RECORD;

const BUFFER: usize = 256 << 10;

/// Writes the payloads of the inputs.
pub(crate) fn import(inputs: Vec<ImportInput>, import: &mut Import<'_>) -> Result<(), ConvertError> {
    for input in inputs {
        let path = input.path().to_path_buf();
        let failed = |e| match e {
            ToolsError::Io(e) => ConvertError::io(&path, e),
            ToolsError::BareTooLong { len, .. } => {
                ConvertError::data(&path, format!("{e} (a limit of {len} bytes reads it)"))
            }
            e => ConvertError::data(&path, e.to_string()),
        };
        let bytes = BufReader::with_capacity(BUFFER, input.open()?);
        let mut reader = BareReader::new(bytes, import.options.max_record.unwrap_or(MAX_RECORD));
        let mut reported = 0;
        while let Some(payload) = reader.next().map_err(failed)? {
            import.target.write(payload)?;
            (import.progress)(reader.offset() - reported);
            reported = reader.offset();
        }
    }
    Ok(())
}
