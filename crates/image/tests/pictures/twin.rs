//! JPEGs have the pixels of the twin in the test kit, which is the decoder before it was made faster, or both
//! refuse them.

use crate::{Case, cases, mutate, mutations, spec};
use tfseek_image::{Crop, Decoder, ImageSpec};
use tfseek_testkit::jpeg_twin;
use tfseek_testkit::rng::Rng;

/// Compares the whole picture in 3 channels and in 1, and a rectangle in its middle. Returns true if it has
/// pixels.
fn compare(decoder: &mut Decoder, file: &[u8], size: [usize; 2], what: &str) -> bool {
    for channels in [3, 1] {
        let found = decoder.decode::<u8>(file, &spec(channels), 0);
        let found = found.map(|image| (image.height, image.width, image.pixels));
        match (found, jpeg_twin::decode(file, None, channels.into())) {
            (Ok(found), Ok(wanted)) => assert!(found == wanted, "{what}"),
            (Err(_), Err(_)) if channels == 3 => return false,
            (Err(_), Err(_)) => {}
            (found, wanted) => panic!("{what}: {:?}, twin {:?}", found.err(), wanted.err()),
        }
    }
    let (height, width, _) = jpeg_twin::decode(file, None, 3).unwrap();
    let h = size[0].min(height);
    let w = size[1].min(width);
    let middle = ImageSpec {
        size: Some([h as u32, w as u32]),
        crop: Some(Crop::Center),
        resize: None,
        ..ImageSpec::default()
    };
    let rect = [(height - h) / 2, (width - w) / 2, h, w];
    let found = decoder.decode::<u8>(file, &middle, 0).unwrap();
    assert!(found.pixels == jpeg_twin::decode(file, Some(rect), 3).unwrap().2, "{what}: {rect:?}");
    true
}

#[test]
fn every_truncation_is_as_the_twin_says() {
    let mut decoder = Decoder::default();
    for case in cases("jpg") {
        assert!(compare(&mut decoder, &case.file, [9, 14], &case.name));
        for n in 0..case.file.len() {
            let what = format!("{}: {n}", case.name);
            compare(&mut decoder, &case.file[..n], [5, 9], &what);
            compare(&mut decoder, &[&case.file[..n], b"\xff\xd9"].concat(), [5, 9], &what);
        }
    }
}

#[test]
fn mutations_are_as_the_twin_says() {
    let cases: Vec<Case> = cases("jpg").into_iter().filter(|case| case.name != "wide").collect();
    let mut decoder = Decoder::default();
    let mut decoded = 0;
    for seed in 0..mutations() {
        let mut rng = Rng::new(seed);
        let case = &cases[rng.below(cases.len())];
        let mut file = case.file.clone();
        mutate(&mut rng, &mut file);
        // A restart marker in some of them.
        if rng.chance(64) {
            let at = rng.below(file.len());
            file.splice(at..at, [0xff, 0xd0 + rng.below(8) as u8]);
        }
        let size = [1 + rng.below(40), 1 + rng.below(40)];
        decoded += u64::from(compare(&mut decoder, &file, size, &format!("{}: {seed}", case.name)));
    }
    eprintln!("{decoded} of {} mutations have pixels", mutations());
    assert!(decoded > mutations() / 50);
}
