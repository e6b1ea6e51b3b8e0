package localise

// The limits by which a layer is accused. Errors are relative L2, of the worst row unless said
// otherwise; a factor compares an output's error with what came in.
const (
	// jump is the factor by which an error must exceed what came in to have been made here: softmax,
	// norms and cancelling sums amplify.
	jump = 3
	// mixing is that factor in 16 bits for code between layers: one row of an attention with large
	// scores came to 3.3 times its inputs.
	mixing = 5
	// sure is that factor where the place is looked for below the noise floor, or behind a first
	// error that no layer made.
	sure = 10
	// slight is up to how many units of rounding an error is slight: sums that cancel come to as
	// much by themselves.
	slight = 32
	// gross is an error that rounding does not make: what is above it, and more than came in, was
	// made here.
	gross = 0.1
	// alike is the factor by which the blocks' own errors may differ where all of them round alike.
	alike = 3
	// kinds is how many kinds of layers are off alike before none of them is accused.
	kinds = 3
	// unlike is the cosine of error and value up to which the two have nothing to do with each other.
	unlike = 0.1
	// finest is the coarsest rounding at which a block is not wrong by itself: 10 bits of mantissa. A
	// layer that runs in bfloat16 among others in float32 is.
	finest = 1.0 / 1024
	// climb is how far the error of the whole tensor may fall from one block to the next where noise
	// adds up: independent noise hardly ever cancels more.
	climb = 0.8
)
