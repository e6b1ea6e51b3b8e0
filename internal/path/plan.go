package path

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// Page is the number of tokens of a page of MAX's KV cache: only whole pages of a prefix are found
// again.
const Page = 128

// decoded is how many tokens the path decode feeds one at a time where its name does not say it.
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

// Plans plans the forward passes of a path: one plan for each case, or one for all cases together
// where the path is about several sequences. Cases that are too short for the path have none;
// left says so of each, and it is an error if none is left.
func Plans(name string, inputs []Input, about About) (plans []Plan, left []string, err error) {
	p, err := dump.ParsePath(name)
	if err != nil {
		return nil, nil, err
	}
	if inputs, left = withoutTwins(name, inputs); len(inputs) == 0 {
		return nil, nil, fmt.Errorf("no case can take the path %s: %s", name, strings.Join(left, "; "))
	}
	if p.Kind == dump.Batch || p.Kind == dump.Padding {
		return alongside(p, name, inputs, left)
	}
	about.Page = cmp.Or(about.Page, Page)
	for i, in := range inputs {
		plan := Plan{Path: name, Case: in.Case}
		lacks := ""
		for _, s := range in.sequences() {
			lacks = plan.add(p, s, about, func() sequence { return other(inputs, i, s) })
			if lacks != "" {
				break
			}
		}
		if lacks != "" {
			left = append(left, fmt.Sprintf("path %s is not run with case %s: %s", name, in.Case, lacks))
			continue
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("no case can take the path %s: %s", name, strings.Join(left, "; "))
	}
	return plans, left, nil
}

// withoutTwins leaves out the cases whose tokens are those of an earlier one with other images: rows
// along a path are found by their tokens.
func withoutTwins(name string, inputs []Input) (out []Input, left []string) {
	for _, in := range inputs {
		twin := ""
		for _, s := range in.sequences() {
			for _, earlier := range out {
				if slices.ContainsFunc(earlier.sequences(), func(e sequence) bool { return slices.Equal(e.ids, s.ids) && !slices.Equal(e.images, s.images) }) {
					twin = earlier.Case
				}
			}
		}
		if twin != "" {
			left = append(left, fmt.Sprintf("path %s is not run with case %s: its tokens are those of case %s, which has other images", name, in.Case, twin))
			continue
		}
		out = append(out, in)
	}
	return out, left
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
	case dump.Prefix:
		pages := (n - 1) / about.Page * about.Page
		if pages == 0 {
			return wants(n, about.Page+1) + fmt.Sprintf(": a page of the cache, of %d tokens, and one more", about.Page)
		}
		again := pages + 1
		if in.images != nil {
			again = n // a beginning may end inside of an image
		}
		p.feed(p.sequence(in), 0, n)
		p.feed(p.sequence(cut(again)), 0, again)
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
func alongside(p dump.Path, name string, inputs []Input, left []string) (plans []Plan, _ []string, _ error) {
	var texts, images []Input
	for _, in := range inputs {
		switch {
		case in.Images == nil:
			texts = append(texts, in)
		case p.Numbers == nil:
			images = append(images, in)
		default:
			left = append(left, fmt.Sprintf("path %s is not run with case %s: parts of sequences with images are fed alone", name, in.Case))
		}
	}
	if p.Numbers != nil {
		return stepsTogether(p.Numbers[0], name, texts, left)
	}
	if len(texts) > 0 {
		plan, err := together(p, texts)
		if err != nil {
			return nil, nil, fmt.Errorf("path %s: %w", name, err)
		}
		plan.Path = name
		plans = append(plans, plan)
	}
	switch {
	case len(images) > 1:
		plan, err := together(p, images)
		if err != nil {
			return nil, nil, fmt.Errorf("path %s: %w", name, err)
		}
		plan.Path, plan.Case = name, images[0].Case
		plans = append(plans, plan)
	case len(images) == 1:
		left = append(left, fmt.Sprintf("path %s is not run with case %s: no other case has images", name, images[0].Case))
	}
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("no case can take the path %s: %s", name, strings.Join(left, "; "))
	}
	return plans, left, nil
}

// stepsTogether plans a batch whose last n tokens are fed one at a time, of the sequences that have more; of a
// single one beside its own beginning.
func stepsTogether(n int, name string, inputs []Input, left []string) (plans []Plan, _ []string, _ error) {
	plan, several := Plan{Path: name}, len(inputs) > 1
	for _, in := range inputs {
		fed := len(plan.Tokens)
		for _, s := range in.sequences() {
			if len(s.ids) > n {
				plan.sequence(s)
			}
		}
		if len(plan.Tokens) == fed {
			left = append(left, fmt.Sprintf("path %s is not run with case %s: it wants %d tokens or more", name, in.Case, n+1))
		} else if !several {
			plan.Case = in.Case
		}
	}
	if len(plan.Tokens) == 1 && len(plan.Tokens[0]) > n+1 {
		plan.sequence(sequence{ids: plan.Tokens[0][:max((len(plan.Tokens[0])+1)/2, n+1)]})
	}
	if len(plan.Tokens) < 2 {
		return nil, nil, fmt.Errorf("path %s wants two sequences of %d tokens or more: %s", name, n+1, strings.Join(left, "; "))
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
	return []Plan{plan}, left, nil
}

// together plans a path of several sequences: those of all cases, and where these are one, or all
// equally long where padding is asked for, beginnings of the first.
func together(p dump.Path, inputs []Input) (plan Plan, err error) {
	if len(inputs) == 1 {
		plan.Case = inputs[0].Case
	}
	for _, in := range inputs {
		for _, s := range in.sequences() {
			plan.sequence(s)
		}
	}
	first := plan.Tokens[0]
	equal := !slices.ContainsFunc(plan.Tokens, func(ids []int) bool { return len(ids) != len(first) })
	if len(plan.Tokens) == 1 || p.Kind == dump.Padding && equal {
		if len(first) == 1 {
			return plan, fmt.Errorf("all sequences have one token: give a case two or more")
		}
		if plan.Images != nil {
			return plan, errors.New("a beginning of a case may end inside of an image: give another one, of another length")
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
	if p.Kind == dump.Batch {
		slices.Reverse(back)
		plan.Passes = append(plan.Passes, back)
	}
	return plan, nil
}
