package golden

// sameSum is how far two sums of the same values may be apart, relative to the largest value: they
// were added in another order, in float64. Not measured.
const sameSum = 1e-9
