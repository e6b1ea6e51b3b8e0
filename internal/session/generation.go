package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/infra"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// Generation is the text of a case, along which the candidate was forced.
type Generation struct {
	Case string

	fixture *Fixture
	golden  *dump.Run // what is kept of the reference's logits; nil with err
	err     error     // why it cannot be judged
	actual  *dump.Run
	run     func() error // sets actual; nil if it is there
	judging sync.Once    // guards the rest
	tokens  int
	outcome *continuation.Outcome
	judged  atomic.Bool
}

// Judge judges the first n tokens of the text, all of the golden's for 0. Only the first call counts.
func (g *Generation) Judge(n int) (*continuation.Outcome, error) {
	g.judging.Do(func() {
		if g.err == nil && g.run != nil {
			g.err = g.run()
		}
		if g.err == nil {
			g.outcome, g.err = g.compare(n)
		}
		if g.err != nil {
			g.err = fmt.Errorf("generation of case %s: %w", g.Case, g.err)
		}
		g.tokens = n
		g.judged.Store(true)
	})
	if g.err == nil && g.tokens != n {
		return nil, fmt.Errorf("generation of case %s: another test of this process judged %d tokens, this one asks for %d: ask for one number, 0 is all",
			g.Case, g.tokens, n)
	}
	return g.outcome, g.err
}

// Report is what came of the text; nil if no one asked for it.
func (g *Generation) Report() *report.Report {
	if !g.judged.Load() {
		return nil
	}
	if g.err != nil {
		return continuation.Unjudged(g.fixture.name, errors.New(infra.Message(g.err)))
	}
	return g.outcome.Report(g.fixture.name)
}

func (g *Generation) compare(n int) (*continuation.Outcome, error) {
	reference, err := continuation.Open(g.golden, nil)
	if err != nil {
		return nil, err
	}
	actual, err := continuation.Open(g.actual, reference)
	if err != nil {
		return nil, err
	}
	reference.Case = g.Case
	opt := continuation.Options{Tokens: n, Judge: g.fixture.compareOptions()}
	opt.Encoding = (judge.Case{Golden: g.golden, Actual: g.actual}).Encoding()
	opt.Limits = g.limits(opt.Encoding, actual)
	o, err := continuation.Compare(g.fixture.cfg.context(), reference, actual, opt)
	if o != nil {
		o.Case = g.Case
	}
	return o, err
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

// Generations returns the texts of a fixture, as the candidate of a comparison ran them.
func (f *Fixture) Generations(c *judge.Comparison) []*Generation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts[c]
}

// newGenerations plans a text for each case of one sequence.
func (f *Fixture) newGenerations() (out []*Generation) {
	if f.yaml.Generation == 0 {
		return nil
	}
	for _, y := range f.yaml.Cases {
		g := &Generation{Case: y.Name, fixture: f}
		g.golden, g.err = f.goldens.run(f.yaml.Reference(string(f.cfg.Run)), dump.PathCase(y.Name, dump.Generated))
		if g.err == nil && len(g.golden.Info.Generation.Tokens) < f.yaml.Generation {
			g.err = fmt.Errorf("the golden has %d tokens, generation: %d of %s asks for more: make it again: parity update %s",
				len(g.golden.Info.Generation.Tokens), f.yaml.Generation, f.yaml.File, f.dir)
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

// forcedCase runs tokens behind a prompt one by one.
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

func generationCases(list []*Generation) (cases []engine.Case) {
	for _, g := range list {
		if g.err == nil {
			cases = append(cases, g.engineCase())
		}
	}
	return cases
}

// takeTexts gives each text its run, and returns the others.
func takeTexts(list []*Generation, runs []*dump.Run) (others []*dump.Run) {
	runs = slices.Clone(runs)
	for _, g := range list {
		name := dump.PathCase(g.Case, dump.Generated)
		i := slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == name })
		if i < 0 {
			if g.err == nil {
				g.err = fmt.Errorf("the candidate's run has no %s: record it again, or run the candidate now (-parity.run=cpu)", name)
			}
			continue
		}
		g.actual = runs[i]
		runs = slices.Delete(runs, i, i+1)
	}
	return runs
}

// funcTexts runs an engine in this process along the texts, each when it is asked for.
func (f *Fixture) funcTexts(run engine.Func) []*Generation {
	list := f.newGenerations()
	for _, g := range list {
		g.run = func() (err error) {
			c := g.engineCase()
			g.actual, err = run.Along(g.Case, c.Path, c.TokenIDs, c.Passes)
			return err
		}
	}
	return list
}

// addGenerations adds what came of the texts of a comparison to its report.
func (f *Fixture) addGenerations(r *report.Report, c *judge.Comparison) {
	for _, g := range f.Generations(c) {
		if of := g.Report(); of != nil {
			r.AddGeneration(of)
		}
	}
}

// recordedText is a candidate's run as it is recorded: of the logits the largest alone.
func (g *Generation) recorded() (*dump.Run, error) {
	reference, err := continuation.Open(g.golden, nil)
	if err != nil {
		return nil, err
	}
	side, err := continuation.Open(g.actual, reference)
	if err != nil {
		return nil, err
	}
	n := g.fixture.yaml.Generation
	entries, err := side.Keep(n, reference.Known)
	if err != nil {
		return nil, err
	}
	info := g.actual.Info
	info.Path, info.Passes, info.Order, info.PadMask, info.PadMasks = "", nil, nil, nil, nil
	from := g.golden.Info.Generation.From
	info.Generation = &dump.Generation{From: from, Tokens: continuation.Choices(entries)}
	if info.TokenIDs, err = json.Marshal([][]int{g.golden.Info.Tokens()[0][:from+n]}); err != nil {
		return nil, err
	}
	return dump.New(g.actual.Path, info, g.actual.OrderBy, entries), nil
}

// generate runs a variant of the reference on from each prompt, greedily, and returns what goldens keep
// of it, by case. The tokens of the first variant are forced on the others.
func (u *update) generate(variant string, onePass *engine.Result, forced map[string][]int) (map[string]*dump.Run, error) {
	job, err := u.reference(variant)
	if err != nil {
		return nil, err
	}
	job.Cases, job.Capture = nil, engine.Capture{}
	n := u.yaml.Generation
	for i, y := range u.yaml.Cases {
		tokens := onePass.Runs[i].Info.Unpadded()
		if len(tokens) != 1 || len(tokens[0]) == 0 {
			return nil, fmt.Errorf("case %s has %d sequences, and generation: %d asks for a text of one: give each prompt a case of its own", y.Name, len(tokens), n)
		}
		c := engine.Case{Name: y.Name, TokenIDs: tokens, Images: u.yaml.ImagesOf(y), Steps: n}
		if ids := forced[y.Name]; ids != nil {
			c.Forced = [][]int{ids}
		}
		job.Cases = append(job.Cases, c)
	}
	r, err := u.run(job)
	if err != nil {
		return nil, fmt.Errorf("the reference's generation: %w", err)
	}
	defer r.Close()
	out := map[string]*dump.Run{}
	for i, y := range u.yaml.Cases {
		tokens, err := r.Generated(i)
		if err != nil {
			return nil, err
		}
		if forced[y.Name] == nil {
			forced[y.Name] = tokens[0][:n]
		}
		run := r.Runs[i]
		prompt := run.Info.Unpadded()[0]
		text := slices.Concat(prompt, forced[y.Name])
		if run.Info.TokenIDs, err = json.Marshal([][]int{text}); err != nil {
			return nil, err
		}
		run.Info.Generation = &dump.Generation{From: len(prompt)}
		side, err := continuation.Open(run, nil)
		if err != nil {
			return nil, err
		}
		entries, err := side.Keep(n, r.About[i].Known)
		if err != nil {
			return nil, err
		}
		info := run.Info
		info.ReferenceText, info.Path, info.Passes, info.PadMask, info.PadMasks = onePass.Runs[i].Info.ReferenceText, "", nil, nil, nil
		info.Generation = &dump.Generation{From: len(prompt), Tokens: text[len(prompt):]}
		out[dump.PathCase(y.Name, dump.Generated)] = dump.New(run.Path, info, run.OrderBy, entries)
	}
	return out, nil
}
