package localise

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// incoming returns the largest error of what an event was made of: its layer's inputs, and what
// existed inside a container before; if none was recorded, the inputs of the container around it.
func (p *pass) incoming(i int) float64 {
	e := &p.events[i]
	leaf := !p.hasJoinedChild(e.Layer)
	if in := p.inputsOf(e.Layer); !e.Input && leaf && in.numbers > 0 {
		return max(e.Epsilon, in.error)
	}
	scope := e.Layer
	if e.Input || leaf {
		scope = p.Container(e.Layer)
	}
	for {
		most, ok := p.before(scope, i)
		around := p.Container(scope)
		if ok || around == scope {
			return max(e.Epsilon, most)
		}
		scope = around
	}
}

// made reports whether an event's error is larger than what came in by a factor.
func (p *pass) made(i int, factor float64) bool {
	return p.events[i].Error > factor*p.incoming(i)
}

// source returns the earlier event that an error comes from which is hardly more than what came in:
// the first one that is sure by itself and has a tenth of the error; −1 if there is none. What
// still disagrees before it was left out as a wrong recording.
func (p *pass) source(i int) int {
	for j := range p.events[:i] {
		if o := &p.events[j]; o.known() && !o.Integer && o.Error*sure >= p.events[i].Error && p.made(j, sure) && !p.amplified(j) {
			return j
		}
	}
	return -1
}

// weak reports whether an error is hardly more than what came in and, where that is known, much
// less on golden inputs. After a first such error the next ones must be surer.
func (p *pass) weak(i int, after bool) bool {
	e := &p.events[i]
	if e.Beyond {
		return false
	}
	alone := e.Alone
	if e.Epsilon >= finest && !p.run.Nested && p.hasJoinedChild(e.Layer) {
		alone = nil // a container that ran by itself has the roundings of everything inside it
	}
	if e.Integer || alone != nil && !alone.Agrees || !e.Input && !p.preceded(i) && math.IsNaN(p.own(i)) {
		return false
	}
	if p.clear(i) {
		return false
	}
	factor := float64(jump)
	if e.Epsilon >= finest && (e.Input || p.hasJoinedChild(e.Layer)) {
		factor = mixing
	}
	if e.Error <= min(slight*e.Epsilon, gross) || after && e.Error < gross {
		factor = sure
	}
	if (alone == nil || jump*alone.Error < e.Error) && !p.made(i, factor) {
		return true
	}
	if e.Epsilon >= finest && e.Error <= slight*e.Epsilon && alone == nil && !p.made(i, fewRows) && p.run.FewRows != nil && p.run.FewRows(e.Index) {
		return true
	}
	return p.amplified(i)
}

// preceded reports whether both sides recorded anything before an event: else nothing adds up.
func (p *pass) preceded(i int) bool {
	if p.earliest.input < i && p.events[p.earliest.input].Layer != p.events[i].Layer {
		return true
	}
	return min(p.earliest.output, p.earliest.other) < i
}

// clear reports whether the output of a layer in 16 bits is off by more than its gain makes of the
// input row's error, and the whole tensor by more than the whole input, although its worst row may
// be hardly worse. Both must exceed twice a jump: clean layers came to an excess of 2.
func (p *pass) clear(i int) bool {
	e := &p.events[i]
	if e.Epsilon < finest || e.Alone != nil || e.Input || p.hasJoinedChild(e.Layer) {
		return false
	}
	in := max(e.Epsilon, p.inputsOf(e.Layer).whole)
	return e.Whole > 2*jump*in && p.own(i) > 2*jump
}

// amplified reports whether the output of a layer is in no row off by much more than its gain makes
// of the input row's error: far more than that error itself where large terms cancel.
func (p *pass) amplified(i int) bool {
	return p.own(i) <= jump
}

// own returns the excess of a layer without matched children and with one float input; NaN if
// unknown.
func (p *pass) own(i int) float64 {
	e := &p.events[i]
	if p.run.Excess == nil || e.Input || !e.Joined || e.Integer || p.hasJoinedChild(e.Layer) {
		return math.NaN()
	}
	if x, ok := p.excess[i]; ok {
		return x
	}
	x := math.NaN()
	if in := p.inputsOf(e.Layer); in.floats == 1 && in.float.Joined {
		x = p.run.Excess(in.float.Index, e.Index)
	}
	p.excess[i] = x
	return x
}

// Explained reports whether rounding explains a drift: no layer whose excess is known makes more of
// its input's error in any row. It reads the tensors of all layers that disagree.
func (v *Verdict) Explained() bool {
	for _, d := range v.all {
		if d.Kind != KindDrift {
			return false
		}
		told := false
		for _, i := range d.pass.noise {
			x := d.pass.own(i)
			if x > jump {
				return false
			}
			told = told || x <= jump
		}
		if !told {
			return false
		}
	}
	return len(v.all) > 0
}

// blocks groups the ports that blocks built alike have in common: the same port of layers whose
// labels differ in one number.
func (p *pass) blocks() map[string][]int {
	if p.alikes == nil {
		p.alikes = map[string][]int{}
		for i := range p.events {
			if p.events[i].Joined {
				for _, key := range p.events[i].patterns() {
					p.alikes[key] = append(p.alikes[key], i)
				}
			}
		}
	}
	return p.alikes
}

// patterns lists the label and port with one number left out, for each number.
func (e *event) patterns() []string {
	keys := label.Alike(e.Layer)
	for i := range keys {
		keys[i] = label.Join(keys[i], e.Port)
	}
	return keys
}

// siblings returns the same port of all blocks that are built alike, event i among them.
func (p *pass) siblings(i int) []*event {
	var most []int
	for _, key := range p.events[i].patterns() {
		if found := p.blocks()[key]; len(found) > len(most) {
			most = found
		}
	}
	return p.at(most)
}

func (p *pass) at(events []int) (out []*event) {
	for _, i := range events {
		out = append(out, &p.events[i])
	}
	return out
}

// accumulated returns the verdict where nothing made an error, i being the first event beyond the
// noise.
func (p *pass) accumulated(i int) *Verdict {
	e := &p.events[i]
	return p.drift(i, fmt.Sprintf("%s of %s is the first beyond the noise, with no more than what came in can make", e.Port, e.Layer))
}

// spread returns the verdict if event i is no layer's own error, because every block that is built
// alike rounds its result or has as small an error that is like noise; else nil.
func (p *pass) spread(i int) *Verdict {
	e := &p.events[i]
	if e.Beyond {
		return nil
	}
	blocks := p.siblings(i)
	if e.Input {
		// The blocks' results, where these were not recorded; the first block was given none.
		blocks = slices.DeleteFunc(blocks, func(b *event) bool { return b.At < e.At })
		if !rounded(blocks) {
			return nil
		}
		return p.drift(i, fmt.Sprintf("what each of %d blocks is given is rounded to %.2g, and none is off by more", len(blocks), e.Grid))
	}
	inner := p.hasJoinedChild(e.Layer)
	switch {
	case rounded(blocks):
		return p.drift(i, fmt.Sprintf("each of the %d blocks rounds its result to %.2g, and none does more", len(blocks), e.Grid))
	case math.Abs(e.Along) > unlike:
		return nil
	case inner && noisy(blocks):
		return p.drift(i, fmt.Sprintf("each of the %d blocks adds about %.2g by itself, like noise, and none more than the others", len(blocks), e.Alone.Error))
	case inner && climbing(blocks):
		return p.drift(i, fmt.Sprintf("each of the %d blocks adds about %.2g, like noise, and none more than the others", len(blocks), e.Error))
	case !inner:
		if n := p.alike(i); n >= kinds {
			return p.drift(i, fmt.Sprintf("%d kinds of layers are off by about %.2g by themselves, like noise, and none more than the others", n, e.Error))
		}
	}
	return nil
}

func (p *pass) drift(i int, why string) *Verdict {
	v := &Verdict{Kind: KindDrift, Proven: true, at: i, Text: "no layer is wrong by itself, the errors add up: " + why}
	blocks := p.siblings(i)
	if len(blocks) < 2 {
		blocks = p.deepest()
	}
	for _, b := range blocks {
		g := Growth{Layer: b.Layer, Error: b.Error, Alone: math.NaN()}
		if b.Alone != nil {
			g.Alone = b.Alone.Error
		}
		v.Growth = append(v.Growth, g)
	}
	return v
}

// deepest returns the outputs of the longest series of blocks that are built alike, of several the
// outermost.
func (p *pass) deepest() []*event {
	var most []int
	for _, found := range p.blocks() {
		e := &p.events[found[0]]
		if e.Input {
			continue
		}
		if len(most) > 0 {
			o := &p.events[most[0]]
			if c := cmp.Or(len(most)-len(found), label.Depth(e.Layer)-label.Depth(o.Layer), found[0]-most[0]); c > 0 {
				continue
			}
		}
		most = found
	}
	return p.at(most)
}

// rounded reports whether all of several blocks lie on the grid of a narrower type, and the first
// is off by no more than that rounding.
func rounded(blocks []*event) bool {
	for _, b := range blocks {
		if b.Grid == 0 || b.Grid > finest {
			return false
		}
	}
	return len(blocks) > 1 && blocks[0].Error <= 2*blocks[0].Grid
}

// noisy reports whether all of several blocks have by themselves an error of the same small size.
func noisy(blocks []*event) bool {
	least, most := math.Inf(1), 0.0
	for _, b := range blocks {
		if b.Alone == nil || b.Epsilon == 0 {
			return false
		}
		least, most = min(least, b.Alone.Error), max(most, b.Alone.Error)
	}
	return len(blocks) >= roundBlocks && least > 0 && most <= alike*least && most <= finest/2
}

// climbing reports, without a run on golden inputs, whether the square of the error of n blocks
// ends near n times the first one's and hardly falls on the way, as it does when each block adds
// noise of its own. That holds for the whole tensor; single rows fall and climb.
func climbing(blocks []*event) bool {
	n := len(blocks)
	if n < climbBlocks || blocks[0].Epsilon == 0 || blocks[0].Error > finest/2 {
		return false
	}
	for i, b := range blocks[1:] {
		if b.Whole < climb*blocks[i].Whole {
			return false
		}
	}
	total := math.Pow(blocks[n-1].Whole/blocks[0].Whole, 2) / float64(n)
	return total*alike >= 1 && total <= alike
}

// alike counts the kinds of layers without children that make an error of the size of event i by
// themselves: on golden inputs or, without such a run, on inputs that agree. Names that
// differ only in numbers are of one kind.
func (p *pass) alike(i int) int {
	e := &p.events[i]
	own := func(o *event) float64 {
		if o.Alone != nil {
			return o.Alone.Error
		}
		if p.inputsOf(o.Layer).wrong > 0 {
			return 0
		}
		return o.Error
	}
	size := own(e)
	if e.Epsilon == 0 || size == 0 || size > finest/2 {
		return 0
	}
	found := map[string]bool{}
	for j := range p.events {
		o := &p.events[j]
		if o.Input || !o.Joined || p.hasJoinedChild(o.Layer) || math.Abs(o.Along) > unlike {
			continue
		}
		if x := own(o); x*alike >= size && x <= size*alike {
			found[label.Kind(o.Layer)] = true
		}
	}
	return len(found)
}
