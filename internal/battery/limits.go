package battery

import "time"

// What a plan may take where nothing else is asked for.
const (
	// DefaultBudget is about how long the goldens and one candidate may take, on two cores.
	DefaultBudget = 2 * time.Minute
	DefaultBytes  = 256 << 20 // of goldens, which are kept in the repository
)

// AheadOfMAX is how many positions MAX wants after a prompt: for a token, and for one more that keeps its cache until
// that is read. MAX 26.7, November 2026.
const AheadOfMAX = 2

// What a run costs: a tiny Llama's plan was said to take 32 s with torch 2.15 on two cores, and took 29 s, November 2026.
const (
	// macsPerSecond are multiply-adds in float32, torch's on two cores.
	macsPerSecond   = 8e9
	bytesPerSecond  = 150e6 // written, hashed, read and compared
	weightsPerSec   = 400e6 // bytes of float32 loaded
	passSeconds     = 0.01  // a forward pass of a model whatever its size, its record with it
	startSeconds    = 15.0  // imports of both engines
	sides           = 3     // the reference makes goldens, and measures its paths; the candidate runs
	portsPerHidden  = 14.0  // recorded tensors of the residual width in a block: a Llama's inputs and outputs
	portsPerInner   = 4.0   // of the width of its feed-forward network
	defaultExpand   = 4     // the feed-forward network's width where the config does not say
	extra           = 4     // tokens after the longest boundary, so that decode crosses it
	decoded         = 8     // tokens of the path decode
	mostChunk       = 500   // tokens of a chunk at most
	mostChunks      = 400   // of a sequence, where they are small
	fewTokens       = 7     // of the short case: what follows it crosses 8, a kernel's smallest tile
	fewestLayers    = 2     // of a model in part: an error of the first must reach another
	unitsPerEdge    = 4     // of images, where the model says no size of them: few, and none alike
	defaultPatch    = 14    // pixels
	imageChunk      = 32    // tokens of a chunk that ends inside of an image
	defaultVocab    = 256   // token ids where the config does not say
	manyTokens      = 1024  // fewer stand for a letter each
	lettersPerToken = 3     // of a text in English, or a little less
)
