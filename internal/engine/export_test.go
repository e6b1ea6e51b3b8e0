package engine

// What the tests call of this package.
var (
	LogPhases = logPhases
	EnvironOf = environOf
	PickOf    = pickGPUs
)

// Tools are the tools of drivers.
type Tools = tools

// Event and End are what a run tells its phases.
func (p *phases) Event(e Event) { p.event(e) }
func (p *phases) End(ok bool)   { p.end(ok) }
