import numpy as np
import tensorflow as tf

feature_description = {
    '': tf.io.VarLenFeature(tf.float32),
    'blocks': tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1),
    'bytes': tf.io.FixedLenFeature([4], tf.string, default_value=[b'text', b"it's", b'\'"\\\n\x00\xff', b'gr\xc3\xb6\xc3\x9fe']),
    'divided': tf.io.RaggedFeature(tf.float32, value_key='p/values', partitions=[tf.io.RaggedFeature.RowSplits('p/splits'), tf.io.RaggedFeature.RowLengths('p/lengths'), tf.io.RaggedFeature.RowStarts('p/starts'), tf.io.RaggedFeature.RowLimits('p/limits'), tf.io.RaggedFeature.ValueRowIds("p/'rowids'"), tf.io.RaggedFeature.UniformRowLength(2)], row_splits_dtype=tf.int64, validate=True),
    'flat': tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64, validate=True),
    'floats': tf.io.FixedLenFeature([3, 2], tf.float32, default_value=[[0.1, -0.0], [1e-45, float('inf')], [float('nan'), np.uint32(0xffc00001).view(np.float32)]]),
    'ints': tf.io.FixedLenFeature([2, 1], tf.int64, default_value=[[-9223372036854775808], [9223372036854775807]]),
    'it\'s "größe"\n\x7f\u0301\U0001f40e\\': tf.io.VarLenFeature(tf.int64),
    'label': tf.io.FixedLenFeature([], tf.int64),
    'ragged': tf.io.RaggedFeature(tf.string),
    'sorted': tf.io.SparseFeature(index_key=['s/row', 's/column'], value_key='s/value', dtype=tf.float32, size=[3, 1099511627776], already_sorted=True),
    'sparse': tf.io.SparseFeature(index_key='i', value_key='v', dtype=tf.int64, size=10),
    'words': tf.io.VarLenFeature(tf.string),
}
