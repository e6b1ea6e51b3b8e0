package setting

// Update is which goldens are renewed, by default UpdateNone.
type Update string

// The updates.
const (
	UpdateNone Update = "none"
	UpdateNew  Update = "new" // only what has no golden yet
	UpdateAll  Update = "all"
)

// MarshalText returns the word.
func (u Update) MarshalText() ([]byte, error) { return []byte(u), nil }

// UnmarshalText reads one of the updates.
func (u *Update) UnmarshalText(text []byte) error {
	return parse(u, text, UpdateNone, UpdateNew, UpdateAll)
}
