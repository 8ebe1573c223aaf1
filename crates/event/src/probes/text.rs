//! The text of a probe as the kernel prints it, from given values.
//!
//! Must not know: which probe prints which values.

use std::fmt::{Display, Write};

use super::{CpuField, ProbeField};

/// A line in the making: the place in brackets, then values.
#[derive(Debug)]
pub struct ProbeText(String);

impl ProbeText {
    /// Of a probe where `function` begins.
    pub fn entry(function: &str) -> ProbeText {
        ProbeText(format!("({function}+0x0/0x0)"))
    }

    /// Of a probe where `function` returns into another.
    pub fn at_return(function: &str, into: &str) -> ProbeText {
        ProbeText(format!("({into}+0x0/0x0 <- {function})"))
    }

    /// Adds a value.
    pub fn put(&mut self, field: ProbeField, value: impl Display) -> &mut ProbeText {
        self.add(format_args!(" {}={value}", field.name()))
    }

    /// Adds a number, hexadecimal: an address, or bits.
    pub fn hex(&mut self, field: ProbeField, value: u64) -> &mut ProbeText {
        self.add(format_args!(" {}={value:#x}", field.name()))
    }

    /// Adds a value of one CPU.
    pub fn of_cpu(&mut self, field: CpuField, cpu: impl Display, value: impl Display) -> &mut ProbeText {
        self.add(format_args!(" {}{cpu}={value}", field.name()))
    }

    /// The line.
    pub fn finish(self) -> String {
        self.0
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) -> &mut ProbeText {
        // A string takes everything.
        let _ = self.0.write_fmt(text);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_the_place() {
        let mut text = ProbeText::entry("place_entity");
        text.put(ProbeField::Lag, -5).hex(ProbeField::Entity, 0x10).of_cpu(CpuField::AvgIdle, 3, 7);
        assert_eq!(text.finish(), "(place_entity+0x0/0x0) vlag=-5 se=0x10 ai3=7");
        let mut text = ProbeText::at_return("avg_vruntime", "place_entity");
        text.put(ProbeField::Average, 1);
        assert_eq!(text.finish(), "(place_entity+0x0/0x0 <- avg_vruntime) V=1");
    }
}
