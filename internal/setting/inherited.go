package setting

// Inherited is what becomes of the test of a layer that only passes on an error, by default
// InheritedFail.
type Inherited string

// The ways.
const (
	InheritedFail Inherited = "fail" // in one line
	InheritedSkip Inherited = "skip"
)

// MarshalText returns the word.
func (i Inherited) MarshalText() ([]byte, error) { return []byte(i), nil }

// UnmarshalText reads one of the ways.
func (i *Inherited) UnmarshalText(text []byte) error {
	return parse(i, text, InheritedFail, InheritedSkip)
}
