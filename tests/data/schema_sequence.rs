use tfseek::schema::*;

fn schema() -> tfseek::Result<Schema> {
    Schema::sequence_example()
        .feature("id", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature_list("frames", FeatureSpec::FixedLenSequence { shape: vec![2, 3], dtype: DType::Float32, allow_missing: false, default: None })
        .feature_list("sometimes", FeatureSpec::fixed_len_sequence(&[], DType::Float32))
        .feature_list("words", FeatureSpec::var_len(DType::Bytes))
        .build()
}
