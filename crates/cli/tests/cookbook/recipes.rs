//! The Rust of docs/cookbook.md: one function per recipe.

use crate::Result;
use tfseek::{DType, Dataset, ExampleBuilder, FeatureSpec, Schema, Shuffle};

/// Runs the recipes in the order of the page.
pub(crate) fn run() -> Result {
    let ds = Dataset::open("data/observations-*.tfrecord")?;
    look_at_a_file(&ds)?;
    read_records_by_number(&ds)?;
    select_records_by_a_filter(&ds)?;
    read_one_feature_of_all_records(&ds)?;
    write_tfrecord_files()?;
    infer_a_schema(&ds)?;
    read_ragged_features_and_images()?;
    read_sequenceexamples()?;
    train_in_shuffled_epochs(&ds)?;
    split_into_training_and_validation(&ds)?;
    balance_classes(&ds)?;
    mix_two_datasets(&ds)?;
    share_an_epoch_among_ranks_and_resume(&ds)?;
    find_the_record_behind_a_nan_loss(&ds)?;
    reproduce_a_batch(&ds)?;
    compress("data/observations-00000-of-00004.tfrecord", "first.tfrecord.gz")?;
    read_gzip_files_and_pipes()?;
    open_thousands_of_shards()?;
    Ok(())
}

/// Writes the records of one file to a gzip file.
fn compress(from: &str, to: &str) -> Result {
    let mut stream = tfseek::Stream::open(from)?;
    let mut writer =
        tfseek::writer::WriterOptions::new().compression(tfseek::Compression::Gzip).create(to)?;
    while let Some(record) = stream.next()? {
        writer.write(record.payload())?;
    }
    writer.close()?;
    Ok(())
}

fn look_at_a_file(ds: &Dataset) -> Result {
    let mut buf = Vec::new();
    for (name, feature) in ds.read(0, &mut buf)?.example().features()?.iter() {
        println!("{name}: {feature:?}");
    }
    assert_eq!(ds.len(), 10_000);
    Ok(())
}

fn read_records_by_number(ds: &Dataset) -> Result {
    let mut buf = Vec::new();
    let record = ds.read(1234, &mut buf)?;
    assert_eq!(record.example().bytes("feature2")?.first(), Some(&b"chicken"[..]));
    let mut classes = Vec::new();
    ds.read_many(&[900, 3, 640], |record| {
        classes.extend(record.example().int64("feature1")?.iter());
        Ok(())
    })?;
    assert_eq!(classes, [0, 2, 0]);
    Ok(())
}

fn select_records_by_a_filter(ds: &Dataset) -> Result {
    let goats = ds.select(&r#"feature2 == "goat" and feature0 == 1"#.parse()?, &Default::default())?;
    assert_eq!(goats.count(), 960);
    assert_eq!(goats.iter().take(5).collect::<Vec<_>>(), [7, 11, 32, 42, 46]);
    Ok(())
}

fn read_one_feature_of_all_records(ds: &Dataset) -> Result {
    let column = ds.column("feature1", &Default::default())?;
    assert_eq!((column.len(), column.count()), (10_000, 10_000));
    let sizes: Vec<usize> = column.classes()?.iter().map(|(_, records)| records.len()).collect();
    assert_eq!(sizes, [2011, 2090, 1984, 1960, 1955]);
    Ok(())
}

fn write_tfrecord_files() -> Result {
    let mut writer = tfseek::writer::WriterOptions::new().create_shards("posts", ".tfrecord", 2)?;
    for i in 0..100 {
        let example = ExampleBuilder::new().int64("label", [i % 2]).int64("tokens", 0..i % 4);
        writer.write(&example.bytes("image", [[i as u8; 12]]).encode()?)?;
    }
    writer.close()?;
    Ok(())
}

fn infer_a_schema(ds: &Dataset) -> Result {
    use tfseek::{example::MessageKind, schema::Inference};
    let mut inference = Inference::new(MessageKind::Example)?;
    let first: Vec<u64> = (0..1000).collect();
    ds.read_many(&first, |record| inference.add(record.payload()))?;
    std::fs::write("schema.json", inference.schema()?.to_json())?;
    let schema = Schema::from_json(&std::fs::read_to_string("schema.json")?)?;
    assert_eq!(schema.features().len(), 4);
    Ok(())
}

fn read_ragged_features_and_images() -> Result {
    let posts = Dataset::open("posts-*.tfrecord")?;
    let schema = Schema::example().feature("tokens", FeatureSpec::ragged(DType::Int64));
    let schema = schema.feature("image", FeatureSpec::fixed_len(&[], DType::Bytes)).build()?;
    let step = posts.loader(&schema).batch_size(4).build()?.next().unwrap()?;
    let batch = step.batch().unwrap();
    let Some(tfseek::Column::Ragged(tokens)) = batch.get("tokens") else { return Err("no tokens".into()) };
    assert_eq!(tokens.values.int64(), Some(&[0, 1, 0, 1][..]));
    let (padded, mask) = tokens.to_padded(None, [-1i64])?;
    assert_eq!((&padded.shape[..], mask.iter().sum::<u8>()), (&[4, 2][..], 4));
    assert_eq!(batch.bytes("image")?.get(1), Some(&[2; 12][..]));
    Ok(())
}

fn read_sequenceexamples() -> Result {
    use tfseek::{FeatureBuf, SequenceExampleBuilder};
    let frames = vec![FeatureBuf::Float(vec![0.5, 1.5]); 2];
    let clip = SequenceExampleBuilder::new().int64("id", [7]).feature_list("frames", frames);
    let mut writer = tfseek::Writer::create("clips.tfrecord")?;
    writer.write(&clip.encode()?)?;
    writer.close()?;
    let (clips, mut buf) = (Dataset::open("clips.tfrecord")?, Vec::new());
    let clip = clips.read(0, &mut buf)?.sequence_example();
    assert_eq!(clip.context().int64("id")?.first(), Some(7));
    assert_eq!(clip.feature_list("frames")?.map(|frames| frames.iter().len()), Some(2));
    Ok(())
}

fn train_in_shuffled_epochs(ds: &Dataset) -> Result {
    let label = FeatureSpec::fixed_len(&[], DType::Int64);
    let schema = Schema::example().feature("feature1", label).build()?;
    let mut loader = ds.loader(&schema).batch_size(256).order(Shuffle::Global).seed(42).build()?;
    for _epoch in 0..2 {
        for step in loader.by_ref() {
            let step = step?;
            let labels = step.batch().unwrap().int64("feature1")?;
            assert!(labels.len() <= 256);
        }
    }
    Ok(())
}

fn split_into_training_and_validation(ds: &Dataset) -> Result {
    use tfseek::order::Subset;
    let train = Subset::from_fn(ds.len(), |i| i % 10 != 0);
    let loader = ds.record_loader().batch_size(256).order(Shuffle::Global).seed(42).select(train).build()?;
    let records = loader.map(|step| Ok(step?.ids().len())).sum::<tfseek::Result<usize>>()?;
    assert_eq!(records, 9000);
    Ok(())
}

fn balance_classes(ds: &Dataset) -> Result {
    let classes = ds.column("feature1", &Default::default())?;
    let mut loader = ds.record_loader().batch_size(100).seed(42).balance(&classes.classes()?).build()?;
    assert_eq!(loader.next().unwrap()?.ids().len(), 100);
    Ok(())
}

fn mix_two_datasets(ds: &Dataset) -> Result {
    use tfseek::order::{Component, Spec};
    let three = Component::new(3, Spec::Global).over(0..7500);
    let one = Component::new(1, Spec::Global).over(7500..10_000);
    let mixed = Shuffle::Order(Spec::Mixture(vec![three, one]));
    let mut loader = ds.record_loader().batch_size(256).order(mixed).seed(42).build()?;
    let step = loader.next().unwrap()?;
    assert_eq!(step.ids().iter().filter(|&&record| record < 7500).count(), 192);
    Ok(())
}

fn share_an_epoch_among_ranks_and_resume(ds: &Dataset) -> Result {
    let options = ds.record_loader().global_batch_size(256).order(Shuffle::Global).seed(42);
    let mut first_of_two = options.clone().rank(0, 2).build()?;
    assert_eq!(first_of_two.next().unwrap()?.ids().len(), 128);
    let saved = first_of_two.state()?.to_json();
    let mut last_of_four = options.rank(3, 4).build()?;
    last_of_four.seek(&tfseek::order::State::from_json(&saved)?)?;
    assert_eq!(last_of_four.next().unwrap()?.ids().len(), 64);
    Ok(())
}

fn find_the_record_behind_a_nan_loss(ds: &Dataset) -> Result {
    let schema =
        Schema::example().feature("feature3", FeatureSpec::fixed_len(&[], DType::Float32)).build()?;
    let mut bad = Vec::new();
    for step in ds.loader(&schema).batch_size(256).order(Shuffle::Global).seed(42).build()? {
        let step = step?;
        let values = step.batch().unwrap().float32("feature3")?;
        let rows = step.ids().iter().zip(values);
        bad.extend(rows.filter(|(_, x)| (3.0 + **x).ln().is_nan()).map(|(record, _)| *record));
    }
    assert_eq!(bad[0], 5691);
    Ok(())
}

fn reproduce_a_batch(ds: &Dataset) -> Result {
    use tfseek::Order;
    use tfseek::order::{LastBatch, RankShare, Spec};
    let order = Order::new(&Spec::Global, ds.len(), 42, 3)?;
    let share = RankShare::new(order.len(), 256, 0, 1, LastBatch::Short)?;
    let samples = order.samples(share.step(17).unwrap())?;
    let records: Vec<u64> = samples.iter().map(|sample| sample.record).collect();
    let rows = order.rows_of(1234, &share)?;
    assert_eq!((&records[..3], rows[0].step), (&[1937, 1232, 1548][..], 9));
    Ok(())
}

fn read_gzip_files_and_pipes() -> Result {
    let mut stream = tfseek::Stream::open("first.tfrecord.gz")?;
    let mut goats = 0;
    while let Some(record) = stream.next()? {
        goats += u32::from(record.example().bytes("feature2")?.first() == Some(b"goat"));
    }
    assert_eq!((goats, stream.records_read()), (473, 2500));
    Ok(())
}

fn open_thousands_of_shards() -> Result {
    let packed = Dataset::open("data/.tfseek/all.tfrp")?;
    assert_eq!((packed.len(), packed.shards().len()), (10_000, 4));
    Ok(())
}
