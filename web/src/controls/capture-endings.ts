/** Endings of the files that are offered where a capture is chosen. */
export const CAPTURE_ENDINGS = ".h5,.hdf5,.sqlite,.nsys-rep,.qdrep,.qdstrm,.json,.gz,.pb,.prof,.csv,.ncu-rep";
