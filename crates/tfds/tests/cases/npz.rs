//! The arrays of an `.npz` file that NumPy compressed.

use flate2::read::DeflateDecoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Arrays of one dimension, as bytes, with the size of an item.
pub(crate) struct Npz(BTreeMap<String, (usize, Vec<u8>)>);

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + N].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

impl Npz {
    /// Reads a file. It has a directory at its end, with the place of each array.
    pub(crate) fn read(path: &Path) -> Npz {
        let Ok(file) = fs::read(path) else { return Npz(BTreeMap::new()) };
        let end = (0..file.len() - 21).rev().find(|at| file[*at..].starts_with(b"PK\x05\x06")).unwrap();
        let (entries, mut at) = (number::<2>(&file, end + 10), number::<4>(&file, end + 16) as usize);
        let mut arrays = BTreeMap::new();
        for _ in 0..entries {
            let [name, extra, comment] = [28, 30, 32].map(|field| number::<2>(&file, at + field) as usize);
            let size = number::<4>(&file, at + 20) as usize;
            let method = number::<2>(&file, at + 10);
            let local = number::<4>(&file, at + 42) as usize;
            let key = String::from_utf8(file[at + 46..at + 46 + name].to_vec()).unwrap();
            at += 46 + name + extra + comment;
            let [name, extra] = [26, 28].map(|field| number::<2>(&file, local + field) as usize);
            let data = &file[local + 30 + name + extra..][..size];
            let mut bytes = Vec::new();
            match method {
                0 => bytes.extend_from_slice(data),
                _ => drop(DeflateDecoder::new(data).read_to_end(&mut bytes).unwrap()),
            }
            arrays.insert(key.trim_end_matches(".npy").to_owned(), array(&bytes));
        }
        Npz(arrays)
    }

    /// Returns values `at .. at + len` of an array.
    pub(crate) fn values(&self, name: &str, at: usize, len: usize) -> Vec<Vec<u8>> {
        if len == 0 {
            return Vec::new();
        }
        let (size, bytes) = &self.0[name];
        if name == "string" {
            let (_, offsets) = &self.0["string_offsets"];
            let offset = |k: usize| number::<8>(offsets, 8 * k) as usize;
            return (at..at + len).map(|k| bytes[offset(k)..offset(k + 1)].to_vec()).collect();
        }
        bytes[at * size..(at + len) * size].chunks(*size).map(<[u8]>::to_vec).collect()
    }
}

/// Returns the size of an item of a `.npy` array, and its bytes.
fn array(npy: &[u8]) -> (usize, Vec<u8>) {
    let header = number::<2>(npy, 8) as usize;
    let text = std::str::from_utf8(&npy[10..10 + header]).unwrap();
    let (_, descr) = text.split_once("'descr': '").unwrap();
    let size = descr.split('\'').next().unwrap().trim_start_matches(|c: char| !c.is_ascii_digit());
    (size.parse().unwrap(), npy[10 + header..].to_vec())
}
