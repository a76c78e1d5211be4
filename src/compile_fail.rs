//! What must not compile, each beside a twin that does and differs in one line. With the compiler's own test of the
//! error's code where it has one (on a nightly compiler); a stable one only sees that it fails.

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
/// Nor can what it lent: a byte string is a part of the payload.
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

/// What a mapped dataset lends cannot outlive it, whatever it was made of on the way.
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
/// A clone keeps the bytes, but does not lend its life to what the first one lent.
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

/// What is read into a buffer borrows it: the next read cannot overwrite it unseen.
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

/// A map is made under a promise, and only unsafe code can give it.
///
/// ```compile_fail,E0133
/// tfseek::Mapped::open("train.tfrecord").unwrap_err();
/// ```
/// ```
/// // SAFETY: there is no such file, so nobody changes it.
/// unsafe { tfseek::Mapped::open("no such folder/train.tfrecord") }.unwrap_err();
/// ```
struct Door;

/// A float does not go into an int64 list, not even a whole one.
///
/// ```compile_fail,E0277
/// tfseek::ExampleBuilder::new().int64("label", [3.0]);
/// ```
/// ```
/// tfseek::ExampleBuilder::new().int64("label", [3]);
/// ```
struct Builder;
