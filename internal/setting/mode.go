package setting

// Mode is what of a candidate is judged, by default ModeStandard.
type Mode string

// The modes.
const (
	// ModeStandard: each layer on what its own model computed; a replay takes a recorded injected
	// run along.
	ModeStandard Mode = "standard"
	// ModeBoth: and once more on the golden inputs.
	ModeBoth Mode = "both"
)

// MarshalText returns the word.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText reads one of the modes.
func (m *Mode) UnmarshalText(text []byte) error { return parse(m, text, ModeStandard, ModeBoth) }
