//! Version 7: sections anywhere in the file, which options point to; options in sections that point to the next.
//!
//! Facts: trace-cmd.dat.v7(5). Must not know: records.

use fairlab_event::Cpu;

use super::compression::Codec;
use super::contents::{Contents, CpuData, TraceInstance};
use super::cursor::{ByteCursor, ReadFault};
use super::options::{self, OptionSection, number};
use crate::ImportError;
use crate::endian::Endian;
use crate::store::Store;

/// More sections of options than any recorder writes; a longer chain goes in a circle.
const OPTION_SECTIONS_MAX: usize = 1000;
/// The longest section but those with records: symbols have some megabytes, and are not read.
const SECTION_BYTES_MAX: usize = 64 << 20;
/// Bytes of a section's head: number, flags, description, size.
const SECTION_HEAD: u64 = 16;
const FLAG_COMPRESSED: u16 = 1;

/// What stands in front of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SectionHead {
    number: u16,
    compressed: bool,
    size: u64,
}

/// Reads everything but the records; `cursor` stands behind the size of pages. Returns how pieces are compressed.
pub(super) fn read(
    store: &Store,
    cursor: &mut ByteCursor<'_>,
    contents: &mut Contents,
) -> Result<Codec, ImportError> {
    let cut = |fault: ReadFault| match fault {
        ReadFault::Io(error) => ImportError::Io(error),
        ReadFault::Cut => ImportError::NotATrace(
            "this trace.dat is cut or damaged before its first options, which say where the rest is"
                .to_string(),
        ),
    };
    let name = cursor.text().map_err(cut)?;
    let version = cursor.text().map_err(cut)?;
    let offset = cursor.u64().map_err(cut)?;
    let mut codec = Codec::by_name(&name)?.ok_or_else(|| {
        ImportError::Unsupported(format!(
            "this trace.dat is compressed with {name} {version}, which is not known; \
             make another of it with: trace-cmd convert --compression none"
        ))
    })?;
    let mut found = OptionSection::default();
    let parts = SectionParts { store, endian: cursor.endian() };
    parts.option_chain(offset, &mut codec, contents, &mut found).map_err(cut)?;
    parts.named_sections(&found, &mut codec, contents)?;
    contents.system.cpus = found.cpus.filter(|&cpus| cpus > 0);
    let recorded = std::mem::take(&mut found.recorded);
    parts.instances(found, contents)?;
    if contents.instances.is_empty() {
        parts.salvage(offset, &recorded, contents).map_err(cut)?;
    }
    Ok(codec)
}

/// Where parts are read from.
#[derive(Clone, Copy)]
struct SectionParts<'s> {
    store: &'s Store,
    endian: Endian,
}

impl<'s> SectionParts<'s> {
    fn head(&self, offset: u64) -> Result<SectionHead, ReadFault> {
        let mut cursor = ByteCursor::new(self.store, self.endian, offset, u64::MAX);
        let (number, flags) = (cursor.u16()?, cursor.u16()?);
        let _description = cursor.u32()?;
        Ok(SectionHead { number, compressed: flags & FLAG_COMPRESSED != 0, size: cursor.u64()? })
    }

    /// The content of section `number` at `offset`.
    fn section(&self, number: u16, offset: u64, codec: &mut Codec) -> Result<ByteCursor<'s>, ReadFault> {
        let head = self.head(offset)?;
        if head.number != number {
            return Err(ReadFault::Cut);
        }
        let start = offset.saturating_add(SECTION_HEAD);
        let mut cursor = ByteCursor::new(self.store, self.endian, start, start.saturating_add(head.size));
        if !head.compressed {
            return Ok(cursor);
        }
        let (compressed, size) = (cursor.u32()?, cursor.u32()? as usize);
        let compressed = cursor.block(compressed.into(), SECTION_BYTES_MAX)?;
        let mut content = Vec::new();
        if size > SECTION_BYTES_MAX || !codec.decompress(&compressed, size, &mut content) {
            return Err(ReadFault::Cut);
        }
        Ok(ByteCursor::of_bytes(content, self.endian))
    }

    /// Follows the options from section to section. Only the first one must be there.
    fn option_chain(
        &self,
        offset: u64,
        codec: &mut Codec,
        contents: &mut Contents,
        found: &mut OptionSection,
    ) -> Result<(), ReadFault> {
        let mut offset = offset;
        for count in 0..OPTION_SECTIONS_MAX {
            let section = self.section(number::DONE, offset, codec);
            match section.and_then(|mut cursor| self.options(&mut cursor, contents, found)) {
                Ok(0) => return Ok(()),
                Ok(next) => offset = next,
                Err(ReadFault::Cut) if count > 0 => {
                    contents.cut = true;
                    return Ok(());
                }
                Err(fault) => return Err(fault),
            }
        }
        contents.damaged = true;
        Ok(())
    }

    /// Finds compressed records though the options that say where they are got lost with the end of the file. They
    /// stand behind the first options, one CPU after another, each at a multiple of the page.
    fn salvage(&self, options: u64, recorded: &[Cpu], contents: &mut Contents) -> Result<(), ReadFault> {
        let head = self.head(options)?;
        let start = options.saturating_add(SECTION_HEAD).saturating_add(head.size);
        match self.head(start) {
            Ok(head) if head.number == number::BUFFER && head.compressed => {}
            Ok(_) | Err(ReadFault::Cut) => return Ok(()),
            Err(fault) => return Err(fault),
        }
        let mut instance = TraceInstance {
            clock: contents.clock.name.clone(),
            compressed: true,
            ..TraceInstance::default()
        };
        let mut position = start + SECTION_HEAD;
        for &cpu in recorded {
            let offset = position.next_multiple_of(contents.page.size() as u64);
            let mut cursor = ByteCursor::new(self.store, self.endian, offset, u64::MAX);
            if cursor.left() == 0 {
                break;
            }
            position = match pass_pieces(&mut cursor) {
                Ok(()) => cursor.position(),
                Err(ReadFault::Cut) => self.store.length(),
                Err(fault) => return Err(fault),
            };
            instance.cpus.push(CpuData { cpu, offset, size: position - offset });
        }
        contents.cut = true;
        if !instance.cpus.is_empty() {
            contents.instances.push(instance);
        }
        Ok(())
    }

    /// The options of one section; returns where the next one is, or 0.
    fn options(
        &self,
        cursor: &mut ByteCursor<'_>,
        contents: &mut Contents,
        found: &mut OptionSection,
    ) -> Result<u64, ReadFault> {
        loop {
            let number = cursor.u16()?;
            let option = options::read(number, cursor)?;
            if number == number::DONE {
                return self.endian.u64(&option.data, 0).ok_or(ReadFault::Cut);
            }
            options::take(option, true, contents, found, self.endian);
        }
    }

    /// Descriptions and names.
    fn named_sections(
        &self,
        found: &OptionSection,
        codec: &mut Codec,
        contents: &mut Contents,
    ) -> Result<(), ImportError> {
        for &(number, offset) in &found.sections {
            let read = self.section(number, offset, codec).and_then(|mut cursor| match number {
                number::HEADER_INFO => contents.read_header_info(&mut cursor),
                number::FTRACE_EVENTS => contents.read_ftrace_formats(&mut cursor),
                number::EVENT_FORMATS => contents.read_event_formats(&mut cursor),
                number::PRINTK => contents.read_printk(&mut cursor),
                _ => contents.read_cmdlines(&mut cursor),
            });
            match read {
                Ok(()) => {}
                Err(ReadFault::Cut) => contents.damaged = true,
                Err(ReadFault::Io(error)) => return Err(ImportError::Io(error)),
            }
        }
        Ok(())
    }

    /// Whether each instance is compressed.
    fn instances(&self, found: OptionSection, contents: &mut Contents) -> Result<(), ImportError> {
        for (offset, instance) in found.buffers {
            match self.head(offset) {
                Ok(head) if head.number == number::BUFFER => {
                    contents.instances.push(TraceInstance { compressed: head.compressed, ..instance });
                }
                Ok(_) | Err(ReadFault::Cut) => contents.damaged = true,
                Err(ReadFault::Io(error)) => return Err(ImportError::Io(error)),
            }
        }
        Ok(())
    }
}

/// Goes on behind the compressed pieces of a CPU.
fn pass_pieces(cursor: &mut ByteCursor<'_>) -> Result<(), ReadFault> {
    for _ in 0..cursor.u32()? {
        let compressed = cursor.u32()?;
        let _size = cursor.u32()?;
        cursor.skip(compressed.into())?;
    }
    Ok(())
}
