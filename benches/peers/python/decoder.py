"""tfx_bsl's decoder of Examples into Arrow batches. It runs without TensorFlow: `pip install --no-deps tfx-bsl tensorflow-metadata`."""
from __future__ import annotations

from schemas import SCHEMA


def decoder(corpus: str):
    """Returns a function from a list of payloads to a record batch."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    names = {"int": "INT", "float": "FLOAT", "bytes": "BYTES"}
    text = "".join(f'feature {{ name: "{key}" type: {names[kind]} }}\n' for key, (kind, _) in SCHEMA[corpus].items())
    return ExamplesToRecordBatchDecoder(text_format.Parse(text, schema_pb2.Schema()).SerializeToString()).DecodeBatch
