//! Exceptions with the engine's own sentences.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(flopwatch, FlopwatchError, PyException, "Whatever the engine refuses.");
create_exception!(
    flopwatch,
    ReadError,
    FlopwatchError,
    "A file cannot be read: it is missing, damaged, or of no known format."
);
create_exception!(flopwatch, WriteError, FlopwatchError, "A file cannot be written.");
create_exception!(
    flopwatch,
    RequestError,
    FlopwatchError,
    "There is no such analysis, parameter, format or category."
);
create_exception!(flopwatch, AnalysisError, FlopwatchError, "An analysis has no result.");
create_exception!(
    flopwatch,
    ClientError,
    FlopwatchError,
    "A cluster or its gateway did not do what it was asked for; `reason` is one word for it."
);
create_exception!(
    flopwatch,
    ForbiddenError,
    ClientError,
    "The caller may not; the message says which role helps."
);
create_exception!(
    flopwatch,
    NotFoundError,
    ClientError,
    "There is no such session, capture or artifact, or it published nothing."
);
create_exception!(
    flopwatch,
    SessionFailedError,
    ClientError,
    "A session ended without success; `reason` is that of its condition."
);
