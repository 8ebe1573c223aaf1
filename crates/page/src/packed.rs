//! Long arrays of numbers as a page holds them: base64 of their bytes in little-endian order, deflated.
//!
//! `web/src/base/packed.ts` reads them. Must not know: what the numbers mean.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

/// A number that a typed array of a browser holds.
pub trait PackedNumber: Copy {
    /// The array's kind, as the page names it.
    const KIND: &'static str;

    /// Adds the number's bytes, the least significant first.
    fn put(self, bytes: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ident),*) => {$(
        impl PackedNumber for $number {
            const KIND: &'static str = stringify!($number);

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

numbers!(u8, u16, u32, i32, f32, f64);

/// An array for a page.
pub fn packed<N: PackedNumber>(numbers: &[N]) -> Value {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| number.put(&mut bytes));
    json!({"packed": N::KIND, "length": numbers.len(), "data": STANDARD.encode(deflated(&bytes))})
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    // Writing into memory does not fail.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    #[test]
    fn arrays_come_back() {
        let numbers = (0..10_000_u32).map(|number| number.wrapping_mul(2_654_435_761)).collect::<Vec<_>>();
        let value = packed(&numbers);
        assert_eq!((value["packed"].as_str(), value["length"].as_u64()), (Some("u32"), Some(10_000)));
        let deflated = STANDARD.decode(value["data"].as_str().unwrap_or_default()).expect("base64");
        let mut bytes = Vec::new();
        ZlibDecoder::new(deflated.as_slice()).read_to_end(&mut bytes).expect("zlib");
        let back = bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        assert!(back.eq(numbers));
        assert_eq!(packed::<f64>(&[])["length"], 0);
    }
}
