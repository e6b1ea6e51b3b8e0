package setting

// Mode says which runs of a candidate are judged. The default is ModeStandard.
type Mode string

// The values of [Mode].
const (
	// ModeStandard judges each layer on what its own model computed. A replay also judges a
	// recorded injected run.
	ModeStandard Mode = "standard"
	// ModeBoth runs the candidate again on the golden inputs, and judges both runs.
	ModeBoth Mode = "both"
)

// MarshalText returns m's word.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText reads a word.
func (m *Mode) UnmarshalText(text []byte) error { return parse(m, text, ModeStandard, ModeBoth) }
