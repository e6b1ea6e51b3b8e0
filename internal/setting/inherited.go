package setting

// Inherited says what the test of a layer does that only passes on an error, where All or Layers chose it. The
// default is InheritedSkip. A layer that a test or -run names fails, in one line.
type Inherited string

// The values of [Inherited].
const (
	InheritedSkip Inherited = "skip"
	InheritedFail Inherited = "fail" // in one line
)

// MarshalText returns i's word.
func (i Inherited) MarshalText() ([]byte, error) { return []byte(i), nil }

// UnmarshalText reads a word.
func (i *Inherited) UnmarshalText(text []byte) error {
	return parse(i, text, InheritedSkip, InheritedFail)
}
