package trace

// LeastFloats is how many elements a floating-point tensor has at least to tell something by its
// bytes. It is a matter of chance, not measured. Token ids and positions tell something if they are
// two and not all the same.
const LeastFloats = 16
