package path

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// Page is the number of tokens of a page of MAX's KV cache: only whole pages of a prefix are found
// again.
const Page = 128

// decoded is how many tokens the paths decode and turns feed one at a time where their names do not say it.
const decoded = 8

// around are lengths at which tiles and pages of kernels begin; the path lengths without numbers
// takes them and their neighbours.
var around = []int{8, 16, 64, Page}

// Input has the tokens of a case, by sequence, and the images of those that have some.
type Input struct {
	Case   string
	Tokens [][]int
	Images [][]string
}

// sequence is what a forward pass may feed.
type sequence struct {
	ids    []int
	images []string
}

func (in Input) sequences() (out []sequence) {
	for i, ids := range in.Tokens {
		s := sequence{ids: ids}
		if i < len(in.Images) {
			s.images = in.Images[i]
		}
		out = append(out, s)
	}
	return out
}

// About says of a model what plans depend on.
type About struct {
	Window int // of its attention, in tokens; 0 for none
	Page   int // of the prefix cache, in tokens; 0 is [Page]
}

// Plan is what an engine is told to feed along an execution path.
type Plan struct {
	Path   string
	Case   string // "" for several cases together
	Tokens [][]int
	Images [][]string // of each sequence; nil where none has any
	Passes [][]dump.PassItem
}

// Name is that of the job's case.
func (p Plan) Name() string { return dump.PathCase(p.Case, p.Path) }

// planner plans a path for all cases.
type planner struct {
	dump.Path
	name   string
	inputs []Input
	about  About
	plans  []Plan
	left   []string
}

// leave says why the path is not run with a case.
func (pl *planner) leave(caseName, why string) {
	pl.left = append(pl.left, fmt.Sprintf("path %s is not run with case %s: %s", pl.name, caseName, why))
}

// Plans plans the forward passes of a path: one plan for each case, or one for all cases together
// where the path is about several sequences. Cases that are too short for the path have none;
// left says so of each, and it is an error if none is left.
func Plans(name string, inputs []Input, about About) (plans []Plan, left []string, err error) {
	p, err := dump.ParsePath(name)
	if err != nil {
		return nil, nil, err
	}
	about.Page = cmp.Or(about.Page, Page)
	pl := planner{Path: p, name: name, about: about}
	pl.withoutTwins(inputs)
	switch {
	case p.Kind == dump.Batch && p.Numbers != nil:
		pl.stepsTogether(p.Numbers[0])
	case p.Kind == dump.Batch || p.Kind == dump.Padding:
		pl.alongside()
	default:
		pl.each()
	}
	if len(pl.plans) == 0 {
		return nil, nil, fmt.Errorf("no case can take the path %s: %s", name, strings.Join(pl.left, "; "))
	}
	return pl.plans, pl.left, nil
}

// withoutTwins leaves out the cases whose tokens are those of an earlier one with other images: rows
// along a path are found by their tokens.
func (pl *planner) withoutTwins(inputs []Input) {
	for _, in := range inputs {
		twin := ""
		for _, s := range in.sequences() {
			for _, earlier := range pl.inputs {
				if slices.ContainsFunc(earlier.sequences(), func(e sequence) bool { return slices.Equal(e.ids, s.ids) && !slices.Equal(e.images, s.images) }) {
					twin = earlier.Case
				}
			}
		}
		if twin != "" {
			pl.leave(in.Case, "its tokens are those of case "+twin+", which has other images")
			continue
		}
		pl.inputs = append(pl.inputs, in)
	}
}

// each plans a path for each case by itself.
func (pl *planner) each() {
	for i, in := range pl.inputs {
		plan, lacks := Plan{Path: pl.name, Case: in.Case}, ""
		for _, s := range in.sequences() {
			if lacks == "" {
				lacks = plan.add(pl.Path, s, pl.about, func() sequence { return other(pl.inputs, i, s) })
			}
		}
		if lacks != "" {
			pl.leave(in.Case, lacks)
			continue
		}
		pl.plans = append(pl.plans, plan)
	}
}

// add plans the passes of one more sequence of a case; lacks says why the path cannot be taken with
// it. other returns another prompt.
func (p *Plan) add(path dump.Path, in sequence, about About, other func() sequence) (lacks string) {
	ids, n := in.ids, len(in.ids)
	cut := func(n int) sequence { return sequence{ids: ids[:n], images: in.images} }
	switch path.Kind {
	case dump.OnePass:
		p.feed(p.sequence(in), 0, n)
	case dump.Decode:
		k := min(decoded, n-1)
		if path.Numbers != nil {
			k = path.Numbers[0]
		}
		if k < 1 || k >= n {
			return wants(n, max(k, 1)+1)
		}
		s := p.sequence(in)
		p.feed(s, 0, n-k)
		for at := n - k; at < n; at++ {
			p.feed(s, at, at+1)
		}
	case dump.Chunked:
		chunk := path.Numbers[0]
		if n < chunk+2 || chunk == 1 {
			return wants(n, max(chunk, 2)+2) + ", in chunks of 2 or more"
		}
		s := p.sequence(in)
		for at := 0; at < n; at += chunk {
			p.feed(s, at, min(at+chunk, n))
		}
	case dump.Turns:
		return p.turns(path.Numbers, in)
	case dump.Prefix:
		pages := (n - 1) / about.Page * about.Page
		if pages == 0 {
			return wants(n, about.Page+1) + fmt.Sprintf(": a page of the cache, of %d tokens, and one more", about.Page)
		}
		beginnings := []int{pages, n, pages/2 + 1} // of the last, a cache that can be cut has more
		if in.images != nil {
			beginnings = []int{n, n} // another one may end inside of an image
		}
		for _, k := range beginnings {
			p.feed(p.sequence(cut(k)), 0, k)
		}
	case dump.Repeat:
		if path.Numbers[0] < 2 {
			return "one run is no repetition: write repeat: 2 or more"
		}
		s, between := p.sequence(in), p.sequence(other())
		for k := range path.Numbers[0] {
			if k > 0 {
				p.run(between, k > 1)
			}
			p.run(s, k > 0)
		}
	case dump.Lengths:
		return p.lengths(path.Numbers, in, about.Window)
	case dump.Mask:
		if n < 3 {
			return wants(n, 3)
		}
		m := n - n/3
		p.run(p.sequence(in), false)
		hidden := p.sequence(cut(m))
		p.Passes = append(p.Passes, []dump.PassItem{{Sequence: hidden, To: m, Hidden: ids[m:]}})
		p.run(p.sequence(cut(m)), false)
	}
	return ""
}

func wants(n, least int) string {
	return fmt.Sprintf("it has %d tokens, and the path wants %d or more", n, least)
}

// turns plans a conversation: a third of the tokens together, some one at a time, as an answer is, and again;
// what is left is the last question.
func (p *Plan) turns(numbers []int, in sequence) (lacks string) {
	const least = 2 // tokens of a question
	n, answer := len(in.ids), decoded
	if numbers != nil {
		answer = numbers[0]
	}
	question := (n - 2*answer) / 3
	if question < least {
		return wants(n, 3*least+2*answer)
	}
	s, at := p.sequence(in), 0
	for range 2 {
		p.feed(s, at, at+question)
		for at += question; at%(question+answer) != 0; at++ {
			p.feed(s, at, at+1)
		}
	}
	p.feed(s, at, n)
	return ""
}

// lengths plans a run of each beginning of a sequence of one of the lengths, or of the usual ones.
func (p *Plan) lengths(lengths []int, in sequence, window int) (lacks string) {
	n := len(in.ids)
	if in.images != nil {
		return "a beginning of it may end inside of an image"
	}
	wanted := lengths
	if lengths == nil {
		lengths = usualLengths(n, window)
	}
	lengths = slices.DeleteFunc(slices.Clone(lengths), func(k int) bool { return k > n })
	if len(lengths) < len(wanted) {
		return wants(n, slices.Max(wanted))
	}
	for _, k := range lengths {
		p.run(p.sequence(sequence{ids: in.ids[:k]}), false)
	}
	return ""
}

// sequence adds a sequence and returns its number.
func (p *Plan) sequence(s sequence) int {
	p.Tokens = append(p.Tokens, s.ids)
	if s.images != nil || p.Images != nil {
		for len(p.Images) < len(p.Tokens)-1 {
			p.Images = append(p.Images, nil)
		}
		p.Images = append(p.Images, s.images)
	}
	return len(p.Tokens) - 1
}

// feed adds a forward pass over a part of a sequence.
func (p *Plan) feed(sequence, from, to int) {
	p.Passes = append(p.Passes, []dump.PassItem{{Sequence: sequence, From: from, To: to}})
}

// run adds a forward pass over a whole sequence.
func (p *Plan) run(sequence int, again bool) {
	p.feed(sequence, 0, len(p.Tokens[sequence]))
	p.Passes[len(p.Passes)-1][0].Fresh = again
}

// usualLengths are 1, 2, and those around the window and what kernels take at a time, up to n.
func usualLengths(n, window int) (out []int) {
	out = []int{1, 2}
	if window > 0 {
		out = append(out, window-1, window, window+1)
	}
	for _, k := range around {
		out = append(out, k-1, k, k+1)
	}
	out = append(out, n)
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(k int) bool { return k < 1 || k > n })
}

// other returns another prompt: that of another case, with images if this one has some, else the same
// tokens in another order.
func other(inputs []Input, i int, s sequence) sequence {
	for _, alike := range []bool{true, false} {
		for j := range inputs {
			for _, o := range inputs[(i+j)%len(inputs)].sequences() {
				if !slices.Equal(o.ids, s.ids) && (!alike || (o.images != nil) == (s.images != nil)) {
					return o
				}
			}
		}
	}
	back := sequence{ids: slices.Clone(s.ids), images: s.images}
	slices.Reverse(back.ids)
	if !slices.Equal(back.ids, s.ids) || len(s.ids) == 1 {
		return back
	}
	return sequence{ids: s.ids[1:]}
}

// alongside plans a path of several sequences: one plan for all cases without images, and one for those
// with some.
func (pl *planner) alongside() {
	var texts, images []Input
	for _, in := range pl.inputs {
		if in.Images == nil {
			texts = append(texts, in)
		} else {
			images = append(images, in)
		}
	}
	if len(texts) > 0 {
		pl.together(texts)
	}
	switch {
	case len(images) > 1:
		pl.together(images)
	case len(images) == 1:
		pl.leave(images[0].Case, "no other case has images")
	}
}

// together plans a path of several sequences: those of all cases, and where these are one, or all
// equally long where padding is asked for, beginnings of the first.
func (pl *planner) together(inputs []Input) {
	plan := Plan{Path: pl.name}
	for _, in := range inputs {
		for _, s := range in.sequences() {
			plan.sequence(s)
		}
	}
	if len(inputs) == 1 || plan.Images != nil {
		plan.Case = inputs[0].Case
	}
	first := plan.Tokens[0]
	equal := !slices.ContainsFunc(plan.Tokens, func(ids []int) bool { return len(ids) != len(first) })
	if len(plan.Tokens) == 1 || pl.Kind == dump.Padding && equal {
		switch {
		case len(first) == 1:
			pl.leave(inputs[0].Case, "all sequences have one token: give a case two or more")
			return
		case plan.Images != nil:
			pl.leave(inputs[0].Case, "a beginning of it may end inside of an image: give another one, of another length")
			return
		}
		plan.sequence(sequence{ids: first[:(len(first)+1)/2]})
		if len(first) > 3 {
			plan.sequence(sequence{ids: first[:len(first)-1]})
		}
	}
	var pass, back []dump.PassItem
	for i, ids := range plan.Tokens {
		pass = append(pass, dump.PassItem{Sequence: i, To: len(ids)})
		back = append(back, dump.PassItem{Sequence: i, To: len(ids), Fresh: true})
	}
	plan.Passes = [][]dump.PassItem{pass}
	if pl.Kind == dump.Batch {
		slices.Reverse(back)
		plan.Passes = append(plan.Passes, back)
	}
	pl.plans = append(pl.plans, plan)
}

// stepsTogether plans a batch whose last n tokens are fed one at a time, of the sequences that have more; of a
// single one beside its own beginning.
func (pl *planner) stepsTogether(n int) {
	plan := Plan{Path: pl.name}
	texts := slices.DeleteFunc(slices.Clone(pl.inputs), func(in Input) bool { return in.Images != nil })
	for _, in := range pl.inputs {
		fed := len(plan.Tokens)
		for _, s := range in.sequences() {
			if len(s.ids) > n && in.Images == nil {
				plan.sequence(s)
			}
		}
		switch {
		case in.Images != nil:
			pl.leave(in.Case, "parts of sequences with images are fed alone")
		case len(plan.Tokens) == fed:
			pl.leave(in.Case, fmt.Sprintf("it wants %d tokens or more", n+1))
		case len(texts) == 1:
			plan.Case = in.Case
		}
	}
	if len(plan.Tokens) == 1 && len(plan.Tokens[0]) > n+1 {
		plan.sequence(sequence{ids: plan.Tokens[0][:max((len(plan.Tokens[0])+1)/2, n+1)]})
	}
	if len(plan.Tokens) < 2 {
		pl.left = append(pl.left, fmt.Sprintf("path %s wants two sequences of %d tokens or more", pl.name, n+1))
		return
	}
	for k := n; k >= 0; k-- {
		var pass []dump.PassItem
		for i, ids := range plan.Tokens {
			item := dump.PassItem{Sequence: i, To: len(ids) - k}
			if k < n {
				item.From = item.To - 1
			}
			pass = append(pass, item)
		}
		plan.Passes = append(plan.Passes, pass)
	}
	pl.plans = append(pl.plans, plan)
}
