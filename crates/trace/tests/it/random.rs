//! Random events, the worst that a kernel could report, from a seed that a failing test prints.

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Place, Prio, StatDelay, Switch, TaskState,
    TextFields, Wakeup,
};

use crate::kept::Kept;

/// xorshift64*: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    pub fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, among: &[&'a T]) -> &'a T {
        among[self.below(among.len())]
    }

    /// Of any size: small ones are as likely as the largest.
    fn number(&mut self) -> u64 {
        let shift = self.below(64) as u32;
        match self.below(16) {
            0 => 0,
            1 => u64::MAX,
            _ => self.next() >> shift,
        }
    }

    fn pid(&mut self) -> Pid {
        Pid(match self.below(8) {
            0 => 0,
            1 => -1,
            2 => (self.number() as i32).wrapping_neg(),
            3 => i32::MAX,
            _ => self.below(1 << 22) as i32,
        })
    }

    fn prio(&mut self) -> Prio {
        Prio(if self.chance(8) { self.next() as i32 } else { self.below(140) as i32 })
    }

    fn cpu(&mut self) -> Cpu {
        let limit = 1 << self.below(12);
        Cpu(if self.chance(16) { self.next() as u32 } else { self.below(limit) as u32 })
    }

    /// Names made of what stands in trace lines, cut anywhere at 15 bytes.
    fn comm(&mut self) -> Comm {
        const PARTS: &[&str] = &[
            "a",
            "kworker/14:0",
            "CPU 3/KVM",
            "-",
            "-1",
            " ",
            "  ",
            "=",
            ":",
            ": ",
            "[",
            "] ",
            "[001]",
            "[120]",
            "(",
            ")",
            " <- ",
            "<idle>",
            "<...>",
            " ==> ",
            " ==> next_comm=",
            " prev_pid=1",
            " prev_state=",
            " next_pid=",
            " pid=",
            " pid=1 prio=",
            " pid=1 delay=2",
            " child_pid=",
            " [ns]",
            " S ==> ",
            "CPU:",
            "#",
            "#!",
            "1.5: ",
            "x: ",
            "\t",
            "\r",
            "\u{1}",
            "ä",
            "\u{1f980}",
            "0",
            "9",
            " target_cpu=",
            "sched_switch: ",
            "+0x1",
            "pid",
            " pid=1 runtime=",
        ];
        let mut name = Vec::new();
        for _ in 0..self.below(5) {
            if self.chance(12) {
                name.push(self.below(255) as u8 + 1);
            } else {
                name.extend_from_slice(self.pick(PARTS).as_bytes());
            }
        }
        name.retain(|&byte| byte != b'\n');
        Comm::new(&name)
    }

    /// As `comm`, but one that tracefs can show before the dash.
    fn context_comm(&mut self) -> Comm {
        loop {
            let comm = self.comm();
            if !comm.as_bytes().starts_with(b" ") && comm.as_bytes() != b"<...>" {
                return comm;
            }
        }
    }

    fn flags(&mut self) -> Flags {
        Flags::new(self.pick::<[u8]>(&[
            b"",
            b"d...",
            b"d..2.",
            b"dNh1.",
            b"..s..",
            b".n..1...",
            b"D....2f0",
            b"X",
            b"[]()#-12",
        ]))
    }

    fn state(&mut self) -> TaskState {
        let mut state = if self.chance(3) { TaskState::PREEMPTED } else { TaskState::RUNNABLE };
        for _ in 0..self.below(3) {
            let letter = b"SDTtXZPIKWxN"[self.below(12)];
            state = state.union(TaskState::from_letter(letter).expect("a state's letter"));
        }
        state
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(4) {
            text.push_str(self.pick(&[
                " ",
                "B|12|x",
                "a=1 b=0x2",
                "=",
                "[001] 1.5: sched_switch: ",
                "ä",
                ": ",
                "pid=3 old_pid=4",
                "\t",
            ]));
        }
        text
    }

    fn wakeup(&mut self) -> Wakeup {
        Wakeup { comm: self.comm(), pid: self.pid(), prio: self.prio(), target_cpu: self.cpu() }
    }

    fn delay(&mut self) -> StatDelay {
        StatDelay { comm: self.comm(), pid: self.pid(), delay: Ns(self.number()) }
    }

    fn switch(&mut self) -> Switch {
        Switch {
            prev_comm: self.comm(),
            prev_pid: self.pid(),
            prev_prio: self.prio(),
            prev_state: self.state(),
            next_comm: self.comm(),
            next_pid: self.pid(),
            next_prio: self.prio(),
        }
    }

    fn place(&mut self) -> Place {
        Place {
            comm: self.comm(),
            pid: self.pid(),
            sev: self.number(),
            sed: self.number(),
            sel: self.number() as i64,
            avg: self.number(),
            min: self.number(),
            cpu: self.cpu(),
            nr: self.number() as u32,
        }
    }

    /// An event of any kind.
    pub fn event(&mut self) -> Kept {
        let context =
            Context { comm: self.context_comm(), pid: self.pid(), tgid: self.pid(), flags: self.flags() };
        let context = if self.chance(8) { Context::default() } else { context };
        let (text, other) = (self.text(), self.text());
        let probe = format!(
            "({}) {other}",
            self.pick(&["place_entity+0x0/0xf0", "a+0x1/0x2 <- b", "0x55d0", "ffff8000"])
        );
        let kind = self.kind(&text, &probe);
        Kept::of(&Event { time: Ns(self.number()), cpu: self.cpu(), context, kind })
    }

    fn kind<'t>(&mut self, text: &'t str, probe: &'t str) -> EventKind<'t> {
        match self.below(20) {
            0 => EventKind::SchedSwitch(self.switch()),
            1 => EventKind::SchedWaking(self.wakeup()),
            2 => EventKind::SchedWakeup(self.wakeup()),
            3 => EventKind::SchedWakeupNew(self.wakeup()),
            4 => EventKind::SchedStatWait(self.delay()),
            5 => EventKind::SchedStatSleep(self.delay()),
            6 => EventKind::SchedStatBlocked(self.delay()),
            7 => EventKind::SchedStatIowait(self.delay()),
            8 => EventKind::SchedPlace(self.place()),
            9 => EventKind::Marker { text },
            10 => EventKind::Kprobe {
                name: self.pick(&["place", "p_0", "sys_p", "a.b-c"]),
                fields: TextFields::new(probe),
            },
            11 => {
                let name = self.pick(&["cpu_idle", "sys_close", "sched_pi_setprio", "function", "7"]);
                EventKind::Other { name, fields: TextFields::new(text) }
            }
            _ => self.task_kind(text),
        }
    }

    fn task_kind<'t>(&mut self, text: &'t str) -> EventKind<'t> {
        let (comm, pid) = (self.comm(), self.pid());
        match self.below(9) {
            0 => EventKind::SchedProcessFork { comm, pid, child_comm: self.comm(), child_pid: self.pid() },
            1 => EventKind::SchedProcessExec { filename: text, pid, old_pid: self.pid() },
            2 => {
                let group_dead = [None, Some(true), Some(false)][self.below(3)];
                EventKind::SchedProcessExit { comm, pid, prio: self.prio(), group_dead }
            }
            3 => {
                let vruntime = if self.chance(2) { Some(self.number()) } else { None };
                EventKind::SchedStatRuntime { comm, pid, runtime: Ns(self.number()), vruntime }
            }
            4 => {
                let (orig_cpu, dest_cpu) = (self.cpu(), self.cpu());
                EventKind::SchedMigrateTask { comm, pid, prio: self.prio(), orig_cpu, dest_cpu }
            }
            5 => EventKind::TaskName { pid, tgid: self.pid(), comm },
            6 => EventKind::TaskStart { pid, tgid: self.pid(), parent_pid: self.pid() },
            7 => EventKind::TaskExit { pid, tgid: self.pid() },
            _ => EventKind::Lost {
                count: if self.chance(3) { None } else { Some(self.below(1 << 20) as u64) },
            },
        }
    }
}
