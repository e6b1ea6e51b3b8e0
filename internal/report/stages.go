package report

import (
	"slices"
	"strings"
)

// The stages of a run, in the order in which a run passes them. The first that differs is the
// verdict, what is wrong in a later one follows from it.
const (
	StageText       = "text"       // what the engine made of a prompt
	StageTokens     = "tokens"     // what the two runs were given
	StageWeights    = "weights"    // what the engine loaded
	StageTensors    = "tensors"    // what the layers computed in one pass
	StagePaths      = "paths"      // and along execution paths
	StageGeneration = "generation" // which tokens it chose
	StageServing    = "serving"    // and which its server returned
)

// NotJudged is the status of a stage about which nothing is known.
const NotJudged Status = "not judged"

// KindText is the kind of a verdict about the text.
const KindText = "text"

// Stage is what came of one stage: pass, fail, inherited from an earlier stage, or not judged.
type Stage struct {
	Stage  string `json:"stage"`
	Status Status `json:"status"`
}

// Prompt is what the candidate made of one prompt or conversation along one of its API paths.
type Prompt struct {
	Case   string `json:"case"`
	Path   string `json:"path"`   // the API path: "completion", "chat"
	Status Status `json:"status"` // pass, fail or not judged
	Text   string `json:"text"`   // one sentence
	First  int    `json:"first"`  // the first token that differs; -1 where none does
	Golden []int  `json:"golden"` // token ids; null where they are not known
	Actual []int  `json:"actual"`
}

// JudgedStages lists all stages with what came of them.
func (r *Report) JudgedStages() []Stage {
	status := map[string]Status{StageText: r.textStage(), StageTokens: r.Tokens, StageWeights: r.weightStage(), StageTensors: r.tensorStage(), StagePaths: r.pathStage(),
		StageGeneration: r.generationStage(), StageServing: r.Serving.stage()}
	var out []Stage
	failed := false
	for _, name := range []string{StageText, StageTokens, StageWeights, StageTensors, StagePaths, StageGeneration, StageServing} {
		s := Stage{name, status[name]}
		if s.Status == "" {
			s.Status = NotJudged
		}
		if s.Status == StatusFail && failed {
			s.Status = StatusInherited
		}
		failed = failed || s.Status == StatusFail
		out = append(out, s)
	}
	return out
}

// FailedStage is the first stage that differs; empty if none does.
func (r *Report) FailedStage() string {
	stages := r.JudgedStages()
	if i := slices.IndexFunc(stages, func(s Stage) bool { return s.Status == StatusFail }); i >= 0 {
		return stages[i].Stage
	}
	return ""
}

func (r *Report) textStage() Status {
	status := NotJudged
	for _, t := range r.Texts {
		if t.Status == StatusFail {
			return StatusFail
		}
		if t.Status == StatusPass {
			status = StatusPass
		}
	}
	return status
}

// tensorStage is that of one pass. A generation that is right looks at no layers.
func (r *Report) tensorStage() Status {
	switch {
	case r.Verdict == Error || len(r.Layers) == 0, r.Kind == StageGeneration, r.ofGeneration() && r.Verdict != Fail:
		return NotJudged
	case r.Kind == KindWeights && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.failing() }):
		return StatusPass
	case r.Kind == "path" || r.Kind == KindServing || r.otherPrompt() && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.failing() }):
		return StatusPass
	case r.Verdict == Fail:
		return StatusFail
	}
	return StatusPass
}

// ofGeneration reports whether a report is about nothing but a generation.
func (r *Report) ofGeneration() bool { return r.Made != nil && r.Made.Command == Generate }

func (r *Report) generationStage() Status {
	status := NotJudged
	for i := range r.Generations {
		switch r.Generations[i].Verdict {
		case "diverged", "logits":
			return StatusFail
		case "identical", "tie":
			status = StatusPass
		}
	}
	return status
}

func (r *Report) pathStage() Status {
	status := NotJudged
	for i := range r.Paths {
		p := &r.Paths[i]
		for _, a := range []*Agreement{p.Matches, p.Repeats} {
			switch {
			case a == nil:
			case !a.Holds:
				return StatusFail
			default:
				status = StatusPass
			}
		}
	}
	if r.Kind == "path" {
		return StatusFail
	}
	return status
}

// StageLine is the stages in one line: "text pass → tokens pass → …", those that were not judged
// last.
func (r *Report) StageLine() string {
	var judged, not []string
	for _, s := range r.JudgedStages() {
		if s.Status == NotJudged {
			not = append(not, s.Stage)
		} else {
			judged = append(judged, s.Stage+" "+string(s.Status))
		}
	}
	line := strings.Join(judged, " → ")
	if len(not) > 0 {
		line = strings.TrimPrefix(line+"; not judged: "+strings.Join(not, ", "), "; ")
	}
	return line
}
