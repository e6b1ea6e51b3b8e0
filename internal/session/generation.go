package session

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/tensor"
)

// Generation is the text of a case, along which the candidate was forced.
type Generation struct {
	*probe
	Case   string
	golden *dump.Run // what is kept of the reference's logits; nil with err
	tokens int       // that are judged; 0 for all of the golden's
}

// Judge judges the first n tokens of the text, all of the golden's for 0. Only the first call counts.
func (g *Generation) Judge(n int) (*continuation.Outcome, error) {
	if !g.judged.Load() {
		g.tokens = n
	}
	out, err := g.judge()
	if err == nil && g.tokens != n {
		return nil, fmt.Errorf("%s: another test of this process judged %d tokens, this one asks for %d: ask for one number, 0 is all",
			g.what, g.tokens, n)
	}
	o, _ := out.(*continuation.Outcome)
	return o, err
}

func (g *Generation) forced() (*continuation.Outcome, error) {
	reference, err := continuation.Open(g.golden, nil)
	if err != nil {
		return nil, err
	}
	actual, err := continuation.Open(g.runs[0], reference)
	if err != nil {
		return nil, err
	}
	reference.Case = g.Case
	opt := continuation.Options{Tokens: g.tokens, Judge: g.fixture.compareOptions()}
	opt.Encoding = (judge.Case{Golden: g.golden, Actual: g.runs[0]}).Encoding()
	opt.Limits = g.limits(opt.Encoding, actual)
	return continuation.Compare(g.fixture.cfg.context(), reference, actual, opt)
}

// limits are those of the fixture on the relative L2 of logits; nil for the defaults.
func (g *Generation) limits(d tensor.DType, actual *continuation.Side) *compare.Limits {
	layer, port := actual.Logits()
	c, source := g.fixture.yaml.Criteria(layer, port, d)
	l := c.Limits()
	if source == "" || l.RelL2 == 0 {
		return nil
	}
	l.RowRelL2 = max(l.RowRelL2, l.RelL2)
	return &l
}

// newGenerations plans a text for each case of one sequence.
func (f *Fixture) newGenerations() (out []*Generation) {
	if f.yaml.Generation == 0 {
		return nil
	}
	for _, y := range f.yaml.Cases {
		g := &Generation{Case: y.Name, probe: &probe{what: "generation of case " + y.Name, fixture: f}}
		g.compare, g.keep = func() (outcome, error) { return g.forced() }, g.recorded
		g.golden, g.err = f.goldens.Golden(f.yaml.Reference(string(f.cfg.Run)), dump.PathCase(y.Name, dump.Generated))
		if g.err == nil && len(g.golden.Info.Generation.Tokens) < f.yaml.Generation {
			g.err = fmt.Errorf("the golden has %d tokens, generation: %d of %s asks for more: make it again: parity golden update %s",
				len(g.golden.Info.Generation.Tokens), f.yaml.Generation, f.yaml.File, f.dir)
		}
		if g.err == nil {
			g.cases = []engine.Case{g.engineCase()}
		}
		out = append(out, g)
	}
	return out
}

// engineCase is what an engine is told to run: the prompt, and then a token in each forward pass.
func (g *Generation) engineCase() engine.Case {
	info := g.golden.Info
	from, n := info.Generation.From, g.fixture.yaml.Generation
	c := forcedCase(g.Case, info.Tokens()[0][:from+n-1], from)
	if y, err := g.fixture.yaml.Case(g.Case); err == nil {
		c.Images = g.fixture.yaml.ImagesOf(y)
	}
	return c
}

// forcedCase runs tokens after a prompt one by one.
func forcedCase(name string, tokens []int, from int) engine.Case {
	passes := [][]dump.PassItem{{{To: from}}}
	for at := from; at < len(tokens); at++ {
		passes = append(passes, []dump.PassItem{{From: at, To: at + 1}})
	}
	path := dump.OnePass
	if n := len(tokens) - from; n > 0 {
		path = fmt.Sprintf("%s:%d", dump.Decode, n)
	}
	return engine.Case{Name: dump.PathCase(name, dump.Generated), TokenIDs: [][]int{tokens}, Path: path, Passes: passes}
}

// recorded is a candidate's run as it is recorded: of the logits the largest alone.
func (g *Generation) recorded(actual *dump.Run) (*dump.Run, error) {
	reference, err := continuation.Open(g.golden, nil)
	if err != nil {
		return nil, err
	}
	side, err := continuation.Open(actual, reference)
	if err != nil {
		return nil, err
	}
	n := g.fixture.yaml.Generation
	entries, choices, err := side.Keep(n, reference.Known)
	if err != nil {
		return nil, err
	}
	info := actual.Info
	info.Path, info.Passes, info.Order, info.PadMask, info.PadMasks = "", nil, nil, nil, nil
	from := g.golden.Info.Generation.From
	info.Generation = &dump.Generation{From: from, Tokens: choices}
	if info.TokenIDs, err = json.Marshal([][]int{g.golden.Info.Tokens()[0][:from+n]}); err != nil {
		return nil, err
	}
	return dump.New(actual.Path, info, actual.OrderBy, entries), nil
}

// generate runs a variant of the reference on from each prompt, greedily, for what goldens keep of it.
// The tokens of the first variant are forced on the others.
func (u *update) generate(m *made, onePass *engine.Result, forced map[string][]int) error {
	n := u.yaml.Generation
	if n == 0 {
		return nil
	}
	job, err := u.reference(m.variant)
	if err != nil {
		return err
	}
	job.Capture, job.Cases = engine.Capture{}, nil
	for i, y := range u.yaml.Cases {
		tokens := onePass.Runs[i].Info.Unpadded()
		if len(tokens) != 1 || len(tokens[0]) == 0 {
			return fmt.Errorf("case %s has %d sequences, and generation: %d asks for a text of one: give each prompt a case of its own", y.Name, len(tokens), n)
		}
		c := engine.Case{Name: y.Name, TokenIDs: tokens, Images: u.yaml.ImagesOf(y), Steps: n}
		if ids := forced[y.Name]; ids != nil {
			c.Forced = [][]int{ids}
		}
		job.Cases = append(job.Cases, c)
	}
	r, err := u.run(job)
	if err != nil {
		return fmt.Errorf("the reference along texts: %w", err)
	}
	for i, y := range u.yaml.Cases {
		tokens, err := r.Generated(i)
		if err != nil {
			return err
		}
		if forced[y.Name] == nil {
			forced[y.Name] = tokens[0][:n]
		}
		run := r.Runs[i]
		prompt := run.Info.Unpadded()[0]
		text := slices.Concat(prompt, forced[y.Name])
		if run.Info.TokenIDs, err = json.Marshal([][]int{text}); err != nil {
			return err
		}
		run.Info.Generation = &dump.Generation{From: len(prompt)}
		side, err := continuation.Open(run, nil)
		if err != nil {
			return err
		}
		entries, _, err := side.Keep(n, r.About[i].Known)
		if err != nil {
			return err
		}
		info := run.Info
		info.Case, info.ReferenceText = dump.PathCase(y.Name, dump.Generated), onePass.Runs[i].Info.ReferenceText
		info.Path, info.Passes, info.PadMask, info.PadMasks = "", nil, nil, nil
		info.Generation = &dump.Generation{From: len(prompt), Tokens: text[len(prompt):]}
		m.along = append(m.along, dump.New(run.Path, info, run.OrderBy, entries))
	}
	return nil
}

// baseOf is the case that a run along a path or a text is of.
func baseOf(caseName string) string {
	base, _ := dump.CutPathCase(caseName)
	return base
}
