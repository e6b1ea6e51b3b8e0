package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// staleGoldens says what changed in the fixture since its goldens, or the programs that judge alone, were made, of what
// begins with one of the keys, or all. It skips those of cases that the fixture no longer has.
func (f *Fixture) staleGoldens(keys ...string) []string {
	var old stale
	what := "the goldens %s are stale: %s; renew them: go test ./... -update"
	if f.yaml.Alone {
		what = "the program of case %s is stale: %s; record it again: parity golden update " + f.dir
	}
	for _, k := range f.goldens.Runs() {
		base, ofPath := dump.CutPathCase(k.Info.Case)
		if _, err := f.yaml.Case(base); err != nil && !ofPath || len(k.Info.Order) == 0 && !f.yaml.Alone {
			continue
		}
		name := k.String()
		if f.yaml.Alone {
			name = k.Info.Case
		}
		changes := slices.DeleteFunc(fixture.Changed(k.Info.Inputs, f.yaml.GoldenInputs(k.Variant, base)), func(change string) bool {
			return len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(change, key) })
		})
		old.add(strings.Join(changes, "; "), name)
	}
	return old.texts("golden: " + f.goldens.Dir() + ": " + what)
}

// staleRuns says what changed in the fixture since its runs were recorded.
func (f *Fixture) staleRuns() (out []string) {
	var old stale
	runs := slices.Concat(f.runs, f.injected)
	for _, p := range f.probes.all() {
		runs = append(runs, p.runs...)
	}
	for _, r := range runs {
		if !f.yaml.Wants(r.Info.Case) {
			text := fmt.Sprintf("the recorded run %s has a case %s, which %s does not have: remove it: parity golden prune --apply %s",
				f.yaml.Replay, r.Info.Case, f.yaml.File, f.dir)
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
			continue
		}
		name := r.Info.Case
		if r.Info.Mode == dump.Injected {
			name += " (injected)"
		}
		old.add(strings.Join(fixture.Changed(r.Info.Inputs, f.runInputs(r.Info)), "; "), name)
	}
	again := "PARITY_REPLAY=DUMP go test -parity.record=" + f.yaml.Replay
	if f.injected != nil {
		again = "go test -parity.run=cpu -parity.mode=both -parity.record=" + f.yaml.Replay
	}
	return slices.Concat(out, old.texts("the recorded run "+f.yaml.Replay+" of case %s is stale: %s; record it again: "+again))
}

// stale is what is stale, by what changed: most often it is one thing for all.
type stale []staleBy

type staleBy struct {
	why string
	of  []string
}

// add says that something is stale; "" is no reason.
func (s *stale) add(why, what string) {
	if why == "" {
		return
	}
	i := slices.IndexFunc(*s, func(by staleBy) bool { return by.why == why })
	if i < 0 {
		i = len(*s)
		*s = append(*s, staleBy{why: why})
	}
	(*s)[i].of = append((*s)[i].of, what)
}

// texts are a line for each reason; format takes what is stale, and why.
func (s stale) texts(format string) (out []string) {
	for _, by := range s {
		out = append(out, fmt.Sprintf(format, label.Few(by.of), by.why))
	}
	return out
}

// lackingGoldens lists the goldens and programs that the fixture asks for and that are not there.
func (f *Fixture) lackingGoldens() (out []string) {
	for _, what := range f.yaml.Lacking(f.goldens.Steps, f.goldens.HasProgram) {
		out = append(out, fmt.Sprintf("golden: %s lacks %s, which %s asks for: make it: parity golden update %s",
			f.goldens.Dir(), what, f.yaml.File, f.dir))
	}
	return out
}

// lackingLayers says which layers were compared when the run was recorded, and are not now.
func (f *Fixture) lackingLayers(c *judge.Comparison) (out []string) {
	joined := map[string]dump.Joined{}
	for _, k := range f.recordedRuns() {
		if k.Joined != nil {
			joined[k.Info.Case] = k.Joined
		}
	}
	say := func(layers []string, lack, fix string) {
		if n := len(layers); n > 0 {
			out = append(out, fmt.Sprintf("%d layers that were compared when the run %s was recorded %s: %s: %s, or if they are no more, "+
				"record it again: go test -parity.record=%[2]s", n, f.yaml.Replay, lack, label.Few(layers), fix))
		}
	}
	lost, gone := c.Require(joined)
	say(lost, "are not in the candidate's run now", "restore "+f.runDir(f.yaml.Replay)+" and the names of fixture.yaml")
	say(gone, "have no golden now", "restore "+f.goldens.Dir())
	return out
}

// recordedNames lists the layers of the run that the fixture names, if it is there.
func (f *Fixture) recordedNames() (names []string) {
	for _, k := range f.recordedRuns() {
		for _, o := range k.Info.Order {
			names = append(names, o.Layer)
		}
	}
	return names
}

// recordedRuns are what is kept of the run that the fixture names; nil if it is not there.
func (f *Fixture) recordedRuns() []*store.Kept {
	if f.yaml.Replay == "" {
		return nil
	}
	x, err := store.ReadIndex(f.runDir(f.yaml.Replay))
	if err != nil {
		return nil
	}
	return x.Runs
}

// unexpected says what the model answers other than the fixture expects. A function without logits
// answers nothing.
func (f *Fixture) unexpected(c *judge.Comparison, isFunc bool) (out []string) {
	answered := true
	for _, y := range f.yaml.Cases {
		if y.Expect == nil {
			continue
		}
		if _, err := c.Answer(y.Name); err != nil && isFunc && y.Expect.OfLogits() {
			answered = false
			continue
		}
		for _, text := range f.unexpectedAnswers(c, y) {
			out = append(out, fmt.Sprintf("%s:%d: case %s: %s", f.yaml.File, y.Expect.Pos.Line, y.Name, text))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = f.answered || answered
	return out
}

// unexpectedAnswers compares the answer to a case: the largest logit of the last row of the first forward pass,
// and the text of the reference, which the candidate's generation has to follow.
func (f *Fixture) unexpectedAnswers(c *judge.Comparison, y fixture.Case) (out []string) {
	e := y.Expect
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if e.Text != "" {
		switch said, err := f.referenceText(y.Name); {
		case err != nil:
			say("expect: text: %v", err)
		case said == "":
			say("expect: text: the golden does not say how the reference goes on: make it again, parity golden update %s", f.dir)
		case !strings.Contains(said, e.Text):
			say("expect: text %q is not in what the reference says, %q", e.Text, said)
		}
	}
	if !e.OfLogits() {
		return out
	}
	answer, err := c.Answer(y.Name)
	if err != nil {
		say("expect: %v", err)
		return out
	}
	if e.Argmax != nil && answer.Argmax != *e.Argmax {
		say("expect: argmax is %d in the candidate (%s), not %d", answer.Argmax, answer.Where, *e.Argmax)
	}
	if e.Label != "" {
		if is, err := f.label(answer.Argmax); err != nil {
			say("expect: label: %v", err)
		} else if is != e.Label {
			say("expect: label is %q in the candidate (%s, %d), not %q", is, answer.Where, answer.Argmax, e.Label)
		}
	}
	if answer.Confidence < e.MinConfidence {
		say("expect: the candidate's probability of %d is %.3g (%s), at least %g is asked", answer.Argmax, answer.Confidence, answer.Where, e.MinConfidence)
	}
	return out
}

// referenceText is how the reference goes on from a case.
func (f *Fixture) referenceText(caseName string) (string, error) {
	variant := f.yaml.Reference(string(f.cfg.Run))
	for _, name := range []string{caseName, dump.PathCase(caseName, dump.Generated)} {
		if g, err := f.goldens.Golden(variant, name); err == nil && g.Info.ReferenceText != "" {
			return g.Info.ReferenceText, nil
		} else if name == caseName && err != nil {
			return "", err
		}
	}
	return "", nil
}

// label is the name of a label by the model's config.json.
func (f *Fixture) label(at int) (string, error) {
	config, err := f.config()
	if err != nil {
		return "", err
	}
	names, _ := config["id2label"].(map[string]any)
	if name, ok := names[strconv.Itoa(at)].(string); ok {
		return name, nil
	}
	return "", fmt.Errorf("config.json of the model has no id2label for %d: give argmax in place of label", at)
}

// addContradiction says, where the tensors differ, that the reference in 32 or 64 bits does not compute along a path what
// it computes of the same sequence in one pass: a right candidate fails one of the two.
func (f *Fixture) addContradiction(r *report.Report) {
	variant := f.yaml.Reference(string(f.cfg.Run))
	ref, _ := f.yaml.Variant(variant)
	if d, err := tensor.ParseDType(ref.DType); err != nil || compare.Has16Bits(d) || r.Verdict != report.Fail || r.FirstDivergence == nil {
		return
	}
	var worst *store.Along
	for i, p := range f.goldens.Paths() {
		alone := p.Case != "" // rows of a batch may hang on their neighbors, by padding
		if alone && p.Variant == variant && p.Own && p.Limit > 0 && p.RowRelL2 > p.Limit && (worst == nil || p.RowRelL2 > worst.RowRelL2) {
			worst = &f.goldens.Paths()[i]
		}
	}
	if worst == nil {
		return
	}
	r.Notes = append([]string{fmt.Sprintf("the reference contradicts itself: along path %s, case %s, its worst row is at relative L2 %.3g from its own one pass, at most %.3g is rounding (%s). "+
		"Unless the model means that, as a rope that depends on the length does, one of the two is the reference's error, and a right candidate fails by it",
		worst.Path, worst.Case, worst.RowRelL2, worst.Limit, worst.Label)}, r.Notes...)
}

// demand is what a fixture.yaml asks for, and whether something judged it.
type demand struct {
	asked, judged bool
	stage, key    string
	call          string // of a test that judges it
	command       string // of the command line, with the fixture's folder; empty if all commands judge it
}

func (d demand) String() string { return fmt.Sprintf("%s (%s in fixture.yaml)", d.stage, d.key) }

// unjudged lists what the fixture asks for, in the order of the stages, and none of its comparisons
// judged. What only a live run brings is asked of live runs alone.
func (f *Fixture) unjudged() []demand {
	if f.yaml == nil {
		return nil
	}
	f.mu.Lock()
	compared, answered := f.compared, f.answered
	servers := len(f.served) > 0 || f.servedErr != nil || f.servedLater
	f.mu.Unlock()
	var tensors, weights, paths, texts bool
	for _, j := range compared {
		list, _ := j.c.Loaded()
		weights = weights || len(list) > 0
		tensors = tensors || j.c.Decided()
		paths = paths || slices.ContainsFunc(j.probes.paths, func(p *Path) bool { return p.judged.Load() })
		texts = texts || slices.ContainsFunc(j.probes.texts, func(g *Generation) bool { return g.judged.Load() })
	}
	any := len(compared) > 0
	expects := slices.ContainsFunc(f.yaml.Cases, func(y fixture.Case) bool { return y.Expect != nil })
	return slices.DeleteFunc([]demand{
		{f.isLive() && f.yaml.Weights == fixture.WeightsHashes, weights, report.StageWeights, "weights", "parity.Weights(t).Check()", ""},
		{any, tensors || paths || texts, report.StageTensors, "cases", "parity.All(t).Check()", ""},
		{any && expects, answered, "answers", "expect", "parity.All(t).Check() of what returns logits", ""},
		{len(f.yaml.Paths) > 0, paths, report.StagePaths, "paths", "parity.Paths(t).Check()", ""},
		{f.yaml.Generation > 0, texts, report.StageGeneration, "generation", "parity.Generation(t).Check()", ""},
		{f.yaml.Serve != nil, servers, report.StageServing, "serve", "parity.Served(t).Check()", "parity serve " + f.dir},
	}, func(d demand) bool { return !d.asked || d.judged })
}

// Unjudged says of each fixture that a test used what its fixture.yaml asks for and no test judged.
func (s *Session) Unjudged() (out []string) {
	for _, f := range s.fixtures {
		if !f.used.Load() {
			continue
		}
		var what, calls []string
		for _, d := range f.unjudged() {
			what, calls = append(what, d.String()), append(calls, d.call)
		}
		if len(what) > 0 {
			out = append(out, fmt.Sprintf("no test judged of %s: %s: call %s in a test, or take the key out", f.name,
				strings.Join(what, ", "), strings.Join(calls, ", ")))
		}
	}
	return out
}

// addUnjudged adds to a report what no test judged so far, or what no command did.
func (f *Fixture) addUnjudged(r *report.Report, byTests bool) {
	for _, d := range f.unjudged() {
		switch {
		case r.Error == report.NothingCompared && d.stage == report.StageTensors: // the verdict says it
		case byTests:
			r.NotJudged = append(r.NotJudged, d.String()+": no test judged it with "+d.call)
		case d.command != "":
			r.NotJudged = append(r.NotJudged, d.String()+": "+d.command+" judges it")
		}
	}
}

// inspect looks for what makes a result worth less than it seems. A function may be a single layer: what
// the fixture's own run must have is not asked of it.
func (f *Fixture) inspect(c *judge.Comparison, isFunc bool) {
	f.problem(c, "parity:stale", f.staleGoldens()...)
	if f.replay == "" && !f.isLive() && !isFunc {
		f.problem(c, "parity:stale", f.staleRuns()...)
	}
	if !isFunc && f.isSelf(c) {
		f.problem(c, "parity:self", fmt.Sprintf("the reference is compared with itself: %s is the dump from which the goldens were made, "+
			"or a copy of them: all outputs are equal bit for bit. Point PARITY_REPLAY to a run of the candidate; "+
			"if this is one, its run.json must name another engine, or have a nonce of its own", filepath.ToSlash(c.Cases[0].Actual.Path)))
	}
	f.inspectGiven(c)
	names := c.Names()
	if isFunc {
		names = append(names, f.recordedNames()...)
	}
	if err := f.yaml.CheckLayers(names); err != nil {
		f.problem(c, "parity:fixture", err.Error())
	}
	f.problem(c, "parity:expect", f.unexpected(c, isFunc)...)
	f.problem(c, "parity:missing", f.lackingGoldens()...)
	if !isFunc {
		f.problem(c, "parity:missing", f.lackingLayers(c)...)
	}
}

// inspectGiven looks at what the candidate was given: texts, weights, tokens.
func (f *Fixture) inspectGiven(c *judge.Comparison) {
	rows, _ := c.Texts()
	for _, row := range rows {
		if row.Status == report.StatusFail {
			f.problem(c, "parity:text", fmt.Sprintf("case %s: %s", row.Case, row.Text))
		}
	}
	list, _ := c.Loaded()
	for _, w := range list {
		if !w.Good() {
			f.problem(c, "parity:weights", w.String())
		}
	}
	if v := c.OtherPrompt(); v != nil {
		f.problem(c, "parity:input", fmt.Sprintf("case %s: %s", v.Case, v.Text))
	}
}

// isSelf reports whether the run that is judged is the one from which the goldens were made. That is
// wanted where a fixture's own program may be the reference's engine, and where the goldens are
// blessed: reports say so.
func (f *Fixture) isSelf(c *judge.Comparison) bool {
	if f.isLive() || f.yaml.Model.Engine.Command != nil || f.yaml.Alone {
		return false
	}
	for _, k := range f.goldens.Runs() {
		if k.Blessed != "" {
			return false
		}
	}
	return c.IsCopy()
}

func (f *Fixture) problem(c *judge.Comparison, name string, texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.of(c)
	for _, text := range texts {
		if i := slices.IndexFunc(j.problems, func(p Problem) bool { return p.Name == name }); i >= 0 {
			j.problems[i].Text += "\n" + text
		} else {
			j.problems = append(j.problems, Problem{Name: name, Text: text})
		}
	}
}
