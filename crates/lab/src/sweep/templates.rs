//! A sweep's kernels and command lines as its file has them: options by their names where cells have values. A drawn sweep tells its
//! lines apart by these.
//!
//! Must not know: what the numbers are, how they are drawn.

use std::path::Path;

use serde_json::Value;

use crate::LabError;
use crate::cells;

/// What a cell has in common with those that differ in options alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Templates {
    kernels: Vec<String>,
    workloads: Vec<String>,
    machines: usize,
    combinations: usize,
    seeds: usize,
    /// Options that have more than one value.
    pub(super) options: Vec<String>,
}

impl Templates {
    /// Those of a sweep's folder; `None`: another version wrote it.
    ///
    /// # Errors
    /// It is no sweep's folder.
    pub(super) fn read(folder: &Path) -> Result<Option<Templates>, LabError> {
        Ok(Templates::of(&cells::spec_of(folder)?))
    }

    /// Those of what decides a sweep's records.
    pub(super) fn of(spec: &Value) -> Option<Templates> {
        let list = |name: &str| spec[name].as_array();
        let options = list("options")?.iter().map(|option| {
            let values = option[1].as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>();
            Some((option[0].as_str()?, values))
        });
        let options = options.collect::<Option<Vec<_>>>()?;
        let combinations = options.iter().map(|(_, values)| values.len()).product::<usize>().max(1);
        let kernel = |kernel: &Value| {
            let names = kernel.as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>();
            Some(template(&names, &options))
        };
        let workload = |workload: &Value| {
            let lines = workload.as_array()?.iter().map(|line| {
                let words = line.as_array()?.iter().filter_map(Value::as_str);
                Some(words.collect::<Vec<_>>())
            });
            let lines = lines.collect::<Option<Vec<_>>>()?;
            let words = (0..lines.first()?.len()).map(|at| {
                let of_each = lines.iter().map(|line| line.get(at).copied().unwrap_or_default());
                template(&of_each.collect::<Vec<_>>(), &options)
            });
            Some(words.collect::<Vec<_>>().join(" "))
        };
        Some(Templates {
            kernels: list("kernels")?.iter().map(kernel).collect::<Option<_>>()?,
            workloads: list("workloads")?.iter().map(workload).collect::<Option<_>>()?,
            machines: list("machines")?.len(),
            combinations,
            seeds: list("seeds")?.len(),
            options: options
                .iter()
                .filter(|(_, values)| values.len() > 1)
                .map(|(name, _)| name.to_string())
                .collect(),
        })
    }

    /// A cell's kernel or command line, as the file has it.
    pub(super) fn column(&self, name: &str, cell: &Value) -> Option<String> {
        let number = usize::try_from(cell["cell"].as_u64()?).ok()?;
        let rest = number.checked_div(self.seeds)?.checked_div(self.combinations)?;
        match name {
            "workload" => self.workloads.get(rest.checked_rem(self.workloads.len())?).cloned(),
            "kernel" => {
                let each = self.workloads.len() * self.machines;
                self.kernels.get(rest.checked_div(each)?).cloned()
            }
            _ => None,
        }
    }
}

/// A text of each combination of options as one: what all have in common at both ends, and the options that the rest comes of.
fn template(texts: &[&str], options: &[(&str, Vec<&str>)]) -> String {
    let Some(first) = texts.first() else { return String::new() };
    if texts.iter().all(|text| text == first) {
        return first.to_string();
    }
    let shared = |one: &str, other: &str| {
        one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
    };
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    let ahead = texts.iter().map(|text| shared(first, text)).min().unwrap_or(0);
    let least = texts.iter().map(|text| text.chars().count()).min().unwrap_or(0);
    let behind = texts.iter().map(|text| shared(&backwards(first), &backwards(text))).min().unwrap_or(0);
    let chars = first.chars().collect::<Vec<_>>();
    // Values have no digit in common with what is around them.
    let is_number = |char: &&char| char.is_ascii_digit() || **char == '.';
    let ahead = ahead - chars[..ahead].iter().rev().take_while(is_number).count();
    let behind = behind.min(least.saturating_sub(ahead));
    let behind = behind - chars[chars.len() - behind..].iter().take_while(is_number).count();
    let names = depends_on(texts, options).into_iter().map(|name| format!("{{{name}}}")).collect::<String>();
    let (before, after) = (&chars[..ahead], &chars[chars.len() - behind..]);
    format!("{}{names}{}", before.iter().collect::<String>(), after.iter().collect::<String>())
}

/// The options that make a difference to a text, the last of which varies fastest.
fn depends_on<'o>(texts: &[&str], options: &[(&'o str, Vec<&str>)]) -> Vec<&'o str> {
    let mut stride = 1;
    let mut found = Vec::new();
    for (name, values) in options.iter().rev() {
        let block = stride * values.len();
        let differs = |at: usize| texts.get(at) != texts.get(at / block * block + at % stride);
        if (0..texts.len()).any(differs) {
            found.push(*name);
        }
        stride = block;
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::SweepPlan;

    const SWEEP: &str = r#"
kernels = ["v6.5", "v6.6,base_slice_ns={slice}"]
machines = ["laptop8", "vm4"]
workloads = ["schbench -m 1 -t {threads} -c 100", ["hackbench", "-g", "2"]]
seeds = 2
duration_ms = 100
options = { threads = [10, 12], slice = [1000000, 3000000] }
"#;

    #[test]
    fn cells_have_the_texts_of_the_file() {
        let plan = SweepPlan::parse(SWEEP).expect("a plan");
        let templates = Templates::of(&plan.to_json()).expect("templates");
        assert_eq!(templates.options, ["slice", "threads"]);
        let kernels = ["v6.5", "v6.6,base_slice_ns={slice}"];
        let workloads = ["schbench -m 1 -t {threads} -c 100", "hackbench -g 2"];
        for number in 0..plan.cells() {
            let spec = plan.cell(number).spec;
            let cell = serde_json::json!({ "cell": number });
            let kernel = kernels[usize::from(spec.kernel.name() != "v6.5")];
            let workload = workloads[usize::from(spec.workload[0] == "hackbench")];
            assert_eq!(templates.column("kernel", &cell).as_deref(), Some(kernel));
            assert_eq!(templates.column("workload", &cell).as_deref(), Some(workload));
        }
        assert_eq!(templates.column("machine", &serde_json::json!({ "cell": 0 })), None);
    }
}
