//! Tensors: TensorFlow's bytes, each decoding rule (docs/format.md, section 10), damage, and hostile shapes.

use proptest::prelude::*;
use tfseek::error::{TensorError, WireError};
use tfseek::tensor::{
    DEFAULT_LIMIT, Element, TensorDType, parse_tensor, parse_tensor_within, serialize_strings,
    serialize_tensor, serialize_values,
};
use tfseek::{Error, ErrorKind};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::tensor_twin::{agree, borrows};
use tfseek_testkit::tensors::{self, field, shape};

fn hex(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect::<Vec<_>>();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Returns the values of a message given in hex.
fn values<T: Element>(text: &str) -> Vec<T> {
    parse_tensor(&hex(text), T::DTYPE).unwrap().to_vec().unwrap()
}

fn strings(text: &str) -> Vec<Vec<u8>> {
    let bytes = hex(text);
    let tensor = parse_tensor(&bytes, TensorDType::String).unwrap();
    tensor.strings().unwrap().map(<[u8]>::to_vec).collect()
}

fn refused(text: &str, dtype: TensorDType) -> Error {
    let bytes = hex(text);
    agree(&bytes, dtype);
    let e = parse_tensor(&bytes, dtype).unwrap_err();
    assert!(e.is_data(), "{e}");
    e
}

fn tensor_error(text: &str, dtype: TensorDType) -> TensorError {
    match refused(text, dtype).into_kind() {
        ErrorKind::Tensor(e) => e,
        other => panic!("{other}"),
    }
}

fn wire_error(text: &str) -> (WireError, usize) {
    match refused(text, TensorDType::Float32).into_kind() {
        ErrorKind::Wire { reason, offset } => (reason, offset),
        other => panic!("{other}"),
    }
}

/// Output of `tf.io.serialize_tensor` in TensorFlow 2.21 for `[[1, 0], [1, 1]]`, cast to each dtype.
const GOLDEN: &[(&str, &str)] = &[
    ("float32", "08011208120208021202080222100000803f000000000000803f0000803f"),
    (
        "float64",
        "0802120812020802120208022220000000000000f03f0000000000000000000000000000f03f000000000000f03f",
    ),
    ("int32", "080312081202080212020802221001000000000000000100000001000000"),
    ("uint8", "080412081202080212020802220401000101"),
    ("int16", "08051208120208021202080222080100000001000100"),
    ("int8", "080612081202080212020802220401000101"),
    (
        "complex64",
        "08081208120208021202080222200000803f0000000000000000000000000000803f000000000000803f00000000",
    ),
    ("int64", "08091208120208021202080222200100000000000000000000000000000001000000000000000100000000000000"),
    ("bool", "080a12081202080212020802220401000101"),
    ("bfloat16", "080e120812020802120208022208803f0000803f803f"),
    ("uint16", "08111208120208021202080222080100000001000100"),
    (
        "complex128",
        "0812120812020802120208022240000000000000f03f00000000000000000000000000000000\
         0000000000000000000000000000f03f0000000000000000000000000000f03f0000000000000000",
    ),
    ("float16", "0813120812020802120208022208003c0000003c003c"),
    ("uint32", "081612081202080212020802221001000000000000000100000001000000"),
    (
        "uint64",
        "08171208120208021202080222200100000000000000000000000000000001000000000000000100000000000000",
    ),
];

#[test]
fn golden_bytes_of_every_dtype() {
    for &(name, golden) in GOLDEN {
        let dtype: TensorDType = name.parse().unwrap();
        let bytes = hex(golden);
        let tensor = parse_tensor(&bytes, dtype).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[2, 2][..]));
        assert!(borrows(&tensor, &bytes));
        let content = tensor.as_bytes().unwrap();
        assert_eq!(content.len(), 4 * dtype.size().unwrap());
        assert_eq!(serialize_tensor(dtype, &[2, 2], content).unwrap(), bytes, "{name}");
        assert_eq!(tensor.serialize().unwrap(), bytes);
        agree(&bytes, dtype);
    }
    fn typed<T: Element + PartialEq + std::fmt::Debug>(values: [T; 4]) {
        let golden = GOLDEN.iter().find(|(name, _)| *name == T::DTYPE.to_string()).unwrap().1;
        assert_eq!(serialize_values(&[2, 2], &values).unwrap(), hex(golden));
        assert_eq!(self::values::<T>(golden), values);
    }
    typed([1f32, 0., 1., 1.]);
    typed([1f64, 0., 1., 1.]);
    typed([1i8, 0, 1, 1]);
    typed([1i16, 0, 1, 1]);
    typed([1i32, 0, 1, 1]);
    typed([1i64, 0, 1, 1]);
    typed([1u8, 0, 1, 1]);
    typed([1u16, 0, 1, 1]);
    typed([1u32, 0, 1, 1]);
    typed([1u64, 0, 1, 1]);
    typed([true, false, true, true]);
    typed([[1f32, 0.], [0., 0.], [1., 0.], [1., 0.]]);
    typed([[1f64, 0.], [0., 0.], [1., 0.], [1., 0.]]);

    // [["a", "bb"], ["", "c"]]
    let golden = "080712081202080212020802 420161 42026262 4200 420163";
    assert_eq!(serialize_strings(&[2, 2], &["a", "bb", "", "c"]).unwrap(), hex(golden));
    assert_eq!(strings(golden), [&b"a"[..], b"bb", b"", b"c"]);
}

#[test]
fn shapes_in_every_encoding() {
    let empty: [f32; 0] = [];
    assert_eq!(serialize_values(&[0], &empty).unwrap(), hex("0801 1202 1200"));
    assert_eq!(serialize_values(&[2, 0], &empty).unwrap(), hex("0801 1206 12020802 1200"));
    assert_eq!(serialize_values(&[], &[1f32]).unwrap(), hex("0801 1200 2204 0000803f"));
    assert_eq!(serialize_strings(&[0], &[""; 0]).unwrap(), hex("0807 1202 1200"));
    assert_eq!(serialize_strings(&[], &[""]).unwrap(), hex("0807 1200 4200"));
    assert_eq!(serialize_values(&[300], &[0u8; 300]).unwrap()[..12], hex("0804 1205 120308ac02 22ac02")[..]);
    let most = serialize_values(&[1; 254], &[7u8]).unwrap();
    assert_eq!(parse_tensor(&most, TensorDType::UInt8).unwrap().shape(), [1; 254]);
    // A size of 0 may also be written explicitly.
    assert!(values::<f32>("0801 1204 12020800").is_empty());
}

#[test]
fn dtypes() {
    for &dtype in TensorDType::ALL {
        assert_eq!(dtype.to_string().parse::<TensorDType>().unwrap(), dtype);
    }
    assert_eq!(TensorDType::ALL.len(), 16);
    assert!("Float32".parse::<TensorDType>().is_err());
    let float = TensorDType::Float32;
    for (text, number) in [("", 0), ("0800", 0), ("080b1200", 11), ("08651200", 101), ("08ffffffff0f", -1)] {
        assert_eq!(tensor_error(text, float), TensorError::UnsupportedDType { number });
    }
    let e = refused("080212021200", float);
    assert_eq!(e.to_string(), "expected a tensor of float32, found float64");
    // The last dtype field counts, and an enum keeps 32 bits.
    assert!(values::<f32>("0802 0801 12021200").is_empty());
    assert!(values::<f32>("088180808010 12021200").is_empty());
    // With the wire type of eight bytes or of a string the field is unknown, so the dtype is missing.
    assert_eq!(tensor_error("0a0101", float), TensorError::UnsupportedDType { number: 0 });
}

#[test]
fn shape_rules() {
    let float = TensorDType::Float32;
    let message = |dims: &[i64]| {
        [vec![0x08, 0x01], shape(dims)].concat().iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    // Two occurrences of a shape are merged and the dims of the second are appended, also with typed values
    // between them.
    assert_eq!(parse_tensor(&hex("0801 1204 12020802 1204 12020803"), float).unwrap().shape(), [2, 3],);
    // A missing shape is the shape of a scalar.
    assert_eq!(values::<f32>("0801"), [0.0]);
    assert_eq!(tensor_error(&message(&[-1]), float), TensorError::Dim { found: -1 });
    assert_eq!(tensor_error(&message(&[0, i64::MIN]), float), TensorError::Dim { found: i64::MIN.into() });
    assert_eq!(tensor_error(&message(&[1 << 32, 1 << 31]), float), TensorError::TooManyElements);
    // Dims multiply in order: an overflow is an error even if a 0 follows, but cannot occur after a 0.
    assert_eq!(tensor_error(&message(&[1 << 32, 1 << 31, 0]), float), TensorError::TooManyElements);
    assert!(values::<f32>(&message(&[0, 1 << 32, 1 << 31])).is_empty());
    assert!(values::<f32>(&message(&[i64::MAX, 0])).is_empty());
    assert_eq!(tensor_error(&message(&[1; 255]), float), TensorError::TooManyDims { found: 255, limit: 254 });
    assert_eq!(
        tensor_error(&message(&[1; 70_000]), float),
        TensorError::TooManyDims { found: 70_000, limit: 254 }
    );
    assert_eq!(tensor_error("0801 1202 1801", float), TensorError::UnknownRank);
    assert_eq!(tensor_error("0801 1206 1202080 2 1801", float), TensorError::UnknownRank);
    assert_eq!(values::<f32>("0801 1204 1801 1800"), [0.0]);
    // Names are skipped but must be UTF-8. The last size of a dim counts.
    assert_eq!(values::<f32>("0801 1207 1205 0802 120161"), [0.0; 2]);
    assert_eq!(wire_error("0801 1207 1205 0802 1201ff"), (WireError::Utf8, 10));
    assert_eq!(values::<f32>("0801 1206 1204 0802 0801"), [0.0]);
}

#[test]
fn content_rules() {
    let float = TensorDType::Float32;
    // The last content field counts, even an empty one. Typed values count only without content.
    assert_eq!(values::<f32>("0801 2204 0000803f 2204 00000040"), [2.0]);
    assert_eq!(values::<f32>("0801 2204 0000803f 2200"), [0.0]);
    assert_eq!(values::<f32>("0801 2a04 00004040 2204 0000803f 2200"), [3.0]);
    assert_eq!(values::<f32>("0801 2a04 00004040 2204 0000803f"), [1.0]);
    for (text, found) in [("0801 2203 000000", 3), ("0801 2205 0000000000", 5)] {
        assert_eq!(tensor_error(text, float), TensorError::ContentLen { expected: 4, found });
    }
    let e = refused("0801 2203 000000", float);
    assert_eq!(e.to_string(), "expected 4 bytes for the shape's elements, found 3");
    // Content for a shape without elements is refused, because it would be dropped silently.
    assert_eq!(
        tensor_error("0801 1202 1200 2204 00000000", float),
        TensorError::ContentLen { expected: 0, found: 4 }
    );
    assert_eq!(
        tensor_error("0801 120c 120a08ffffffffffffffff7f 2204 00000000", float),
        TensorError::ContentLen { expected: u64::MAX, found: 4 }
    );
    assert_eq!(values::<bool>("080a 1204 12020802 2202 0100"), [true, false]);
    let e = tensor_error("080a 1204 12020802 2202 0102", TensorDType::Bool);
    assert_eq!(e, TensorError::Bool { element: 1, found: 2 });
}

#[test]
fn strings_as_content() {
    assert_eq!(strings("0807 1204 12020802 2205 0102 616262"), [&b"a"[..], b"bb"]);
    // Lengths may be overlong, up to five bytes, of which 32 bits count.
    assert_eq!(strings("0807 2206 8180808070 61"), [b"a"]);
    for text in [
        "0807 2206 8180808080 61",                   // no end within five bytes
        "0807 2207 818080808000 61",                 // six bytes
        "0807 1204 12020802 2202 0061",              // one length too few
        "0807 1204 12020802 2203 000061",            // one byte too many
        "0807 1204 12020802 2203 010161",            // one byte too few
        "0807 1204 12020802 2201 80",                // ends inside a length
        "0807 2205 ffffffff0f",                      // 4 GiB
        "0807 120c 120a08ffffffffffffffff7f 220100", // more strings than bytes
        "0807 1202 1200 2201 00",                    // no lengths
    ] {
        assert!(matches!(tensor_error(text, TensorDType::String), TensorError::StringContent { .. }));
    }
}

/// Values are packed, unpacked, or mixed. Missing ones repeat the last value, and excess ones are ignored.
#[test]
fn typed_values() {
    assert_eq!(values::<f32>("0801 1204 12020803 2d 0000803f 2a08 00000040 00004040"), [1.0, 2.0, 3.0]);
    assert_eq!(values::<f32>("0801 1204 12020803 2a04 0000803f"), [1.0; 3]);
    assert_eq!(values::<f32>("0801 1204 12020803 2a08 0000803f 00000040 2a00"), [1.0, 2.0, 2.0]);
    assert_eq!(values::<f32>("0801 1204 12020803 2a00"), [0.0; 3]);
    assert_eq!(values::<f32>("0801 2a08 0000803f 00000040 2d 00004040"), [1.0]);
    assert_eq!(values::<f64>("0802 1204 12020802 31 000000000000f03f 3208 0000000000000040"), [1.0, 2.0]);
    // int_val holds the low bits of all integers of up to 32 bits, except uint32.
    let ints = "1204 12020804 3a0e ff01 8002 ffffffffffffffffff01";
    assert_eq!(values::<i32>(&format!("0803 {ints}")), [255, 256, -1, -1]);
    assert_eq!(values::<i16>(&format!("0805 {ints}")), [255, 256, -1, -1]);
    assert_eq!(values::<i8>(&format!("0806 {ints}")), [-1, 0, -1, -1]);
    assert_eq!(values::<u16>(&format!("0811 {ints}")), [255, 256, 65535, 65535]);
    assert_eq!(values::<u8>(&format!("0804 {ints}")), [255, 0, 255, 255]);
    assert_eq!(values::<i64>("0809 1204 12020802 50 ffffffffffffffffff01 5202 8001"), [-1, 128]);
    assert_eq!(values::<u32>("0816 1204 12020802 8001 05 820106 ffffffffff01"), [5, u32::MAX]);
    assert_eq!(values::<u64>("0817 8a010a ffffffffffffffffff01"), [u64::MAX]);
    // Any nonzero 64-bit value is true.
    assert_eq!(values::<bool>("080a 1204 12020803 5a06 8080808010 00"), [true, false, false]);
    // Half-precision values are in the low 16 bits.
    for number in ["13", "0e"] {
        let bytes = hex(&format!("08{number} 1204 12020802 6a04 80f8fcff 0f"));
        let dtype = *TensorDType::ALL.iter().find(|&&dtype| dtype as u8 == bytes[1]).unwrap();
        assert!(parse_tensor(&bytes, dtype).is_err(), "truncated inside the chunk");
        let bytes = hex(&format!("08{number} 1204 12020802 6a05 80f8fcff0f"));
        assert_eq!(parse_tensor(&bytes, dtype).unwrap().as_bytes().unwrap(), hex("003c 003c"), "{number}");
    }
    // A complex number is two values. Half of one is not a value.
    let half = "0808 1204 12020802 4a0c 0000803f 00000040 00004040";
    assert_eq!(values::<[f32; 2]>(half), [[1.0, 2.0]; 2]);
    assert_eq!(values::<[f32; 2]>("0808 1204 12020802 4d 0000803f"), [[0.0, 0.0]; 2]);
    let whole = "0812 1204 12020802 6210 000000000000f03f 0000000000000040";
    assert_eq!(values::<[f64; 2]>(whole), [[1.0, 2.0]; 2]);
    assert_eq!(strings("0807 1204 12020803 420161 42026262"), [&b"a"[..], b"bb", b"bb"]);
    assert_eq!(strings("0807 1204 12020802"), [b"", b""]);
    assert_eq!(strings("0807 420161 420162"), [b"a"]);
}

#[test]
fn fields_of_other_dtypes_are_ignored_but_must_be_well_formed() {
    assert_eq!(values::<f32>("0801 3a0105 420161 4a0400000000 520101 5a0101 6a0101"), [0.0]);
    assert_eq!(values::<f32>("0801 1801 a20100 4b4c 3208 0000000000000000"), [0.0]);
    // int_val is ignored for int64, and so is float_val as varints.
    assert_eq!(values::<i64>("0809 3a0105"), [0]);
    assert_eq!(values::<f32>("0801 2805"), [0.0]);
    assert_eq!(wire_error("0801 3204 00000000"), (WireError::PackedDoubleLength, 4));
    assert_eq!(wire_error("0801 2a03 000000"), (WireError::PackedFloatLength, 4));
    assert_eq!(wire_error("0801 3a0180").0, WireError::CutVarint);
    assert_eq!(wire_error("0801 1200 00").0, WireError::FieldZero);
    assert_eq!(wire_error("0801 1201").0, WireError::LengthBeyondMessage);
    assert_eq!(wire_error("0801 1203 120108"), (WireError::CutVarint, 7));
    assert_eq!(wire_error("0801 1203 120208").0, WireError::LengthBeyondMessage);
    assert_eq!(wire_error("0801 0e").0, WireError::WireType);
}

/// Ten bytes that request terabytes. Allocating them would kill the test.
#[test]
fn fills_beyond_the_limit_are_refused() {
    for &dtype in TensorDType::ALL {
        for dim in [1 << 27, 1 << 40, i64::MAX] {
            let cost = dtype.size().unwrap_or(16) as u128;
            let len = dim as u128 * cost;
            let bytes = [tensors::dtype_field(dtype).to_vec(), shape(&[dim])].concat();
            let e = parse_tensor(&bytes, dtype).unwrap_err();
            assert!(
                matches!(e.kind(), ErrorKind::TooLarge { len: l, limit: DEFAULT_LIMIT } if *l == len),
                "{dtype}: {e}"
            );
        }
    }
    // The last string is repeated, and each repetition counts toward the limit: 1 MiB, a hundred times.
    let long = field(8, &vec![b'x'; 1 << 20]);
    let bytes = [hex("0807"), shape(&[100]), long].concat();
    let e = parse_tensor(&bytes, TensorDType::String).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::TooLarge { len, .. } if *len == 100 * ((1 << 20) + 16)), "{e}");
    // A higher limit costs nothing, because repetitions are not stored.
    let tensor = parse_tensor_within(&bytes, TensorDType::String, u64::MAX).unwrap();
    assert_eq!(tensor.strings().unwrap().nth(99).unwrap().len(), 1 << 20);
    let bytes = [hex("0807"), shape(&[1 << 31])].concat();
    let tensor = parse_tensor_within(&bytes, TensorDType::String, u64::MAX).unwrap();
    assert_eq!(
        (tensor.strings().unwrap().len(), tensor.strings().unwrap().nth(1 << 30)),
        (1 << 31, Some(&b""[..]))
    );
    assert!(matches!(tensor.serialize().unwrap_err().kind(), ErrorKind::TooLarge { .. }));
    // A limit that no machine can satisfy.
    let bytes = [hex("0804"), shape(&[i64::MAX])].concat();
    let e = parse_tensor_within(&bytes, TensorDType::UInt8, u64::MAX).unwrap_err();
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)), "{e}");
}

#[test]
fn the_limit_applies_to_filled_tensors_only() {
    let ok = |text: &str| {
        parse_tensor_within(&hex(text), TensorDType::Float32, 8)
            .map(|tensor| tensor.as_bytes().unwrap().len() / 4)
    };
    assert_eq!(ok("0801 1204 12020802").unwrap(), 2);
    assert!(matches!(
        ok("0801 1204 12020803").unwrap_err().kind(),
        ErrorKind::TooLarge { len: 12, limit: 8 }
    ));
    // All values are present.
    assert_eq!(ok("0801 1204 12020803 2a0c 000000000000000000000000").unwrap(), 3);
    assert_eq!(ok("0801 1204 12020803 220c 000000000000000000000000").unwrap(), 3);
    let exact = [hex("0804"), shape(&[DEFAULT_LIMIT as i64])].concat();
    assert_eq!(
        parse_tensor(&exact, TensorDType::UInt8).unwrap().as_bytes().unwrap().len() as u64,
        DEFAULT_LIMIT
    );
}

#[test]
fn invalid_tensors_are_not_serialized() {
    let kind = |result: tfseek::Result<Vec<u8>>| match result.unwrap_err().into_kind() {
        ErrorKind::Tensor(e) => e,
        other => panic!("{other}"),
    };
    let bytes = |shape: &[u64], bytes: &[u8]| kind(serialize_tensor(TensorDType::Int16, shape, bytes));
    assert_eq!(bytes(&[2], &[0; 3]), TensorError::ContentLen { expected: 4, found: 3 });
    assert_eq!(bytes(&[u64::MAX, 0], &[]), TensorError::Dim { found: u64::MAX.into() });
    assert_eq!(bytes(&[1 << 62, 2, 0], &[]), TensorError::TooManyElements);
    assert_eq!(bytes(&[1; 255], &[0; 2]), TensorError::TooManyDims { found: 255, limit: 254 });
    assert_eq!(kind(serialize_values(&[2], &[1u8])), TensorError::Count { expected: 2, found: 1 });
    assert_eq!(kind(serialize_strings(&[], &["a", "b"])), TensorError::Count { expected: 1, found: 2 });
    let e = kind(serialize_tensor(TensorDType::String, &[], b"a"));
    assert_eq!(e, TensorError::DType { expected: "a dtype of numbers", found: "string" });
    let e = kind(serialize_tensor(TensorDType::Bool, &[2], &[1, 255]));
    assert_eq!(e, TensorError::Bool { element: 1, found: 255 });
}

/// Typed access works at every alignment, and returns an error for another element type.
#[test]
fn typed_access_at_every_alignment() {
    let want = [1.5f64, -2.0, f64::MAX];
    let message = serialize_values(&[3], &want).unwrap();
    let mut slices = 0;
    for shift in 0..8 {
        let buf = [vec![0; shift], message.clone()].concat();
        let tensor = parse_tensor(&buf[shift..], TensorDType::Float64).unwrap();
        assert_eq!(tensor.to_vec::<f64>().unwrap(), want);
        if let Some(slice) = tensor.as_slice::<f64>().unwrap() {
            assert_eq!(slice, want);
            slices += 1;
        }
        let e = tensor.to_vec::<f32>().unwrap_err();
        assert_eq!(e.to_string(), "expected a tensor of float32, found float64");
        assert!(tensor.as_slice::<u64>().is_err() && tensor.strings().is_err());
    }
    // 32-bit x86 aligns an f64 to four bytes.
    assert_eq!(slices, if cfg!(target_endian = "little") { 8 / align_of::<f64>() } else { 0 });
    let tensor = parse_tensor(b"\x08\x07", TensorDType::String).unwrap();
    assert_eq!(tensor.as_bytes(), None);
    assert!(tensor.to_vec::<u8>().is_err());
}

#[test]
fn an_owned_tensor_outlives_its_bytes() {
    let owned = {
        let bytes = serialize_strings(&[2], &["a", "bb"]).unwrap();
        let tensor = parse_tensor(&bytes, TensorDType::String).unwrap();
        assert!(borrows(&tensor, &bytes));
        let owned = tensor.into_owned();
        assert!(!borrows(&owned, &bytes));
        owned
    };
    assert!(owned.strings().unwrap().eq([b"a".as_slice(), b"bb"]));
    assert_eq!(format!("{owned:?} {:?}", owned.strings().unwrap()), "Tensor(string[2]) Strings(2 left)");
    // A NaN equals the NaN of the same bits and no other.
    let nan = |bits: u32| {
        let bytes = serialize_values(&[], &[f32::from_bits(bits)]).unwrap();
        parse_tensor(&bytes, TensorDType::Float32).unwrap().into_owned()
    };
    assert!(nan(0x7fc0_0001) == nan(0x7fc0_0001) && nan(0x7fc0_0001) != nan(0x7fc0_0000));
}

/// Every truncation and every flipped bit: the result agrees with the twin and has bounded size.
#[test]
fn every_truncation_and_flipped_bit() {
    let mut rng = Rng::new(3);
    for &dtype in TensorDType::ALL {
        for message in [tensors::canonical(&mut rng, dtype), tensors::odd(&mut rng, dtype)] {
            for cut in 0..message.len() {
                agree(&message[..cut], dtype);
            }
            for bit in 0..8 * message.len().min(400) {
                let mut flipped = message.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                agree(&flipped, dtype);
            }
        }
    }
}

#[test]
fn the_twin_agrees() {
    let mut rng = Rng::new(5);
    for k in 0..20_000 {
        let dtype = tensors::dtype(k as u8);
        agree(&tensors::odd(&mut rng, dtype), dtype);
        agree(&tensors::mutated(&mut rng, dtype), dtype);
    }
}

proptest! {
    #[test]
    fn round_trips(numbers in prop::collection::vec(any::<i64>(), 0..50), k in 0..16usize) {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        let message = serialize_values(&[numbers.len() as u64], &numbers).unwrap();
        prop_assert_eq!(parse_tensor(&message, TensorDType::Int64).unwrap().to_vec::<i64>().unwrap(), &numbers[..]);

        let dtype = TensorDType::ALL[k];
        if let Some(size) = dtype.size().filter(|_| dtype != TensorDType::Bool) {
            let n = bytes.len() / size;
            let message = serialize_tensor(dtype, &[1, n as u64], &bytes[..n * size]).unwrap();
            let tensor = parse_tensor(&message, dtype).unwrap();
            prop_assert_eq!(tensor.as_bytes().unwrap(), &bytes[..n * size]);
            prop_assert_eq!(tensor.serialize().unwrap(), message);
        }
    }

    #[test]
    fn strings_round_trip(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
    ) {
        let message = serialize_strings(&[values.len() as u64], &values).unwrap();
        let tensor = parse_tensor(&message, TensorDType::String).unwrap();
        prop_assert!(tensor.strings().unwrap().eq(values.iter().map(Vec::as_slice)));
        prop_assert_eq!(tensor.serialize().unwrap(), message);
    }
}
