//! `execve()`: a task that replaces its program goes where there is room, moved by the stopper of its CPU.

use super::*;
use fairlab_kernel::Policy;

/// What came of two tasks that begin on CPU 0 of four, may run anywhere from then on, and compute: before any balancing.
#[derive(Debug, Default, PartialEq, Eq)]
struct Moves {
    /// Who was moved from where to where.
    moved: Vec<(Cpu, Cpu)>,
    /// How often a stopper took over from a task that would have gone on.
    stopped: usize,
    /// CPUs that ran one of the tasks.
    ran: Vec<Cpu>,
}

fn after(kernel: &str, policy: Policy, call: Action) -> Moves {
    let everywhere =
        Action::SetScheduler { policy: Some(policy), nice: None, request: None, allowed: Some(CpuMask::ALL) };
    let actions = vec![everywhere, call, Action::Run(Ns::from_ms(50))];
    let task = |name: &str| (ThreadSpec { stream: name.to_string(), ..spec(0, "0") }, actions.clone());
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(4), 1);
    engine.set_tracing(true);
    engine.start(Script::new(vec![task("one"), task("two")]));
    let mut moves = Moves::default();
    let mut see = |event: &Event<'_>| match &event.kind {
        EventKind::SchedMigrateTask { comm, orig_cpu, dest_cpu, .. } if comm.as_bytes() == b"task" => {
            moves.moved.push((*orig_cpu, *dest_cpu));
        }
        EventKind::SchedSwitch(switch) => {
            let stops = switch.next_comm.as_bytes().starts_with(b"migration");
            moves.stopped += usize::from(stops && switch.prev_state.is_preempted());
            if switch.next_comm.as_bytes() == b"task" && !moves.ran.contains(&event.cpu) {
                moves.ran.push(event.cpu);
            }
        }
        _ => {}
    };
    engine.run_until(Ns::from_us(900), &mut sink_fn(|event: &Event<'_>| see(event)));
    moves
}

#[test]
fn of_two_tasks_on_one_cpu_the_first_to_exec_leaves() {
    for kernel in ["v4.18", "v5.4", "v5.10", "v6.1", "v6.12", "v7.2"] {
        let moves = after(kernel, Policy::Normal, Action::Exec);
        let [(from, to)] = moves.moved[..] else { panic!("{kernel}: {moves:?}") };
        assert_eq!((from, moves.stopped), (Cpu(0), 1), "{kernel}: {moves:?}");
        assert_eq!(moves.ran, [Cpu(0), to], "{kernel}: it goes on there, and the other one stays");
    }
}

#[test]
fn without_exec_both_stay() {
    for kernel in ["v5.10", "v6.12"] {
        let stays = Moves { ran: vec![Cpu(0)], ..Moves::default() };
        assert_eq!(after(kernel, Policy::Normal, Action::SystemCall(Ns::from_us(1))), stays, "{kernel}");
        assert_eq!(
            after(kernel, Policy::Fifo(1), Action::Exec),
            stays,
            "{kernel}: real-time tasks stay, too"
        );
    }
}
