package reference

// inMemory is how many bytes of replayed tensors are not written to a file. By reason.
const inMemory = 256 << 20
