//! PNG and WAV files, made here.

/// Returns an RGB image as a PNG with stored deflate blocks.
pub(crate) fn png(width: u32, height: u32, color: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut rows = Vec::new();
    for y in 0..height {
        rows.push(0);
        rows.extend((0..width).flat_map(|x| color(x, y)));
    }
    let mut data = vec![0x78, 0x01];
    let blocks: Vec<&[u8]> = rows.chunks(0xffff).collect();
    for (i, block) in blocks.iter().enumerate() {
        let len = block.len() as u16;
        data.push(u8::from(i + 1 == blocks.len()));
        data.extend(len.to_le_bytes());
        data.extend((!len).to_le_bytes());
        data.extend(*block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in &rows {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    data.extend((b << 16 | a).to_be_bytes());

    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    for (kind, content) in [(b"IHDR", &header[..]), (b"IDAT", &data), (b"IEND", &[])] {
        file.extend((content.len() as u32).to_be_bytes());
        let start = file.len();
        file.extend(kind);
        file.extend(content);
        let crc = crc32(&file[start..]);
        file.extend(crc.to_be_bytes());
    }
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}

/// Returns mono samples as a WAV file of 16 bits.
pub(crate) fn wav(rate: u32, samples: &[i16]) -> Vec<u8> {
    let bytes = samples.len() as u32 * 2;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(rate.to_le_bytes());
    file.extend((rate * 2).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

/// Returns a tone.
pub(crate) fn tone(rate: u32, hertz: f64, n: u32) -> Vec<i16> {
    let at = |i| (f64::from(i) * hertz * std::f64::consts::TAU / f64::from(rate)).sin();
    (0..n).map(|i| (at(i) * 12000.0) as i16).collect()
}
