//! Compressed pieces of a trace.dat: each is a stream of its own, of known length before and after.
//!
//! Must not know: what the pieces hold.

use std::fmt;
use std::io::{self, Read};

/// What pieces are compressed with.
pub(super) enum Codec {
    /// Nothing is compressed.
    None,
    /// zlib streams.
    Zlib,
    /// zstd frames.
    Zstd(zstd::bulk::Decompressor<'static>),
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Codec::None => "none",
            Codec::Zlib => "zlib",
            Codec::Zstd(_) => "zstd",
        })
    }
}

impl Codec {
    /// The codec that a file calls `name`; `None` when it is not known.
    pub(super) fn by_name(name: &str) -> io::Result<Option<Codec>> {
        Ok(match name {
            "none" => Some(Codec::None),
            "zlib" => Some(Codec::Zlib),
            "zstd" => Some(Codec::Zstd(zstd::bulk::Decompressor::new()?)),
            _ => None,
        })
    }

    /// Replaces `content` by what `compressed` holds; false when that is damaged, or not `size` bytes.
    pub(super) fn decompress(&mut self, compressed: &[u8], size: usize, content: &mut Vec<u8>) -> bool {
        content.clear();
        content.reserve_exact(size);
        let read = match self {
            Codec::None => return false,
            Codec::Zlib => {
                let limit = size as u64 + 1;
                flate2::bufread::ZlibDecoder::new(compressed).take(limit).read_to_end(content)
            }
            Codec::Zstd(decompressor) => decompressor.decompress_to_buffer(compressed, content),
        };
        read.is_ok() && content.len() == size
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn compressed(content: &[u8]) -> [(Codec, Vec<u8>); 2] {
        let zlib = Vec::new();
        let mut zlib = flate2::write::ZlibEncoder::new(zlib, flate2::Compression::fast());
        zlib.write_all(content).expect("memory");
        let zstd = zstd::bulk::compress(content, 1).expect("memory");
        let codec = |name| Codec::by_name(name).expect("memory").expect("a codec");
        [(codec("zlib"), zlib.finish().expect("memory")), (codec("zstd"), zstd)]
    }

    #[test]
    fn pieces_are_decompressed_and_their_length_is_checked() {
        let content = b"pages and pages ".repeat(1000);
        for (mut codec, bytes) in compressed(&content) {
            let mut found = b"left over".to_vec();
            assert!(codec.decompress(&bytes, content.len(), &mut found) && found == content, "{codec:?}");
            assert!(!codec.decompress(&bytes, content.len() + 1, &mut found), "{codec:?}");
            assert!(!codec.decompress(&bytes, content.len() - 1, &mut found), "{codec:?}");
            assert!(!codec.decompress(&bytes[..bytes.len() / 2], content.len(), &mut found), "{codec:?}");
            assert!(!codec.decompress(b"", content.len(), &mut found), "{codec:?}");
            let mut damaged = bytes.clone();
            damaged[1] ^= 0xff;
            assert!(!codec.decompress(&damaged, content.len(), &mut found), "{codec:?}");
            assert!(codec.decompress(&bytes, content.len(), &mut found), "{codec:?} after damage");
        }
        assert!(Codec::by_name("lzma").expect("memory").is_none());
        assert!(!Codec::None.decompress(b"abc", 3, &mut Vec::new()));
    }
}
