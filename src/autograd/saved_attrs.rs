//! The saved attributes of a node (`_saved_*`), under PyTorch's names; an op declares those that do not follow from its
//! formula.
//!
//! `self`, `other`: an argument that a formula reads, unpacked. `result`, or the name of a result: an output that a
//! formula reads. `dim`, `alpha`: a non-tensor argument. `self_sym_sizes`, `self_sym_numel`: metadata of a tensor
//! argument, if the op declares it.

use super::Node;
use super::node::{Unpacked, Work};
use super::saved::SavedHooks;
use super::saved_args::Place as Kept;
use crate::error::Result;
use crate::op::gradient::Saves;
use crate::op::{Kind, OUT0, Op, Returns, Value};
use std::sync::Arc;

/// Where the value of an attribute is found.
#[derive(Clone, Copy)]
enum Place {
    Input(usize),
    Output(usize),
    Plain(usize),
    Sizes(usize),
    Numel(usize),
    /// One size, along a dimension that may be negative: of a tensor argument, of a result.
    Size(usize, isize),
    ResultSize(usize, isize),
    /// A name that PyTorch's node has without a value here.
    Nothing,
}

/// Everything that the op's formulas read.
fn saves(op: &Op) -> Saves {
    op.vjp.saves(|_| true)
}

fn output_names(op: &'static Op) -> Vec<String> {
    match op.sig.returns {
        Returns::One => vec!["result".into()],
        Returns::Named => op.sig.result_names().map(String::from).collect(),
        Returns::Many => Vec::new(),
    }
}

fn place(op: &'static Op, name: &str) -> Option<Place> {
    if name == "None" {
        return Some(Place::Nothing);
    }
    if let Some(i) = output_names(op).iter().position(|n| n == name)
        && saves(op) & (OUT0 << i) != 0
    {
        return Some(Place::Output(i));
    }
    // PyTorch's name of one of several results.
    if op.sig.returns == Returns::Many
        && let Some(i) = name.strip_prefix("result").and_then(|n| n.parse::<usize>().ok()).filter(|&i| i < 16)
        && saves(op) & (OUT0 << i) != 0
    {
        return Some(Place::Output(i));
    }
    let s = &op.sig;
    if let Some(i) = s.index_of(name) {
        let read = i < 16 && saves(op) & (1 << i) != 0;
        return match s.params()[i].kind.holds_tensors() {
            true => read.then_some(Place::Input(i)),
            false => Some(Place::Plain(i)),
        };
    }
    let tensor = |n: &str| s.index_of(n).filter(|&i| s.params()[i].kind.holds_tensors());
    if let Some((of, dim)) = name.split_once("_sym_argsize_") {
        let dim = dim.replace("minus_", "-").parse().ok()?;
        let result = || output_names(op).iter().position(|n| n == of);
        return tensor(of).map(|i| Place::Size(i, dim)).or_else(|| result().map(|i| Place::ResultSize(i, dim)));
    }
    let sizes = name.strip_suffix("_sym_sizes").and_then(tensor).map(Place::Sizes);
    sizes.or_else(|| name.strip_suffix("_sym_numel").and_then(tensor).map(Place::Numel))
}

/// The attribute names of the op's nodes, and where each value is found.
fn shown(op: &'static Op) -> Vec<(String, Place)> {
    let named = |name: &str, of: &str| place(op, of).map(|p| (name.to_string(), p));
    if let Some(list) = op.keeps {
        let split = |entry: &'static str| entry.split_once('=').unwrap_or((entry, entry));
        return list.split_whitespace().map(split).filter_map(|(name, of)| named(name, of)).collect();
    }
    let about_making = |k: Kind| matches!(k, Kind::DType | Kind::Device | Kind::Format | Kind::Generator);
    let params = op.sig.params().iter().enumerate().filter(|(_, p)| !about_making(p.kind));
    // PyTorch's nodes call it `self` where its functions say otherwise.
    let own = params
        .map(|(i, p)| (i, p.name(&op.sig)))
        .map(|(i, name)| if i == 0 && matches!(name, "input" | "x") { ("self", name) } else { (name, name) });
    let mut all: Vec<_> = own.filter_map(|(name, of)| named(name, of)).collect();
    all.extend(output_names(op).iter().filter_map(|n| named(n, n)));
    all
}

fn find(op: &'static Op, name: &str) -> Option<Place> {
    shown(op).into_iter().find(|(n, _)| n == name).map(|(_, p)| p)
}

fn size(shape: &[usize], dim: isize) -> Value<'static> {
    let at = if dim < 0 { shape.len().checked_add_signed(dim) } else { Some(dim as usize) };
    at.and_then(|i| shape.get(i)).map_or(Value::None, |&n| Value::from(n))
}

impl Node {
    /// The names of the saved attributes.
    pub fn kept_names(&self) -> Vec<String> {
        let Work::Op { op, .. } = &self.work else { return Vec::new() };
        let mut names: Vec<String> = shown(op).into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether the attribute is a tensor: an argument or a result.
    pub fn keeps_tensor(&self, name: &str) -> bool {
        let Work::Op { op, .. } = &self.work else { return false };
        matches!(find(op, name), Some(Place::Input(_) | Place::Output(_)))
    }

    /// The value of an attribute; `Value::None` if the gradients needed did not require saving it.
    pub fn kept(self: &Arc<Node>, name: &str) -> Result<Option<Value<'static>>> {
        let Work::Op { op, state } = &self.work else { return Ok(None) };
        let Some(place) = find(op, name) else { return Ok(None) };
        let Unpacked { args, outputs, metas } = self.unpack(op, state, self)?;
        let sizes = |i: usize| metas.iter().find(|(a, _)| *a == i).map(|(_, f)| f.shape.clone()).unwrap_or_default();
        Ok(Some(match place {
            Place::Input(i) | Place::Plain(i) => args[i].clone(),
            Place::Output(i) => outputs[i].clone().map_or(Value::None, Value::Owned),
            Place::Sizes(i) => Value::Ints(sizes(i).iter().map(|&d| d as i64).collect()),
            Place::Numel(i) => Value::from(sizes(i).iter().product::<usize>()),
            Place::Size(i, dim) => size(&sizes(i), dim),
            Place::ResultSize(i, dim) => size(&self.outputs[i].shape, dim),
            Place::Nothing => Value::None,
        }))
    }

    /// Packs an already saved tensor by hooks. `None`: there is no such tensor.
    pub fn repack(self: &Arc<Node>, name: &str, hooks: &SavedHooks) -> Result<Option<()>> {
        let Work::Op { op, state } = &self.work else { return Ok(None) };
        let mut guard = state.lock().unwrap_or_else(|e| e.into_inner());
        let Some(kept) = &mut *guard else { return Err(super::saved::freed_hooks()) };
        let at = match find(op, name) {
            Some(Place::Input(i)) => Kept::Input(i as u32),
            Some(Place::Output(i)) => Kept::Output(i as u32),
            _ => return Ok(None),
        };
        let found = kept.tensors.iter_mut().find(|(p, _)| *p == at);
        found.map(|(_, saved)| saved.repack(hooks, &self.outputs)).transpose()
    }
}
