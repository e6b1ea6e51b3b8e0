package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// The stages of a run, in the order in which a run passes them.
const (
	StageText       = "text"       // what the engine made of a prompt
	StageTokens     = "tokens"     // what the two runs were given
	StageWeights    = "weights"    // what the engine loaded
	StageTensors    = "tensors"    // what the layers computed in one pass
	StagePaths      = "paths"      // and along execution paths
	StageGeneration = "generation" // which tokens it chose
	StageServing    = "serving"    // and which its server returned
)

// stage is a stage as a report has it. A further one is an entry of stages, and the kinds of its verdicts.
type stage struct {
	name     string
	judged   func(*Report) []Judged        // each thing that it judged, by a name
	headline func(*Report) string          // of a verdict that is about it
	show     func(*composer)               // its own sections of a document; nil: none
	next     func(next) (commands, string) // what to do if the verdict is about it; nil: as for any
}

// stages are in the order in which a run passes them.
func stages() []stage {
	return []stage{
		{name: StageText, judged: judgedTexts, headline: textHeadline, show: (*composer).texts, next: next.text},
		{name: StageTokens, judged: judgedTokens, headline: tokensHeadline, next: next.tokens},
		{name: StageWeights, judged: judgedWeights, headline: weightsHeadline, show: (*composer).weights},
		{name: StageTensors, judged: judgedTensors, headline: tensorsHeadline},
		{name: StagePaths, judged: judgedPaths, headline: pathsHeadline, show: (*composer).paths, next: next.path},
		{name: StageGeneration, judged: judgedGenerations, headline: generationHeadline, show: (*composer).generations},
		{name: StageServing, judged: judgedAnswers, headline: servingHeadline, show: (*composer).serving, next: next.served},
	}
}

func stageNamed(name string) stage { return stages()[placeOf(name)] }

func placeOf(name string) int {
	return slices.IndexFunc(stages(), func(s stage) bool { return s.name == name })
}

func (s stage) status(r *Report) Status {
	status := NotJudged
	for _, j := range s.judged(r) {
		if j.Status != NotJudged {
			status = statusOf(true, status == StatusFail || j.Status.failing())
		}
	}
	return status
}

// statusOf is pass or fail of what was judged.
func statusOf(judged, fails bool) Status {
	switch {
	case !judged:
		return NotJudged
	case fails:
		return StatusFail
	}
	return StatusPass
}

// Kinds of verdicts, of stages other than the tensors.
const (
	KindText       = StageText
	KindInput      = "input"
	KindWeights    = StageWeights
	KindPath       = "path"
	KindGeneration = StageGeneration
	KindServing    = StageServing
)

// kinds explains the kinds of a first divergence, and says to which stage they belong.
var kinds = map[string]struct{ stage, text string }{
	KindText:    {StageText, "The engine's own text or token ids of a prompt are not the reference's. No layer is judged while they differ."},
	KindInput:   {StageTokens, "A model input differs: the two runs were not given the same input."},
	KindWeights: {StageWeights, "The weights that were loaded are not those of the checkpoint."},
	"capture":   {StageTensors, "The recorded tensor is not the one that the model computed: the recording is wrong, not the model."},
	"interaction": {StageTensors, "The layer is right on the golden inputs and wrong in the assembled model, " +
		"although its recorded inputs agree."},
	"between": {StageTensors, "The error is in the container's own code, between two of its layers: " +
		"residual, activation, reshape, mask, rotary, softmax."},
	"local": {StageTensors, "The layer's recorded inputs agree and its output does not: it computes something else."},
	KindPath: {StagePaths, "The model is right in one pass and wrong along this execution path: the error is in what the path adds, " +
		"the cache, positions, slots, masks or padding."},
	KindGeneration: {StageGeneration, "A token is another one than the reference's, or its logits are wrong, and no layer that was recorded is."},
	KindServing:    {StageServing, "The server answers otherwise than the reference. No layer is accused: that is what tensors are judged for."},
	"drift":        {StageTensors, "No layer differs by itself; small errors grow until the end differs."},
	"unordered":    {StageTensors, "Several layers differ, and nothing tells which of them ran first."},
}

// stage is the one that a verdict fail is about. An input of a named layer is a tensor.
func (r *Report) stage() string {
	k, known := kinds[r.Kind]
	if d := r.FirstDivergence; !known || r.Kind == KindInput && d != nil && d.Layer != "" {
		return StageTensors
	}
	return k.stage
}

// Stage is what came of one stage: pass, fail, inherited from an earlier stage, or not judged.
type Stage struct {
	Stage  string `json:"stage"`
	Status Status `json:"status"`
}

// PathTest names the subtest of an execution path, "path:decode-8", and TextTest that of an API path.
func PathTest(path string) string { return "path:" + dump.Slug(path) }

// TextTest is "text:chat".
func TextTest(path string) string { return "text:" + dump.Slug(path) }

// JudgedStages lists all stages with what came of them.
func (r *Report) JudgedStages() (out []Stage) {
	failed := false
	for _, s := range stages() {
		status := s.status(r)
		switch {
		case status != StatusFail && !(r.Verdict == Fail && r.FirstDivergence != nil && r.stage() == s.name):
		case failed:
			status = StatusInherited
		default:
			status, failed = StatusFail, true
		}
		out = append(out, Stage{s.name, status})
	}
	return out
}

// FirstStage is the first stage of which this came, that which differs for fail; empty if there is none.
func (r *Report) FirstStage(of Status) string {
	for _, s := range r.JudgedStages() {
		if s.Status == of {
			return s.Stage
		}
	}
	return ""
}

// stageLine is "text pass → tokens pass → …", with the stages that were not judged last.
func (r *Report) stageLine() string {
	var judged, not []string
	for _, s := range r.JudgedStages() {
		if s.Status == NotJudged {
			not = append(not, s.Stage)
		} else {
			judged = append(judged, s.Stage+" "+string(s.Status))
		}
	}
	if len(not) > 0 {
		not = []string{"not judged: " + strings.Join(not, ", ")}
	}
	return joined("; ", append([]string{strings.Join(judged, " → ")}, not...)...)
}

// NothingCompared is the error of a report that no output was decided for.
const NothingCompared = "no output was compared: inputs alone prove nothing"

// severity orders verdicts, from 1: what is wrong is known, even if something else could not be judged.
var severity = map[Verdict]int{Pass: 1, Incomplete: 2, Error: 3, Fail: 4}

// blank reports whether nothing was judged yet.
func (r *Report) blank() bool { return r.Verdict == "" || r.Error == NothingCompared }

// Join adds what came of another part of a run: the one rule by which several stages have one verdict. The worst is
// the verdict, and of several that are wrong the first stage, since what is wrong in a later one follows from it.
func (r *Report) Join(part *Report) {
	switch c, was := part.Coverage, r.Coverage; {
	case c == nil:
	case was == nil || r.blank():
		r.Coverage = c
	default: // what was compared before stays, and what this leaves open is added
		r.Coverage = &Coverage{Compared: was.Compared, Outputs: was.Outputs, Open: once(slices.Concat(was.Open, c.Open))}
	}
	earlier := part.Verdict == Fail && r.Verdict == Fail && placeOf(part.stage()) < placeOf(r.stage())
	if earlier || severity[part.Verdict] > severity[r.Verdict] || r.blank() {
		r.Verdict, r.Error, r.Kind, r.FirstDivergence = part.Verdict, part.Error, part.Kind, part.FirstDivergence
		r.Frontier, r.Causes = part.Frontier, part.Causes
	}
}

// Refuse fails a report that holds, for what is wrong besides all that was judged.
func (r *Report) Refuse(why string) {
	if r.Notes = append([]string{why}, r.Notes...); r.holds() {
		r.Join(&Report{Verdict: Fail})
	}
}

// Void makes a report of which nothing can be trusted: a file has changed, or the run was stopped.
func (r *Report) Void(err error) {
	r.Verdict, r.Error, r.Kind, r.FirstDivergence = Error, err.Error(), "", nil
	r.Frontier, r.Causes, r.Layers = nil, nil, nil
}

// AddGeneration adds what came of another text.
func (r *Report) AddGeneration(other *Report) {
	r.Generations = append(r.Generations, other.Generations...)
	r.Notes = append(r.Notes, other.Notes...)
	r.NotJudged = append(r.NotJudged, other.NotJudged...)
	r.Join(other)
	r.addRows(other.Layers)
}

// AddPath adds what came of runs along an execution path.
func (r *Report) AddPath(name string, along *Report) {
	r.Paths = append(r.Paths, along.Paths...)
	if along.PathDepth != nil {
		r.PathDepth = cmp.Or(r.PathDepth, &PathDepth{})
		r.PathDepth.Join(along.PathDepth)
	}
	for _, n := range along.Notes {
		r.addPathNote(name, n)
	}
	alone := r.blank()
	r.Join(along)
	if along.Verdict != Pass || alone {
		r.addRows(along.Layers)
	}
}

// addPathNote adds a note on an execution path; what is said of several stands once, as "path decode, batch: …".
func (r *Report) addPathNote(name, note string) {
	for i, n := range r.Notes {
		names, of, _ := strings.Cut(strings.TrimPrefix(n, "path "), ": ")
		if of != note || !strings.HasPrefix(n, "path ") {
			continue
		}
		if !slices.Contains(strings.Split(names, ", "), name) {
			r.Notes[i] = "path " + names + ", " + name + ": " + note
		}
		return
	}
	r.Notes = append(r.Notes, "path "+name+": "+note)
}

// addRows adds rows, but for those that are there: several paths may be judged with one pass.
func (r *Report) addRows(rows []Layer) {
	known := map[[4]string]bool{}
	for i := range r.Layers {
		known[r.Layers[i].place()] = true
	}
	for i := range rows {
		if !known[rows[i].place()] {
			r.Layers = append(r.Layers, rows[i])
		}
	}
}

// Bisect says in which way of running the same tokens a wrong one begins: the table that ends the search.
type Bisect struct {
	Case  string `json:"case"`
	Token int    `json:"token"` // the first wrong one, from 0

	// Whether the token is right by one pass over the prompt and the reference's text before it, by one
	// run with the cache, and as the server returned it: pass, fail or not judged.
	Forced      Status `json:"teacher_forced"`
	Incremental Status `json:"incremental"`
	Served      Status `json:"served"`

	Fault string `json:"fault"` // "graph", "decode state", "harness", or empty where it cannot be told
	Next  string `json:"next"`  // what to look at or to run
}

func (r *Report) bisect() *Bisect {
	b := r.wrongToken()
	if b == nil {
		return nil
	}
	b.Forced, b.Incremental, b.Served = r.right(b, false), r.right(b, true), r.served(b)
	switch {
	case b.Forced == StatusFail:
		b.Fault, b.Next = "graph", "one pass is wrong: look at the first divergence of the layers"
	case b.Incremental == StatusFail && b.Forced == StatusPass:
		b.Fault, b.Next = "decode state", "one pass is right, the run with the cache is not: paths: [decode] finds the layer and the pass, parity run --path decode"
	case b.Incremental == StatusFail:
		b.Next = "one pass was not judged: run the same tokens in one, parity run --token-ids, and parity compare judges it"
	case b.Served == StatusFail && b.Incremental == StatusPass:
		b.Fault, b.Next = "harness", "the model is right, its server is not: tokenizer, template, sampling, stop tokens, concurrency; do not edit the graph"
	case b.Served == StatusFail:
		b.Next = "the model's own run was not judged: parity compare of dumps with generation, or a live run with steps"
	}
	return b
}

// wrongToken is the first token that a generation, or else a server, has wrong.
func (r *Report) wrongToken() (first *Bisect) {
	for i := range r.Generations {
		if g := &r.Generations[i]; g.wrong() && (first == nil || *g.At < first.Token) {
			first = &Bisect{Case: g.Case, Token: *g.At}
		}
	}
	if s := r.Serving; first == nil && s != nil && s.Verdict == Fail && s.First != nil {
		first = &Bisect{Case: s.First.Case, Token: s.First.Token}
	}
	return first
}

// right says whether a token is right in one pass, or with the cache: by a generation, else by the rows of its pass.
func (r *Report) right(b *Bisect, incremental bool) Status {
	for _, g := range r.Generations {
		if g.Case == b.Case && g.Incremental == incremental && g.Tokens > b.Token {
			return statusOf(true, g.wrong() && *g.At <= b.Token)
		}
	}
	judged := slices.ContainsFunc(r.Layers, func(l Layer) bool {
		return l.Case == b.Case && l.Stage == "" && l.compared() && !l.IsInput() && l.Step == fmt.Sprint(b.Token)
	})
	if !judged || b.Token > 0 && !incremental {
		return NotJudged
	}
	return stageNamed(StageTensors).status(r)
}

func (r *Report) served(b *Bisect) Status {
	s := r.Serving
	return statusOf(s != nil && s.Verdict != Error, s != nil && s.First != nil && s.First.Case == b.Case && s.First.Token <= b.Token)
}

func (g *Generation) wrong() bool {
	return g.At != nil && (g.Verdict == "diverged" || g.Verdict == "logits")
}

// bisected says in which way of running the same tokens the first wrong one begins.
func (d *composer) bisected() {
	b := d.r.bisect()
	if b == nil {
		return
	}
	next := b.Next
	if b.Fault != "" {
		next = "the " + b.Fault + " is at fault: " + next
	}
	d.add(Section{Heading: fmt.Sprintf("Token %d of %s", b.Token, Clean(b.Case))}, unlimited,
		Line{Lead: "teacher-forced, in one pass", Text: string(b.Forced)},
		Line{Lead: "incremental, with the cache", Text: string(b.Incremental)},
		Line{Lead: "served", Text: string(b.Served)}, Line{Text: next})
}
