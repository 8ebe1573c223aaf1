//! Where events go. Sinks compose: a pair of sinks is a sink, an optional sink is a sink.

use crate::{Cpu, Event, Pid, System};

/// Takes events one by one, in the order in which they happened.
pub trait Sink {
    /// Takes one event. The event's text is valid for this call only.
    fn event(&mut self, event: &Event<'_>);

    /// Takes what is known of the kernel and the machine; said at most once, before the first event.
    fn system(&mut self, _: &System) {}

    /// Takes the CPUs that a task may run on from now on; none: all. No trace has this as an event: the engine or the reader
    /// tells what it knows.
    fn allowed(&mut self, _: Pid, _: &[Cpu]) {}

    /// Takes the workload of a task, where several run side by side. No trace has this; the engine tells it before the task's
    /// first event.
    fn member(&mut self, _: Pid, _: &str) {}
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn event(&mut self, event: &Event<'_>) {
        (**self).event(event);
    }

    fn system(&mut self, system: &System) {
        (**self).system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        (**self).allowed(pid, cpus);
    }

    fn member(&mut self, pid: Pid, name: &str) {
        (**self).member(pid, name);
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn event(&mut self, event: &Event<'_>) {
        (**self).event(event);
    }

    fn system(&mut self, system: &System) {
        (**self).system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        (**self).allowed(pid, cpus);
    }

    fn member(&mut self, pid: Pid, name: &str) {
        (**self).member(pid, name);
    }
}

/// Takes nothing.
impl Sink for () {
    fn event(&mut self, _: &Event<'_>) {}
}

/// Feeds both.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn event(&mut self, event: &Event<'_>) {
        self.0.event(event);
        self.1.event(event);
    }

    fn system(&mut self, system: &System) {
        self.0.system(system);
        self.1.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.0.allowed(pid, cpus);
        self.1.allowed(pid, cpus);
    }

    fn member(&mut self, pid: Pid, name: &str) {
        self.0.member(pid, name);
        self.1.member(pid, name);
    }
}

/// Feeds the sink if there is one.
impl<S: Sink> Sink for Option<S> {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }

    fn system(&mut self, system: &System) {
        if let Some(sink) = self {
            sink.system(system);
        }
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        if let Some(sink) = self {
            sink.allowed(pid, cpus);
        }
    }

    fn member(&mut self, pid: Pid, name: &str) {
        if let Some(sink) = self {
            sink.member(pid, name);
        }
    }
}

/// Feeds each.
impl<S: Sink> Sink for [S] {
    fn event(&mut self, event: &Event<'_>) {
        for sink in self {
            sink.event(event);
        }
    }

    fn system(&mut self, system: &System) {
        for sink in self {
            sink.system(system);
        }
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        for sink in self {
            sink.allowed(pid, cpus);
        }
    }

    fn member(&mut self, pid: Pid, name: &str) {
        for sink in self {
            sink.member(pid, name);
        }
    }
}

/// A sink made of a function.
pub fn sink_fn<F: FnMut(&Event<'_>)>(function: F) -> impl Sink {
    struct FunctionSink<F>(F);
    impl<F: FnMut(&Event<'_>)> Sink for FunctionSink<F> {
        fn event(&mut self, event: &Event<'_>) {
            (self.0)(event);
        }
    }
    FunctionSink(function)
}

/// Passes on the events that `keep` accepts.
#[derive(Clone, Debug)]
pub struct Filter<S, F> {
    /// Where accepted events go.
    pub sink: S,
    /// Which events are accepted.
    pub keep: F,
}

impl<S: Sink, F: FnMut(&Event<'_>) -> bool> Sink for Filter<S, F> {
    fn event(&mut self, event: &Event<'_>) {
        if (self.keep)(event) {
            self.sink.event(event);
        }
    }

    fn system(&mut self, system: &System) {
        self.sink.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.sink.allowed(pid, cpus);
    }

    fn member(&mut self, pid: Pid, name: &str) {
        self.sink.member(pid, name);
    }
}

/// Counts events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Events seen so far.
    pub events: u64,
}

impl Sink for Counter {
    fn event(&mut self, _: &Event<'_>) {
        self.events += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventKind, Ns};

    #[test]
    fn sinks_compose() {
        let mut seen = Vec::new();
        let mut sink = (
            Counter::default(),
            Some(Filter {
                sink: sink_fn(|event: &Event<'_>| seen.push(event.cpu)),
                keep: |event: &Event<'_>| event.cpu == Cpu(1),
            }),
        );
        for cpu in [0, 1, 2, 1] {
            sink.event(&Event::new(Ns(1), Cpu(cpu), EventKind::Marker { text: "x" }));
        }
        assert_eq!(sink.0.events, 4);
        drop(sink);
        assert_eq!(seen, [Cpu(1), Cpu(1)]);
    }

    #[test]
    fn every_sink_of_a_composed_one_hears_of_the_system() {
        #[derive(Default)]
        struct Heard(Vec<System>);
        impl Sink for Heard {
            fn event(&mut self, _: &Event<'_>) {}
            fn system(&mut self, system: &System) {
                self.0.push(system.clone());
            }
        }
        let system = System { release: "6.6.9".to_string(), cpus: Some(4), ..System::default() };
        let keep = |_: &Event<'_>| false;
        let expected = vec![system.clone()];
        let mut each = [Heard::default(), Heard::default()];
        let mut boxed = Box::new(Heard::default());
        let mut sinks = (Some(Filter { sink: Heard::default(), keep }), (&mut boxed, &mut each[..]));
        Sink::system(&mut &mut sinks, &system);
        assert_eq!(sinks.0.expect("a sink").sink.0, expected);
        assert_eq!(boxed.0, expected);
        assert!(each.iter().all(|heard| heard.0 == expected) && !system.is_unknown());
    }
}
