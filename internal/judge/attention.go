package judge

import (
	"context"
	"fmt"

	"github.com/goparity/goparity/internal/attention"
	"github.com/goparity/goparity/internal/diagnose"
)

// Attentions lists the attentions of both sides, by the labels of the golden; see [attention.All].
func (c *Comparison) Attentions(ctx context.Context) (golden, candidate []attention.Weights, err error) {
	run := &diagnose.Run{}
	if c.search.Evidence != nil {
		if run.Weights, run.Config, err = c.search.Evidence(); err != nil {
			return nil, nil, fmt.Errorf("weights or config: %w", err)
		}
	}
	for _, p := range c.Ports {
		run.Ports = append(run.Ports, p.evidence())
	}
	return attention.All(ctx, run), attention.All(ctx, candidateOf(run, func(*diagnose.Port) bool { return true })), nil
}

// candidateOf is a run whose golden tensors are those that the candidate recorded, of some ports.
func candidateOf(run *diagnose.Run, of func(*diagnose.Port) bool) *diagnose.Run {
	out := &diagnose.Run{Weights: run.Weights, Config: run.Config}
	for _, p := range run.Ports {
		if p.IsRecorded() && of(p) {
			q := *p
			q.Golden = p.Actual
			out.Ports = append(out.Ports, &q)
		}
	}
	return out
}
