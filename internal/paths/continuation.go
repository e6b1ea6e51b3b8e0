package paths

import (
	"cmp"
	"context"
	"fmt"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// Continuation is what a generation comes to.
type Continuation struct {
	Case           string
	Golden, Actual *Side
	Encoding       tensor.DType // in which the runs were asked to compute
	generation.Result

	Notes          []string
	sampled        bool           // the golden's text is not its greedy one
	left           int            // tokens of the golden that no one asked for
	golden, actual []float64      // see stack
	layers         *report.Report // what the layers of the runs say, where the candidate is wrong; nil if nothing
}

// ContinuationOptions say how sides are compared.
type ContinuationOptions struct {
	Tokens   int          // how many tokens are judged, 0 for all
	Encoding tensor.DType // Invalid: as the runs say
	Limits   *compare.Limits
	Judge    judge.Options // of the layers
}

// CompareContinuation judges the candidate's logits by the reference's, of each token of the continuation. It
// returns a [*SideError] where that cannot be judged: another text, rows that are missing, a golden that
// contradicts itself.
func CompareContinuation(ctx context.Context, golden, actual *Side, opt ContinuationOptions) (o *Continuation, err error) {
	err = mapfile.Guard(func() error {
		o, err = compareSides(golden, actual, opt)
		return err
	})
	if err == nil && o.Fails() {
		err = o.locate(ctx, opt.Judge)
	}
	for _, s := range []*Side{golden, actual} {
		if err == nil && s.Run != nil {
			err = s.Run.Changed()
		}
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

func compareSides(golden, actual *Side, opt ContinuationOptions) (*Continuation, error) {
	o := &Continuation{Case: cmp.Or(golden.Case, actual.Case), Golden: golden, Actual: actual, Encoding: opt.Encoding}
	actual.Known = cmp.Or(golden.Known, actual.Known)
	if o.Encoding == tensor.Invalid {
		o.Encoding = encodingOf(golden, actual)
	}
	n, err := o.tokens(opt.Tokens)
	if err != nil {
		return nil, err
	}
	var positions []generation.Position
	for k := range n {
		p, err := o.position(k)
		if err != nil {
			return nil, err
		}
		positions = append(positions, p)
	}
	if err := o.cutShort(positions); err != nil {
		return nil, err
	}
	limits := compare.Default(o.Encoding).Limits()
	if o.Encoding.Size() == 2 { // the limit of a row for all of them, which are few
		limits.RelL2 = max(limits.RelL2, limits.RowRelL2)
	}
	if opt.Limits != nil {
		limits = *opt.Limits
	}
	o.Result = generation.Judge(positions, o.Encoding, limits)
	return o, nil
}

// cutShort returns an error where two texts part after a token that both sides chose alike: one of them does
// not follow its own choices, and the rest of the text cannot be judged.
func (o *Continuation) cutShort(positions []generation.Position) error {
	k := len(positions) - 1
	want, have := o.Golden.Fed, o.Actual.Fed
	if k >= len(want)-1 || k >= len(have) || want[k] == have[k] || positions[k].Choice != generation.Same {
		return nil
	}
	return unjudged("the two texts part at token %d, %d in %s and %d in %s, though both sides' logits choose %d there: run both greedily, or force "+
		"the candidate along the reference's text", k, want[k], o.Golden.From, have[k], o.Actual.From, positions[k].Reference)
}

// encodingOf is the coarser of what two runs were asked for, or of the types of their logits.
func encodingOf(golden, actual *Side) tensor.DType {
	if golden.Run != nil && actual.Run != nil {
		if d := (judge.Case{Golden: golden.Run, Actual: actual.Run}).Encoding(); d.IsFloat() {
			return d
		}
	}
	d := golden.logits.of
	for _, s := range []*Side{golden, actual} {
		said := tensor.Invalid
		if s.Run != nil {
			said, _ = tensor.ParseDType(s.Run.Info.Encoding.Compute)
		}
		if !said.IsFloat() {
			said = s.logits.of
		}
		d = compare.Coarser(d, said)
	}
	return d
}

// tokens returns how many tokens are judged. Both sides must have the same text that far.
func (o *Continuation) tokens(asked int) (int, error) {
	g, a := o.Golden, o.Actual
	if g.Prompt >= 0 && a.Prompt >= 0 && g.Prompt != a.Prompt {
		return 0, unjudged("another text: the prompt has %d tokens in %s and %d in %s", g.Prompt, g.From, a.Prompt, a.From)
	}
	have := g.decided()
	if g.Choices == nil && g.Prompt > 0 { // the row after the text is there by chance
		have = min(have, max(a.decided(), len(g.Text)-g.Prompt))
	}
	if asked > have {
		return 0, unjudged("%d tokens are asked for, and %s has logits for %d: make the golden of more", asked, g.From, have)
	}
	n := have
	if asked > 0 {
		n, o.left = asked, have-asked
	}
	n, err := o.sameText(n)
	if err != nil {
		return 0, err
	}
	for k := range n {
		switch {
		case !g.logits.has(k):
			return 0, g.missing(k)
		case a.logits.has(k):
		case k == n-1 && k > 0 && k >= len(g.Fed) && asked == 0:
			return n - 1, nil // it decides a token after the text, which no one has to run
		default:
			return 0, a.missing(k)
		}
	}
	if n == 0 {
		return 0, unjudged("%s has no token after the prompt: nothing was generated", g.From)
	}
	if more := a.decided(); more > have && !a.Free {
		o.Notes = append(o.Notes, fmt.Sprintf("the candidate has %d tokens, the golden %d: the others were not judged", more, have))
	}
	return n, nil
}

// sameText returns how many of n tokens follow the same text on both sides: all of them, but for a side
// that was not forced.
func (o *Continuation) sameText(n int) (int, error) {
	g, a := o.Golden, o.Actual
	if g.Text != nil && a.Text != nil && g.Prompt >= 0 && a.Prompt >= 0 {
		for i := range g.Prompt {
			if g.Text[i] != a.Text[i] {
				return 0, unjudged("another text: token %d of the prompt is %d in %s and %d in %s", i, g.Text[i], g.From, a.Text[i], a.From)
			}
		}
	} else if g.Asked != "" && a.Asked != "" && g.Asked != a.Asked {
		return 0, unjudged("another text: the prompts of %s and %s differ", g.From, a.From)
	}
	want, have := g.Fed, a.Fed
	for k := range min(n, len(want)) {
		switch {
		case k >= len(have) && a.Stopped && k == len(want)-1:
			o.note("the candidate ended the text where the golden has token %d: that one was not judged", want[k])
			return len(have), nil
		case k == n-1: // nothing follows that it is fed
		case k >= len(have):
			return 0, unjudged("rows missing: the continuation of %s ends after %d tokens, that of %s has %d", a.From, len(have), g.From, len(want))
		case have[k] == want[k]:
		case a.Free || g.Free:
			o.note("the two texts are the same for %d tokens: what follows was not judged, for a free-running text has another prompt there", k+1)
			return k + 1, nil
		default:
			return 0, unjudged("another text: token %d of the continuation is %d in %s and %d in %s: force the candidate along the reference's greedy text",
				k, want[k], g.From, have[k], a.From)
		}
	}
	return n, nil
}

// decided is for how many tokens a side has to have logits: as many as it says that it chose, or else as
// the continuation has, and one more where that row was recorded.
func (s *Side) decided() int {
	if s.Choices != nil {
		return len(s.Choices)
	}
	n := max(len(s.Fed)-1, 0)
	for s.logits.has(n) {
		n++
	}
	return n
}

// position compares the rows of one token.
func (o *Continuation) position(k int) (p generation.Position, err error) {
	golden, _ := o.Golden.Row(k)
	actual, _ := o.Actual.Row(k)
	if golden.Bad() > 0 || len(golden.Top) == 0 {
		return p, unjudged("%s: %d logits of token %d are NaN or infinite in the golden: a reference that computes them is none",
			o.Golden.From, golden.Bad(), k)
	}
	reference, err := o.reference(k, golden)
	if err != nil {
		return p, err
	}
	o.stack(golden, actual)
	said := -1
	own, fed := o.Actual.Fed, o.Golden.Fed
	if k < len(o.Actual.Choices) {
		said = o.Actual.Choices[k]
	} else if o.Actual.Free && k < min(len(own), len(fed)) && own[k] != fed[k] {
		said = own[k] // it was not forced: it went on with a choice of its own
	}
	p = generation.Compare(golden, actual, reference, said, o.Encoding)
	if p.Choice == generation.Diverged && k < len(fed) && fed[k] == p.Candidate && p.Said < 0 {
		return p, o.contradicts(k, fed[k], reference)
	}
	return p, nil
}

// reference returns the reference's token: what it says that it chose, unless its own logits contradict
// that, or the one with the largest logit.
func (o *Continuation) reference(k int, golden generation.Row) (int, error) {
	text, first := o.Golden.Choices, golden.Top[0]
	if text == nil {
		text = o.Golden.Fed
	}
	if k >= len(text) || text[k] < 0 || text[k] == first.Token {
		return first.Token, nil
	}
	said := text[k]
	x, ok := golden.Logit(said)
	switch {
	case ok && first.Value-x <= golden.Noise(o.Encoding, first.Value, x):
		return said, nil
	case o.Golden.Choices == nil:
		if !o.sampled {
			o.note("the text is not the reference's greedy one: token %d is %d, the reference would say %d", k, said, first.Token)
		}
		o.sampled = true
		return first.Token, nil
	}
	return 0, o.contradicts(k, said, first.Token)
}

func (o *Continuation) contradicts(k, said, first int) error {
	return unjudged("the golden contradicts itself: its text has %d as token %d, and its own logits (%s) say %d: they are not those that made the text",
		said, k, o.Golden.logits.where(), first)
}

// note adds a remark.
func (o *Continuation) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// locate asks the layers of both runs where the candidate leaves the reference: the first forward pass
// in which it does, and the first layer there.
func (o *Continuation) locate(ctx context.Context, opt judge.Options) error {
	if o.Golden.Run == nil || o.Actual.Run == nil {
		return nil
	}
	if o.Golden.kept {
		o.note("the golden keeps no layers of the continuation: to see which is the first that is wrong, give the case steps: %d, renew the "+
			"goldens (go test ./... -update), and run the engine again", max(o.At, 0)+1)
		return nil
	}
	runs := Runs{Actual: []*dump.Run{o.Actual.Run}, Forced: true, Measured: true}
	runs.Golden.Standard = []*dump.Run{o.Golden.Run}
	p, err := Compare(ctx, runs, opt)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		o.note("no layer can be named: %v", err)
		return nil
	}
	o.layers = p.Report(o.Case)
	return nil
}
