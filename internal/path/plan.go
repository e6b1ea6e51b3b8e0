package path

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/vec"
)

// Page is the number of tokens of a page of MAX's KV cache: only whole pages of a prefix are found
// again.
const Page = 128

// decoded is how many tokens the paths decode and turns feed one at a time where their names do not say it.
const decoded = 8

// leastQuestion is how many tokens the path turns feeds together, at least.
const leastQuestion = 2

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
	number int // the first of the path's; 0 for none
	inputs []Input
	about  About
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
	pl := planner{Path: p, name: name, number: slices.Concat(p.Numbers, []int{0})[0], about: about}
	pl.withoutTwins(inputs)
	for _, group := range pl.groups() {
		plan, lacks := Plan{Path: name, Case: group[0].Case}, ""
		if p.Kind == dump.Batch || p.Kind == dump.Padding {
			lacks = pl.together(&plan, group)
		} else {
			for _, s := range group[0].sequences() {
				lacks = cmp.Or(lacks, pl.add(&plan, group[0], s))
			}
		}
		if lacks != "" {
			pl.leave(group[0].Case, lacks)
			continue
		}
		if !slices.ContainsFunc(plan.Images, func(of []string) bool { return of != nil }) {
			plan.Images = nil
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("no case can take the path %s: %s", name, strings.Join(pl.left, "; "))
	}
	return plans, pl.left, nil
}

// groups lists the cases that have one plan: all without images, and all with some, of a path of several
// sequences, else each by itself.
func (pl *planner) groups() [][]Input {
	if pl.Kind != dump.Batch && pl.Kind != dump.Padding {
		return slices.Collect(slices.Chunk(pl.inputs, 1))
	}
	var both [2][]Input
	for _, in := range pl.inputs {
		switch {
		case in.Images == nil:
			both[0] = append(both[0], in)
		case pl.number > 0:
			pl.leave(in.Case, "parts of sequences with images are fed alone")
		default:
			both[1] = append(both[1], in)
		}
	}
	return slices.DeleteFunc(both[:], func(group []Input) bool { return group == nil })
}

// withoutTwins leaves out the cases whose tokens are those of an earlier one with other images: rows
// along a path are found by their tokens.
func (pl *planner) withoutTwins(inputs []Input) {
	for _, in := range inputs {
		of := in.sequences()
		isTwin := func(e sequence) bool {
			return slices.ContainsFunc(of, func(s sequence) bool { return slices.Equal(e.ids, s.ids) && !slices.Equal(e.images, s.images) })
		}
		hasTwin := func(earlier Input) bool { return slices.ContainsFunc(earlier.sequences(), isTwin) }
		if i := slices.IndexFunc(pl.inputs, hasTwin); i >= 0 {
			pl.leave(in.Case, "its tokens are those of case "+pl.inputs[i].Case+", which has other images")
			continue
		}
		pl.inputs = append(pl.inputs, in)
	}
}

// way is how a sequence is fed along a path.
type way struct {
	least      int               // how many tokens it has to have
	why        string            // that
	beginnings []int             // how many of its tokens are fed, as a sequence for each
	ends       func(n int) []int // of the forward passes over n of them
}

// add plans the passes of one more sequence of a case; lacks says why the path cannot be taken with it.
func (pl *planner) add(p *Plan, of Input, in sequence) (lacks string) {
	n, page, number := len(in.ids), pl.about.Page, pl.number
	steps, answer := cmp.Or(number, min(decoded, n-1)), cmp.Or(number, decoded)
	turn, pages, shown := (n-2*answer)/3+answer, (n-1)/page*page, n-n/3
	cuts, lengths := []int{pages, n, pages/2 + 1}, pl.Numbers // of the last, a cache that can be cut has more
	if in.images != nil {
		cuts = []int{n, n} // another one may end inside of an image
	}
	if lengths == nil {
		lengths = usualLengths(n, pl.about.Window)
	}
	chunks := func(n int) (ends []int) {
		for at := number; at < n; at += number {
			ends = append(ends, at)
		}
		return append(ends, n)
	}
	turns := func(n int) []int { // a third together, an answer one at a time, and again; then the last question
		return slices.Concat(lastOneByOne(answer)(turn), lastOneByOne(answer)(2*turn), []int{n})
	}
	w := map[string]way{
		dump.OnePass: {1, "", []int{n}, atOnce},
		dump.Decode:  {max(steps, 1) + 1, "", []int{n}, lastOneByOne(steps)},
		dump.Chunked: {max(number, 2) + 2, ", in chunks of 2 or more", []int{n}, chunks},
		dump.Turns:   {3*leastQuestion + 2*answer, "", []int{n}, turns},
		dump.Prefix:  {page + 1, fmt.Sprintf(": a page of the cache, of %d tokens, and one more", page), cuts, atOnce},
		dump.Lengths: {slices.Max(append(slices.Clip(lengths), 1)), "", lengths, atOnce},
		dump.Mask:    {3, "", []int{n, shown, shown}, atOnce},
	}[pl.Kind]
	switch {
	case pl.Kind == dump.Repeat && number < 2:
		return "one run is no repetition: write repeat: 2 or more"
	case pl.Kind == dump.Lengths && in.images != nil:
		return "a beginning of it may end inside of an image"
	case n < w.least || pl.Kind == dump.Chunked && number == 1:
		return fmt.Sprintf("it has %d tokens, and the path wants %d or more%s", n, w.least, w.why)
	case pl.Kind == dump.Repeat:
		both := []int{p.sequence(in), p.sequence(pl.other(of, in))}
		for k := range 2*number - 1 {
			p.feed(atOnce, both[k%2])
			p.Passes[len(p.Passes)-1][0].Fresh = k > 1
		}
	}
	for k, to := range w.beginnings {
		p.feed(w.ends, p.sequence(sequence{in.ids[:to], in.images}))
		if pl.Kind == dump.Mask && k == 1 {
			p.Passes[len(p.Passes)-1][0].Hidden = in.ids[to:]
		}
	}
	return ""
}

// sequence adds a sequence and returns its number.
func (p *Plan) sequence(s sequence) int {
	p.Tokens, p.Images = append(p.Tokens, s.ids), append(p.Images, s.images)
	return len(p.Tokens) - 1
}

// feed adds forward passes that feed sequences together: each of them, of n tokens, up to its next end.
func (p *Plan) feed(ends func(n int) []int, sequences ...int) {
	var passes [][]dump.PassItem
	for _, s := range sequences {
		from := 0
		for k, to := range ends(len(p.Tokens[s])) {
			if k == len(passes) {
				passes = append(passes, nil)
			}
			passes[k] = append(passes[k], dump.PassItem{Sequence: s, From: from, To: to})
			from = to
		}
	}
	p.Passes = append(p.Passes, passes...)
}

// atOnce says that all tokens are fed together.
var atOnce = lastOneByOne(0)

// lastOneByOne says that the last k tokens are fed one at a time, after the others.
func lastOneByOne(k int) func(n int) []int {
	return func(n int) (ends []int) {
		for at := n - k; at <= n; at++ {
			ends = append(ends, at)
		}
		return ends
	}
}

// usualLengths are 1, 2, and those around the window and what kernels take at a time, up to n.
func usualLengths(n, window int) (out []int) {
	out = []int{1, 2, n}
	for _, k := range slices.Concat(around, []int{window}) {
		out = append(out, k-1, k, k+1)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(k int) bool { return k < 1 || k > n })
}

// other returns another prompt than a sequence of a case: that of another case, with images if this one has some, else
// the same tokens in another order.
func (pl *planner) other(in Input, s sequence) sequence {
	i := slices.IndexFunc(pl.inputs, func(o Input) bool { return o.Case == in.Case })
	for _, alike := range []bool{true, false} {
		for _, o := range slices.Concat(pl.inputs[i:], pl.inputs[:i]) {
			for _, o := range o.sequences() {
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

// together plans a path of several sequences: those of all cases, and where these are one, or all
// equally long where padding is asked for, beginnings of the first. lacks says why the cases cannot take it.
func (pl *planner) together(plan *Plan, inputs []Input) (lacks string) {
	steps := pl.number // so many of the last tokens are fed one at a time
	for _, in := range inputs {
		before := len(plan.Tokens)
		for _, s := range in.sequences() {
			if len(s.ids) > steps {
				plan.sequence(s)
			}
		}
		if len(plan.Tokens) == before {
			pl.leave(in.Case, fmt.Sprintf("it wants %d tokens or more", steps+1))
		}
	}
	if plan.Tokens == nil || steps > 0 && len(plan.Tokens) == 1 && len(plan.Tokens[0]) == steps+1 {
		return fmt.Sprintf("it wants two sequences of %d tokens or more", steps+1)
	}
	images := inputs[0].Images != nil
	if len(inputs) > 1 && !images {
		plan.Case = ""
	}
	first := plan.Tokens[0]
	n := len(first)
	equal := !slices.ContainsFunc(plan.Tokens, func(ids []int) bool { return len(ids) != n })
	switch {
	case images && len(inputs) == 1:
		return "no other case has images"
	case len(plan.Tokens) > 1 && (pl.Kind == dump.Batch || !equal):
	case n == 1:
		return "all sequences have one token: give a case two or more"
	case images:
		return "a beginning of it may end inside of an image: give another one, of another length"
	default:
		plan.sequence(sequence{ids: first[:max((n+1)/2, steps+1)]})
		if steps == 0 && n > 3 {
			plan.sequence(sequence{ids: first[:n-1]})
		}
	}
	plan.feed(lastOneByOne(steps), vec.Sequence(len(plan.Tokens))...)
	if pl.Kind == dump.Batch && steps == 0 {
		back := slices.Clone(plan.Passes[0])
		slices.Reverse(back)
		for i := range back {
			back[i].Fresh = true
		}
		plan.Passes = append(plan.Passes, back)
	}
	return ""
}
