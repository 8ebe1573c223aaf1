//! Tables by Arrow's C interface: other libraries take the memory without a copy.
//!
//! Must not know: what the tables hold.

use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, DurationNanosecondArray, Float64Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, TimestampNanosecondArray,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use fairlab_lab::LabError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failed::CallError;

/// A table in Arrow's memory.
#[pyclass(module = "fairlab._native", frozen)]
#[derive(Debug)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of batches that all have this schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Table {
        Table { schema, batches }
    }
}

fn failed(error: ArrowError) -> CallError {
    LabError::new(error.to_string(), "give columns of equal length").into()
}

#[pymethods]
impl Table {
    /// A table of columns: each with its name, its kind, and its values, of which None is nothing.
    #[staticmethod]
    fn of_columns(columns: Vec<(String, String, Bound<'_, PyAny>)>) -> Result<Table, CallError> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for (name, kind, values) in columns {
            let array = array(&kind, &values)?;
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(failed)?;
        Ok(Table { schema, batches: vec![batch] })
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// The schema as a capsule of Arrow's C interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>, CallError> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(failed)?;
        Ok(PyCapsule::new_with_value(py, schema, c"arrow_schema")?)
    }

    /// The rows as a capsule of Arrow's C interface. The taker shares the memory.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A caller that wants another schema has to cast: the interface leaves that open.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// A column of a kind.
fn array(kind: &str, values: &Bound<'_, PyAny>) -> Result<ArrayRef, CallError> {
    let numbers = || values.extract::<Vec<Option<i64>>>();
    Ok(match kind {
        "text" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        "integer" => Arc::new(Int64Array::from(numbers()?)),
        "count" => {
            let counts = values.extract::<Vec<Option<u64>>>()?;
            Arc::new(counts.into_iter().map(|count| count.map(u64::cast_signed)).collect::<Int64Array>())
        }
        "number" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
        "truth" => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
        "duration" => Arc::new(DurationNanosecondArray::from(numbers()?)),
        "time" => Arc::new(TimestampNanosecondArray::from(numbers()?)),
        _ => {
            let hint = "there are text, integer, count, number, truth, duration, time";
            return Err(LabError::new(format!("'{kind}' is no kind of column"), hint).into());
        }
    })
}
