//! Taking a command line apart as `getopt_long` does, with schbench's letters and names.
//!
//! Must not know: what the options mean, which of them go together.

use std::ops::RangeInclusive;

use super::options::Revision;

/// What an option is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Auto,
    Pipe,
    MessageThreads,
    Threads,
    Runtime,
    Rps,
    Sleep,
    MessageCpu,
    Cpu,
    Warmup,
    Interval,
    Zero,
    Revision,
    Help,
}

pub(super) const SHORT: [(char, Key); 12] = [
    ('p', Key::Pipe),
    ('a', Key::Auto),
    ('m', Key::MessageThreads),
    ('t', Key::Threads),
    ('s', Key::Sleep),
    ('c', Key::Cpu),
    ('C', Key::MessageCpu),
    ('r', Key::Runtime),
    ('R', Key::Rps),
    ('w', Key::Warmup),
    ('i', Key::Interval),
    ('z', Key::Zero),
];

/// Long names. The real table gives `message_cputime` the letter of `sleeptime`.
pub(super) const LONG: [(&str, Key); 14] = [
    ("auto", Key::Auto),
    ("pipe", Key::Pipe),
    ("message-threads", Key::MessageThreads),
    ("threads", Key::Threads),
    ("runtime", Key::Runtime),
    ("rps", Key::Rps),
    ("sleeptime", Key::Sleep),
    ("message_cputime", Key::Sleep),
    ("cputime", Key::Cpu),
    ("warmuptime", Key::Warmup),
    ("intervaltime", Key::Interval),
    ("zerotime", Key::Zero),
    ("revision", Key::Revision),
    ("help", Key::Help),
];

impl Key {
    const fn takes_value(self) -> bool {
        !matches!(self, Key::Auto | Key::Help)
    }
}

/// One option as given: what it is, how it was written (for messages), its value.
pub(super) struct Given<'a> {
    pub(super) key: Key,
    pub(super) name: String,
    pub(super) value: &'a str,
}

impl Given<'_> {
    /// Its value as a whole number.
    pub(super) fn number(&self, range: RangeInclusive<u32>) -> Result<u32, String> {
        let digits = !self.value.is_empty() && self.value.bytes().all(|byte| byte.is_ascii_digit());
        match self.value.parse() {
            Ok(number) if digits && range.contains(&number) => Ok(number),
            _ => Err(format!(
                "schbench: {} {:?}: not a whole number from {} to {}",
                self.name,
                self.value,
                range.start(),
                range.end()
            )),
        }
    }

    /// The first revision that has this option under this name.
    pub(super) fn since(&self) -> Revision {
        match self.key {
            Key::MessageCpu => Revision::MessageSpin,
            Key::Sleep if self.name == "--message_cputime" => Revision::MessageSpin,
            Key::Warmup | Key::Interval | Key::Zero => Revision::Intervals,
            _ => Revision::FinalTable,
        }
    }
}

/// Takes the arguments apart into options.
pub(super) fn split(args: &[String]) -> Result<Vec<Given<'_>>, String> {
    let mut given = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(arg) = rest.next() {
        if arg == "--" {
            match rest.next() {
                Some(extra) => return Err(extra_argument(extra)),
                None => break,
            }
        } else if let Some(long) = arg.strip_prefix("--") {
            let (name, inline) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let (name, key) = find_long(name)?;
            let value = match (key.takes_value(), inline) {
                (true, None) => rest.next().ok_or_else(|| missing(&name))?,
                (true, Some(value)) => value,
                (false, None) => "",
                (false, Some(_)) => return Err(format!("schbench: option {name} takes no value")),
            };
            given.push(Given { key, name, value });
        } else if let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            split_short(letters, &mut rest, &mut given)?;
        } else {
            return Err(extra_argument(arg));
        }
    }
    Ok(given)
}

/// Takes one cluster of letters apart; the first that takes a value takes the rest of it, or the next argument.
fn split_short<'a>(
    letters: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
    given: &mut Vec<Given<'a>>,
) -> Result<(), String> {
    let mut letters = letters.chars();
    while let Some(letter) = letters.next() {
        let name = format!("-{letter}");
        let Some(&(_, key)) = SHORT.iter().find(|(short, _)| *short == letter) else {
            return Err(format!("schbench: unknown option {name}"));
        };
        if !key.takes_value() {
            given.push(Given { key, name, value: "" });
            continue;
        }
        let value = match letters.as_str() {
            "" => rest.next().ok_or_else(|| missing(&name))?,
            attached => attached,
        };
        given.push(Given { key, name, value });
        break;
    }
    Ok(())
}

/// Finds a long option by its name or by a beginning that no other option shares.
fn find_long(name: &str) -> Result<(String, Key), String> {
    let matching = LONG.iter().filter(|(long, _)| long.starts_with(name)).collect::<Vec<_>>();
    let exact = matching.iter().find(|(long, _)| *long == name);
    match (exact, matching.as_slice()) {
        (Some((long, key)), _) | (None, [(long, key)]) => Ok((format!("--{long}"), *key)),
        (None, []) => Err(format!("schbench: unknown option --{name}")),
        (None, several) => {
            let names = several.iter().map(|(long, _)| format!("--{long}")).collect::<Vec<_>>().join(", ");
            Err(format!("schbench: option --{name} is ambiguous: {names}"))
        }
    }
}

fn missing(name: &str) -> String {
    format!("schbench: option {name} needs a value")
}

fn extra_argument(arg: &str) -> String {
    format!("schbench: extra argument {arg:?}")
}
