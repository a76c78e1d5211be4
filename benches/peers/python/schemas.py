"""The features of each corpus."""
from __future__ import annotations

# feature: (kind, number of values)
SCHEMA: dict[str, dict[str, tuple[str, int]]] = {
    "tabular": {"feature0": ("int", 1), "feature1": ("int", 1), "feature2": ("bytes", 1), "feature3": ("float", 1)},
    "wide": {**{f"f{i:03d}": ("float", 1) for i in range(100)}, **{f"i{i:03d}": ("int", 1) for i in range(80)},
             **{f"b{i:03d}": ("bytes", 1) for i in range(20)}},
    "tokens": {"tokens": ("int", 512), "label": ("int", 1), "weight": ("float", 1)},
    "embedding": {"embedding": ("float", 1024), "label": ("int", 1), "id": ("bytes", 1)},
    "image": {"image/encoded": ("bytes", 1), "image/height": ("int", 1), "image/width": ("int", 1), "image/label": ("int", 1),
              "image/filename": ("bytes", 1)},
}
SCHEMA["wide_own"] = SCHEMA["wide"]  # random feature order per record
SCHEMA["many"] = SCHEMA["tabular"]  # ten thousand shards


def spec(corpus: str) -> dict:
    """Returns the features for tfseek. All are required."""
    import tfseek

    dtype = {"int": "int64", "float": "float32", "bytes": "string"}
    return {key: tfseek.FixedLenFeature([] if n == 1 else [n], dtype[kind]) for key, (kind, n) in SCHEMA[corpus].items()}
