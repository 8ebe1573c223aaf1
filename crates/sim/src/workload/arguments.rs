//! The command lines of workloads' programs, each option declared once: its names, its help, and what it does.
//!
//! They are read as `getopt_long` reads them: `-pg 4`, `-g4`, `--group 4`, `--group=4`, `--gro 4`, in any order, and the last of two
//! counts. Departs: a number is one as a whole (`atoi` takes `4x` for 4 and `x` for 0).
//!
//! Must not know: what any option means.

#[cfg(test)]
mod tests;

use std::fmt::{self, Debug, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use fairlab_event::Ns;
use lexopt::Arg;

/// What can be asked of a program's options, whatever they set.
pub trait CommandLine: Sync {
    /// The options, as text for people.
    fn usage(&self) -> String;

    /// Whether it has an option of this name: `-g`, `--groups`.
    fn knows(&self, option: &str) -> bool;
}

impl Debug for dyn CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.usage())
    }
}

/// A text, where arguments are no options.
impl CommandLine for &str {
    fn usage(&self) -> String {
        (*self).to_string()
    }

    fn knows(&self, _: &str) -> bool {
        false
    }
}

/// What a program takes beside options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// Nothing.
    None,
    /// Words of its own.
    Some,
    /// A command: options end at its first word, and the rest is its own.
    Command,
}

/// An option of a program that is told `T`.
pub(super) struct Opt<T> {
    /// Its names, and the name of its value if it takes one: `-g, --group, --groups N`.
    pub names: &'static str,
    /// What help says; help is silent about an option that there is only to be refused.
    pub about: &'static str,
    /// Takes it in, or says what is wrong with it.
    pub read: fn(&mut T, Value<'_>) -> Result<(), String>,
}

/// A program's command line.
pub(super) struct Program<T: 'static> {
    /// The first lines of its help.
    pub usage: &'static str,
    /// What it takes beside options.
    pub operands: Operands,
    /// Its options.
    pub options: &'static [Opt<T>],
}

/// Declares a program's command line, an option a line: names, help, what it does.
macro_rules! program {
    ($name:ident: $told:ty, $operands:ident, $usage:literal; $($names:literal $about:literal $read:expr;)*) => {
        /// The command line.
        pub(in crate::workload) const $name: $crate::workload::arguments::Program<$told> = $crate::workload::arguments::Program {
            usage: $usage,
            operands: $crate::workload::arguments::Operands::$operands,
            options: &[$($crate::workload::arguments::Opt { names: $names, about: $about, read: $read },)*],
        };
    };
}
pub(super) use program;

/// One option as it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    /// How it is written, with a long name in full.
    pub option: &'a str,
    /// Its value; empty where it takes none.
    pub text: &'a str,
}

impl Value<'_> {
    /// Sets a number.
    ///
    /// # Errors
    /// The value is none, or out of range.
    pub fn set<N: Copy + Display + FromStr + PartialOrd>(
        self,
        field: &mut N,
        range: RangeInclusive<N>,
    ) -> Result<(), String> {
        *field = self.number(range)?;
        Ok(())
    }

    /// The value as a number.
    ///
    /// # Errors
    /// As [`Value::set`].
    pub fn number<N: Copy + Display + FromStr + PartialOrd>(
        self,
        range: RangeInclusive<N>,
    ) -> Result<N, String> {
        let number = self.text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let Value { option, text } = self;
            format!("{option} '{text}' is not a whole number from {} to {}", range.start(), range.end())
        })
    }

    /// Sets a time, which the value tells in a `unit`.
    ///
    /// # Errors
    /// As [`Value::set`].
    pub fn time(self, field: &mut Ns, range: RangeInclusive<u32>, unit: fn(u64) -> Ns) -> Result<(), String> {
        *field = unit(self.number(range)?.into());
        Ok(())
    }

    /// Sets the numbers that stand between commas.
    ///
    /// # Errors
    /// One of them is none, or out of range.
    pub fn list(self, field: &mut Vec<i32>, range: RangeInclusive<i32>) -> Result<(), String> {
        *field = self
            .text
            .split(',')
            .map(|text| Value { text, ..self }.number(range.clone()))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Switches something on, or off.
    ///
    /// # Errors
    /// None: an option may be refused, and this one is not.
    pub fn switch(self, field: &mut bool, on: bool) -> Result<(), String> {
        *field = on;
        Ok(())
    }

    /// Refuses the option by its name.
    ///
    /// # Errors
    /// Always.
    pub fn refuse(self, why: &str) -> Result<(), String> {
        Err(format!("{} {why}", self.option))
    }
}

impl<T> Opt<T> {
    /// The names alone.
    fn spellings(&self) -> impl Iterator<Item = &'static str> {
        self.names.split([',', ' ']).filter(|word| word.starts_with('-'))
    }

    fn takes_value(&self) -> bool {
        self.names.rsplit(' ').next().is_some_and(|last| !last.starts_with('-'))
    }
}

impl<T> Program<T> {
    /// Reads the arguments (without the program's name) into `told`, and gives its operands.
    ///
    /// # Errors
    /// One line that says what is wrong; for `-h` and `--help` the usage text.
    pub fn read(&self, args: &[String], told: &mut T) -> Result<Vec<String>, String> {
        let mut words = lexopt::Parser::from_args(args);
        // An equals sign behind a letter is part of the value for getopt and for perf.
        words.set_short_equals(false);
        let mut operands = Vec::new();
        while let Some(word) = words.next().map_err(complaint)? {
            let written = match word {
                Arg::Short(letter) => format!("-{letter}"),
                Arg::Long(name) => format!("--{name}"),
                Arg::Value(word) => {
                    let rest = if self.operands == Operands::Command { words.raw_args().ok() } else { None };
                    let all = std::iter::once(word).chain(rest.into_iter().flatten());
                    operands.extend(all.map(|word| word.to_string_lossy().into_owned()));
                    continue;
                }
            };
            let Some((option, name)) = self.find(&written)? else {
                return Err(match written.as_str() {
                    "-h" | "--help" => self.usage(),
                    _ => format!("unknown option '{written}'"),
                });
            };
            let text = if option.takes_value() { words.value().map_err(complaint)? } else { "".into() };
            (option.read)(told, Value { option: name, text: &text.to_string_lossy() })?;
        }
        match operands.first() {
            Some(word) if self.operands == Operands::None => Err(format!("'{word}' is one word too many")),
            _ => Ok(operands),
        }
    }

    /// An option by one of its names, or by a beginning of a long one that no other option shares.
    fn find(&self, written: &str) -> Result<Option<(&Opt<T>, &'static str)>, String> {
        let all =
            || self.options.iter().flat_map(|option| option.spellings().map(move |name| (option, name)));
        if let Some(exact) = all().find(|(_, name)| *name == written) {
            return Ok(Some(exact));
        }
        let mut found =
            all().filter(|(_, name)| name.starts_with("--") && name.starts_with(written)).collect::<Vec<_>>();
        found.dedup_by_key(|(option, _)| option.names);
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            several => {
                let names = several.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
                Err(format!("option {written} is ambiguous: {names}"))
            }
        }
    }
}

impl<T> CommandLine for Program<T> {
    fn usage(&self) -> String {
        let lead = |option: &Opt<T>| {
            format!("  {}{}", if option.names.starts_with("--") { "    " } else { "" }, option.names)
        };
        let told = || self.options.iter().filter(|option| !option.about.is_empty());
        let width = told().map(|option| lead(option).len() + 2).max().unwrap_or(0);
        let about = |option: &Opt<T>| option.about.replace('\n', &format!("\n{:width$}", ""));
        let lines = told().map(|option| format!("{:width$}{}\n", lead(option), about(option)));
        format!("{}\n{}", self.usage, lines.collect::<String>())
    }

    fn knows(&self, option: &str) -> bool {
        self.options.iter().flat_map(Opt::spellings).any(|name| name == option)
    }
}

fn complaint(error: lexopt::Error) -> String {
    match error {
        lexopt::Error::MissingValue { option: Some(option) } => format!("{option} needs a value"),
        lexopt::Error::UnexpectedValue { option, .. } => format!("{option} takes no value"),
        other => other.to_string(),
    }
}
