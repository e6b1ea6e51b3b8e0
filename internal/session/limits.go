package session

// mostWeights is how many bytes of weights a live run keeps, to judge them: a second of writing and
// reading.
const mostWeights = 1 << 30

// mostChanges is how many goldens that are new, gone or moved an update lists, of each.
const mostChanges = 20
