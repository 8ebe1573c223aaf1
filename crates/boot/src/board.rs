//! An arm64 board as a machine of the model describes it: its CPUs' capacities, shared clocks and power.
//!
//! QEMU's board has none of these, so they are added to its device tree. A clock is a fixed clock behind a switch
//! (`gpio-mux-clock`). The switch is a bit in a register, and the register is plain memory that the kernel does not use. So
//! the kernel's own drivers set frequencies and read them back. The real speed of a CPU does not change.
//!
//! Must not know: how QEMU is started, how a device tree is stored.

use fairlab_event::Cpu;
use fairlab_kernel::CpuMask;
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::energy::PerfState;
use fairlab_kernel::topology::Platform;
use fairlab_sim::Machine;

use crate::devicetree::{DeviceTree, DeviceTreeNode};
use fairlab_files::LabError;

/// What QEMU's board has at most, with the interrupt controller that it has if nothing else is said.
const CPUS_MAX: usize = 8;

/// Bits of a register, each a switch.
const SWITCHES_MAX: usize = 32;

/// Memory for registers, at the end of all: a page, with a word for every clock.
const REGISTERS_BYTES: u64 = 0x1000;

/// The raw capacity that stands for the largest one; the kernel divides, and this is large enough to come out even.
const RAW_CAPACITY: u64 = 1 << 20;

/// The largest capacity that a kernel gives.
const FULL_CAPACITY: u64 = 1024;

/// Where the governor takes its limit from, us.
const RATE_LIMIT: &str = "/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us";

/// A machine that can be such a board.
#[derive(Clone, Debug)]
pub struct Board(Machine);

impl Board {
    /// The machine as a board.
    ///
    /// # Errors
    /// It has what no board has that can be booted.
    pub fn new(machine: Machine) -> Result<Board, LabError> {
        match lacks(&machine) {
            None => Ok(Board(machine)),
            Some(why) => Err(LabError::new(
                format!("no kernel can be booted on {}: {why}", machine.name),
                "name a machine of arm64 like chromebook8 ('fairlab machines show chromebook8'), or the path of such a file",
            )),
        }
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.0
    }

    pub(super) fn cpus(&self) -> u32 {
        self.0.topology.nr_cpus() as u32
    }

    /// What the kernel is told by files of its own, once its drivers are there.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let limit = self.0.frequency_domains.first().map(|domain| domain.rate_limit.0 / 1000);
        limit.map(|us| (RATE_LIMIT.to_string(), us.to_string())).into_iter().collect()
    }

    /// Adds to the tree of QEMU's board what this machine has beyond it.
    ///
    /// # Errors
    /// The tree is not as that board's.
    pub(super) fn describe(&self, tree: &mut DeviceTree) -> Result<(), LabError> {
        self.describe_in(&mut tree.root).ok_or_else(|| {
            LabError::new("QEMU's board 'virt' is not as it was known to be", "use QEMU 11, or report this")
        })
    }

    fn describe_in(&self, root: &mut DeviceTreeNode) -> Option<()> {
        let Machine { frequency_domains, energy_model, .. } = &self.0;
        self.describe_cpus(root.child("cpus")?)?;
        if frequency_domains.is_empty() {
            return Some(());
        }
        let registers = end_of_memory(root)? - REGISTERS_BYTES;
        root.children.push(reserved_memory(registers));
        let mut handle = root.last_handle();
        for (number, domain) in frequency_domains.iter().enumerate() {
            let model = energy_model.iter().find(|known| known.cpus == domain.cpus);
            let states = model.map(|known| known.states.as_slice());
            let clock = BoardClock { number, domain, states, register: registers + 4 * number as u64 };
            clock.add_to(root, &mut handle)?;
        }
        Some(())
    }

    /// How big CPUs are, and that all are one cluster's cores: a kernel that knows no sockets (up to v5.11) looks for clusters only.
    fn describe_cpus(&self, cpus: &mut DeviceTreeNode) -> Option<()> {
        let mut cluster = DeviceTreeNode::new("cluster0");
        for (cpu, capacity) in raw_capacities(&self.0).into_iter().enumerate() {
            let node = node_of(cpus, cpu)?;
            node.set("capacity-dmips-mhz", capacity.to_be_bytes().to_vec());
            let core = DeviceTreeNode::new(format!("core{cpu}")).cells("cpu", &node.numbers("phandle"));
            cluster.children.push(core);
        }
        cpus.child("cpu-map")?.children = vec![cluster];
        Some(())
    }
}

/// Why a machine cannot be a board.
fn lacks(machine: &Machine) -> Option<String> {
    let topology = &machine.topology;
    if topology.platform() != Platform::Arm64 {
        return Some(format!("it is of {}, and boards are of arm64", topology.platform().name()));
    }
    if topology.nr_cpus() > CPUS_MAX {
        return Some(format!("it has {} CPUs, and a board at most {CPUS_MAX}", topology.nr_cpus()));
    }
    if topology.has_smt() || topology.llc_size(Cpu(0)) != topology.nr_cpus() {
        return Some("its CPUs are not cores that share one cache".to_string());
    }
    if topology.cpus().any(|cpu| topology.cluster_mask(cpu) != topology.smt_mask(cpu)) {
        return Some("it has clusters".to_string());
    }
    if !machine.idle_states.is_empty() {
        return Some("it has idle states, and an emulated CPU that idles stands still".to_string());
    }
    let domains = &machine.frequency_domains;
    if let Some(domain) = domains.iter().find(|domain| domain.frequencies.len() > SWITCHES_MAX) {
        return Some(format!("the clock of CPUs {} has more than {SWITCHES_MAX} frequencies", domain.cpus));
    }
    let clocked = domains.iter().fold(CpuMask::EMPTY, |cpus, domain| cpus.or(&domain.cpus));
    if !domains.is_empty() && clocked != *topology.online() {
        return Some("some of its CPUs have clocks that change and others have not".to_string());
    }
    if domains.windows(2).any(|pair| pair[0].rate_limit != pair[1].rate_limit) {
        return Some("its clocks have different rate limits, and this kernel's governor has one".to_string());
    }
    None
}

/// The node of a CPU; boards of up to eight number them as the kernel does.
fn node_of(cpus: &mut DeviceTreeNode, cpu: usize) -> Option<&mut DeviceTreeNode> {
    cpus.child(&format!("cpu@{cpu:x}"))
}

/// Where the machine's memory ends.
fn end_of_memory(root: &DeviceTreeNode) -> Option<u64> {
    let memory = root.children.iter().find(|node| node.name.starts_with("memory@"))?;
    let [start_high, start, length_high, length] = memory.numbers("reg")[..] else { return None };
    let of = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    of(start_high, start).checked_add(of(length_high, length))
}

/// Two words for the upper and the lower half of an address.
fn halves(address: u64) -> [u32; 2] {
    [(address >> 32) as u32, address as u32]
}

/// The last page, which the kernel neither uses nor maps.
fn reserved_memory(registers: u64) -> DeviceTreeNode {
    let [high, low] = halves(registers);
    let page = DeviceTreeNode::new(format!("switches@{registers:x}"));
    let page = page.cells("reg", &[high, low, 0, REGISTERS_BYTES as u32]).flag("no-map");
    let all = DeviceTreeNode::new("reserved-memory").cells("#address-cells", &[2]).cells("#size-cells", &[2]);
    all.flag("ranges").with(page)
}

/// The raw capacities from which a kernel computes the machine's own: it multiplies each with the highest frequency, MHz or kHz
/// by its version, and divides by the largest product.
///
/// Kernel: `topology_normalize_cpu_scale()`, drivers/base/arch_topology.c; MHz to v6.7 (9942cb22ea45).
fn raw_capacities(machine: &Machine) -> Vec<u32> {
    let highest = |cpu: Cpu| {
        let domain = machine.frequency_domains.iter().find(|domain| domain.cpus.contains(cpu));
        domain.map_or(1, |domain| u64::from(domain.max()))
    };
    let capacity = |cpu: Cpu| u64::from(machine.topology.capacity(cpu));
    let largest = machine.topology.cpus().find(|&cpu| capacity(cpu) == FULL_CAPACITY);
    let of_largest = largest.map_or(1, highest);
    let raw = |cpu: Cpu| match capacity(cpu) {
        FULL_CAPACITY => RAW_CAPACITY * of_largest / highest(cpu),
        // Half more, so that either unit is rounded down to the same capacity.
        capacity => RAW_CAPACITY * of_largest * (2 * capacity + 1) / (2 * FULL_CAPACITY * highest(cpu)),
    };
    machine.topology.cpus().map(|cpu| u32::try_from(raw(cpu)).unwrap_or(u32::MAX)).collect()
}

/// A clock that some CPUs share.
struct BoardClock<'m> {
    number: usize,
    domain: &'m FrequencyDomain,
    /// What they draw at each of its frequencies.
    states: Option<&'m [PerfState]>,
    /// Where the register lies that its switches are bits of.
    register: u64,
}

impl BoardClock<'_> {
    /// Adds all that it consists of, and to CPUs that it is theirs. `handle` is the last number by which something is referred to.
    fn add_to(&self, root: &mut DeviceTreeNode, handle: &mut u32) -> Option<()> {
        let (switches, points) = (*handle + 1, *handle + 2);
        *handle = points;
        root.children.push(self.switches(switches));
        let output = self.add_inputs(
            root,
            0,
            self.domain.frequencies.len(),
            &mut PhandleNumbers { last: handle, switches },
        );
        root.children.push(self.operating_points(points));
        let cpus = root.child("cpus")?;
        for cpu in self.domain.cpus.iter() {
            let node = node_of(cpus, cpu.index())?;
            node.set("clocks", output.to_be_bytes().to_vec());
            node.set("operating-points-v2", points.to_be_bytes().to_vec());
            if self.states.is_some() {
                node.set("dynamic-power-coefficient", 1_u32.to_be_bytes().to_vec());
            }
        }
        Some(())
    }

    fn switches(&self, handle: u32) -> DeviceTreeNode {
        let [high, low] = halves(self.register);
        let node = DeviceTreeNode::new(format!("gpio@{:x}", self.register)).text("compatible", "wd,mbl-gpio");
        let node = node.text("reg-names", "dat").cells("reg", &[high, low, 0, 4]);
        node.flag("gpio-controller").cells("#gpio-cells", &[2]).cells("phandle", &[handle])
    }

    /// A fixed clock of each frequency, and switches that halve the choice. Returns the handle of what CPUs are fed by.
    ///
    /// Switches in a row, each between those before it and one more frequency, would be slow: the kernel asks each switch what
    /// all before it can do. 16 frequencies took 200 us.
    fn add_inputs(
        &self,
        root: &mut DeviceTreeNode,
        from: usize,
        to: usize,
        next: &mut PhandleNumbers<'_>,
    ) -> u32 {
        let handle = next.handle();
        if to - from == 1 {
            let name = format!("clock{}-{from}", self.number);
            let node = DeviceTreeNode::new(name.as_str())
                .text("compatible", "fixed-clock")
                .cells("#clock-cells", &[0]);
            let node = node.cells("clock-frequency", &[self.domain.frequencies[from] * 1000]);
            root.children.push(node.text("clock-output-names", &name).cells("phandle", &[handle]));
            return handle;
        }
        // One of the frequencies from `from` up to `to`, which the lowest of the upper half names.
        let middle = from.midpoint(to);
        let lower = self.add_inputs(root, from, middle, next);
        let upper = self.add_inputs(root, middle, to, next);
        let node = DeviceTreeNode::new(format!("switch{}-{middle}", self.number))
            .text("compatible", "gpio-mux-clock");
        let node = node.cells("#clock-cells", &[0]).cells("clocks", &[lower, upper]);
        let node = node.cells("select-gpios", &[next.switches, middle as u32 - 1, 0]);
        root.children.push(node.cells("phandle", &[handle]));
        handle
    }

    /// What its CPUs can be set to. A change takes a microsecond; the governor's limit is set by its own file.
    fn operating_points(&self, handle: u32) -> DeviceTreeNode {
        let mut table = DeviceTreeNode::new(format!("opp-table-{}", self.number));
        table =
            table.text("compatible", "operating-points-v2").flag("opp-shared").cells("phandle", &[handle]);
        for (index, &khz) in self.domain.frequencies.iter().enumerate() {
            let hz = u64::from(khz) * 1000;
            let mut point = DeviceTreeNode::new(format!("opp-{hz}"))
                .cells("opp-hz", &halves(hz))
                .cells("clock-latency-ns", &[1000]);
            if let Some(state) = self.states.and_then(|states| states.get(index)) {
                point = point.cells("opp-microvolt", &[microvolts(khz, state)]);
            }
            table.children.push(point);
        }
        table
    }
}

/// Numbers that nodes refer to each other by.
struct PhandleNumbers<'h> {
    last: &'h mut u32,
    /// The register of the switches that are made.
    switches: u32,
}

impl PhandleNumbers<'_> {
    fn handle(&mut self) -> u32 {
        *self.last += 1;
        *self.last
    }
}

/// The voltage from which the kernel computes this power, with a coefficient of 1: uW = (mV)² × MHz / 10⁶, all whole numbers. No
/// regulator is asked for it, so it may be any number of volts.
///
/// Kernel: `_get_power()`, to v5.18 `_get_cpu_power()`, drivers/opp/of.c.
fn microvolts(khz: u32, state: &PerfState) -> u32 {
    let mhz = u64::from(khz / 1000).max(1);
    let wanted = (state.microwatts * 1_000_000).div_ceil(mhz);
    let root = wanted.isqrt();
    let millivolts = root + u64::from(root * root < wanted);
    u32::try_from(millivolts * 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chromebook() -> Board {
        Board::new(Machine::preset("chromebook8").expect("a machine")).expect("a board")
    }

    /// As QEMU tells of its board, as far as it matters here.
    fn plain(cpus: u32) -> DeviceTree {
        let cpu = |number: u32| {
            DeviceTreeNode::new(format!("cpu@{number}"))
                .cells("reg", &[number])
                .cells("phandle", &[0x8000 + number])
        };
        let mut all = DeviceTreeNode::new("cpus")
            .with(DeviceTreeNode::new("cpu-map").with(DeviceTreeNode::new("socket0")));
        all.children.extend((0..cpus).map(cpu));
        let memory = DeviceTreeNode::new("memory@40000000").cells("reg", &[0, 0x4000_0000, 0, 0x6000_0000]);
        DeviceTree { root: DeviceTreeNode::new("").with(memory).with(all) }
    }

    fn described() -> DeviceTreeNode {
        let mut tree = plain(8);
        chromebook().describe(&mut tree).expect("described");
        assert_eq!(DeviceTree::read(&tree.write()), Some(tree.clone()));
        tree.root
    }

    #[test]
    fn kernels_find_the_machines_capacities() {
        let board = chromebook();
        let raw = raw_capacities(board.machine()).into_iter().map(u64::from).collect::<Vec<_>>();
        // By the highest frequencies in MHz, rounded down, and in kHz.
        for highest in [[1804, 2553], [1_804_800, 2_553_600]] {
            let product = |cpu: usize| raw[cpu] * highest[usize::from(cpu > 5)];
            assert_eq!(
                (product(0) * 1024 / product(7), product(5) * 1024 / product(6)),
                (425, 425),
                "{highest:?}"
            );
        }
    }

    #[test]
    fn kernels_find_the_machines_powers() {
        let model = chromebook().machine().energy_model.clone();
        for state in model.iter().flat_map(|domain| &domain.states) {
            let millivolts = u64::from(microvolts(state.khz, state)) / 1000;
            let microwatts = millivolts * millivolts * u64::from(state.khz / 1000) / 1_000_000;
            assert_eq!(microwatts / 1000, state.milliwatts(), "{} kHz", state.khz);
            assert!(
                microwatts - state.microwatts < 1 + state.microwatts / 1000,
                "{} kHz: {microwatts}",
                state.khz
            );
        }
    }

    #[test]
    fn every_cpu_has_the_clock_of_its_kind() {
        let mut root = described();
        let cpus = root.child("cpus").expect("CPUs");
        let of = |cpus: &mut DeviceTreeNode, cpu: usize, name: &str| {
            node_of(cpus, cpu).expect("a CPU").numbers(name)
        };
        let clocks = (0..8).map(|cpu| of(cpus, cpu, "clocks")[0]).collect::<Vec<_>>();
        assert!(clocks[..6].iter().all(|clock| *clock == clocks[0]) && clocks[6] == clocks[7]);
        assert_ne!(clocks[0], clocks[7]);
        assert_eq!(of(cpus, 3, "dynamic-power-coefficient"), [1]);
        let map = &cpus.child("cpu-map").expect("a map").children;
        assert_eq!((map.len(), map[0].name.as_str(), map[0].children.len()), (1, "cluster0", 8));
        assert_eq!(map[0].children[7].numbers("cpu"), [0x8007]);
        // Of ten frequencies a switch chooses five, and another one two or three of these.
        let first = root.child("switch0-5").expect("a switch");
        assert_eq!((first.numbers("phandle")[0], first.numbers("select-gpios")[1]), (clocks[0], 4));
        let lower = root.child("switch0-2").expect("a switch").numbers("phandle");
        let first = root.child("switch0-5").expect("a switch").numbers("clocks");
        assert_eq!(first[0], lower[0]);
        let count = |root: &DeviceTreeNode, name: &str| {
            root.children.iter().filter(|node| node.name.starts_with(name)).count()
        };
        assert_eq!(
            (count(&root, "clock0-"), count(&root, "switch0-"), count(&root, "switch1-")),
            (10, 9, 15)
        );
        assert_eq!(root.child("clock0-9").expect("a clock").numbers("clock-frequency"), [1_804_800_000]);
        let points = root.child("opp-table-1").expect("operating points");
        assert_eq!(points.children.len(), 16);
        assert_eq!(points.children[0].numbers("opp-hz"), [0, 300_000_000]);
    }

    #[test]
    fn switches_are_in_memory_that_the_kernel_has_not_got() {
        let mut root = described();
        let page = &root.child("reserved-memory").expect("memory").children[0];
        assert_eq!(page.numbers("reg"), [0, 0x9fff_f000, 0, 0x1000]);
        let register = root.child("gpio@9ffff004").expect("a register");
        assert_eq!(register.numbers("reg"), [0, 0x9fff_f004, 0, 4]);
        let handles = register.numbers("phandle");
        assert_eq!(root.child("switch1-1").expect("a switch").numbers("select-gpios"), [handles[0], 0, 0]);
        assert_eq!(chromebook().files(), [(RATE_LIMIT.to_string(), "1000".to_string())]);
    }

    #[test]
    fn machines_that_are_no_boards_are_told_why() {
        let why = |name: &str| {
            let machine = Machine::preset(name).expect("a machine");
            Board::new(machine).expect_err("no board").problem
        };
        assert!(why("vm40").ends_with("it is of x86, and boards are of arm64"), "{}", why("vm40"));
        assert!(why("chromebook8-fit").contains("idle states"), "{}", why("chromebook8-fit"));
        let mut short = plain(4);
        let error = chromebook().describe(&mut short).expect_err("four CPUs");
        assert!(error.problem.contains("'virt'"), "{error}");
    }
}
