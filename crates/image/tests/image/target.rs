//! The fuzz target of pictures. `fuzz/` runs it under libFuzzer, and the test next to it over its corpus.

use tfseek_image::{Crop, Decoder, ImageError, ImageSpec, Resize};

/// Tests decoding. The first byte selects a spec, the others are the file.
///
/// A picture has the pixels of its size or an error. It has the same pixels at a second time, in a used decoder, and in `u16`. A crop has the pixels
/// of the whole picture. Without its last bytes a picture has the same pixels or an error.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn image(data: &[u8]) {
    let Some((&choice, file)) = data.split_first() else { return };
    let choose = |k: u8, n: u8| usize::from(choice >> k) % usize::from(n);
    let spec = ImageSpec {
        size: [None, Some([7, 5]), Some([1, 9]), Some([16, 16])][choose(0, 4)],
        channels: [1, 3, 4, 3][choose(2, 4)],
        resize: [Some(Resize::Bilinear), Some(Resize::Area)][choose(4, 2)],
        crop: [None, Some(Crop::Center), Some(Crop::RandomResized), None][choose(5, 4)],
        ..ImageSpec::default()
    };
    if spec.check().is_err() {
        return;
    }
    let mut decoder = Decoder::new();
    let decode = |decoder: &mut Decoder, file: &[u8], spec: &ImageSpec| decoder.decode::<u8>(file, spec, 5);
    let first = decode(&mut decoder, file, &spec);
    assert_eq!(decode(&mut decoder, file, &spec), first);
    let image = match first {
        Ok(image) => image,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    assert_eq!(image.pixels.len(), image.height * image.width * image.channels);
    let words = decoder.decode::<u16>(file, &spec, 5).unwrap();
    assert_eq!(words.pixels.len(), image.pixels.len());
    if file.len() < 2000 {
        for n in [1, 2, 3, 9, 30] {
            match decode(&mut decoder, &file[..file.len().saturating_sub(n)], &spec) {
                Ok(cut) => assert_eq!(cut, image),
                Err(ImageError::Spec(reason)) => panic!("{reason}"),
                Err(_) => {}
            }
        }
    }
    let whole = ImageSpec { channels: spec.channels, ..ImageSpec::default() };
    let whole = decode(&mut decoder, file, &whole).unwrap();
    if whole.height < 3 || whole.width < 3 {
        return;
    }
    let (h, w) = (whole.height / 3, whole.width / 2);
    let part = ImageSpec {
        size: Some([h as u32, w as u32]),
        channels: spec.channels,
        resize: None,
        crop: Some(Crop::Center),
        ..ImageSpec::default()
    };
    let part = decode(&mut decoder, file, &part).unwrap();
    let (top, left) = ((whole.height - h) / 2, (whole.width - w) / 2);
    for (y, row) in part.pixels.chunks(w * part.channels).enumerate() {
        let from = ((top + y) * whole.width + left) * part.channels;
        assert_eq!(row, &whole.pixels[from..from + row.len()]);
    }
}
