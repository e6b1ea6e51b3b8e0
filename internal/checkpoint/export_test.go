package checkpoint

// What the joining of quantised weights is made of.
var (
	Ignoring         = ignoring
	Join             = join
	ReadQuantisation = readQuantisation
	InOtherFiles     = inOtherFiles
)

// Quantisation is what a config says of quantised weights.
type Quantisation = quantisation
