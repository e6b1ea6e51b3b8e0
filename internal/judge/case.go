package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/match"
)

// Case is one prompt: the reference's run and the candidate's.
type Case struct {
	Name           string
	Golden, Actual *dump.Run
	Injected       *dump.Run // the candidate on golden inputs, nil if there is none
	Golden64       *dump.Run // the reference in float64, nil if there is none
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
	return opt
}

func portsOf(r *dump.Run) []match.Port {
	ports := make([]match.Port, len(r.Entries))
	for i, e := range r.Entries {
		ports[i] = match.Port{Step: e.Step, Layer: e.Layer, Port: e.Port, Seq: e.Seq, DType: e.Tensor.DType(), Shape: e.Tensor.Shape()}
	}
	return ports
}

// otherPrompt says how the token ids of the two runs differ; "" if they are equal, or one run did
// not record them.
func (k Case) otherPrompt() string {
	g, a := slices.Concat(k.Golden.Info.Tokens()...), slices.Concat(k.Actual.Info.Tokens()...)
	if len(g) == 0 || len(a) == 0 || slices.Equal(g, a) {
		return ""
	}
	return fmt.Sprintf("the golden got %d token ids, the candidate %d, and they differ", len(g), len(a))
}
