//! Writes the files.

use std::io::Write;

use super::Export;
use crate::definition::{AnalysisError, Report};
use crate::input::Input;

impl Export {
    /// Writes the file of `input` to `out`. After an error `out` holds a part.
    #[cfg(feature = "export")]
    pub(crate) fn write(self, input: Input<'_>, out: &mut (dyn Write + Send)) -> Result<Report, AnalysisError> {
        use std::io::BufWriter;

        use flate2::Compression;
        use flate2::write::GzEncoder;

        let exported = if self.gzip {
            let mut packed = GzEncoder::new(BufWriter::new(out), Compression::fast());
            let exported = super::writers::write(input, self.format, self.table, &mut packed)?;
            packed.finish()?.flush()?;
            exported
        } else {
            super::writers::write(input, self.format, self.table, out)?
        };
        Ok(Report {
            events: exported.events,
            samples: exported.samples,
            left_out: exported.left_out.list(),
            verdict: None,
        })
    }

    /// Refuses: there are no writers.
    #[cfg(not(feature = "export"))]
    #[expect(clippy::unused_self, reason = "the same call as with the writers")]
    pub(crate) fn write(self, _input: Input<'_>, _out: &mut (dyn Write + Send)) -> Result<Report, AnalysisError> {
        Err(AnalysisError::NotBuilt)
    }
}
