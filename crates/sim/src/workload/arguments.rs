//! A command line of options, one after the other, for workloads whose program takes no bundles of letters.

use std::ops::RangeInclusive;

/// The arguments still to come.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    rest: std::slice::Iter<'a, String>,
    name: &'a str,
    usage: &'static str,
}

impl<'a> Arguments<'a> {
    /// All of `args`; `usage` is the answer to `--help`.
    pub fn new(args: &'a [String], usage: &'static str) -> Arguments<'a> {
        Arguments { rest: args.iter(), name: "", usage }
    }

    /// The next option's name.
    ///
    /// # Errors
    /// The usage text, if it is what is asked for.
    pub fn next(&mut self) -> Result<Option<&'a str>, String> {
        let Some(name) = self.rest.next() else { return Ok(None) };
        if matches!(name.as_str(), "-h" | "--help") {
            return Err(self.usage.to_string());
        }
        self.name = name;
        Ok(Some(name))
    }

    /// The number that belongs to the option.
    ///
    /// # Errors
    /// There is none, or it is out of range.
    pub fn number(&mut self, range: RangeInclusive<u32>) -> Result<u32, String> {
        let value = self.rest.next().ok_or_else(|| format!("{} needs a number", self.name))?;
        value.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("{} '{value}' is not a whole number from {least} to {most}", self.name)
        })
    }

    /// The numbers between commas that belong to the option.
    ///
    /// # Errors
    /// There are none, or one of them is out of range.
    pub fn numbers(&mut self, range: RangeInclusive<i32>) -> Result<Vec<i32>, String> {
        let list = self.rest.next().ok_or_else(|| format!("{} needs numbers between commas", self.name))?;
        let number = |text: &str| {
            text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                format!("{} '{text}' is not a whole number from {least} to {most}", self.name)
            })
        };
        list.split(',').map(number).collect()
    }

    /// The complaint about an option that there is not.
    pub fn unknown(&self) -> String {
        format!("unknown option '{}'", self.name)
    }
}
