package judge

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// Case is one prompt: the reference's run and the candidate's.
type Case struct {
	Name           string
	Golden, Actual *dump.Run
	Injected       *dump.Run // the candidate on golden inputs, nil if there is none
	Golden64       *dump.Run // the reference in float64, nil if there is none
	Encoded        *dump.Run // the reference in the candidate's encoding, nil if there is none
	// Of a golden on dequantised weights: the reference on the weights as they were, and on the same
	// weights without rounding the inputs of products; nil if there is none.
	Unquantised, Unrounded *dump.Run
	// Program is what the reference ran for the golden; nil where that was not recorded.
	Program *program.Program

	judged   encoding                // by which it is judged, see encoding
	unjudged map[localise.Key]string // ports of which it is not known what is right, and why; see Alone
	alone    bool                    // it has no golden of its own
	opaque   int                     // how many of them were asked for, and are outputs
	Along    *Along                  // how the rows were fed, where the candidate ran along an execution path; else nil
}

// run is one of a case: who made it, and where a port keeps what it has, nil where ports are made of it.
type run struct {
	*dump.Run
	who  string
	keep func(p *Port) **tensor.Tensor
}

// runs lists those that there are.
func (k Case) runs() []run {
	return slices.DeleteFunc([]run{
		{k.Golden, "golden", nil}, {k.Actual, "candidate's run", nil}, {k.Injected, "injected run", nil},
		{k.Golden64, "float64 golden", func(p *Port) **tensor.Tensor { return &p.Golden64 }},
		{k.Encoded, "reference in the candidate's encoding", func(p *Port) **tensor.Tensor { return &p.Encoded }},
		{k.Unquantised, "reference on the weights before quantisation", func(p *Port) **tensor.Tensor { return &p.Unquantised }},
		{k.Unrounded, "reference without rounded inputs", func(p *Port) **tensor.Tensor { return &p.Unrounded }},
	}, func(r run) bool { return r.Run == nil })
}

// sides ranges over the two runs, each called by who made it.
func (k Case) sides() iter.Seq2[string, *dump.Run] {
	return func(yield func(string, *dump.Run) bool) {
		_ = yield("golden", k.Golden) && yield("candidate", k.Actual)
	}
}

// standard refuses runs on golden inputs in the place of what an engine computed by itself, for no error adds up
// in them, and runs that do not show what the encoding or quantisation costs the reference: on other tokens, or the
// candidate's own.
func (k Case) standard() error {
	for _, r := range k.runs() {
		if r.Run != k.Injected && r.Info.Mode == dump.Injected {
			return fmt.Errorf("case %s: the %s is a run on golden inputs (%s): it belongs beside a standard run, parity compare --also injected=DUMP",
				k.Name, r.who, r.Path)
		}
		why := ""
		switch r.Run {
		case k.Encoded:
			why = cmp.Or(k.checkEncoded(), k.notOfGolden(r.Run, r.who))
		case k.Unquantised, k.Unrounded:
			why = k.notOfGolden(r.Run, r.who)
		}
		if why != "" {
			return fmt.Errorf("case %s: %s is no measure of what an encoding costs the reference: %s", k.Name, r.Path, why)
		}
	}
	return nil
}

// Match joins the golden with one of the candidate's runs. To the options that hold for all cases
// it adds what the two say of themselves: whether their order is that of execution, and which
// tokens are padding.
func (k Case) Match(run *dump.Run, opt match.Options) (*match.Result, error) {
	res, err := match.Runs(portsOf(k.Golden), portsOf(run), k.matching(run, opt))
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", k.Name, err)
	}
	return res, nil
}

func (k Case) matching(run *dump.Run, opt match.Options) match.Options {
	opt.GoldenByName, opt.ActualByName = k.Golden.OrderBy == dump.OrderNatural, run.OrderBy == dump.OrderNatural
	if real := k.Golden.RealTokens(); real != nil {
		opt.PadMask = real
	}
	if k.Along != nil {
		opt.Lengths = map[string][]int{}
		for _, p := range k.Along.Passes {
			opt.Lengths[p.Step] = p.Lengths()
		}
	}
	return opt
}

func portsOf(r *dump.Run) []match.Port {
	ports := make([]match.Port, len(r.Entries))
	for i, e := range r.Entries {
		ports[i] = match.Port{Step: e.Step, Layer: e.Layer, Port: e.Port, Seq: e.Seq,
			DType: e.Tensor.DType(), Shape: e.Tensor.Shape(), Tensor: e.Tensor}
	}
	return ports
}

// otherPrompt says how the token ids of the two runs differ; "" if they are equal, or one run did
// not record them.
func (k Case) otherPrompt() string { return otherTokens("candidate", k.Golden, k.Actual) }

// otherTokens is otherPrompt of a run, called who, and the golden.
func otherTokens(who string, golden, run *dump.Run) string {
	g, a := golden.Info.Asked(), run.Info.Asked()
	if len(g) != len(a) && min(len(g), len(a)) == 1 { // a flat list stands for any number of sequences
		g, a = [][]int{slices.Concat(g...)}, [][]int{slices.Concat(a...)}
	}
	switch {
	case len(g) == 0 || len(a) == 0:
		return ""
	case len(g) != len(a):
		return fmt.Sprintf("by token_ids of run.json the golden got %d sequences, the %s %d", len(g), who, len(a))
	}
	for i := range g {
		at := 0
		for at < min(len(g[i]), len(a[i])) && g[i][at] == a[i][at] {
			at++
		}
		switch {
		case at < min(len(g[i]), len(a[i])):
			return fmt.Sprintf("by token_ids of run.json, token %d of sequence %d is %d in the golden and %d in the %s",
				at, i, g[i][at], a[i][at], who)
		case len(g[i]) != len(a[i]):
			return fmt.Sprintf("by token_ids of run.json, sequence %d has %d tokens in the golden and %d in the %s",
				i, len(g[i]), len(a[i]), who)
		}
	}
	return ""
}

// Propose searches for rules that join the two runs, beside those of opt.
func (k Case) Propose(opt match.Options) (*match.Proposal, error) {
	equal := compare.Default(k.encoding().dtype)[compare.RelL2]
	p, err := match.Propose(portsOf(k.Golden), portsOf(k.Actual), k.matching(k.Actual, opt), equal)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", k.Name, err)
	}
	return p, nil
}
