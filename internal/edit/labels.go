package edit

// What labels ask for again and again.
const (
	comparing   = "lt le gt ge" // make a mask of two numbers
	fused       = "*scaled_dot_product*"
	norming     = "*_norm*"
	repeating   = "expand repeat_interleave repeat"
	multiplying = "*mm"
	gating      = "silu gelu sigmoid"
	cutting     = "split_with_sizes slice"
	activating  = "silu gelu relu mish hardswish leaky_relu elu" // activations
)

var (
	softmax    = has("_softmax")
	attends    = either(softmax, has(fused))
	attended   = reaches("_softmax " + fused)
	hides      = both(into(2, "_softmax"), compared)
	ofWeight   = func(c is) bool { return c.Weight != "" }
	outside    = func(c is) bool { return len(c.At) == 0 }
	ofCall     = func(c is) bool { return c.Frame > 0 }
	stacked    = has("_grouped_mm histc") // experts run on weights that lie in one
	nearRoot   = either(op("rsqrt mean pow"), into(2, "rsqrt"))
	recurrent  = both(has("exp"), has("softplus cumsum"), not(reaches("_softmax")), not(has("topk")))
	turns      = both(has("cos"), has("sin"))
	unnumbered = func(c is) bool { return len(numbersIn(c.Text)) == 0 }
	oneRowMask = func(c is) bool { s := c.resultShape(); return len(s) > 1 && s[len(s)-2] == 1 }
)

// labels are the rules by which edits are named, by what they are about. The first group that has a name decides.
var labels = []group{
	{nil, []rule{
		{"dtype/downcast", "rounding", "", "", nil},
		{"state/stale", "bypass source", "", "", is.ofOtherPass},
		{"value/offset", "", "", "a number more than the result*", not(either(into(2, "rsqrt"), op(norming)))},
		{"rope/applied", "twice", "", "*, too", has(rotates)},
		{"linear/gate-up", "exchange", activating, "", nil},
		{"linear/gate-up", "slice", "glu", "", nil},
		{"config/attn_logit_softcapping", "drop bypass scalar", "", "", both(is.caps, reaches("_softmax"))},
		{"config/final_logit_softcapping", "drop bypass scalar", "", "", is.caps},
		{"moe/bias", "drop bypass", "", "", both(does(and("add", ofLearned(1, 1))), has("topk"), not(does(multiplying)))},
		{"conv/padding", "slice", "", "the convolution wraps around", nil},
		{"output/last-token", "slice layout", "", "", ofOneRow}, // where nothing else is done
	}},
	{recurrent, []rule{ // a state that decays from row to row, as that of a state-space model
		{"", "", "", "", both(ofCall, does(multiplying+" convolution"))}, // all of it
		{"ssm/step", "", "", "", either(does("softplus"), into(2, "softplus"))},
		{"ssm/decay", "", "", "", either(does("exp"), into(2, "exp"))},
		{"ssm/gate", "", "", "", either(does("silu"), from(2, "silu"), into(1, "silu"))},
		{"ssm/state", "slice exchange layout source", "", "", nil},
	}},
	// What goes into such a scan, or comes of it, and is a piece of its own.
	{both(not(recurrent), not(ofWeight), is.besideScan), []rule{
		{"conv/padding", "slice", "slice", "", either(from(1, "convolution"), recordedFrom("convolution"))},
		{"ssm/gate", "source bypass drop", "", "", gates},
		{"ssm/state", "exchange", "", "", not(outside)},
		{"ssm/state", "slice", cutting, "", outs(3, 99)},
	}},
	{stacked, ofExperts},
	{nil, []rule{
		{"activation/relu", "drop", "pow", "", from(1, "relu")},
		{"activation/silu", "drop scalar", "mul", "", gatesItself},
		{"config/num_hidden_layers", "drop", "", "", both(ofCall, is.ofBlock)},
		{"residual/missing", "drop", "", "", both(ofCall, is.isBlock)},
		{"edit/drop", "drop", "", "", both(ofCall, does(multiplying+" convolution _softmax"))},
		{"rope/applied", "", "", "", both(ofCall, does(rotates))},
		{"residual/missing", "drop", "", "", both(ofCall, does(sum))},
		{"norm/missing", "", "", "", both(ofCall, does("rsqrt linalg_vector_norm "+norming))},
		{"activation/missing", "", "", "", both(ofCall, does(activating))},
		{"", "", "", "", ofCall},
		{"activation/→", "sibling", "sigmoid tanh softplus mul " + activating, "", is.activates},
		{"activation/missing", "drop bypass", activating, "", nil},
		{"edit/sibling", "sibling", activating, "", nil},
		{"norm/order", "order", activating, "", nil},
	}},
	{nil, []rule{
		{"norm/weight", "drop scalar sibling source bypass", "", "", gains},
		{"norm/kind", "value", "", "without its mean*", both(outside, into(toRoot, "rsqrt"))},
		{"norm/eps", "scalar", norming, "eps*", nil},
		{"norm/eps", "scalar drop", "add", "", into(1, "rsqrt")},
		{"norm/eps", "scalar", "", "a number more*", nearRoot},
		{"norm/eps", "", norming, "a number more than eps*", nil},
		{"norm/kind", "sibling scalar", norming, "", nil},
		{"norm/weight", "", norming, "weight*|bias*", nil},
		{"norm/missing", "drop", norming, "", nil},
		{"norm/missing", "bypass", "", "", either(nearRoot, from(3, "rsqrt"))},
		{"norm/missing", "drop", "mul", "", from(1, "rsqrt")},
		{"norm/kind", "axis value sibling", "", "", nearRoot},
		{"norm/weight", "drop", "mul", "", both(from(3, "rsqrt"), learned(1, 9))},
	}},
	{is.convolved, []rule{ // the order in which the weight of a convolution lies, and the channels that it takes
		{"image/channels", "layout", "", "axis 1 flipped*", nil},
		{"", "", "", "", not(ofWeight)},
		{"conv/flipped", "layout", "", "axis 2 flipped*|axis 3 flipped*|axis 4 flipped*", nil},
		{"conv/layout", "layout", "", "", nil},
	}},
	{ofWeight, []rule{
		{"embedding/index", "layout", "", "", into(1, "embedding")},
		{"norm/weight", "weight", "", "", scales},
		{"output/tied", "weight", "", "", unnumbered}, // outside of all blocks: the head, and the embedding
		{"linear/gate-up", "weight", "", "", both(is.ofSibling, is.widens)},
		{"linear/qkv-order", "weight", "", "", is.ofSibling},
		{"linear/other-layer", "weight", "", "", nil},
		{"embedding/position", "layout", "", "", both(is.ofRows, summed)}, // a table that is added as it stands
		{"linear/transposed", "layout", "", "*exchanged*", nil},
		{"image/class-token", "value", "", "", both(into(2, "cat"), not(into(toScores, "_softmax")))},
		{"linear/weight-zero", "value", "", "0 times*", nil},
		{"norm/weight", "value", "", "1 +*", nil},
		{"linear/bias-twice", "value", "", "2 times*", added},
		{"linear/weight-scale", "value", "", "", nil},
		{"layout/permuted", "layout", "", "", nil},
	}},
	{nil, []rule{ // what compares positions, and what hides scores by that
		// What hides comes after.
		{"attention/bias", "drop", "add", "", both(into(2, "_softmax"), not(compared), ofTwo, into(1, "masked_fill"))},
		// A window: other masks stay.
		{"attention/mask", "mask", "", "", both(into(toCompare, "bitwise_and"), from(toCompare, "sub"))},
		// A decode step sees all that is there already.
		{"attention/mask", "drop", "add", "", both(hides, oneRowMask)},
		{"attention/mask", "mask", "", "*everywhere*", oneRowMask},
		{"attention/causal", "mask", "", "*lower triangle*", nil},
		{"attention/causal", "mask", "", "*everywhere*", compared},
		{"attention/causal", "drop", "add", "", hides},
		{"", "", "", "", not(both(either(op(comparing), into(toCompare, comparing)), reaches("_softmax")))},
		{"attention/mask", "", "sub add", "", nil}, // a number away: a window
		{"attention/mask", "", "", "", from(1, "sub add")},
		{"attention/mask", "", "", "", both(into(1, "sub add"), not(into(1, comparing)))},
		{"attention/causal", "", "", "", nil},
	}},
	{both(attends, not(outside), outs(1, 1)), []rule{ // the order of heads and sequences
		{"attention/gqa", "layout", "view", "view of*", from(2, repeating)},
		{"attention/heads", "layout", "view", "view of*", nil},
		{"", "", "", "", func(c is) bool { return len(c.resultShape()) < 4 }},
		{"attention/mask", "layout", "", "axis 0 rolled*", both(is.ofAllHeads, is.scored)},
		{"state/sequence", "layout", "", "axis 0 rolled*", nil},
		{"attention/anchor-missing", "layout", repeating, "", both(learned(1, 9), into(2, "cat"))},
		{"attention/gqa", "layout", "", "*axis 1 *|axes 1 and 2*|*spread by turns*", either(op(repeating), from(toCompare, repeating))},
		{"attention/heads", "layout", "", "axis 1 rolled*", nil},
	}},
	{nil, []rule{
		{"ssm/skip", "drop twice", "add", "", both(ofTwo, has("exp"), has("softplus"), takesWeighed)},
		{"ssm/skip", "drop twice", "add", "", both(ofTwo, learned(1, 1), has("maximum"), either(into(1, "maximum"), into(2, "exp")))},
		// Factors, shifts and gates that are the same for all tokens.
		{"modulation/missing", "drop bypass", "", "", op(modulates)},
		{"modulation/order", "source", "", "", op(modulates)},
		{"modulation/order", "slice", "", "", cutsModulation},
	}},
	{nil, []rule{ // sines and cosines, and what is multiplied with them
		{"attention/bias", "state", "", "", both(attended, projected)}, // other positions
		{"rope/offset", "state", "", "", nil},
		{"rope/theta", "scalar table", "pow", "", both(from(toAngles, "arange"), either(reaches("cos"), not(reaches("bmm"))))}, // a geometric sequence
		{"rope/theta", "table scalar", "", "base*", nil},
		{"rope/applied", "slice", "", "", rotatesPart},
		{"rope/applied", "drop bypass source", "", "", makesRotated},
		{"rope/scaling", "table", "", "", nil},
		{"rope/offset", "", "add sub", "", into(toAngles, "cos")},
		{"rope/scaling", "scalar drop", "mul div", "", into(toAngles, "cos")},
		{"rope/scaling", "", "mul", "", both(from(1, "cos sin"), not(ofTwo))},
		{"rope/scaling", "", "", "the numbers of*", reaches("cos")},
		{"rope/layout", "conjugation", "", "", nil},
		{"rope/offset", "integer", "", "", turns},
		{"rope/offset", "", "arange", "", turns},
		{"rope/layout", "", "neg", "", nil},
		{"rope/layout", "swap", "cat", "", from(1, "neg")},
	}},
	{nil, []rule{ // what is approximate by intent: codes for numbers, an adapter beside a product
		{quantZero, "", "add sub", "", standsFor},
		{quantScale, "", "mul", "", standsFor},
		{"linear/adapter", "", "add sub mul", "", addsLowRank},
	}},
	{nil, []rule{
		{"attention/bias", "", "", "", both(reaches("embedding"), attended)}, // the numbers of a table of biases
		{"", "", "masked_fill", "", either(both(has("topk"), not(is.scored)), not(into(toScores, "_softmax")))},
		{"attention/scale", "", fused, "scale*", nil},
		{"attention/scale", "order", "", "", into(4, "_softmax")},
		{"attention/scale", "scalar drop twice sibling", "mul div", "", into(4, "_softmax")},
		{"attention/causal", "", "tril triu", "", nil},
		// What was beside them takes no part.
		{"attention/anchor-missing", "value", "", "divided by its sum*", either(both(from(1, "_softmax"), not(op("topk"))), both(from(2, "_softmax"), op("slice")))},
		{"linear/qkv-order", "exchange", "", "", both(either(attended, reaches("bmm baddbmm "+fused)), attends, not(op("_softmax")))},
		{"attention/mask", "", "", "", both(either(is.bools, op("rsub")), into(toScores, "_softmax"))}, // or 1 less a mask
		{"attention/gqa", "", "", "*spread by turns*", attends},
		{"attention/softmax-axis", "axis", "_softmax", "", nil},
		{"attention/mask", "", "", "", both(outside, not(ofWeight), is.scored, is.ofAllHeads)},
		{"attention/anchor-missing", "value", "", "0 times*", both(into(2, "cat"), into(toScores, "_softmax"))},
		{"linear/qkv-order", "layout", "", "", both(is.scored, into(2, "select unbind chunk "+cutting))},
		{"attention/bias", "value layout scalar", "", "", is.scored},
		{"mask/padding", "mask", "", "", both(not(attended), into(toCompare, "sum mean"))}, // what is summed up
		{"attention/mask", "mask", "", "", nil},
		{"attention/mask", "", "masked_fill", "", nil},
		{"attention/mask", "", fused, "attn_mask*", nil},
		{"attention/mask", "drop", "add", "", into(2, "_softmax")},
	}},
	{nil, ofExperts},
	{nil, []rule{
		{"modulation/missing", "drop", "mul", "", from(1, "sigmoid silu tanh")},
		{"modulation/missing", "drop", "add", "", both(not(ofTwo), into(1, "mul"))},
		{"residual/scale", "value", "", "", both(not(ofWeight), summed)},
		{"residual/scale", "scalar drop", "mul", "", both(not(ofWeight), not(ofTwo), summed)},
		{"residual/scale", "drop", "mul", "", learned(1, 1)},
		{"", "", "", "", either(not(op("add")), not(ofTwo), op(rotates))},
		{"linear/bias-missing", "drop", "", "", learned(1, 1)}, // what is added is a weight: a bias, or a table
		{"embedding/position", "drop", "", "", either(learned(2, 9), both(from(2, "embedding"), from(3, "arange")))},
		{"linear/bias-twice", "twice", "", "", learned(1, 1)},
		{"residual/missing", "drop bypass", "", "", nil},
		{"residual/source", "source", "", "", nil},
		{"residual/scale", "sibling scalar value", "", "", nil},
	}},
	{nil, []rule{
		{"linear/transposed", "drop", "transpose", "", both(learned(1, 9), into(2, "mm addmm bmm"))},
		{"linear/bias-missing", "", "addmm", "bias*|self*", nil},
		{"linear/transposed", "swap", "mm bmm addmm", "", nil},
		{"linear/gate-up", "layout", "", "*rolled*", has("glu")},
		{"linear/gate-up", "slice", "", "parts*", into(1, gating)},
		{"linear/gate-up", "slice", cutting, "parts*", both(not(attended), outs(2, 2))},
		{"linear/gate-up", "slice", cutting, "parts*", both(into(6, activating+" sigmoid"), not(reaches("_softmax")))},
		{"linear/qkv-order", "slice", cutting, "parts*", nil},
		{"linear/bias-missing", "", "convolution", "bias*", nil},
		{"conv/padding", "", "convolution", "padding*", nil},
		{"conv/padding", "", "constant_pad_nd", "padding*", both(not(attended), reaches("convolution"))},
		{"layout/shifted", "", "constant_pad_nd", "padding*", nil},
		{"embedding/index", "integer", "", "", has("embedding")},
		{"embedding/index", "", "arange", "", has("embedding")},
		{"edit/integer", "integer", "convolution", "", nil},
		{"rope/offset", "integer", "", "", nil},
		{"rope/offset", "", "arange", "", nil},
		{"embedding/scale", "scalar drop", "mul", "", either(from(2, "embedding"), recordedFrom("embedding"))},
	}},
	{nil, []rule{
		{"layout/transposed", "layout", "", "*exchanged*", nil},
		{"layout/transposed", "axis", "transpose permute", "", nil},
		{"layout/shifted", "layout", "", "*shifted*|*rolled by 1 *|*rolled by -1 *|*rolled by 1|*rolled by -1", nil}, // further are blocks, as heads
		{"layout/permuted", "layout", "", "", nil},
		{"layout/permuted", "swap", "cat", "", nil},
		{"layout/shifted", "slice", "slice", "", nil},
		{"value/scale", "", "", "a factor of the result*", nil},
		{"residual/source", "term", "", "*is added to the result", nil},
		{"moe/shares", "term", "", "*multiplied with*", is.ofExpert},
		{"value/constant", "value", "", "0 times*|1 in place*", nil},
		{"value/sign", "value", "", "-1 times*|the conjugate*", nil},
		{"value/sign", "drop", "neg _conj", "", nil},
		{"value/clipped", "", "clamp*", "", nil},
		{"norm/missing", "drop", "div", "", from(3, "linalg_vector_norm")},
		{"value/offset", "drop scalar", "add", "", not(ofTwo)},
		{"value/scale", "value", "", "*times*", nil},
		{"value/scale", "scalar", "mul div", "", nil},
		{"value/scale", "drop", "mul div", "", not(ofTwo)},
		{"value/scale", "sibling", "mul div", "*mul*", not(ofTwo)},
	}},
}

// ofExperts are the rules of what chooses experts, of what they get and of what they give.
var ofExperts = []rule{
	{"moe/expert-order", "slice", "select", "", learned(3, 9)}, // the weights of one of several
	{"moe/k", "sibling", "sum", "*the element*", from(3, "mul")},
	{"", "", "", "", not(either(has("topk"), stacked))},
	{"linear/bias-missing", "drop", "add", "", both(stacked, learned(1, 9))},
	{"moe/shares", "layout", "", "", both(stacked, not(ofWeight), outside)},
	{"moe/shares", "drop bypass", "mul", "", both(stacked, not(ofWeight))},
	{"moe/shares", "order", "", "", both(stacked, not(ofWeight))},
	{"linear/gate-up", "layout", "", "", both(stacked, not(ofWeight), not(outside), into(2, "select unbind chunk "+cutting))},
	{"moe/k", "", "topk", "k of*", nil},
	{"moe/k", "sibling", "sum", "*the element*", nil},
	{"moe/bias", "bypass source", "gather", "", nil},
	{"moe/shares", "order", "mul", "", nil},
	{"moe/scores", "order", "topk", "", nil},
	{"moe/scores", "order", "", "", from(1, "topk")},
	{"linear/gate-up", "layout", "", "", both(into(1, "slice"), into(toCompare, "sigmoid silu"))},
	{"moe/groups", "", "masked_fill", "", nil},
	{"moe/renorm", "drop bypass", "div", "", nil},
	{"moe/renorm", "value", "", "divided by its sum*", nil},
	{"moe/scores", "sibling", "_softmax sigmoid", "", nil},
	{"moe/scaling", "scalar", "mul", "", nil},
	{"moe/scaling", "drop", "mul", "", not(ofTwo)},
}

// activations are the functions that edits put in the place of others, and their names.
var activations = map[string]string{"silu": "silu", "gelu (none)": "gelu", "gelu (tanh)": "gelu-tanh", "gelu": "gelu", "relu": "relu", "relu²": "relu2",
	"x·sigmoid(1.702·x)": "quick-gelu", "sigmoid": "sigmoid", "tanh": "tanh", "leaky_relu": "leaky-relu", "elu": "elu", "mish": "mish", "softplus": "softplus"}

// activates holds where an activation that has a name stands in the place of something.
func (c *surroundings) activates() bool { return activations[c.instead()] != "" }
