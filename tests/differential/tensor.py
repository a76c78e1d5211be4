"""Returns the results of tf.io.parse_tensor and tf.io.serialize_tensor.

Reads JSON lines {"payload": hex, "dtype": name}. Writes one line for each: {"ok": true, "shape": [..], "data": [hex, ..],
"again": hex}, or {"ok": false, "error": text}. `data` is the tensor's bytes as one string, or each string of a string
tensor; `again` is the serialized tensor.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


def answer(payload, dtype):
    try:
        tensor = tf.io.parse_tensor(payload, dtype)
    except (tf.errors.OpError, ValueError) as e:
        return {"ok": False, "error": str(e)[:200]}
    shape = tensor.shape.as_list()
    # NumPy cannot represent the shape [2**63 - 1, 0], which TensorFlow allows.
    values = np.zeros(0) if 0 in shape else tensor.numpy()
    if dtype == tf.string:
        data = [value.hex() for value in np.asarray(values, object).reshape(-1)]
    else:
        data = [values.tobytes().hex()]
    again = tf.io.serialize_tensor(tensor).numpy().hex()
    return {"ok": True, "shape": shape, "data": data, "again": again}


for line in sys.stdin:
    case = json.loads(line)
    result = answer(bytes.fromhex(case["payload"]), tf.dtypes.as_dtype(case["dtype"]))
    print(json.dumps(result), flush=True)
