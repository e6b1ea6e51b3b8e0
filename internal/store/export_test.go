package store

// What the tests call of this package.
var (
	OpenOn     = openOn
	UpdateOn   = updateOn
	ParseIndex = parseIndex
)
