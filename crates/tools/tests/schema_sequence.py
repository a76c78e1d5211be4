import tensorflow as tf

context_features = {
    'id': tf.io.FixedLenFeature([], tf.int64),
}

sequence_features = {
    'frames': tf.io.FixedLenSequenceFeature([2, 3], tf.float32),
    'sometimes': tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    'words': tf.io.VarLenFeature(tf.string),
}
