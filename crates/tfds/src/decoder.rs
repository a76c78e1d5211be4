//! `Decoder`: compiled features.

use crate::array::NumberPools;
use crate::columns::Columns;
use crate::compile::{DecodeOptions, DecodePlan, Item, LeafColumn, Node};
use crate::error::{Result, refused_option};
use crate::feature::{Features, LeafFeature};
use crate::parts::DecoderParts;
use crate::pixels::PictureDecoders;
use crate::record::Record;
use std::fmt;
use std::sync::Arc;
use tfseek::BatchParser;
use tfseek::batch::Row;
use tfseek::schema::Schema;

/// The features of a data set, compiled once: for records one by one, and for batches.
///
/// A clone shares everything, and can be used by any number of threads.
#[derive(Clone)]
pub struct Decoder(Arc<DecoderParts>);

impl Decoder {
    /// Compiles features.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Features`](crate::TfdsErrorKind::Features) for features that cannot be read, and
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) for paths that are no features.
    pub fn new(features: &Features, options: &DecodeOptions) -> Result<Decoder> {
        let plan = DecodePlan::new(features, options)?;
        let renamed = plan.renamed.iter().map(|(key, name)| (key.as_str(), name.as_str()));
        let records = BatchParser::new(&plan.schema).presence(plan.missing_none).rename(renamed)?;
        Ok(Decoder(Arc::new(DecoderParts {
            plan,
            records,
            pools: NumberPools::default(),
            pictures: PictureDecoders::default(),
        })))
    }

    /// Returns the specs of the stored features, as they are in records.
    pub fn schema(&self) -> &Schema {
        &self.0.plan.schema
    }

    /// Returns the tree of the values of a record.
    pub fn root(&self) -> &Node {
        &self.0.plan.root
    }

    /// Returns the path and the feature of a leaf. The shape is an item's shape: without the sequences around
    /// it, and of a video without its frames.
    pub fn leaf(&self, number: usize) -> Option<(&str, &LeafFeature)> {
        self.0.plan.leaves.get(number).map(|leaf| (&*leaf.path, &leaf.feature))
    }

    /// Returns the form of the column of a leaf.
    pub fn column(&self, number: usize) -> Option<LeafColumn> {
        let plan = &self.0.plan;
        let leaf = plan.leaves.get(number)?;
        let lengths =
            leaf.levels.iter().map(|level| Some(usize::try_from(level.length?).unwrap_or(usize::MAX)));
        let shape = lengths.chain(leaf.shape().iter().copied()).collect();
        let shapes = match &leaf.item {
            Item::Shaped { shape, .. } => Some(shape.clone()),
            _ => None,
        };
        Some(LeafColumn { shape, nullable: plan.missing_none && leaf.may_be_none(), shapes })
    }

    /// Returns warnings about features whose values are not decoded.
    pub fn warnings(&self) -> &[String] {
        &self.0.plan.warnings
    }

    /// Reads a record: finds the stored values of all selected features in one pass. None is decoded yet.
    ///
    /// # Errors
    /// The first feature that is missing, of another kind, or has another number of values, with the location
    /// of the record.
    pub fn record<R: Row>(&self, row: &R) -> tfseek::Result<Record> {
        Record::read(&self.0, row)
    }

    /// Returns a parser for batches. Its columns have the paths of the features as names, and their decoded
    /// values.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) if a selected feature is of an unknown
    /// class, or in steps without [`DecodeOptions::batch_steps`].
    pub fn parser(&self) -> Result<BatchParser> {
        let plan = &self.0.plan;
        if let Some(leaf) = plan.steps().filter(|_| !plan.batch_steps) {
            let path = &leaf.path;
            return Err(refused_option(format!(
                "feature {path:?} has the steps of episodes, which batches of records do not have: choose other features"
            )));
        }
        if let Some(leaf) = plan.leaves.iter().find(|leaf| matches!(leaf.item, Item::Unknown)) {
            let path = &leaf.path;
            return Err(refused_option(format!(
                "feature {path:?} is of an unknown class: choose other features"
            )));
        }
        Ok(self.0.records.clone().decoder(Arc::new(Columns::new(&self.0))))
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoder").field(&self.0.plan).finish()
    }
}
