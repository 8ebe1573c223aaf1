//! scratch
use fairlab_event::{Event, EventKind, Ns};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::BalanceNote;
use fairlab_lab::{Onlooker, RunSpec, machines, run_watched};
struct W {
    from: Ns,
    woken: std::collections::BTreeMap<fairlab_event::Pid, Ns>,
}
impl Onlooker for W {
    fn event(&mut self, e: &Event<'_>) {
        if e.time < self.from {
            return;
        }
        match e.kind {
            EventKind::SchedWaking(w) => {
                self.woken.insert(w.pid, e.time);
            }
            EventKind::SchedSwitch(s) => {
                if let Some(t) = self.woken.remove(&s.next_pid) {
                    let w = e.time.since(t);
                    if w > Ns::from_us(100) {
                        println!(
                            "{:.6} WAIT {} {:.0}us on {}",
                            e.time.as_secs_f64(),
                            s.next_pid.0,
                            w.0 as f64 / 1e3,
                            e.cpu.0
                        );
                    }
                }
            }
            _ => {}
        }
    }
    fn wants_balancing(&self) -> bool {
        true
    }
    fn balanced(&mut self, n: &BalanceNote, k: &Scheduler) {
        if n.time < self.from {
            return;
        }
        let d = &n.decision;
        for p in &d.pulls {
            let l = p
                .looks
                .iter()
                .map(|l| format!("{}:{}({})", k.task(l.task).pid().0, l.reason.describe(), l.size))
                .collect::<Vec<_>>()
                .join("; ");
            println!(
                "{:.6} {:?} {} by {} src {} dst {} imb {} {} n={} [{}]",
                n.time.as_secs_f64(),
                d.idle,
                n.level,
                d.cpu.0,
                p.source.0,
                p.dest.0,
                p.imbalance,
                d.imbalance.migration.name(),
                p.moved().count(),
                l
            );
        }
    }
}
fn main() {
    let a = std::env::args().collect::<Vec<_>>();
    let spec = RunSpec {
        kernel: a[1].parse().unwrap(),
        machine: machines::find(&a[2]).unwrap(),
        seed: a[3].parse().unwrap(),
        duration: Ns::from_secs(a[4].parse().unwrap()),
        workload: a[6..].to_vec(),
        trace: None,
        probes: false,
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut w = W { from: Ns::from_secs(a[5].parse().unwrap()), woken: Default::default() };
    let r = run_watched(&spec, &stop, &mut w).unwrap().unwrap();
    println!("{}", r.output);
}
