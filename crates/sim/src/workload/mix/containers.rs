//! Pods, containers and units: control groups in the words of Kubernetes, docker and systemd, as files of groups.
//!
//! Must not know: workloads, what the scheduler makes of a weight.

use fairlab_event::spelling::may_be_meant;
use toml::{Table, Value};

use super::place::{self, KeyError, kind, take, text, whole};

/// A control group that a file names by a pod, a container or a unit.
pub(super) struct NamedGroup {
    /// The keys of its table, by which `group` and `to` name it: `pod.api`. Empty for the groups of QoS classes.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Files of the group, and what is written to them.
    pub files: Vec<(String, String)>,
}

/// Tables whose entries are groups.
pub(super) const TABLES: [&str; 3] = ["pod", "container", "unit"];

/// Takes pods, containers and units out of a file.
///
/// # Errors
/// One of them has a wrong word or value.
pub(super) fn take_groups(table: &mut Table) -> Result<Vec<NamedGroup>, KeyError> {
    let rule = take(table, "weights", weight_rule)?.unwrap_or(WeightRule::Quadratic);
    let mut groups = pods(&entries(table, "pod")?, rule).map_err(|wrong| wrong.below("pod"))?;
    for (name, words) in entries(table, "container")? {
        let files = docker_files(&words, rule).map_err(|wrong| wrong.below(&name).below("container"))?;
        let path = format!("/system.slice/docker-{name}.scope");
        groups.push(NamedGroup { name: format!("container.{name}"), path, files });
    }
    for (name, words) in entries(table, "unit")? {
        let (path, files) = unit(&name, &words).map_err(|wrong| wrong.below(&name).below("unit"))?;
        groups.push(NamedGroup { name: format!("unit.{name}"), path, files });
    }
    Ok(groups)
}

/// Puts paths in the place of names of pods, containers and units, wherever a workload, a task or an event names a group.
///
/// # Errors
/// A name has no table.
pub(super) fn put_paths(table: &mut Table, known: &[NamedGroup]) -> Result<(), KeyError> {
    table.iter_mut().try_for_each(|(key, value)| put_path(key, key, value, known))
}

fn put_path(way: &str, key: &str, value: &mut Value, known: &[NamedGroup]) -> Result<(), KeyError> {
    match value {
        Value::Table(table) => {
            table.iter_mut().try_for_each(|(key, value)| put_path(&format!("{way}.{key}"), key, value, known))
        }
        Value::Array(list) => list
            .iter_mut()
            .enumerate()
            .try_for_each(|(place, value)| put_path(&format!("{way}[{place}]"), "", value, known)),
        Value::String(name) if ["group", "to"].contains(&key) && is_name(name) => {
            let found = known.iter().find(|group| group.name == *name);
            let found = found.ok_or_else(|| {
                let names = known.iter().map(|group| group.name.as_str()).filter(|name| !name.is_empty());
                let names = names.collect::<Vec<_>>();
                let meant = may_be_meant(name, names.iter().copied());
                let has = if names.is_empty() { "none".to_string() } else { names.join(", ") };
                KeyError::new(way, format!("there is no [{name}]: {meant}the file has {has}"))
            })?;
            name.clone_from(&found.path);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    text.split_once('.').is_some_and(|(table, _)| TABLES.contains(&table))
}

/// How `cpu.shares` become `cpu.weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeightRule {
    /// `1 + ((shares - 2) * 9999) / 262142`: KEP-2254 of 2021, runc up to 1.3.1, crun up to 1.22, kubelet up to 1.34.
    Linear,
    /// `ceil(10^((l² + 125 l) / 612 - 7/34))` with `l = log2(shares)`: `ConvertCPUSharesToCgroupV2Value()` of opencontainers/cgroups
    /// 0.0.3, so runc 1.3.2 and kubelet 1.35; crun 1.23.
    Quadratic,
}

fn weight_rule(value: &Value) -> Result<WeightRule, String> {
    match (value.as_str(), value.as_integer()) {
        (Some("2021"), _) | (_, Some(2021)) => Ok(WeightRule::Linear),
        (Some("2025"), _) | (_, Some(2025)) => Ok(WeightRule::Quadratic),
        _ => Err(format!("{value} is neither \"2025\" (runc from 1.3.2 on) nor \"2021\"")),
    }
}

/// The range of `cpu.shares`.
const SHARES: (u64, u64) = (2, 262_144);

impl WeightRule {
    /// `cpu.weight` of `shares`, which lie in their range.
    fn weight(self, shares: u64) -> u64 {
        match self {
            WeightRule::Linear => 1 + (shares - SHARES.0) * 9999 / (SHARES.1 - SHARES.0),
            WeightRule::Quadratic => {
                let log = (shares as f64).log2();
                let exponent = (log * log + 125.0 * log) / 612.0 - 7.0 / 34.0;
                // 1024 shares are a weight of 100 exactly. No others come so close to a whole number.
                (10f64.powf(exponent) - 1e-9).ceil() as u64
            }
        }
    }

    /// `cpu.weight` of a request of `milli` thousandths of a CPU (`MilliCPUToShares()` of the kubelet).
    fn of_request(self, milli: u64) -> (String, String) {
        let shares = (milli.saturating_mul(1024) / 1000).clamp(SHARES.0, SHARES.1);
        weight(self.weight(shares))
    }
}

/// What a pod, or a container of one, asks for, in thousandths of a CPU.
#[derive(Clone, Copy, Default)]
struct PodCpu {
    request: Option<u64>,
    limit: Option<u64>,
    /// `cpu.max.burst`, us.
    burst: Option<u64>,
    /// The kubelet's `cpuCFSQuotaPeriod`, us.
    period: Option<u64>,
}

const POD_WORDS: [&str; 4] = ["requests.cpu", "limits.cpu", "cpu.max.burst", "cpuCFSQuotaPeriod"];

/// The period of a quota where nothing else is said, us.
const PERIOD_US: u64 = 100_000;

/// The kubelet writes no shorter quota (`minQuotaPeriod`), us.
const QUOTA_MIN_US: u64 = 1000;

impl PodCpu {
    fn read(table: &Table) -> Result<PodCpu, KeyError> {
        let mut cpu = PodCpu::default();
        for (key, value) in flat(table) {
            let wrong = |problem| KeyError::new(key.as_str(), problem);
            match key.as_str() {
                "requests.cpu" => cpu.request = Some(milli_cpus(value).map_err(wrong)?),
                "limits.cpu" => cpu.limit = Some(milli_cpus(value).map_err(wrong)?),
                "cpu.max.burst" => cpu.burst = Some(whole(value, 0..=1_000_000).map_err(wrong)? as u64),
                "cpuCFSQuotaPeriod" => cpu.period = Some(period_us(value).map_err(wrong)?),
                _ => return Err(unknown(&key, "a pod", &POD_WORDS)),
            }
        }
        match (cpu.request, cpu.limit) {
            (Some(request), Some(limit)) if request > limit => {
                Err(KeyError::new("requests.cpu", format!("{request}m is more than limits.cpu, {limit}m")))
            }
            _ => Ok(cpu),
        }
    }

    /// The request; the API server takes the limit where there is none.
    fn requested(&self) -> Option<u64> {
        self.request.or(self.limit)
    }

    fn is_guaranteed(&self) -> bool {
        self.limit.is_some() && self.requested() == self.limit
    }

    /// What a pod of these containers asks for: a limit only if all have one.
    fn sum(containers: &[(String, PodCpu)]) -> PodCpu {
        let requests = containers.iter().filter_map(|(_, cpu)| cpu.requested());
        let limits = containers.iter().map(|(_, cpu)| cpu.limit).collect::<Option<Vec<_>>>();
        PodCpu {
            request: requests.reduce(u64::saturating_add),
            limit: limits.and_then(|limits| limits.into_iter().reduce(u64::saturating_add)),
            ..PodCpu::default()
        }
    }

    fn files(&self, rule: WeightRule) -> Vec<(String, String)> {
        let period = self.period.unwrap_or(PERIOD_US);
        let quota = self.limit.map(|limit| (limit.saturating_mul(period) / 1000).max(QUOTA_MIN_US));
        let burst = self.burst.map(|burst| ("cpu.max.burst".to_string(), burst.to_string()));
        let weight = rule.of_request(self.requested().unwrap_or(0));
        [weight].into_iter().chain(quota.map(|quota| max(quota, period))).chain(burst).collect()
    }
}

/// The groups of pods: as the kubelet nests them, `/kubepods`, then the QoS class unless it is Guaranteed, the pod, its containers.
fn pods(pods: &[(String, Table)], rule: WeightRule) -> Result<Vec<NamedGroup>, KeyError> {
    let (mut groups, mut burstable) = (Vec::new(), None::<u64>);
    for (name, table) in pods {
        let here = |wrong: KeyError| wrong.below(name);
        let mut table = table.clone();
        let mut containers = Vec::new();
        for (container, words) in entries(&mut table, "container").map_err(here)? {
            let cpu = PodCpu::read(&words).map_err(|wrong| wrong.below(&container).below("container"));
            containers.push((container, cpu.map_err(here)?));
        }
        let own = PodCpu::read(&table).map_err(here)?;
        let all = PodCpu::sum(&containers);
        let pod = PodCpu {
            request: own.request.or(own.limit).or(all.request),
            limit: own.limit.or(all.limit),
            ..own
        };
        let each_guaranteed = containers.iter().all(|(_, cpu)| cpu.is_guaranteed());
        let class = match pod.requested() {
            None => "/besteffort",
            Some(_) if pod.is_guaranteed() && each_guaranteed => "",
            Some(request) => {
                burstable = Some(burstable.unwrap_or(0).saturating_add(request));
                "/burstable"
            }
        };
        let path = format!("/kubepods{class}/{name}");
        if class == "/besteffort" {
            groups.push(class_group(class, 0, rule));
        }
        groups.push(NamedGroup { name: format!("pod.{name}"), path: path.clone(), files: pod.files(rule) });
        groups.extend(containers.iter().map(|(container, cpu)| NamedGroup {
            name: format!("pod.{name}.{container}"),
            path: format!("{path}/{container}"),
            files: PodCpu { period: cpu.period.or(own.period), ..*cpu }.files(rule),
        }));
    }
    groups.extend(burstable.map(|requests| class_group("/burstable", requests, rule)));
    Ok(groups)
}

/// The group of a QoS class, whose weight is that of the requests of its pods.
fn class_group(class: &str, requests: u64, rule: WeightRule) -> NamedGroup {
    NamedGroup {
        name: String::new(),
        path: format!("/kubepods{class}"),
        files: vec![rule.of_request(requests)],
    }
}

const DOCKER_WORDS: [&str; 5] = ["cpus", "cpu-shares", "cpu-period", "cpu-quota", "cpuset-cpus"];

/// Files of a container, from options of `docker run`.
fn docker_files(table: &Table, rule: WeightRule) -> Result<Vec<(String, String)>, KeyError> {
    let mut table = table.clone();
    let cpus = take(&mut table, "cpus", milli_cpus)?;
    let shares = |value: &Value| Ok(whole(value, SHARES.0 as i64..=SHARES.1 as i64)? as u64);
    let shares = take(&mut table, "cpu-shares", shares)?;
    let us = |least: i64| move |value: &Value| Ok(whole(value, least..=1_000_000_000)? as u64);
    let period = take(&mut table, "cpu-period", us(1000))?;
    let quota = take(&mut table, "cpu-quota", us(1000))?;
    let allowed = take(&mut table, "cpuset-cpus", place::cpus)?;
    if let Some(key) = table.keys().next() {
        return Err(unknown(key, "a container", &DOCKER_WORDS));
    }
    if cpus.is_some() && (period.is_some() || quota.is_some()) {
        let problem = "docker takes either cpus, or cpu-quota and cpu-period".to_string();
        return Err(KeyError::new("cpus", problem));
    }
    let period = period.unwrap_or(PERIOD_US);
    let quota = quota.or(cpus.map(|cpus| cpus.saturating_mul(period) / 1000));
    let files = shares.map(|shares| weight(rule.weight(shares))).into_iter();
    let files = files.chain(quota.map(|quota| max(quota, period)));
    Ok(files.chain(allowed.map(|cpus| ("cpuset.cpus".to_string(), cpus.to_string()))).collect())
}

const UNIT_WORDS: [&str; 5] = ["CPUWeight", "CPUQuota", "CPUQuotaPeriodSec", "AllowedCPUs", "Slice"];

/// The path and the files of a unit of systemd. A service without `Slice=` lies in `system.slice`.
fn unit(name: &str, table: &Table) -> Result<(String, Vec<(String, String)>), KeyError> {
    let mut table = table.clone();
    let file = take(&mut table, "CPUWeight", unit_weight)?;
    let quota = take(&mut table, "CPUQuota", |value| percent(text(value)?))?;
    let period = take(&mut table, "CPUQuotaPeriodSec", period_us)?;
    let allowed = take(&mut table, "AllowedCPUs", place::cpus)?;
    let slice = take(&mut table, "Slice", |value| Ok(text(value)?.to_string()))?;
    if let Some(key) = table.keys().next() {
        return Err(unknown(key, "a unit", &UNIT_WORDS));
    }
    let slice = slice.unwrap_or_else(|| "system.slice".to_string());
    let above = slice_path(&slice);
    let above =
        above.ok_or_else(|| KeyError::new("Slice", format!("'{slice}' is no slice: 'batch.slice'")))?;
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    let path = match kind {
        "slice" => {
            slice_path(name).ok_or_else(|| KeyError::new("", format!("'{name}' is no name of a slice")))?
        }
        "service" | "scope" => format!("{above}/{name}"),
        _ => format!("{above}/{name}.service"),
    };
    let quota = quota.map(|percent| unit_max(percent, period.unwrap_or(PERIOD_US)));
    let files = file.into_iter().chain(quota);
    Ok((path, files.chain(allowed.map(|cpus| ("cpuset.cpus".to_string(), cpus.to_string()))).collect()))
}

fn unit_weight(value: &Value) -> Result<(String, String), String> {
    match value.as_str() {
        Some("idle") => Ok(("cpu.idle".to_string(), "1".to_string())),
        Some(word) => Err(format!("'{word}' is neither a whole number nor \"idle\"")),
        None => Ok(weight(whole(value, 1..=10_000)? as u64)),
    }
}

/// `cpu.max` of a quota in thousandths of a percent. The period grows until the quota is 1 ms (`cgroup_cpu_adjust_period()`).
fn unit_max(percent: u64, period: u64) -> (String, String) {
    let quota = |period: u64| percent.saturating_mul(period) / 100_000;
    let least = (QUOTA_MIN_US * 100_000).div_ceil(percent.max(1));
    let period = period.max(least).min(1_000_000);
    max(quota(period), period)
}

/// The path of a slice, which its dashes nest: `a-b.slice` is in `a.slice`.
fn slice_path(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".slice").filter(|stem| !stem.is_empty())?;
    let ends = stem.match_indices('-').map(|(end, _)| end).chain([stem.len()]);
    let parts = ends.map(|end| format!("/{}.slice", &stem[..end])).collect::<String>();
    let is_whole = stem.split('-').all(|part| !part.is_empty());
    is_whole.then_some(parts)
}

/// The tables in a table of a file, by their names.
fn entries(table: &mut Table, key: &str) -> Result<Vec<(String, Table)>, KeyError> {
    let read = |value: &Value| value.as_table().cloned().ok_or_else(|| not_table(value));
    let all = take(table, key, read)?.unwrap_or_default();
    let entry = |(name, value): (String, Value)| match value {
        Value::Table(_) if name.is_empty() || name.contains('/') || name.contains(char::is_control) => {
            let problem = format!("'{}' is no name of a {key}", name.escape_default());
            Err(KeyError::new(name, problem).below(key))
        }
        Value::Table(words) => Ok((name, words)),
        other => Err(KeyError::new(name, not_table(&other)).below(key)),
    };
    all.into_iter().map(entry).collect()
}

fn not_table(value: &Value) -> String {
    format!("a table is needed, not {}", kind(value))
}

/// Keys and values, however they are nested.
fn flat(table: &Table) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(below) => {
                all.extend(flat(below).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            _ => all.push((key.clone(), value)),
        }
    }
    all
}

fn unknown(key: &str, whose: &str, words: &[&'static str]) -> KeyError {
    let meant = may_be_meant(key, words.iter().copied());
    KeyError::new(key, format!("{meant}{whose} has {}", words.join(", ")))
}

fn weight(weight: u64) -> (String, String) {
    ("cpu.weight".to_string(), weight.to_string())
}

fn max(quota: u64, period: u64) -> (String, String) {
    ("cpu.max".to_string(), format!("{quota} {period}"))
}

/// An amount of CPUs in thousandths: `2`, `0.5`, `"500m"`.
fn milli_cpus(value: &Value) -> Result<u64, String> {
    let written = match value {
        Value::String(text) => text.clone(),
        Value::Integer(_) | Value::Float(_) => value.to_string(),
        other => return Err(format!("an amount of CPUs is needed, not {}", kind(other))),
    };
    let amount = match written.strip_suffix('m') {
        Some(milli) => thousandths(milli).filter(|amount| amount % 1000 == 0).map(|amount| amount / 1000),
        None => thousandths(&written),
    };
    let amount = amount.filter(|amount| (1..=1_000_000_000).contains(amount));
    amount.ok_or_else(|| format!("'{written}' is no amount of CPUs, such as 2, 0.5 or \"500m\""))
}

/// A quota of systemd in thousandths of a percent.
fn percent(text: &str) -> Result<u64, String> {
    let percent = text.strip_suffix('%').and_then(thousandths).filter(|&percent| percent > 0);
    // Below that, a quota of 1 ms would need a period of more than 1 s.
    let percent = percent.filter(|percent| (100..=1_000_000_000).contains(percent));
    percent.ok_or_else(|| format!("'{text}' is no quota, such as \"20%\" or \"150%\""))
}

/// A decimal number with up to three digits behind its point, times 1000.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !are_digits(whole) || !are_digits(rest) || rest.len() > 3 {
        return None;
    }
    let rest = format!("{rest:0<3}").parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(rest)
}

/// A period, which the kernel takes from 1 ms to 1 s, in us.
fn period_us(value: &Value) -> Result<u64, String> {
    let period = place::time(text(value)?)?.0 / 1000;
    match (1000..=1_000_000).contains(&period) {
        true => Ok(period),
        false => Err(format!("a period of {period} us is outside 1 ms to 1 s")),
    }
}

#[cfg(test)]
mod tests;
