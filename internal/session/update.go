package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// Update renews the goldens of all fixtures from the reference's dump, before any test runs.
func (s *Session) Update(stdout io.Writer) error {
	if s.cfg.Update == setting.UpdateNone {
		return nil
	}
	if err := unedited(s.cfg.GoldenDump); err != nil {
		return err
	}
	for _, f := range s.fixtures {
		if err := (&update{Fixture: f, out: stdout}).renew(); err != nil {
			return errors.Join(fmt.Errorf("update %s: %w", f.name, err), engine.WriteStatus(f.out, f.name, err))
		}
	}
	return nil
}

// update renews the goldens of one fixture.
type update struct {
	*Fixture
	out io.Writer
	all []*made // what becomes golden, of each variant

	dequantised string   // folder with the dequantised weights, once it is written
	quantised   []string // names of the weights that are quantised
}

// tell says what comes of the update.
func (u *update) tell(format string, args ...any) {
	fmt.Fprintf(u.out, "parity: update %s: %s\n", u.name, fmt.Sprintf(format, args...))
}

// renew imports each variant that the dump folder has: DUMP/<variant>/… or, for a single one, DUMP
// itself (see dump.OpenCases).
func (u *update) renew() error {
	if u.goldenDump == "" {
		if changed, err := fixture.RenewAuto(u.dir); err != nil {
			return err
		} else if changed {
			u.tell("%s is written: cases: auto as the model's config.json wants them", fixture.AutoFile)
		}
	}
	if err := u.readYAML(); err != nil {
		return err
	}
	switch {
	case u.yaml.Alone:
		return u.recordPrograms()
	case u.cfg.Bless != "":
		return u.bless()
	case u.goldenDump == "":
		return u.fromReference()
	}
	several := slices.ContainsFunc(u.yaml.Variants(), func(v string) bool { return mapfile.IsFolder(filepath.Join(u.goldenDump, v)) })
	for i, v := range u.yaml.Variants() {
		dir := filepath.Join(u.goldenDump, v)
		if i == 0 && !several {
			dir = u.goldenDump
		}
		switch {
		case dir != u.goldenDump && !mapfile.IsFolder(dir):
			u.tell("the dump has no %s: its goldens stay as they are", v)
			continue
		case store.KeepsRuns(dir):
			return fmt.Errorf("%s is a recorded run of the candidate: goldens come from the reference; if it is meant all the same, "+
				"-parity.bless=REASON makes it golden, and every report says so", filepath.ToSlash(dir))
		}
		if err := u.fromDump(v, dir); err != nil {
			return err
		}
	}
	return u.replace()
}

// fromDump makes goldens of a variant of the runs in a folder.
func (u *update) fromDump(variant, dir string) error {
	runs, err := store.OpenCases(dir, dump.Options{Cases: u.yaml.CaseNames(), Unjudged: !store.KeepsRuns(dir)})
	if err != nil {
		return err
	}
	u.opened = append(u.opened, runs...)
	_, err = u.choose(variant, runs)
	return err
}

// fromReference runs the reference, each variant of it, and imports what it computed: all run before
// the first is kept, so that a failure changes nothing. The decode steps of all variants take the
// tokens of the first.
func (u *update) fromReference() error {
	if u.yaml.Model.Path == "" && u.yaml.Model.Oracle == "" {
		return fmt.Errorf("%s names no model to run as the reference: write model: {path: …}, or point PARITY_GOLDEN_DUMP to a dump", u.yaml.File)
	}
	var forced [][][]int
	spoken := map[string][]int{} // by case, the tokens of the first variant
	for n, variant := range u.yaml.Variants() {
		job, err := u.reference(variant)
		if err != nil {
			return err
		}
		run := u.run
		if n == 0 {
			run = u.observed
			job.SanityTokens, job.SkipSanity = sanityTokens, u.yaml.Model.SkipSanity
		}
		for i := range forced {
			job.Cases[i].Forced = forced[i]
		}
		if u.hasProgram(variant) {
			fixture.RecordProgram(&job, u.yaml.Programs)
		}
		r, err := run(job)
		if err != nil {
			return fmt.Errorf("%w; a dump of the reference will do as well: PARITY_GOLDEN_DUMP", err)
		}
		for i, about := range r.About {
			if about.NoProgram != "" {
				u.tell("case %s: no program was recorded: %s", u.yaml.Cases[i].Name, sanitize.Line(about.NoProgram))
			}
		}
		if n == 0 {
			forced, err = u.chosen(r)
		}
		m, other := u.choose(variant, r.Runs)
		if err = errors.Join(err, other); err == nil && u.yaml.Use(variant) == fixture.UseJudge {
			if err = u.generate(m, r, spoken); err == nil {
				err = u.measure(m, r.Runs)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := u.costsAlong(); err != nil {
		return err
	}
	return u.replace()
}

// hasProgram reports whether the program that the reference ran is kept beside the goldens of a
// variant: of the one that judges.
func (u *update) hasProgram(variant string) bool {
	return variant == u.yaml.Reference("") && u.cfg.Bless == "" && u.yaml.Programs != fixture.ProgramOff
}

// chosen shows how the reference goes on, and returns the tokens of its decode steps, by case.
func (u *update) chosen(r *engine.Result) (forced [][][]int, err error) {
	for i, run := range r.Runs {
		if text := run.Info.ReferenceText; text != "" {
			fmt.Fprintf(u.out, "parity: %s: case %s: the reference goes on: %q\n", u.name, u.yaml.Cases[i].Name, text)
		}
		var tokens [][]int
		if u.yaml.Cases[i].Steps > 1 {
			if tokens, err = r.Generated(i); err != nil {
				return nil, err
			}
		}
		forced = append(forced, tokens)
	}
	return forced, nil
}

// bless makes golden what would be judged: a dump that was named, else a live run if that was asked
// for, else the recorded run. The index keeps the reason.
func (u *update) bless() error {
	dir := cmp.Or(u.goldenDump, u.replay)
	if dir == "" && u.yaml.Replay != "" {
		dir = u.runDir(u.yaml.Replay)
	}
	variant, err := u.yaml.Variants()[0], error(nil)
	switch {
	case u.goldenDump == "" && u.isLive():
		var job engine.Job
		var r *engine.Result
		if job, err = u.candidate(); err == nil {
			r, err = u.run(job)
		}
		if err == nil {
			_, err = u.choose(variant, r.Runs)
		}
	case dir == "":
		err = fmt.Errorf("%s names no recorded run to bless: run the candidate with -parity.run=cpu, or name its dump with -parity.dump=DIR", u.yaml.File)
	default:
		err = u.fromDump(variant, dir)
	}
	if err != nil {
		return err
	}
	u.tell("the candidate's run becomes golden, blessed: %s", u.cfg.Bless)
	return u.replace()
}

// unedited refuses an update that would run an edited copy of transformers: what that computes is
// no reference.
func unedited(dump string) error {
	if dump != "" {
		return nil // whoever ran it: its run.json says with what
	}
	overlay, err := engine.FindOverlay(".")
	if err != nil || overlay == nil {
		return err
	}
	return fmt.Errorf("goldens are not updated while transformers is edited: %s", overlay)
}

// reference is the job that runs a variant of the reference, without its cases' tokens.
func (u *update) reference(variant string) (engine.Job, error) {
	job := u.yaml.Job(engine.Torch, engine.CPU)
	r, _ := u.yaml.Variant(variant)
	job.Encoding, job.KVType = r.DType, r.KVType
	if r.Adapter != "" {
		job.Adapter = filepath.Join(u.dir, filepath.FromSlash(r.Adapter))
	}
	if !r.IsDequantised() {
		return job, nil
	}
	if u.dequantised == "" {
		if err := u.dequantise(); err != nil {
			return job, fmt.Errorf("references: %s: %w", variant, err)
		}
	}
	job.Path, job.Local, job.Revision = u.dequantised, true, ""
	if r.Activations != "" {
		job.Activations = &engine.Activations{Rule: r.Activations, Weights: u.quantised}
	}
	return job, nil
}

// dequantise writes the model's folder with the numbers that the quantised weights stand for. It is
// removed when the session ends.
func (u *update) dequantise() error {
	model := u.modelFolder()
	if model == "" {
		return fmt.Errorf("%s is not in the hub's cache of this machine, and its config.json is needed", u.yaml.Model.Path)
	}
	path := u.yaml.QuantisedWeights()
	if path == "" {
		path = model
	}
	dir, err := u.tempDir()
	if err == nil {
		u.dequantised = filepath.Join(dir, "model")
		u.quantised, err = checkpoint.WriteDequantised(path, u.dequantised, model)
	}
	return err
}

// generate runs a variant of the reference on from each prompt, greedily, for what goldens keep of it.
// The tokens of the first variant are forced on the others.
func (u *update) generate(m *made, onePass *engine.Result, forced map[string][]int) error {
	n := u.yaml.Generation
	if n == 0 {
		return nil
	}
	var cases []engine.Case
	for i, y := range u.yaml.Cases {
		tokens := onePass.Runs[i].Info.Unpadded()
		if len(tokens) != 1 || len(tokens[0]) == 0 {
			return fmt.Errorf("case %s has %d sequences, and generation: %d asks for a text of one: give each prompt a case of its own", y.Name, len(tokens), n)
		}
		c := engine.Case{Name: y.Name, TokenIDs: tokens, Images: u.yaml.ImagesOf(y), Steps: n}
		if ids := forced[y.Name]; ids != nil {
			c.Forced = [][]int{ids}
		}
		cases = append(cases, c)
	}
	r, err := u.runCases(m.variant, "along texts", cases, true)
	if err != nil {
		return err
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
		side, err := paths.OpenSide(run, nil)
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

// measure runs a variant of the reference along the paths, and compares each with its own runs of
// one pass. Where all rows are the same within the noise floor, the path shares the goldens of one
// pass; otherwise it keeps its own. Of a causal model a beginning of each prompt, without the last
// third, is run too: that its rows are those of the whole prompt is what causal means.
func (u *update) measure(m *made, onePass []*dump.Run) error {
	if len(u.yaml.Paths) == 0 {
		return nil
	}
	var inputs []path.Input
	for i, y := range u.yaml.Cases {
		tokens := onePass[i].Info.Unpadded()
		if len(tokens) == 0 {
			return fmt.Errorf("case %s has no tokens, and paths are ways to run tokens: take paths out", y.Name)
		}
		inputs = append(inputs, path.Input{Case: y.Name, Tokens: tokens, Images: u.yaml.ImagesOf(y)})
	}
	var all [][]path.Plan
	for _, y := range u.yaml.Paths {
		plans, left, err := u.plan(y, inputs)
		if err != nil {
			return err
		}
		for _, text := range left {
			u.tell("%s", text)
		}
		all = append(all, plans)
	}
	if u.yaml.Causal() {
		all = append(all, cuts(inputs))
	}
	var cases []engine.Case
	m.cases = map[string]engine.Case{}
	for _, plan := range slices.Concat(all...) {
		c := planCase(plan)
		cases, m.cases[c.Name] = append(cases, c), c
	}
	r, err := u.runCases(m.variant, "along paths", cases, false)
	if err != nil {
		return err
	}
	runs := r.Runs
	for _, plans := range all {
		paths, err := u.compareOwn(m.variant, plans, onePass, runs)
		if err != nil {
			return err
		}
		m.paths = append(m.paths, paths...)
	}
	for _, p := range m.paths {
		if p.Own && u.yaml.Wants(p.Golden()) {
			m.along = append(m.along, runs[slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == p.Golden() })])
		}
	}
	return nil
}

// costsAlong runs the variants that say what an encoding costs along the paths that keep goldens of
// their own: of one pass that is not known there.
func (u *update) costsAlong() error {
	i := slices.IndexFunc(u.all, func(m *made) bool { return m.variant == u.yaml.Reference("") })
	if i < 0 {
		return nil
	}
	for _, m := range u.all {
		if u.yaml.Use(m.variant) != fixture.UseCost {
			continue
		}
		var cases []engine.Case
		for _, p := range u.all[i].paths {
			if p.Own && u.yaml.Wants(p.Golden()) {
				p.Variant = m.variant
				m.paths, cases = append(m.paths, p), append(cases, u.all[i].cases[p.Golden()])
			}
		}
		if len(cases) == 0 {
			continue
		}
		r, err := u.runCases(m.variant, "in "+m.variant+" along paths", cases, false)
		if err != nil {
			return err
		}
		m.along = append(m.along, r.Runs...)
	}
	return nil
}

// runCases runs cases in a job of the reference, which records what the fixture captures or everything. what says which
// cases, for errors.
func (u *update) runCases(variant, what string, cases []engine.Case, everything bool) (*engine.Result, error) {
	job, err := u.reference(variant)
	if err != nil {
		return nil, err
	}
	if job.Cases = cases; everything {
		job.Capture = engine.Capture{}
	}
	r, err := u.run(job)
	if err != nil {
		err = fmt.Errorf("the reference %s: %w", what, err)
	}
	return r, err
}

// cuts are plans of the first two thirds of each sequence, run alone.
func cuts(inputs []path.Input) (plans []path.Plan) {
	for _, in := range inputs {
		n := len(in.Tokens[0])
		if m := n - n/3; m < n {
			p, _, err := path.Plans(fmt.Sprintf("%s:%d", dump.Lengths, m), []path.Input{{Case: in.Case, Tokens: in.Tokens[:1], Images: in.Images}}, path.About{})
			if err == nil {
				plans = append(plans, p...)
			}
		}
	}
	return plans
}

// compareOwn compares the reference's runs of a path with its runs of one pass.
func (u *update) compareOwn(variant string, plans []path.Plan, onePass, runs []*dump.Run) (out []store.Along, err error) {
	own := false
	for _, plan := range plans {
		i := slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == plan.Name() })
		p, err := paths.Compare(u.cfg.context(), paths.Runs{Golden: paths.Goldens{Standard: onePass}, Actual: runs[i : i+1], Exact: !u.yaml.Causal()}, judge.Options{})
		if err != nil {
			return nil, fmt.Errorf("the reference along path %s: %w", plan.Path, err)
		}
		ref, _ := u.yaml.Variant(variant)
		dtype, err := tensor.ParseDType(ref.DType)
		if err != nil {
			return nil, err
		}
		g := store.Along{Variant: variant, Case: plan.Case, Path: plan.Path, Limit: compare.Floor(dtype).RowRelL2}
		if a, agrees := p.Agreement(); a == nil {
			g.Own, g.Limit = true, 0 // one pass has no such rows
		} else {
			g.RowRelL2 = min(float64(a.RowRelL2), math.MaxFloat64) // of rows of zeros in one pass; JSON has no infinity
			g.Label = dump.Entry{Layer: a.Layer, Port: a.Port}.Label()
			g.Left = !agrees && plan.Images != nil
			g.Own = !agrees && !g.Left
		}
		own = own || g.Own
		out = append(out, g)
	}
	for i := range out {
		out[i].Own = own && !out[i].Left // all cases of a path are judged alike
		what := "shares the goldens of one pass"
		if out[i].Left {
			what = "is left out: the reference cuts images there"
		} else if own {
			what = "keeps its own goldens"
		}
		if out[i].Limit > 0 {
			what += fmt.Sprintf(": the worst row is at relative L2 %.3g, %s", out[i].RowRelL2, out[i].Label)
		}
		u.tell("%s: path %s %s", variant, dump.PathCase(out[i].Case, out[i].Path), what)
	}
	return out, nil
}

// recordPrograms renews the programs of a fixture that judge alone. No weights are needed.
func (u *update) recordPrograms() error {
	switch {
	case u.cfg.Bless != "":
		return errors.New("there are no goldens to bless: reference: program judges alone")
	case u.goldenDump != "":
		return errors.New("reference: program: a program is recorded, and no dump imported: take PARITY_GOLDEN_DUMP out")
	}
	variant := u.yaml.Reference("")
	job, err := u.reference(variant)
	if err != nil {
		return err
	}
	job.Mode, job.Capture = engine.ProgramMode, engine.Capture{}
	fixture.RecordProgram(&job, u.yaml.Programs)
	have, err := u.have(variant, true)
	if err != nil {
		return err
	}
	m := &made{variant: variant, runs: map[string]*dump.Run{}}
	u.all = append(u.all, m)
	if job.Cases = slices.DeleteFunc(job.Cases, func(c engine.Case) bool {
		return u.cfg.Update == setting.UpdateNew && slices.Contains(have, c.Name)
	}); len(job.Cases) == 0 {
		return u.replace()
	}
	r, err := u.run(job)
	if err != nil {
		return err
	}
	for i, run := range r.Runs {
		p, err := program.Read(run.Program)
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			return fmt.Errorf("case %s: %w", job.Cases[i].Name, err)
		}
		m.runs[job.Cases[i].Name] = run
	}
	return u.replace()
}

// have returns what there is of a variant: runs with tensors, or with a program alone.
func (u *update) have(variant string, alone bool) (cases []string, err error) {
	s, err := store.Open(u.goldenDir())
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, k := range s.Runs() {
		if k.Variant == variant && (alone && len(k.Program) > 0 || !alone && len(k.Info.Order) > 0) {
			cases = append(cases, k.Info.Case)
		}
	}
	return cases, s.Close()
}
