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

// decoded is how many tokens the path decode feeds one at a time where its name does not say it.
const decoded = 8

// around are lengths at which tiles and pages of kernels begin; the path lengths without numbers
// takes them and their neighbours.
var around = []int{8, 16, 64, Page}

// Input has the tokens of a case, by sequence.
type Input struct {
	Case   string
	Tokens [][]int
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
	if p.Kind == dump.Batch || p.Kind == dump.Padding {
		plan, err := together(p, inputs)
		if err != nil {
			return nil, nil, fmt.Errorf("path %s: %w", name, err)
		}
		plan.Path = name
		return []Plan{plan}, nil, nil
	}
	about.Page = cmp.Or(about.Page, Page)
	for i, in := range inputs {
		plan := Plan{Path: name, Case: in.Case}
		lacks := ""
		for _, ids := range in.Tokens {
			lacks = plan.add(p, ids, about, func() []int { return other(inputs, i, ids) })
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

// add plans the passes of one more sequence of a case; lacks says why the path cannot be taken with
// it. other returns tokens of another prompt.
func (p *Plan) add(path dump.Path, ids []int, about About, other func() []int) (lacks string) {
	n := len(ids)
	wants := func(least int) string {
		return fmt.Sprintf("it has %d tokens, and the path wants %d or more", n, least)
	}
	switch path.Kind {
	case dump.OnePass:
		p.feed(p.sequence(ids), 0, n)
	case dump.Decode:
		k := min(decoded, n-1)
		if path.Numbers != nil {
			k = path.Numbers[0]
		}
		if k < 1 || k >= n {
			return wants(max(k, 1) + 1)
		}
		s := p.sequence(ids)
		p.feed(s, 0, n-k)
		for at := n - k; at < n; at++ {
			p.feed(s, at, at+1)
		}
	case dump.Chunked:
		chunk := path.Numbers[0]
		if n < chunk+2 || chunk == 1 {
			return wants(max(chunk, 2)+2) + ", in chunks of 2 or more"
		}
		s := p.sequence(ids)
		for at := 0; at < n; at += chunk {
			p.feed(s, at, min(at+chunk, n))
		}
	case dump.Prefix:
		pages := (n - 1) / about.Page * about.Page
		if pages == 0 {
			return wants(about.Page+1) + fmt.Sprintf(": a page of the cache, of %d tokens, and one more", about.Page)
		}
		p.feed(p.sequence(ids), 0, n)
		p.feed(p.sequence(ids[:pages+1]), 0, pages+1)
	case dump.Repeat:
		if path.Numbers[0] < 2 {
			return "one run is no repetition: write repeat: 2 or more"
		}
		s, between := p.sequence(ids), p.sequence(other())
		for k := range path.Numbers[0] {
			if k > 0 {
				p.run(between, k > 1)
			}
			p.run(s, k > 0)
		}
	case dump.Lengths:
		lengths := path.Numbers
		if lengths == nil {
			lengths = usualLengths(n, about.Window)
		}
		lengths = slices.DeleteFunc(slices.Clone(lengths), func(k int) bool { return k > n })
		if len(lengths) < len(path.Numbers) {
			return wants(slices.Max(path.Numbers))
		}
		for _, k := range lengths {
			p.run(p.sequence(ids[:k]), false)
		}
	case dump.Mask:
		if n < 3 {
			return wants(3)
		}
		m := n - n/3
		p.run(p.sequence(ids), false)
		hidden := p.sequence(ids[:m])
		p.Passes = append(p.Passes, []dump.PassItem{{Sequence: hidden, To: m, Hidden: ids[m:]}})
		p.run(p.sequence(ids[:m]), false)
	}
	return ""
}

// sequence adds a sequence and returns its number.
func (p *Plan) sequence(ids []int) int {
	p.Tokens = append(p.Tokens, ids)
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

// other returns tokens of another prompt: those of another case, else the same ones in another
// order.
func other(inputs []Input, i int, ids []int) []int {
	for j := range inputs {
		for _, tokens := range inputs[(i+j)%len(inputs)].Tokens {
			if !slices.Equal(tokens, ids) {
				return tokens
			}
		}
	}
	back := slices.Clone(ids)
	slices.Reverse(back)
	if !slices.Equal(back, ids) || len(ids) == 1 {
		return back
	}
	return ids[1:]
}

// together plans a path of several sequences: those of all cases, and where these are one, or all
// equally long where padding is asked for, beginnings of the first.
func together(p dump.Path, inputs []Input) (plan Plan, err error) {
	if len(inputs) == 1 {
		plan.Case = inputs[0].Case
	}
	for _, in := range inputs {
		plan.Tokens = append(plan.Tokens, in.Tokens...)
	}
	first := plan.Tokens[0]
	equal := !slices.ContainsFunc(plan.Tokens, func(ids []int) bool { return len(ids) != len(first) })
	if len(plan.Tokens) == 1 || p.Kind == dump.Padding && equal {
		if len(first) == 1 {
			return plan, fmt.Errorf("all sequences have one token: give a case two or more")
		}
		plan.Tokens = append(plan.Tokens, first[:(len(first)+1)/2])
		if len(first) > 3 {
			plan.Tokens = append(plan.Tokens, first[:len(first)-1])
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
