package setting

// Update says which goldens are updated. The default is UpdateNone.
type Update string

// The values of [Update].
const (
	UpdateNone Update = "none"
	UpdateNew  Update = "new" // only what has no golden yet
	UpdateAll  Update = "all"
)

// MarshalText returns u's word.
func (u Update) MarshalText() ([]byte, error) { return []byte(u), nil }

// UnmarshalText reads a word.
func (u *Update) UnmarshalText(text []byte) error {
	return parse(u, text, UpdateNone, UpdateNew, UpdateAll)
}
