//! The backward engine: nodes in topological order, without recursion.

use super::node::{Edge, Grads, Node};
use super::{anomaly, mode};
use crate::Tensor;
use crate::hash::QuickHasher;
use flambeau_base::{Error, Result, show};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

/// How backward runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardOptions {
    /// Keep what nodes saved, for another backward.
    pub retain_graph: bool,
    /// Record backward itself, so that it can be differentiated.
    pub create_graph: bool,
}

type Map<V> = HashMap<*const Node, V, BuildHasherDefault<QuickHasher>>;
type Set = HashSet<*const Node, BuildHasherDefault<QuickHasher>>;

/// A node that is ready to run; the one recorded last comes first.
struct Ready(Arc<Node>);

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.sequence().cmp(&other.0.sequence())
    }
}

/// What one backward keeps of a node on its way.
#[derive(Default)]
struct Pending {
    waits_for: usize,
    grads: Grads,
}

struct Run<'a> {
    pending: Map<Pending>,
    ready: BinaryHeap<Ready>,
    /// Gradients asked for instead of accumulated, by node and output.
    wanted: Map<Vec<(u32, usize)>>,
    /// Nodes that lead to what is wanted; all of them when gradients are accumulated.
    useful: Option<Set>,
    captured: Vec<Option<Tensor>>,
    options: &'a BackwardOptions,
}

/// Runs backward from `roots` with their gradients.
///
/// With `inputs`, gives the gradients that reach these edges and accumulates nothing else; without,
/// gradients are added to the leaves' `grad`.
pub(crate) fn run(roots: Vec<(Edge, Tensor)>, inputs: Option<&[Edge]>, options: &BackwardOptions) -> Result<Vec<Option<Tensor>>> {
    let _mode = mode_for(options);
    let mut run = Run {
        pending: Map::default(),
        ready: BinaryHeap::new(),
        wanted: Map::default(),
        useful: None,
        captured: vec![None; inputs.map_or(0, |i| i.len())],
        options,
    };
    for (place, edge) in inputs.unwrap_or_default().iter().enumerate() {
        run.wanted.entry(Arc::as_ptr(&edge.node)).or_default().push((edge.output, place));
    }
    let mut reached = run.count(&roots);
    if inputs.is_some() {
        run.find_useful(&roots);
        reached.retain(|node| run.useful.as_ref().is_none_or(|u| u.contains(node)));
    }
    let _running = Running::enter(reached);
    let mut started: Vec<Arc<Node>> = Vec::new();
    for (edge, grad) in roots {
        if !started.iter().any(|n| Arc::ptr_eq(n, &edge.node)) {
            started.push(edge.node.clone());
        }
        run.add(&edge, grad)?;
    }
    for node in started {
        if run.pending.get(&Arc::as_ptr(&node)).is_some_and(|p| p.waits_for == 0) {
            run.ready.push(Ready(node));
        }
    }
    while let Some(Ready(node)) = run.ready.pop() {
        if let Err(error) = run.step(&node) {
            if anomaly::is_anomaly() {
                anomaly::failed(&node);
            }
            return Err(error);
        }
    }
    Ok(run.captured)
}

thread_local! {
    /// The nodes that each backward of this thread passes; the innermost is last.
    static RUNNING: RefCell<Vec<Set>> = const { RefCell::new(Vec::new()) };
}

struct Running;

impl Running {
    fn enter(nodes: Set) -> Running {
        RUNNING.with_borrow_mut(|r| r.push(nodes));
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|r| r.pop());
    }
}

/// Whether the backward that runs in this thread passes a node.
pub fn will_run(node: &Arc<Node>) -> bool {
    RUNNING.with_borrow(|r| r.last().is_some_and(|nodes| nodes.contains(&Arc::as_ptr(node))))
}

fn mode_for(options: &BackwardOptions) -> mode::ModeGuard {
    if options.create_graph { mode::enable_grad() } else { mode::no_grad() }
}

impl Run<'_> {
    /// Counts, for each node that can be reached, how many edges lead to it.
    fn count(&mut self, roots: &[(Edge, Tensor)]) -> Set {
        let mut seen = Set::default();
        let mut stack: Vec<&Arc<Node>> = roots.iter().map(|(e, _)| &e.node).collect();
        while let Some(node) = stack.pop() {
            if !seen.insert(Arc::as_ptr(node)) {
                continue;
            }
            for edge in node.next_edges().iter().flatten() {
                self.pending.entry(Arc::as_ptr(&edge.node)).or_default().waits_for += 1;
                stack.push(&edge.node);
            }
        }
        seen
    }

    /// Marks the nodes from which a wanted edge can be reached.
    fn find_useful(&mut self, roots: &[(Edge, Tensor)]) {
        let mut useful = Set::default();
        let mut seen = Set::default();
        // Each node twice: on the way down (children pushed) and on the way up (children known).
        let mut stack: Vec<(&Arc<Node>, bool)> = roots.iter().map(|(e, _)| (&e.node, false)).collect();
        while let Some((node, children_done)) = stack.pop() {
            let key = Arc::as_ptr(node);
            if children_done {
                let leads = node.next_edges().iter().flatten().any(|e| useful.contains(&Arc::as_ptr(&e.node)));
                if leads || self.wanted.contains_key(&key) {
                    useful.insert(key);
                }
            } else if seen.insert(key) {
                stack.push((node, true));
                stack.extend(node.next_edges().iter().flatten().map(|e| (&e.node, false)));
            }
        }
        self.useful = Some(useful);
    }

    /// Adds a gradient to those that wait at an edge's end.
    fn add(&mut self, edge: &Edge, grad: Tensor) -> Result<()> {
        let pending = self.pending.entry(Arc::as_ptr(&edge.node)).or_default();
        let at = edge.output as usize;
        if pending.grads.len() <= at {
            pending.grads.resize(edge.node.output_infos().len().max(at + 1), None);
        }
        let slot = &mut pending.grads[at];
        *slot = Some(match slot.take() {
            None => grad,
            // A sum that this run made and nobody else holds may be added to in place.
            Some(old) if !self.options.create_graph && may_add_to(&old, &grad) => {
                old.add_(&grad)?;
                old
            }
            Some(old) => old.add(&grad)?,
        });
        Ok(())
    }

    fn step(&mut self, node: &Arc<Node>) -> Result<()> {
        let key = Arc::as_ptr(node);
        let mut grads = self.pending.remove(&key).map(|p| p.grads).unwrap_or_default();
        grads.resize(node.output_infos().len(), None);
        let useful = self.useful.as_ref().is_none_or(|u| u.contains(&key));
        let mut produced = Grads::new();
        if useful && grads.iter().any(|g| g.is_some()) {
            super::run_hooks::before(node, &mut grads)?;
            if let Some(wanted) = self.wanted.get(&key) {
                for &(output, place) in wanted {
                    self.captured[place] = grads.get(output as usize).cloned().flatten();
                }
            }
            let goes_on = match &self.useful {
                None => true,
                Some(useful) => node.next_edges().iter().flatten().any(|e| useful.contains(&Arc::as_ptr(&e.node))),
            };
            if goes_on {
                produced = if anomaly::is_anomaly() { watched(node, grads)? } else { super::run_hooks::around(node, grads)? };
                if !self.options.retain_graph {
                    node.release();
                }
            }
        }
        self.hand_on(node, produced)
    }

    /// Gives what a node made to the nodes behind it, and starts those that wait for nothing more.
    fn hand_on(&mut self, node: &Arc<Node>, mut produced: Grads) -> Result<()> {
        for (i, edge) in node.next_edges().iter().enumerate() {
            let Some(edge) = edge else { continue };
            if let Some(grad) = produced.get_mut(i).and_then(|g| g.take()) {
                let grad = fit(node, i, edge, grad)?;
                self.add(edge, grad)?;
            }
            let pending = self.pending.entry(Arc::as_ptr(&edge.node)).or_default();
            pending.waits_for -= 1;
            if pending.waits_for == 0 {
                self.ready.push(Ready(edge.node.clone()));
            }
        }
        Ok(())
    }
}

/// Runs a node in anomaly mode.
#[cold]
fn watched(node: &Arc<Node>, grads: Grads) -> Result<Grads> {
    let _during = anomaly::During::enter(node);
    let made = super::run_hooks::around(node, grads)?;
    anomaly::check_nan(node, &made)?;
    Ok(made)
}

/// Whether `old` is a plain sum of our own that may be changed.
fn may_add_to(old: &Tensor, grad: &Tensor) -> bool {
    old.is_unique()
        && old.storage().holders() == 1
        && old.object().is_none()
        && !old.layout().has_overlap()
        && old.dtype() == grad.dtype()
        && old.shape() == grad.shape()
        && !old.storage().is_read_only()
}

/// Checks a gradient against what the forward pass had there; sums over dimensions that were broadcast.
pub(crate) fn fit(node: &Arc<Node>, i: usize, edge: &Edge, grad: Tensor) -> Result<Tensor> {
    let Some(info) = edge.node.output_infos().get(edge.output as usize) else { return Ok(grad) };
    let mut grad = grad;
    if grad.shape() != &info.sizes[..] {
        if !crate::ops::expandable(&info.sizes, grad.shape()) {
            return Err(Error::runtime(format!(
                "Function {} returned an invalid gradient at index {i} - got {} but expected shape compatible with {}",
                node.name(),
                show(grad.shape()),
                show(&info.sizes)
            )));
        }
        grad = grad.sum_to(&info.sizes)?;
    }
    if grad.dtype() != info.dtype {
        // A complex gradient of a real tensor loses its imaginary part.
        grad = grad.to_dtype(info.dtype)?;
    }
    Ok(grad)
}
