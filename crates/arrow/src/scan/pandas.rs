//! The metadata that pandas reads.

use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the schema of these columns. Its metadata has pandas' nullable types of integers that may be
/// missing.
///
/// Without them PyArrow makes doubles of such a column as soon as a value is missing, and rounds integers
/// beyond 2^53. The consumer of a stream is not known, and every table of PyArrow, and Parquet, keeps the
/// metadata.
pub(super) fn schema(fields: Vec<FieldRef>) -> SchemaRef {
    let nullable = fields.iter().filter(|field| field.is_nullable() && field.data_type().is_integer());
    let columns = nullable.map(|field| {
        let name = field.data_type().to_string();
        json!({
            "name": field.name(),
            "field_name": field.name(),
            "pandas_type": name.to_lowercase(),
            "numpy_type": name,
            "metadata": null,
        })
    });
    let columns: Vec<_> = columns.collect();
    let mut metadata = HashMap::new();
    if !columns.is_empty() {
        let pandas = json!({ "index_columns": [], "column_indexes": [], "columns": columns });
        metadata.insert("pandas".to_owned(), pandas.to_string());
    }
    Arc::new(ArrowSchema::new_with_metadata(fields, metadata))
}
