package piece

import "github.com/goparity/goparity/internal/replay"

// complete fills in what the candidate lacks of its records, padding and rows that no forward pass
// recorded, by replaying the pieces in the order of the program.
func (j *judge) complete() error {
	for _, t := range j.order {
		r := &j.Records[t]
		if r.Complete == nil || r.Tensor == nil {
			continue
		}
		made, err := j.replay(t, nil, plain, newBasis())
		if cause := j.ctx.Err(); cause != nil {
			return cause
		}
		if err != nil {
			continue // opaque: it is judged by the golden
		}
		if r.Tensor, err = r.Complete(made); err != nil {
			return err
		}
		j.madeOf[t] = made
	}
	return nil
}

// record returns what the candidate has for a port. What was filled in is made anew where values are
// left out: it hangs on them.
func (j *judge) record(port int, out excluded, b *basis) (*replay.Array, error) {
	r := &j.Records[port]
	if a := j.inOrder[port]; a != nil {
		return a, nil
	}
	if j.madeOf[port] == nil || len(out) == 0 {
		return r.Tensor, nil
	}
	made, err := j.replay(port, out, plain, b)
	if err != nil || made == j.madeOf[port] {
		return r.Tensor, err
	}
	return r.Complete(made)
}
