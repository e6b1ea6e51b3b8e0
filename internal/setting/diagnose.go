package setting

import "time"

// Diagnose says how long the cause of a failure is searched for. The default is DiagnoseFull.
type Diagnose string

// The values of [Diagnose].
const (
	DiagnoseOff  Diagnose = "off"
	DiagnoseFast Diagnose = "fast"
	DiagnoseFull Diagnose = "full"
)

// MarshalText returns d's word.
func (d Diagnose) MarshalText() ([]byte, error) { return []byte(d), nil }

// UnmarshalText reads a word.
func (d *Diagnose) UnmarshalText(text []byte) error {
	return parse(d, text, DiagnoseOff, DiagnoseFast, DiagnoseFull)
}

// Budget returns the time for all places of a comparison together.
func (d Diagnose) Budget() time.Duration {
	switch d {
	case DiagnoseOff:
		return 0
	case DiagnoseFast:
		return fastBudget
	default:
		return fullBudget
	}
}
