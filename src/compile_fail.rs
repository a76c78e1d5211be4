//! Examples that must not compile, each followed by one that compiles and differs in one line. A nightly
//! compiler also checks the error code. A stable compiler only checks that compilation fails.

/// A view cannot outlive its payload.
///
/// ```compile_fail,E0597
/// let label = {
///     let payload = tfseek::ExampleBuilder::new().int64("label", [7]).encode().unwrap();
///     tfseek::Example::new(&payload).int64("label").unwrap()
/// };
/// assert_eq!(label.first(), Some(7));
/// ```
/// ```
/// let payload = tfseek::ExampleBuilder::new().int64("label", [7]).encode().unwrap();
/// let label = {
///     tfseek::Example::new(&payload).int64("label").unwrap()
/// };
/// assert_eq!(label.first(), Some(7));
/// ```
///
/// A byte string borrowed from a view is part of the payload and cannot outlive it either.
///
/// ```compile_fail,E0505
/// let payload = tfseek::ExampleBuilder::new().bytes("image", ["jpeg"]).encode().unwrap();
/// let image = tfseek::Example::new(&payload).bytes("image").unwrap().first().unwrap();
/// drop(payload);
/// assert_eq!(image, b"jpeg");
/// ```
/// ```
/// let payload = tfseek::ExampleBuilder::new().bytes("image", ["jpeg"]).encode().unwrap();
/// let image = tfseek::Example::new(&payload).bytes("image").unwrap().first().unwrap();
/// assert_eq!(image, b"jpeg");
/// drop(payload);
/// ```
struct Payload;

/// A value borrowed from a mapped dataset through a record and a view cannot outlive the dataset.
///
/// ```compile_fail,E0505
/// # let mut file = Vec::new();
/// # let payload = tfseek::ExampleBuilder::new().float("emb", [0.5]).encode().unwrap();
/// # tfseek::frame::put_record(&mut file, &payload).unwrap();
/// let set = tfseek::Mapped::from_bytes(file).unwrap();
/// let emb = set.get(0).unwrap().example().float("emb").unwrap();
/// drop(set);
/// assert_eq!(emb.first(), Some(0.5));
/// ```
/// ```
/// # let mut file = Vec::new();
/// # let payload = tfseek::ExampleBuilder::new().float("emb", [0.5]).encode().unwrap();
/// # tfseek::frame::put_record(&mut file, &payload).unwrap();
/// let set = tfseek::Mapped::from_bytes(file).unwrap();
/// let emb = set.get(0).unwrap().example().float("emb").unwrap();
/// assert_eq!(emb.first(), Some(0.5));
/// drop(set);
/// ```
///
/// A clone of the dataset keeps the bytes, but does not extend borrows from the first one.
///
/// ```compile_fail,E0505
/// # let mut file = Vec::new();
/// # tfseek::frame::put_record(&mut file, b"payload").unwrap();
/// let set = tfseek::Mapped::from_bytes(file).unwrap();
/// let clone = set.clone();
/// let payload = set.get(0).unwrap().payload();
/// drop(set);
/// assert_eq!(payload, b"payload");
/// ```
/// ```
/// # let mut file = Vec::new();
/// # tfseek::frame::put_record(&mut file, b"payload").unwrap();
/// let set = tfseek::Mapped::from_bytes(file).unwrap();
/// let clone = set.clone();
/// let payload = clone.get(0).unwrap().payload();
/// drop(set);
/// assert_eq!(payload, b"payload");
/// ```
struct Mapped;

/// A record that was read into a buffer borrows it, so the next read cannot overwrite it.
///
/// ```compile_fail,E0499
/// # fn f(set: &tfseek::Dataset) -> tfseek::Result<()> {
/// let mut buf = Vec::new();
/// let first = set.read(0, &mut buf)?;
/// let second = set.read(1, &mut buf)?;
/// assert_ne!(first.payload(), second.payload());
/// # Ok(()) }
/// ```
/// ```
/// # fn f(set: &tfseek::Dataset) -> tfseek::Result<()> {
/// let (mut buf, mut other) = (Vec::new(), Vec::new());
/// let first = set.read(0, &mut buf)?;
/// let second = set.read(1, &mut other)?;
/// assert_ne!(first.payload(), second.payload());
/// # Ok(()) }
/// ```
struct Dataset;

/// Opening a map requires a guarantee by the caller, so it is unsafe.
///
/// ```compile_fail,E0133
/// tfseek::Mapped::open("train.tfrecord").unwrap_err();
/// ```
/// ```
/// // SAFETY: the file does not exist, so no process changes it.
/// unsafe { tfseek::Mapped::open("no such folder/train.tfrecord") }.unwrap_err();
/// ```
struct MapContract;

/// An int64 list does not accept floats, not even integral ones.
///
/// ```compile_fail,E0277
/// tfseek::ExampleBuilder::new().int64("label", [3.0]);
/// ```
/// ```
/// tfseek::ExampleBuilder::new().int64("label", [3]);
/// ```
struct Builder;
