//! The red-black tree in which the waiting entities of a queue hang (`tasks_timeline`), as far as something comes of its shape.
//!
//! Each node knows something of itself and of those below it: the least vruntime or deadline, and requests. What it knows is
//! computed when the kernel computes it, and handed on when and as far as the kernel hands it on. So it may be of before.
//!
//! Must not know: the order of the entities, which is the time line's; what is asked of the tree.

use crate::ids::SeId;
use crate::vruntime::Vruntime;

/// Names a node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// No node.
pub(crate) const NO_NODE: NodeId = NodeId(u32::MAX);

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// What nodes know of those below them, beside the key by which the tree is a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AugmentedFields {
    /// The key is the deadline, where entities stand by vruntime; else it is the vruntime.
    pub heap_of_deadlines: bool,
    /// The least request (`min_slice`).
    pub least_request: bool,
    /// The largest request (`max_slice`).
    pub largest_request: bool,
    /// A node that takes another's place takes over the requests as well.
    pub copies_requests: bool,
    /// A new leaf's largest request is its own, not what it last knew.
    pub leaf_has_own: bool,
}

/// What a node knows of itself and those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Augmented {
    /// The earliest key (`min_vruntime`, `min_deadline`).
    pub earliest: Vruntime,
    /// ns; 0 where the tree does not keep it.
    pub min_slice: u64,
    /// The same.
    pub max_slice: u64,
}

/// An entity in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeEntity {
    pub se: SeId,
    pub vruntime: Vruntime,
    pub deadline: Vruntime,
    /// Its request, ns.
    pub slice: u64,
    /// The largest request that it knew of when it last hung in a tree, ns.
    pub max_slice: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: NodeId,
    children: [NodeId; 2],
    red: bool,
    own: TreeEntity,
    below: Augmented,
}

/// The tree of one queue. Kernel: lib/rbtree.c, include/linux/rbtree_augmented.h.
#[derive(Clone, Debug)]
pub(crate) struct RbTree {
    fields: AugmentedFields,
    root: NodeId,
    nodes: Vec<Node>,
    /// Places of nodes that were taken out.
    free: Vec<NodeId>,
}

impl RbTree {
    pub fn new(fields: AugmentedFields) -> RbTree {
        RbTree { fields, root: NO_NODE, nodes: Vec::new(), free: Vec::new() }
    }

    /// What its nodes know.
    pub fn fields(&self) -> AugmentedFields {
        self.fields
    }

    /// What the root knows, and so the tree; `None` if it is empty.
    pub fn whole(&self) -> Option<Augmented> {
        self.known(self.root).map(|root| root.below)
    }

    /// The topmost node.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The left child of a node, or none.
    pub fn left(&self, node: NodeId) -> NodeId {
        self.child(node, LEFT)
    }

    /// The right child of a node, or none.
    pub fn right(&self, node: NodeId) -> NodeId {
        self.child(node, RIGHT)
    }

    /// The entity at a node, and what the node knows; `None` if there is no node.
    pub fn at(&self, node: NodeId) -> Option<(&TreeEntity, &Augmented)> {
        self.known(node).map(|node| (&node.own, &node.below))
    }

    fn known(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(node.0 as usize)
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0 as usize]
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.0 as usize]
    }

    fn child(&self, node: NodeId, side: usize) -> NodeId {
        self.node(node).children[side]
    }

    /// Whether there is a red node; where there is none, it counts as black.
    fn is_red(&self, node: NodeId) -> bool {
        self.known(node).is_some_and(|node| node.red)
    }

    fn set_child(&mut self, node: NodeId, side: usize, child: NodeId) {
        self.node_mut(node).children[side] = child;
        if child != NO_NODE {
            self.node_mut(child).parent = node;
        }
    }

    /// Puts `new`, which may be none, where `old` hangs (`__rb_change_child()`).
    fn replace(&mut self, old: NodeId, new: NodeId) {
        let parent = self.node(old).parent;
        if parent == NO_NODE {
            self.root = new;
        } else {
            let side = if self.child(parent, LEFT) == old { LEFT } else { RIGHT };
            self.node_mut(parent).children[side] = new;
        }
        if new != NO_NODE {
            self.node_mut(new).parent = parent;
        }
    }
}

/// What nodes know of those below them (`min_vruntime_cb`, `min_deadline_cb`).
impl RbTree {
    fn key(&self, own: &TreeEntity) -> Vruntime {
        if self.fields.heap_of_deadlines { own.deadline } else { own.vruntime }
    }

    /// What a node knows of itself.
    fn own(&self, own: &TreeEntity) -> Augmented {
        Augmented {
            earliest: self.key(own),
            min_slice: if self.fields.least_request { own.slice } else { 0 },
            max_slice: if self.fields.largest_request { own.slice } else { 0 },
        }
    }

    /// What a node has to know, by what its children do.
    fn computed(&self, node: NodeId) -> Augmented {
        let Node { own, children, .. } = self.node(node);
        let mut known = self.own(own);
        for child in children.iter().filter_map(|&child| self.known(child)) {
            known.earliest = known.earliest.earliest(child.below.earliest);
            known.min_slice = known.min_slice.min(child.below.min_slice);
            known.max_slice = known.max_slice.max(child.below.max_slice);
        }
        known
    }

    /// A node looks at its children again. Returns whether it knows nothing new (`min_vruntime_update()`).
    fn update(&mut self, node: NodeId) -> bool {
        let known = self.computed(node);
        std::mem::replace(&mut self.node_mut(node).below, known) == known
    }

    /// Nodes from `node` up look again, up to the first that knows nothing new, or to `stop`.
    fn propagate(&mut self, mut node: NodeId, stop: NodeId) {
        while node != stop && node != NO_NODE && !self.update(node) {
            node = self.node(node).parent;
        }
    }

    /// `new` takes the place of `old`: the heap's key is handed on, and requests where the kernel does so.
    ///
    /// Kernel: `RB_DECLARE_CALLBACKS()`, whose one field is the key; `min_vruntime_copy()` from 51b0e68cfa0a.
    fn copy(&mut self, old: NodeId, new: NodeId) {
        let known = self.node(old).below;
        let copies = self.fields.copies_requests;
        let taking = &mut self.node_mut(new).below;
        match copies {
            true => *taking = known,
            false => taking.earliest = known.earliest,
        }
    }

    /// An entity that hangs here has another deadline.
    pub fn set_deadline(&mut self, node: NodeId, deadline: Vruntime) {
        self.node_mut(node).own.deadline = deadline;
        self.propagate(node, NO_NODE);
    }

    /// An entity that hangs here asks for another request from now on.
    pub fn set_slice(&mut self, node: NodeId, slice: u64) {
        self.node_mut(node).own.slice = slice;
        self.propagate(node, NO_NODE);
    }
}

/// Nodes come and go.
impl RbTree {
    /// Hangs an entity between those that stand beside it in the tree's order.
    ///
    /// Kernel: `rb_add_augmented_cached()`. The walk down from the root ends where the one before has nothing at its right, or else
    /// at the left of the one behind.
    pub fn insert(&mut self, own: TreeEntity, before: Option<NodeId>, behind: Option<NodeId>) -> NodeId {
        let mut below = self.own(&own);
        if self.fields.largest_request && !self.fields.leaf_has_own {
            below.max_slice = own.max_slice;
        }
        let node = Node { parent: NO_NODE, children: [NO_NODE; 2], red: true, own, below };
        let id = self.place(node);
        let place = before.filter(|&before| self.right(before) == NO_NODE).map(|before| (before, RIGHT));
        match place.or(behind.map(|behind| (behind, LEFT))) {
            None => self.root = id,
            Some((parent, side)) => {
                debug_assert!(self.child(parent, side) == NO_NODE, "a leaf hangs where nothing does");
                self.set_child(parent, side, id);
                self.propagate(parent, NO_NODE);
            }
        }
        self.color_after_insert(id);
        id
    }

    fn place(&mut self, node: Node) -> NodeId {
        match self.free.pop() {
            Some(id) => {
                *self.node_mut(id) = node;
                id
            }
            None => {
                self.nodes.push(node);
                NodeId(self.nodes.len() as u32 - 1)
            }
        }
    }

    /// Takes a node out. Returns the largest request that it knew of.
    ///
    /// Kernel: `rb_erase_augmented_cached()`, `__rb_erase_augmented()`.
    pub fn erase(&mut self, node: NodeId) -> u64 {
        let Node { children: [left, right], red, below, .. } = *self.node(node);
        let (changed, rebalance) = match left == NO_NODE || right == NO_NODE {
            true => self.erase_with_one_child(node, red, if left == NO_NODE { right } else { left }),
            false => self.erase_with_two_children(node),
        };
        self.propagate(changed, NO_NODE);
        if rebalance != NO_NODE {
            self.color_after_erase(rebalance);
        }
        self.free.push(node);
        below.max_slice
    }

    /// Returns the lowest node whose children have changed, and the one below which a black node is missing.
    fn erase_with_one_child(&mut self, node: NodeId, red: bool, child: NodeId) -> (NodeId, NodeId) {
        let parent = self.node(node).parent;
        self.replace(node, child);
        if child != NO_NODE {
            // It can only be red, and hangs under a black one.
            self.node_mut(child).red = red;
            return (parent, NO_NODE);
        }
        (parent, if red { NO_NODE } else { parent })
    }

    /// The same where the next in order takes the node's place.
    fn erase_with_two_children(&mut self, node: NodeId) -> (NodeId, NodeId) {
        let Node { children: [left, right], red, .. } = *self.node(node);
        let (mut successor, mut parent) = (right, right);
        while self.left(successor) != NO_NODE {
            (parent, successor) = (successor, self.left(successor));
        }
        let orphan = self.right(successor);
        if successor == right {
            self.copy(node, successor);
        } else {
            self.set_child(parent, LEFT, orphan);
            self.set_child(successor, RIGHT, right);
            self.copy(node, successor);
            self.propagate(parent, successor);
        }
        self.set_child(successor, LEFT, left);
        self.replace(node, successor);
        let was_red = std::mem::replace(&mut self.node_mut(successor).red, red);
        if orphan != NO_NODE {
            self.node_mut(orphan).red = false;
            return (successor, NO_NODE);
        }
        (successor, if was_red { NO_NODE } else { parent })
    }
}

/// Turns, and colours.
impl RbTree {
    /// Turns a node down to a side; its child of the other side takes its place (`augment_rotate()`).
    fn rotate(&mut self, old: NodeId, side: usize) {
        let new = self.child(old, 1 - side);
        self.set_child(old, 1 - side, self.child(new, side));
        self.replace(old, new);
        self.set_child(new, side, old);
        self.copy(old, new);
        self.update(old);
    }

    /// No red node hangs under a red one again. Kernel: `__rb_insert()`.
    fn color_after_insert(&mut self, mut node: NodeId) {
        loop {
            let parent = self.node(node).parent;
            if parent == NO_NODE {
                self.node_mut(node).red = false;
                return;
            }
            if !self.is_red(parent) {
                return;
            }
            let grandparent = self.node(parent).parent;
            let side = if self.child(grandparent, LEFT) == parent { LEFT } else { RIGHT };
            let uncle = self.child(grandparent, 1 - side);
            if !self.is_red(uncle) {
                return self.turn_after_insert((grandparent, parent, node), side);
            }
            self.node_mut(uncle).red = false;
            self.node_mut(parent).red = false;
            self.node_mut(grandparent).red = true;
            node = grandparent;
        }
    }

    fn turn_after_insert(&mut self, (grandparent, parent, node): (NodeId, NodeId, NodeId), side: usize) {
        let mut top = parent;
        if self.child(parent, 1 - side) == node {
            self.rotate(parent, side);
            top = node;
        }
        self.rotate(grandparent, 1 - side);
        self.node_mut(top).red = false;
        self.node_mut(grandparent).red = true;
    }

    /// All ways down pass as many black nodes again, after one is missing below `parent`. Kernel: `____rb_erase_color()`.
    fn color_after_erase(&mut self, mut parent: NodeId) {
        let mut node = NO_NODE;
        loop {
            let side = if self.child(parent, RIGHT) != node { LEFT } else { RIGHT };
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.rotate(parent, side);
                self.node_mut(sibling).red = false;
                self.node_mut(parent).red = true;
                sibling = self.child(parent, 1 - side);
            }
            let [near, far] = [side, 1 - side].map(|side| self.child(sibling, side));
            if self.is_red(near) || self.is_red(far) {
                return self.turn_after_erase(parent, sibling, side);
            }
            self.node_mut(sibling).red = true;
            let was_red = std::mem::replace(&mut self.node_mut(parent).red, false);
            (node, parent) = (parent, self.node(parent).parent);
            if was_red || parent == NO_NODE {
                return;
            }
        }
    }

    fn turn_after_erase(&mut self, parent: NodeId, mut sibling: NodeId, side: usize) {
        let near = self.child(sibling, side);
        if !self.is_red(self.child(sibling, 1 - side)) {
            self.rotate(sibling, 1 - side);
            sibling = near;
        }
        let far = self.child(sibling, 1 - side);
        let red = self.is_red(parent);
        self.rotate(parent, side);
        self.node_mut(sibling).red = red;
        self.node_mut(parent).red = false;
        self.node_mut(far).red = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT_IN_ALL: AugmentedFields = AugmentedFields {
        heap_of_deadlines: false,
        least_request: true,
        largest_request: true,
        copies_requests: true,
        leaf_has_own: true,
    };

    /// A tree beside the list of those in it, in order.
    struct TreeAndList {
        tree: RbTree,
        list: Vec<(u64, NodeId)>,
    }

    impl TreeAndList {
        fn new(fields: AugmentedFields) -> TreeAndList {
            TreeAndList { tree: RbTree::new(fields), list: Vec::new() }
        }

        fn insert(&mut self, place: u64, slice: u64) -> NodeId {
            let at = self.list.partition_point(|(other, _)| *other <= place);
            let node_at = |at: Option<usize>| at.and_then(|at| self.list.get(at)).map(|(_, node)| *node);
            let (before, behind) = (node_at(at.checked_sub(1)), node_at(Some(at)));
            let own = TreeEntity {
                se: SeId(place as u32),
                vruntime: Vruntime(1000 - place),
                deadline: Vruntime(place),
                slice,
                max_slice: 0,
            };
            let node = self.tree.insert(own, before, behind);
            self.list.insert(at, (place, node));
            node
        }

        fn erase(&mut self, at: usize) -> u64 {
            let (_, node) = self.list.remove(at);
            self.tree.erase(node)
        }

        /// The tree's shape, with the place of each node and `r` for red.
        fn shape(&self) -> String {
            self.shape_below(self.tree.root)
        }

        fn shape_below(&self, node: NodeId) -> String {
            let Some(known) = self.tree.known(node) else { return String::new() };
            let own = format!("{}{}", known.own.se.0, if known.red { "r" } else { "" });
            match known.children.map(|child| self.shape_below(child)) {
                [left, right] if left.is_empty() && right.is_empty() => own,
                [left, right] => format!("({left} {own} {right})"),
            }
        }

        /// How many black nodes are on each way down from a node; fails where ways differ or a red one hangs under a red one.
        fn black_height(&self, node: NodeId) -> usize {
            let Some(known) = self.tree.known(node) else { return 0 };
            let heights = known.children.map(|child| self.black_height(child));
            assert_eq!(heights[0], heights[1], "{}", self.shape());
            for child in known.children {
                assert!(!(known.red && self.tree.is_red(child)), "{}", self.shape());
                assert!(self.tree.known(child).is_none_or(|child| child.parent == node));
            }
            heights[0] + usize::from(!known.red)
        }
    }

    #[test]
    fn shapes_are_those_of_the_kernels_tree() {
        let mut tree = TreeAndList::new(RIGHT_IN_ALL);
        for place in 1..=3 {
            tree.insert(place, 1);
        }
        assert_eq!(tree.shape(), "(1r 2 3r)", "a turn at the first");
        for place in 4..=6 {
            tree.insert(place, 1);
        }
        assert_eq!(tree.shape(), "(1 2 (3 4r ( 5 6r)))", "a turn at the fifth, new colours at the sixth");
        tree.erase(1);
        assert_eq!(tree.shape(), "(1 3 (4 5r 6))", "the next in order, whose brother is turned");
    }

    #[test]
    fn trees_stay_balanced_and_know_who_is_in_them() {
        let mut tree = TreeAndList::new(RIGHT_IN_ALL);
        let mut random = 12345_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for step in 0..4000 {
            if step % 200 < 120 || tree.list.is_empty() {
                tree.insert(next(900), 1 + next(50));
            } else {
                tree.erase(next(tree.list.len() as u64) as usize);
            }
            tree.black_height(tree.tree.root);
            let owns = tree.list.iter().map(|(_, node)| tree.tree.node(*node).own).collect::<Vec<_>>();
            let expected = owns.iter().map(|own| own.slice).min().zip(owns.iter().map(|own| own.slice).max());
            let found = tree.tree.whole().map(|whole| (whole.min_slice, whole.max_slice));
            assert_eq!(found, expected, "step {step}");
            let earliest = owns.iter().map(|own| own.vruntime).reduce(Vruntime::earliest);
            assert_eq!(tree.tree.whole().map(|whole| whole.earliest), earliest);
        }
    }

    /// A turn hands on the least vruntime alone, so that whoever comes to the top knows of its own request: a shorter one is
    /// forgotten, until something below changes what is seen from there up.
    #[test]
    fn a_turn_forgets_requests_unless_all_is_handed_on() {
        for (copies_requests, least) in [(false, 5), (true, 1)] {
            let mut tree = TreeAndList::new(AugmentedFields { copies_requests, ..RIGHT_IN_ALL });
            tree.insert(1, 1);
            tree.insert(2, 5);
            tree.insert(3, 5);
            assert_eq!(tree.shape(), "(1r 2 3r)");
            assert_eq!(tree.tree.whole().map(|whole| whole.min_slice), Some(least));
            tree.insert(4, 3);
            assert_eq!(
                tree.tree.whole().map(|whole| whole.min_slice),
                Some(1),
                "one came, and the root looks again"
            );
        }
    }

    /// Up to v7.2.6 a leaf knows the largest request that it last knew of, until it has something below it.
    #[test]
    fn a_leaf_may_know_the_largest_request_of_before() {
        for (leaf_has_own, largest) in [(false, 0), (true, 7)] {
            let mut tree = TreeAndList::new(AugmentedFields { leaf_has_own, ..RIGHT_IN_ALL });
            let node = tree.insert(1, 7);
            assert_eq!(tree.tree.whole().map(|whole| whole.max_slice), Some(largest));
            tree.tree.set_slice(node, 7);
            assert_eq!(tree.tree.whole().map(|whole| whole.max_slice), Some(7));
            tree.insert(2, 6);
            assert_eq!(tree.erase(0), 7);
        }
    }
}
