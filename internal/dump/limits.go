package dump

// maxPrinted is the largest number of elements of a tensor of which a log shows the corners.
const maxPrinted = 1 << 26
