//! Reads `/proc/schedstat`: which number on which line is which counter, in each of its versions.
//!
//! Must not know: what the counters are compared with.

use std::collections::BTreeMap;

/// Counters of a domain for one kind of idleness, up to version 16.
const BALANCING: [&str; 8] =
    ["lb_count", "lb_balanced", "lb_failed", SUM, "lb_gained", "lb_hot_gained", "lb_nobusyq", "lb_nobusyg"];

/// The sum of imbalances of whatever kind, which version 17 shows apart.
pub(super) const SUM: &str = "lb_imbalance";

/// What version 17 has in its place.
pub(super) const KINDS: [&str; 4] =
    ["lb_imbalance_load", "lb_imbalance_util", "lb_imbalance_task", "lb_imbalance_misfit"];

const AT_THE_END: [&str; 12] = [
    "alb_count",
    "alb_failed",
    "alb_pushed",
    "sbe_count",
    "sbe_balanced",
    "sbe_pushed",
    "sbf_count",
    "sbf_balanced",
    "sbf_pushed",
    "ttwu_wake_remote",
    "ttwu_move_affine",
    "ttwu_move_balance",
];

/// Counters of a CPU; the second has been 0 since the O(1) scheduler went.
pub(super) const OF_A_CPU: [&str; 9] = [
    "yld_count",
    "array_exp",
    "sched_count",
    "sched_goidle",
    "ttwu_count",
    "ttwu_local",
    "rq_cpu_time",
    "run_delay",
    "pcount",
];

/// Counters of searches, which follow where a kernel has the patches beside the idle cpumask RFC.
const OF_SEARCHES: [&str; 8] = [
    "sis_search",
    "sis_domain_search",
    "sis_scanned",
    "sis_failed",
    "sis_recent_hit",
    "sis_recent_miss",
    "sis_core_search",
    "sis_core_miss",
];

/// What a line counts: a CPU, or one of its domains by the CPUs that it spans, as a hexadecimal mask without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchedstatScope {
    /// The CPU.
    pub cpu: u32,
    /// Of a domain, the CPUs that it spans.
    pub span: Option<String>,
}

/// The counters of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedstatLine {
    /// The domain's number on its CPU, from the lowest.
    pub level: Option<u32>,
    /// Each counter with its name in the kernel's documentation.
    pub counters: Vec<(String, u64)>,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// The version of its format.
    pub version: u32,
    /// The time, in jiffies; they begin five minutes before 2^32.
    pub timestamp: u64,
    /// What is counted, by place.
    pub lines: BTreeMap<SchedstatScope, SchedstatLine>,
}

impl Schedstat {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// It is no such file, or one of a version that is not known. The error says what is wrong, with its line.
    pub fn read(text: &str) -> Result<Schedstat, String> {
        let mut stat = Schedstat::default();
        let mut cpu = None;
        for (number, line) in text.lines().enumerate() {
            stat.read_line(line, &mut cpu).map_err(|problem| format!("line {}: {problem}", number + 1))?;
        }
        if stat.version == 0 { Err("it is empty".to_string()) } else { Ok(stat) }
    }

    fn read_line(&mut self, line: &str, cpu: &mut Option<u32>) -> Result<(), String> {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let [first, rest @ ..] = &words[..] else { return Ok(()) };
        let unknown = || format!("'{first}' begins no line of /proc/schedstat");
        if self.version == 0 {
            let version = rest.first().and_then(|version| version.parse().ok());
            self.version = version.filter(|_| *first == "version").ok_or_else(unknown)?;
            let known = (15..=17).contains(&self.version);
            return if known {
                Ok(())
            } else {
                Err(format!("version {} is not known; known are 15 to 17", self.version))
            };
        }
        if *first == "timestamp" {
            self.timestamp =
                rest.first().and_then(|time| time.parse().ok()).ok_or("the time is no number")?;
            return Ok(());
        }
        let (place, line) = if let Some(number) = numbered(first, "cpu") {
            *cpu = Some(number);
            let names = OF_A_CPU.iter().chain(&OF_SEARCHES).map(ToString::to_string).collect::<Vec<_>>();
            let counters = counters(first, &names, rest, &[OF_A_CPU.len(), names.len()])?;
            (SchedstatScope { cpu: number, span: None }, SchedstatLine { level: None, counters })
        } else if let Some(level) = numbered(first, "domain") {
            let cpu = cpu.ok_or_else(|| format!("{first} stands before any CPU"))?;
            self.domain(first, cpu, level, rest)?
        } else {
            return Err(unknown());
        };
        match self.lines.insert(place, line) {
            Some(_) => Err(format!("{first} is there twice")),
            None => Ok(()),
        }
    }

    fn domain(
        &self,
        first: &str,
        cpu: u32,
        level: u32,
        rest: &[&str],
    ) -> Result<(SchedstatScope, SchedstatLine), String> {
        let named = usize::from(self.version == 17);
        let (Some(span), Some(numbers)) = (rest.get(named), rest.get(named + 1..)) else {
            return Err(format!("{first} has no counters"));
        };
        let span = span_of(span).ok_or_else(|| format!("'{span}' is no mask of CPUs"))?;
        let names = domain_names(self.version);
        let counters = counters(first, &names, numbers, &[names.len()])?;
        Ok((SchedstatScope { cpu, span: Some(span) }, SchedstatLine { level: Some(level), counters }))
    }

    /// What was counted since `before`.
    ///
    /// # Errors
    /// The two are not of one kernel's run.
    pub(super) fn since(&self, before: &Schedstat) -> Result<Schedstat, String> {
        let mut counted = self.clone();
        for (place, line) in &mut counted.lines {
            let Some(before) = before.lines.get(place).filter(|before| before.level == line.level) else {
                return Err(format!("cpu{} has other lines before than after", place.cpu));
            };
            for ((name, count), (_, before)) in line.counters.iter_mut().zip(&before.counters) {
                *count = count
                    .checked_sub(*before)
                    .ok_or_else(|| format!("{name} of cpu{} was more before than after", place.cpu))?;
            }
        }
        Ok(counted)
    }
}

/// A mask of CPUs as the kernel prints it, without commas and leading zeros.
pub(super) fn span_of(mask: &str) -> Option<String> {
    let hexadecimal = |digit: char| digit.is_ascii_hexdigit() || digit == ',';
    mask.chars().all(hexadecimal).then(|| mask.replace(',', "").trim_start_matches('0').to_string())
}

/// The counters of a domain's line in the order of a version.
pub(super) fn domain_names(version: u32) -> Vec<String> {
    let idle = if version == 15 { ["idle", "busy", "newidle"] } else { ["busy", "idle", "newidle"] };
    let mut names = Vec::new();
    for kind in idle {
        for counter in BALANCING {
            let apart: &[&str] = if version == 17 && counter == SUM { &KINDS } else { &[counter] };
            names.extend(apart.iter().map(|counter| format!("{kind} {counter}")));
        }
    }
    names.extend(AT_THE_END.map(str::to_string));
    names
}

/// The number in a line's first word.
fn numbered(word: &str, what: &str) -> Option<u32> {
    word.strip_prefix(what)?.parse().ok()
}

/// The numbers of a line by their names; `counts` says how many there may be.
fn counters(
    first: &str,
    names: &[String],
    words: &[&str],
    counts: &[usize],
) -> Result<Vec<(String, u64)>, String> {
    if !counts.contains(&words.len()) {
        return Err(format!("{first} has {} counters, this version has {}", words.len(), counts[0]));
    }
    let counter = |(name, word): (&String, &&str)| {
        let count = word.parse().map_err(|_| format!("'{word}' is no count"))?;
        Ok((name.clone(), count))
    };
    names.iter().zip(words).map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "version 15\ntimestamp 4294893762\n\
        cpu0 0 0 302 135 184 67 3036210082 218231974 520\n\
        domain0 03 67 66 1 5 0 0 0 67 34 34 0 0 0 0 0 34 16 16 0 0 0 0 0 16 1 2 3 0 0 0 0 0 0 0 9 0\n";

    #[test]
    fn numbers_have_the_names_that_their_version_gives_them() {
        let stat = Schedstat::read(OLD).expect("a file");
        let of = |span: Option<&str>, name: &str| {
            let line = &stat.lines[&SchedstatScope { cpu: 0, span: span.map(str::to_string) }];
            line.counters.iter().find(|(known, _)| known == name).map(|&(_, count)| count)
        };
        assert_eq!((stat.version, stat.timestamp), (15, 4_294_893_762));
        assert_eq!((of(None, "ttwu_count"), of(None, "pcount")), (Some(184), Some(520)));
        assert_eq!(of(Some("3"), "idle lb_imbalance"), Some(5));
        assert_eq!((of(Some("3"), "busy lb_count"), of(Some("3"), "alb_pushed")), (Some(34), Some(3)));
        let newer = Schedstat::read(&OLD.replace("version 15", "version 16")).expect("a file");
        let line = &newer.lines[&SchedstatScope { cpu: 0, span: Some("3".to_string()) }];
        assert_eq!(line.counters[0], ("busy lb_count".to_string(), 67), "the kinds are in another order");
    }

    #[test]
    fn what_is_no_such_file_is_said_with_its_line() {
        for (from, to, problem) in [
            ("version 15", "version 14", "line 1: version 14 is not known; known are 15 to 17"),
            ("version 15\n", "", "line 1: 'timestamp' begins no line of /proc/schedstat"),
            ("cpu0 0", "cpu0", "line 3: cpu0 has 8 counters, this version has 9"),
            (" 520", " many", "line 3: 'many' is no count"),
            ("cpu0", "gpu0", "line 3: 'gpu0' begins no line of /proc/schedstat"),
            ("domain0 03 67", "domain0 03", "line 4: domain0 has 35 counters, this version has 36"),
            ("version 15", "version 17", "line 4: domain0 has 35 counters, this version has 45"),
            ("domain0 03", "domain0 zz", "line 4: 'zz' is no mask of CPUs"),
        ] {
            let error = Schedstat::read(&OLD.replace(from, to)).expect_err(problem);
            assert_eq!(error, problem);
        }
        assert_eq!(Schedstat::read("").expect_err("nothing"), "it is empty");
        let twice = format!("{OLD}{}\n", OLD.lines().nth(3).expect("a domain"));
        assert_eq!(Schedstat::read(&twice).expect_err("twice"), "line 5: domain0 is there twice");
    }

    #[test]
    fn what_was_there_before_is_taken_away() {
        let before = Schedstat::read(OLD).expect("a file");
        let after = Schedstat::read(&OLD.replace(" 520", " 530")).expect("a file");
        let counted = after.since(&before).expect("later");
        assert_eq!(
            counted.lines[&SchedstatScope { cpu: 0, span: None }].counters[8],
            ("pcount".to_string(), 10)
        );
        assert_eq!(before.since(&after), Err("pcount of cpu0 was more before than after".to_string()));
        let other = Schedstat::read(&OLD.replace("cpu0", "cpu1")).expect("a file");
        assert_eq!(other.since(&before), Err("cpu1 has other lines before than after".to_string()));
    }
}
