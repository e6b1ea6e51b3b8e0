package generation

// Kept is how many of the largest logits of a row a golden keeps. By reason: what decides a token is
// among the first few.
const Kept = 64

const (
	// flat is the part of the positions that may lie within the noise: in more of them the golden
	// decides nothing. SmolLM2 135M along its own greedy text has 0.15 in bfloat16, random weights 0.2
	// to 0.3. November 2026.
	flat = 0.2
	// flatAgreeing is that part where the candidate has the reference's token at every other position: these say
	// enough. By reason, not measured.
	flatAgreeing = 0.35

	// outlier is how many times the error of the other logits of its row one logit may be off, beyond the
	// noise. Clean rows in 16 bits: 4.6 with 1000 tokens, 6.9 with 49152; two logits exchanged that
	// are a spread apart: 50 in bfloat16.
	outlier = 12
	// apart is how many of the logits that are furthest off do not count for the error of the others.
	apart = 4

	// few is below how many logits their mean says little: log-probabilities are compared then.
	few = 8

	// climbs is by how much the error of the last third of the positions may exceed that of the first,
	// where it grows steadily and comes out of the noise. Clean: 1.4, SmolLM2 in 16 bits, November 2026.
	climbs = 8
	// steady is the rank correlation of error and position from which on the error grows steadily: by
	// chance, of 12 positions, one in 1000.
	steady = 0.8
	// fewPositions is below how many positions no growth is told.
	fewPositions = 9

	// hidden is how much of the golden's probability a candidate may hide with −Inf: tokens that the
	// tokenizer does not have, or that padding added to the vocabulary. By reason.
	hidden = 1e-3

	// rowParts is into how many parts the rows of logits are divided among the cores.
	rowParts = 64
	// standsOut is from how many times the error of its row on that of a logit is looked at, in rows of more
	// than 150. It saves time, and judges nothing: roundings have 4 to 5 in rows of 1000 to 150,000.
	standsOut = 5.5
)
