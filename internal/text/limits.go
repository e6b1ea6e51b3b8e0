package text

// What is shown of a difference.
const (
	shownTokens = 4  // ids
	shownRunes  = 24 // characters of a text
)

// specials is how many special tokens a tokenizer puts around a text: BOS or [CLS] before, EOS or
// [SEP] after. What is lost beyond that was cut.
const specials = 1

// promptTokens is how many tokens a template adds at most to ask for an answer: Llama 3's adds 4,
// ChatML's 3. A conversation that lacks more of its end was cut.
const promptTokens = 12
