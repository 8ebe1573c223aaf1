//! Real kernels that are booted in the place of what was written down of them.
//!
//! Must not know: which report wants them, what it measures.

use std::sync::Arc;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_lab::LabError;
use fairlab_lab::booted::{QemuKernel, QemuSpec};
use fairlab_lab::machines::emulated_hardware;

use super::ScenarioContext;
use super::expressions::Cell;
use super::file::{Plan, Scenario};
use crate::booted_table::boot_and_verify;
use fairlab_analysis::watched::Counting;

impl Plan {
    /// What boots its kernel.
    fn qemu(&self) -> Result<QemuSpec, LabError> {
        let unknown = || LabError::new(format!("{} cannot be booted", self.kernel), "correct the report");
        let nowhere =
            || LabError::new(format!("nothing is booted on {}", self.machine), "correct the report");
        Ok(QemuSpec {
            kernel: QemuKernel::parse(&self.kernel).ok_or_else(unknown)??,
            machine: self.machine.clone(),
            hardware: emulated_hardware(&self.machine).ok_or_else(nowhere)??,
            workload: self.workload.split_whitespace().map(str::to_string).collect(),
            seed: 1,
            duration: self.duration(),
            trace: None,
            by_name: NamesWanted::default(),
        })
    }
}

impl Scenario {
    /// Boots every real kernel whose figures were written down, once each. Gives `None` when it was stopped.
    pub(crate) fn boot(
        &self,
        bench: &ScenarioContext<'_>,
        plans: &[Plan],
    ) -> Result<Option<Vec<Arc<Cell>>>, LabError> {
        bench.each(plans, |plan| {
            let mut counting = Counting::new(&self.watch, plan.from());
            let model = plan.model.as_deref().unwrap_or(&plan.kernel).parse()?;
            let booted = boot_and_verify(&plan.qemu()?, &model, &mut counting, bench.stop)?;
            Ok(booted.map(|booted| {
                let (runs, counted) = (vec![booted.kept.result], vec![counting.finish()]);
                Arc::new(Cell {
                    plan: plan.clone(),
                    runs,
                    counted,
                    verified: Some(booted.verified),
                    pooled: false,
                })
            }))
        })
    }
}
