//! The first commit of the log that makes a run bad: a bisection within a scenario.
//!
//! Must not know: what bad means.

use fairlab_kernel::Generation;
use fairlab_kernel::generation::Change;

use super::{Bench, Plan};
use crate::{LabError, RunResult, run};

/// The modelled change between two releases with which `plan` first gives a bad result, all before it applied as well.
/// The older release is taken to be good, the newer one bad.
pub(super) fn first_bad(
    bench: &Bench<'_>,
    plan: &Plan,
    (good, bad): (&str, &str),
    is_bad: impl Fn(&RunResult) -> bool,
) -> Result<Option<Option<&'static Change>>, LabError> {
    let (old, new) = (good.parse::<Generation>()?, bad.parse::<Generation>()?);
    let known = old.changes().map(Change::id).collect::<Vec<_>>();
    let added = new.changes().filter(|change| change.is_modelled() && !known.contains(&change.id()));
    let added = added.collect::<Vec<_>>();
    let (mut low, mut high) = (0, added.len());
    while low + 1 < high {
        let middle = (low + high) / 2;
        let mut spec = plan.spec()?;
        let name = added[..middle].iter().fold(good.to_string(), |name, change| name + "+" + change.id());
        spec.kernel = name.parse::<Generation>()?;
        let Some(result) = run(&spec, bench.stop)? else { return Ok(None) };
        if is_bad(&result) { high = middle } else { low = middle }
    }
    Ok(Some(added.get(low).copied()))
}
