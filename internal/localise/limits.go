package localise

// The limits by which a layer is accused. Errors are relative L2, of the worst row unless said
// otherwise; a ratio compares an output's error with what came in, an excess (judge) with what the
// layer's gain and rounding make of that, a unit is one rounding of the type. What they were
// measured on docs/thresholds.md says: the zoo, November 2026, where nothing else is said.
const (
	// jump is the ratio that blames a layer, the excess that does (clear asks for twice as much of
	// both), and the ratio to its error on golden inputs: softmax, norms and cancelling sums
	// amplify. Ratio in 16 bits: clean ≤ 2.3, but 5.1 with massive channels and 4.7 behind a sink
	// row, where the excess decides; faults ≥ 9.1. In float32 no clean pair is asked; faults ≥ 203.
	// Excess: clean ≤ 1.6 (2 in the first measurement), faults ≥ 14.
	jump = 3
	// mixing is that ratio in 16 bits for code between layers: one row of an attention with large
	// scores came to 3.3 times its inputs. Clean ≤ 1.9 otherwise, faults ≥ 17.
	mixing = 5
	// sure is that ratio where the place is looked for below the noise floor, or behind a first
	// error that no layer made. Clean ≤ 5.1; faults that were asked ≥ 15.
	sure = 10
	// fewRows is that ratio where a few rows of 16 bits have all of the error: those of an attention in
	// which two large scores are near each other. Clean ≤ 20 (scores up to 66 apart); faults of few
	// rows: none was asked.
	fewRows = 32
	// slight is up to how many units an error is slight, so that the ratio must be sure: sums that
	// cancel come to as much by themselves. Clean ≤ 27, but 48 in float16 with massive channels,
	// where the excess decides; faults ≥ 47 in 16 bits, ≥ 1740 in float32. In 16 bits the two
	// overlap. Roundings of layers that were not recorded add up to as much, too: ≤ 20 in clean
	// models of which only the end, or only the blocks, were recorded; faults from 18 on.
	slight = 32
	// gross is an error that rounding does not make: what is above it, and more than came in, was
	// made here, and none above it is slight. Clean ≤ 0.16, a sink row in bfloat16 that was not asked; faults: none was asked.
	gross = 0.1
	// alike is the factor by which the blocks' own errors may differ where all of them round alike,
	// or the square of a climbing error from its share of n. Drifts: 1.10 to 1.17, and 0.92 to 1.44
	// of the square. Faults in every block make errors as alike (1.14): other limits keep those
	// out.
	alike = 3
	// kinds is how many kinds of layers are off alike before none of them is accused. Drifts: 7,
	// but exactly 3 without a run on golden inputs. Faults ≤ 1; others have errors along the value,
	// or are of another kind. There is no room.
	kinds = 3
	// unlike is the cosine of error and value up to which the two have nothing to do with each
	// other. Drifts: 0.002 to 0.054. Of the faults a fifth is below 0.1 as well, from 0.004 on: it
	// tells nothing without kinds, the blocks' own errors, or their climb.
	unlike = 0.1
	// finest is the coarsest rounding at which a block is not wrong by itself: 10 bits of mantissa;
	// errors are held against half of it, 4.9e-4. Drifts ≤ 2.3e-4. Faults: a bfloat16 layer among
	// others in float32 ≥ 3.0e-3, but a float16 layer 4.3e-4, which only kinds keeps out.
	finest = 1.0 / 1024
	// climb is how far the error of the whole tensor may fall from one block to the next where
	// noise adds up: independent noise hardly ever cancels more. Drifts: 0.86 to 0.997; faults not
	// measured.
	climb = 0.8
	// roundBlocks and climbBlocks are how many blocks tell that all of them round alike, by their
	// own errors or by a climb. The climb of three blocks with one fault in each looks like a drift
	// (0.62).
	roundBlocks, climbBlocks = 3, 4
)
