//! prost: owned structs with its derive macro, as `prost-build` generates them for `example.proto`.

use crate::{Column, Peer, Refused, Values, counted, put_string};
use prost::Message;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
struct BytesList {
    #[prost(bytes = "vec", repeated, tag = "1")]
    value: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct FloatList {
    #[prost(float, repeated, tag = "1")]
    value: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Int64List {
    #[prost(int64, repeated, tag = "1")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    Bytes(BytesList),
    #[prost(message, tag = "2")]
    Float(FloatList),
    #[prost(message, tag = "3")]
    Int64(Int64List),
}

#[derive(Clone, PartialEq, Message)]
struct Feature {
    #[prost(oneof = "Kind", tags = "1, 2, 3")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Message)]
struct Features {
    #[prost(map = "string, message", tag = "1")]
    feature: HashMap<String, Feature>,
}

#[derive(Clone, PartialEq, Message)]
struct Example {
    #[prost(message, optional, tag = "1")]
    features: Option<Features>,
}

/// prost.
pub struct Prost;

impl Peer for Prost {
    fn push(payload: &[u8], columns: &mut [Column]) -> Result<(), Refused> {
        let example = Example::decode(payload).map_err(|_| Refused::Malformed)?;
        let features = example.features.ok_or(Refused::Feature)?.feature;
        for column in columns {
            let feature = features.get(&column.key).and_then(|feature| feature.kind.as_ref());
            match (&mut column.values, feature) {
                (Values::Int64(values), Some(Kind::Int64(list))) => {
                    counted(list.value.len(), column.len)?;
                    values.extend_from_slice(&list.value);
                }
                (Values::Float(values), Some(Kind::Float(list))) => {
                    counted(list.value.len(), column.len)?;
                    values.extend_from_slice(&list.value);
                }
                (Values::Bytes(data, ends), Some(Kind::Bytes(list))) => {
                    counted(list.value.len(), column.len)?;
                    list.value.iter().for_each(|value| put_string(value, data, ends));
                }
                _ => return Err(Refused::Feature),
            }
        }
        Ok(())
    }
}
