//! Flattened device trees: how a kernel for arm64 is told what its machine consists of.
//!
//! Source: Devicetree Specification 0.4, chapter 5.
//!
//! Must not know: what any node means.

/// The first word of a blob.
const MAGIC: u32 = 0xd00d_feed;
/// The format's version, and the oldest whose readers can read it.
const VERSION: u32 = 17;
const COMPATIBLE_VERSION: u32 = 16;
/// Words of the header.
const HEADER_WORDS: usize = 10;

/// What the structure consists of.
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;
const END: u32 = 9;

/// A whole tree. Memory that is kept from the kernel by the header, not by a node, is not carried along: emulated machines
/// name none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceTree {
    pub root: DeviceTreeNode,
}

/// A node with its properties and the nodes below it, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceTreeNode {
    pub name: String,
    properties: Vec<(String, Vec<u8>)>,
    pub children: Vec<DeviceTreeNode>,
}

impl DeviceTreeNode {
    pub fn new(name: impl Into<String>) -> DeviceTreeNode {
        DeviceTreeNode { name: name.into(), ..DeviceTreeNode::default() }
    }

    /// With a property of numbers of 32 bits.
    pub fn cells(mut self, name: &str, cells: &[u32]) -> DeviceTreeNode {
        self.set(name, cells.iter().flat_map(|cell| cell.to_be_bytes()).collect());
        self
    }

    /// With a property that is a text.
    pub fn text(mut self, name: &str, text: &str) -> DeviceTreeNode {
        self.set(name, [text.as_bytes(), &[0]].concat());
        self
    }

    /// With a property that says something by being there.
    pub fn flag(mut self, name: &str) -> DeviceTreeNode {
        self.set(name, Vec::new());
        self
    }

    /// With a node below it.
    pub fn with(mut self, child: DeviceTreeNode) -> DeviceTreeNode {
        self.children.push(child);
        self
    }

    /// Sets a property, whether it is there or not.
    pub fn set(&mut self, name: &str, value: Vec<u8>) {
        match self.properties.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.properties.push((name.to_string(), value)),
        }
    }

    /// The numbers of a property; none where it is not there or holds something else.
    pub fn numbers(&self, name: &str) -> Vec<u32> {
        let value = self.properties.iter().find(|(known, _)| known == name);
        let words = value.map_or(&[][..], |(_, value)| value.as_slice()).chunks_exact(4);
        words.map(|word| u32::from_be_bytes(word.try_into().expect("four bytes"))).collect()
    }

    /// The node of that name below this one.
    pub fn child(&mut self, name: &str) -> Option<&mut DeviceTreeNode> {
        self.children.iter_mut().find(|child| child.name == name)
    }

    /// The largest number that refers to a node here or below.
    pub fn last_handle(&self) -> u32 {
        let own = self.numbers("phandle").first().copied().unwrap_or(0);
        self.children.iter().map(DeviceTreeNode::last_handle).fold(own, u32::max)
    }
}

/// A blob that is read from its beginning on.
struct DeviceTreeReader<'b> {
    blob: &'b [u8],
    at: usize,
    strings: usize,
}

impl<'b> DeviceTreeReader<'b> {
    fn word(&mut self) -> Option<u32> {
        let word = word_at(self.blob, self.at)?;
        self.at += 4;
        Some(word)
    }

    /// The text from a place to its terminating zero.
    fn text_at(&self, at: usize) -> Option<&'b str> {
        let rest = self.blob.get(at..)?;
        std::str::from_utf8(&rest[..rest.iter().position(|&byte| byte == 0)?]).ok()
    }

    fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).next_multiple_of(4);
    }

    /// The node whose beginning has just been read.
    fn node(&mut self, depth: u32) -> Option<DeviceTreeNode> {
        /// Machines have four levels; a broken blob must not exhaust the stack.
        const DEPTH_MAX: u32 = 64;
        let mut node = DeviceTreeNode::new(self.text_at(self.at).filter(|_| depth < DEPTH_MAX)?);
        self.skip(node.name.len() + 1);
        loop {
            match self.word()? {
                BEGIN_NODE => node.children.push(self.node(depth + 1)?),
                END_NODE => return Some(node),
                PROPERTY => {
                    let (length, name) = (self.word()? as usize, self.word()? as usize);
                    let name = self.text_at(self.strings.checked_add(name)?)?;
                    node.set(name, self.blob.get(self.at..self.at.checked_add(length)?)?.to_vec());
                    self.skip(length);
                }
                NOTHING => {}
                _ => return None,
            }
        }
    }
}

fn word_at(blob: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(blob.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A blob that is written.
#[derive(Default)]
struct DeviceTreeWriter {
    structure: Vec<u8>,
    strings: Vec<u8>,
    known: Vec<(String, u32)>,
}

impl DeviceTreeWriter {
    fn word(&mut self, word: u32) {
        self.structure.extend(word.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.structure.extend(bytes);
        self.structure.resize(self.structure.len().next_multiple_of(4), 0);
    }

    /// Where a property's name stands among the strings.
    fn name(&mut self, name: &str) -> u32 {
        if let Some((_, at)) = self.known.iter().find(|(known, _)| known == name) {
            return *at;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(name.bytes().chain([0]));
        self.known.push((name.to_string(), at));
        at
    }

    fn node(&mut self, node: &DeviceTreeNode) {
        self.word(BEGIN_NODE);
        self.bytes(&[node.name.as_bytes(), &[0]].concat());
        for (name, value) in &node.properties {
            let name = self.name(name);
            self.word(PROPERTY);
            self.word(value.len() as u32);
            self.word(name);
            self.bytes(value);
        }
        node.children.iter().for_each(|child| self.node(child));
        self.word(END_NODE);
    }
}

impl DeviceTree {
    /// Reads a blob; `None` if it is none, or broken.
    pub fn read(blob: &[u8]) -> Option<DeviceTree> {
        let at = |word: usize| word_at(blob, word * 4).map(|word| word as usize);
        if word_at(blob, 0)? != MAGIC {
            return None;
        }
        let mut reader = DeviceTreeReader { blob, at: at(2)?, strings: at(3)? };
        while reader.word()? != BEGIN_NODE {}
        let root = reader.node(0)?;
        Some(DeviceTree { root })
    }

    /// The blob.
    pub fn write(&self) -> Vec<u8> {
        let mut writer = DeviceTreeWriter::default();
        writer.node(&self.root);
        writer.word(END);
        // Between header and structure: the end of a list of reserved memory.
        let reserved = HEADER_WORDS * 4;
        let structure = reserved + 16;
        let strings = structure + writer.structure.len();
        let header = [
            MAGIC,
            (strings + writer.strings.len()) as u32,
            structure as u32,
            strings as u32,
            reserved as u32,
            VERSION,
            COMPATIBLE_VERSION,
            0,
            writer.strings.len() as u32,
            writer.structure.len() as u32,
        ];
        let mut blob = header.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        blob.resize(structure, 0);
        blob.extend(writer.structure);
        blob.extend(writer.strings);
        blob
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> DeviceTree {
        let cpu = |number: u32| {
            DeviceTreeNode::new(format!("cpu@{number}"))
                .cells("reg", &[number])
                .cells("phandle", &[number + 5])
        };
        let cpus = DeviceTreeNode::new("cpus").cells("#address-cells", &[1]).with(cpu(0)).with(cpu(1));
        DeviceTree {
            root: DeviceTreeNode::new("").text("compatible", "test,board").flag("dma-coherent").with(cpus),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let tree = tree();
        let blob = tree.write();
        assert_eq!(DeviceTree::read(&blob), Some(tree.clone()));
        // The specification's own words: magic, version, and a string table in which "reg" stands once.
        assert_eq!((&blob[..4], word_at(&blob, 20)), (&[0xd0, 0x0d, 0xfe, 0xed][..], Some(17)));
        assert_eq!(blob.windows(5).filter(|bytes| *bytes == b"\0reg\0").count(), 1);
        assert_eq!(word_at(&blob, 4), Some(blob.len() as u32));
        assert_eq!(tree.root.last_handle(), 6);
    }

    #[test]
    fn a_property_is_set_once() {
        let mut tree = tree();
        let cpu = tree.root.child("cpus").and_then(|cpus| cpus.child("cpu@1")).expect("a CPU");
        cpu.set("reg", vec![0, 0, 1, 0]);
        assert_eq!((cpu.numbers("reg"), cpu.numbers("none")), (vec![0x100], vec![]));
        assert!(tree.root.child("cpu@1").is_none());
    }

    #[test]
    fn broken_blobs_are_no_trees() {
        let blob = tree().write();
        assert_eq!(DeviceTree::read(&[]), None);
        assert_eq!(DeviceTree::read(b"something that is no device tree at all"), None);
        // The strings come last: without all of them a name has no end.
        for length in 0..blob.len() {
            assert_eq!(DeviceTree::read(&blob[..length]), None, "{length} bytes");
        }
        for at in 0..blob.len() {
            let mut other = blob.clone();
            other[at] ^= 0xff;
            let _ = DeviceTree::read(&other);
        }
    }
}
