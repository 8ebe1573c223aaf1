//! Where and how threads run: the words that a workload, and each task of one, has for it in a file.
//!
//! Must not know: what the threads do, whose file it is.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, MAX_CPUS, Policy};
use toml::{Table, Value};

/// Control group, policy, nice level, slice and CPUs. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberPlace {
    /// The path of a control group, from `/`.
    pub group: Option<String>,
    /// The policy.
    pub policy: Option<Policy>,
    /// The nice level, −20…19.
    pub nice: Option<i32>,
    /// A slice of its own, where the kernel lets a task ask for one.
    pub slice: Option<Ns>,
    /// The CPUs that it asks for (`sched_setaffinity`).
    pub cpus: Option<CpuMask>,
}

/// What is wrong in a table: at which key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The key, or the keys that lead to it: `cpu.max`, `task[2].nice`.
    pub key: String,
    /// What is wrong there, and what would be right.
    pub problem: String,
}

impl KeyError {
    /// What is wrong at a key.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> KeyError {
        KeyError { key: key.into(), problem: problem.into() }
    }

    /// Seen from further up: the key lies below `above`.
    pub fn below(self, above: &str) -> KeyError {
        let key = if self.key.is_empty() { above.to_string() } else { format!("{above}.{}", self.key) };
        KeyError { key, ..self }
    }
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.key.is_empty() {
            true => f.write_str(&self.problem),
            false => write!(f, "{}: {}", self.key, self.problem),
        }
    }
}

impl MemberPlace {
    /// Takes its words out of a table: `group`, `policy`, `nice`, `slice`, `cpus`.
    ///
    /// # Errors
    /// One of them is not what it should be.
    pub fn take(table: &mut Table) -> Result<MemberPlace, KeyError> {
        Ok(MemberPlace {
            group: take(table, "group", |value| group_path(text(value)?))?,
            policy: take(table, "policy", |value| policy(text(value)?))?,
            nice: take(table, "nice", |value| Ok(whole(value, -20..=19)? as i32))?,
            slice: take(table, "slice", slice)?,
            cpus: take(table, "cpus", cpus)?,
        })
    }
}

/// Takes the value of a key out of a table, read by `read`; `None` where there is none.
///
/// # Errors
/// What `read` complains about.
pub fn take<T>(
    table: &mut Table,
    key: &str,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<Option<T>, KeyError> {
    table.remove(key).map(|value| read(&value)).transpose().map_err(|problem| KeyError::new(key, problem))
}

/// A text.
///
/// # Errors
/// It is something else.
pub fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("a text in quotes is needed, not {}", kind(value)))
}

/// A whole number of a range.
///
/// # Errors
/// It is something else, or outside.
pub fn whole(value: &Value, range: std::ops::RangeInclusive<i64>) -> Result<i64, String> {
    let number =
        value.as_integer().ok_or_else(|| format!("a whole number is needed, not {}", kind(value)))?;
    match range.contains(&number) {
        true => Ok(number),
        false => Err(format!("{number} is not from {} to {}", range.start(), range.end())),
    }
}

/// `true` or `false`.
///
/// # Errors
/// It is something else.
pub fn yes_or_no(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("true or false is needed, not {}", kind(value)))
}

/// What a value is, in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a point",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// The longest time that a file may give: with what passes before, sums stay far below what a clock can count.
const LONGEST: f64 = 1e15;

/// A time with its unit: `30us`, `1.5ms`, `2s`.
///
/// # Errors
/// It is none, or longer than 1000000 s.
pub fn time(text: &str) -> Result<Ns, String> {
    let problem = || format!("'{text}' is no time: a number with ns, us, ms or s, such as '1.5ms'");
    let unit = text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or_else(problem)?;
    let factor = match &text[unit..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(problem()),
    };
    let number = &text[..unit];
    if !number.starts_with(|digit: char| digit.is_ascii_digit()) {
        return Err(problem());
    }
    let nanoseconds = number.parse::<f64>().map_err(|_| problem())? * factor;
    match nanoseconds <= LONGEST {
        true => Ok(Ns(nanoseconds.round() as u64)),
        false => Err(format!("'{text}' is longer than 1000000s")),
    }
}

/// A policy: `other`, `batch`, `idle`, `fifo:PRIO`, `rr:PRIO`.
///
/// # Errors
/// There is no such policy, or no kernel here has it for threads of a workload.
pub fn policy(text: &str) -> Result<Policy, String> {
    let (name, priority) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let known = name.to_ascii_lowercase();
    let known = known.strip_prefix("sched_").unwrap_or(&known);
    let real_time = || {
        let priority = priority.ok_or_else(|| format!("'{text}' lacks its priority: '{known}:50'"))?;
        let number = priority.parse::<u8>().ok().filter(|number| (1..=99).contains(number));
        number.ok_or_else(|| format!("'{text}': the priority is a whole number from 1 to 99"))
    };
    let policy = match known {
        "fifo" => return real_time().map(Policy::Fifo),
        "rr" => return real_time().map(Policy::RoundRobin),
        "other" | "normal" => Policy::Normal,
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "deadline" => {
            return Err(
                "SCHED_DEADLINE is not modelled, and no kind of kernel gets it here: fifo:PRIO is nearest"
                    .to_string(),
            );
        }
        _ => return Err(format!("'{text}' is no policy: other, batch, idle, fifo:PRIO or rr:PRIO")),
    };
    match priority {
        None => Ok(policy),
        Some(_) => Err(format!("'{text}': only fifo and rr have a priority")),
    }
}

/// The path of a control group, without a slash at its end; the root is `/`.
///
/// # Errors
/// It does not begin with a slash, or has parts that no group is called.
pub fn group_path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err(format!("'{text}': the path of a group begins with '/'"));
    }
    let parts = text.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let is_no_name = |part: &&&str| [".", ".."].contains(*part) || part.contains(char::is_control);
    match parts.iter().find(is_no_name) {
        Some(part) => Err(format!("'{text}': '{}' is no name of a group", part.escape_default())),
        None => Ok(format!("/{}", parts.join("/"))),
    }
}

/// A slice that a task may ask for: 0.1 to 100 ms, as kernels take it.
fn slice(value: &Value) -> Result<Ns, String> {
    let slice = time(text(value)?)?;
    match (Ns(100_000)..=Ns(100_000_000)).contains(&slice) {
        true => Ok(slice),
        false => Err(format!("a slice of {} us is outside 0.1 to 100 ms", slice.0 / 1000)),
    }
}

/// CPUs: `0-3,8`, or a list of numbers.
///
/// # Errors
/// It is none, or names no CPU.
pub fn cpus(value: &Value) -> Result<CpuMask, String> {
    let mask = match value {
        Value::Array(list) => list
            .iter()
            .map(|one| Ok(Cpu(whole(one, 0..=MAX_CPUS as i64 - 1)? as u32)))
            .collect::<Result<CpuMask, String>>()?,
        Value::Integer(_) => CpuMask::single(Cpu(whole(value, 0..=MAX_CPUS as i64 - 1)? as u32)),
        _ => CpuMask::parse_list(text(value)?)?,
    };
    if mask.is_empty() { Err("no CPU is named".to_string()) } else { Ok(mask) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_place_are_taken_out_and_others_left() {
        let mut table: Table =
            "group = '/a//b/'\npolicy = 'rr:7'\nnice = -3\nslice = '1.5ms'\ncpus = '0-1,4'\nrun = 'x'"
                .parse()
                .expect("a table");
        let place = MemberPlace::take(&mut table).expect("a place");
        let expected = MemberPlace {
            group: Some("/a/b".to_string()),
            policy: Some(Policy::RoundRobin(7)),
            nice: Some(-3),
            slice: Some(Ns(1_500_000)),
            cpus: Some([0, 1, 4].into_iter().map(Cpu).collect()),
        };
        assert_eq!(place, expected);
        assert_eq!(table.keys().collect::<Vec<_>>(), ["run"]);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_key() {
        for (line, problem) in [
            ("group = 'a'", "group: 'a': the path of a group begins with '/'"),
            ("group = '/a/../b'", "group: '/a/../b': '..' is no name of a group"),
            ("policy = 'fifo'", "policy: 'fifo' lacks its priority: 'fifo:50'"),
            ("policy = 'fifo:100'", "policy: 'fifo:100': the priority is a whole number from 1 to 99"),
            ("policy = 'batch:1'", "policy: 'batch:1': only fifo and rr have a priority"),
            ("policy = 'fast'", "policy: 'fast' is no policy: other, batch, idle, fifo:PRIO or rr:PRIO"),
            ("nice = 20", "nice: 20 is not from -20 to 19"),
            ("nice = '5'", "nice: a whole number is needed, not a text"),
            ("slice = '1'", "slice: '1' is no time: a number with ns, us, ms or s, such as '1.5ms'"),
            ("slice = '-1ms'", "slice: '-1ms' is no time: a number with ns, us, ms or s, such as '1.5ms'"),
            ("slice = '1us'", "slice: a slice of 1 us is outside 0.1 to 100 ms"),
            ("cpus = []", "cpus: no CPU is named"),
            ("cpus = [99999]", "cpus: 99999 is not from 0 to 1023"),
        ] {
            let wrong = MemberPlace::take(&mut line.parse().expect("a table")).expect_err(line);
            assert_eq!(wrong.to_string(), problem);
        }
        assert!(policy("deadline").expect_err("refused").contains("SCHED_DEADLINE is not modelled"));
        assert_eq!(
            time("9e99s").expect_err("too long"),
            "'9e99s' is no time: a number with ns, us, ms or s, such as '1.5ms'"
        );
        assert_eq!(time("1000001s").expect_err("too long"), "'1000001s' is longer than 1000000s");
    }
}
