//! `Decoder`: compiled features.

use crate::array::Pools;
use crate::columns::Columns;
use crate::compile::{DecodeOptions, Plan};
use crate::error::{Result, TfdsErrorKind};
use crate::feature::Features;
use crate::pixels::PictureDecoders;
use std::fmt;
use std::sync::Arc;
use tfseek::schema::Schema;
use tfseek::BatchParser;

/// The features of a data set, compiled once: for records one by one, and for batches.
///
/// A clone shares everything, and can be used by any number of threads.
#[derive(Clone)]
pub struct Decoder(Arc<DecoderParts>);

pub(crate) struct DecoderParts {
    pub(crate) plan: Plan,
    /// Finds the stored values of single records.
    pub(crate) records: BatchParser,
    pub(crate) pools: Pools,
    pub(crate) pictures: PictureDecoders,
}

impl Decoder {
    /// Compiles features.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Features`] for features that cannot be read, and [`TfdsErrorKind::Options`] for paths that are no features.
    pub fn new(features: &Features, options: &DecodeOptions) -> Result<Decoder> {
        let plan = Plan::new(features, options)?;
        let renamed = plan.renamed.iter().map(|(key, name)| (key.as_str(), name.as_str()));
        let records = BatchParser::new(&plan.schema).presence(plan.missing_none).rename(renamed)?;
        Ok(Decoder(Arc::new(DecoderParts {
            plan,
            records,
            pools: Pools::default(),
            pictures: PictureDecoders::default(),
        })))
    }

    pub(crate) fn parts(&self) -> &Arc<DecoderParts> {
        &self.0
    }

    /// Returns the specs of the stored features, as they are in records.
    pub fn schema(&self) -> &Schema {
        &self.0.plan.schema
    }

    /// Returns warnings about features whose values are not decoded.
    pub fn warnings(&self) -> &[String] {
        &self.0.plan.warnings
    }

    /// Returns a parser for batches. Its columns have the paths of the features as names, and their decoded values.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`] if a selected feature is in steps, or of an unknown class.
    pub fn parser(&self) -> Result<BatchParser> {
        let plan = &self.0.plan;
        let refused = |reason: String| TfdsErrorKind::Options { reason }.into();
        if let Some(leaf) = plan.steps() {
            let path = &leaf.path;
            return Err(refused(format!("feature {path:?} has the steps of episodes, which batches of records do not have: choose other features")));
        }
        if let Some(leaf) = plan.leaves.iter().find(|leaf| matches!(leaf.item, crate::compile::Item::Unknown)) {
            let path = &leaf.path;
            return Err(refused(format!("feature {path:?} is of an unknown class: choose other features")));
        }
        Ok(self.0.records.clone().decoder(Arc::new(Columns::new(&self.0))))
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoder").field(&self.0.plan).finish()
    }
}
