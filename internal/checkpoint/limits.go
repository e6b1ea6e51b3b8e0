package checkpoint

// mostWeights is how many bytes of weights are kept in memory while pieces of a program are replayed: a layer of
// a model with 7 billion of 16 bits has 400 MB. By reason.
const mostWeights = 256 << 20
