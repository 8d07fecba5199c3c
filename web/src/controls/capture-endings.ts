import { RAW_ENDINGS } from "../generated/endings";

/** Endings of files that other programs than a session's profilers write. */
const FOREIGN = ["h5", "hdf5", "sqlite", "qdrep", "qdstrm", "json", "gz", "pb", "prof", "csv"];

/** Endings of the files that are offered where a capture is chosen. */
export const CAPTURE_ENDINGS = [...new Set([...FOREIGN, ...RAW_ENDINGS])].map((ending) => `.${ending}`).join(",");
