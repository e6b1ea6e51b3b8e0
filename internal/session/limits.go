package session

// allSummaries is of how many failing tests each prints the report so far. Of those after them it
// is the 32nd, the 64th and so on, so that the time does not grow with the square of the tests.
const allSummaries = 16

// mostWeights is how many bytes of weights a live run keeps, to judge them: a second of writing and
// reading.
const mostWeights = 1 << 30

// mostChanges is how many goldens that are new, gone or moved an update lists, of each.
const mostChanges = 20
