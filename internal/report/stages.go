package report

import (
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

// stage is a stage of a run as a report has it. Nothing else knows one by name: a further stage is an entry of stages,
// and the kinds of its verdicts.
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

// placeOf is the place of a stage in their order.
func placeOf(name string) int {
	return slices.IndexFunc(stages(), func(s stage) bool { return s.name == name })
}

// status is pass, fail or not judged.
func (s stage) status(r *Report) Status {
	status := NotJudged
	for _, j := range s.judged(r) {
		if j.Status != NotJudged {
			status = statusOf(true, status == StatusFail || j.Status.failing())
		}
	}
	return status
}

// NotJudged is the status of a stage about which nothing is known.
const NotJudged Status = "not judged"

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

// FailedStage is the first stage that differs; empty if none does.
func (r *Report) FailedStage() string { return r.firstStage(StatusFail) }

func (r *Report) firstStage(of Status) string {
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
