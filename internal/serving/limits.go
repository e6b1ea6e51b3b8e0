package serving

import "time"

// What is asked of a server where no one says anything. By reason, not measured.
const (
	DefaultTimeout  = 30 * time.Second // how long an answer may take
	DefaultParallel = 4                // how many requests are on their way at once
	// DefaultStart is how long a server may take until it is ready: MAX compiles for 6 to 10 minutes the first time, on
	// two busy cores.
	DefaultStart = 20 * time.Minute
)

const (
	topLogProbs = 5                      // alternatives that are asked for: OpenAI allows 5, MAX 7
	maxAnswer   = 16 << 20               // the most bytes of an answer that are read
	maxSnippet  = 160                    // bytes of an answer that cannot be read that are shown
	metricsTime = 5 * time.Second        // how long a page of metrics may take
	dialTime    = 10 * time.Second       // how long a connection may take, if the timeout of an answer is longer
	stopGrace   = 20 * time.Second       // how long a server may take to end after SIGTERM: MAX took up to 11 s
	dyingTime   = time.Second            // how long a server that has hung up may take to end by itself
	pollTime    = 100 * time.Millisecond // how often the log of a server that starts is read
	shownLines  = 30                     // lines of the log of a server that is late that are shown
)

// What is asked where all that the cases ask for is right.
const (
	// mostBeside is how many requests are judged for what others do to them, and overfull how many times --parallel wait
	// for a slot: all of it is about fifty requests by default, some seconds of a small model. By reason.
	mostBeside, overfull = 8, 4
	// decisive is how many times the noise of two logits apart tokens are that a setting chooses between. By reason.
	decisive = 4
	// shortMemory is the smallest number of last tokens that a server counts as seen: mlx_lm.server's.
	shortMemory = 20
	// leastDrafted is how many proposed tokens of a draft model are enough to wonder that none is accepted: one of ten
	// is in what a bad one proposes, and none of 100 then happens once in 40,000 times. By reason.
	leastDrafted = 100
)

// The search for causes.
const (
	maxFindings = 4               // wrong answers a cause is looked for: others follow from these
	maxProbes   = 120             // further requests that all of it may take
	probeTime   = 3 * time.Minute // how long all of it may take
	// repeats is how many times a wrong request is sent again: a server that samples gives one of its
	// wrong answers in half of the cases, and then hides with a probability of 1 in 16.
	repeats = 4
	// cured is how many times a setting has to make a request right, while it is asked without half as many times more,
	// and is wrong uncured times: that all of these are without by chance happens to one in a hundred.
	cured, uncured = 8, 7
)

// Draws of tokens.
const (
	// leastEntropy is how uncertain a token has to be, in nats, for its draws to tell anything: of one in ten. By reason.
	leastEntropy = 0.3
	// coldest is the temperature below 1 that is asked, and coolest one by which penalties are not any more, mostKept the
	// most tokens that top_k leaves, mostBehind the most tokens before one that is drawn by a penalty: draws that begin
	// otherwise are lost. By reason.
	coldest, coolest, mostKept, mostBehind = 0.7, 0.3, 8, 3
	// mostTokens is the size of a vocabulary above which only the largest logits are looked at for penalties: a second of
	// work for each text. By reason.
	mostTokens = 1024
	// leastExpected is how many draws of a token are expected, at least, for a χ² of their number: Cochran's rule.
	// smallestRest stands for what is expected of all others where that is nothing.
	leastExpected, smallestRest = 5, 0.5
	// surelyOther is the probability of a G below which draws are of another distribution, and perhapsOther that below
	// which it is said. A run has nine tests: one in 110,000 right servers is accused.
	surelyOther, perhapsOther = 1e-6, 1e-3
)
