package setting

// Inherited says what the test of a layer does that only passes on an error. The default is
// InheritedFail.
type Inherited string

// The values of [Inherited].
const (
	InheritedFail Inherited = "fail" // with one line
	InheritedSkip Inherited = "skip"
)

// MarshalText returns i's word.
func (i Inherited) MarshalText() ([]byte, error) { return []byte(i), nil }

// UnmarshalText reads a word.
func (i *Inherited) UnmarshalText(text []byte) error {
	return parse(i, text, InheritedFail, InheritedSkip)
}
