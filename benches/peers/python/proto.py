"""tf.train.Example in Python's protobuf (upb) without TensorFlow, for the generator and for hand-written parsers."""
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from schemas import SCHEMA

FIELD = {"int": "int64_list", "float": "float_list", "bytes": "bytes_list"}
DTYPE = {"int": np.int64, "float": np.float32}


def example_class():
    """Returns the message class, from a separate descriptor pool."""
    F = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="peers/example.proto", package="peers", syntax="proto3")

    def message(parent, name, *fields, is_map=False):
        made = parent.add(name=name)
        made.options.map_entry = is_map
        for number, (field, kind, repeated, of) in enumerate(fields, 1):
            f = made.field.add(name=field, number=number, type=kind, label=F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL)
            if of:
                f.type_name = ".peers." + of
        return made

    top = file.message_type
    message(top, "BytesList", ("value", F.TYPE_BYTES, True, None))
    message(top, "FloatList", ("value", F.TYPE_FLOAT, True, None))
    message(top, "Int64List", ("value", F.TYPE_INT64, True, None))
    feature = message(top, "Feature", ("bytes_list", F.TYPE_MESSAGE, False, "BytesList"),
                      ("float_list", F.TYPE_MESSAGE, False, "FloatList"), ("int64_list", F.TYPE_MESSAGE, False, "Int64List"))
    feature.oneof_decl.add(name="kind")
    for f in feature.field:
        f.oneof_index = 0
    features = message(top, "Features", ("feature", F.TYPE_MESSAGE, True, "Features.FeatureEntry"))
    message(features.nested_type, "FeatureEntry", ("key", F.TYPE_STRING, False, None),
            ("value", F.TYPE_MESSAGE, False, "Feature"), is_map=True)
    message(top, "Example", ("features", F.TYPE_MESSAGE, False, "Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("peers.Example"))


def row_parser(corpus):
    """Returns a function from one payload to a dict of values, as mapped over Grain or a DataLoader."""
    plan, made = [(key, FIELD[kind], size, kind) for key, (kind, size) in SCHEMA[corpus].items()], []

    def parse(payload):
        if not made:  # created late, so that the function can be pickled into worker processes
            made.append(example_class())
        features, row = made[0].FromString(payload).features.feature, {}
        for key, field, size, kind in plan:
            value = getattr(features[key], field).value
            row[key] = value[0] if kind == "bytes" else DTYPE[kind](value[0]) if size == 1 else np.asarray(value, DTYPE[kind])
        return row

    return parse


def stack(rows):
    """Stacks rows to a batch: arrays of numbers, lists of byte strings."""
    return {key: [row[key] for row in rows] if isinstance(value, bytes) else np.stack([row[key] for row in rows])
            for key, value in rows[0].items()}


def batch_parser(corpus):
    """Returns a function from payloads to a batch, using the fastest method of upb."""
    plan = [(key, FIELD[kind], size, kind) for key, (kind, size) in SCHEMA[corpus].items()]
    example = example_class()()

    def parse(payloads):
        batch = {key: [] if kind == "bytes" or size == 1 else np.empty((len(payloads), size), DTYPE[kind])
                 for key, _, size, kind in plan}
        for i, payload in enumerate(payloads):
            example.ParseFromString(payload)
            features = example.features.feature
            for key, field, size, _ in plan:
                value = getattr(features[key], field).value
                if size == 1:
                    batch[key].append(value[0])
                else:
                    batch[key][i] = value
        return {key: np.array(batch[key], DTYPE[kind]) if kind != "bytes" and size == 1 else batch[key]
                for key, _, size, kind in plan}

    return parse
