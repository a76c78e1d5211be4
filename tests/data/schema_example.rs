use tfseek::schema::*;

fn schema() -> tfseek::Result<Schema> {
    Schema::example()
        .feature("", FeatureSpec::var_len(DType::Float32))
        .feature("blocks", FeatureSpec::fixed_len_sequence(&[2], DType::Int64).with_default([-1i64]))
        .feature("bytes", FeatureSpec::fixed_len(&[4], DType::Bytes).with_default(vec![b"text".to_vec(), b"it\'s".to_vec(), b"\'\"\\\n\x00\xff".to_vec(), b"gr\xc3\xb6\xc3\x9fe".to_vec()]))
        .feature("divided", FeatureSpec::Ragged { dtype: DType::Float32, value_key: Some("p/values".into()), partitions: vec![Partition::RowSplits("p/splits".into()), Partition::RowLengths("p/lengths".into()), Partition::RowStarts("p/starts".into()), Partition::RowLimits("p/limits".into()), Partition::ValueRowIds("p/'rowids'".into()), Partition::UniformRowLength(2)], row_splits_dtype: SplitsDType::Int64, validate: true })
        .feature("flat", FeatureSpec::Ragged { dtype: DType::Float32, value_key: None, partitions: vec![], row_splits_dtype: SplitsDType::Int64, validate: true })
        .feature("floats", FeatureSpec::fixed_len(&[3, 2], DType::Float32).with_default([0.1f32, -0.0f32, 1e-45f32, f32::from_bits(0x7f800000), f32::from_bits(0x7fc00000), f32::from_bits(0xffc00001)]))
        .feature("ints", FeatureSpec::fixed_len(&[2, 1], DType::Int64).with_default([-9223372036854775808i64, 9223372036854775807i64]))
        .feature("it's \"größe\"\n\u{7f}\u{301}🐎\\", FeatureSpec::var_len(DType::Int64))
        .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("ragged", FeatureSpec::ragged(DType::Bytes))
        .feature("sorted", FeatureSpec::Sparse { index_keys: vec!["s/row".into(), "s/column".into()], value_key: "s/value".into(), dtype: DType::Float32, size: vec![3, 1099511627776], already_sorted: true })
        .feature("sparse", FeatureSpec::sparse(&["i"], "v", DType::Int64, &[10]))
        .feature("words", FeatureSpec::var_len(DType::Bytes))
        .build()
}
