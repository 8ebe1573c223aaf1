//! The types of the running kernel, as it describes them itself (`/sys/kernel/btf/vmlinux`).
//!
//! Source: Documentation/bpf/btf.rst of the kernel, which fixes the layout.
//!
//! Must not know: which of its types are of interest.

use std::collections::HashMap;

/// Kinds of types that matter here; others are known by how long they are.
mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC: u32 = 12;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;

/// Types refer to one another; a file that makes a ring of them is broken.
const DEPTH_MAX: usize = 32;

/// The number of a type. 0 is `void`.
pub type TypeId = u32;

/// A kernel's types.
#[derive(Debug)]
pub struct Types<'a> {
    strings: &'a [u8],
    types: Vec<BtfType<'a>>,
    structs: HashMap<&'a str, TypeId>,
    functions: HashMap<&'a str, TypeId>,
}

#[derive(Clone, Copy, Debug)]
struct BtfType<'a> {
    info: u32,
    /// A size, or the type that this one refers to.
    size_or_type: u32,
    /// What follows the head.
    rest: &'a [u8],
}

impl BtfType<'_> {
    fn kind(&self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn words(&self, of: usize) -> impl Iterator<Item = Vec<u32>> {
        self.rest.chunks_exact(of * 4).map(|entry| entry.chunks_exact(4).map(word_of).collect())
    }
}

/// A member that a path led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtfMember {
    /// Bytes from the beginning of the outermost structure.
    pub offset: u64,
    /// Its type.
    pub of: TypeId,
}

/// How a value is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtfScalar {
    /// An integer of so many bits.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u32,
        /// Whether it has a sign.
        signed: bool,
    },
    /// An address, and of what.
    Pointer(TypeId),
    /// The first word of something longer.
    Words,
}

impl<'a> Types<'a> {
    /// Reads a description; `None` if it is none.
    pub fn parse(bytes: &'a [u8]) -> Option<Types<'a>> {
        let header = bytes.get(..HEADER_BYTES)?;
        if u16::from_le_bytes([header[0], header[1]]) != MAGIC {
            return None;
        }
        let number = |at: usize| word_of(&header[at..at + 4]) as usize;
        let (head, types_at, types_length) = (number(4), number(8), number(12));
        let (strings_at, strings_length) = (number(16), number(20));
        let part = |at: usize, length: usize| {
            let start = head.checked_add(at)?;
            bytes.get(start..start.checked_add(length)?)
        };
        let strings = part(strings_at, strings_length)?;
        let mut types = Types {
            strings,
            types: vec![BtfType { info: 0, size_or_type: 0, rest: &[] }],
            structs: HashMap::new(),
            functions: HashMap::new(),
        };
        let mut rest = part(types_at, types_length)?;
        while !rest.is_empty() {
            rest = types.take_type(rest)?;
        }
        Some(types)
    }

    /// Takes one type over and gives what follows it.
    fn take_type(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (head, after) = bytes.split_at_checked(12)?;
        let [name, info, size_or_type] = [0, 4, 8].map(|at| word_of(&head[at..at + 4]));
        let count = (info & 0xffff) as usize;
        let length = match info >> 24 & 0x1f {
            kind::INT | kind::VAR | kind::DECL_TAG => 4,
            kind::ARRAY => 12,
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => count * 12,
            kind::ENUM | kind::FUNC_PROTO => count * 8,
            _ => 0,
        };
        let (rest, after) = after.split_at_checked(length)?;
        let found = BtfType { info, size_or_type, rest };
        let id = self.types.len() as TypeId;
        let text = self.string(name);
        match found.kind() {
            kind::STRUCT | kind::UNION if !text.is_empty() => {
                self.structs.entry(text).or_insert(id);
            }
            kind::FUNC => {
                self.functions.entry(text).or_insert(size_or_type);
            }
            _ => {}
        }
        self.types.push(found);
        Some(after)
    }

    fn string(&self, at: u32) -> &'a str {
        let bytes = self.strings.get(at as usize..).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
        std::str::from_utf8(&bytes[..end]).unwrap_or_default()
    }

    fn get(&self, id: TypeId) -> Option<BtfType<'a>> {
        self.types.get(id as usize).copied()
    }

    /// What a type is without names and qualifiers.
    fn bare(&self, mut id: TypeId) -> Option<BtfType<'a>> {
        for _ in 0..DEPTH_MAX {
            let found = self.get(id)?;
            match found.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = found.size_or_type;
                }
                _ => return Some(found),
            }
        }
        None
    }

    /// The structure of this name.
    pub fn structure(&self, name: &str) -> Option<TypeId> {
        self.structs.get(name).copied()
    }

    /// Parameters of a function, in order: name and type; and the type that it returns.
    pub fn function(&self, name: &str) -> Option<(Vec<(&'a str, TypeId)>, TypeId)> {
        let prototype = self.get(*self.functions.get(name)?)?;
        if prototype.kind() != kind::FUNC_PROTO {
            return None;
        }
        let parameters = prototype.words(2).map(|words| (self.string(words[0]), words[1])).collect();
        Some((parameters, prototype.size_or_type))
    }

    /// The member of a structure that a path of names leads to, also through unnamed members.
    pub fn member(&self, of: TypeId, path: &str) -> Option<BtfMember> {
        let mut at = BtfMember { offset: 0, of };
        for name in path.split('.') {
            let inner = self.direct(at.of, name, DEPTH_MAX)?;
            at = BtfMember { offset: at.offset + inner.offset, of: inner.of };
        }
        Some(at)
    }

    fn direct(&self, of: TypeId, wanted: &str, depth: usize) -> Option<BtfMember> {
        let outer = self.bare(of)?;
        if depth == 0 || !matches!(outer.kind(), kind::STRUCT | kind::UNION) {
            return None;
        }
        let with_bits = outer.info >> 31 == 1;
        for words in outer.words(3) {
            let (name, inner) = (self.string(words[0]), words[1]);
            let bits = if with_bits { words[2] & 0xff_ffff } else { words[2] };
            let offset = u64::from(bits / 8);
            if name == wanted {
                return Some(BtfMember { offset, of: inner });
            }
            if name.is_empty()
                && let Some(found) = self.direct(inner, wanted, depth - 1)
            {
                return Some(BtfMember { offset: offset + found.offset, of: found.of });
            }
        }
        None
    }

    /// How a value of this type is read.
    pub fn scalar(&self, of: TypeId) -> Option<BtfScalar> {
        let found = self.bare(of)?;
        match found.kind() {
            kind::INT => {
                let encoding = found.rest.get(..4).map_or(0, word_of);
                let is_bool = encoding >> 24 & 4 != 0;
                let signed = encoding >> 24 & 1 != 0 && !is_bool;
                Some(BtfScalar::Integer { bits: found.size_or_type * 8, signed })
            }
            kind::ENUM => Some(BtfScalar::Integer { bits: found.size_or_type * 8, signed: false }),
            kind::PTR => Some(BtfScalar::Pointer(found.size_or_type)),
            kind::ARRAY | kind::STRUCT | kind::UNION => Some(BtfScalar::Words),
            _ => None,
        }
    }
}

fn word_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// A description of a few types, as a kernel would give it.
#[cfg(test)]
pub(crate) mod made {
    use super::kind;

    /// Types under construction.
    #[derive(Default)]
    pub struct Made {
        types: Vec<u8>,
        strings: Vec<u8>,
        count: u32,
    }

    impl Made {
        pub fn new() -> Made {
            Made { strings: vec![0], ..Made::default() }
        }

        fn name(&mut self, name: &str) -> u32 {
            if name.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
            at
        }

        /// Adds a type and gives its number.
        fn add(&mut self, name: &str, kind: u32, count: u32, size_or_type: u32, rest: &[u32]) -> u32 {
            let name = self.name(name);
            for word in [name, kind << 24 | count, size_or_type].iter().chain(rest) {
                self.types.extend_from_slice(&word.to_le_bytes());
            }
            self.count += 1;
            self.count
        }

        pub fn integer(&mut self, bytes: u32, signed: bool) -> u32 {
            self.add("", kind::INT, 0, bytes, &[(u32::from(signed) << 24) | (bytes * 8)])
        }

        pub fn pointer(&mut self, of: u32) -> u32 {
            self.add("", kind::PTR, 0, of, &[])
        }

        pub fn constant(&mut self, of: u32) -> u32 {
            self.add("", kind::CONST, 0, of, &[])
        }

        /// Members: name, type, offset in bytes.
        pub fn structure(&mut self, name: &str, members: &[(&str, u32, u32)]) -> u32 {
            let words: Vec<u32> =
                members.iter().flat_map(|(name, of, at)| [self.name(name), *of, at * 8]).collect();
            self.add(name, kind::STRUCT, members.len() as u32, 64, &words)
        }

        pub fn function(&mut self, name: &str, parameters: &[(&str, u32)], returned: u32) {
            let words: Vec<u32> = parameters.iter().flat_map(|(name, of)| [self.name(name), *of]).collect();
            let prototype = self.add("", kind::FUNC_PROTO, parameters.len() as u32, returned, &words);
            self.add(name, kind::FUNC, 0, prototype, &[]);
        }

        pub fn finish(self) -> Vec<u8> {
            let mut bytes = Vec::from(super::MAGIC.to_le_bytes());
            bytes.extend_from_slice(&[1, 0]);
            let lengths = [self.types.len() as u32, self.strings.len() as u32];
            for word in [24, 0, lengths[0], lengths[0], lengths[1]] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            [bytes, self.types, self.strings].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::made::Made;
    use super::*;

    #[test]
    fn members_are_found_also_in_what_has_no_name() {
        let mut made = Made::new();
        let (long, int) = (made.integer(8, false), made.integer(4, true));
        let unnamed = made.structure("", &[("hidden", int, 4)]);
        let load = made.structure("load", &[("weight", long, 8)]);
        let constant = made.constant(load);
        made.structure("queue", &[("load", constant, 16), ("", unnamed, 32)]);
        made.function("enqueue", &[("queue", long)], int);
        let bytes = made.finish();
        let types = Types::parse(&bytes).expect("a description");
        let queue = types.structure("queue").expect("a structure");
        assert_eq!(types.member(queue, "load.weight"), Some(BtfMember { offset: 24, of: long }));
        assert_eq!(types.member(queue, "hidden"), Some(BtfMember { offset: 36, of: int }));
        assert_eq!(types.member(queue, "load.none"), None);
        assert_eq!(types.scalar(int), Some(BtfScalar::Integer { bits: 32, signed: true }));
        assert_eq!(types.function("enqueue"), Some((vec![("queue", long)], int)));
        for length in 0..bytes.len() {
            // Strings that are cut are none; nothing else may be missing.
            assert!(Types::parse(&bytes[..length]).is_none(), "cut to {length}");
        }
    }

    #[test]
    fn types_that_refer_to_themselves_end() {
        let mut made = Made::new();
        let itself = made.constant(1);
        made.structure("ring", &[("", 2, 0)]);
        let bytes = made.finish();
        let types = Types::parse(&bytes).expect("a description");
        assert_eq!(types.scalar(itself), None);
        let ring = types.structure("ring").expect("a structure");
        assert_eq!(types.member(ring, "anything"), None);
    }
}
