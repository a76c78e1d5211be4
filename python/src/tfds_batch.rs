//! Batches of `tfseek.tfds` as nested dicts.

use crate::hooks;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeSet;
use tfseek_tfds::{Decoder, LeafClass, LeafFeature, Node};

/// The dicts around the columns of batches. Columns of other names keep them.
#[derive(Default)]
pub(crate) struct Nesting {
    columns: Vec<NestedColumn>,
    /// Columns that are part of the stored form of others.
    hidden: BTreeSet<String>,
}

/// A column in dicts.
#[derive(PartialEq, Eq)]
struct NestedColumn {
    path: String,
    /// The names of the dicts, and the name of the feature in the last one.
    keys: Vec<String>,
    /// Sizes of an array up to its last open one, if a row is an array of its own and not part of a ragged
    /// column.
    sizes: Vec<Option<usize>>,
    /// The column with the stored shapes of the arrays.
    shapes: Option<String>,
}

impl Nesting {
    /// Adds the columns of a data set. Returns the path of a column that another one has in other dicts.
    pub(crate) fn add(&mut self, decoder: &Decoder) -> Option<String> {
        let mut columns = Vec::new();
        collect(decoder, decoder.root(), &mut Vec::new(), &mut columns);
        let is_leaf = |name: &&String| columns.iter().any(|column| column.path == **name);
        self.hidden.extend(decoder.schema().features().keys().filter(|name| !is_leaf(name)).cloned());
        for column in columns {
            match self.columns.iter().find(|known| known.path == column.path) {
                Some(known) if *known != column => return Some(column.path),
                Some(_) => {}
                None => self.columns.push(column),
            }
        }
        None
    }

    /// Returns the paths of the columns, and the names at the top.
    pub(crate) fn names(&self) -> Vec<String> {
        let paths = self.columns.iter().map(|column| column.path.clone());
        let top = self.columns.iter().filter_map(|column| column.keys.first().cloned());
        paths.chain(top).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the columns of a batch as nested dicts.
    pub(crate) fn nested<'py>(
        &self,
        py: Python<'py>,
        flat: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let nested = PyDict::new(py);
        for NestedColumn { path, keys, sizes, shapes } in &self.columns {
            let Some(mut column) = flat.get_item(path)? else { continue };
            flat.del_item(path)?;
            if !sizes.is_empty() {
                let shapes = shapes.as_ref().map(|name| flat.get_item(name)).transpose()?.flatten();
                column = hooks::pictures(py)?.call1((column, PyTuple::new(py, sizes)?, shapes))?;
            }
            let Some((last, outer)) = keys.split_last() else { continue };
            let mut dict = nested.clone();
            for name in outer {
                dict = match dict.get_item(name)? {
                    Some(inner) => inner.cast_into()?,
                    None => {
                        let inner = PyDict::new(py);
                        dict.set_item(name, &inner)?;
                        inner
                    }
                };
            }
            dict.set_item(last, column)?;
        }
        // Columns of other sources of a mix.
        for (name, column) in flat.iter() {
            if !self.hidden.contains(&name.extract::<String>()?) {
                nested.set_item(name, column)?;
            }
        }
        Ok(nested)
    }
}

/// Collects the columns below a node.
fn collect(decoder: &Decoder, node: &Node, keys: &mut Vec<String>, found: &mut Vec<NestedColumn>) {
    match node {
        Node::Dict(nodes) => {
            for (name, node) in nodes {
                keys.push(name.to_string());
                collect(decoder, node, keys, found);
                keys.pop();
            }
        }
        Node::Leaf(number) => {
            if let Some((path, feature)) = decoder.leaf(*number) {
                let shapes = decoder.column(*number).and_then(|column| column.shapes).map(String::from);
                let path = path.to_owned();
                let keys = keys.clone();
                found.push(NestedColumn { path, keys, sizes: sizes(feature), shapes });
            }
        }
        // A batch has no steps.
        _ => {}
    }
}

/// Returns the sizes of an array up to its last open one, if the arrays of a column may differ in several
/// dimensions, or are pictures of any size.
fn sizes(feature: &LeafFeature) -> Vec<Option<usize>> {
    let open = feature.shape.iter().filter(|size| size.is_none()).count();
    let is_picture = matches!(feature.class, LeafClass::Image(_) | LeafClass::Video);
    match feature.shape.iter().rposition(Option::is_none) {
        Some(last) if open > 1 || is_picture => feature.shape.iter().take(last + 1).copied().collect(),
        _ => Vec::new(),
    }
}
