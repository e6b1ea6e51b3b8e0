package match

// What tests ask for by name.
type Allowance = allowance

var (
	IsLastRow  = isLastRow
	NewPadMask = newPadMask
)
