// Package battery plans the inputs that a model is tried with where nobody chose any: token ids and
// execution paths that cross every length at which it begins to compute something else, as far as a
// budget of time and bytes goes, conversations where there is a chat template, and pictures where the
// model takes images. What is left out is said. It reads settings alone: no weights.
package battery

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/path"
)

// Prefix begins the name of each case that is planned.
const Prefix = "auto-"

// Text is the prompt of the case of a text: words, numbers, an accent, other scripts, code.
const Text = "The quick brown fox paid 3,141.59 for a naïve café in 東京 🙂.\n\n\tdef area(r): return 3.14 * r**2  # Привет"

// Options say what is planned for.
type Options struct {
	Generates bool              // the model generates text: it has a cache, and rows depend on the tokens before them alone
	Text      bool              // there is a tokenizer
	Chat      string            // its chat template; "" for none
	Images    checkpoint.Config // of what makes images fit for the model; nil where it takes none
	Ahead     int               // for how many tokens after a prompt the candidate wants positions
	Paths     []string          // names of the execution paths that the candidate can run, without numbers
	MaxLayers int               // the number of blocks that run; 0 leaves it to the plan
	Budget    time.Duration     // DefaultBudget if 0
	Bytes     int64             // of goldens; DefaultBytes if 0
}

// Of are the options that a model's folder has.
func Of(dir string, generates bool) Options {
	return Options{Generates: generates, Text: checkpoint.HasTokenizer(dir), Chat: checkpoint.ChatTemplate(dir), Images: checkpoint.ImageProcessor(dir)}
}

// Case is an input of one sequence, token ids, a prompt, or messages, and what it is for.
type Case struct {
	engine.Case
	For  string
	Cost Cost

	seen []engine.Picture // Images
}

// ids are its token ids; none of a text.
func (c *Case) ids() []int { return slices.Concat(c.TokenIDs...) }

// Path is an execution path of the cases and what it is for.
type Path struct {
	Name, For string
	Cost      Cost
}

// Plan is what a model is tried with.
type Plan struct {
	Cases     []Case
	Paths     []Path
	MaxLayers int // the first blocks that run; 0 for all
	Cost      Cost
	NotTried  []string // and why

	left []string // cases that the budget does not take
}

// New plans for the model of a config. Tokens are the same for the same config: drawn from the middle
// of the vocabulary, without those that the config names, after the one that begins a text if it names
// one. Of a model that is too large for the budget the first blocks run, one of each kind. If even its
// shortest plan is beyond the budget, it is returned all the same.
func New(c checkpoint.Config, o Options) Plan {
	o.Budget, o.Bytes = cmp.Or(o.Budget, DefaultBudget), cmp.Or(o.Bytes, DefaultBytes)
	if c["vision_config"] == nil {
		o.Images = nil
	}
	p := planner{config: c, options: o, size: sizeOf(c), sight: newSight(c, o.Images), boundaries: Boundaries(c)}
	layers := p.size.layers
	if o.MaxLayers > 0 {
		layers = min(layers, o.MaxLayers)
	}
	best := p.longest(layers)
	if few := Kinds(c, p.size.layers); o.MaxLayers == 0 && few < layers {
		if part := p.longest(few); part.longest() > best.longest() {
			part.MaxLayers = few
			best = part
		}
	}
	best.NotTried = p.notTried(best)
	return best
}

func (p Plan) longest() (n int) {
	for _, c := range p.Cases {
		n = max(n, len(c.ids()))
	}
	return n
}

type planner struct {
	config     checkpoint.Config
	options    Options
	size       size
	sight      sight
	boundaries []Boundary
}

// longest returns the plan within the budget that reaches the longest length.
func (p *planner) longest(layers int) (best Plan) {
	for i, n := range p.lengths() {
		plan := p.plan(n, layers)
		if i > 0 && (plan.Cost.Time > p.options.Budget || plan.Cost.Bytes > p.options.Bytes) {
			break
		}
		best = plan
	}
	return best
}

// lengths are those that cross boundaries, the shortest first.
func (p *planner) lengths() (out []int) {
	for _, b := range p.boundaries {
		out = append(out, p.crossing(b)...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(n int) bool { return n < fewTokens })
}

// crossing are the lengths that cross a boundary: a token less, as many, one more, and twice as many of
// what the config says, which is crossed again; or the last length that there is.
func (p *planner) crossing(b Boundary) []int {
	out := []int{b.At - 1, b.At, b.At + 1}
	switch {
	case b.Max:
		out = []int{p.most()}
	case b.Key != "":
		out = append(out, 2*b.At)
	}
	return slices.DeleteFunc(out, func(n int) bool { return n > p.most() })
}

// most is the number of tokens that the model has positions for. Encoders count them from after the
// token of padding where that is not the first (RoBERTa).
func (p *planner) most() int {
	for _, b := range p.boundaries {
		if b.Max {
			pad, _ := p.config.Int("pad_token_id")
			switch {
			case p.options.Generates:
				return b.At - p.options.Ahead
			case pad < 1:
				return b.At
			}
			return b.At - pad - 1
		}
	}
	return 1 << 30
}

// plan is the plan whose lengths go up to longest.
func (p *planner) plan(longest, layers int) (out Plan) {
	n := min(longest+extra, p.most())
	var long []Case
	out.Cases, long = p.cases(n)
	for _, c := range long {
		text := fmt.Sprintf("%s: has about %d tokens, the model has positions for %d", c.Name, p.lengthOf(c), p.most())
		out.left = append(out.left, text)
	}
	out.Cost.Time = p.size.load(layers)
	for i := range out.Cases {
		out.Cases[i].Cost = p.costOf(out.Cases[i], layers)
	}
	p.addImages(&out, layers)
	var inputs []path.Input
	for i, c := range out.Cases {
		out.Cost.add(c.Cost)
		in := path.Input{Case: c.Name, Tokens: c.TokenIDs, Images: c.Images}
		if c.TokenIDs == nil { // only how many there are is known
			in.Tokens = [][]int{slices.Repeat([]int{i}, p.lengthOf(c))}
		}
		inputs = append(inputs, in)
	}
	window, _ := p.config.Int("sliding_window")
	for _, x := range p.paths(n, longest) {
		plans, _, err := path.Plans(x.Name, inputs, path.About{Window: window})
		if err != nil {
			continue // no case is long enough
		}
		for _, plan := range plans {
			x.Cost.add(p.size.of(plan.Passes, layers, false))
		}
		out.Cost.add(x.Cost)
		out.Paths = append(out.Paths, x)
	}
	return out
}

// lengthOf is about how many tokens a case has: a text has one for a few letters, and where there are few
// tokens for each letter.
func (p *planner) lengthOf(c Case) int {
	letters := len(strings.Join(c.Prompts, ""))
	if c.Messages != nil {
		said, _ := json.Marshal([]any{c.Messages, c.Tools}) // a template writes about as much
		letters = len(said)
	}
	if p.size.vocab >= manyTokens {
		letters /= lettersPerToken
	}
	n := max(len(c.ids()), letters)
	for _, x := range c.seen {
		n += p.sight.tokens(x)
	}
	return n
}

// costOf is what the forward passes of a case cost, with those of its images.
func (p *planner) costOf(c Case, layers int) Cost {
	cost := p.size.of(steps(p.lengthOf(c), c.Steps), layers, true)
	for _, x := range c.seen {
		seen := p.sight.of(steps(p.sight.patches(x), 1), min(layers, p.sight.layers), true)
		seen.Tokens = 0 // they are counted
		cost.add(seen)
	}
	return cost
}

// steps are the forward passes of a case.
func steps(tokens, n int) (passes [][]dump.PassItem) {
	passes = append(passes, []dump.PassItem{{To: tokens}})
	for k := 1; k < n; k++ {
		passes = append(passes, []dump.PassItem{{From: tokens + k - 1, To: tokens + k}})
	}
	return passes
}

// cases are those with tokens up to n, and the texts that the model has positions for.
func (p *planner) cases(n int) (out, left []Case) {
	for _, c := range append(p.ofTokens(n), p.texts()...) {
		if len(c.TokenIDs) == 0 && p.lengthOf(c)+c.Steps > p.most() {
			left = append(left, c)
		} else {
			out = append(out, c)
		}
	}
	return out, left
}

// texts need a tokenizer.
func (p *planner) texts() (out []Case) {
	if p.options.Text {
		out = append(out, Case{Case: engine.Case{Name: Prefix + "text", Prompts: []string{Text}, Steps: 1},
			For: "a text: the tokenizer, and the token that begins it"})
	}
	return append(out, p.chats()...)
}

func (p *planner) ofTokens(n int) (out []Case) {
	add := func(name, what string, steps, n int) {
		ids := [][]int{p.tokens(uint64(len(out)+1), n)}
		out = append(out, Case{Case: engine.Case{Name: Prefix + name, TokenIDs: ids, Steps: steps}, For: what})
	}
	add("long", "every length up to it, with lengths; its end behind a cache, with decode", 1, n)
	if !p.options.Generates {
		add("few", "a second, shorter sequence: batch, repeat", 1, min(fewTokens, n))
		return out
	}
	add("few", "a second, shorter sequence: batch, repeat; tokens of its own behind few", 3, min(fewTokens, n))
	add("one", "tokens behind a single one", 3, 1)
	if b, ok := p.first(n); ok {
		add("across", "tokens of its own across "+b.String(), 5, b.At-2)
	}
	return out
}

// first is the lowest boundary of the config itself that tokens of n cross.
func (p *planner) first(n int) (Boundary, bool) {
	i := slices.IndexFunc(p.boundaries, func(b Boundary) bool { return b.Key != "" && !b.Max && b.At > fewTokens })
	if i < 0 || p.boundaries[i].At+extra > n {
		return Boundary{}, false
	}
	return p.boundaries[i], true
}

// paths are those that the candidate can run of cases with n tokens at most, and lengths up to longest.
func (p *planner) paths(n, longest int) (out []Path) {
	var lengths []string
	for _, k := range append([]int{1, 2}, p.lengths()...) {
		if k <= longest {
			lengths = append(lengths, fmt.Sprint(k))
		}
	}
	chunk := min(max(n/3, 2), mostChunk)
	small := fmt.Sprintf("%s:%d", dump.Chunked, imageChunk)
	within := fmt.Sprintf("%s:%d", dump.Chunked, p.within(n, chunk))
	for _, x := range []Path{
		{Name: dump.Lengths + ":" + strings.Join(lengths, ","), For: "each boundary: a token before it, at it, behind it"},
		{Name: fmt.Sprintf("%s:%d", dump.Decode, decoded), For: "the last tokens one at a time, across the longest boundary"},
		{Name: fmt.Sprintf("%s:%d", dump.Chunked, chunk), For: "chunked prefill, whose last chunk is not whole"},
		{Name: within, For: "chunks of which several lie in what the config counts least"},
		{Name: small, For: "chunks that end inside of an image"},
		{Name: fmt.Sprintf("%s:%d", dump.Turns, decoded), For: "several tokens behind single ones, as the next question of a conversation is"},
		{Name: dump.Batch, For: "sequences of several lengths together, in both orders"},
		{Name: fmt.Sprintf("%s:%d", dump.Batch, extra), For: "sequences of several lengths that decode together"},
		{Name: dump.Padding + ":" + dump.Left, For: "padding before a sequence"},
		{Name: dump.Padding + ":" + dump.Right, For: "padding behind a sequence"},
		{Name: dump.Prefix, For: "a prompt whose beginning is in the cache"},
		{Name: dump.Repeat + ":3", For: "the same prompt again, another one between"},
		{Name: dump.Mask, For: "tokens that the mask hides, of encoders"},
	} {
		if strings.HasPrefix(x.Name, dump.Batch+":") && !p.options.Generates { // it needs a cache
			continue
		}
		if x.Name == small && (p.options.Images == nil || chunk == imageChunk) || slices.ContainsFunc(out, func(o Path) bool { return o.Name == x.Name }) {
			continue
		}
		if slices.Contains(p.options.Paths, kindOf(x.Name)) || slices.Contains(p.options.Paths, x.Name) {
			out = append(out, x)
		}
	}
	return out
}

// within is the size of chunks of which several lie in the lowest boundary of the config itself: in a window, or in what a
// convolution looks back at. It is chunk where that is so already, or would take too many.
func (p *planner) within(n, chunk int) int {
	for _, b := range p.boundaries {
		if size := max(b.At/2, 2); b.Key != "" && !b.Max && size < chunk && n <= size*mostChunks {
			return size
		}
	}
	return chunk
}

// tokens draws n token ids, other ones for each seed.
func (p *planner) tokens(seed uint64, n int) []int {
	named := map[int]bool{}
	walk(p.config, func(string) bool { return true }, func(_ map[string]any, key string, value any) {
		list, ok := value.([]any)
		if !ok && (strings.Contains(key, "token_id") || strings.Contains(key, "token_index")) {
			list = []any{value}
		}
		for _, id := range list {
			if id, ok := id.(float64); ok && strings.Contains(key, "token") {
				named[int(id)] = true
			}
		}
	})
	low, high := p.size.vocab/8, p.size.vocab-p.size.vocab/8
	out := make([]int, 0, n)
	if bos, ok := p.config.Int("bos_token_id"); ok && bos >= 0 && bos < p.size.vocab && p.options.Generates {
		out = append(out, bos)
	}
	x := seed
	for tried := 0; len(out) < n; tried++ {
		x = x*6364136223846793005 + 1442695040888963407 // Knuth's linear congruential generator
		id := low + int((x>>33)%uint64(max(high-low, 1)))
		if !named[id] || tried > 100*n {
			out = append(out, id)
		}
	}
	return out
}

// notTried says which boundaries the plan does not cross, and what that would take.
func (p *planner) notTried(plan Plan) (out []string) {
	if plan.MaxLayers > 0 {
		out = append(out, fmt.Sprintf("blocks %d to %d: the first %d have one of each kind", plan.MaxLayers, p.size.layers-1, plan.MaxLayers))
	}
	layers := cmp.Or(plan.MaxLayers, p.options.MaxLayers, p.size.layers)
	reached := plan.longest() - extra
	if plan.longest() == p.most() {
		reached = p.most()
		if p.options.Generates && p.options.Ahead > 0 {
			out = append(out, fmt.Sprintf("the last %d positions: the engine wants them for tokens after a prompt", p.options.Ahead))
		}
	}
	for _, b := range p.boundaries {
		for _, n := range p.crossing(b) {
			if n > reached {
				out = append(out, fmt.Sprintf("%d tokens (%s): would take %s of goldens", n, b, p.plan(n, layers).Cost))
				break
			}
		}
	}
	out = append(out, plan.left...)
	if p.config["vision_config"] != nil && p.options.Images == nil {
		out = append(out, "images: the model's folder has no processor of them: give a case some")
	}
	kinds := []string{dump.Lengths, dump.Batch, dump.Padding, dump.Repeat, dump.Mask}
	if p.options.Generates {
		kinds = []string{dump.Lengths, dump.Decode, dump.Chunked, dump.Turns, dump.Batch, dump.Padding, dump.Prefix, dump.Repeat}
	}
	for _, kind := range kinds {
		why := "the engine has none"
		if slices.ContainsFunc(p.options.Paths, func(name string) bool { return kindOf(name) == kind }) {
			why = "no case is long enough"
		}
		if !slices.ContainsFunc(plan.Paths, func(x Path) bool { return kindOf(x.Name) == kind }) {
			out = append(out, "the execution path "+kind+": "+why)
		}
	}
	return out
}

// kindOf is the kind of an execution path, without its numbers.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}
