"""Returns the results of TensorFlow and protobuf for payloads: one JSON request per line on stdin, one JSON answer per line on
stdout. The first output line contains the versions. Bytes are hex, array elements little-endian.

    {"op": "decode", "kind": "example" | "sequence", "payloads": [HEX..]}
        -> [null | {"canonical": HEX, "dropped": bool}..]
    {"op": "parse", "kind": .., "spec": SPEC, "batches": [[HEX..]..], "single": bool}
        -> [{"columns": {..}} | {"error": CODE, "message": TEXT}..]

`decode` is FromString: null if it refuses the payload; `dropped` if it dropped a map entry with an unknown field. With `single`
each batch holds one payload, and the unbatched functions of tf.io parse it. Columns are named "features/KEY",
"lists/KEY" and "lengths/KEY".
"""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Output of libraries must not mix with the answers.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import google.protobuf
import numpy as np
import tensorflow as tf
from google.protobuf import unknown_fields
from google.protobuf.message import DecodeError

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

DTYPES = {"float32": tf.float32, "int64": tf.int64, "string": tf.string, "int32": tf.int32}
MESSAGES = {"example": tf.train.Example, "sequence": tf.train.SequenceExample}
PARTITIONS = {
    "row_splits": tf.io.RaggedFeature.RowSplits,
    "row_lengths": tf.io.RaggedFeature.RowLengths,
    "row_starts": tf.io.RaggedFeature.RowStarts,
    "row_limits": tf.io.RaggedFeature.RowLimits,
    "value_rowids": tf.io.RaggedFeature.ValueRowIds,
}


# Specs ----------------------------------------------------------------------------------------------------------------

def value(x):
    """One default value, or nested lists of values."""
    if isinstance(x, list):
        return [value(v) for v in x]
    if isinstance(x, dict) and "hex" in x:
        return bytes.fromhex(x["hex"])
    if isinstance(x, dict) and "f32" in x:
        return np.array(int(x["f32"], 16), np.uint32).view(np.float32).item()
    return x


def partition(p):
    if p["kind"] == "uniform_row_length":
        return tf.io.RaggedFeature.UniformRowLength(p["length"])
    return PARTITIONS[p["kind"]](p["key"])


def feature(f):
    dtype, kind = DTYPES[f["dtype"]], f["type"]
    if kind == "varlen":
        return tf.io.VarLenFeature(dtype)
    default = {} if f.get("default") is None else {"default_value": value(f["default"])}
    if kind == "fixed":
        return tf.io.FixedLenFeature(f["shape"], dtype, **default)
    if kind == "fixed_sequence":
        return tf.io.FixedLenSequenceFeature(f["shape"], dtype, f.get("allow_missing", False), **default)
    if kind == "sparse":
        return tf.io.SparseFeature(f["index_key"], f["value_key"], dtype, f["size"], f.get("already_sorted", False))
    if kind == "ragged":
        return tf.io.RaggedFeature(
            dtype, f.get("value_key"), [partition(p) for p in f.get("partitions", [])],
            DTYPES[f.get("row_splits_dtype", "int32")], f.get("validate", False))
    raise ValueError("no such type of feature: %s" % kind)


def features(spec):
    return {key: feature(f) for key, f in (spec or {}).items()}


# Columns --------------------------------------------------------------------------------------------------------------

def array(tensor):
    if tensor.dtype == tf.string:
        # Flattened by TensorFlow, because NumPy's fixed-width strings lose trailing zeros.
        data = [v.hex() for v in tf.reshape(tensor, [-1]).numpy().tolist()]
    else:
        data = np.ascontiguousarray(tensor.numpy()).tobytes().hex()
    return {"dtype": tensor.dtype.name, "shape": tensor.shape.as_list(), "data": data}


def column(t):
    if isinstance(t, tf.SparseTensor):
        return {"kind": "sparse", "indices": array(t.indices), "values": array(t.values),
                "dense_shape": t.dense_shape.numpy().tolist()}
    if isinstance(t, tf.RaggedTensor):
        splits = t.nested_row_splits
        return {"kind": "ragged", "values": array(t.flat_values), "row_splits_dtype": splits[0].dtype.name,
                "row_splits": [s.numpy().tolist() for s in splits]}
    return dict(array(t), kind="dense")


def columns(parts):
    return {"%s/%s" % (part, key): column(t) for part, named in parts for key, t in named.items()}


# Requests -------------------------------------------------------------------------------------------------------------

def failure(e):
    # Some messages quote the payload's bytes, which TensorFlow's own Python layer cannot decode.
    text = e.object.decode("latin-1") if isinstance(e, UnicodeDecodeError) else str(getattr(e, "message", None) or e)
    text = text.split("}} ", 1)[-1].split(" [Op:")[0]
    return {"error": type(e).__name__, "message": text[:300]}


def parse_one(kind, specs, payloads, single):
    serialized = tf.constant(payloads[0] if single else payloads, tf.string)
    if kind == "example":
        parse = tf.io.parse_single_example if single else tf.io.parse_example
        return columns([("features", parse(serialized, specs[0]))])
    context, lists = (s or None for s in specs)
    if single:
        c, l = tf.io.parse_single_sequence_example(serialized, context, lists)
        return columns([("features", c), ("lists", l)])
    c, l, n = tf.io.parse_sequence_example(serialized, context, lists)
    return columns([("features", c), ("lists", l), ("lengths", n)])


def parse(kind, spec, batches, single):
    try:
        specs = [features(spec.get("features"))] if kind == "example" else [
            features(spec.get("context")), features(spec.get("sequence"))]
    except Exception as e:
        return [failure(e) for _ in batches]
    answers = []
    for batch in batches:
        try:
            answers.append({"columns": parse_one(kind, specs, [bytes.fromhex(p) for p in batch], single)})
        except Exception as e:
            answers.append(failure(e))
    return answers


def decode(kind, payload):
    try:
        m = MESSAGES[kind].FromString(payload)
    except DecodeError:
        return None
    # Python's protobuf keeps a map entry with an unknown field as an unknown field of the map's message.
    maps = [m.features] if kind == "example" else [m.context, m.feature_lists]
    dropped = any(f.field_number == 1 and f.wire_type == 2 for x in maps for f in unknown_fields.UnknownFieldSet(x))
    m.DiscardUnknownFields()
    return {"canonical": m.SerializeToString(deterministic=True).hex(), "dropped": dropped}


def answer(request):
    if request["op"] == "decode":
        return [decode(request["kind"], bytes.fromhex(p)) for p in request["payloads"]]
    return parse(request["kind"], request["spec"], request["batches"], request["single"])


def main():
    out = {"tensorflow": tf.__version__, "protobuf": google.protobuf.__version__}
    while True:
        ANSWERS.write(json.dumps(out) + "\n")
        ANSWERS.flush()
        line = sys.stdin.readline()
        if not line:
            return
        out = answer(json.loads(line))


main()
