//! The records of a dataset whose payloads are the message that is asked for.

use super::numbered::NumberedRecords;
use super::units::UnitSource;
use crate::forms::Content;
use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek::{Dataset, Error, Filter, Result};

/// Returns the records that meet a condition, if there is one, and that decode, if `decode` is true. All
/// records are read, or those `among` them. `left_out` is called with the error of each record that cannot be
/// read or tested, or that meets the condition and does not decode. Without a kind it is guessed for each
/// shard.
///
/// # Errors
/// I/O errors; a feature of the condition that no record has; one whose kind does not fit the condition.
pub fn decodable(
    dataset: &Dataset,
    kind: Option<MessageKind>,
    decode: bool,
    filter: Option<&Filter>,
    among: Option<&Subset>,
    mut left_out: impl FnMut(Error),
) -> Result<Subset> {
    let mut filter = filter.map(Filter::for_records);
    let among: Option<Vec<u64>> = among.map(|among| among.iter().collect());
    let mut ids = Vec::new();
    for s in 0..dataset.shards().len() {
        let mut records = NumberedRecords::shard(dataset, s, kind).only(among.as_deref());
        let kind = records.kind();
        loop {
            let accepted = match records.next() {
                Ok(None | Some((_, None))) => break,
                Ok(Some((record, Some(number)))) => {
                    let accepted = match &mut filter {
                        Some(filter) => filter.accepts(number, record.payload(), kind),
                        None => Ok(true),
                    };
                    let decoded = accepted.and_then(|accepted| {
                        if accepted && decode {
                            Content::decode(record.payload(), kind)?;
                        }
                        Ok(accepted.then_some(number))
                    });
                    decoded.map_err(|e| e.at(record.at()))
                }
                Err(e) => Err(e),
            };
            match accepted {
                Ok(id) => ids.extend(id),
                Err(e) if e.is_data() => left_out(e),
                Err(e) => return Err(e),
            }
        }
    }
    if let Some(filter) = &filter {
        filter.check_names(true)?;
    }
    Subset::from_ids(ids)
}
